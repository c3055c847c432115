/* usage: the table of model calls, summed by workspace, agent, model and day.
 *
 * What a call did not count is not taken for nothing: for each count the calls that left it
 * open are counted beside the sum. Which counts have columns says the list in wire/usage.h.
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
    struct event_usage known, open; /* open: how many calls left each count open */
    int64_t estimated, estimate_tokens, estimate_cost_nano; /* as store_usage has them */
};

/* Add one call; sums that have no room stay at the largest number. */
void usage_sum_add(struct usage_sum *sum, const struct event_usage *call);

struct usage_table {
    struct database *db;
    sqlite3_stmt *add, *of_one, *of_all;
};

MUST_CHECK bool usage_open(struct usage_table *table, struct database *db, struct err *e);
void usage_close(struct usage_table *table);

/* Add to the sum that is there, within the caller's transaction. */
MUST_CHECK bool usage_write(struct usage_table *table, const struct usage_sum *sum,
                            struct err *e);

/* Every sum that `load` asks for, ordered by workspace, agent, model and day; texts are
 * borrowed during the callback. False as soon as it says so. */
typedef bool usage_each_fn(const struct store_usage *usage, void *ctx, struct err *e);
MUST_CHECK bool usage_each(struct usage_table *table, const struct store_load *load,
                           usage_each_fn *each, void *ctx, struct err *e);

#endif
