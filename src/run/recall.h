/* recall: the history of a session, read back from the store's log.
 *
 * Memory   the caller owns the result.
 * Threads  none.
 * Source   design.md "Words", conversation; checks.md K11, K27.
 */
#ifndef WEIR_RUN_RECALL_H
#define WEIR_RUN_RECALL_H

#include "run/history.h"
#include "store/store.h"

/* `sections` as STORE_SESSION answers them: each run's in order. The history is what the
 * process that wrote them had: every run that ended, however it did, in the order in which they
 * did, and behind each those that ran inside it. errors  ERR_DATA_LOSS a section does not
 * decode; ERR_RESOURCE_EXHAUSTED they hold too much */
MUST_CHECK bool recall_history(const struct store_section *sections, size_t count,
                               struct history **ret, struct err *e);

#endif
