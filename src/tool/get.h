/* get: send one request to another server and keep the first part of the response.
 *
 *     idle ─▶ out ─▶ done        `done` is called once, unless it is cancelled
 *
 * Memory   lives in its owner, which ends it with get_end(). The request is copied.
 * Threads  one loop's.
 */
#ifndef WEIR_TOOL_GET_H
#define WEIR_TOOL_GET_H

#include "base/buf.h"
#include "client/http.h"

struct get;

/* Called after the head. Returns whether the body is wanted. May change keep_bytes. */
typedef bool get_head_fn(struct get *get, void *ctx);

/* failed: as in http_sink's on_end. The owner may end `get` inside. */
typedef void get_done_fn(const struct err *failed, void *ctx);

struct get {
    struct http_call *call; /* NULL: no request is out */
    size_t keep_bytes;      /* of the body; the first byte beyond ends the call */
    unsigned status;        /* 0: no response head */
    struct buf type, url;   /* from the response head */
    struct buf body;
    bool truncated;
    enum http_stage stage; /* how far the request got, once it is done */
    get_head_fn *on_head;  /* NULL: every body is wanted */
    get_done_fn *done;
    void *ctx;
};

/* Keeps at most `keep_bytes` of the body. Neither callback runs before this returns. */
void get_start(struct get *get, struct http_pool *pool, struct loop *loop,
               const struct http_request *request, size_t keep_bytes, get_head_fn *on_head,
               get_done_fn *done, void *ctx);

/* Cancel the request, if any. A zeroed `get` that was never started is accepted. */
void get_end(struct get *get);

/* Append the URL without "user:password@". */
void get_put_address(struct buf *out, struct str url);

/* Whether a URL contains a user or a password. */
bool get_has_user(struct str url);

#endif
