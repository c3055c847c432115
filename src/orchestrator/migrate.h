/* migrate: bring a database to the orchestrator's tables.
 *
 * Memory   none is kept.
 * Threads  blocks its thread, on which it runs a loop of its own.
 */
#ifndef WEIR_ORCHESTRATOR_MIGRATE_H
#define WEIR_ORCHESTRATOR_MIGRATE_H

#include "orchestrator/options.h"

/* Run the steps that the database lacks. ret_from, ret_to: its number before and now.
 * errors  ERR_FAILED_PRECONDITION it is newer than this program; those of the database */
MUST_CHECK bool migrate(const struct orchestrator_options *options, size_t *ret_from,
                        size_t *ret_to, struct err *e);

#endif
