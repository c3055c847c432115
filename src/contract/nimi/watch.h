/* watch: a call that follows a run of this contract to its end (close mode B).
 *
 * What the calls about jobs and about workflows have in common: how they read, and how they are
 * cut. Private to contract/nimi.
 *
 * Memory   the first member of the call's work, which frees it with watch_done().
 * Threads  the call's loop.
 * Source   contracts/nimi.md 3.1 rule 005, 6.4; checks.md K20.
 */
#ifndef WEIR_CONTRACT_NIMI_WATCH_H
#define WEIR_CONTRACT_NIMI_WATCH_H

#include "contract/nimi/call.h"
#include "stream/follow.h"

struct nimi_watch {
    struct nimi_call *call;
    struct follow *follow; /* NULL: not followed yet */
};

/* Follow the run from its first event to its last. `wire`, `begun` and `missing` get the work,
 * whose first member the watch is. */
void watch_start(struct nimi_watch *watch, uint64_t run, const struct stream_wire *wire,
                 void (*begun)(void *ctx),
                 void (*missing)(const struct err *failed, void *ctx));
void watch_done(struct nimi_watch *watch);

/* End the call for a reason outside the run. */
void watch_cut(struct nimi_call *call, enum err_code status);

/* The call is over, or ends now because its stream was cut. */
bool watch_is_cut(struct nimi_call *call, struct close_ending ending);

/* Parts of a wire. */
size_t watch_queued(void *ctx);
size_t watch_nothing_queued(void *ctx); /* of a call that sends nothing before its end */
void watch_wake_at(size_t low, void *ctx);
uint64_t watch_stalled_ms(void *ctx);

/* Parts of a struct nimi_work. */
void watch_drained(void *ctx);
void watch_stopping(void *ctx);
void watch_cancelled(enum close_cause why, void *ctx);

#endif
