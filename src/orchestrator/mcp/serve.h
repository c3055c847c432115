/* serve: which function carries out a tool, and the tool server's side of a call. Private to this
 * folder.
 */
#ifndef WEIR_ORCHESTRATOR_MCP_SERVE_H
#define WEIR_ORCHESTRATOR_MCP_SERVE_H

#include "orchestrator/mcp/endpoint.h"

/* NULL: nothing carries it out, and it is not listed. */
orchestrator_tool_fn *orchestrator_serve_tool(const struct orchestrator_endpoint *endpoint,
                                              enum orchestrator_tool tool);

/* For struct toolserver_table. */
void orchestrator_serve_call(struct toolserver_call *call, const struct toolserver_tool *tool,
                             struct json arguments, void *ctx);

#endif
