/* calls: the calls a model's reply requests, until each one is answered.
 *
 *     pending ─▶ out ─▶ answered      a tool is asked
 *        └──────────────────▲         a transfer, an error, a refusal, the end of the turn
 *
 * A call that needs a human's approval stays pending until it is approved. A transfer stays pending
 * until every other call of its reply is answered: those are calls of the agent that made the reply.
 *
 * Memory   inside its run; calls_done() ends it. Adding a call may move the others: keep no
 *          pointer to one before the reply is complete.
 * Threads  the loop of its run.
 * Source   docs/internals/turn.md "One call and its three policies", "Effects".
 */
#ifndef WEIR_TURN_CALLS_H
#define WEIR_TURN_CALLS_H

#include "base/buf.h"
#include "base/states.h"
#include "loop/loop.h"

struct run;
struct tool;
struct tool_call;
struct artifact_ask;

enum turn_call_state {
    TURN_CALL_PENDING,
    TURN_CALL_OUT,
    TURN_CALL_ANSWERED,
    TURN_CALL_STATE_COUNT,
};

extern const struct state turn_call_states[TURN_CALL_STATE_COUNT];

struct trace_context;

struct turn_call {
    struct run *run;
    struct str call_id, tool;
    struct str args; /* a JSON object */
    /* As the model wrote them, if that is no object: call_args.h; or empty. */
    struct str unread_args;
    enum turn_call_state state;
    bool asks;             /* a human must approve it first */
    bool recorded;         /* its event is in the journal */
    bool harmless;         /* recorded as one that may be repeated; it is made only as such */
    uint64_t seq;          /* of that event */
    bool too_many;         /* over the turn's limit: it is answered with an error, not made */
    struct tool_call *out; /* while TURN_CALL_OUT */
    struct timer late;     /* ends the call at its time limit */
    uint64_t began_ms;     /* when it was made */
    struct trace_context *trace; /* its span; NULL: there is none */
    uint64_t reported_ms;        /* when it last reported progress; 0: never */
    struct tool *kind;
    struct artifact_ask *keeping; /* its long result is being stored */
    struct buf long_result;
};

struct calls {
    struct turn_call *list; /* of the last reply */
    size_t count, room;
    size_t out;     /* how many are TURN_CALL_OUT */
    uint64_t seq;   /* they may be made once this is durable */
    bool made;      /* making them has begun */
    bool lent;      /* the session is lent meanwhile */
    bool acted;     /* a call that is not idempotent was made, or an agent of another kind may
                         have made some, in this reply or before */
    unsigned total; /* of the turn */
    unsigned transfers; /* of the turn */
};

/* The name given to a call that names no tool. */
#define NAMELESS_TOOL "unnamed"

/* Add one call, pending. */
struct turn_call *calls_add(struct run *run);

/* Whether it hands the turn to another agent. */
bool turn_call_is_transfer(const struct turn_call *call);

/* Drop the calls: another reply begins. */
void calls_clear(struct calls *calls);

/* Keep only the call at `index`. */
void calls_leave_only(struct calls *calls, size_t index);

/* Their events were dropped from the journal. */
void calls_retract(struct calls *calls);

void calls_done(struct calls *calls);

/* The only function that writes call->state. */
void turn_call_move(struct turn_call *call, enum turn_call_state next);

/* The next one that a human must allow, or NULL. */
struct turn_call *calls_undecided(const struct calls *calls);

/* The next transfer that was not made, or NULL. */
struct turn_call *calls_transfer(const struct calls *calls);

/* Whether no call is out and every unanswered one waits for a human, or is a transfer. */
bool calls_settled(const struct calls *calls);

/* The unanswered call with this id, or NULL. */
struct turn_call *calls_open(const struct calls *calls, struct str call_id);

#endif
