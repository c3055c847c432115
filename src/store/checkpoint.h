/* checkpoint: fold the write-ahead log into the database, beside the commits.
 *
 * Folding reads and syncs megabytes, so a thread with a connection of its own does the bulk
 * while commits go on. What they add meanwhile is little: the store's thread folds that
 * itself, and the next commit begins the log anew, in the same bytes of the same file.
 *
 *     resting ──log long──▶ folding ──thread ready──▶ leftovers ──store's thread──▶ resting
 *
 * Memory   the thread and its connection exist once the log was first long.
 * Threads  the store's, except what is inside.
 */
#ifndef WEIR_STORE_CHECKPOINT_H
#define WEIR_STORE_CHECKPOINT_H

#include "store/database.h"

struct checkpoint;

/* For the database that the store's thread has open as `db` (kept). */
struct checkpoint *checkpoint_new(struct database *db);

/* At the start, whose commit left `pages` in the log: one that processes before this left long
 * is folded at once, so that deaths in a row do not let it grow. */
void checkpoint_begin(struct checkpoint *checkpoint, int pages);

/* After a commit that left `pages` in the log. Seldom long: at CHECKPOINT_HARD_PAGES it waits
 * for the thread. */
void checkpoint_look(struct checkpoint *checkpoint, int pages);

/* Fold all and cut the log to nothing, so that no older content of a page is left in it.
 * errors  ERR_UNAVAILABLE the disk is full or broken, or somebody reads: try again later */
MUST_CHECK bool checkpoint_cut(struct checkpoint *checkpoint, struct err *e);

/* The thread could not sync what it had folded, or the log: the store must be opened anew. What
 * the store's own connection meets stands in `db`. */
bool checkpoint_sync_failed(const struct checkpoint *checkpoint);

/* End the thread, fold all, and empty the log; after a sync that failed leave it as it is. */
void checkpoint_free(struct checkpoint *checkpoint);

#endif
