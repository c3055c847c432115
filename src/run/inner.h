/* inner: the parts of a run that its files share. Private to run/. */
#ifndef WEIR_RUN_INNER_H
#define WEIR_RUN_INNER_H

#include "base/arena.h"
#include "run/directory.h"
#include "run/run.h"

/* One call that a reply asks for, until it is answered. */
struct call {
    struct run *run;
    struct str call_id, tool, args;
    enum { CALL_PENDING, CALL_OUT, CALL_ANSWERED } state;
    struct tool_call *out; /* while CALL_OUT */
    struct tool *kind;
};

/* What an agent said in all its replies of one part, where `index` has only the last. */
struct said {
    size_t index; /* of a message */
    struct str text;
};

/* Text that arrives in pieces which may cut a character: up to three bytes are held back. */
struct tail {
    char bytes[4];
    size_t len;
};

struct run {
    unsigned refs;
    enum run_state state;
    struct list link; /* in host->runs */
    struct live live; /* in the directory, from its start until it is settled */
    struct run_host *host;
    struct engine *engine; /* as it was when the run began; a reference */
    uint64_t id;
    struct arena *arena;
    struct journal *journal;
    struct lease lease;
    bool leased;   /* held or lent */
    bool reviving; /* it waited for a human in an earlier process, and will again */
    bool waits;    /* for the session; the answer, or whoever withdraws, drops a reference */
    struct history *seen; /* the snapshot that `messages` borrows from */
    uint64_t started_ms;
    struct timer limit; /* turn_max_ms */

    /* Who asked for what. */
    struct session_name name;
    struct str text, system, contract;
    const struct agent *agent; /* who has the turn now */
    bool sticky;               /* unless somebody else spoke last */

    /* The conversation as the model sees it: history, then this turn. */
    struct message *messages;
    size_t message_count, message_room;
    size_t turn_start; /* index of this turn's user message */

    /* The reply that is coming in. */
    struct provider_call *provider_call;
    struct provider_request asked;
    struct tail text_tail, thinking_tail;
    struct buf reply;  /* what its agent has said since its part began, this reply last */
    size_t reply_from; /* where in `reply` this one begins */
    struct said *said; /* parts of several replies, for what is remembered */
    size_t said_count;
    struct str model; /* who answered last */
    bool usage_seen;
    bool held; /* the listener lags: the provider is paused */
    unsigned model_calls, tool_calls;

    /* What it asks for. */
    struct call *calls;
    size_t call_count, call_room;
    size_t calls_out, calls_answered;
    uint64_t calls_seq; /* when this is durable they may be made */
    bool calls_made;    /* they have been let go */
    bool lent;

    /* A question to a human. */
    struct str question;
    bool asks_human;
    size_t human_call; /* index in calls */
    struct parked parked;
    struct str answer; /* the human's words, once the session is ours again */

    struct buf turns;      /* for EVENT_DONE */
    uint64_t ending_seq;   /* the terminal event; 0: not ending yet */
    enum run_state ending; /* and the state it means */
    struct task settle;    /* ends a run whose journal is in memory */
};

/* --- run.c -------------------------------------------------------------------------------- */

/* A run whose journal goes on after `last_seq`; it holds itself. */
struct run *run_new(struct run_host *host, const struct agent *agent, uint64_t id,
                    uint64_t last_seq);

/* One that never was, as far as anybody has seen. */
void run_discard(struct run *run);

void run_enter_directory(struct run *run);

/* The only function that writes run->state, but for a run that begins as it was left. */
void run_move(struct run *run, enum run_state next);

/* Append `event` with its time and, unless it names one, its agent. */
uint64_t run_append(struct run *run, struct event *event);

/* Keep a copy in the run's arena; false, and the run fails, at its limit. */
bool run_keep(struct run *run, struct str text, struct str *ret);

/* Fail it, because what it holds has reached its limit. */
void run_fail_memory(struct run *run);

/* Add one message; its texts must live as long as the run. */
void run_add_message(struct run *run, struct message message);

/* End it. Harmless when it is ending already. */
void run_done(struct run *run);
void run_fail(struct run *run, enum err_code code, struct str reason, struct str message);

/* --- asking.c: a model answers ------------------------------------------------------------ */

void run_ask(struct run *run);
void run_stop_asking(struct run *run);

/* --- working.c: what a reply asks for ----------------------------------------------------- */

/* The reply is complete and asks for calls (at least one) or a human. */
void run_work(struct run *run);

/* Everything up to `seq` is durable. */
void run_work_durable(struct run *run, uint64_t seq);

/* The children are done (session_reclaim said false before). */
void run_work_children_done(struct run *run);

/* Leave the run where the session's next message finds it. */
void run_wait_for_human(struct run *run);

/* --- revive.c: the session of a run from an earlier process is ours */
void run_revive_granted(struct run *run);

/* The session is ours again and the human has answered. */
void run_work_answered(struct run *run);

void run_stop_working(struct run *run);

#endif
