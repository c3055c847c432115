/* gate: a queue of what a provider reports, in front of a listener that may pause it.
 *
 * A listener may pause a call from inside its callback, and then hears nothing more; but the
 * bytes that have arrived already may hold a dozen events. A gate stands between a dialect's
 * reply and the listener: open, it passes everything on at once; closed, it keeps the events,
 * in order, until gate_release().
 *
 *     reply ─▶ gate_take ─▶ open: listener
 *                        └▶ closed, or something is kept: kept ─▶ gate_release ─▶ listener
 *
 * How much is kept is bounded by what one piece of an answer can say, because a paused
 * connection is not read on.
 *
 * Memory   owns copies of what it keeps; gate_done() frees them.
 * Threads  a gate belongs to the loop of its call.
 */
#ifndef WEIR_PROVIDER_GATE_H
#define WEIR_PROVIDER_GATE_H

#include "provider/provider.h"

struct gate {
    reply_event_fn *on_reply; /* the listener's */
    void *ctx;
    bool closed;
    bool shut;        /* for good: what comes is dropped */
    bool over;        /* the listener has heard an ending */
    struct list kept; /* struct reply_copy */
};

void gate_init(struct gate *gate, reply_event_fn *on_reply, void *ctx);
void gate_done(struct gate *gate);

/* Pass `event` on, or keep a copy. A reply_event_fn whose ctx is the gate. */
void gate_take(const struct reply_event *event, void *ctx);

/* Keep a copy, also where the gate is open: gate_release() passes it on. */
void gate_keep(struct gate *gate, const struct reply_event *event);

/* Pass on what was kept, until nothing is left or a callback closes or shuts the gate. */
void gate_release(struct gate *gate);

#endif
