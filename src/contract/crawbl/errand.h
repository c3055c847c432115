/* errand: fetch the blueprint of a workspace from its orchestrator and the tools from its MCP
 * server, once.
 *
 * Both are asked at the same time. The errand is back when both have answered, failed or timed
 * out. One can fail without the other.
 *
 * Private to house.
 *
 * Memory   owns its results until errand_free(); the owner may take `tools` out of it.
 * Threads  one loop's.
 * Source   contracts/crawbl.md 2.10.
 */
#ifndef WEIR_CONTRACT_CRAWBL_ERRAND_H
#define WEIR_CONTRACT_CRAWBL_ERRAND_H

#include "base/buf.h"
#include "contract/crawbl/token.h"
#include "mcp/listing.h"

struct errand;

/* Called once, never before errand_new() has returned. The owner may free the errand in it. */
typedef void errand_back_fn(struct errand *errand, void *ctx);

struct errand_options {
    struct http_pool *pool;
    struct loop *loop;
    struct str endpoint; /* of the MCP server; the same host serves the blueprint */
    const struct token_keys *keys;
    bool blueprint; /* fetch the blueprint too */
    struct mcp_client *client;
    struct mcp_caller caller;
    uint64_t total_ms;
    errand_back_fn *back;
    void *ctx;
};

struct errand {
    struct buf blueprint;        /* text for blueprint_read() */
    struct err blueprint_failed; /* ERR_NONE: it came, or was not wanted */
    struct mcp_listing *tools;
    struct err tools_failed;

    errand_back_fn *back;
    void *ctx;
    char *workspace;
    unsigned status;
    struct http_call *call; /* the blueprint's; NULL: none is open */
    bool wants_agents, wants_tools;
    struct timer late, refused;
};

/* The caller ends it with errand_free(). */
struct errand *errand_new(const struct errand_options *options);
void errand_free(struct errand *errand); /* cancels; NULL is fine */

/* Append "Bearer " and a newly minted token.
 * errors  those of token_mint() */
MUST_CHECK bool errand_authorize(const struct token_keys *keys, const struct mcp_caller *caller,
                                 struct buf *out, struct err *e);

#endif
