/* house: which agents and tools serve a workspace, as its orchestrator says.
 *
 * For each workspace the house knows a blueprint (its agents) and the tools of the MCP server,
 * and keeps the engine that was made of both. The first turn of a workspace waits until they
 * have come; from then on the answer is there at once:
 *
 *     fresh   60 s              what is kept
 *     stale   up to a day       what is kept, and it is asked for again behind the turn's back
 *     none    never came, old   the configured agents; it is asked for again every 10 s
 *
 * What cannot be had is done without: no blueprint leaves the last good one, or the configured
 * agents; no tools leave the last good list, or the local ones. Each is logged once, until it
 * works again.
 *
 * Memory   owns what it knows; an engine that it answers with lives as long as somebody has it.
 * Threads  one loop's, with every engine that it answers with, but for the configured one.
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
    struct str endpoint;           /* of the MCP server; empty: nobody is asked */
    bool blueprint;                /* also for the agents */
    const struct token_keys *keys; /* NULL: nobody is asked, who we are could not be said */
};

/* `engine` is lent: whoever keeps it takes a reference. */
typedef void house_answer_fn(struct engine *engine, void *ctx);

/* One who waits; lives in its owner. Zeroed is idle. */
struct house_ask {
    struct list link;
    bool waits;
    house_answer_fn *answer;
    void *ctx;
};

struct house *house_new(struct loop *loop, struct http_pool *pool);
void house_free(struct house *house); /* NULL is fine; nobody may wait */

/* From now on `base` is what the configuration says, a reference is taken; settings are
 * borrowed from it. All that was known is forgotten; whoever waits is answered with `base`. */
void house_use(struct house *house, struct engine *base, const struct house_settings *settings);

/* The engine for a turn of this caller, lent until the loop's turn is over; or NULL, and the
 * answer comes within HOUSE_PATIENCE_MS, never before this returns. */
struct engine *house_find(struct house *house, const struct mcp_caller *caller,
                          struct house_ask *ask, house_answer_fn *answer, void *ctx);
void house_leave(struct house_ask *ask); /* harmless when it does not wait */

#endif
