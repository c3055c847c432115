/* row: the rows of the log, appended and read back.
 *
 * Each row carries a checksum of its bytes, so a page that the disk has corrupted unnoticed is
 * an error when it is read, never a wrong answer.
 *
 * A row that holds its text twice is stored shortened (shorten.h) and read back unchanged.
 *
 * Memory   a row that was read is borrowed until the next read or row_release().
 * Threads  the store's.
 */
#ifndef WEIR_STORE_ROW_H
#define WEIR_STORE_ROW_H

#include "base/buf.h"
#include "store/database.h"

struct rows {
    struct database *db;
    struct buf scratch; /* a shortened or an expanded row */
    sqlite3_stmt *append, *read, *range, *from;
    int64_t newest; /* id of the newest committed row, or 0 */
};

struct row {
    int64_t id;
    uint64_t run; /* 0: shared */
    struct str bytes;
};

MUST_CHECK bool row_open(struct rows *rows, struct database *db, struct err *e);
void row_close(struct rows *rows);

/* Append within the caller's transaction. */
MUST_CHECK bool row_append(struct rows *rows, uint64_t run, struct str bytes, struct err *e);

/* ERR_DATA_LOSS: the row is gone or is not what was written. */
MUST_CHECK bool row_read(struct rows *rows, int64_t id, struct row *ret, struct err *e);

/* Called for each row until it returns false; `row` is borrowed for the call. */
typedef bool row_fn(const struct row *row, void *ctx, struct err *e);

/* Every row after `after`, oldest first, at most `count`. */
MUST_CHECK bool row_each(struct rows *rows, int64_t after, size_t count, row_fn *each,
                         void *ctx, struct err *e);

/* The rows after `after` up to `last` that are shared or belong to `run`. */
MUST_CHECK bool row_each_of(struct rows *rows, uint64_t run, int64_t after, int64_t last,
                            row_fn *each, void *ctx, struct err *e);

/* End the loan of row_read(). */
void row_release(struct rows *rows);

#endif
