/* file_read: the tool that reads a file of the workspace.
 *
 * {"key":"notes/plan.md"} gives {"key","content","content_type","encoding","size_bytes"}. Text
 * comes as it is, all else as base64. When the content is too long for a result it is cut, on a
 * character, and `truncated` says so; size_bytes is always the size of the file.
 *
 * Source   crawbl.md 2.8
 */
#ifndef WEIR_TOOL_FILE_READ_H
#define WEIR_TOOL_FILE_READ_H

#include "tool/tool.h"

/* Files below the folder `root`. The caller ends it with tool_free().
 * errors  as root_open() */
MUST_CHECK bool file_read_tool_new(struct str root, struct tool **ret, struct err *e);

#endif
