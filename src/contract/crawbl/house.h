/* house: the agents and tools of each workspace, as its orchestrator defines them.
 *
 * For each workspace the house keeps a blueprint (its agents), the tools of the MCP server and
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
#ifndef WEIR_CONTRACT_CRAWBL_HOUSE_H
#define WEIR_CONTRACT_CRAWBL_HOUSE_H

#include "contract/crawbl/token.h"
#include "mcp/client.h"
#include "run/engine.h"

#define HOUSE_FRESH_MS (UINT64_C(60) * 1000)
#define HOUSE_STALE_MS (UINT64_C(24) * 60 * 60 * 1000)
#define HOUSE_RETRY_MS (UINT64_C(10) * 1000)
#define HOUSE_PATIENCE_MS (UINT64_C(15) * 1000)
#define HOUSE_WORKSPACES_MAX 1024

struct house;

struct house_settings {
    struct str endpoint;           /* of the MCP server; empty: nothing is fetched */
    bool blueprint;                /* fetch the agents as well */
    const struct token_keys *keys; /* NULL: nothing is fetched; we could not authenticate */
};

/* `engine` is lent; take a reference to keep it. */
typedef void house_answer_fn(struct engine *engine, void *ctx);

/* A caller that waits for an engine. It lives in its owner; all zero means idle. */
struct house_ask {
    struct list link;
    bool waits;
    house_answer_fn *answer;
    void *ctx;
};

struct house *house_new(struct loop *loop, struct http_pool *pool);
void house_free(struct house *house); /* NULL is fine; no ask may be waiting */

/* Use `base` as the configured engine from now on. A reference to it is taken; settings are
 * borrowed from it. All entries are dropped, and waiting asks are answered with `base`. */
void house_use(struct house *house, struct engine *base, const struct house_settings *settings);

/* Return the engine for a turn of this caller, lent until this turn of the loop ends. NULL: the
 * answer comes through `answer` within HOUSE_PATIENCE_MS, never before this returns. */
struct engine *house_find(struct house *house, const struct mcp_caller *caller,
                          struct house_ask *ask, house_answer_fn *answer, void *ctx);
void house_leave(struct house_ask *ask); /* stop waiting; harmless when idle */

#endif
