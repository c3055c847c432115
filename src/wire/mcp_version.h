/* mcp_version: the versions of the Model Context Protocol that this program speaks, as a client
 * and as a server.
 *
 *     handshake   up to 2025-11-25: `initialize`, then a session
 *     stateless   2026-07-28: each request has its version and client, in `_meta`
 *
 * Memory   none; versions are constants.
 * Threads  any; values only.
 * Source   Model Context Protocol 2025-11-25 "Lifecycle"; 2026-07-28 "Versioning".
 */
#ifndef WEIR_WIRE_MCP_VERSION_H
#define WEIR_WIRE_MCP_VERSION_H

#include "base/str.h"

#define MCP_STATELESS_VERSION "2026-07-28"

/* Errors that only a stateless server sends. */
#define MCP_HEADER_MISMATCH (-32020)
#define MCP_MISSING_CAPABILITY (-32021)
#define MCP_UNSUPPORTED_VERSION (-32022)

/* The versions of the handshake, newest first. */
#define MCP_VERSIONS 4
struct str mcp_version_at(size_t index);

/* The constant for a version of the handshake, or NULL. */
const char *mcp_version_known(struct str version);

#endif
