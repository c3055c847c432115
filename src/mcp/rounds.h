/* rounds: a stateless server that needs more before it answers.
 *
 * Its result is `input_required`, with requests and a state. The same call is made again with
 * the replies (mcp/asked.h) and the unchanged state. There are no roots.
 *
 * Private to mcp/.
 *
 * Memory   none.
 * Threads  none; values only.
 * Source   Model Context Protocol 2026-07-28, "Multi Round-Trip Requests". */
#ifndef WEIR_MCP_ROUNDS_H
#define WEIR_MCP_ROUNDS_H

#include "mcp/asked.h"

/* Append the params of the next round. `params` are those of the round before.
 * errors  ERR_UNIMPLEMENTED the server asks for something that it does not get */
MUST_CHECK bool mcp_write_round(struct str params, struct json result,
                                enum mcp_elicitation elicitation, struct buf *out,
                                struct err *e);

#endif
