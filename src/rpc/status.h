/* status: how a gRPC response begins and ends, in header fields.
 *
 * The head is the same for every call. The end is grpc-status, for anything but OK the
 * grpc-message, and what a handler added; when no head went out before it, all of that and
 * the head become one header section ("trailers-only").
 *
 * Memory   borrows; the exchange copies fields.
 * Threads  the exchange's loop.
 * Source   grpc/PROTOCOL-HTTP2.md, "Responses".
 */
#ifndef WEIR_RPC_STATUS_H
#define WEIR_RPC_STATUS_H

#include "server/exchange.h"

#define STATUS_EXTRA_MAX 16 /* trailers that a handler may add */

/* Send the head of a response whose messages follow. */
void status_head(struct exchange *exchange);

/* End the response. `extra` are further trailers, at most STATUS_EXTRA_MAX. */
void status_end(struct exchange *exchange, enum err_code code, struct str message,
                const struct field *extra, size_t extra_count);

/* Answer with a bare HTTP status: the request was not gRPC's. */
void status_http(struct exchange *exchange, int status);

#endif
