/* calls: what the reply of a model asks for, until each of it is answered.
 *
 *     pending ─▶ out ─▶ answered      a tool is asked
 *        └──────────────────▲         a transfer, an error, a refusal, the end of the turn
 *
 * One that a human must allow stays pending until he has.
 *
 * Memory   inside its run; calls_done() ends it. A call moves when others are added: nobody
 *          holds one before the reply is complete.
 * Threads  the loop of its run.
 * Source   docs/internals/turn.md "One call and its three policies", "Effects".
 */
#ifndef WEIR_RUN_CALLS_H
#define WEIR_RUN_CALLS_H

#include "base/buf.h"
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

struct str turn_call_state_name(enum turn_call_state state);
bool turn_call_may_become(enum turn_call_state state, enum turn_call_state next);

struct turn_call {
    struct run *run;
    struct str call_id, tool, args;
    enum turn_call_state state;
    bool asks;             /* a human must allow it first */
    bool recorded;         /* its event is in the journal */
    bool too_many;         /* the turn may not make so many: it is answered, not made */
    struct tool_call *out; /* while TURN_CALL_OUT */
    struct timer late;     /* cuts it, where its time is limited */
    struct tool *kind;
    struct artifact_ask *keeping; /* its long result is on its way to the store */
    struct buf long_result;
};

struct calls {
    struct turn_call *list; /* of the last reply */
    size_t count, room;
    size_t out;         /* of them */
    uint64_t seq;       /* when this is durable they may be made */
    bool made;          /* they have been let go */
    bool lent;          /* and the session meanwhile */
    bool acted;         /* a call that is not idempotent has left, in this reply or before */
    unsigned total;     /* of the turn */
    unsigned transfers; /* of the turn */
};

/* What a call is named that names no tool. */
#define NAMELESS_TOOL "unnamed"

/* One more, pending. */
struct turn_call *calls_add(struct run *run);

/* Another reply begins. */
void calls_clear(struct calls *calls);

/* The one at `index` stands for the whole reply. */
void calls_leave_only(struct calls *calls, size_t index);

/* Their events were dropped from the journal. */
void calls_retract(struct calls *calls);

void calls_done(struct calls *calls);

/* The only function that writes call->state. */
void turn_call_move(struct turn_call *call, enum turn_call_state next);

/* The next one that a human must allow, or NULL. */
struct turn_call *calls_undecided(const struct calls *calls);

/* None is out, and those that are left wait for a human. */
bool calls_settled(const struct calls *calls);

/* The one of that name that is not answered, or NULL. */
struct turn_call *calls_open(const struct calls *calls, struct str call_id);

#endif
