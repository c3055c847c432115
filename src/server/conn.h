/* conn: one connection, between a transport and a protocol.
 *
 * The transport moves bytes (a socket, TLS on one, in tests a pair of buffers); the protocol
 * knows what they mean (HTTP/1 or HTTP/2, told apart by the first bytes). The connection
 * stands between them: it gathers what a loop turn produced into one write, keeps the unsent
 * rest while the peer does not read, and watches the clock.
 *
 *     transport ─▶ conn_receive ─▶ protocol->receive ─▶ owner's on_body
 *     transport ◀─ one send a turn ◀─ protocol->gather ◀─ exchange_send
 *
 *     OPEN ─▶ FINISHING ─▶ LINGERING ─▶ CUT          (and CUT from anywhere)
 *             what is made  the peer may             freed once the transport
 *             still leaves  read it in peace         is closed
 *
 * Private to server/: exchange.h is what the rest of the program sees.
 *
 * Memory   a connection frees itself after conn_cut(), when its transport says it is closed.
 *          An idle one holds no buffer: reading and gathering use those of its home.
 * Threads  belongs to its home's loop.
 */
#ifndef WEIR_SERVER_CONN_H
#define WEIR_SERVER_CONN_H

#include "base/list.h"
#include "loop/loop.h"
#include "server/address.h"
#include "server/pace.h"
#include "server/server.h"

#include <stdatomic.h>

struct arena;
struct conn;
struct nghttp2_session_callbacks;
struct nghttp2_option;

/* --- transports -------------------------------------------------------------------------- */

/* The transport calls conn_receive, conn_peer_ended, conn_writable, conn_broken, and
 * conn_closed at last; never from inside one of these. */
struct transport {
    const struct transport_kind *kind;
    struct conn *conn;
    size_t held; /* bytes it took and could not pass on yet */
};

struct transport_kind {
    /* How many of the bytes were taken, 0 when none can be now, -1 when it is broken. No
     * bytes at all: pass on what is held. */
    ptrdiff_t (*send)(struct transport *transport, struct str bytes);
    /* What to watch for. A transport that does not read still notices that the peer left. */
    void (*watch)(struct transport *transport, bool reading, bool writing);
    /* Say "no more bytes" to the peer. */
    void (*end)(struct transport *transport);
    /* Close; conn_closed() later, from the loop, and then the transport is gone. */
    void (*close)(struct transport *transport);
};

/* --- the home of connections: one a loop ------------------------------------------------- */

#define REFUSAL_MAX_BYTES (4 * KIB)
#define HOME_READ_BYTES (64 * KIB)
#define HOME_GATHER_BYTES (64 * KIB)
#define HOME_GATHER_ROOM (HOME_GATHER_BYTES + 96 * KIB)
#define HOME_TLS_ROOM (128 * KIB) /* for a record in part, a handshake, and their framing */
#define HOME_SPARES 4

struct home {
    struct loop *loop;
    struct list conns;
    char *read_bytes;   /* HOME_READ_BYTES, lent while reading; NULL at rest, like the next */
    char *gather_bytes; /* HOME_GATHER_ROOM, lent while writing */

    /* The same for TLS: decrypted, and encrypted. Without memory until there is a need. */
    struct buf tls_plain, tls_out;

    /* Big blocks that queues gave back, for the next queue that grows. */
    struct buf spares[HOME_SPARES];

    /* Nobody asked for anything for a while: all of these go. */
    struct timer rest;

    /* What every HTTP/2 session starts from; made with the first one. */
    struct nghttp2_session_callbacks *callbacks;
    struct nghttp2_option *options;

    /* "Sun, 06 Nov 1994 08:49:37 GMT" and the second it was made for. */
    char date[32];
    int64_t date_s;

    /* Read by any thread. */
    atomic_size_t conn_count, exchange_count;
    atomic_uint_fast64_t accepted, requests;

    /* Told when a connection has brought its first whole request, or is gone without one; and
     * asked whether one that has not must go. NULL: nobody counts. */
    void (*on_known)(struct home *home, const struct listener_options *listener,
                     const struct address_owner *owner);
    bool (*sends_away)(struct home *home, const struct listener_options *listener,
                       const struct address_owner *owner);

    /* Told about each connection that is gone, and whether it came late. May be NULL. */
    void (*on_gone)(struct home *home, const struct listener_options *listener, bool late,
                    void *ctx);
    void *ctx;
};

void home_init(struct home *home, struct loop *loop);
void home_done(struct home *home);

/* An exchange is over; where it was the last, its memory goes in a while. */
void home_settle(struct home *home);

/* Room to read, and to gather what is to be written. */
char *home_read_bytes(struct home *home);
char *home_gather_bytes(struct home *home);

/* Give a queue without memory a spare block; take the memory of an empty one. */
void home_lend_spare(struct home *home, struct buf *queue);
void home_take_spare(struct home *home, struct buf *queue);

/* What to say in a date field; valid until the next call. */
struct str home_date(struct home *home);

/* --- protocols --------------------------------------------------------------------------- */

/* Where a turn's bytes are gathered. A protocol stops when it is full; it may pass that line
 * by one frame, the room reaches farther. */
struct gather {
    char *at;
    size_t len;
};

static inline bool gather_full(const struct gather *gather) {
    return gather->len >= HOME_GATHER_BYTES;
}

static inline size_t gather_room(const struct gather *gather) {
    return HOME_GATHER_ROOM - gather->len;
}

void gather_append(struct gather *gather, struct str bytes);

#define CONN_NEVER UINT64_MAX

struct protocol {
    const char *name;
    void (*start)(struct conn *conn);
    void (*free)(struct conn *conn);
    /* Use all the bytes, or keep what must wait. */
    void (*receive)(struct conn *conn, struct str bytes);
    /* Turn what owners said (the exchanges in conn->dirty) into something to gather. */
    void (*settle)(struct conn *conn);
    void (*gather)(struct conn *conn, struct gather *gather);
    /* The exchange is about to go: keep no pointer to it. */
    void (*forget)(struct exchange *exchange);
    /* exchange_consumed() and exchange_authenticated(). */
    void (*consumed)(struct exchange *exchange, size_t len);
    void (*authenticated)(struct conn *conn);
    /* Whether it can take more bytes now. */
    bool (*wants_bytes)(const struct conn *conn);
    /* Refuse new requests, let the others end, then conn_finish(). */
    void (*shut_down)(struct conn *conn);
    /* The moment by which something is due from the peer, or CONN_NEVER ... */
    uint64_t (*due_ms)(const struct conn *conn);
    /* ... and that moment has come. */
    void (*overdue)(struct conn *conn);
};

extern const struct protocol protocol_http1, protocol_http2;

/* --- connections ------------------------------------------------------------------------- */

enum conn_state {
    CONN_OPEN,
    CONN_FINISHING, /* no more is read; what was said leaves */
    CONN_LINGERING, /* all of it has left: the peer may close */
    CONN_CUT,
    CONN_STATE_COUNT,
};

struct str conn_state_name(enum conn_state state);
bool conn_may_become(enum conn_state state, enum conn_state next);

#define CONN_PEER_BYTES 64

struct conn {
    uint32_t magic;
    enum conn_state state;
    struct home *home;
    struct transport *transport;
    const struct listener_options *listener;
    const struct server_limits *limits;
    const struct protocol *protocol; /* NULL until the first bytes have told */
    void *protocol_state;

    struct list link;      /* in home->conns */
    struct list exchanges; /* in order of arrival */
    size_t exchange_count;
    struct list dirty; /* exchanges whose owner said something since the last flush */

    struct task flush;
    struct timer timer; /* for the earliest of all deadlines */
    struct buf unsent;  /* what the peer did not take; empty while it reads */

    size_t queued_bytes; /* in the queues of all exchanges */
    uint64_t opened_ms;
    uint64_t stranger_ms; /* when it was last judged as one */
    uint64_t read_ms;     /* bytes last came */
    uint64_t progress_ms; /* bytes last left, or began to wait */
    struct pace pace;     /* of what the transport did not take */
    uint64_t idle_ms;     /* since when there is no exchange */
    uint64_t linger_ms;   /* until when the peer may read */
    uint64_t scan_ms;     /* when to look for exchanges nobody reads */
    size_t lingered_bytes;

    uint8_t preface_seen; /* bytes that matched the HTTP/2 preface so far */
    bool yields;          /* wrote enough for this turn */
    bool stopping;        /* shut_down was asked for */
    bool late;            /* it came while the server stopped */
    bool peer_ended;      /* there is nothing left to read */
    bool authenticated;
    bool peer_is_loopback;
    struct address_owner stranger; /* whose it is, until it has brought a whole request */
    char peer[CONN_PEER_BYTES];
};

struct conn_options {
    struct home *home;
    struct transport *transport;
    const struct listener_options *listener; /* with limits; borrowed until the conn is gone */
    struct str peer;
    bool peer_is_loopback;
    bool late;                     /* it comes while the server stops; told to on_gone */
    struct address_owner stranger; /* empty: it is counted nowhere */
};

struct conn *conn_new(const struct conn_options *options);

/* Bytes on their way that the peer did not take yet. */
static inline size_t conn_unsent_bytes(const struct conn *conn) {
    return conn->unsent.len + conn->transport->held;
}

/* From the transport. */
void conn_receive(struct conn *conn, struct str bytes);
void conn_peer_ended(struct conn *conn);       /* no more bytes will come */
void conn_peer_left_unread(struct conn *conn); /* the same, with bytes not read yet */
void conn_writable(struct conn *conn);
void conn_broken(struct conn *conn);
void conn_closed(struct conn *conn); /* frees it */

/* From protocols and the server. */
void conn_flush_soon(struct conn *conn);
void conn_finish(struct conn *conn); /* send what is there, then close */
void conn_cut(struct conn *conn, enum exchange_close how);
void conn_shut_down(struct conn *conn);
void conn_rearm(struct conn *conn); /* some deadline has changed */
void conn_known(struct conn *conn); /* it brought a whole request, or was answered */
void conn_watch(struct conn *conn); /* wants_bytes may have changed */

/* --- exchanges, as the protocols see them ------------------------------------------------- */

/* The request, in an arena of its own so that a long stream can forget it. */
struct request {
    struct arena *arena;
    struct str method, path, query, authority;
    struct field *fields;
    size_t field_count, field_room;
    int64_t content_length; /* -1 when none was sent */
};

/* A header or trailer section that waits to leave, in one block. */
struct section {
    int status; /* 0 for trailers */
    size_t count;
    struct field fields[];
};

struct exchange {
    struct conn *conn;
    struct list link, dirty;
    const struct exchange_events *events; /* NULL: answered by the server itself */
    void *ctx;
    struct request *request;
    struct section *head, *trailers; /* not yet with the protocol */
    struct buf out;
    size_t out_at;     /* where in `out` the unsent bytes begin */
    size_t counted;    /* of these, part of conn->queued_bytes */
    size_t unconsumed; /* body bytes the owner has not dealt with */
    size_t wake_low;
    size_t head_bytes;    /* HTTP/2: fields so far, as the limits count them */
    uint64_t progress_ms; /* bytes last left, or began to wait */
    struct pace pace;     /* of what waits here */
    int32_t stream_id;    /* HTTP/2 */
    enum exchange_abort abort_code;
    uint8_t http; /* enum exchange_http */
    bool accepted : 1;
    bool head_given : 1;
    bool ended : 1;         /* by the owner */
    bool aborted : 1;       /* by the owner */
    bool wakes : 1;         /* on_drained is wanted */
    bool request_ended : 1; /* its last byte has come */
    bool body_came : 1;
    bool is_head : 1;          /* the method: no body in the answer */
    bool expects_continue : 1; /* and has not got it yet */
    bool wants_trailers : 1;
    bool body_deferred : 1; /* HTTP/2: nghttp2 waits to be told about more bytes */
    bool response_sent : 1; /* HTTP/2: END_STREAM is out */
    bool peer_reset : 1;
    bool reset : 1;     /* HTTP/2: RST_STREAM is on its way */
    bool too_large : 1; /* the header section passed a limit */
};

struct exchange *exchange_new(struct conn *conn, enum exchange_http http);

/* Room for a request's fields up to the limits; an arena at its limit sets too_large. */
struct request *request_new(const struct server_limits *limits);
void request_free(struct request *request);
struct field *request_add(struct request *request);
const struct field *request_find(const struct request *request, struct str name);
/* Cut "path?query" in two. */
void request_set_target(struct request *request, struct str target);
/* Whether this is a host with an optional port and nothing else. */
bool request_authority_ok(struct str authority);

/* Hand the complete request to the listener; afterwards it is accepted. */
void exchange_begin(struct exchange *exchange);
void exchange_give_body(struct exchange *exchange, struct str bytes);
void exchange_give_end(struct exchange *exchange);

/* The server answers by itself: a status and a line of text. */
void exchange_refuse(struct exchange *exchange, int status);

/* The unsent bytes, and that `len` of them have left. */
static inline struct str exchange_unsent(const struct exchange *exchange) {
    return str_skip(buf_str(&exchange->out), exchange->out_at);
}
void exchange_left(struct exchange *exchange, size_t len);

/* When its peer last took something of it, or of what stands before it. */
uint64_t exchange_progress_ms(const struct exchange *exchange);

/* The owner has something for the protocol: flush at the end of the turn. */
void exchange_mark(struct exchange *exchange);

/* Call on_drained where it is due. */
void exchange_tell_drained(struct exchange *exchange);

/* The last of it: unlink, on_closed, free. */
void exchange_close(struct exchange *exchange, enum exchange_close how);

/* "Not Found" */
const char *status_text(int status);

#endif
