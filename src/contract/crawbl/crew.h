/* crew: the agents and tools of one workspace, as an engine of its own.
 *
 * It is derived from the engine of the configuration: that one's limits, sessions and local
 * tools, with the agents of a blueprint in place of its own, and the tools of an MCP server
 * beside its own. Where two tools have one name, the local one stays. What becomes of a call of
 * a tool, local or not, is what the configuration says of its name. Agents of a blueprint
 * answer with the model of the first configured agent, unless they name another.
 *
 * Memory   reference-counted as every engine is; holds the engine it came from.
 * Threads  the loop of the MCP client: the last reference is dropped there.
 * Source   contracts/crawbl.md 2.6, 2.8 and 2.10.
 */
#ifndef WEIR_CONTRACT_CRAWBL_CREW_H
#define WEIR_CONTRACT_CRAWBL_CREW_H

#include "mcp/tool.h"
#include "run/engine.h"

struct crew_parts {
    struct engine *base;
    struct str workspace;
    struct str blueprint; /* a text that blueprint_read() takes; empty: the base's agents */
    const struct mcp_listing *tools; /* NULL: none */
    struct mcp_client *client;       /* whose tools they are */
};

/* The caller has one reference. */
struct engine *crew_new(const struct crew_parts *parts);

#endif
