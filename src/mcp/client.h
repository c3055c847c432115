/* client: calls an MCP server on behalf of the user of a turn.
 *
 * A client serves one workspace on one loop. Each user has a session with the server. It is
 * opened for the first call, and opened again if the server has dropped it:
 *
 *     fresh ─▶ greeting ─▶ telling ─▶ listening ─▶ ready
 *       ▲_________│____________│__________│_________│      failed, or lost
 *
 *     greeting   initialize
 *     telling    notifications/initialized
 *     listening  where the options say so: a GET, for what the server sends outside calls
 *
 * Where the options say so, a server is first asked whether it is stateless (mcp/generation.h). Of
 * such a one a session is nothing but a place to wait in:
 *
 *     fresh ─▶ probing ─▶ ready        (server/discover)      afterwards fresh ─▶ ready
 *                 └─────▶ greeting     it is not
 *
 * A call waits until its session is ready, is posted, and answers once. It is repeated once if
 * the session was lost, and once if the connection was lost: only if the message was never sent
 * or repeating it does no harm. Every request is authorized separately, because tokens expire.
 * Where the options say so, a stream of events that ends before it brought the answer is resumed
 * (mcp/stream.h). Over HTTP the client does not delete sessions. A program beside us has one
 * session for all users, which is lost when it ends.
 *
 * Memory   reference-counted on its loop; a call holds its client. Requests are copied.
 * Threads  one loop's.
 * Source   Model Context Protocol 2025-11-25, "Lifecycle", "Transports", "Cancellation"; 2026-07-28,
 *          "Versioning", "Multi Round-Trip Requests"; contracts/crawbl.md 2.9.
 */
#ifndef WEIR_MCP_CLIENT_H
#define WEIR_MCP_CLIENT_H

#include "base/states.h"
#include "client/http.h"
#include "wire/json.h"

struct mcp_client;
struct mcp_call;

/* The state of a user's session. */
enum mcp_session_state {
    MCP_SESSION_FRESH,
    MCP_SESSION_PROBING,   /* `server/discover` was sent: is it stateless? */
    MCP_SESSION_GREETING,  /* `initialize` was sent: negotiating the version */
    MCP_SESSION_TELLING,   /* `notifications/initialized` was sent */
    MCP_SESSION_LISTENING, /* a GET was sent: does it send messages outside calls? */
    MCP_SESSION_READY,
    MCP_SESSION_STATE_COUNT,
};

extern const struct state mcp_session_states[MCP_SESSION_STATE_COUNT];

/* On whose behalf a request is made. */
struct mcp_caller {
    struct str user, workspace;
    struct str conversation; /* of the running turn, or empty */
};

/* Append the value of the authorization header for a request that is about to be sent. */
typedef bool mcp_authorize_fn(const struct mcp_caller *caller, struct buf *out, void *ctx,
                              struct err *e);

/* The server reports a change of its tools, or a program that was running has ended. */
typedef void mcp_changed_fn(void *ctx);

/* What a question to the user gets (mcp/asked.h). */
enum mcp_elicitation { MCP_ELICITATION_CANCEL, MCP_ELICITATION_DEFAULTS };

struct mcp_options {
    struct http_pool *pool;
    struct loop *loop;
    struct str endpoint; /* http: or https: */
    bool probes;         /* ask whether the server is stateless; else it is not */
    bool streams;        /* keep a GET open for what a server sends outside calls, and
                                  * resume the stream of a call that was cut */
    enum mcp_elicitation elicitation;
    mcp_authorize_fn *authorize; /* NULL: no authorization */
    void *ctx;                   /* of the callbacks; must live as long as the client */

    /* The texts below are borrowed and live as long as the client. */
    struct str name;                /* for the log */
    const char *const *program;     /* with its arguments, in place of an endpoint */
    const char *const *environment; /* of the program; ends with NULL */
    const struct http_header *headers;
    size_t header_count;
    /* Carry the caller's ids; empty: not sent. A call of a caller whose id is no header fails. */
    struct str user_header, conversation_header;
    mcp_changed_fn *changed, *down; /* may be NULL */
};

/* The caller has one reference. */
struct mcp_client *mcp_client_new(const struct mcp_options *options);
struct mcp_client *mcp_client_ref(struct mcp_client *client);
void mcp_client_unref(struct mcp_client *client); /* accepts NULL */

bool mcp_client_is_http(const struct mcp_client *client);

/* Whether the server is stateless and reports changes of its tools through
 * `subscriptions/listen`. Known once a call was answered. */
bool mcp_client_may_listen(const struct mcp_client *client);

/* The server reports the progress of a call. `params` is borrowed: progress, total, message. */
typedef void mcp_progress_fn(struct json params, void *ctx);

/* Called once, never before mcp_call_start() has returned. `result` is borrowed; `failed` is
 * NULL on success. */
typedef void mcp_done_fn(struct json result, const struct err *failed, void *ctx);

struct mcp_request {
    struct mcp_caller caller;
    const char *method; /* constant */
    struct str name;    /* of the tool, or empty */
    struct str params;  /* one JSON object, or empty */
    struct str schema;  /* of the arguments in them, if some go as headers (param_headers.h) */
    mcp_progress_fn *progress; /* NULL: not asked for; as `done`, with its ctx */
    uint64_t total_ms;         /* per attempt; 0: no limit */
    bool repeatable;           /* repeating it does no harm */
};

struct mcp_call *mcp_call_start(struct mcp_client *client, const struct mcp_request *request,
                                mcp_done_fn *done, void *ctx);

/* done will not be called. If the request was already sent, the server is notified. */
void mcp_call_cancel(struct mcp_call *call);

#endif
