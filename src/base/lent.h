/* lent: bytes that a callback may look at and may not keep.
 *
 * A connection hands over what came as a view into its receive buffer. When the callback
 * returns, the buffer takes the next frame, which may be another caller's. So that no such view
 * gets into a struct str that lives longer, lent bytes have a type of their own, with two ways
 * out of it:
 *
 *     lent_read(lent)               look at them, before the callback returns
 *     lent_keep(lent, arena, &str)  a copy that lives as long as the arena
 *
 * Whoever lends puts the callback between lent_begin() and lent_end(). With the address
 * sanitizer the bytes lie in a heap block of their own in between, so that each use after the
 * callback is reported, also where the buffer behind them is only written over.
 *
 * Memory   none; with the address sanitizer a block from lent_begin() to lent_end().
 * Threads  any; values only.
 */
#ifndef WEIR_BASE_LENT_H
#define WEIR_BASE_LENT_H

#include "base/arena.h"
#include "base/text.h"

struct lent {
    struct str inside; /* for the functions below */
};

/* A view that is valid until the callback returns. */
static inline struct str lent_read(struct lent lent) {
    return lent.inside;
}

/* A copy that also ends in NUL (not counted). ret is untouched at the arena's limit. */
MUST_CHECK bool lent_keep(struct lent lent, struct arena *arena, struct str *ret);

/* --- for those who lend ------------------------------------------------------------------- */

/* Lend bytes (borrowed until lent_end) to a callback that runs before lent_end(). `block` is
 * the lender's: what it is filled with, lent_end() frees. */
struct lent lent_begin(struct str bytes, struct text *block);
void lent_end(struct text *block);

/* Lend bytes whose owner frees them himself when the callback has returned. */
static inline struct lent lent_of(struct str bytes) {
    return (struct lent){bytes};
}

#endif
