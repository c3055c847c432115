/* log_file: the write-ahead log of a store's database, written by the commit and not by the piece.
 *
 * SQLite writes each page of its log with two calls, 24 bytes and then 4 KiB. Through this file
 * system of SQLite's what is written one behind the other goes to the system in one call, 64 KiB at
 * most. Nothing is held back longer than SQLite itself would notice: everything is passed on with
 * the last page of a commit, before SQLite shows the commit to its readers, and before the file is
 * read, cut, measured, synced or closed.
 *
 *     frame │ page │ frame │ page │ frame of a commit │ page ─▶ written
 *
 * The connection that writes must have PRAGMA cache_spill = OFF (core.c sets it, and asserts it).
 * Then nothing but a commit writes pages, all of it in order, and its last frame says that it is the
 * last. With spilling, pages of a transaction that still runs, and may be rolled back, would be
 * written without that frame and stay in the 64 KiB until the next call of the file.
 *
 * The database file is one of page_file.h, other files are the system's own. A write that fails
 * loses what was gathered, as SQLite expects of a commit that fails; the call that passes it on has
 * the error.
 *
 * Memory   64 KiB for each log that is written, until it is closed.
 * Threads  any; a file belongs to the thread of its connection.
 * Source   sqlite.org "WAL-mode File Format", 4.1: the bytes 4 to 7 of a frame are not zero at the
 *          end of a commit.
 */
#ifndef WEIR_STORE_LOG_FILE_H
#define WEIR_STORE_LOG_FILE_H

#include <sqlite3.h>

/* The name under which sqlite3_open_v2() finds it. In front of what is the default file system at
 * the time of the call. */
const char *log_file_system(void);

/* sqlite3_wal_checkpoint_v2() of the connection's database, by large reads and writes
 * (fold_window.h). */
int log_file_fold(sqlite3 *handle, int how);

#endif
