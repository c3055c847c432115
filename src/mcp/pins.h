/* pins: detect tools of MCP servers that have changed since they were first seen.
 *
 * A server may describe a tool harmlessly until someone trusts it, and differently later. So
 * the name, description and schema of each tool, and whether it says that it may be repeated, are
 * kept as one hash, in a file of lines
 *
 *     HASH known|changed SERVER TOOL
 *
 * A tool that is seen for the first time is known. One whose hash differs is changed from then
 * on, also after a restart, until pins_accept().
 *
 * Memory   none.
 * Threads  any, one at a time for a path; blocks briefly. */
#ifndef WEIR_MCP_PINS_H
#define WEIR_MCP_PINS_H

#include "mcp/listing.h"

/* Append the path of the file, in the store's folder. */
void pins_path(struct str data, struct buf *out);

/* Mark the tools that have changed, and update the file. An empty path: no file. */
void pins_check(struct str path, struct str server, struct mcp_tool_info *tools, size_t count);

/* Accept the tool as it is now. `server` empty: of any server.
 * errors  ERR_NOT_FOUND no such tool has changed; those of the file */
MUST_CHECK bool pins_accept(struct str path, struct str server, struct str tool, struct err *e);

#endif
