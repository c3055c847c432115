/* request_line: what may be written into the head of a request. Private to client/. Pure. */
#ifndef WEIR_CLIENT_REQUEST_LINE_H
#define WEIR_CLIENT_REQUEST_LINE_H

#include "client/http.h"

/* Whether `text` may stand in a line: no line break, no NUL. */
bool request_is_line(struct str text);

/* Check that a header can be written as a line. */
MUST_CHECK bool request_check_header(const struct http_header *header, struct err *e);

#endif
