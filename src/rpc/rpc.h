/* rpc: gRPC calls over exchanges.
 *
 * A service is a table of methods. A method names its handler, how its stream ends, when it
 * counts as established, who may call it, and its limits. This module does what every call
 * needs before and after the handler: routing, content type, metadata, authentication,
 * grpc-timeout, message framing and limits, trailers, trailers-only errors.
 *
 *     open ─▶ message* ─▶ half_closed ─▶ (handler calls rpc_end)  ─▶ closed
 *       └────────────── cancelled: peer left, deadline, stop ───────────┘
 *
 * Memory   the call belongs to its exchange. A struct lent is valid during the callback; what
 *          the other getters return is valid until `closed`.
 * Threads  a site and its calls belong to one loop. Tables are read-only.
 * Source   grpc/PROTOCOL-HTTP2.md, grpc/statuscodes.md; checks.md group G.
 */
#ifndef WEIR_RPC_RPC_H
#define WEIR_RPC_RPC_H

#include "base/lent.h"
#include "base/rate_limits.h"
#include "server/exchange.h"
#include "stream/close.h"

struct rpc_call;
struct rpc_site;

enum rpc_kind { RPC_UNARY, RPC_CLIENT_STREAM, RPC_SERVER_STREAM, RPC_BIDI };

/* Who may call. There is no default: rpc_site_new() asserts that every row sets it, and that
 * the service of a row that needs a token has authenticate(). */
enum rpc_auth {
    RPC_TOKEN = 1, /* the service's authenticate() decides before a message is read */
    RPC_OPEN = 2,  /* anyone: health, reflection */
};

/* What a call does, for a site that does not admit everything (rpc_site_admit). */
enum rpc_effect {
    RPC_ACTS,
    RPC_READS,  /* it only reads and ends soon by itself */
    RPC_PROBES, /* it asks for the daemon's health */
};

/* When a call counts as established. From then on a failure is no longer a gRPC status but the
 * ending of its close mode. */
enum rpc_established {
    RPC_AT_ACCEPT,  /* response headers go out as soon as the call is open */
    RPC_BY_HANDLER, /* the handler says when (rpc_establish) */
};

enum rpc_cancel {
    RPC_PEER_LEFT, /* reset, or the connection broke */
    RPC_DEADLINE,  /* grpc-timeout, or the method's own bound; DEADLINE_EXCEEDED was sent */
    RPC_STALLED,   /* the peer did not read; it gets RESOURCE_EXHAUSTED */
    RPC_STOPPED,   /* the shutdown deadline, or rpc_hurry()'s, passed; CANCELLED was sent */
    RPC_BROKEN,    /* the peer broke the framing; the status was sent */
};

/* All callbacks run on the call's loop, one at a time per call. `ctx` is what open() returned.
 * Only open() is required; the others may be NULL. Any of them may call rpc_end(). */
struct rpc_handler {
    /* The call has passed every check. Returns the handler's own state; may call rpc_end(). */
    void *(*open)(struct rpc_call *call, void *service_ctx);
    /* One whole message. The first comes unasked, each further one only after rpc_next(). If
     * there must be exactly one, it comes after the client has half-closed. */
    void (*message)(struct rpc_call *call, struct lent message, void *ctx);
    /* A message is longer than the method allows. The handler may end the call in its own way;
     * otherwise the call is ended with `why`. */
    void (*too_large)(struct rpc_call *call, const struct err *why, void *ctx);
    /* The client will send no more. For RPC_UNARY and RPC_SERVER_STREAM this comes right
     * after the one message; the count of messages has been checked. */
    void (*half_closed)(struct rpc_call *call, void *ctx);
    /* Queued bytes fell to what rpc_wake_at() asked for. */
    void (*drained)(struct rpc_call *call, void *ctx);
    /* The daemon begins to stop; the call may go on until the deadline. */
    void (*stopping)(struct rpc_call *call, void *ctx);
    /* The call ended without the handler, and nothing more can be sent. Called at most once,
     * never from inside a function of this header. */
    void (*cancelled)(struct rpc_call *call, enum rpc_cancel why, void *ctx);
    /* The exchange is gone: free ctx. The last callback, called exactly once, also after
     * rpc_end(). */
    void (*closed)(void *ctx);
};

/* What counts against the rates of a site (rpc_site_rates). */
enum rpc_rated {
    RPC_RATED_CALL,     /* a call that needs a token */
    RPC_RATED_MESSAGES, /* the handler asks the two functions below for each of them */
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
    enum rpc_rated rated;
};

/* The caller, filled in by authenticate(). The ids live as long as the call. */
struct rpc_identity {
    bool known; /* false: authenticate() requires no token, or the row is open */
    struct str user, workspace;
};

struct rpc_service {
    struct str name; /* "crawbl.agentruntime.v1.AgentRuntime" */
    const struct rpc_method *methods;
    size_t method_count;
    size_t request_max_bytes; /* of all its methods, overrides their rows; 0: as in the rows */
    /* Fill *ret (ids copied with rpc_keep) or refuse with UNAUTHENTICATED. May read metadata.
     * NULL: no row needs a token. */
    bool (*authenticate)(struct rpc_call *call, void *ctx, struct rpc_identity *ret,
                         struct err *e);
    void *ctx; /* passed to authenticate() and open() */
};

/* --- sites: the services of one listener, on one loop ------------------------------------- */

/* `services` is borrowed until rpc_site_free(). */
struct rpc_site *rpc_site_new(struct loop *loop, const struct rpc_service *services,
                              size_t service_count);
void rpc_site_free(struct rpc_site *site); /* no call may be open */

/* For tests: whether each row of a service says who may call, and authenticate() is set if a
 * row needs it. */
bool rpc_service_ok(const struct rpc_service *service);

/* Whether a request is gRPC, judged by its content type and not by its method. */
bool rpc_wants(const struct exchange *exchange);

/* Serve one exchange; accepts it. */
void rpc_serve(struct rpc_site *site, struct exchange *exchange);

/* From now on refuse calls whose effect comes before `first` in the enum, with UNAVAILABLE and
 * `why` (constant). RPC_ACTS, the initial value, admits all. */
void rpc_site_admit(struct rpc_site *site, enum rpc_effect first, struct str why);

/* Notify every open call that the daemon stops, and refuse new calls that do more than read. */
void rpc_site_stop(struct rpc_site *site);

/* The same for a site that continues to admit calls, because its handlers decide. */
void rpc_site_warn(struct rpc_site *site);

/* The shutdown deadline has passed. End every open call as CANCELLED, with trailers and no
 * invented message. */
void rpc_site_cut(struct rpc_site *site);

/* Add a field of initial metadata (copied) to every answer with a gRPC status, including calls
 * refused before a handler runs. At most 16. */
void rpc_site_always(struct rpc_site *site, struct str name, struct str value);

/* Call `fn` for each caller that authenticate() refuses. */
typedef void rpc_refused_fn(const struct rpc_method *method, const struct err *why, void *ctx);
void rpc_site_refused(struct rpc_site *site, rpc_refused_fn *fn, void *ctx);

/* Count calls against the rates of their address, before authenticate(), and of their caller, after
 * it. Borrowed; NULL: no limits. A call that is refused gets RESOURCE_EXHAUSTED, with
 * google.rpc.RetryInfo in grpc-status-details-bin, and grpc-retry-pushback-ms. */
void rpc_site_rates(struct rpc_site *site, struct rate_limits *rates);

/* During a stop a reader that takes nothing for this long is not waited for: see rpc_hurry() and
 * rpc_end(). */
#define RPC_HURRY_PAUSE_MS 1000

/* Set how long a peer may read nothing while bytes wait for it; 30 s by default. After that its
 * stream is reset with the code that gRPC clients show as RESOURCE_EXHAUSTED. */
void rpc_site_stall_limit(struct rpc_site *site, uint64_t limit_ms);

/* --- inside a call ----------------------------------------------------------------------- */

const struct rpc_method *rpc_method(const struct rpc_call *call);
const struct rpc_identity *rpc_identity(const struct rpc_call *call);
bool rpc_is_stopping(const struct rpc_call *call); /* also true of calls that came later */
struct loop *rpc_loop(const struct rpc_call *call);
struct exchange *rpc_exchange(struct rpc_call *call);

/* The client's metadata. It is lent until authenticate() or open() has returned; then the
 * request's header section is released.
 *
 * Returns the first field of this name as sent (base64 for a -bin key); at == NULL when absent.
 * `*ret_count`, unless ret_count is NULL, receives the number of such fields. */
struct lent rpc_metadata(const struct rpc_call *call, struct str key, size_t *ret_count);

/* The value with this index, from 0, as sent; at == NULL when there are no more. Values of a
 * -bin key are counted one by one, whether they came in separate fields or joined by commas. */
struct lent rpc_metadata_at(const struct rpc_call *call, struct str key, size_t index);

/* The bytes of that value of a -bin key, appended to `out`.
 * errors  ERR_NOT_FOUND there are no more; ERR_INTERNAL not base64; ERR_TOO_LARGE past the
 *         limit of `out` */
MUST_CHECK bool rpc_metadata_bin(const struct rpc_call *call, struct str key, size_t index,
                                 struct buf *out, struct err *e);

/* Count a message of an RPC_RATED_MESSAGES call, or a call whose handler decides who may call,
 * against the rate of its address, and of its caller, who may be empty.
 * errors  ERR_RESOURCE_EXHAUSTED with retry_after_ms */
MUST_CHECK bool rpc_take_address_rate(struct rpc_call *call, struct err *e);
MUST_CHECK bool rpc_take_caller_rate(struct rpc_call *call, struct str caller, struct err *e);

/* Whom the token names, for rpc_take_caller_rate(); empty: no one. */
#define RPC_CALLER_BYTES 1024
struct str rpc_caller(const struct rpc_call *call, char room[static RPC_CALLER_BYTES]);

/* Copy text for the life of the call. The copy ends in NUL. */
struct str rpc_keep(struct rpc_call *call, struct str text);

/* Milliseconds until the client's deadline or ours, whichever is earlier; UINT64_MAX without
 * one. */
uint64_t rpc_time_left_ms(const struct rpc_call *call);

/* Say that the handler is ready for the next message. If there is none, half_closed may come.
 * Neither is called before this returns. Until rpc_next() is called the client's window fills
 * and the client has to wait. */
void rpc_next(struct rpc_call *call);

/* Whether the client has half-closed and all its messages were handed over, so that only
 * half_closed follows the next rpc_next(). */
bool rpc_client_is_done(const struct rpc_call *call);

/* Whether the last message handed over came compressed. */
bool rpc_came_compressed(const struct rpc_call *call);

/* Add a field of initial metadata (copied), 16 at most, before the headers are sent; with
 * RPC_AT_ACCEPT that means inside open(). Names ending in -bin take raw bytes, as in
 * rpc_trailer(). */
void rpc_header(struct rpc_call *call, struct str name, struct str value);

/* Switch compression of further messages on or off. It is off by default, because most messages
 * are a few words. The first call must come before the headers are sent, because they announce
 * compression. It has no effect if the client does not accept gzip. A message that would not
 * get shorter is sent uncompressed. */
enum rpc_compression { RPC_PLAIN, RPC_GZIP };
void rpc_compress(struct rpc_call *call, enum rpc_compression compression);

/* Send the response headers now. RPC_AT_ACCEPT has done it. */
void rpc_establish(struct rpc_call *call);
bool rpc_established(const struct rpc_call *call);

/* Queue one message (copied), or encode it in place: begin lends the queue, the caller appends
 * the message's bytes to it (and makes no other call in between), end fills in the length.
 * Messages are sent at the end of the loop's turn. A message that does not fit in the queue
 * ends the call as RPC_STALLED; messages sent before cancelled() runs are dropped. */
void rpc_send(struct rpc_call *call, struct str message);
struct buf *rpc_message_begin(struct rpc_call *call);
void rpc_message_end(struct rpc_call *call);

/* The same for messages whose length is known: room for `max_bytes` of them with their prefixes
 * (grpc_put_prefix), or NULL when they are dropped. rpc_messages_put() says how many bytes were
 * filled; no other call comes in between. Not for a call that compresses. */
char *rpc_messages_room(struct rpc_call *call, size_t max_bytes);
void rpc_messages_put(struct rpc_call *call, size_t len);

/* Bytes queued and not yet written; the same for one that waits when they are many (see
 * exchange_pressure); ask for drained() when they fall to `low`; how long the peer has not read. */
size_t rpc_queued(const struct rpc_call *call);
size_t rpc_pressure(const struct rpc_call *call);
void rpc_wake_at(struct rpc_call *call, size_t low);
uint64_t rpc_stalled_ms(const struct rpc_call *call);

/* The daemon stops, and the call goes on for a reader that reads. One that takes nothing for
 * RPC_HURRY_PAUSE_MS, or is not done after `within_ms`, is ended: with CANCELLED and `why`
 * (constant) if nothing waits to be read. Else trailers would not arrive, so the stream is
 * reset, with the code that gRPC clients show as CANCELLED. Then cancelled(RPC_STOPPED) is
 * called. */
void rpc_hurry(struct rpc_call *call, uint64_t within_ms, struct str why);

/* Add a trailer for rpc_end (copied), 16 at most. Names ending in -bin take raw bytes, which
 * are base64-encoded here. */
void rpc_trailer(struct rpc_call *call, struct str name, struct str value);

/* End the call with trailers: the status and, unless OK, the message (percent-encoded). If
 * nothing was sent before, this is a trailers-only response. Afterwards only closed() is
 * called. What waits to be read goes first. If the daemon stops and the code is CANCELLED, that
 * is waited for no longer than by rpc_hurry(). */
void rpc_end(struct rpc_call *call, enum err_code code, struct str message);

#endif
