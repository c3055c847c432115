/* local: the common part of the built-in tools.
 *
 * Their schemas are constants: objects that allow only the named properties. Each declares an
 * optional `description`, because prompts in use demand it on every call, and ignores it. The
 * results stay within the size that a model is shown.
 *
 * Threads  any; values only.
 */
#ifndef WEIR_TOOL_LOCAL_H
#define WEIR_TOOL_LOCAL_H

#include "tool/tool.h"

/* Of one result, including its JSON. */
#define LOCAL_RESULT_MAX_BYTES ((size_t)30000)

/* The property `description` of a schema text. */
#define LOCAL_DESCRIPTION                                                                      \
    "\"description\":{\"type\":\"string\","                                                    \
    "\"description\":\"Optional: why you make this call, in a few words for the user.\"}"

/* Parse tool->parameters, a constant, into tool->schema; _done frees that. */
void local_tool_init(struct tool *tool);
void local_tool_done(struct tool *tool);
/* tool_kind.free of a tool that owns nothing else. */
void local_tool_free(struct tool *tool);

/* The arguments of a call as an object. */
MUST_CHECK bool local_args(struct str text, struct json *ret, struct err *e);

/* Check that the whole result was written. */
MUST_CHECK bool local_result(const struct buf *result, struct err *e);

/* The member `name`, clamped to low..high, or `absent` if there is none. */
uint64_t local_number(struct json args, struct str name, uint64_t low, uint64_t high,
                      uint64_t absent);

/* The longest prefix of `text`, cut between characters, that takes at most `max_bytes` as a
 * JSON string with its quotes. */
struct str local_fit(struct str text, size_t max_bytes);

#endif
