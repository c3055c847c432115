/* project_usage: how far the table of usage is. It is filled later than the others; see
 * project_usage.c. Private to project*.c, but for what project.h says of it.
 *
 * Threads  the store's.
 */
#ifndef WEIR_STORE_PROJECT_USAGE_H
#define WEIR_STORE_PROJECT_USAGE_H

#include "base/map.h"
#include "store/projection.h"

/* Rows up to here are in the table, or their sums wait in memory. */
int64_t project_usage_seen(const struct project *project);

/* After the transaction. project_usage_kept(): whether sums were written in it, also those of the
 * batches that were written in it. */
bool project_usage_kept(struct project *project);
void project_usage_dropped(struct project *project);

/* The marks of a shared store: whether `usage` is where it was left; and go on from it, after
 * others have written sums. What waits is forgotten, because it may be among those. */
bool project_usage_is_at(const struct project *project, int64_t projected, int64_t usage);
void project_usage_move(struct project *project, int64_t projected, int64_t usage);

#endif
