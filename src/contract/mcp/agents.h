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

#include "contract/contract.h"
#include "toolserver/toolserver.h"

struct mcp_settings {
    struct toolserver_settings server;
    struct str workspace; /* of callers without a token */
    struct leaving on_disconnect;
    enum session_policy busy;
    uint64_t stall_ms, heartbeat_ms;
    size_t body_max_bytes;
    uint64_t body_stretch_ms; /* as in struct route_table */
    size_t body_stretch_bytes;
};

struct mcp_instance {
    const struct mcp_settings *settings;
    struct run_host *host;
    struct contract_callers callers;
    struct toolserver server; /* its table_ctx is this instance */
    bool loaded, stopping;
};

extern const struct toolserver_table mcp_agents;

#endif
