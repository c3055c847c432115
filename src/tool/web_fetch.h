/* web_fetch: the tool that reads a page of the web.
 *
 * {"url","max_bytes","timeout_seconds"} gives {"url","body"}: where the page came from in the
 * end, and its text; "truncated":true when there was more. HTML is reduced to its main text,
 * other text stays as it is, anything else is an error that names its type.
 *
 * The address is a stranger's: only public ones are asked, also behind each redirect, and none
 * that names a user. What comes back is bounded in bytes after decompression, in time, and in
 * the work of reading it, which is a worker's.
 *
 * Threads  read-only once made; a call belongs to its loop.
 */
#ifndef WEIR_TOOL_WEB_FETCH_H
#define WEIR_TOOL_WEB_FETCH_H

#include "client/http.h"
#include "tool/tool.h"

/* `pool` must outlive it. The caller ends it with tool_free(). */
struct tool *web_fetch_tool_new(struct http_pool *pool);

#endif
