/* endpoint: an orchestrator's MCP endpoint and its blueprints, as the pods of agents know them.
 *
 *     POST /mcp/v1                                    tools: stateless, JSON answers
 *     GET  /v1/internal/agents?workspace_id=W         the agents of the caller's workspace
 *
 * Callers are pods. Each request has a token of its own that names a user and a workspace, signed
 * with the key that they share. The workspace of the token is the one that is served.
 *
 * The orchestrator fills in what it can do: a function for each tool, the blueprint, and where
 * the audit rows go. The memory tools need only the store. A function answers once, now or later.
 *
 * Memory   what struct orchestrator_endpoint names is borrowed for its life.
 * Threads  an endpoint and its calls belong to one loop.
 * Source   contracts/crawbl.md 2.8, 2.9, 2.10, 3.3.
 */
#ifndef WEIR_ORCHESTRATOR_MCP_ENDPOINT_H
#define WEIR_ORCHESTRATOR_MCP_ENDPOINT_H

#include "orchestrator/mcp/tools.h"
#include "store/store.h"
#include "toolserver/call.h"
#include "wire/token.h"

/* --- calls -------------------------------------------------------------------------------- */

/* One call of a tool, from its arguments to its answer. */
struct orchestrator_call;

struct orchestrator_call_view {
    enum orchestrator_tool tool;
    struct str workspace, user;
    /* The argument, or the conversation of the turn; of search_past_messages the argument alone.
     * Empty: none is known. */
    struct str conversation;
    struct json arguments; /* an object that follows the schema's required members */
};

typedef void orchestrator_tool_fn(struct orchestrator_call *call,
                                  const struct orchestrator_call_view *view, void *ctx);

/* Answer with one JSON object. */
void orchestrator_call_answer(struct orchestrator_call *call, struct str result);
/* Answer with an error, for the model to read. */
void orchestrator_call_fail(struct orchestrator_call *call, struct str text);
/* Say what is going on, if the caller wants to know. */
void orchestrator_call_report(struct orchestrator_call *call, struct str message);
/* Call `left` when no answer is wanted any more: its arguments and its arena are gone after that.
 * A function that does not answer at once must set it. It must answer nevertheless, then or later:
 * no caller hears it, but the audit log says what became of the call. */
void orchestrator_call_watch(struct orchestrator_call *call, void (*left)(void *ctx),
                             void *ctx);

/* --- blueprints --------------------------------------------------------------------------- */

struct orchestrator_blueprint; /* a request for one */

/* Answer with {"workspace_id":...,"agents":[...]}. */
void orchestrator_blueprint_answer(struct orchestrator_blueprint *blueprint, struct str json);
void orchestrator_blueprint_fail(struct orchestrator_blueprint *blueprint, int status,
                                 struct str text);
/* As orchestrator_call_watch(). */
void orchestrator_blueprint_watch(struct orchestrator_blueprint *blueprint,
                                  void (*left)(void *ctx), void *ctx);

/* --- audit -------------------------------------------------------------------------------- */

#define ORCHESTRATOR_AUDIT_PAYLOAD_BYTES 4096

/* One tools/call, answered or not. A payload that is longer than the limit is replaced by
 * {"_truncated":true,"_original_size":n,"_limit":4096}. */
struct orchestrator_audit {
    struct str workspace, user, conversation, tool;
    struct str arguments, result; /* JSON */
    bool error;
    bool refused;    /* the endpoint was not ready: nothing was done */
    bool unheard;    /* its caller had left, or was answered that the server stops */
    int64_t unix_ms; /* when it came */
    uint64_t took_ms;
};

/* Append a payload as an audit row has it. */
void orchestrator_audit_payload(struct str json, struct buf *out);

/* --- the endpoint ------------------------------------------------------------------------- */

struct orchestrator_endpoint {
    const struct token_keys *keys; /* NULL: every request is refused */
    struct store *store;           /* NULL: no memory tools */
    orchestrator_tool_fn
        *tools[ORCHESTRATOR_TOOL_COUNT]; /* NULL: not listed, unless of memory */
    void (*blueprint)(struct orchestrator_blueprint *blueprint, struct str workspace,
                      struct str user, void *ctx);
    void (*audit)(const struct orchestrator_audit *row, void *ctx); /* NULL: none is kept */
    bool (*ready)(void *ctx); /* whether calls can be audited; NULL: always */
    void *ctx;                /* of all four */
    size_t body_max_bytes;
    uint64_t body_stretch_ms; /* as in struct route_table */
    size_t body_stretch_bytes;
    struct toolserver server; /* set by orchestrator_endpoint_init() */
};

/* The other members are set. */
void orchestrator_endpoint_init(struct orchestrator_endpoint *endpoint, struct loop *loop);

/* Fill the table of routes; it borrows `endpoint`. */
void orchestrator_endpoint_table(struct orchestrator_endpoint *endpoint,
                                 struct route_table *ret);

#endif
