/* utf8_tail: text that arrives in pieces which may cut a character.
 *
 * Feed the pieces in order; valid text comes out. A character that is not complete waits for
 * the next piece; what is not text becomes U+FFFD. All zero is the beginning of a text.
 *
 * Memory   a plain value.
 * Threads  none.
 * Source   utf8.h.
 */
#ifndef WEIR_BASE_UTF8_TAIL_H
#define WEIR_BASE_UTF8_TAIL_H

#include "base/buf.h"

struct utf8_tail {
    char bytes[3]; /* of a character that has begun */
    size_t len;    /* of them */
};

/* The text that `bytes` completes: `bytes` itself where it is valid and nothing waits, else
 * a repaired copy in `room`, which the function begins and the caller ends with buf_done(). */
struct str utf8_tail_take(struct utf8_tail *tail, struct str bytes, struct buf *room);

/* The text is over. What still waits will never be complete: U+FFFD for it, or empty. */
struct str utf8_tail_end(struct utf8_tail *tail);

#endif
