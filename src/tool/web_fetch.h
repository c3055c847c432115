/* web_fetch: the tool that reads a web page.
 *
 * {"url","max_bytes","timeout_seconds"} gives {"url","body"}: the final URL and the text of the
 * page, with "truncated":true if it was longer. HTML is reduced to its main text, other text is
 * unchanged, and any other content is an error that names its type.
 *
 * The URL is untrusted: only public addresses are contacted, also after each redirect, and URLs
 * with a user are refused. The response is limited in decompressed bytes and in time. A worker
 * parses it, and that work is limited too.
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
