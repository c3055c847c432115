/* grpc_call: one gRPC call to another server.
 *
 * Request messages may be sent one by one until grpc_call_finish(). Response messages arrive
 * one by one, followed by one end with the status. A unary call has one message each way.
 *
 *     start ─▶ asking ─▶ reading ─▶ on_end
 *                        (on_message in their order)
 *
 * Calls to one server share a connection (h2.h). Messages are never compressed: the request
 * says so, and one that compresses anyway fails the call.
 *
 * Memory   a request is copied. A call frees itself after on_end, or by grpc_call_cancel().
 * Threads  the loop's.
 * Source   grpc/doc/PROTOCOL-HTTP2.md; http-grpc-status-mapping.md; statuscodes.md. */
#ifndef WEIR_CLIENT_GRPC_CALL_H
#define WEIR_CLIENT_GRPC_CALL_H

#include "base/lent.h"
#include "base/states.h"
#include "client/http.h"

struct grpc_call;

/* In addition to the fields that gRPC itself sends. */
#define GRPC_CALL_METADATA_MAX 16

/* Text, or bytes if the name ends in -bin. */
struct grpc_metadata {
    struct str name, value;
};

struct grpc_call_request {
    struct str host; /* a name or an address, without brackets */
    uint16_t port;
    bool secure;     /* over TLS; the server's certificate is checked */
    struct str path; /* "/package.Service/Method" */
    const struct grpc_metadata *metadata;
    size_t metadata_count;
    uint64_t deadline_ms;     /* of the whole call, sent to the server; 0: none */
    size_t message_max_bytes; /* of one response message; 0: 4 MiB */
    /* For the call that dials; 0: the usual times (h2.h). */
    uint64_t connect_ms, keepalive_ms, keepalive_answer_ms;
};

struct grpc_call_end {
    enum err_code code; /* ERR_NONE: OK */
    struct str text;    /* what went wrong, for a person; empty when OK */
    struct str said;    /* the server's own message, whole; may be empty */
    bool from_server;   /* the server itself sent the status */
    bool never_seen;    /* the server has provably done nothing: it may be retried */
};

/* None of them runs before grpc_call_start() has returned. The call may be paused, written to
 * and cancelled inside each. */
struct grpc_call_sink {
    /* Metadata of the head, then of the trailers, decoded; also during a pause. May be NULL. */
    void (*on_metadata)(struct str name, struct str value, void *ctx);
    void (*on_message)(struct lent message, void *ctx);
    void (*on_drained)(void *ctx); /* everything was sent; may be NULL */
    void (*on_end)(const struct grpc_call_end *end, void *ctx);
};

/* errors  ERR_INVALID_ARGUMENT a name or a value that cannot be metadata */
MUST_CHECK bool grpc_call_start(struct http_pool *pool, struct loop *loop,
                                const struct grpc_call_request *request,
                                const struct grpc_call_sink *sink, void *ctx,
                                struct grpc_call **ret, struct err *e);

/* Send one message. Nothing follows grpc_call_finish().
 * errors  ERR_TOO_LARGE too much waits to be sent already */
MUST_CHECK bool grpc_call_send(struct grpc_call *call, struct str message, struct err *e);
void grpc_call_finish(struct grpc_call *call);
/* Nothing was sent yet: there is no connection, or no room on it. */
bool grpc_call_waits(const struct grpc_call *call);
/* The server allows no more concurrent calls: another one has to end first. */
bool grpc_call_queues(const struct grpc_call *call);

/* No callback is made until the call is resumed, and the server may send H2_WINDOW_BYTES at
 * most. */
void grpc_call_pause(struct grpc_call *call);
/* Callbacks come in a later turn of the loop, or at the end of this one. */
void grpc_call_resume(struct grpc_call *call);
/* Replace the listener, also inside a callback, for all later events. */
void grpc_call_hand_over(struct grpc_call *call, const struct grpc_call_sink *sink, void *ctx);
/* Nothing more is reported; the stream is reset. */
void grpc_call_cancel(struct grpc_call *call);

/* --- for tests and the drawing ---------------------------------------------------------- */

enum grpc_call_state {
    GRPC_CALL_ASKING,
    GRPC_CALL_READING, /* the server has begun to answer, and it is gRPC */
    GRPC_CALL_OVER,
    GRPC_CALL_STATE_COUNT,
};

extern const struct state grpc_call_states[GRPC_CALL_STATE_COUNT];

#endif
