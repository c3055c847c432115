/* process_inner: what the parts of a process agent share. Private to agent/. */
#ifndef WEIR_AGENT_PROCESS_INNER_H
#define WEIR_AGENT_PROCESS_INNER_H

#include "agent/answer.h"
#include "agent/process.h"
#include "loop/child.h"
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
    struct timer again; /* the same, when a held process may be taken */
    uint64_t turns;     /* served so far */
};

struct process {
    struct list link; /* in its place */
    struct process_place *place;
    struct child *child; /* NULL: it has ended */
    struct str name;     /* both in `texts` */
    struct str key;
    struct buf texts;
    enum process_state state;
    struct timer timer; /* the time limit of each state */
    uint64_t stall_ms;
    struct provider_call *call; /* BUSY: its turn's; else NULL */
    uint64_t run;               /* BUSY, HELD: the turn */
    char turn[48];              /* the turn's name for the agent; unique to this delivery */
    size_t calls;               /* of the turn, known to the process */
    size_t results;             /* of those, the ones whose result it has */
    uint64_t held_ms;           /* when it was held */
    struct lines lines;         /* its unread output */
    unsigned inside;            /* readers on the stack */
};

struct provider_call {
    struct list link; /* in `waiting`, until it has a process */
    struct process_provider *provider;
    struct process_place *place;
    struct process *process; /* NULL: it waits */
    const struct provider_request *request;
    struct answer answer;
    struct task task; /* continues after a pause */
    unsigned unsent;  /* processes found dead when the turn was to be sent */
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
/* We are done with its turn. */
void process_drop(struct process *process);
/* Read on after a pause. */
void process_read(struct process *process);
void process_kill(struct process *process);

/* --- process.c ------------------------------------------------------------------------------- */

/* Report the call's last event, after the ones that wait. The call has no process any more. */
void process_call_end(struct provider_call *call, const struct reply_event *event);

#endif
