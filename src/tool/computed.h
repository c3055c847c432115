/* computed: a tool whose answer follows from its arguments and this machine alone.
 *
 * Such a tool is one constant: what a model reads about it, and one function from arguments
 * to result. The function runs on a worker, so that it may read a file or think for a while;
 * a call that is cancelled is forgotten at once, and its worker's result dropped.
 *
 * Memory   the description stays the caller's and must outlive the tool: a constant.
 * Threads  `compute` runs on any thread and shares nothing but constants.
 */
#ifndef WEIR_TOOL_COMPUTED_H
#define WEIR_TOOL_COMPUTED_H

#include "tool/tool.h"

struct computed {
    struct str name, description;
    struct str parameters; /* JSON Schema of an object */
    bool idempotent;

    /* From `args`, an object, to one JSON object appended to `out`; the error is read by the
     * model. What it allocates in `arena` ends with the call. */
    bool (*compute)(struct json args, struct arena *arena, struct buf *out, struct err *e);
};

/* The caller ends it with tool_free(). */
struct tool *computed_tool_new(const struct computed *what);

#endif
