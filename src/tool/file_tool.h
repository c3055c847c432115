/* file_tool: the common part of the tools that read and write files.
 *
 *     prepare (a worker) ─▶ move (tool/place.h) ─▶ show ─▶ reported
 *
 * A call names a key among the files of its workspace. Cancelling a call drops it at once and
 * stops its move.
 *
 * Threads  `prepare` runs on any thread, `show` on the loop.
 */
#ifndef WEIR_TOOL_FILE_TOOL_H
#define WEIR_TOOL_FILE_TOOL_H

#include "tool/place.h"
#include "tool/tool.h"

/* One call. */
struct file_request {
    struct str key;      /* as the model gave it */
    struct str path;     /* below the root */
    struct json args;    /* all of them, checked */
    struct arena *arena; /* for the call */
};

/* What is written, or what was read. */
struct file_content {
    struct str bytes, type; /* type of a read: as it was written; empty: not known */
    uint64_t size;          /* of the whole file */
};

/* One kind of file tool: a constant. Results are one JSON object appended to `out`. */
struct file_tool_kind {
    struct str name, description;
    struct str parameters; /* JSON Schema of an object with a string `key` */
    /* A writer: the content, and the result. NULL: a reader. */
    bool (*prepare)(const struct file_request *request, struct file_content *ret,
                    struct buf *out, struct err *e);
    /* A reader: the result. */
    bool (*show)(const struct file_request *request, const struct file_content *content,
                 struct buf *out, struct err *e);
};

/* Takes the place. */
struct tool *file_tool_new(const struct file_tool_kind *kind, struct file_place *place);

#endif
