/* web_search: the tool `web_search_tool`, which queries a search engine.
 *
 * {"query","max_results"} gives {"query","results":[{"title","url","snippet","engine"}]}. The
 * backend is one row of a table: "searxng" (any instance whose settings allow JSON) or "brave"
 * (needs a key). The operator sets its address, which may be private. Neither the address nor
 * the key ever appears in a result or an error.
 *
 * Memory   the options are copied.
 * Threads  read-only once made; a call belongs to its loop, a worker parses the response.
 * Source   SearXNG search API; Brave Search API, Web Search.
 */
#ifndef WEIR_TOOL_WEB_SEARCH_H
#define WEIR_TOOL_WEB_SEARCH_H

#include "client/http.h"
#include "tool/tool.h"

struct web_search_options {
    struct http_pool *pool;
    struct str backend;  /* "searxng", "brave" */
    struct str base_url; /* empty: the backend's default, if it has one */
    struct str key;      /* empty: none */
};

/* errors  ERR_INVALID_ARGUMENT no such backend; a required option is missing, or not a URL */
MUST_CHECK bool web_search_check(const struct web_search_options *options, struct err *e);

/* The options have passed web_search_check(). The caller ends it with tool_free(). */
struct tool *web_search_tool_new(const struct web_search_options *options);

#endif
