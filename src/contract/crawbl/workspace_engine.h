/* workspace_engine: the agents and tools of one workspace, as an engine of its own.
 *
 * It is derived from the configured engine. It keeps that engine's limits, sessions and local
 * tools, replaces its agents with those of a blueprint, and adds the tools of an MCP server. If
 * two tools have the same name, the local one wins. The configured policy for a tool's name
 * applies to both kinds. Agents of a blueprint use the model of the first configured agent,
 * unless they name another.
 *
 * Memory   reference-counted like every engine; holds a reference to the base engine.
 * Threads  the loop of the MCP client; the last reference is dropped there.
 * Source   contracts/crawbl.md 2.6, 2.8 and 2.10.
 */
#ifndef WEIR_CONTRACT_CRAWBL_WORKSPACE_ENGINE_H
#define WEIR_CONTRACT_CRAWBL_WORKSPACE_ENGINE_H

#include "engine/engine.h"
#include "mcp/tool.h"

struct workspace_engine_parts {
    struct engine *base;
    struct str workspace;
    struct str blueprint; /* text for blueprint_read(); empty: the base engine's agents */
    const struct mcp_listing *tools; /* NULL: none */
    struct mcp_client *client;       /* the client that calls those tools */
};

/* The caller owns one reference to the result. */
struct engine *workspace_engine_new(const struct workspace_engine_parts *parts);

#endif
