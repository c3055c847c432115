/* conn: one connection, between a transport and a protocol.
 *
 * The transport moves bytes: a socket, TLS over a socket, or a pair of buffers in tests. The
 * protocol interprets them: HTTP/1 or HTTP/2, chosen by the first bytes. The connection sits
 * between the two. It gathers the output of a loop turn into one write, keeps the unsent rest
 * while the peer does not read, and enforces timeouts.
 *
 *     transport ─▶ conn_receive ─▶ protocol->receive ─▶ owner's on_body
 *     transport ◀─ one send a turn ◀─ protocol->gather ◀─ exchange_send
 *
 *     OPEN ─▶ FINISHING ─▶ LINGERING ─▶ CUT          (and CUT from anywhere)
 *             what is made  the peer may             freed once the transport
 *             still leaves  read it in peace         is closed
 *
 * Private to server/; the rest of the program uses exchange.h.
 *
 * Memory   a connection frees itself after conn_cut(), once its transport has closed. An idle
 *          connection holds no buffers: reading and gathering use those of its home.
 * Threads  belongs to its home's loop.
 */
#ifndef WEIR_SERVER_CONN_H
#define WEIR_SERVER_CONN_H

#include "base/list.h"
#include "base/region.h"
#include "base/states.h"
#include "loop/loop.h"
#include "server/address.h"
#include "server/pace.h"
#include "server/server.h"
#include "tls/records.h"

#include <stdatomic.h>

struct arena;
struct conn;
struct nghttp2_session_callbacks;
struct nghttp2_option;

/* --- transports -------------------------------------------------------------------------- */

/* The transport calls conn_receive, conn_peer_ended, conn_writable, conn_broken and finally
 * conn_closed, never from inside one of its own functions. */
struct transport {
    const struct transport_kind *kind;
    struct conn *conn;
    size_t held; /* bytes it accepted and could not pass on yet */
};

struct transport_kind {
    /* Returns how many bytes were accepted: 0 if none can be accepted now, -1 if the transport
     * is broken. With empty `bytes`, pass on the held bytes. */
    ptrdiff_t (*send)(struct transport *transport, struct str bytes);
    /* Events to watch for. Even without reading, the transport notices when the peer leaves. */
    void (*watch)(struct transport *transport, bool reading, bool writing);
    /* Tell the peer that no more bytes will follow. */
    void (*end)(struct transport *transport);
    /* Close. Calls conn_closed() later, from the loop; the transport is freed then. */
    void (*close)(struct transport *transport);
};

/* --- the home of connections: one a loop ------------------------------------------------- */

#define REFUSAL_MAX_BYTES (4 * KIB)
#define HOME_READ_BYTES (64 * KIB)
/* The most that conn_receive() is given: what was read, and of TLS what an earlier read had left of a
 * record. */
#define HOME_RECEIVE_MAX_BYTES (HOME_READ_BYTES + RECORDS_ROOM_BYTES)
#define HOME_GATHER_BYTES (64 * KIB)
#define HOME_GATHER_ROOM (HOME_GATHER_BYTES + 96 * KIB)
#define HOME_TLS_ROOM (128 * KIB) /* for a record in part, a handshake, and their framing */
#define HOME_SPARES 4

struct home {
    struct loop *loop;
    struct list conns;
    char *read_bytes;   /* HOME_READ_BYTES, lent while reading; NULL at rest, like the next */
    char *gather_bytes; /* HOME_GATHER_ROOM, lent while writing */

    /* The same for TLS: decrypted and encrypted bytes. Allocated on first use. */
    struct buf tls_plain, tls_out;

    /* Blocks that queues returned, the largest of them, for the next queue that grows. */
    struct buf spares[HOME_SPARES];

    /* Frees all of these after a while without requests. */
    struct timer rest;
    bool shut_down; /* then no timer runs: another thread ends the home while its loop turns */

    /* Shared by all HTTP/2 sessions; created with the first one. */
    struct nghttp2_session_callbacks *callbacks;
    struct nghttp2_option *options;

    /* Memory of HTTP/2 sessions, and those of them that are awake: http2_memory.h. */
    struct region_pool regions;
    struct list awake;
    struct timer look;

    /* "Sun, 06 Nov 1994 08:49:37 GMT" and the second it stands for. */
    char date[32];
    int64_t date_s;

    /* Read by any thread. */
    atomic_size_t conn_count, exchange_count;
    atomic_uint_fast64_t accepted, requests, slow_cut;

    /* on_known: a connection has sent its first whole request, or closed without one.
     * sends_away: whether a connection that has not must be closed. NULL: not counted. */
    void (*on_known)(struct home *home, const struct listener_options *listener,
                     const struct address_owner *owner);
    bool (*sends_away)(struct home *home, const struct listener_options *listener,
                       const struct address_owner *owner);

    /* Called for each closed connection; `late`: it arrived during the stop. May be NULL. */
    void (*on_gone)(struct home *home, const struct listener_options *listener, bool late,
                    void *ctx);
    void *ctx;
};

void home_init(struct home *home, struct loop *loop);
void home_done(struct home *home);

/* An exchange is over. After the last one, the home's memory is freed after a while. */
void home_settle(struct home *home);

/* The server stops: no timer of the home runs from now on. On the home's loop. */
void home_shut_down(struct home *home);

/* The buffers for reading and for gathering output. */
char *home_read_bytes(struct home *home);

/* Give a queue without memory a spare block; take the memory of an empty one. */
void home_lend_spare(struct home *home, struct buf *queue);
void home_take_spare(struct home *home, struct buf *queue);

/* The value for a date field; valid until the next call. */
struct str home_date(struct home *home);

/* --- protocols --------------------------------------------------------------------------- */

/* Collects the output of a turn. A protocol stops when it is full. It may overshoot by one
 * frame; the buffer has room for that. */
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
    /* Consume all the bytes, or keep the ones that must wait. */
    void (*receive)(struct conn *conn, struct str bytes);
    /* Turn the owners' output (the exchanges in conn->dirty) into frames to gather. */
    void (*settle)(struct conn *conn);
    void (*gather)(struct conn *conn, struct gather *gather);
    /* Pass bytes to the transport at once: see conn_send_now(). False: they must be queued. Only
     * while nothing waits in the exchange or its connection. NULL: it never does. */
    bool (*send_now)(struct exchange *exchange, struct str bytes);
    /* The exchange is about to be freed: drop all pointers to it. */
    void (*forget)(struct exchange *exchange);
    /* exchange_consumed() and exchange_authenticated(). */
    void (*consumed)(struct exchange *exchange, size_t len);
    void (*authenticated)(struct conn *conn);
    /* Whether it can take more bytes now. */
    bool (*wants_bytes)(const struct conn *conn);
    /* Refuse new requests, let running ones finish, then call conn_finish(). */
    void (*shut_down)(struct conn *conn);
    /* The time by which the peer must send something, or CONN_NEVER ... */
    uint64_t (*due_ms)(const struct conn *conn);
    /* ... called when that time has come. */
    void (*overdue)(struct conn *conn);
};

extern const struct protocol protocol_http1, protocol_http2;

/* --- connections ------------------------------------------------------------------------- */

enum conn_state {
    CONN_OPEN,
    CONN_FINISHING, /* reading has stopped; queued output still leaves */
    CONN_LINGERING, /* all output has left; waits for the peer to close */
    CONN_CUT,
    CONN_STATE_COUNT,
};

extern const struct state conn_states[CONN_STATE_COUNT];

#define CONN_PEER_BYTES 64

struct conn {
    uint32_t magic;
    enum conn_state state;
    struct home *home;
    struct transport *transport;
    const struct listener_options *listener;
    const struct server_limits *limits;
    const struct protocol *protocol; /* NULL until the first bytes decide */
    void *protocol_state;

    struct list link;      /* in home->conns */
    struct list exchanges; /* in order of arrival */
    size_t exchange_count;
    struct list dirty;   /* exchanges with new output since the last flush */
    struct list waiting; /* exchanges that could go on, if there were room; the first is next */

    struct task flush;
    struct timer timer; /* for the earliest of all deadlines */
    struct buf unsent;  /* output the peer has not accepted; empty while it reads */

    size_t queued_bytes; /* in the queues of all exchanges */
    uint64_t opened_ms;
    uint64_t stranger_ms; /* when it was last judged as a stranger */
    uint64_t read_ms;     /* when bytes last arrived */
    uint64_t progress_ms; /* when bytes last left, or began to wait */
    struct pace pace;     /* of the bytes the transport did not accept */
    uint64_t idle_ms;     /* since when there has been no exchange */
    uint64_t linger_ms;   /* until when the peer may read */
    uint64_t scan_ms;     /* when to look for exchanges that are not read */
    size_t lingered_bytes;

    uint8_t preface_seen; /* bytes that matched the HTTP/2 preface so far */
    bool yields;          /* wrote enough for this turn */
    bool blocked;         /* the last flush left bytes that the peer has no room for */
    bool window_shut;     /* HTTP/2: its window for the whole connection is used up */
    bool stopping;        /* shut_down was asked for */
    bool late;            /* it arrived while the server was stopping */
    bool peer_ended;      /* there is nothing left to read */
    bool authenticated;
    bool peer_is_loopback;
    struct address_owner owner;    /* of its peer's address */
    struct address_owner stranger; /* the same, until it has sent a whole request */
    char peer[CONN_PEER_BYTES];
};

struct conn_options {
    struct home *home;
    struct transport *transport;
    const struct listener_options *listener; /* with limits; borrowed until the conn is gone */
    struct str peer;
    bool peer_is_loopback;
    bool late;                  /* it arrives while the server stops; passed to on_gone */
    struct address_owner owner; /* empty: not counted */
};

struct conn *conn_new(const struct conn_options *options);

/* Bytes on their way that the peer has not accepted yet. */
static inline size_t conn_unsent_bytes(const struct conn *conn) {
    return conn->unsent.len + conn->transport->held;
}

/* Whether owners that can wait must: the peer takes nothing, and the rest of the room is for answers
 * that cannot wait. While it takes something, streams that it does not read hold up no other. */
static inline bool conn_is_full(const struct conn *conn) {
    size_t limit = conn->limits->connection_max_bytes;
    return conn->blocked && conn->queued_bytes + conn_unsent_bytes(conn) >= limit - limit / 4;
}

/* Mark the exchange when the connection is no longer blocked, or half of its room is free. */
void conn_await_room(struct conn *conn, struct exchange *exchange);

/* From the transport. */
void conn_receive(struct conn *conn, struct str bytes);
void conn_peer_ended(struct conn *conn);       /* no more bytes will come */
void conn_peer_left_unread(struct conn *conn); /* the same, with bytes not read yet */
void conn_writable(struct conn *conn);
void conn_broken(struct conn *conn);
void conn_closed(struct conn *conn); /* frees it */

/* From protocols and the server. */
void conn_flush_soon(struct conn *conn);
/* Send bytes in front of which nothing waits; the rest of them waits like any other. False: the
 * transport is broken. Nothing was sent, and the next flush finds out. */
bool conn_send_now(struct conn *conn, struct str bytes);
void conn_finish(struct conn *conn); /* send what is there, then close */
void conn_cut(struct conn *conn, enum exchange_close how);
void conn_shut_down(struct conn *conn);
void conn_rearm(struct conn *conn); /* a deadline has changed */
void conn_known(struct conn *conn); /* it sent a whole request, or was answered */
void conn_watch(struct conn *conn); /* wants_bytes may have changed */

/* --- exchanges, as the protocols see them ------------------------------------------------- */

/* The request, in its own arena so that a long stream can free it. */
struct request {
    struct arena *arena;
    struct str method, path, query, authority;
    struct field *fields;
    size_t field_count, field_room;
    int64_t content_length; /* -1 when none was sent */
};

/* A header or trailer section waiting to be sent, in one block. */
struct section {
    int status; /* 0 for trailers */
    size_t count;
    struct field fields[];
};

struct exchange {
    struct conn *conn;
    const struct exchange_events *events; /* NULL: answered by the server itself */
    void *ctx;
    struct list dirty;
    struct section *head; /* not yet passed to the protocol */
    struct buf out;
    size_t out_at;        /* where in `out` the unsent bytes begin */
    size_t counted;       /* how many of these conn->queued_bytes includes */
    uint64_t progress_ms; /* when bytes last left, or began to wait */
    struct pace pace;     /* of the bytes waiting here */
    int32_t stream_id;    /* HTTP/2 */
    enum exchange_abort abort_code;
    uint8_t http; /* enum exchange_http */
    bool accepted : 1;
    bool head_given : 1;
    bool ended : 1;         /* by the owner */
    bool aborted : 1;       /* by the owner */
    bool wakes : 1;         /* on_drained is wanted */
    bool request_ended : 1; /* its last byte has arrived */
    bool body_came : 1;
    bool is_head : 1;          /* method HEAD: no body in the response */
    bool expects_continue : 1; /* and has not received it yet */
    bool wants_trailers : 1;
    bool body_deferred : 1; /* HTTP/2: nghttp2 waits for a call that resumes the data */
    bool response_sent : 1; /* HTTP/2: END_STREAM was sent */
    bool peer_reset : 1;
    bool reset : 1;     /* HTTP/2: RST_STREAM is on its way */
    bool too_large : 1; /* the header section passed a limit */

    /* not used for each piece of a long response */
    struct list link, waits;
    struct request *request;
    struct section *trailers; /* not yet passed to the protocol */
    size_t unconsumed;        /* body bytes the owner has not consumed */
    size_t wake_low;
    size_t head_bytes; /* HTTP/2: size of the fields so far, as the limits count it */
};

struct exchange *exchange_new(struct conn *conn, enum exchange_http http);

/* Holds a request's fields up to the limits; an arena at its limit sets too_large. */
struct request *request_new(const struct server_limits *limits);
void request_free(struct request *request);
struct field *request_add(struct request *request);
const struct field *request_find(const struct request *request, struct str name);
/* Cut "path?query" in two. */
void request_set_target(struct request *request, struct str target);
/* Whether this is a host with an optional port and nothing else. */
bool request_authority_ok(struct str authority);

/* Pass the complete request to the listener, which accepts it. */
void exchange_begin(struct exchange *exchange);
void exchange_give_body(struct exchange *exchange, struct str bytes);
void exchange_give_end(struct exchange *exchange);

/* Answer without the listener: a status and a line of text. */
void exchange_refuse(struct exchange *exchange, int status);

/* The unsent bytes; exchange_left() says that `len` of them have left. */
static inline struct str exchange_unsent(const struct exchange *exchange) {
    return str_skip(buf_str(&exchange->out), exchange->out_at);
}
void exchange_left(struct exchange *exchange, size_t len);

/* When the peer last accepted bytes of this exchange, or of the output queued before it. */
uint64_t exchange_progress_ms(const struct exchange *exchange);

/* The owner has new output: flush at the end of the turn. */
void exchange_mark(struct exchange *exchange);

/* The flush has it: count what waits, and call on_drained if that is due. */
void exchange_settle(struct exchange *exchange);

/* End the exchange: unlink it, call on_closed, free it. */
void exchange_close(struct exchange *exchange, enum exchange_close how);

/* "Not Found" */
const char *status_text(int status);

#endif
