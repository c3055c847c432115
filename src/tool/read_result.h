/* read_result: read on in a tool's result that was too long for the conversation.
 *
 * Such a result is kept whole in the store, and the model is shown its beginning with a number
 * and told this tool's name. It reads the rest piece by piece:
 *
 *     {"result_id":7,"offset":24000}
 *     {"result_id":7,"offset":24000,"text":"...","next_offset":48000,"bytes_in_all":900000}
 *
 * next_offset is null behind the last piece. A number of another workspace is not found.
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
