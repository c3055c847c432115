/* rpc: gRPC calls over exchanges.
 *
 * A service is a table of methods; a method names its handler, how its stream ends, when it
 * counts as established, who may call it and its limits. This module does what every call
 * needs before and after the handler: routing, content type, metadata, authentication,
 * grpc-timeout, message framing and limits, trailers, trailers-only errors.
 *
 *     open ─▶ message* ─▶ half_closed ─▶ (handler calls rpc_end)  ─▶ closed
 *       └────────────── cancelled: peer left, deadline, stop ───────────┘
 *
 * Memory   the call belongs to its exchange; what it lends is a struct lent and dies with the
 *          callback; what its getters answer with lives until `closed`.
 * Threads  a site and its calls belong to one loop. Tables are read-only.
 * Source   grpc/PROTOCOL-HTTP2.md, grpc/statuscodes.md; checks.md group G.
 */
#ifndef WEIR_RPC_RPC_H
#define WEIR_RPC_RPC_H

#include "base/lent.h"
#include "server/exchange.h"
#include "stream/close.h"

struct rpc_call;
struct rpc_site;

enum rpc_kind { RPC_UNARY, RPC_CLIENT_STREAM, RPC_SERVER_STREAM, RPC_BIDI };

/* Who may call. A row must say it: a site of which a row says nothing, or asks for a token
 * where its service cannot read one, is not made. */
enum rpc_auth {
    RPC_TOKEN = 1, /* the service's authenticate() decides before a message is read */
    RPC_OPEN = 2,  /* anybody: health, reflection */
};

/* What a call does, for a site that does not serve everything now (rpc_site_admit). */
enum rpc_effect {
    RPC_ACTS,
    RPC_READS,  /* it only looks, and ends soon by itself */
    RPC_PROBES, /* it asks how the daemon is */
};

/* From when on a failure is no longer a gRPC status but the mode's own ending. */
enum rpc_established {
    RPC_AT_ACCEPT,  /* response headers go out as soon as the call is open */
    RPC_BY_HANDLER, /* the handler says when (rpc_establish) */
};

enum rpc_cancel {
    RPC_PEER_LEFT, /* reset, or the connection broke */
    RPC_DEADLINE,  /* grpc-timeout, or the method's own bound; DEADLINE_EXCEEDED was sent */
    RPC_STALLED,   /* the peer did not read; it is told RESOURCE_EXHAUSTED */
    RPC_STOPPED,   /* the shutdown deadline passed; CANCELLED was sent */
    RPC_BROKEN,    /* the peer broke the framing; the status was sent */
};

/* All on the call's loop, one at a time for a call. `ctx` is what open() returned; only open()
 * must be there, each other may be NULL. Any of them may call rpc_end(). */
struct rpc_handler {
    /* The call passed every check. Returns the handler's own state; may call rpc_end. */
    void *(*open)(struct rpc_call *call, void *service_ctx);
    /* One whole message. The first comes by itself, the next one only after rpc_next(). Where
     * there must be exactly one it comes once the client has half-closed. */
    void (*message)(struct rpc_call *call, struct lent message, void *ctx);
    /* A message is longer than the method allows, and `why` says so. The handler may end the
     * call in its own words; else it is broken with `why`. */
    void (*too_large)(struct rpc_call *call, const struct err *why, void *ctx);
    /* The client will send no more. For RPC_UNARY and RPC_SERVER_STREAM this comes right
     * after the one message; the count of messages has been checked. */
    void (*half_closed)(struct rpc_call *call, void *ctx);
    /* Queued bytes fell to what rpc_wake_at() asked for. */
    void (*drained)(struct rpc_call *call, void *ctx);
    /* The daemon begins to stop; the call may go on until the deadline. */
    void (*stopping)(struct rpc_call *call, void *ctx);
    /* It is over without the handler's doing, at most once: nothing more can be sent. Never
     * from inside a function of this header. */
    void (*cancelled)(struct rpc_call *call, enum rpc_cancel why, void *ctx);
    /* Last of all, exactly once, also after rpc_end(), when the exchange is gone: free ctx. */
    void (*closed)(void *ctx);
};

struct rpc_method {
    struct str path; /* "/package.Service/Method" */
    enum rpc_kind kind;
    const struct rpc_handler *handler;
    enum close_mode ends;
    enum rpc_established established;
    enum rpc_auth auth;
    uint64_t deadline_ms;     /* our own bound on the whole call, 0 = none */
    size_t request_max_bytes; /* one message; a longer one is RESOURCE_EXHAUSTED */
    enum rpc_effect effect;
};

/* Who calls: filled by authenticate(), in ids that live as long as the call. */
struct rpc_identity {
    bool known; /* false: authenticate() asks for no token, or the row is open */
    struct str user, workspace;
};

struct rpc_service {
    struct str name; /* "crawbl.agentruntime.v1.AgentRuntime" */
    const struct rpc_method *methods;
    size_t method_count;
    size_t
        request_max_bytes; /* of its methods, instead of what their rows say; 0: as they say */
    /* Fill *ret (ids copied with rpc_keep) or refuse with UNAUTHENTICATED; may ask for
     * metadata. NULL: no row asks for a token. */
    bool (*authenticate)(struct rpc_call *call, void *ctx, struct rpc_identity *ret,
                         struct err *e);
    void *ctx; /* for authenticate and open */
};

/* --- sites: the services of one listener, on one loop ------------------------------------- */

/* `services` is borrowed until rpc_site_free(). */
struct rpc_site *rpc_site_new(struct loop *loop, const struct rpc_service *services,
                              size_t service_count);
void rpc_site_free(struct rpc_site *site); /* no call may be open */

/* For tests: whether each row of a service says who may call, and authenticate() is there where
 * a row needs it. */
bool rpc_service_ok(const struct rpc_service *service);

/* Whether a request is gRPC's: POST aside, by its content type. */
bool rpc_wants(const struct exchange *exchange);

/* Serve one exchange; accepts it. */
void rpc_serve(struct rpc_site *site, struct exchange *exchange);

/* From now on refuse calls whose effect stands before `first` with UNAVAILABLE and `why`
 * (constant). RPC_ACTS, as in the beginning: let all in. */
void rpc_site_admit(struct rpc_site *site, enum rpc_effect first, struct str why);

/* Tell every open call that the daemon stops; new calls that do more than read are refused. */
void rpc_site_stop(struct rpc_site *site);

/* The same for a site that goes on to let calls in: its handlers decide which. */
void rpc_site_warn(struct rpc_site *site);

/* The shutdown deadline passed: end every open call CANCELLED (trailers, no forged frame). */
void rpc_site_cut(struct rpc_site *site);

/* One more field of initial metadata (copied) on everything that is answered here with a gRPC
 * status, also on what is refused before a handler hears of it; 16 at most. */
void rpc_site_always(struct rpc_site *site, struct str name, struct str value);

/* How long a peer may read nothing while bytes wait for it, 30 s at first: then its stream is
 * reset with the code that gRPC clients show as RESOURCE_EXHAUSTED. */
void rpc_site_stall_limit(struct rpc_site *site, uint64_t limit_ms);

/* --- inside a call ----------------------------------------------------------------------- */

const struct rpc_method *rpc_method(const struct rpc_call *call);
const struct rpc_identity *rpc_identity(const struct rpc_call *call);
bool rpc_is_stopping(const struct rpc_call *call); /* also of a call that came after that */
struct loop *rpc_loop(const struct rpc_call *call);
struct exchange *rpc_exchange(struct rpc_call *call);

/* What the client sent along; lent until authenticate() or open() has returned, then the
 * request's header section is given back.
 *
 * The first field of this name as sent (that of a -bin key is base64); at == NULL when absent.
 * `*ret_count`, when asked for, says how many fields there are. */
struct lent rpc_metadata(const struct rpc_call *call, struct str key, size_t *ret_count);

/* The value number `index`, from 0, as sent; at == NULL when there are no more. Values of a
 * -bin key count one by one, whether they came in fields of their own or joined by commas. */
struct lent rpc_metadata_at(const struct rpc_call *call, struct str key, size_t index);

/* The bytes of that value of a -bin key, appended to `out`.
 * errors  ERR_NOT_FOUND there are no more; ERR_INTERNAL no base64; ERR_TOO_LARGE past the
 *         limit of `out` */
MUST_CHECK bool rpc_metadata_bin(const struct rpc_call *call, struct str key, size_t index,
                                 struct buf *out, struct err *e);

/* A copy that lives as long as the call, and ends in NUL. */
struct str rpc_keep(struct rpc_call *call, struct str text);

/* Milliseconds left of the client's deadline and ours, whichever is nearer; UINT64_MAX
 * without one. */
uint64_t rpc_time_left_ms(const struct rpc_call *call);

/* Ready for the next message; with none, half_closed may come. Neither comes before this
 * returns. Until then the client's window fills and it has to wait. */
void rpc_next(struct rpc_call *call);

/* Whether the client has half-closed and every message that it sent was handed over: after the
 * next rpc_next() there is only half_closed. */
bool rpc_client_is_done(const struct rpc_call *call);

/* Whether the message handed over last came compressed. */
bool rpc_came_compressed(const struct rpc_call *call);

/* One more field of initial metadata (copied), 16 at most, before the headers are out: with
 * RPC_AT_ACCEPT that is inside open(). Names ending in -bin carry raw bytes, as in
 * rpc_trailer(). */
void rpc_header(struct rpc_call *call, struct str name, struct str value);

/* Compress the messages from here on, or no longer; nothing is compressed unless asked, since
 * most messages here are a few words. The first wish must come before the headers are out:
 * they announce it. Without effect when the client does not take gzip; a message that would
 * not get shorter goes as it is. */
enum rpc_compression { RPC_PLAIN, RPC_GZIP };
void rpc_compress(struct rpc_call *call, enum rpc_compression compression);

/* Send the response headers now. RPC_AT_ACCEPT has done it. */
void rpc_establish(struct rpc_call *call);
bool rpc_established(const struct rpc_call *call);

/* Add one message (copied), or encode it in place: begin lends the queue, the caller appends
 * the message's bytes to it (nothing else in between), end patches the length. Messages leave
 * at the end of the turn. One that no longer fits the queue ends the call RPC_STALLED; what is
 * sent until cancelled() says so is dropped. */
void rpc_send(struct rpc_call *call, struct str message);
struct buf *rpc_message_begin(struct rpc_call *call);
void rpc_message_end(struct rpc_call *call);

/* Bytes queued and not yet written; and a call of drained() when they fall to `low`. */
size_t rpc_queued(const struct rpc_call *call);
void rpc_wake_at(struct rpc_call *call, size_t low);
uint64_t rpc_stalled_ms(const struct rpc_call *call);

/* One more trailer for rpc_end (copied), 16 at most. Names ending in -bin carry raw bytes and
 * are base64-encoded here. */
void rpc_trailer(struct rpc_call *call, struct str name, struct str value);

/* End the call: trailers with the status and, unless OK, the message (percent-encoded).
 * Before anything was sent this is a trailers-only response. After it only closed() comes. */
void rpc_end(struct rpc_call *call, enum err_code code, struct str message);

#endif
