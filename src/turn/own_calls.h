/* own_calls: tool calls that an agent makes itself, on its own server.
 *
 * An agent reached by a protocol has tools of its own. The calls it reports are recorded
 * like ours, so that every contract shows them and the session remembers them, but we do not
 * make them. A call without a result at the end of the reply gets an empty one. If the turn is
 * cut short, an open call is answered with what is known of its effect, like ours.
 *
 *     own call ─▶ open ─▶ own result, or the end of the reply ─▶ answered
 *
 * The agent chooses the names of its calls; in the journal each has a name that we chose.
 *
 * Memory   a plain value inside its run; own_calls_done() ends it. Names are in the run's arena.
 * Threads  the loop of its run.
 * Source   docs/internals/turn.md. */
#ifndef WEIR_TURN_OWN_CALLS_H
#define WEIR_TURN_OWN_CALLS_H

#include "wire/reply_event.h"

struct run;

struct own_call {
    struct str theirs, ours; /* names */
    bool answered;
};

struct own_calls {
    struct own_call *list; /* of the last reply */
    size_t count, room;
    size_t from; /* index of that reply in the conversation */
};

/* Drop the calls: another reply begins. */
void own_calls_clear(struct own_calls *calls);
void own_calls_done(struct own_calls *calls);

/* Handlers of a reply's events; ctx: the run. */
void run_take_own_call(const struct reply_event *event, void *ctx);
void run_take_own_result(const struct reply_event *event, void *ctx);

/* The reply is over, and did not fail. */
void run_close_own_calls(struct run *run);

/* The turn ends in the middle of the reply. */
void run_stop_own_calls(struct run *run);

/* What the agent said before its last call, or empty. It is the answer if the agent says
 * nothing afterwards. */
struct str run_own_said(const struct run *run);

#endif
