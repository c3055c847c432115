/* client: asks an MCP server, for whoever a turn belongs to.
 *
 * A client serves one workspace on one loop. Each user has a session with the server, opened
 * when the first call needs it and opened anew when the server has forgotten it:
 *
 *     fresh ─▶ greeting ─▶ telling ─▶ ready        (initialize; notifications/initialized)
 *       ▲_________│____________│_________│           failed, or lost
 *
 * A call waits until its session is ready, is posted, and answers once. It is sent again once
 * when the session was lost, and once when the connection was: only if the message never left,
 * or if asking twice does no harm. Every request is authorized for itself, because a token
 * carries its time. POST only: there is no standing stream of the server's, and no session is
 * taken down.
 *
 * Memory   reference-counted on its loop; a call holds its client. Requests are copied.
 * Threads  one loop's.
 * Source   Model Context Protocol 2025-11-25, "Lifecycle", "Transports", "Cancellation";
 *          contracts/crawbl.md 2.9.
 */
#ifndef WEIR_MCP_CLIENT_H
#define WEIR_MCP_CLIENT_H

#include "client/http.h"
#include "wire/json.h"

struct mcp_client;
struct mcp_call;

/* How far a user's session is. It is opened for the first call, and again once it was lost. */
enum mcp_session_state {
    MCP_SESSION_FRESH,
    MCP_SESSION_GREETING, /* the versions are being agreed on */
    MCP_SESSION_TELLING,  /* the server is told that they are */
    MCP_SESSION_READY,
    MCP_SESSION_STATE_COUNT,
};

struct str mcp_session_state_name(enum mcp_session_state state);
bool mcp_session_may_become(enum mcp_session_state state, enum mcp_session_state next);

/* For whom is asked. */
struct mcp_caller {
    struct str user, workspace;
    struct str conversation; /* of the turn that runs, or empty */
};

/* Append the value of the authorization header of one request that is sent now. */
typedef bool mcp_authorize_fn(const struct mcp_caller *caller, struct buf *out, void *ctx,
                              struct err *e);

struct mcp_options {
    struct http_pool *pool;
    struct loop *loop;
    struct str endpoint; /* http: or https: */
    mcp_authorize_fn *authorize;
    void *ctx; /* of authorize; must live as long as the client */
};

/* The caller has one reference. */
struct mcp_client *mcp_client_new(const struct mcp_options *options);
struct mcp_client *mcp_client_ref(struct mcp_client *client);
void mcp_client_unref(struct mcp_client *client); /* accepts NULL */

/* Once, never before mcp_call_start() has returned. result is borrowed; failed is NULL on
 * success. */
typedef void mcp_done_fn(struct json result, const struct err *failed, void *ctx);

struct mcp_request {
    struct mcp_caller caller;
    const char *method; /* constant */
    struct str params;  /* one JSON object, or empty */
    uint64_t total_ms;  /* of one attempt; 0: until it is cancelled */
    bool repeatable;    /* asking twice does no harm */
};

struct mcp_call *mcp_call_start(struct mcp_client *client, const struct mcp_request *request,
                                mcp_done_fn *done, void *ctx);

/* done will not be called. A server that was asked already is told. */
void mcp_call_cancel(struct mcp_call *call);

#endif
