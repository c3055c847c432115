/* call: one gRPC call on its exchange, from the first check to the last callback.
 *
 *     checking ─▶ opening ─▶ open ─────▶ ended ─────▶ closed     the handler ended it
 *         │           └────────┴──▶ cut ──▶ cancelled ───┘       it ended without the handler
 *         └─────────▶ refused ───────────────────────────┘       no handler was called
 *
 * intake.h reads incoming bytes at the handler's pace; this module sends the answer.
 * Only rpc/ includes this header; other modules use rpc.h.
 *
 * Memory   freed when its exchange closes. An idle call holds no buffer.
 * Threads  one loop.
 */
#ifndef WEIR_RPC_CALL_H
#define WEIR_RPC_CALL_H

#include "base/states.h"
#include "base/text.h"
#include "loop/loop.h"
#include "rpc/intake.h"
#include "rpc/rpc.h"
#include "rpc/status.h"

enum call_state {
    CALL_CHECKING,  /* headers are being checked, authenticate() may run */
    CALL_REFUSED,   /* a check failed and has answered */
    CALL_OPENING,   /* open() is on the stack */
    CALL_OPEN,      /* messages flow */
    CALL_ENDED,     /* the handler called rpc_end() */
    CALL_CUT,       /* it ended otherwise; cancelled() has not run yet */
    CALL_CANCELLED, /* cancelled() has run */
    CALL_CLOSED,    /* the exchange is gone; closed() runs, then the memory is freed */
    CALL_STATE_COUNT,
};

extern const struct state call_states[CALL_STATE_COUNT];

struct rpc_site {
    struct loop *loop;
    struct map *methods;  /* path -> struct site_row */
    struct map *services; /* name -> struct rpc_service */
    struct site_row *rows;
    struct list calls;
    struct timer stall; /* due when the first call may have stalled too long */
    uint64_t stall_ms;
    struct buf sink;            /* takes what a handler sends before it knows of the end */
    struct status_extra always; /* in each head */
    struct text always_names[STATUS_EXTRA_MAX], always_values[STATUS_EXTRA_MAX];
    enum rpc_effect admits; /* this effect and those after it in the enum */
    struct str why_refused; /* the message for the others */
    bool stopping;
    struct rate_limits *rates; /* NULL: no limits */
    rpc_refused_fn *refused;   /* may be NULL */
    void *refused_ctx;
};

/* The bound on a call during a stop. */
struct call_hurry {
    uint64_t since_ms, within_ms; /* loop time, and how long it may take from then on */
    struct str why;
};

struct rpc_call {
    uint32_t magic;
    uint8_t state;           /* enum call_state; written by move() only */
    uint8_t why;             /* enum rpc_cancel, from CALL_CUT on */
    bool takes_gzip : 1;     /* the client accepts gzip */
    bool announces_gzip : 1; /* the head says grpc-encoding: gzip */
    bool compresses : 1;     /* the next messages */
    bool drains : 1;         /* refused and answered, but the request has not ended */
    struct intake intake;
    struct list link;
    struct exchange *exchange;
    struct rpc_site *site;
    const struct rpc_method *method; /* NULL until routed */
    void *ctx;
    struct rpc_identity identity;
    struct timer deadline;
    struct task later;       /* runs cancelled() after a cut, or reads on after rpc_next() */
    struct buf *message_out; /* between rpc_message_begin() and _end() */
    size_t message_begin;
    struct kept *kept;
    struct call_hurry *hurry;                /* NULL: none */
    struct status_extra *initial, *trailing; /* metadata that the handler added, or NULL */
};

/* Whether the handler may still send. */
static inline bool call_is_live(const struct rpc_call *call) {
    return call->state == CALL_OPENING || call->state == CALL_OPEN;
}

/* Accept the exchange; the call is CALL_CHECKING. */
struct rpc_call *call_new(struct rpc_site *site, struct exchange *exchange);

/* A check failed. Answer with a gRPC status, an HTTP status or a stream error. */
void call_refuse(struct rpc_call *call, enum err_code code, struct str message);
void call_refuse_http(struct rpc_call *call, int status);
void call_refuse_stream(struct rpc_call *call);

/* What the client's headers ask for. */
struct call_wishes {
    uint64_t timeout_ms; /* UINT64_MAX for none */
    enum grpc_encoding encoding;
    bool takes_gzip;
};

/* All checks have passed. Run open() and what is due right after it. */
void call_open(struct rpc_call *call, const struct call_wishes *wishes,
               const struct rpc_service *service);

/* The peer broke the framing. End with a status and run cancelled(). */
void call_break(struct rpc_call *call, enum err_code code, struct str message);

/* For sites, on any call: */
void call_say_stopping(struct rpc_call *call);
void call_stop(struct rpc_call *call); /* CANCELLED */

/* Cut the call when its peer has not read for `limit_ms`, or as rpc_hurry() says. Returns the
 * milliseconds until the next check is due. */
uint64_t call_check_stall(struct rpc_call *call, uint64_t limit_ms);

/* Let the site's next check be due within `in_ms`. */
void site_check_within(struct rpc_site *site, uint64_t in_ms);

#endif
