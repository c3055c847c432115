/* resync: make sure that what reads as the write-ahead log is on disk.
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
#ifndef WEIR_STORE_RESYNC_H
#define WEIR_STORE_RESYNC_H

#include "base/err.h"

/* Resync the log of the database `path`. Does nothing if the log is missing or empty.
 * errors  ERR_UNAVAILABLE it cannot be read, written or synced */
MUST_CHECK bool resync_log(const char *path, struct err *e);

#endif
