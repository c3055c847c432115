/* asked: what an MCP server asks of us, and what it gets at once. No user is really asked.
 *
 *     ping                {}
 *     elicitation/create  {"action":"cancel"}; where the settings accept defaults, a form whose
 *                         required fields all have one: {"action":"accept","content":{...}}
 *     anything else       no reply: the method is not served
 *
 * A stateless server that needs more before it answers has the result `input_required`, with requests
 * and a state. The same call is made again with the replies and the unchanged state. There are no roots.
 *
 * Private to mcp/.
 *
 * Memory   none; values only.
 * Threads  none.
 * Source   Model Context Protocol 2025-11-25, "Ping" and "Elicitation"; SEP-1034; 2026-07-28, "Multi
 *          Round-Trip Requests". */
#ifndef WEIR_MCP_ASKED_H
#define WEIR_MCP_ASKED_H

#include "mcp/client.h"

/* Append the result for this request. False: the method is not served. */
bool mcp_reply(struct json method, struct json params, enum mcp_elicitation elicitation,
               struct buf *out);

/* Write the members of an object of capabilities. One that we could not answer is not named. */
void mcp_write_capabilities(struct json_writer *w, enum mcp_elicitation elicitation);

/* Append the params of the next round. `params` are those of the round before.
 * errors  ERR_UNIMPLEMENTED the server asks for something that it does not get */
MUST_CHECK bool mcp_write_round(struct str params, struct json result,
                                enum mcp_elicitation elicitation, struct buf *out,
                                struct err *e);

#endif
