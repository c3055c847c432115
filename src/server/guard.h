/* guard: strict checks of HTTP/1 framing, byte by byte.
 *
 * If two parsers disagree about where a request ends, a second request can be smuggled in. So
 * every byte of framing is checked here before llhttp sees it: lines end in CRLF only, names
 * are tokens, lines are not folded, values contain no control bytes, and chunk sizes are plain
 * hexadecimal. The guard also finds the end of a section and enforces the limits, so that an
 * endless header is refused while it arrives.
 *
 * Memory   none; it keeps its position and no input.
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

/* Expect a request's header section; one empty line before it is allowed. */
void guard_head(struct guard *guard, const struct server_limits *limits);

/* Expect a chunked body and its trailer section, whose fields count with the header's. */
void guard_chunks(struct guard *guard);

/* Whether `text` is an RFC 9110 token, such as a method or a field name. */
bool guard_is_token(struct str text);

/* Whether any byte of the section has been seen. */
bool guard_began(const struct guard *guard);

/* Check `bytes` up to the end of the section. Any verdict except GUARD_MORE is final. */
enum guard_verdict guard_scan(struct guard *guard, struct str bytes, size_t *ret_used);

#endif
