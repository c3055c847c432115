/* recall: the history of a session, read back from the store's log.
 *
 * Memory   the caller owns the result.
 * Threads  none.
 * Source   design.md "The run": in the prompt a child stands after the parent's tool result.
 */
#ifndef WEIR_RUN_RECALL_H
#define WEIR_RUN_RECALL_H

#include "run/history.h"
#include "store/store.h"

/* `sections` as STORE_SESSION answers them: oldest run first, each run's in order. Runs that
 * failed or never ended leave nothing, unless a call of theirs may have had its effect.
 * errors  ERR_DATA_LOSS a section does not decode */
MUST_CHECK bool recall_history(const struct store_section *sections, size_t count,
                               struct history **ret, struct err *e);

#endif
