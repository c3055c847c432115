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

/* Each is described in the file of its name. */
extern const struct file_tool_kind file_read_tool, file_write_tool;

/* Files below the folder `root`. The caller ends it with tool_free().
 * errors  as root_open() */
MUST_CHECK bool file_tool_new_folder(const struct file_tool_kind *kind, struct str root,
                                     struct tool **ret, struct err *e);

/* Files in a bucket, which outlives the tool; NULL: the tool will not be called. */
struct tool *file_tool_new_bucket(const struct file_tool_kind *kind, struct bucket *bucket);

#endif
