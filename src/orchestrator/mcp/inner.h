/* inner: what the files of the endpoint share. Private to this folder.
 */
#ifndef WEIR_ORCHESTRATOR_MCP_INNER_H
#define WEIR_ORCHESTRATOR_MCP_INNER_H

#include "orchestrator/mcp/endpoint.h"

struct store *orchestrator_call_store(const struct orchestrator_call *call);
struct loop *orchestrator_call_loop(const struct orchestrator_call *call);
struct arena *orchestrator_call_arena(const struct orchestrator_call *call);

/* The function for a tool of the memory, or NULL. */
orchestrator_tool_fn *orchestrator_palace_tool(enum orchestrator_tool tool);

#endif
