/* asked: what an MCP server asks of us, and what it gets at once. No user is really asked.
 *
 *     ping                {}
 *     elicitation/create  {"action":"cancel"}; where the settings accept defaults, a form whose
 *                         required fields all have one: {"action":"accept","content":{...}}
 *     anything else       no reply: the method is not served
 *
 * Private to mcp/.
 *
 * Memory   none; values only.
 * Threads  none.
 * Source   Model Context Protocol 2025-11-25, "Ping" and "Elicitation"; SEP-1034. */
#ifndef WEIR_MCP_ASKED_H
#define WEIR_MCP_ASKED_H

#include "mcp/client.h"

/* Append the result for this request. False: the method is not served. */
bool mcp_reply(struct json method, struct json params, enum mcp_elicitation elicitation,
               struct buf *out);

/* Write the members of an object of capabilities. One that we could not answer is not named. */
void mcp_write_capabilities(struct json_writer *w, enum mcp_elicitation elicitation);

#endif
