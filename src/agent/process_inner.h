/* process_inner: what the parts of a process agent share. Private to agent/. */
#ifndef WEIR_AGENT_PROCESS_INNER_H
#define WEIR_AGENT_PROCESS_INNER_H

#include "agent/process.h"
#include "loop/child.h"
#include "provider/gate.h"
#include "wire/lines.h"

struct process_provider {
    struct provider base;
    struct process_pool *pool;
    struct buf texts; /* name, path, arguments and environment, each ended by NUL */
    struct str name;
    const char *path;
    const char **args, **environment;
    struct str key; /* equal for providers that run the same program the same way */
    size_t processes_max;
    uint64_t stall_ms;
};

/* The processes of one loop, and the calls that wait for one. */
struct process_place {
    struct loop *loop;
    struct list processes, waiting;
    struct task serve;  /* find processes for the calls that wait */
    struct timer again; /* likewise, when one that is held may be taken */
    uint64_t turns;     /* served so far */
};

struct process {
    struct list link; /* in its place */
    struct process_place *place;
    struct child *child; /* NULL: it is gone */
    struct str name;     /* both in `texts` */
    struct str key;
    struct buf texts;
    enum process_state state;
    struct timer timer; /* in each state, what may take too long */
    uint64_t stall_ms;
    struct provider_call *call; /* BUSY: its turn's; else NULL */
    uint64_t run;               /* BUSY, HELD: the turn */
    char turn[48];              /* as it is named to the agent; names no other delivery */
    size_t calls;               /* of the turn that it knows of */
    size_t results;             /* of them, those whose result it has */
    uint64_t held_ms;           /* since when it is held */
    struct lines lines;         /* what it has written and nobody has read */
    unsigned inside;            /* reading on the stack */
};

struct provider_call {
    struct list link; /* in `waiting`, until it has a process */
    struct process_provider *provider;
    struct process_place *place;
    struct process *process; /* NULL: it waits */
    const struct provider_request *request;
    struct gate gate;
    struct task task; /* goes on after a pause */
    struct event_usage usage;
    struct buf model;
    bool counted;    /* `usage` says something */
    unsigned unsent; /* processes that were found dead when its turn was to be sent */
    unsigned inside; /* callbacks of the listener on the stack */
    bool dropped;    /* cancelled meanwhile: the last of them frees it */
};

/* --- process_pool.c -------------------------------------------------------------------------- */

struct process_place *process_place_of(struct process_pool *pool, struct loop *loop);
/* A process is free, or one is missing: look again before this loop turn ends. */
void process_place_serve(struct process_place *place);

/* --- process_worker.c ------------------------------------------------------------------------ */

MUST_CHECK bool process_start(struct process_place *place, const struct process_provider *of,
                              struct process **ret, struct err *e);
/* Give it a call: a new turn (IDLE), or the results of its calls (HELD). */
void process_take(struct process *process, struct provider_call *call);
/* Its turn is over for us. */
void process_drop(struct process *process);
/* Read on, after a pause. */
void process_read(struct process *process);
void process_kill(struct process *process);

/* --- process.c ------------------------------------------------------------------------------- */

/* The listener hears an event, or those that were kept while it paused. False: it has cancelled
 * the call, which may be freed by now. */
bool process_call_give(struct provider_call *call, const struct reply_event *event);
bool process_call_release(struct provider_call *call);

/* The call's last event, or the last one after those that are kept. No process has it any more.
 */
void process_call_end(struct provider_call *call, const struct reply_event *event);

#endif
