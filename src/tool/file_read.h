/* file_read: the tool that reads a file of the workspace.
 *
 * {"key":"notes/plan.md"} gives {"key","content","content_type","encoding","size_bytes"}. Text
 * is returned unchanged, other content as base64. Content that is too long for a result is cut
 * between characters and `truncated` is set; size_bytes is always the size of the file.
 *
 * Source   crawbl.md 2.8
 */
#ifndef WEIR_TOOL_FILE_READ_H
#define WEIR_TOOL_FILE_READ_H

#include "object/bucket.h"
#include "tool/tool.h"

/* Files below the folder `root`. The caller ends it with tool_free().
 * errors  as root_open() */
MUST_CHECK bool file_read_tool_new(struct str root, struct tool **ret, struct err *e);

/* Files in a bucket, which outlives the tool; NULL: the tool will not be called. */
struct tool *file_read_tool_new_bucket(struct bucket *bucket);

#endif
