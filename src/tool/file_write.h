/* file_write: the tool that writes a whole file of the workspace.
 *
 * {"key":"notes/plan.md","content":"..."} gives {"key","object_key","content_type",
 * "size_bytes"}. An existing file is replaced atomically.
 *
 * Source   crawbl.md 2.8
 */
#ifndef WEIR_TOOL_FILE_WRITE_H
#define WEIR_TOOL_FILE_WRITE_H

#include "object/bucket.h"
#include "tool/tool.h"

/* Files below the folder `root`. The caller ends it with tool_free().
 * errors  as root_open() */
MUST_CHECK bool file_write_tool_new(struct str root, struct tool **ret, struct err *e);

/* Files in a bucket, which outlives the tool; NULL: the tool will not be called. */
struct tool *file_write_tool_new_bucket(struct bucket *bucket);

#endif
