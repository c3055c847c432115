/* costs: what the newest calls of each agent with each model came to, for those who plan by it.
 *
 * A table beside the log, one entry a pair, replaced as a whole. What its bytes mean is the
 * writer's business.
 *
 * Memory   what is asked is copied; what is told is borrowed for the call.
 * Threads  start: any loop; answers come on the loop that is named.
 */
#ifndef WEIR_STORE_COSTS_H
#define WEIR_STORE_COSTS_H

#include "store/store.h"

#define COSTS_ENTRIES_MAX 4096 /* that are read back */

struct costs_entry {
    struct str agent, model, bytes;
};

/* Put it in the place of the one before it. Nobody is told: one that is lost is followed by the
 * next. */
void costs_put(struct store *store, struct loop *loop, const struct costs_entry *entry);

struct costs_ask;
typedef void costs_read_fn(const struct costs_entry *entries, size_t count,
                           const struct err *failed, void *ctx);

/* All of them, once; until then costs_forget() may be called on the same loop. */
struct costs_ask *costs_read_start(struct store *store, struct loop *loop, costs_read_fn *done,
                                   void *ctx);
void costs_forget(struct costs_ask *ask); /* NULL is fine */

#endif
