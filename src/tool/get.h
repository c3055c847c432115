/* get: ask another server for one thing, and keep of it what there is room for.
 *
 *     idle ─▶ out ─▶ done        `done` comes once, unless it is cancelled
 *
 * Memory   lives in its owner, which ends it with get_end(). A request is copied.
 * Threads  one loop's.
 */
#ifndef WEIR_TOOL_GET_H
#define WEIR_TOOL_GET_H

#include "base/buf.h"
#include "client/http.h"

struct get;

/* After the head: whether the body is wanted. May change keep_bytes. */
typedef bool get_head_fn(struct get *get, void *ctx);

/* failed: as http_sink's on_end. The owner may end `get` inside. */
typedef void get_done_fn(const struct err *failed, void *ctx);

struct get {
    struct http_call *call; /* NULL: not out */
    size_t keep_bytes;      /* of the body; what is beyond is dropped and ends the call */
    unsigned status;        /* 0: no head came */
    struct buf type, url;   /* as the head has them */
    struct buf body;
    bool truncated;
    get_head_fn *on_head; /* NULL: every body is wanted */
    get_done_fn *done;
    void *ctx;
};

/* `keep_bytes` of the body at most. Neither function runs before this returns. */
void get_start(struct get *get, struct http_pool *pool, struct loop *loop,
               const struct http_request *request, size_t keep_bytes, get_head_fn *on_head,
               get_done_fn *done, void *ctx);

/* Cancels what is out. One that never started is fine, if it is zero. */
void get_end(struct get *get);

/* The address without "user:password@". */
void get_put_address(struct buf *out, struct str url);

/* Whether an address names a user or a password. */
bool get_has_user(struct str url);

#endif
