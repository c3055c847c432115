/* fold_window: a stretch of the write-ahead log that is read at once while it is folded.
 *
 * SQLite folds its log page by page: it reads a page from the log and writes it to the database, in
 * the order of the pages. What was appended lies in that order in the log too:
 *
 *     log       │ 1 │ 7 │ 20 │ 21 │ 22 │ 23 │ 1 │ 7 │ 23 │ 24 │ 25 │     a window of frames, read at once
 *     database  ... 20 21 22 23 24 25 ...                               a run of pages, written at once
 *
 * So the first page of a run brings the ones after it, as the newest frame of the window has each, and
 * when SQLite comes to one of them from the same frame, there is nothing left to write. A page that
 * SQLite takes from another frame is written again. It is always the newest: a run must not put an
 * older page over one that an earlier run wrote.
 *
 * A window has only frames that the present fold takes: those are committed and synced, and until the
 * fold is over every reader finds such a page in the log and not in the database. So a page may be
 * written earlier than SQLite would, and, where its newest frame lies beyond what this fold takes,
 * from an earlier frame.
 *
 * Memory   260 KB, while a fold lasts.
 * Threads  that of the connection that folds.
 * Source   sqlite.org "WAL-mode File Format", 1: the log; 2.2: the header of the wal-index.
 */
#ifndef WEIR_STORE_FOLD_WINDOW_H
#define WEIR_STORE_FOLD_WINDOW_H

#include "base/attr.h"

#include <sqlite3.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FOLD_PAGE_BYTES 4096
#define FOLD_WINDOW_FRAMES                                                                     \
    31 /* less than 128 KiB: as much as SQLite's own file system takes at once */

struct fold_window;

struct fold_window *fold_window_new(void);
void fold_window_free(struct fold_window *window);

/* A read of the log, by `len` bytes at `at`. False: it is none of a page that lies in a window, read
 * it as usual. True: *ret_result is SQLite's result, and the page is at `to` if that is SQLITE_OK.
 * `upto`: the last frame, counted from 1, that this fold takes. */
MUST_CHECK bool fold_window_read(struct fold_window *window, sqlite3_file *log, uint32_t upto,
                                 void *to, int len, sqlite3_int64 at, int *ret_result);

/* The pages to write at once. */
struct fold_run {
    const char *pages[FOLD_WINDOW_FRAMES];
    size_t count;                             /* 0: the page was written with an earlier run */
    unsigned char frames[FOLD_WINDOW_FRAMES]; /* in the window */
    char *room;                               /* for `count` pages in a row */
};

/* The page that was read last is to be written: from `bytes`, to which it was read, to the place
 * `at` of the database. False: it did not come from the window, write it as usual. */
MUST_CHECK bool fold_window_run(struct fold_window *window, const void *bytes, sqlite3_int64 at,
                                struct fold_run *ret);

/* The run is in the database file. */
void fold_window_written(struct fold_window *window, const struct fold_run *run);

#endif
