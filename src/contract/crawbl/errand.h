/* errand: ask an orchestrator once what a workspace's agents are, and an MCP server for tools.
 *
 * Both are asked at the same time; it is back when both have answered, failed, or taken too
 * long. One may fail without the other.
 *
 * Private to house.
 *
 * Memory   owns what it brings until errand_free(); `tools` may be taken out of it.
 * Threads  one loop's.
 * Source   contracts/crawbl.md 2.10.
 */
#ifndef WEIR_CONTRACT_CRAWBL_ERRAND_H
#define WEIR_CONTRACT_CRAWBL_ERRAND_H

#include "base/buf.h"
#include "contract/crawbl/token.h"
#include "mcp/listing.h"

struct errand;

/* Once, never before errand_new() has returned. The owner may free it inside. */
typedef void errand_back_fn(struct errand *errand, void *ctx);

struct errand_options {
    struct http_pool *pool;
    struct loop *loop;
    struct str endpoint; /* of the MCP server; the blueprint is on the same host */
    const struct token_keys *keys;
    bool blueprint; /* wanted */
    struct mcp_client *client;
    struct mcp_caller caller;
    uint64_t total_ms;
    errand_back_fn *back;
    void *ctx;
};

struct errand {
    struct buf blueprint;        /* a text that blueprint_read() takes */
    struct err blueprint_failed; /* ERR_NONE: it came, or nobody asked for it */
    struct mcp_listing *tools;
    struct err tools_failed;

    errand_back_fn *back;
    void *ctx;
    char *workspace;
    unsigned status;
    struct http_call *call; /* the blueprint's; NULL: not out */
    bool wants_agents, wants_tools;
    struct timer late, refused;
};

/* The caller ends it with errand_free(). */
struct errand *errand_new(const struct errand_options *options);
void errand_free(struct errand *errand); /* cancels; NULL is fine */

/* Append "Bearer " and a token that is minted now.
 * errors  those of token_mint() */
MUST_CHECK bool errand_authorize(const struct token_keys *keys, const struct mcp_caller *caller,
                                 struct buf *out, struct err *e);

#endif
