/* erase: take a session out of the log and the tables. Private to store/.
 *
 * All pending rows must have been projected. Statements are prepared for each call, because
 * erasing is rare.
 *
 * Memory   erase_runs_done() frees a list of runs.
 * Threads  the store's.
 */
#ifndef WEIR_STORE_ERASE_H
#define WEIR_STORE_ERASE_H

#include "store/database.h"

/* The runs of one session, oldest first. */
struct erase_runs {
    int64_t session;
    uint64_t *ids;
    size_t count, room;
};
void erase_runs_done(struct erase_runs *runs); /* it can then be filled again */

/* errors  ERR_NOT_FOUND no such session; ERR_DATA_LOSS its chain of runs is broken */
MUST_CHECK bool erase_find(struct database *db, struct str workspace, struct str user,
                           struct str session, struct erase_runs *ret, struct err *e);

/* Within the caller's transaction.
 * errors  ERR_FAILED_PRECONDITION one of the runs is not over; ERR_DATA_LOSS a row is damaged
 */
MUST_CHECK bool erase_session(struct database *db, const struct erase_runs *runs,
                              struct err *e);

#endif
