/* multipart: the parts of a form in one body, multipart/form-data.
 *
 *     --BOUNDARY CRLF
 *     Content-Disposition: form-data; name="model" CRLF
 *     CRLF
 *     whisper-1 CRLF
 *     --BOUNDARY-- CRLF
 *
 * The boundary occurs in no part, so no content can end its part early. Names, file names and
 * content types must fit on a header line; one that would break the line is refused.
 *
 * Memory   borrows the parts; appends to the caller's buffers.
 * Threads  none; values only.
 * Source   RFC 7578, RFC 2046 5.1.1.
 */
#ifndef WEIR_WIRE_MULTIPART_H
#define WEIR_WIRE_MULTIPART_H

#include "base/buf.h"
#include "base/err.h"

struct multipart_part {
    struct str name;
    struct str file;         /* its name; empty: a plain field */
    struct str content_type; /* of a file; empty: none is sent */
    struct str content;
};

/* Append the value of the content-type header to `type` and the body to `out`.
 * errors  ERR_INVALID_ARGUMENT a name or a type holds a quote, a backslash or a control
 *         character; ERR_TOO_LARGE a buffer's limit was reached */
MUST_CHECK bool multipart_write(const struct multipart_part *parts, size_t count,
                                struct buf *type, struct buf *out, struct err *e);

#endif
