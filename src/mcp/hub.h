/* hub: the MCP servers of the settings, for all loops of this process.
 *
 * The hub has its own thread and loop, with one client per server. A server is started when the
 * settings first name it. Its tools are listed then, and again when it reports a change, after
 * it has ended, and, while it cannot be reached, at growing intervals. A snapshot of the
 * settings holds references to its servers; a server with the same description in the next
 * snapshot is kept.
 *
 *     starting ─▶ listed ⇄ away            settled: all but starting
 *         └────────▶ away
 *
 * Names, descriptions and schemas of tools are kept as hashes in a file (mcp/pins.h): a tool
 * that has changed is marked until someone accepts it.
 *
 * Memory   the owner ends the hub with mcp_hub_free(), after all references to its servers.
 * Threads  any, except where said; a call belongs to the loop that began it. */
#ifndef WEIR_MCP_HUB_H
#define WEIR_MCP_HUB_H

#include "mcp/listing.h"

#include <stdatomic.h>

struct mcp_hub;
struct mcp_server;

struct mcp_hub *mcp_hub_new(struct http_pool *pool, struct str pins_path);

/* Before the loops of the callers end: no call is answered any more. Its own thread ends. */
void mcp_hub_stop(struct mcp_hub *hub); /* NULL is fine; call it once */
void mcp_hub_free(struct mcp_hub *hub); /* NULL is fine; stops it too */

/* Run fn(ctx) on `loop` after the tools of a server have changed, or one has settled. */
void mcp_hub_watch(struct mcp_hub *hub, struct loop *loop, task_fn *fn, void *ctx);

/* Wait until all servers have settled, at most `ms`. For commands without a loop. */
void mcp_hub_wait(struct mcp_hub *hub, uint64_t ms);

struct mcp_server_options {
    struct str name;
    const char *const *program; /* NULL: an endpoint */
    const char *const *environment;
    struct str endpoint, key;
    const struct http_header *headers;
    size_t header_count;
    struct str user_header, conversation_header;
    enum mcp_elicitation elicitation;
};

/* A reference to the server with this description, which is created if there is none. */
struct mcp_server *mcp_server_get(struct mcp_hub *hub,
                                  const struct mcp_server_options *options);
struct mcp_server *mcp_server_ref(struct mcp_server *server);
void mcp_server_unref(struct mcp_server *server); /* NULL is fine */

bool mcp_server_settled(const struct mcp_server *server);

/* The tools that it listed last. */
struct mcp_tools {
    atomic_uint refs;
    struct arena *arena;
    struct mcp_tool_info *tools;
    size_t count;
};

/* A reference; NULL: nothing was listed yet. */
struct mcp_tools *mcp_server_tools(struct mcp_server *server);
void mcp_tools_unref(struct mcp_tools *tools); /* NULL is fine */

/* One call of a tool. As mcp_call_start(), on the given loop. */
struct mcp_remote;
struct mcp_remote *mcp_remote_start(struct mcp_server *server, struct loop *loop,
                                    const struct mcp_request *request, mcp_done_fn *done,
                                    void *ctx);
void mcp_remote_cancel(struct mcp_remote *remote);

#endif
