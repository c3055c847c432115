/* guard: the strict shape of HTTP/1 framing, checked byte by byte.
 *
 * Two parsers that disagree about where a request ends are a hole through which a second
 * request can be smuggled. So before llhttp sees a byte of framing, it has passed here: lines
 * end in CRLF and nothing else, names are tokens, no line is folded, values hold no control
 * bytes, chunk sizes are plain hexadecimal. The guard also finds the end of a section and
 * keeps the limits, so that an endless header is refused while it comes.
 *
 * Memory   none; it remembers where it is, not what it saw.
 * Threads  none.
 * Source   RFC 9112 2.2, 3, 5, 7.1; RFC 9110 5.5, 5.6.2.
 */
#ifndef WEIR_SERVER_GUARD_H
#define WEIR_SERVER_GUARD_H

#include "base/str.h"

struct server_limits;

enum guard_verdict {
    GUARD_MORE, /* fine so far, all bytes used */
    GUARD_END,  /* the section ends after `used` bytes */
    GUARD_BAD,
    GUARD_TARGET_TOO_LONG,
    GUARD_FIELDS_TOO_LARGE,
};

struct guard {
    const struct server_limits *limits;
    int place;
    size_t line_bytes; /* of this request line, size line or extension */
    size_t fields, fields_bytes;
    uint64_t chunk_left;
};

/* Expect a request's header section, one empty line before it allowed. */
void guard_head(struct guard *guard, const struct server_limits *limits);

/* Expect a chunked body with its trailer section; their fields count with the header's. */
void guard_chunks(struct guard *guard);

/* Whether `text` is what RFC 9110 calls a token: a method, a name. */
bool guard_is_token(struct str text);

/* Whether any byte of the section has been seen. */
bool guard_began(const struct guard *guard);

/* Look at `bytes` up to the end of the section. A verdict but GUARD_MORE is the last one. */
enum guard_verdict guard_scan(struct guard *guard, struct str bytes, size_t *ret_used);

#endif
