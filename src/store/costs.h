/* costs: the costs of the newest calls of each agent to each model, for planning.
 *
 * A table beside the log with one entry for each pair, replaced as a whole. The writer defines
 * the meaning of its bytes.
 *
 * Memory   requests are copied; an answer is borrowed during the callback.
 * Threads  start: any loop; answers come on the loop that was given.
 */
#ifndef WEIR_STORE_COSTS_H
#define WEIR_STORE_COSTS_H

#include "store/store.h"

#define COSTS_ENTRIES_MAX 4096 /* read back at most */

struct costs_entry {
    struct str agent, model, bytes;
};

/* Replace the pair's entry. There is no answer: if a write is lost, the next one replaces
 * it. */
void costs_put(struct store *store, struct loop *loop, const struct costs_entry *entry);

struct costs_ask;
typedef void costs_read_fn(const struct costs_entry *entries, size_t count,
                           const struct err *failed, void *ctx);

/* Read all entries. `done` is called once; until then costs_forget() may be called on the same
 * loop. */
struct costs_ask *costs_read_start(struct store *store, struct loop *loop, costs_read_fn *done,
                                   void *ctx);
void costs_forget(struct costs_ask *ask); /* NULL is fine */

#endif
