/* history_read: the history of a session, read back from the store's log.
 *
 * Memory   the caller owns the result.
 * Threads  none.
 * Source   design.md "Words", conversation; checks.md K11, K27.
 */
#ifndef WEIR_SESSION_HISTORY_READ_H
#define WEIR_SESSION_HISTORY_READ_H

#include "session/history.h"
#include "store/store.h"

/* `sections` are the answer to STORE_SESSION, each run's together and in order. The result is the
 * history of the process that wrote them: every finished run in the order in which they ended,
 * each followed by the runs that ran inside it.
 * errors  ERR_DATA_LOSS a section does not decode; ERR_RESOURCE_EXHAUSTED they hold too much */
MUST_CHECK bool history_read(const struct store_section *sections, size_t count,
                             struct history **ret, struct err *e);

/* Keep what had been written when `run` ended, in its order: a run that ended later has no end in
 * it, and so no record in its history, whichever of the two began first. Returns how many are
 * kept; 0: none is of `run`. */
size_t history_read_until(struct store_section *sections, size_t count, uint64_t run);

#endif
