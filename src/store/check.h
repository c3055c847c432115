/* check: verify at start that this is the database we left, before writing to it.
 *
 * SQLite checks the structure of a page when it happens to read it, but not its content, so the
 * store checks for itself at every start. It always checks the header, the file's length
 * against the length it should have, the newest rows of the log byte for byte, and that nothing
 * acknowledged is missing (mark.h). A file of up to CHECK_WHOLE_BYTES is read as a whole.
 *
 * Memory   none.
 * Threads  the store's.
 */
#ifndef WEIR_STORE_CHECK_H
#define WEIR_STORE_CHECK_H

#include "store/mark.h"
#include "store/row.h"

#define CHECK_PAGE_BYTES 4096
#define CHECK_WHOLE_BYTES (2 * MIB)
#define CHECK_TAIL_BYTES (1 * MIB)
#define CHECK_TAIL_ROWS 256 /* at least, and every row not projected yet */

/* Check what is in the folder before SQLite touches it. *ret_new: nothing is there, create a
 * store.
 * errors  ERR_DATA_LOSS damaged or gone; ERR_FAILED_PRECONDITION not weir's database */
MUST_CHECK bool check_file(const char *path, const struct mark *mark, bool *ret_new,
                           struct err *e);

/* Check the open database, whose version we know. `projected`: the rows after it will be
 * read. */
MUST_CHECK bool check_content(struct database *db, struct rows *rows, const struct mark *mark,
                              int64_t epoch, int64_t projected, struct err *e);

#endif
