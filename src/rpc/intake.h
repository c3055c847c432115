/* intake: from body bytes to messages, at the handler's pace.
 *
 *     waiting ⇄ handed ─▶ over          over: half_closed() has run
 *        └───────────────▶ ┘
 *
 * While the handler is ready, bytes are read and consumed as they come, so a message larger
 * than the peer's window can arrive. While the handler is busy, bytes are held and not
 * consumed, so the window fills and the peer has to wait too. A call with one request gets it
 * only after the peer has half-closed, because only then is it certain that there is exactly
 * one.
 *
 * A compressed message is inflated on its way out, never past the method's limit.
 *
 * Memory   part of a call; holds a buffer only while bytes wait or a message is incomplete.
 * Threads  one loop.
 * Source   grpc/PROTOCOL-HTTP2.md, "Requests"; checks.md G3 and G11.
 */
#ifndef WEIR_RPC_INTAKE_H
#define WEIR_RPC_INTAKE_H

#include "base/states.h"
#include "wire/grpc.h"

struct rpc_call;

enum intake_state {
    INTAKE_WAITING, /* the handler is ready for a message */
    INTAKE_HANDED,  /* it has one and has not called rpc_next() yet */
    INTAKE_OVER,    /* half_closed() has run; no more will come */
    INTAKE_STATE_COUNT,
};

extern const struct state intake_states[INTAKE_STATE_COUNT];

/* A peer that respects its window never makes us hold this much. */
#define INTAKE_HELD_MAX_BYTES (4 * MIB)

struct intake {
    uint8_t state;    /* enum intake_state; written by move() only */
    bool one_request; /* RPC_UNARY, RPC_SERVER_STREAM */
    bool has_request; /* its one message is in `held` */
    bool ended;       /* the peer has half-closed */
    bool running;     /* a message may be lent out from here */
    bool gzip;        /* the call's grpc-encoding */
    bool inflated;    /* the last message came compressed */
    struct grpc_reader reader;
    struct buf held; /* bytes not consumed, or the one request */
    size_t taken;    /* bytes of `held` that have been read */
};

/* `encoding` is a supported one. */
void intake_init(struct intake *intake, bool one_request, size_t message_max_bytes,
                 enum grpc_encoding encoding);
void intake_done(struct intake *intake);

/* Body bytes have come (borrowed), or the body has ended. */
void intake_feed(struct rpc_call *call, struct str bytes);
void intake_end(struct rpc_call *call);

/* Hand over what the handler is ready for. */
void intake_resume(struct rpc_call *call);

/* The call is over. Consume and drop what is held. */
void intake_drop(struct rpc_call *call);

#endif
