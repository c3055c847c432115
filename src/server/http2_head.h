/* http2_head: HTTP/2 header sections, read and written.
 *
 * nghttp2 has checked the rules of RFC 9113; here are our limits, and what it lets pass.
 *
 * Private to server/.
 *
 * Memory   what is read lives in the request's arena; what is written borrows the section.
 * Threads  none.
 * Source   RFC 9113 8.2 and 8.3; RFC 9110 7.2 (Host), 10.1.1 (Expect).
 */
#ifndef WEIR_SERVER_HTTP2_HEAD_H
#define WEIR_SERVER_HTTP2_HEAD_H

#include "server/conn.h"

#include <nghttp2/nghttp2.h>

/* As the limits count a field. */
#define HTTP2_FIELD_EXTRA_BYTES 32

/* One field of a request; past a limit the exchange is marked too_large. */
void http2_head_field(struct exchange *exchange, struct str name, struct str value);

#define HTTP2_HEAD_MALFORMED (-1)

/* The section is complete, and so is the request when it `ends` there. Returns 0, the status
 * that refuses the request, or HTTP2_HEAD_MALFORMED. */
int http2_head_end(struct exchange *exchange, bool ends);

/* Room for a section of ours. */
struct http2_section {
    nghttp2_nv nv[65];
    size_t count;
    char status[3];
};

void http2_head_write(const struct section *section, struct http2_section *ret);

#endif
