/* sweep: delete from the bucket what the store has listed (doomed.h).
 *
 *     resting ─▶ looking ─▶ deleting ─▶ forgetting ─▶ looking ...     nothing due: resting
 *
 * A row is forgotten only after the storage has said that its object is gone. What cannot be
 * deleted now is due again a period later, after all else that is due now. Several processes with
 * one store may sweep at once: deleting twice does no harm.
 *
 * Memory   sweep_stop() ends it; a task of the store that is under way ends by itself.
 * Threads  the loop's.
 */
#ifndef WEIR_STORE_SWEEP_H
#define WEIR_STORE_SWEEP_H

#include "object/bucket.h"
#include "store/store.h"

struct sweep;

/* Begins at once, then every `period_ms`. */
struct sweep *sweep_start(struct store *store, struct bucket *bucket, struct loop *loop,
                          uint64_t period_ms);
void sweep_stop(struct sweep *sweep); /* accepts NULL; before the store is closed */

#endif
