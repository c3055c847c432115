/* toolserver: tools for clients of the Model Context Protocol, over Streamable HTTP.
 *
 * A contract has a table of tools and a few routes; this is what stands between. It reads the
 * messages of clients, knows their sessions, lists the tools, and starts, reports and cancels
 * calls. It knows no agent and no store: a tool is what its table says it is.
 *
 *     POST    one message, or a batch (2025-03-26): answered as JSON, or as an event stream
 *     GET     with Last-Event-ID: the rest of a call whose stream broke; else 405
 *     DELETE  the end of a session, and of its calls
 *
 * Two generations of the protocol are spoken on one path (wire/mcp_version.h). A request without
 * a session is served as well; its call is cancelled when its connection closes.
 *
 * Memory   settings, table and sessions are borrowed for the life of the server.
 * Threads  a server and its calls belong to one loop; sessions are shared by all loops.
 * Source   Model Context Protocol 2025-11-25 and 2026-07-28, "Streamable HTTP", "Tools".
 */
#ifndef WEIR_TOOLSERVER_TOOLSERVER_H
#define WEIR_TOOLSERVER_TOOLSERVER_H

#include "route/route.h"
#include "toolserver/sessions.h"
#include "wire/json.h"

struct toolserver_call;

/* Whose tools are asked for. The texts are borrowed during each function here. */
struct toolserver_caller {
    struct str workspace, user;
    struct str conversation; /* X-Conversation-Id, or empty */
};

struct toolserver_tool {
    struct str name, title, description; /* title may be empty */
    struct str input_schema;             /* a JSON object */
    struct str output_schema;            /* the same, or empty */
    struct str annotations;              /* the same, or empty */
    bool
        lasts; /* a call may take long: an event stream reports it where the client reads one */
};

struct toolserver_table {
    /* The tool at `index`, from 0, as this caller sees it; its texts live in the arena or as long
     * as the settings. False: there are no more. */
    bool (*at)(size_t index, const struct toolserver_caller *caller, struct arena *arena,
               struct toolserver_tool *ret, void *ctx);
    /* Make the call (call.h): answer it now, or watch it and answer later. `arguments` is an
     * object or JSON_NONE; it and `tool` live as long as the call. */
    void (*call)(struct toolserver_call *call, const struct toolserver_tool *tool,
                 struct json arguments, void *ctx);
    /* Go on with a call whose stream broke: report what came after `after_seq` of this run, and
     * answer. NULL: no call can be resumed. */
    void (*resume)(struct toolserver_call *call, uint64_t run, uint64_t after_seq, void *ctx);
};

struct toolserver_settings {
    struct str name, version; /* of the server, as it introduces itself */
    struct str instructions;  /* for the client's model, or empty */
};

struct toolserver {
    const struct toolserver_settings *settings;
    const struct toolserver_table *table;
    void *table_ctx;
    struct toolserver_sessions *sessions; /* NULL: no client gets a session */
    struct loop *loop;
    struct list exchanges; /* requests that are still open */
};

void toolserver_init(struct toolserver *server, const struct toolserver_settings *settings,
                     const struct toolserver_table *table, void *table_ctx,
                     struct toolserver_sessions *sessions, struct loop *loop);

/* Answer a request of the three methods, from a caller that the guard admitted. */
void toolserver_post(struct toolserver *server, struct route_call *call,
                     const struct toolserver_caller *caller);
void toolserver_get(struct toolserver *server, struct route_call *call,
                    const struct toolserver_caller *caller);
void toolserver_delete(struct toolserver *server, struct route_call *call,
                       const struct toolserver_caller *caller);

/* The deadline of the stop has passed: end every open call, and say so. */
void toolserver_cut(struct toolserver *server);

/* The body of a failure that never became a message: {"jsonrpc","id":null,"error"}. */
void toolserver_failure_body(const struct route_failure *failure, struct buf *out);

#endif
