/* read_result: read the rest of a tool result that was too long for the conversation.
 *
 * The store keeps such a result whole. The model gets its beginning, a number, and the name of
 * this tool, with which it reads the rest piece by piece:
 *
 *     {"result_id":7,"offset":24000}
 *     {"result_id":7,"offset":24000,"text":"...","next_offset":48000,"bytes_in_all":900000}
 *
 * next_offset is null after the last piece. Results of other sessions are not found; a session is a
 * workspace's, a user's and a name's, and every agent that speaks in it reads what it holds.
 *
 * Memory   the store is borrowed and must outlive the tool and its calls.
 * Threads  read-only once made; a call belongs to its loop.
 */
#ifndef WEIR_TOOL_READ_RESULT_H
#define WEIR_TOOL_READ_RESULT_H

#include "store/store.h"
#include "tool/tool.h"

#define READ_RESULT_TOOL "read_result"

/* The caller ends it with tool_free(). */
struct tool *read_result_tool_new(struct store *store);

#endif
