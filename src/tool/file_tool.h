/* file_tool: the common part of the tools that read and write files.
 *
 * A call names a key among the files of its workspace. A worker does the work, below a root
 * (tool/root.h). Cancelling a call drops it at once and asks the worker to stop.
 *
 * Threads  `perform` runs on any thread.
 */
#ifndef WEIR_TOOL_FILE_TOOL_H
#define WEIR_TOOL_FILE_TOOL_H

#include "tool/root.h"
#include "tool/tool.h"

/* One call, on its worker. */
struct file_request {
    struct root *root;
    struct str key;      /* as the model gave it */
    struct str path;     /* below the root */
    struct json args;    /* all of them, checked */
    struct arena *arena; /* for the call */
    const atomic_bool *stop;
};

/* One kind of file tool: a constant. */
struct file_tool_kind {
    struct str name, description;
    struct str parameters; /* JSON Schema of an object with a string `key` */

    /* One JSON object appended to `out`, or the error that the model reads. */
    bool (*perform)(const struct file_request *request, struct buf *out, struct err *e);
};

/* errors  as root_open() */
MUST_CHECK bool file_tool_new(const struct file_tool_kind *kind, struct str root,
                              struct tool **ret, struct err *e);

#endif
