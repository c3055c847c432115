/* http: requests to other servers, many at once, on the loops of this process.
 *
 * A pool serves all loops; a call belongs to the loop that started it and shares connections
 * with the other calls of that loop (kept alive, HTTP/2 where the peer has it). libcurl does
 * the work and is loaded only when http_pool_need() is asked for it: a daemon that asks nobody
 * never maps it. Proxies are those of the environment (http_proxy, https_proxy, no_proxy), and
 * so is SSL_CERT_FILE, instead of the system's certificate authorities.
 *
 *     start ─▶ connecting ─▶ waiting ─▶ reading ─▶ on_end
 *                  (on_head once, at the end of `waiting`; on_body as bytes come)
 *
 * Memory   a request is copied, except `body`, which stays the caller's until the end or the
 *          cancel. What callbacks lend is borrowed.
 * Threads  http_pool_need() any, it blocks; http_start() and a call: the loop named.
 */
#ifndef WEIR_CLIENT_HTTP_H
#define WEIR_CLIENT_HTTP_H

#include "base/err.h"
#include "base/lent.h"
#include "loop/loop.h"

struct http_pool;
struct http_call;

struct http_header {
    struct str name, value; /* neither holds a line break */
};

struct http_request {
    struct str method; /* "GET", "POST" */
    struct str url;    /* http: or https: */
    const struct http_header *headers;
    size_t header_count;
    struct str body;        /* empty: none is sent */
    uint64_t connect_ms;    /* 0: 10 s */
    uint64_t first_byte_ms; /* from the start to the head of the response; 0: no limit */
    uint64_t stall_ms; /* without one byte while it is read, pauses not counted; 0: no limit */
    uint64_t total_ms; /* 0: no limit */
    size_t body_max_bytes; /* after decompression; more is a failure; 0: no limit */
    /* 0: a redirect is an answer like any other. More than these are a failure. To another host
     * libcurl takes all headers along but authorization and cookie. From https: none leads to
     * http: that is a failure, too. */
    unsigned redirects_max;
    /* For addresses that strangers name: every address is judged after it is resolved and
     * before it is connected to, and those that are not public are never connected to. No
     * proxy, no connection shared with other calls. */
    bool public_only;
    /* What must not arrive twice: on a connection that was idle libcurl sends a request again
     * when that breaks before a byte of the answer came. So it gets one of its own. */
    bool once;
};

/* The head of a response, borrowed during on_head. */
struct http_head {
    unsigned status; /* 200 */
    struct str content_type;
    int64_t retry_after_ms; /* -1: not said */
    struct str url;         /* where it came from in the end */
    struct str session;     /* Mcp-Session-Id, or empty */
};

enum http_stage { HTTP_CONNECTING, HTTP_WAITING, HTTP_READING, HTTP_COMPLETE };

/* Callbacks on the loop of the call, never before http_start() has returned; none after on_end
 * or http_cancel(). A callback may pause or cancel its call. */
struct http_sink {
    void (*on_head)(const struct http_head *head, void *ctx);
    void (*on_body)(struct lent bytes, void *ctx); /* never empty */
    /* Once. failed is NULL when the whole response came (whatever its status). ERR_UNAVAILABLE
     * nobody answers (refused, DNS, TLS, reset), ERR_DEADLINE_EXCEEDED, ERR_TOO_LARGE,
     * ERR_PERMISSION_DENIED no public address, ERR_FAILED_PRECONDITION too many redirects,
     * ERR_INVALID_ARGUMENT nothing that could be asked; `stage` is how far it came. What fits
     * into body_max_bytes was told. A call that is paused can fail, but does not end well. */
    void (*on_end)(const struct err *failed, enum http_stage stage, void *ctx);
};

/* One pool a process. Loops are added before they run. */
struct http_pool *http_pool_new(void);
void http_pool_add(struct http_pool *pool, struct loop *loop);

/* Load the library. Without it http_start() ends each call with ERR_UNAVAILABLE.
 * errors  ERR_UNAVAILABLE it is not installed, or too old */
MUST_CHECK bool http_pool_need(struct http_pool *pool, struct err *e);

/* On `loop`, before it stops: closes what is idle there. No call may be left on it. */
void http_pool_leave(struct http_pool *pool, struct loop *loop);
void http_pool_free(struct http_pool *pool); /* accepts NULL */

/* Never NULL: what is wrong with a request is told by on_end. */
struct http_call *http_start(struct http_pool *pool, struct loop *loop,
                             const struct http_request *request, const struct http_sink *sink,
                             void *ctx);

/* The peer is not read while paused: its own window fills. Stalls are not counted. A call that
 * is paused, or is not, stays so. */
void http_pause(struct http_call *call);
void http_resume(struct http_call *call);

/* The connection closes (HTTP/1.1) or the stream is reset (HTTP/2), within this turn. */
void http_cancel(struct http_call *call);

/* Whether an address of 4 or 16 bytes, network order, is one that the whole internet may mean:
 * not loopback, private, link-local, multicast, reserved, nor an IPv6 form that stands for such
 * an IPv4 address (mapped, NAT64, 6to4). */
bool http_address_is_public(const unsigned char *bytes, size_t len);

#endif
