/* http2_head: read and write HTTP/2 header sections.
 *
 * nghttp2 has checked most rules of RFC 9113. This module enforces our limits and the rules
 * that nghttp2 does not.
 *
 * Private to server/.
 *
 * Memory   what is read lives in the request's arena; what is written borrows the section.
 * Threads  none.
 * Source   RFC 9113 8.2 and 8.3; RFC 9110 7.2 (Host), 10.1.1 (Expect). */
#ifndef WEIR_SERVER_HTTP2_HEAD_H
#define WEIR_SERVER_HTTP2_HEAD_H

#include "server/conn.h"

#include <nghttp2/nghttp2.h>

/* Overhead per field, as the limits count it. */
#define HTTP2_FIELD_EXTRA_BYTES 32

/* Take one field of a request. Past a limit the exchange is marked too_large. */
void http2_head_field(struct exchange *exchange, struct str name, struct str value);

#define HTTP2_HEAD_MALFORMED (-1)

/* The section is complete; `ends`: so is the request. Returns 0, the status with which to
 * refuse the request, or HTTP2_HEAD_MALFORMED. */
int http2_head_end(struct exchange *exchange, bool ends);

/* Room for a section that we send. */
struct http2_section {
    nghttp2_nv nv[65];
    size_t count;
    char status[3];
};

void http2_head_write(const struct section *section, struct http2_section *ret);

#endif
