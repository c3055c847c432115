/* computed: a tool whose result depends only on its arguments and this machine.
 *
 * Such a tool is one constant: its description for the model, and a function from arguments to
 * result. The function runs on a worker, so it may read a file or take a while. Cancelling a
 * call drops it at once; the worker's result is discarded.
 *
 * Memory   the description is borrowed and must outlive the tool: use a constant.
 * Threads  `compute` runs on any thread and shares only constants.
 */
#ifndef WEIR_TOOL_COMPUTED_H
#define WEIR_TOOL_COMPUTED_H

#include "tool/tool.h"

struct computed {
    struct str name, description;
    struct str parameters; /* JSON Schema of an object */
    bool idempotent;

    /* Append the result for `args` (an object) to `out` as one JSON object. The model reads the
     * error. Memory from `arena` is freed with the call. */
    bool (*compute)(struct json args, struct arena *arena, struct buf *out, struct err *e);
};

#define STATE_WRITE_TOOL "state_write"

/* Each is described in the file of its name. */
extern const struct computed calculator_tool, current_time_tool, state_write_tool;

/* The caller ends it with tool_free(). */
struct tool *computed_tool_new(const struct computed *what);

#endif
