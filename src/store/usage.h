/* usage: the table of model calls, summed by workspace, agent, model and day.
 *
 * A count that a call did not report is not treated as zero: beside each sum stands the number
 * of calls that did not report it. The list in wire/usage.h says which counts have columns.
 *
 * Memory   borrows texts for the call.
 * Threads  the store's.
 */
#ifndef WEIR_STORE_USAGE_H
#define WEIR_STORE_USAGE_H

#include "store/database.h"
#include "store/store.h"

struct usage_sum {
    struct str workspace, agent, model;
    int64_t day, calls;
    struct event_usage known, open; /* open: how many calls did not report each count */
    int64_t estimated, estimate_tokens, estimate_cost_nano; /* as store_usage has them */
};

/* Add one call. Sums saturate at the largest number. */
void usage_sum_add(struct usage_sum *sum, const struct event_usage *call);

/* Add another sum of the same key. */
void usage_sum_join(struct usage_sum *sum, const struct usage_sum *other);

struct usage_table {
    struct database *db;
    struct prepared *add, *of_one, *of_all;
};

MUST_CHECK bool usage_open(struct usage_table *table, struct database *db, struct err *e);
void usage_close(struct usage_table *table);

/* Add to the stored sum, within the caller's transaction. */
MUST_CHECK bool usage_write(struct usage_table *table, const struct usage_sum *sum,
                            struct err *e);

/* Call `each` for every sum that `load` asks for, ordered by workspace, agent, model and day.
 * Texts are borrowed during the callback. Stops when the callback returns false. */
typedef bool usage_each_fn(const struct store_usage *usage, void *ctx, struct err *e);
MUST_CHECK bool usage_each(struct usage_table *table, const struct store_load *load,
                           usage_each_fn *each, void *ctx, struct err *e);

#endif
