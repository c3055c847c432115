/* row: the rows of the log, appended and read back.
 *
 * What is appended in one transaction is packed: up to ROW_PACKED_BYTES of it share one stored
 * row, whose run column is ROW_PACKED (up to version 18 ROW_PACKED_OLD):
 *
 *     stored row = part+        part = run varint · length (4 bytes, lowest first) · bytes
 *
 * A part is what was appended with one call. Anything larger, and what is appended alone, is
 * a stored row by itself, with its own run; earlier versions wrote only such rows. Readers see
 * no difference: each part is passed to them as a row, with the id of the stored one.
 *
 * Each stored row carries a checksum of its bytes, so a page that the disk has corrupted
 * unnoticed is an error when it is read, never a wrong answer. ROW_PACKED has crc64_of(), the
 * others sum_of().
 *
 * A part that holds its text twice is stored shortened (shorten.h) and read back unchanged.
 *
 * Memory   a row is borrowed for the call that receives it.
 * Threads  the store's. */
#ifndef WEIR_STORE_ROW_H
#define WEIR_STORE_ROW_H

#include "base/buf.h"
#include "store/database.h"

/* In place of a run. No run has these numbers. */
#define ROW_PACKED_OLD UINT64_MAX
#define ROW_PACKED (UINT64_MAX - 1)

static inline bool row_is_packed(uint64_t run) {
    return run >= ROW_PACKED;
}

/* The checksum of a stored row. */
uint64_t row_sum(uint64_t run, struct str bytes);

/* A reader of one run also reads the parts of other runs in the same stored row. */
#define ROW_PACKED_BYTES (32 * KIB)

struct rows {
    struct database *db;
    struct buf scratch; /* a shortened or an expanded row */
    struct buf packed;  /* the parts that are not written yet */
    size_t parts;
    int64_t next; /* the id of the stored row that they will be */
    struct prepared *append, *read, *range, *from;
    int64_t newest; /* id of the newest committed row, or 0 */
};

struct row {
    int64_t id;
    uint64_t run; /* 0: shared */
    struct str bytes;
    int64_t order; /* later parts have a higher one, also within a stored row */
    bool last;     /* of its stored row */
};

MUST_CHECK bool row_open(struct rows *rows, struct database *db, struct err *e);
void row_close(struct rows *rows);

/* Within the caller's transaction: row_start(), then for each row row_place(), which says in which
 * stored row it will be, and row_put(), which appends it; row_finish() writes what is still packed.
 * Rows that were not finished are forgotten by the next row_start(). `end`: as shorten_find(). */
void row_start(struct rows *rows);
struct shorten_end;
MUST_CHECK bool row_place(struct rows *rows, size_t len, int64_t *ret_id, struct err *e);
MUST_CHECK bool row_put(struct rows *rows, uint64_t run, struct str bytes,
                        const struct shorten_end *end, struct err *e);

MUST_CHECK bool row_finish(struct rows *rows, int64_t *ret_newest, struct err *e);

/* Called for each row until it returns false; `row` is borrowed for the call. */
typedef bool row_fn(const struct row *row, void *ctx, struct err *e);

/* What is shared or belongs to `run` in the stored row `id`.
 * errors  ERR_DATA_LOSS the row is gone or is not what was written */
MUST_CHECK bool row_each_in(struct rows *rows, int64_t id, uint64_t run, row_fn *each,
                            void *ctx, struct err *e);

/* Every row after `after`, oldest first, of at most `count` stored ones. */
MUST_CHECK bool row_each(struct rows *rows, int64_t after, size_t count, row_fn *each,
                         void *ctx, struct err *e);

/* The rows after `after` up to `last` that are shared or belong to `run`. */
MUST_CHECK bool row_each_of(struct rows *rows, uint64_t run, int64_t after, int64_t last,
                            row_fn *each, void *ctx, struct err *e);

/* Every part of the stored rows that a statement finds: their id, run, sum and bytes. It is reset. */
MUST_CHECK bool row_each_found(struct rows *rows, struct prepared *statement, row_fn *each,
                               void *ctx, struct err *e);

/* Append to `kept` the stored row `id` as it would be without the sections of `run`.
 * *ret_owner: its run column. *ret_changed: it had such sections. */
MUST_CHECK bool row_without(struct rows *rows, int64_t id, uint64_t run, struct buf *kept,
                            uint64_t *ret_owner, bool *ret_changed, struct err *e);

#endif
