/* request: a tool that sends one HTTP request for each call.
 *
 * URL, query, headers and body are templates (tool/template.h). An argument is percent-encoded
 * in the path and the query, unchanged in a header (control characters are refused), and JSON
 * in the body. A place in the path must not become empty, "." or "..": that would be another
 * path. Arguments that no template names are sent as well, unless `query` or `body` is set: as
 * parameters of a GET, HEAD or DELETE, else as members of a JSON body.
 *
 * A status of 400 or more is an error with the beginning of the response. Redirects are not
 * followed. Secrets are never shown.
 *
 * Memory   options are copied, except the pool, which must outlive the tool.
 * Threads  read-only once made, except its slots; a call belongs to its loop.
 * Source   RFC 3986 2 and 3; RFC 9110 9. */
#ifndef WEIR_TOOL_REQUEST_H
#define WEIR_TOOL_REQUEST_H

#include "client/http.h"
#include "tool/tool.h"
#include "tool/tool_output.h"

/* A name and a template. */
struct request_field {
    struct str name, value;
};

struct request_options {
    struct str name, description, parameters;
    struct str method, url;
    const struct request_field *query, *headers;
    size_t query_count, header_count;
    bool has_query;  /* `query` is complete, even if empty */
    struct str body; /* JSON whose strings are templates, or empty: see above */
    struct str key;  /* sent as a Bearer token, or empty */
    const struct tool_secret *secrets;
    size_t secret_count;
    size_t output_max_bytes; /* of an answer; more is an error */
    size_t at_once;          /* calls, over all loops; others wait */
    uint64_t timeout_ms;
    bool idempotent, public_only;
    enum tool_output_form form;
    struct str pick;
    struct http_pool *pool;
};

/* Check the templates without making a tool: braces, names of arguments and secrets, the URL.
 * errors  ERR_INVALID_ARGUMENT */
MUST_CHECK bool request_check(const struct request_options *options, struct err *e);

/* Check one template. */
MUST_CHECK bool request_check_template(const struct request_options *options, struct str text,
                                       struct err *e);

/* The caller ends it with tool_free().
 * errors  those of request_check() and of schema_read() for the parameters */
MUST_CHECK bool request_tool_new(const struct request_options *options, struct tool **ret,
                                 struct err *e);

#endif
