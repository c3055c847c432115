/* request_write: fill the templates of a request for one call. Private to tool/.
 *
 * Memory   the caller ends the result with request_text_done().
 * Threads  none; values only. */
#ifndef WEIR_TOOL_REQUEST_WRITE_H
#define WEIR_TOOL_REQUEST_WRITE_H

#include "tool/request.h"
#include "wire/trace_context.h"

#define REQUEST_HEADERS_MAX 42

struct request_text {
    struct buf url, body;
    struct buf header_text; /* the values, one after the other */
    char parent[TRACE_PARENT_BYTES + 1], state[TRACE_STATE_MAX_BYTES];
    struct http_header headers[REQUEST_HEADERS_MAX]; /* some point into this struct */
    size_t header_count;
};

/* errors  ERR_INVALID_ARGUMENT an argument cannot stand where its template puts it */
MUST_CHECK bool request_write(const struct request_options *options,
                              const struct tool_request *call, struct request_text *ret,
                              struct err *e);
void request_text_done(struct request_text *text);

#endif
