/* status: how a gRPC response begins and ends, in header fields.
 *
 * The head says how messages are encoded, and what a handler added. The end is grpc-status, for
 * anything but OK the grpc-message, and what a handler added; when no head went out before it,
 * all of that and the head become one header section ("trailers-only").
 *
 * Memory   borrows; the exchange copies fields.
 * Threads  the exchange's loop.
 * Source   grpc/PROTOCOL-HTTP2.md, "Responses".
 */
#ifndef WEIR_RPC_STATUS_H
#define WEIR_RPC_STATUS_H

#include "server/exchange.h"

#define STATUS_EXTRA_MAX 16 /* fields that a handler may add to the head, and to the end */

/* Fields of a handler's own. */
struct status_extra {
    size_t count;
    struct field fields[STATUS_EXTRA_MAX];
};

/* Send the head of a response whose messages follow; `gzip`: some of them compressed. `always`
 * are the listener's own fields, `extra` the call's; each may be NULL. */
void status_head(struct exchange *exchange, bool gzip, const struct status_extra *always,
                 const struct status_extra *extra);

/* End the response. `extra` are further trailers, or NULL. */
void status_end(struct exchange *exchange, enum err_code code, struct str message,
                const struct status_extra *extra);

/* Answer with an HTTP status and a line of text, since the request was not gRPC's; the caller
 * ends the exchange. */
void status_http(struct exchange *exchange, int status);

#endif
