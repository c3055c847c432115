/* page_file: the database file of a store, in whose pages nothing is left of what was moved.
 *
 * SQLite overwrites what is deleted (secure_delete), but not the place from which it moved a row or
 * a key to another page: a copy stays in the room that the page has free, and is still there when
 * the row is deleted. So that room is cleared in each page that is written to the file.
 *
 *     header │ places of the cells │ free room, cleared │ cells
 *
 * Nobody reads that room. In the write-ahead log the pages are as SQLite made them; an erasure cuts
 * the log once it is folded in.
 *
 * A page of a tree is known by its first byte. The pages of other kinds begin with the number of
 * another page, which has no such first byte in a file of up to PAGE_FILE_CLEARED_BYTES; but a file
 * that vacuums itself (PRAGMA auto_vacuum), which weir makes none, has pages that begin like trees. Such
 * files and larger ones are written as they are.
 *
 * Memory   its own, until it is closed.
 * Threads  any; a file belongs to the thread of its connection.
 * Source   sqlite.org "Database File Format", 1.3: the header; 1.6: b-tree pages; 1.8: pointer maps.
 */
#ifndef WEIR_STORE_PAGE_FILE_H
#define WEIR_STORE_PAGE_FILE_H

#include "store/fold_window.h"

#include <sqlite3.h>
#include <stddef.h>
#include <stdint.h>

#define PAGE_FILE_PAGE_BYTES 4096
#define PAGE_FILE_CLEARED_BYTES (INT64_C(64) << 30) /* 0x01000000 pages */
#define PAGE_FILE_BYTES 64                          /* room for it that SQLite has to give */

/* xOpen of SQLITE_OPEN_MAIN_DB, over the file system `below`. */
int page_file_open(sqlite3_vfs *below, const char *path, sqlite3_file *file, int flags,
                   int *ret_flags);

/* Whether it is a file that was opened so. */
bool page_file_is(const sqlite3_file *file);

/* While its log is folded: write by the window. NULL: the fold is over. */
void page_file_fold_with(sqlite3_file *file, struct fold_window *window);

/* The last frame, counted from 1, that the present fold takes, as the wal-index has it; 0: not known. */
uint32_t page_file_taken(const sqlite3_file *file);

/* The free room of a page, which begins `at` in the file: none if it is no page of a tree, or if what
 * it says does not fit together. */
struct page_room {
    size_t from, len;
};
struct page_room page_file_room(const unsigned char page[static PAGE_FILE_PAGE_BYTES],
                                sqlite3_int64 at);

#endif
