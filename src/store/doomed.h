/* doomed: objects in the bucket that are to be deleted, as rows.
 *
 * An object is listed before its bytes are sent, with the time at which it is given up, and taken
 * off the list in the same transaction that makes it an artifact. So what a crash leaves in the
 * bucket is on the list. An artifact that is erased puts its object on the list. sweep.h deletes
 * what is due.
 *
 * Threads  the store's, inside a task.
 */
#ifndef WEIR_STORE_DOOMED_H
#define WEIR_STORE_DOOMED_H

#include "store/database.h"

#define DOOMED_PARTS 1 /* parts of an unfinished upload may be left, too */
#define DOOMED_TRIED 2 /* a sweep asked for its deletion, and does not know what came of it */

/* List an object; `flags` DOOMED_PARTS or 0. One that is listed keeps its row. */
MUST_CHECK bool doomed_add(struct database *db, struct str key, int64_t due_ms, int64_t flags,
                           struct err *e);

/* Take an object off that is not due and never was: another may be gone already, though no sweep has
 * said so.
 * errors  ERR_ABORTED it is due, or was given up before */
MUST_CHECK bool doomed_take(struct database *db, struct str key, int64_t now_ms, struct err *e);

/* List the object of an artifact that is erased, if it has one, and forget what is known of it. */
MUST_CHECK bool doomed_artifact(struct database *db, int64_t artifact, int64_t now_ms,
                                struct err *e);

#endif
