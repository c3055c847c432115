/* store_folder: the folder of a store in a file: made, had by one process, its log made sure of.
 *
 * folder/weir.lock is locked while the store is open. It holds the owner's process id, for the
 * error message of a process that is refused. The kernel releases the lock when the process
 * dies, however it dies. The file stays, because removing it would let two processes each lock
 * their own.
 *
 * After a failed sync the system may hold pages that it believes written: they read well, a
 * later sync succeeds without them, and a power cut loses them. Only pages that are written and
 * synced again are safe. So before a process trusts a store's log, whether it saw the sync fail
 * or is the next one, it overwrites the log with its own bytes and syncs it. No byte changes,
 * so an interruption does no harm.
 *
 * Memory   keeps none.
 * Threads  the store's, while nothing in the process has the log open.
 * Source   fsync(2), "Notes"; checks.md K32.
 */
#ifndef WEIR_STORE_STORE_FOLDER_H
#define WEIR_STORE_STORE_FOLDER_H

#include "store/database.h"

/* The folder with those above it, of mode 0700. */
MUST_CHECK bool store_folder_make(const char *folder, struct err *e);

/* A database with empty tables under the name `path`, in `folder`. Its steps are reported as
 * `like` reports them. */
MUST_CHECK bool store_folder_make_file(struct database *like, const char *folder,
                                       const char *path, struct err *e);

#define STORE_FOLDER_UNLOCKED (-1)

/* errors  ERR_FAILED_PRECONDITION another process has it; ERR_UNAVAILABLE cannot be opened */
MUST_CHECK bool store_folder_lock(const char *folder, int *ret_lock, struct err *e);
void store_folder_unlock(int lock);

/* The database and its write-ahead log, to notice that someone deletes them: they can be written
 * and read until they are closed, and are lost then. Files that were moved are as good as before.
 * A file that cannot be watched counts as there. */
struct store_folder_watch {
    int files[2];
};

#define STORE_FOLDER_UNWATCHED ((struct store_folder_watch){{-1, -1}})

void store_folder_watch(struct store_folder_watch *watch, const char *path);
void store_folder_unwatch(struct store_folder_watch *watch);
bool store_folder_deleted(const struct store_folder_watch *watch);

/* Overwrite and sync the log of the database `path`. Does nothing if the log is missing or empty.
 * errors  ERR_UNAVAILABLE it cannot be read, written or synced */
MUST_CHECK bool store_folder_resync_log(const char *path, struct err *e);

#endif
