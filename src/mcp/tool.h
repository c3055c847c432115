/* tool: a tool that an MCP server has, as agents are offered it.
 *
 * Its answer becomes what our own tools answer, one JSON object:
 *
 *     structuredContent          {"output": <it>}
 *     else its text parts        {"output": "<text>"}
 *     isError                    an error, "Tool execution failed. Details: <text>"
 *     neither                    an error
 *
 * Memory   holds its client; its texts are copied. Unlike other kinds it belongs to the loop of
 *          its client, and so do its calls.
 * Threads  one loop's.
 * Source   contracts/crawbl.md 2.9, "mapping".
 */
#ifndef WEIR_MCP_TOOL_H
#define WEIR_MCP_TOOL_H

#include "mcp/listing.h"
#include "tool/tool.h"

/* How long a call may take, where no setting says it: a turn of an orchestrator's own (an agent
 * that is asked to help) may hide behind it. */
#define MCP_TOOL_MS (UINT64_C(6) * 60 * 1000)

/* The caller ends it with tool_free(). A schema that we cannot read is offered as it is, and
 * arguments are then not checked by us. */
struct tool *mcp_tool_new(struct mcp_client *client, const struct mcp_tool_info *info);

/* Append what the `result` of tools/call means.
 * errors  ERR_UNKNOWN the tool failed; ERR_UNAVAILABLE it said nothing; ERR_TOO_LARGE */
MUST_CHECK bool mcp_tool_result(struct json result, struct buf *out, struct err *e);

#endif
