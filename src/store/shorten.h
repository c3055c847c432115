/* shorten: store a row that holds its text twice with the text in it once.
 *
 * The row that ends a short run holds the text as it streamed, event by event, and again as
 * the whole replies in its EVENT_DONE. On disk it then is
 *
 *     0 · length of the whole row · length of the tail · step* · tail
 *     step = literal length · literal · (copied length << 1 | skips) · [skipped length]
 *
 * in which every number is a varint. The tail is the row's end, from the last event on. A step
 * adds its literal and then copies bytes of the tail, which is read from front to back; it
 * first skips `skipped length` bytes of the tail. A literal of length 0 repeats the previous
 * literal.
 *
 * No other row begins with a 0: a section begins with its run. Expanding gives back the same
 * bytes, whatever the row holds.
 *
 * Memory   results are appended to the caller's buffer.
 * Threads  any.
 */
#ifndef WEIR_STORE_SHORTEN_H
#define WEIR_STORE_SHORTEN_H

#include "base/buf.h"
#include "base/err.h"

/* Where a row's last event, an EVENT_DONE, begins, and the replies that it lists. */
struct shorten_end {
    struct str turns; /* empty: the row does not end so, and cannot be shortened */
    size_t tail;
};
#define SHORTEN_NOT ((struct shorten_end){STR_EMPTY, 0})

/* Find it by reading the row. */
struct shorten_end shorten_find(struct str row);

/* False, with nothing useful in `out`, when the row is not of that kind or would not shrink. */
MUST_CHECK bool shorten_row(struct str row, const struct shorten_end *end, struct buf *out);

/* Whether these are the bytes of a shortened row. */
static inline bool shorten_did(struct str row) {
    return row.len && row.at[0] == '\0';
}

/* errors  ERR_DATA_LOSS this is no shortened row, or it is larger than the buffer may hold */
MUST_CHECK bool shorten_undo(struct str shortened, struct buf *out, struct err *e);

#endif
