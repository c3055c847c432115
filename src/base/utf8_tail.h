/* utf8_tail: text that arrives in pieces which may cut a character.
 *
 * Feed the pieces in order; valid text comes out. An incomplete character waits for the next
 * piece; invalid bytes become U+FFFD. A zeroed struct is the beginning of a text.
 *
 * Memory   a plain value.
 * Threads  none.
 * Source   utf8.h. */
#ifndef WEIR_BASE_UTF8_TAIL_H
#define WEIR_BASE_UTF8_TAIL_H

#include "base/buf.h"
#include "base/utf8.h"

struct utf8_tail {
    char bytes[3]; /* of an incomplete character */
    size_t len;    /* of them */
};

/* The slow path of utf8_tail_take(). */
struct str utf8_tail_repair(struct utf8_tail *tail, struct str bytes, struct buf *room);

/* The text that `bytes` completes: `bytes` itself if it is valid and nothing waits, else a
 * repaired copy in `room`, which the function begins and the caller ends with buf_done(). */
static inline struct str utf8_tail_take(struct utf8_tail *tail, struct str bytes,
                                        struct buf *room) {
    *room = (struct buf){0};
    if (tail->len == 0 && utf8_valid(bytes)) return bytes;
    return utf8_tail_repair(tail, bytes, room);
}

/* The text is over. Returns U+FFFD for an incomplete character, or an empty text. */
struct str utf8_tail_end(struct utf8_tail *tail);

#endif
