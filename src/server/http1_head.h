/* http1_head: parse a complete HTTP/1 header section.
 *
 * Private to server/. The guard has checked the syntax of the lines, llhttp parses them, and
 * this module refuses errors that llhttp accepts.
 *
 * Memory   the result lives in the request's arena.
 * Threads  none.
 * Source   RFC 9112 3.2 (targets and Host), 6.1 to 6.3 (lengths).
 */
#ifndef WEIR_SERVER_HTTP1_HEAD_H
#define WEIR_SERVER_HTTP1_HEAD_H

#include "server/conn.h"

#include <llhttp.h>

struct http1_head {
    struct request *request;
    enum exchange_http http;
    bool is_head, is_chunked, expects_continue, wants_trailers, keeps_alive;
};

/* Parse `section`, which ends with its empty line. `parser` is reset first; afterwards it is at
 * the beginning of the body. Returns 0, or the status with which to refuse the request. */
int http1_head_read(struct http1_head *head, llhttp_t *parser, struct str section,
                    const struct server_limits *limits);

#endif
