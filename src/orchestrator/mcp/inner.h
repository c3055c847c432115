/* inner: what the files of the endpoint share. Private to this folder.
 */
#ifndef WEIR_ORCHESTRATOR_MCP_INNER_H
#define WEIR_ORCHESTRATOR_MCP_INNER_H

#include "orchestrator/mcp/endpoint.h"

struct store *orchestrator_call_store(const struct orchestrator_call *call);
struct loop *orchestrator_call_loop(const struct orchestrator_call *call);
struct arena *orchestrator_call_arena(const struct orchestrator_call *call);

/* NULL: nothing carries it out, and it is not listed. */
orchestrator_tool_fn *orchestrator_serve_tool(const struct orchestrator_endpoint *endpoint,
                                              enum orchestrator_tool tool);

/* For struct toolserver_table. */
void orchestrator_serve_call(struct toolserver_call *call, const struct toolserver_tool *tool,
                             struct json arguments, void *ctx);

/* The function for a tool of the memory, or NULL. */
orchestrator_tool_fn *orchestrator_palace_tool(enum orchestrator_tool tool);

#endif
