/* answer: what every call of an agent needs to report to its listener.
 *
 * A listener may pause or cancel a call from inside a callback. An answer passes events on
 * through a gate, keeps the call alive while a callback is on the stack, and adds up the tokens
 * that the agent reports. The sums are reported once, before the end, also before a failure.
 *
 * Memory   inside the kind's struct provider_call. `free` frees that call, after its ending was
 *          reported or after answer_drop(), when no callback is on the stack any more.
 * Threads  the loop of its call. */
#ifndef WEIR_AGENT_ANSWER_H
#define WEIR_AGENT_ANSWER_H

#include "provider/gate.h"

struct answer {
    struct gate gate;
    struct event_usage usage;
    struct buf model;
    bool counted;    /* `usage` is set */
    unsigned inside; /* callbacks of the listener on the stack */
    bool dropped;    /* cancelled: the last callback frees the call */
    void (*free)(struct answer *answer);
};

void answer_init(struct answer *answer, reply_event_fn *on_reply, void *ctx,
                 void (*free)(struct answer *answer));
void answer_done(struct answer *answer);

/* Report an event, and before an ending the sums; or report the events that were kept during a
 * pause. False: the listener has cancelled the call, which may have been freed. After an ending
 * the call is freed, or will be. */
bool answer_give(struct answer *answer, const struct reply_event *event);
bool answer_release(struct answer *answer);

/* The call is cancelled and reports nothing more. It is freed now, or by the last callback on
 * the stack. */
void answer_drop(struct answer *answer);

/* Add the counts of a model call that the agent has made. */
void answer_count(struct answer *answer, const struct event_usage *usage, struct str model);

static inline bool answer_paused(const struct answer *answer) {
    return answer->gate.closed;
}

#endif
