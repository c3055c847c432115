/* exchange: one HTTP/1.1 request of chosen bytes, and the response as it came.
 *
 * For a conformance checker, which must be able to send a wrong request and has to see every
 * line of the response. For all other requests use http.h. There are no redirects, no proxy, no
 * decompression, no limits and no times here: the caller measures and cancels.
 *
 *     start ─▶ dialling ─▶ busy ─▶ on_end        (on_line, on_body in their order)
 *
 * Memory   an exchange frees itself after on_end, or by exchange_cancel().
 * Lends    lines and bytes to the callbacks.
 * Threads  the loop's.
 */
#ifndef WEIR_CLIENT_EXCHANGE_H
#define WEIR_CLIENT_EXCHANGE_H

#include "base/err.h"
#include "client/http.h"

struct exchange;

struct exchange_request {
    struct str url;  /* the server: http: or https:; the path does not matter */
    struct str head; /* request line, fields and the empty line; copied */
    struct str body; /* what is sent after the head; the caller keeps it until the end */
    bool is_head;    /* the method is HEAD: the response has no body */
    bool reuse;      /* on the connection of an earlier exchange, if one is idle */
};

/* None runs before exchange_start() has returned. The exchange may be cancelled inside each. */
struct exchange_sink {
    void (*on_bytes)(struct str bytes, void *ctx); /* as received, before they are parsed */
    /* "HTTP/1.1 200", "name: value", and an empty line at the end of a head. A response with a
     * status below 200 is followed by another head. */
    void (*on_line)(struct str line, void *ctx);
    void (*on_body)(struct str bytes, void *ctx); /* without the framing of chunks */
    /* why  NULL: the response is complete
     * errors  ERR_UNAVAILABLE no connection, cut short, or not HTTP; ERR_TOO_LARGE its head */
    void (*on_end)(const struct err *why, void *ctx);
};

/* errors  ERR_INVALID_ARGUMENT the URL */
MUST_CHECK bool exchange_start(struct http_pool *pool, struct loop *loop,
                               const struct exchange_request *request,
                               const struct exchange_sink *sink, void *ctx,
                               struct exchange **ret, struct err *e);

/* Whether its connection had carried an earlier exchange, and whether it is connected. */
bool exchange_is_reused(const struct exchange *exchange);
bool exchange_is_connected(const struct exchange *exchange);

/* The connection closes; no more callbacks. */
void exchange_cancel(struct exchange *exchange);

/* Close the idle connections of the loop, so that the next exchange dials. */
void exchange_forget(struct http_pool *pool, struct loop *loop);

/* --- what a URL names ---------------------------------------------------------------------- */

struct exchange_server {
    struct str authority; /* host and port as written */
    struct str host;      /* without the brackets of an IPv6 address */
    uint16_t port;
    bool secure;
    struct str path; /* may be empty */
};

/* errors  ERR_INVALID_ARGUMENT no http: or https: URL, or it names a user */
MUST_CHECK bool exchange_server_of(struct str url, struct exchange_server *ret, struct err *e);

#endif
