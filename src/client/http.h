/* http: concurrent HTTP requests to other servers, on the loops of this process.
 *
 * One pool serves all loops. A call belongs to the loop that started it and shares connections
 * with that loop's other calls. http: and https: go over our own connections; proxies and what is
 * rare go through libcurl, which is loaded with the first such call. OpenSSL is loaded on a
 * thread, with the first https: call. Proxies come from the environment (http_proxy, https_proxy,
 * no_proxy), and so do SSL_CERT_FILE and SSL_CERT_DIR, which replace the system's certificate
 * authorities where no setting does.
 *
 *     start ─▶ connecting ─▶ waiting ─▶ reading ─▶ on_end
 *                  (on_head once, at the end of `waiting`; on_body as bytes arrive)
 *
 * Memory   a request is copied except `body`, which the caller keeps alive until the end or the
 *          cancel. Arguments of callbacks are borrowed.
 * Threads  http_pool_need() any, it blocks; http_start() and the call: only the given loop.
 */
#ifndef WEIR_CLIENT_HTTP_H
#define WEIR_CLIENT_HTTP_H

#include "base/err.h"
#include "base/lent.h"
#include "loop/loop.h"

struct http_pool;
struct http_call;

struct http_header {
    struct str name, value; /* without line breaks */
};

/* Which addresses may be asked. Each one is checked after it is resolved, right before it is
 * connected to. A proxy resolves names itself, so only its own address can be checked. */
enum http_reach {
    HTTP_ANYWHERE,
    /* All but link-local addresses, private IPv6 ones, and those where clouds serve the
     * credentials of a machine. */
    HTTP_NOT_LINK_LOCAL,
    /* For untrusted URLs: only public addresses. Uses no proxy and shares no connection with
     * other calls. */
    HTTP_PUBLIC_ONLY,
};

struct http_request {
    struct str method; /* "GET", "POST" */
    struct str url;    /* http: or https: */
    const struct http_header *headers;
    size_t header_count;
    struct str body;        /* empty: none is sent */
    uint64_t connect_ms;    /* 0: 10 s */
    uint64_t first_byte_ms; /* from the start to the head of the response; 0: no limit */
    uint64_t stall_ms;      /* without a byte of the body, pauses not counted; 0: no limit */
    uint64_t total_ms;      /* 0: no limit */
    size_t body_max_bytes;  /* after decompression; more is a failure; 0: no limit */
    /* 0: a redirect is returned as a normal response. More redirects than this are a failure,
     * and so is one from https: to http:. A redirect to another host gets all headers
     * except authorization and cookie. */
    unsigned redirects_max;
    enum http_reach reach;
    /* The request must not arrive twice. A request is repeated if a reused connection breaks
     * before the first byte of the response, so this one gets its own connection. */
    bool once;
    /* The request may share an HTTP/2 connection with others, if the server has HTTP/2: over
     * https: it chooses, over http: it is tried (prior knowledge). For answers that come in small
     * pieces: until its reader takes them, a server may send 64 KiB. Ignored with `once` and
     * HTTP_PUBLIC_ONLY. */
    bool shared;
};

/* The head of a response, borrowed during on_head. */
struct http_head {
    unsigned status; /* 200 */
    struct str content_type;
    int64_t retry_after_ms; /* -1: absent */
    struct str url;         /* the final URL, after redirects */
    struct str session;     /* Mcp-Session-Id, or empty */
    struct str version;     /* X-Runtime-Contract-Version, or empty */
    struct str etag;        /* or empty; quoted as sent */
    struct str range;       /* Content-Range, or empty */
    struct str region;      /* x-amz-bucket-region, or empty */
    int64_t date_ms;        /* Date, as Unix time; 0: absent */
    struct str run;         /* X-Weir-Run-Id, or empty */
};

enum http_stage { HTTP_CONNECTING, HTTP_WAITING, HTTP_READING, HTTP_COMPLETE };

/* Callbacks run on the call's loop, never before http_start() has returned, and not after
 * on_end or http_cancel(). A callback may pause or cancel its call. */
struct http_sink {
    void (*on_head)(const struct http_head *head, void *ctx);
    void (*on_body)(struct lent bytes, void *ctx); /* never empty */
    /* Called once. failed is NULL if the whole response arrived, whatever its status. `stage`
     * is how far the call got. The body was reported up to body_max_bytes. A paused call may
     * fail, but does not succeed until it is resumed.
     * errors  ERR_UNAVAILABLE no response (refused, DNS, TLS, reset); ERR_DEADLINE_EXCEEDED;
     *         ERR_TOO_LARGE; ERR_PERMISSION_DENIED out of reach;
     *         ERR_FAILED_PRECONDITION too many redirects; ERR_INVALID_ARGUMENT an invalid
     *         request */
    void (*on_end)(const struct err *failed, enum http_stage stage, void *ctx);
};

/* One pool per process. Loops are added before they run. */
struct http_pool *http_pool_new(void);
/* Before the loops run. https: servers are checked with the certificate authorities of `path`, a
 * file or a folder of files in PEM form, instead of the environment's or the system's. Empty:
 * as without. */
void http_pool_trust(struct http_pool *pool, struct str path);
/* Before loops are added. Each call goes to the server at this Unix socket, whatever host its URL
 * names, and through no proxy. path: borrowed until http_pool_free(). */
void http_pool_connect_to(struct http_pool *pool, struct str path);
void http_pool_add(struct http_pool *pool, struct loop *loop);

/* Prepare for calls. Without it http_start() ends each call with ERR_UNAVAILABLE. Where a proxy is
 * configured this loads libcurl.
 * errors  ERR_UNAVAILABLE libcurl is not installed, or too old */
MUST_CHECK bool http_pool_need(struct http_pool *pool, struct err *e);

/* On `loop`, before it stops: closes its idle connections. No call may be left on it. */
void http_pool_leave(struct http_pool *pool, struct loop *loop);
void http_pool_free(struct http_pool *pool); /* accepts NULL */

/* Never NULL: on_end reports errors in the request. */
struct http_call *http_start(struct http_pool *pool, struct loop *loop,
                             const struct http_request *request, const struct http_sink *sink,
                             void *ctx);

/* While paused, the peer is not read, so its flow-control window fills, and stall_ms does not
 * run. Pausing a paused call or resuming a running one does nothing. */
void http_pause(struct http_call *call);
void http_resume(struct http_call *call);

/* The connection closes (HTTP/1.1) or the stream is reset (HTTP/2), within this turn. */
void http_cancel(struct http_call *call);

/* Whether an address (4 or 16 bytes, network order) is public: not loopback, private,
 * link-local, multicast or reserved, and not an IPv6 form of such an IPv4 address (mapped,
 * NAT64, 6to4). */
bool http_address_is_public(const unsigned char *bytes, size_t len);

/* Whether an address is one that HTTP_NOT_LINK_LOCAL refuses, or an IPv6 form of such an IPv4
 * address. */
bool http_address_is_link_local(const unsigned char *bytes, size_t len);

/* What the text of a URL says by itself: false where every request to it would be refused. The
 * addresses that a name resolves to are checked when it is asked. */
bool http_url_is_in_reach(enum http_reach reach, struct str url);

/* Both by the rule of a request. */
bool http_address_is_in_reach(enum http_reach reach, const unsigned char *bytes, size_t len);

#endif
