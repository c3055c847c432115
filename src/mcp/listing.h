/* listing: the complete tool list of an MCP server, from all its pages.
 *
 * Memory   owns the list until mcp_listing_free(), also after `done`.
 * Threads  the client's loop.
 * Source   Model Context Protocol 2025-11-25, "Tools" and "Pagination".
 */
#ifndef WEIR_MCP_LISTING_H
#define WEIR_MCP_LISTING_H

#include "mcp/client.h"

#define MCP_TOOLS_MAX ((size_t)512)
#define MCP_PAGES_MAX 64

struct mcp_listing;

struct mcp_tool_info {
    struct str name; /* valid for models: letters, digits, '_' and '-', at most 64 */
    struct str description;
    struct str schema; /* of its arguments, JSON; an object */
    bool idempotent;   /* repeating a call does no harm */
    bool changed;      /* since it was first seen: mcp/pins.h */
};

/* Called once, never before mcp_list() has returned. On success the listing holds the tools. */
typedef void mcp_listed_fn(const struct err *failed, void *ctx);

/* The caller ends it with mcp_listing_free(), which also cancels. */
struct mcp_listing *mcp_list(struct mcp_client *client, const struct mcp_caller *caller,
                             mcp_listed_fn *done, void *ctx);
void mcp_listing_free(struct mcp_listing *listing); /* accepts NULL */

/* In the server's order; of two tools with the same name, only the first. */
const struct mcp_tool_info *mcp_listing_tools(const struct mcp_listing *listing,
                                              size_t *ret_count);

bool mcp_tool_same(const struct mcp_tool_info *a, const struct mcp_tool_info *b);
bool mcp_listing_same(const struct mcp_listing *a, const struct mcp_listing *b);

#endif
