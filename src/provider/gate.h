/* gate: a sink that can be closed.
 *
 * Whoever listens to a provider may pause it from inside a callback, and then hears nothing
 * more; but the bytes that have arrived already may hold a dozen things to say. A gate stands
 * between a dialect's reply and the listener: open, it passes everything on at once; closed,
 * it keeps what is said, in order, until somebody lets it out.
 *
 *     reply ─▶ gate_sink ─▶ open: listener
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
    struct provider_sink sink; /* the listener's */
    void *ctx;
    bool closed;
    bool shut; /* for good: what is said is dropped */
    struct list kept;
};

/* `sink` is copied. */
void gate_init(struct gate *gate, const struct provider_sink *sink, void *ctx);
void gate_done(struct gate *gate);

/* What to hand to those who speak, with the gate as its ctx. It has no endings: on_done and
 * on_failed are NULL, whoever owns the gate says them when gate_is_empty(). */
extern const struct provider_sink gate_sink;

/* Pass on what was kept, until nothing is left or a callback closes or shuts the gate. */
void gate_release(struct gate *gate);

static inline bool gate_is_empty(const struct gate *gate) {
    return list_empty(&gate->kept);
}

#endif
