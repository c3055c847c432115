/* post: one JSON-RPC message to an MCP server over Streamable HTTP, and what comes back.
 *
 *     idle ─▶ out ─▶ over          done comes once, unless post_stop() was faster
 *
 * An answer arrives as one JSON document or inside a stream of server-sent events; in both the
 * message with the id that was asked counts, and what a server asks on the way is told to
 * `asked`. A message that wants no answer is accepted with any status below 300.
 *
 * Private to mcp/.
 *
 * Memory   lives in its owner, which ends it with post_stop(); the request is copied.
 * Threads  one loop's.
 * Source   Model Context Protocol 2025-11-25, "Transports"; contracts/crawbl.md 2.9.
 */
#ifndef WEIR_MCP_POST_H
#define WEIR_MCP_POST_H

#include "client/http.h"
#include "wire/jsonrpc.h"
#include "wire/sse.h"

#define POST_ANSWER_MAX_BYTES (4 * MIB)

enum post_outcome {
    POST_ANSWERED, /* post->result */
    POST_ACCEPTED, /* nothing was to be answered */
    POST_LOST,     /* the server does not know this session any more */
    POST_FAILED,   /* post->why */
};

struct post;
typedef void post_done_fn(struct post *post, enum post_outcome outcome, void *ctx);
typedef void post_asked_fn(const struct jsonrpc *message, void *ctx);

struct post_request {
    struct str url;
    struct str authorization;                  /* the header's value */
    struct str session, version, conversation; /* sent when not empty */
    struct str body;
    uint64_t id; /* whose answer is wanted; 0: none is */
    uint64_t total_ms;
    bool once; /* it must not arrive twice */
};

struct post_sink {
    post_done_fn *done;   /* the owner may stop or free the post inside */
    post_asked_fn *asked; /* requests of the server; may not touch the post */
};

struct post {
    struct http_call *call; /* NULL: not out */
    struct sse *sse;        /* NULL: no stream of events */
    const struct post_sink *sink;
    void *ctx;
    struct buf sent, got;
    uint64_t id;
    bool had_session;
    unsigned status; /* 0: no head came */
    bool is_json, answered, broken;
    struct json result; /* once answered */
    struct buf session; /* what the head gives */
    bool unsent;        /* it failed before a byte of it could arrive */
    bool cut;           /* it failed because the connection did */
    bool unsure;        /* it failed after it had arrived, perhaps: it may have been done */
    struct err why;
};

/* `done` never comes before this returns. A post that is idle (zero, or stopped) is started. */
void post_start(struct post *post, struct http_pool *pool, struct loop *loop,
                const struct post_request *request, const struct post_sink *sink, void *ctx);

/* Cancels what is out and frees what it holds. One that never started is fine, if it is zero.
 */
void post_stop(struct post *post);

#endif
