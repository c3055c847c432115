/* workspace_agents: the agents and tools of each workspace, as its orchestrator defines them.
 *
 * For each workspace this keeps a blueprint (its agents), the tools of the MCP server and
 * the engine that was made of both. The first turn of a workspace waits until they have been
 * fetched. Later turns get an answer at once:
 *
 *     fresh   60 s              the kept engine
 *     stale   up to a day       the kept engine, while a new one is fetched in the background
 *     none    never came, old   the configured agents; a new fetch every 10 s
 *
 * A failed fetch is not fatal. Without a blueprint the last good one or the configured agents
 * are used; without tools the last good list or the local ones. Each failure is logged once,
 * until the fetch works again.
 *
 * Memory   owns its entries; an engine lives as long as a reference to it is held.
 * Threads  one loop, together with every engine it answers with except the configured one.
 * Source   contracts/crawbl.md 2.8 to 2.10.
 */
#ifndef WEIR_CONTRACT_CRAWBL_WORKSPACE_AGENTS_H
#define WEIR_CONTRACT_CRAWBL_WORKSPACE_AGENTS_H

#include "engine/engine.h"
#include "mcp/client.h"
#include "wire/token.h"

#define WORKSPACE_AGENTS_FRESH_MS (UINT64_C(60) * 1000)
#define WORKSPACE_AGENTS_STALE_MS (UINT64_C(24) * 60 * 60 * 1000)
#define WORKSPACE_AGENTS_RETRY_MS (UINT64_C(10) * 1000)
#define WORKSPACE_AGENTS_PATIENCE_MS (UINT64_C(15) * 1000)
#define WORKSPACE_AGENTS_MAX 1024

struct workspace_agents;

struct workspace_agents_settings {
    struct str endpoint;           /* of the MCP server; empty: nothing is fetched */
    bool blueprint;                /* fetch the agents as well */
    const struct token_keys *keys; /* NULL: nothing is fetched; we could not authenticate */
};

/* `engine` is lent; take a reference to keep it. */
typedef void workspace_agents_fn(struct engine *engine, void *ctx);

/* A caller that waits for an engine. It lives in its owner; all zero means idle. */
struct workspace_agents_ask {
    struct list link;
    bool waits;
    workspace_agents_fn *answer;
    void *ctx;
};

struct workspace_agents *workspace_agents_new(struct loop *loop, struct http_pool *pool);
void workspace_agents_free(
    struct workspace_agents *workspace_agents); /* NULL is fine; no ask may be waiting */

/* Use `base` as the configured engine from now on. A reference to it is taken; settings are
 * borrowed from it. All entries are dropped, and waiting asks are answered with `base`. */
void workspace_agents_use(struct workspace_agents *workspace_agents, struct engine *base,
                          const struct workspace_agents_settings *settings);

/* Return the engine for a turn of this caller, lent until this turn of the loop ends. NULL: the
 * answer comes through `answer` within WORKSPACE_AGENTS_PATIENCE_MS, never before this returns.
 */
struct engine *workspace_agents_find(struct workspace_agents *workspace_agents,
                                     const struct mcp_caller *caller,
                                     struct workspace_agents_ask *ask,
                                     workspace_agents_fn *answer, void *ctx);
void workspace_agents_leave(
    struct workspace_agents_ask *ask); /* stop waiting; harmless when idle */

#endif
