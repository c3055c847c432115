/* http1_head: a complete HTTP/1 header section, read.
 *
 * Private to server/. The guard has checked the shape of the lines, llhttp reads them, and
 * what llhttp lets pass is refused here.
 *
 * Memory   what is read lives in the request's arena.
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

/* Read `section`, which ends with its empty line. `parser` is started anew and afterwards
 * stands at the beginning of the body. Returns 0, or the status that refuses the request. */
int http1_head_read(struct http1_head *head, llhttp_t *parser, struct str section,
                    const struct server_limits *limits);

#endif
