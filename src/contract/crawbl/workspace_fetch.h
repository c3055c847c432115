/* workspace_fetch: fetch the blueprint of a workspace from its orchestrator and the tools from
 * its MCP server, once.
 *
 * Both are asked at the same time. The fetch is back when both have answered, failed or timed
 * out. One can fail without the other.
 *
 * Private to workspace_agents.
 *
 * Memory   owns its results until workspace_fetch_free(); the owner may take `tools` out of it.
 * Threads  one loop's.
 * Source   contracts/crawbl.md 2.10.
 */
#ifndef WEIR_CONTRACT_CRAWBL_WORKSPACE_FETCH_H
#define WEIR_CONTRACT_CRAWBL_WORKSPACE_FETCH_H

#include "base/buf.h"
#include "mcp/listing.h"
#include "wire/token.h"

struct workspace_fetch;

/* Called once, never before workspace_fetch_new() has returned. The owner may free the fetch in
 * it. */
typedef void workspace_fetch_back_fn(struct workspace_fetch *fetch, void *ctx);

struct workspace_fetch_options {
    struct http_pool *pool;
    struct loop *loop;
    struct str endpoint; /* of the MCP server; the same host serves the blueprint */
    const struct token_keys *keys;
    bool blueprint; /* fetch the blueprint too */
    struct mcp_client *client;
    struct mcp_caller caller;
    uint64_t total_ms;
    workspace_fetch_back_fn *back;
    void *ctx;
};

struct workspace_fetch {
    struct buf blueprint;        /* text for blueprint_read() */
    struct err blueprint_failed; /* ERR_NONE: it came, or was not wanted */
    struct mcp_listing *tools;
    struct err tools_failed;

    workspace_fetch_back_fn *back;
    void *ctx;
    char *workspace;
    unsigned status;
    struct http_call *call; /* the blueprint's; NULL: none is open */
    bool wants_agents, wants_tools;
    struct timer late, refused;
};

/* The caller ends it with workspace_fetch_free(). */
struct workspace_fetch *workspace_fetch_new(const struct workspace_fetch_options *options);
void workspace_fetch_free(struct workspace_fetch *fetch); /* cancels; NULL is fine */

/* Append "Bearer " and a newly minted token.
 * errors  those of token_mint() */
MUST_CHECK bool workspace_fetch_authorize(const struct token_keys *keys,
                                          const struct mcp_caller *caller, struct buf *out,
                                          struct err *e);

#endif
