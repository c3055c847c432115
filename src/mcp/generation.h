/* generation: the two generations of the protocol of MCP servers.
 *
 *     handshake   up to 2025-11-25: `initialize`, then a session
 *     stateless   2026-07-28: each request has its version and client, in `_meta`
 *
 * This file has the versions, the contents of a stateless request, and what a refusal says
 * about the server that sent it.
 *
 * Private to mcp/.
 *
 * Memory   none; version names are constants.
 * Threads  none; values only.
 * Source   Model Context Protocol 2026-07-28, "Versioning" and "Streamable HTTP"; 2025-11-25,
 *          "Lifecycle". */
#ifndef WEIR_MCP_GENERATION_H
#define WEIR_MCP_GENERATION_H

#include "mcp/asked.h"
#include "wire/mcp_version.h"

/* What is known of a server. */
enum mcp_generation { MCP_UNKNOWN, MCP_HANDSHAKE, MCP_STATELESS };

/* The newest version of the handshake, which we offer. */
struct str mcp_offered_version(void);

/* The constant for a handshake version that we support, or NULL. */
const char *mcp_known_version(struct json version);

/* What a JSON-RPC error says about the server that sent it. UNKNOWN: a server of the handshake
 * may send it as well. data: of the error */
enum mcp_generation mcp_generation_of_error(int64_t code, struct json data);

/* Append `params` (an object, or empty) with the `_meta` of a request, to which a `_meta` of their
 * own is added. token: of its progress;
 * 0: none is wanted */
void mcp_write_params(enum mcp_generation generation, enum mcp_elicitation elicitation,
                      struct str params, uint64_t token, struct buf *out);

#endif
