/* tool_line: the one line that a person sees of an agent's tool call.
 *
 * A call's arguments may hold whole documents and secrets; clients are shown what the call is
 * for, and what it asks.
 *
 * Memory   results are appended to the caller's buffers.
 * Threads  any.
 * Source   contracts of the orchestrator, "From ConverseEvent to events and rows"; the table of
 *          query arguments.
 */
#ifndef WEIR_ORCHESTRATOR_TOOL_LINE_H
#define WEIR_ORCHESTRATOR_TOOL_LINE_H

#include "wire/json.h"

/* The tool with which an agent hands the turn over. */
#define TRANSFER_TOOL "transfer_to_agent"
/* The tool with which it asks another one and goes on. */
#define ASK_TOOL "send_message_to_agent"

/* Append what `tool` asks, or nothing. args_json: any text; what is no object has no members. */
void tool_line_query(struct str tool, struct str args_json, struct buf *out);

/* Append an object with the description, and the URL of tools that fetch one. Nothing is
 * appended when it would be empty. */
void tool_line_args(struct str tool, struct str args_json, struct buf *out);

#endif
