/* status: the header fields that begin and end a gRPC response.
 *
 * The head holds the message encoding and the handler's own fields. The end holds grpc-status,
 * grpc-message unless the status is OK, and the handler's own fields. If no head was sent
 * before, head and end become one header section ("trailers-only").
 *
 * Memory   borrows; the exchange copies fields.
 * Threads  the exchange's loop.
 * Source   grpc/PROTOCOL-HTTP2.md, "Responses".
 */
#ifndef WEIR_RPC_STATUS_H
#define WEIR_RPC_STATUS_H

#include "server/exchange.h"

#define STATUS_EXTRA_MAX 16 /* fields a handler may add to each of head and end */

/* Fields that a handler adds. */
struct status_extra {
    size_t count;
    struct field fields[STATUS_EXTRA_MAX];
};

/* Send the head of a response whose messages follow. `gzip`: some may be compressed. `always`
 * holds the listener's own fields, `extra` the call's; each may be NULL. */
void status_head(struct exchange *exchange, bool gzip, const struct status_extra *always,
                 const struct status_extra *extra);

/* End the response. `extra` are further trailers, or NULL. */
void status_end(struct exchange *exchange, enum err_code code, struct str message,
                const struct status_extra *extra);

/* Answer with an HTTP status and a line of text, because the request was not gRPC. The caller
 * ends the exchange. */
void status_http(struct exchange *exchange, int status);

#endif
