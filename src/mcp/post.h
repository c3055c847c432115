/* post: send one JSON-RPC message to an MCP server, and get the response: over Streamable HTTP,
 * or over the pipes of a server that runs beside us.
 *
 *     idle ─▶ out ─▶ over          done is called once, unless post_stop() comes first
 *                      ▲ post_hear(): of a stream that was cut, resumed with a GET
 *
 * The response is one JSON document or a stream of server-sent events. In both, the message
 * with the requested id is the answer; requests that the server sends before it are reported to
 * `asked`. A message without an answer is accepted with any status below 300.
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
#include "mcp/pipe.h"
#include "wire/jsonrpc.h"
#include "wire/sse.h"

#define POST_ANSWER_MAX_BYTES (4 * MIB)
#define POST_SESSION_MAX_BYTES (8 * KIB) /* of the id that a server gives a session */

enum post_outcome {
    POST_ANSWERED, /* post->result */
    POST_ACCEPTED, /* accepted; no answer was expected */
    POST_LOST,     /* the server no longer knows this session */
    POST_FAILED,   /* post->why */
};

struct post;
typedef void post_done_fn(struct post *post, enum post_outcome outcome, void *ctx);
typedef void post_asked_fn(const struct jsonrpc *message, void *ctx);

/* The messages that wait for an answer in a pipe. */
struct pipe_posts {
    struct mcp_pipe *pipe;
    struct list waiting;
};

#define POST_HEADERS_MAX 40

struct post_request {
    struct pipe_posts *pipe_posts; /* its pipe is up; NULL: HTTP */
    struct str url;
    const struct http_header *headers; /* more of them */
    size_t header_count;
    struct str authorization;    /* the header's value */
    struct str session, version; /* sent when not empty */
    struct str method, name;     /* likewise: of the message, and of the tool in it */
    struct str last_id;          /* likewise: Last-Event-ID, of a GET */
    struct str body;
    uint64_t id; /* of the expected answer; 0: no answer */
    uint64_t total_ms;
    bool once; /* the message must not arrive twice */
};

struct post_sink {
    post_done_fn *done;   /* the owner may stop or free the post inside */
    post_asked_fn *asked; /* requests and notifications of the server; may not touch the post */
};

struct post {
    struct pipe_posts *pipe_posts; /* it waits there; NULL: it does not */
    struct list link;              /* in its waiting */
    struct timer late;
    struct task accepted;
    struct http_call *call; /* NULL: no request is out */
    struct sse *sse;        /* NULL: the response is not an event stream */
    const struct post_sink *sink;
    void *ctx;
    struct buf sent, got;
    struct buf mended; /* in place of `got`, if that has halves of surrogate pairs */
    uint64_t id;
    bool had_session;
    unsigned status; /* 0: no response head */
    bool is_json, answered, broken;
    struct json result;       /* once answered */
    struct buf session;       /* from the response head */
    int64_t refusal_code;     /* of an error of JSON-RPC; 0: there was none */
    struct json refusal_data; /* likewise */
    bool unsent;              /* it failed before any byte could arrive */
    bool cut;                 /* it failed because the connection failed */
    bool unsure;              /* it failed, but may have arrived and taken effect */
    struct err why;
};

/* Start an idle post (zeroed, or stopped). `done` is never called before this returns. */
void post_start(struct post *post, struct http_pool *pool, struct loop *loop,
                const struct post_request *request, const struct post_sink *sink, void *ctx);

/* Start this request, which waits in no pipe: without a body it is a GET, and may bring any number of
 * bytes. The body is borrowed until the end. */
struct http_call *post_over_http(struct http_pool *pool, struct loop *loop,
                                 const struct post_request *request,
                                 const struct http_sink *sink, void *ctx);

/* A stream of events ended before the answer (POST_FAILED and `cut`): the id of its last event,
 * which a GET can resume after. Empty: it had none. `ret_retry_ms` is the wait that the server
 * wished; false: it wished none. */
struct str post_last_id(const struct post *post);
bool post_retry_ms(const struct post *post, uint64_t *ret_retry_ms);

/* Then: `data` of an event of the stream that resumes it. With the answer `done` is called once
 * more. */
void post_hear(struct post *post, struct str data);

bool post_is_type(struct str content_type, struct str wanted);

/* The pipe has read this message. If it is an answer, its post is over. False: no post waits
 * for it. */
bool post_take(struct pipe_posts *pipe_posts, struct json value);

/* The pipe has read a line that is no JSON. If it shows that it answers a post, that one is over. */
void post_take_unread(struct pipe_posts *pipe_posts, struct str line);

/* The pipe went down: all posts in it fail. */
void post_pipe_down(struct pipe_posts *pipe_posts);

/* Whether it was sent and waits for its answer. */
static inline bool post_is_out(const struct post *post) {
    return post->call || post->pipe_posts;
}

/* Cancel the request, if any, and free the post's memory. A zeroed post that was never started
 * is accepted. */
void post_stop(struct post *post);

#endif
