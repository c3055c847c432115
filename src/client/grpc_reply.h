/* grpc_reply: the answer to one gRPC call, from the parts of an HTTP response.
 *
 *     grpc_reply_field ... ─▶ grpc_reply_head ─▶ grpc_reply_next ... ─▶ grpc_reply_end
 *                             (200, and gRPC?)   messages               status
 *
 * No socket and no clock.
 *
 * Private to client/.
 *
 * Memory   owns what it keeps of the fields, and a message that came in pieces.
 * Threads  none.
 * Source   grpc/doc/PROTOCOL-HTTP2.md, "Responses" and "Errors"; http-grpc-status-mapping.md.
 */
#ifndef WEIR_CLIENT_GRPC_REPLY_H
#define WEIR_CLIENT_GRPC_REPLY_H

#include "client/grpc_call.h"
#include "client/h2_session.h"
#include "wire/grpc.h"

struct grpc_reply {
    struct grpc_reader reader;
    unsigned http_status;       /* 0: no head yet */
    struct buf type, encoding;  /* content-type, grpc-encoding */
    struct buf status, message; /* from the trailers, or from a head without a body */
    struct buf said;            /* the message, decoded; from grpc_reply_end() on */
};

void grpc_reply_init(struct grpc_reply *reply, size_t message_max_bytes);
void grpc_reply_done(struct grpc_reply *reply);

/* False: the field is the protocol's own, else metadata. The details of a status are metadata:
 * what is in them is between the server and the caller. */
bool grpc_reply_field(struct grpc_reply *reply, struct str name, struct str value);

/* The head is complete. False: there will be no messages, and *e says why.
 * errors  the code that the HTTP status maps to; ERR_UNKNOWN not gRPC */
MUST_CHECK bool grpc_reply_head(struct grpc_reply *reply, unsigned http_status, struct err *e);

/* Take the next message from the front of *bytes. *ret is lent until the next call.
 * errors  ERR_INTERNAL bad framing, or compressed; ERR_TOO_LARGE */
enum grpc_step grpc_reply_next(struct grpc_reply *reply, struct str *bytes, struct str *ret,
                               struct err *e);

/* How the call ended. *why is set unless it ended OK, and *ret points at it. */
void grpc_reply_end(struct grpc_reply *reply, const struct h2_end *end,
                    struct grpc_call_end *ret, struct err *why);

#endif
