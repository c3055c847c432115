/* http1_response: one HTTP/1 response, from bytes.
 *
 * llhttp parses in its strict mode. Feed bytes in pieces of any size; each line of the head and
 * each piece of the body comes out as soon as it is complete. No socket and no clock.
 *
 * Private to client/.
 *
 * Memory   owns the line that is being collected, up to HTTP_HEAD_MAX_BYTES.
 * Lends    lines and pieces of the body, which are views into what is fed.
 * Threads  none.
 * Source   RFC 9112 4 to 8.
 */
#ifndef WEIR_CLIENT_HTTP1_RESPONSE_H
#define WEIR_CLIENT_HTTP1_RESPONSE_H

#include "base/buf.h"

#include <llhttp.h>

enum http1_go { HTTP1_GO, HTTP1_PAUSE, HTTP1_STOP };

struct http1_events {
    /* "HTTP/1.1 200", "name: value", and an empty line at the end of a head. A response with a
     * status below 200 is followed by another head. Trailers are lines after the body. */
    enum http1_go (*on_line)(struct str line, void *ctx);
    enum http1_go (*on_body)(struct str bytes, void *ctx);
};

struct http1_response {
    llhttp_t parser;
    const struct http1_events *events;
    void *ctx;
    struct buf line;
    bool no_body; /* the request was HEAD */
    bool too_large, stopped;
    bool began; /* a byte came */
    bool ended;
    bool keeps_alive; /* once ended: the connection may carry another request */
};

enum http1_verdict {
    HTTP1_MORE,    /* fine so far, all bytes used */
    HTTP1_PAUSED,  /* a callback asked for it; feed the bytes after `used` later */
    HTTP1_END,     /* the response ended after `used` bytes */
    HTTP1_STOPPED, /* a callback asked for it, or a coding that is not known */
    HTTP1_TOO_LARGE,
    HTTP1_BAD,
};

void http1_response_init(struct http1_response *response, bool no_body,
                         const struct http1_events *events, void *ctx);
void http1_response_done(struct http1_response *response);

enum http1_verdict http1_response_feed(struct http1_response *response, struct str bytes,
                                       size_t *ret_used);

/* The connection has ended. HTTP1_END: and so has the response. */
enum http1_verdict http1_response_finish(struct http1_response *response);

#endif
