/* lines: cut a byte stream into lines.
 *
 * Feed it bytes as they arrive, in pieces of any size, and take the lines out when they are
 * wanted. A line ends with LF; a CR before it is part of the end.
 *
 * Memory   owns what was fed and not yet taken. A line is valid until the next feed.
 * Threads  none.
 */
#ifndef WEIR_WIRE_LINES_H
#define WEIR_WIRE_LINES_H

#include "base/buf.h"

struct lines {
    struct buf bytes;
    size_t taken;   /* of them, by lines_next() */
    size_t scanned; /* no line ends before this */
    size_t line_max_bytes;
};

void lines_init(struct lines *lines, size_t line_max_bytes);
void lines_done(struct lines *lines);

/* False: there is no room for more. The lines that were fed before stay. */
MUST_CHECK bool lines_feed(struct lines *lines, struct str bytes);

enum lines_found {
    LINES_NONE, /* no whole line is there */
    LINES_ONE,
    LINES_TOO_LONG, /* a line is longer than line_max_bytes; it can never be taken */
};

/* Take the next line, without its end. */
enum lines_found lines_next(struct lines *lines, struct str *ret);

/* Bytes that were fed and not taken. */
static inline size_t lines_waiting(const struct lines *lines) {
    return lines->bytes.len - lines->taken;
}

#endif
