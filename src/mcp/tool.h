/* tool: a tool of an MCP server, offered to agents.
 *
 * mcp/tool_result.h says how its result is converted.
 *
 * Memory   holds a reference to its client or its server; texts are copied. Unlike other kinds,
 *          a client's tool and its calls belong to the loop of the client.
 * Threads  one loop's.
 */
#ifndef WEIR_MCP_TOOL_H
#define WEIR_MCP_TOOL_H

#include "mcp/hub.h"
#include "tool/tool.h"

/* Time limit of a call, unless a setting gives one. It is long, because a call may run a whole
 * turn of the orchestrator (an agent that was asked to help). */
#define MCP_TOOL_MS (UINT64_C(6) * 60 * 1000)

/* The caller ends it with tool_free(). A schema that we cannot parse is offered unchanged, and
 * the arguments are then not checked. */
struct tool *mcp_tool_new(struct mcp_client *client, const struct mcp_tool_info *info);

/* The same for a server of the hub, on any loop. Holds a reference to the server. Agents see it
 * as `name`. */
struct tool *mcp_server_tool_new(struct mcp_server *server, const struct mcp_tool_info *info,
                                 struct str name, uint64_t timeout_ms);

#endif
