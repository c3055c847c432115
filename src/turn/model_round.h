/* model_round: one round of a turn: ask a model, and turn its reply into events.
 *
 *     run_ask() ─▶ reserved (spending.h) ─▶ out ─▶ the reply is over
 *        ▲                                               │
 *        └─ its calls are answered (tool_round.h) ◀──────┼──▶ it asks for nothing: the turn ends
 *                                                        └──▶ it failed: so does the turn
 *
 * If the model finds the conversation too long, the history is condensed (compaction.h) and the
 * model is asked once more. The call that writes the summary is made here too, with a listener
 * of its own.
 *
 * Memory   a plain value inside its run; no call may be out when it is freed.
 * Threads  the loop of its run.
 * Source   docs/internals/turn.md. */
#ifndef WEIR_TURN_MODEL_ROUND_H
#define WEIR_TURN_MODEL_ROUND_H

#include "base/buf.h"
#include "base/utf8_tail.h"
#include "provider/provider.h"
#include "turn/stop_sequences.h"

struct run;

struct model_round {
    struct provider_call *call; /* NULL: no call is out */
    reply_event_fn *on_reply;   /* its listener */
    struct utf8_tail text_tail, thinking_tail;
    struct str stop;      /* the one that the reply ended at, until that is noted; or empty */
    unsigned model_calls; /* of the turn */
    bool repairing;       /* the reply before this one had the wrong shape */
    bool held;            /* the listener lags: the provider is paused */
    struct stop_sequences stops;
    struct provider_request request;     /* of the call, or of the last one */
    struct buf draft;                    /* a reply that needs a shape, until it is checked */
    const struct model_options *options; /* of the agent, or: */
    struct model_options *narrowed;      /* by the caller's; owned, NULL: never */
    struct str model;                    /* the model that answered last */
    size_t aside_bytes;                  /* of thinking and notes in the turn */
};

void model_round_init(struct run *run);
void model_round_done(struct model_round *model_round);

/* Ask the agent's model with the conversation as it is. A history that is too long for it is
 * condensed first. */
void run_ask(struct run *run);

/* Have the agent's provider answer `request` (copied; what it points to must live until the
 * reply is over). `on_reply` gets the reply's events, with the run as its ctx. When it gets the
 * last one, no call is out any more. */
void run_start_call(struct run *run, const struct provider_request *request,
                    reply_event_fn *on_reply);

/* Whether the limits allow another call before the one that is due. */
bool run_has_call_to_spare(const struct run *run);

/* Make the call that run_start_call() was asked for, once its budget allows it. */
void run_make_call(struct run *run);

/* The reply is over and all of its text is in memory: make its tool calls, or end the turn. */
void run_end_reply(struct run *run);

/* Record the text that was held back: something else follows it. */
void run_end_texts(struct run *run);

/* Count a call of the turn. *ret_too_many: it exceeds the agent's limit. False: the turn asked
 * for far too many, and the run has failed. */
MUST_CHECK bool run_count_call(struct run *run, bool *ret_too_many);

/* Make a name for the call counted last, unique in its session. False: the run fails. */
MUST_CHECK bool run_name_call(struct run *run, struct str *ret);

/* Cancel the call that runs or waits for its budget, and settle its cost. Harmless when there
 * is none. */
void run_stop_model_round(struct run *run);

/* A live run's on_pace: pause the provider for the listener, or continue. */
void run_pace(bool hold, void *ctx);

#endif
