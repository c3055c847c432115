/* project_usage: how far the table of usage is. It lags behind the others; see project_usage.c.
 * Private to project*.c, but for what project.h says of it.
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

#endif
