/* web_search: the tool `web_search_tool`, a search engine asked for pages.
 *
 * {"query","max_results"} gives {"query","results":[{"title","url","snippet","engine"}]}. What
 * answers is a backend, one row of a table: "searxng" (any instance, JSON allowed in its
 * settings) or "brave" (needs a key). Its address is the operator's and may be a private one;
 * neither the address nor the key ever stands in a result or an error.
 *
 * Memory   the options are copied.
 * Threads  read-only once made; a call belongs to its loop, its answer is read on a worker.
 * Source   SearXNG search API; Brave Search API, Web Search.
 */
#ifndef WEIR_TOOL_WEB_SEARCH_H
#define WEIR_TOOL_WEB_SEARCH_H

#include "client/http.h"
#include "tool/tool.h"

struct web_search_options {
    struct http_pool *pool;
    struct str backend;  /* "searxng", "brave" */
    struct str base_url; /* empty: the backend's own, if it has one */
    struct str key;      /* empty: none */
};

/* errors  ERR_INVALID_ARGUMENT no such backend, or what it needs is missing or not an address
 */
MUST_CHECK bool web_search_check(const struct web_search_options *options, struct err *e);

/* The options have passed web_search_check(). The caller ends it with tool_free(). */
struct tool *web_search_tool_new(const struct web_search_options *options);

#endif
