/* lent: bytes that a callback may read but not keep.
 *
 * A connection passes received bytes as a view into its receive buffer. After the callback
 * returns, the buffer is reused for the next frame, which may belong to another caller. To keep
 * such a view out of a struct str that lives longer, lent bytes have a type of their own. There
 * are two ways to get at them:
 *
 *     lent_read(lent)               a view, valid until the callback returns
 *     lent_keep(lent, arena, &str)  a copy that lives as long as the arena
 *
 * The lender calls the callback between lent_begin() and lent_end(). Under the address
 * sanitizer the bytes are in a heap block of their own during that time. Any use after the
 * callback is then reported, even if the real buffer was only overwritten and not freed.
 *
 * Memory   none; under the address sanitizer, one block from lent_begin() to lent_end().
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

/* --- for the lender ----------------------------------------------------------------------- */

/* Lend bytes (borrowed until lent_end) to a callback that runs before lent_end(). `block`
 * belongs to the lender; lent_end() frees its contents. */
struct lent lent_begin(struct str bytes, struct text *block);
void lent_end(struct text *block);

/* Lend bytes that their owner frees after the callback has returned. */
static inline struct lent lent_of(struct str bytes) {
    return (struct lent){bytes};
}

#endif
