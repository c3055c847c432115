/* forward: one HTTP/1.1 request of chosen bytes, and its response as it comes.
 *
 * For a proxy, which passes a request on, and for a conformance checker, which must be able to
 * send a wrong one and sees every line of the response. The head is written by the caller, the
 * body is sent whole or in pieces, and the response comes line by line and piece by piece, without
 * redirects, decompression or retries. A proxy's request never arrives twice: it has a connection
 * of its own, or one that was used before and then only GET and HEAD are sent once more when that
 * one turns out to be closed.
 *
 *     start ─▶ dialling ─▶ sending ─▶ reading ─▶ on_end      (on_line, on_body in their order)
 *
 * Memory   a forward frees itself after on_end, or by forward_cancel().
 * Lends    lines and bytes to the callbacks.
 * Threads  the loop's.
 */
#ifndef WEIR_CLIENT_FORWARD_H
#define WEIR_CLIENT_FORWARD_H

#include "base/err.h"
#include "client/http.h"

struct forward;

/* Whether a server keeps connections open between requests. Some close after an answer without
 * saying so, and a request that meets this is lost. So a connection is used again only if another
 * one was seen to stay open for seconds without a request, and only soon after its last answer; a
 * server that closes one nevertheless gets new connections alone for ten minutes.
 *
 * One for each server, of the caller's, zero at first; it outlives the forwards. */
struct forward_habit {
    bool keeps;
    uint64_t doubted_until_ms;
};

struct forward_request {
    struct str url;              /* the server: http: or https:; its path does not matter */
    struct str head;             /* request line, fields and the empty line; copied */
    struct str body;             /* what follows the head at once; copied */
    bool open;                   /* more of the body follows with forward_write(), then
                             * forward_written_whole() */
    bool is_head;                /* the method is HEAD: the response has no body */
    struct forward_habit *habit; /* of the server; NULL: a connection of its own */
    bool reuse; /* without a habit: on any idle connection; if the server has closed that one,
                 * the request is sent once more */
    uint64_t connect_ms;    /* 0: no limit */
    uint64_t first_byte_ms; /* from the start to the head of the response; 0: no limit */
    uint64_t stall_ms;      /* without a byte of the body, pauses not counted; 0: no limit */
    uint64_t total_ms;      /* 0: no limit */
};

/* None runs before forward_start() has returned. The forward may be paused, written to and
 * cancelled inside each. */
struct forward_sink {
    /* "HTTP/1.1 200", "name: value", and an empty line at the end of a head. A response with a
     * status below 200 is followed by another head. After the body: trailers. */
    void (*on_line)(struct str line, void *ctx);
    void (*on_body)(struct str bytes, void *ctx); /* without the framing of chunks */
    /* All that was written is sent: there is room. NULL where nothing is written. */
    void (*on_sent)(void *ctx);
    /* why    NULL: the response is complete
     * stage  how far it came; before HTTP_WAITING nothing of the request was sent
     * errors  ERR_UNAVAILABLE no connection, cut short, or not HTTP; ERR_DEADLINE_EXCEEDED;
     *         ERR_TOO_LARGE its head */
    void (*on_end)(const struct err *why, enum http_stage stage, void *ctx);
    /* As received, not parsed yet; may be NULL. */
    void (*on_bytes)(struct str bytes, void *ctx);
};

/* errors  ERR_INVALID_ARGUMENT the URL */
MUST_CHECK bool forward_start(struct http_pool *pool, struct loop *loop,
                              const struct forward_request *request,
                              const struct forward_sink *sink, void *ctx, struct forward **ret,
                              struct err *e);

/* Send more of the body. `bytes` wait until there is a connection. */
void forward_write(struct forward *forward, struct str bytes);

/* The body is complete: the connection may be used again. */
void forward_written_whole(struct forward *forward);

/* Bytes that were written and are not sent yet. */
size_t forward_unsent(const struct forward *forward);

/* Stop reading the response, or continue; the latter not inside a callback. */
void forward_pause(struct forward *forward);
void forward_resume(struct forward *forward);

/* Whether its connection had carried an earlier request, and whether it is connected. */
bool forward_is_reused(const struct forward *forward);
bool forward_is_connected(const struct forward *forward);

/* The connection closes at once; no more callbacks. */
void forward_cancel(struct forward *forward);

/* Close the idle connections of the loop, so that the next request dials. */
void forward_close_idle(struct http_pool *pool, struct loop *loop);

/* Check that a URL can be forwarded to, and view its parts.
 * errors  ERR_INVALID_ARGUMENT no http: or https: URL, or it names a user */
struct forward_server {
    struct str authority; /* host and port as written */
    struct str host;      /* without the brackets of an IPv6 address */
    uint16_t port;
    bool secure;
    struct str path;  /* may be empty */
    struct str query; /* with '?', may be empty */
};
MUST_CHECK bool forward_server_of(struct str url, struct forward_server *ret, struct err *e);

#endif
