/* gate: a queue of reply events in front of a listener that may pause.
 *
 * A listener may pause a call from inside its callback and then gets no more events. But the
 * bytes that have already arrived may hold a dozen events. A gate sits between a dialect's
 * reply and the listener: while open, it passes every event on at once; while closed, it keeps
 * the events in order until gate_release().
 *
 *     reply ─▶ gate_take ─▶ open: listener
 *                        └▶ closed, or events are kept: kept ─▶ gate_release ─▶ listener
 *
 * One received piece of a response bounds the queue, because a paused connection is not read.
 *
 * Memory   owns copies of the kept events; gate_done() frees them.
 * Threads  a gate belongs to the loop of its call.
 */
#ifndef WEIR_PROVIDER_GATE_H
#define WEIR_PROVIDER_GATE_H

#include "provider/provider.h"

struct gate {
    reply_event_fn *on_reply; /* the listener's */
    void *ctx;
    bool closed;
    bool shut;        /* for good: later events are dropped */
    bool over;        /* an ending was passed to the listener */
    struct list kept; /* struct reply_copy */
};

void gate_init(struct gate *gate, reply_event_fn *on_reply, void *ctx);
void gate_done(struct gate *gate);

/* Pass `event` on, or keep a copy. A reply_event_fn whose ctx is the gate. */
void gate_take(const struct reply_event *event, void *ctx);

/* Keep a copy even if the gate is open; gate_release() passes it on. */
void gate_keep(struct gate *gate, const struct reply_event *event);

/* Pass on the kept events until none is left or a callback closes or shuts the gate. */
void gate_release(struct gate *gate);

#endif
