/* local: what the tools of this program have in common.
 *
 * Their schemas are constants of ours, each an object without other properties than those it
 * names, with an optional `description`: prompts in the field demand it on every call, so it
 * is declared and ignored. Their results stay within what a model is shown of a tool.
 *
 * Threads  any; values only.
 */
#ifndef WEIR_TOOL_LOCAL_H
#define WEIR_TOOL_LOCAL_H

#include "tool/tool.h"

/* Of one result, JSON and all. */
#define LOCAL_RESULT_MAX_BYTES ((size_t)30000)

/* The property `description` of a schema text. */
#define LOCAL_DESCRIPTION                                                                      \
    "\"description\":{\"type\":\"string\","                                                    \
    "\"description\":\"Optional: why you make this call, in a few words for the user.\"}"

/* Read tool->parameters, a constant, into tool->schema, and give that back. */
void local_tool_init(struct tool *tool);
void local_tool_done(struct tool *tool);

/* The arguments of a call as an object. */
MUST_CHECK bool local_args(struct str text, struct json *ret, struct err *e);

/* Whether the whole result was written. */
MUST_CHECK bool local_result(const struct buf *result, struct err *e);

/* The member `name` within low..high (moved to the nearer end), or `absent` without one. */
uint64_t local_number(struct json args, struct str name, uint64_t low, uint64_t high,
                      uint64_t absent);

/* The longest beginning of `text`, cut between characters, that takes at most `max_bytes` as
 * a JSON string with its quotes. */
struct str local_fit(struct str text, size_t max_bytes);

#endif
