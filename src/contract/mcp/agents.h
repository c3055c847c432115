/* agents: each agent of the engine as a tool of the tool server.
 *
 *     name           the agent's slug
 *     input          {"message": "...", "session": "...", "approval": "..."}
 *     structured     what the agent's schema says, or {"status","answer","session","approval"}
 *
 * A call is a run. While it goes on, each of its texts and steps is a notification of progress. A
 * run that waits for a person ends the call with the question; a call with the same session and
 * a decision as its message answers it, and brings what the run does then.
 *
 * Memory   the instance is its contract's.
 * Threads  one loop's.
 * Source   checks.md K26, K29; Model Context Protocol 2025-11-25, "Tools".
 */
#ifndef WEIR_CONTRACT_MCP_AGENTS_H
#define WEIR_CONTRACT_MCP_AGENTS_H

#include "contract/guest.h"
#include "toolserver/toolserver.h"

struct mcp_settings {
    struct guest_settings guest; /* first: the guest reads it */
    struct toolserver_settings server;
};

struct mcp_instance {
    struct guest guest;       /* first; its settings are a struct mcp_settings */
    struct toolserver server; /* its table_ctx is this instance */
};

extern const struct toolserver_table mcp_agents;

#endif
