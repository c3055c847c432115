/* checkpoint: fold the write-ahead log into the database while commits go on.
 *
 * Folding reads and syncs megabytes, so a thread with its own connection does most of it while
 * commits go on. Commits add little meanwhile: the store's thread folds that itself, and the
 * next commit starts the log over, in the same bytes of the same file.
 *
 * Another process that reads at that time keeps the log from starting over, so it grows. From
 * CHECKPOINT_LONG_BYTES on the daemon's log reports it once, and once more when it ends.
 *
 *     resting ──log long──▶ folding ──thread ready──▶ leftovers ──store's thread──▶ resting
 *
 * Memory   the thread and its connection are created when the log first becomes long.
 * Threads  the store's, except what is inside.
 */
#ifndef WEIR_STORE_CHECKPOINT_H
#define WEIR_STORE_CHECKPOINT_H

#include "base/states.h"
#include "store/long_reader.h"

/* A log of this length is one that another process keeps from beginning again. */
#define CHECKPOINT_LONG_BYTES (64 * MIB)

enum checkpoint_state {
    CHECKPOINT_RESTING,
    CHECKPOINT_FOLDING,
    CHECKPOINT_LEFTOVERS,
    CHECKPOINT_STATE_COUNT,
};

extern const struct state checkpoint_states[CHECKPOINT_STATE_COUNT];

/* A store of PostgreSQL has none: NULL, and every function does nothing. */
struct checkpoint;

/* For the database that the store's thread has open as `db` (kept). The reader (kept, may be
 * NULL) is paused while the log is folded to its end: its statements would keep that from being
 * possible. */
struct checkpoint *checkpoint_new(struct database *db, struct long_reader *reader);

/* Call at start, whose commit left `pages` in the log. A long log left by earlier processes is
 * folded at once, so that repeated crashes do not let it grow. */
void checkpoint_begin(struct checkpoint *checkpoint, int pages);

/* Call after a commit that left `pages` in the log. Rarely blocks: at CHECKPOINT_HARD_PAGES it
 * waits for the thread. */
void checkpoint_look(struct checkpoint *checkpoint, int pages);

/* Fold everything and truncate the log, so that no older content of a page is left in it.
 * how     whether to wait for a reader of another process, for two seconds at most
 * errors  ERR_UNAVAILABLE the disk is full or broken, or a reader is active: try again later */
enum checkpoint_cut { CHECKPOINT_WAIT, CHECKPOINT_TRY };
MUST_CHECK bool checkpoint_cut(struct checkpoint *checkpoint, enum checkpoint_cut how,
                               struct err *e);

/* The thread failed to sync the log, or what it had folded: the store must be opened again.
 * Failures of the store's own connection are in `db`. */
bool checkpoint_sync_failed(const struct checkpoint *checkpoint);

/* End the thread, fold everything and empty the log. After a failed sync the log is left as it
 * is. */
void checkpoint_free(struct checkpoint *checkpoint);

#endif
