/* model_round: one round of a turn: a model is asked, and its reply becomes events.
 *
 *     run_ask() ─▶ reserved (spending.h) ─▶ out ─▶ the reply is over
 *        ▲                                            │
 *        └─ its calls are answered (tool_round.h) ◀──────┼──▶ it asks for nothing: the turn ends
 *                                                     └──▶ it failed: so does the turn
 *
 * Where the model finds the conversation too long, its history is condensed (compaction.h) and
 * the model is asked once more. The call that does that is made here too, with a listener of
 * its own.
 *
 * Memory   a plain value inside its run; no call may be out when it goes.
 * Threads  the loop of its run.
 * Source   docs/internals/turn.md.
 */
#ifndef WEIR_TURN_MODEL_ROUND_H
#define WEIR_TURN_MODEL_ROUND_H

#include "base/buf.h"
#include "base/utf8_tail.h"
#include "provider/provider.h"

struct run;

struct model_round {
    struct provider_call *call;      /* NULL: none is out */
    struct provider_request request; /* of that call, or of the last one */
    reply_event_fn *on_reply;        /* of it */
    struct utf8_tail text_tail, thinking_tail;
    struct buf draft;     /* a reply that must have a shape, until it is known to have it */
    bool repairing;       /* the reply before this one had not the shape it must have */
    bool held;            /* the listener lags: the provider is paused */
    struct str model;     /* who answered last */
    unsigned model_calls; /* of the turn */
};

void model_round_init(struct run *run);
void model_round_done(struct model_round *model_round);

/* Ask the agent's model with the conversation as it is. A history that is too long for it is
 * condensed first. */
void run_ask(struct run *run);

/* Have the agent's provider answer `request` (copied; what it points to must live until the
 * reply is over). `on_reply` hears the reply, with the run as its ctx; when it hears the end no
 * call is out any more. */
void run_start_call(struct run *run, const struct provider_request *request,
                    reply_event_fn *on_reply);

/* The call that run_start_call() was asked for, once its budget lets it begin. */
void run_make_call(struct run *run);

/* The reply is over and all of its text is in memory: make its calls, or end the turn. */
void run_end_reply(struct run *run);

/* Cancel the call that is out or waits for its budget, and settle its cost. Harmless when there
 * is none. */
void run_stop_model_round(struct run *run);

/* A live run's on_pace: the provider waits for the listener, or goes on. */
void run_pace(bool hold, void *ctx);

#endif
