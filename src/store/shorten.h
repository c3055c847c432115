/* shorten: a row that says its text twice, with the text in it once.
 *
 * The row that ends a short run holds the text as it streamed, event by event, and again as
 * the whole replies in its EVENT_DONE. On disk it then is
 *
 *     0 · length of the whole row · length of the tail · step* · tail
 *     step = literal length · literal · (copied length << 1 | skips) · [skipped length]
 *
 * in which every number is a varint. The tail is the row's end, from the last event on. A step
 * adds its literal and then bytes of the tail, which are read from front to back: `skipped`
 * bytes of it are passed over first. A literal of length 0 is the one before, again.
 *
 * No other row begins with a 0: a section begins with its run. What is expanded is byte for
 * byte what was shortened, whatever it holds.
 *
 * Memory   results are appended to the caller's buffer.
 * Threads  any.
 */
#ifndef WEIR_STORE_SHORTEN_H
#define WEIR_STORE_SHORTEN_H

#include "base/buf.h"
#include "base/err.h"

/* False, and nothing of use in `out`, when the row is not of that kind or would not shrink. */
MUST_CHECK bool shorten_row(struct str row, struct buf *out);

/* Whether these are the bytes of a shortened row. */
static inline bool shorten_did(struct str row) {
    return row.len && row.at[0] == '\0';
}

/* errors  ERR_DATA_LOSS no row was shortened to this, or to more than the buffer may hold */
MUST_CHECK bool shorten_undo(struct str shortened, struct buf *out, struct err *e);

#endif
