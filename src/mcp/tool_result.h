/* tool_result: the result of tools/call, in the form of our own tools: one JSON object.
 *
 *     structuredContent     {"output": <it>}, and "left_out" if there were parts other than text
 *     else content          {"output": "<its parts, one below the other>"}
 *     isError               an error: "Tool execution failed. Details: <parts, then structure>"
 *
 * A tool that succeeded without saying anything has succeeded: its output is "". Of the parts,
 * text and embedded text resources are given whole. A model cannot be shown the others here, so a
 * line in brackets names each: what it was, its type and its size. An error's details are cut in
 * the middle where they are too long, and say so.
 *
 * Threads  none; values only.
 * Source   Model Context Protocol 2025-11-25, "Tools", Tool Result; contracts/crawbl.md 2.9,
 *          "mapping". */
#ifndef WEIR_MCP_TOOL_RESULT_H
#define WEIR_MCP_TOOL_RESULT_H

#include "wire/json.h"

/* Append the converted `result`.
 * errors  ERR_UNKNOWN the tool failed; ERR_EFFECT_UNKNOWN it was called and what it answered
 *         cannot be read; ERR_TOO_LARGE */
MUST_CHECK bool mcp_tool_result(struct json result, struct buf *out, struct err *e);

#endif
