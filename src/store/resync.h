/* resync: what reads as the write-ahead log is on the disk.
 *
 * After a sync that failed the system may hold pages that it takes for written: they read
 * well, a later sync succeeds without them, and they are gone with the power. Only what is
 * written again, and synced then, is there. So before anything in the log of a store is
 * believed, by the process that saw the sync fail or by the next one, the log is written over
 * with its own bytes and synced. That changes no byte; whatever happens in the middle of it
 * leaves the old or the same.
 *
 * Memory   none is kept.
 * Threads  the store's, while nobody in the process has the log open.
 * Source   fsync(2), "Notes"; checks.md K32.
 */
#ifndef WEIR_STORE_RESYNC_H
#define WEIR_STORE_RESYNC_H

#include "base/err.h"

/* Of the database `path`. Without a log, or with an empty one, there is nothing to do.
 * errors  ERR_UNAVAILABLE it cannot be read, written or synced */
MUST_CHECK bool resync_log(const char *path, struct err *e);

#endif
