/* socketio: a Socket.IO 5 server over Engine.IO 4, by WebSocket and by long polling.
 *
 * A client has one session (Engine.IO), carried by long polling, by a WebSocket, or first by
 * one and then by the other. In a session it connects to namespaces; each of these connections
 * is a socket. Sockets join rooms, and an event is emitted to a room.
 *
 *     emit, any thread ─▶ encoded once ─▶ each loop: the members of the room ─▶ their lines
 *
 * An emit never waits for a client. What a client has not taken waits in its own queue, and a
 * client whose queue is full loses its session. So does one that answers no ping, unless it still
 * takes what was queued before it. An owner that can wait looks at socketio_queued().
 *
 * Memory   a socket is valid from its `connect` until its `disconnected` has returned, or until
 *          socketio_refuse(). Queues are bounded by queue_max_bytes a client; a text that many
 *          clients wait for is held once.
 * Threads  a socket belongs to one loop for life: all hooks run there, and all functions that
 *          take a socket must be called there. socketio_emit() and socketio_counts(): any.
 * Source   Engine.IO protocol 4, Socket.IO protocol 5 (socket.io/docs/v4); contracts/crawbl.md
 *          5.3 for the defaults.
 */
#ifndef WEIR_SOCKETIO_SOCKETIO_H
#define WEIR_SOCKETIO_SOCKETIO_H

#include "route/route.h"
#include "wire/json.h"

struct socketio;
struct socketio_socket;

/* --- what the owner brings ----------------------------------------------------------------- */

/* Why a socket is gone. */
enum socketio_reason {
    SOCKETIO_CLIENT_LEFT,    /* it disconnected, or its connection closed */
    SOCKETIO_SERVER_LEFT,    /* socketio_disconnect() */
    SOCKETIO_TIMEOUT,        /* it did not answer a ping, or never came back */
    SOCKETIO_LAGGED,         /* its queue was full */
    SOCKETIO_PROTOCOL_ERROR, /* it sent what Socket.IO does not allow */
    SOCKETIO_STOPPING,
    SOCKETIO_REASON_COUNT,
};

/* "client left" */
struct str socketio_reason_name(enum socketio_reason reason);

struct socketio_message {
    struct str event;
    struct json data; /* the first argument; JSON_NONE when there is none */
    struct json args; /* the array as sent: the name of the event, then all arguments */
    int64_t ack;      /* pass it to socketio_ack(); -1: the client wants none */
};

/* An event has arrived. Everything in `message` is valid until this returns. It may call any
 * function of this header. */
typedef void socketio_event_fn(struct socketio_socket *socket,
                               const struct socketio_message *message, void *ctx);

struct socketio_event {
    struct str name; /* empty: any event without a row of its own; the last row */
    socketio_event_fn *fn;
};

struct socketio_namespace {
    struct str name; /* "/v1"; "/" is the one a client connects to by default */

    /* A client wants to connect. Look at socketio_header() and at `auth` (borrowed; JSON_NONE
     * when it sent none), then call socketio_accept() or socketio_refuse(), now or later. Later
     * only while `disconnected` has not been called. NULL: everyone is accepted. */
    void (*connect)(struct socketio_socket *socket, struct json auth, void *ctx);

    /* The socket is gone, also one that `connect` has not decided about yet. Called once for
     * each socket that was not refused; never from inside a function of this header. */
    void (*disconnected)(struct socketio_socket *socket, enum socketio_reason why, void *ctx);

    const struct socketio_event *events; /* an event in none of the rows is ignored */
    size_t event_count;
    void *ctx;
};

struct socketio_options {
    struct loop *const *loops; /* of the server; borrowed */
    size_t loop_count;
    const struct socketio_namespace *namespaces; /* 64 at most, borrowed; others are refused */
    size_t namespace_count;

    /* Request headers of the opening request that are kept for socketio_header(), at most 16;
     * lower case, borrowed. */
    const struct str *headers;
    size_t header_count;

    /* Web pages that may connect, besides those of http.origins and our own: an origin as a
     * browser writes it. An asterisk as the port stands for any port and for none, an asterisk
     * as the first label for every name below the rest. Borrowed. */
    const struct str *origins;
    size_t origin_count;

    /* 0: the default of the sheet, in brackets. */
    uint64_t ping_interval_ms;   /* 25,000 */
    uint64_t ping_timeout_ms;    /* 20,000 */
    uint64_t connect_timeout_ms; /* 45,000: without any namespace */
    size_t payload_max_bytes;    /* 1,000,000: of a message or a polling body from a client */
    size_t queue_max_bytes; /* 1 MiB: waiting for one client; an eighth of it while memory is
                                  * scarce */
    size_t sessions_max;    /* 16,384: more are refused with 503 */
};

/* The origins of the sheet: localhost, https below crawbl.com, crawbl://app. */
extern const struct str socketio_default_origins[3];

/* --- a server ------------------------------------------------------------------------------ */

/* Loads libwslay, so it blocks. The caller owns the result and ends it with socketio_free().
 * errors  ERR_UNAVAILABLE libwslay is not installed */
MUST_CHECK bool socketio_new(const struct socketio_options *options, struct socketio **ret,
                             struct err *e);

/* Its route, /socket.io/, for the sites of its loops. The route is behind no token, as the
 * namespaces decide who may connect; the rules for web pages hold. Valid until
 * socketio_free(). */
const struct route_table *socketio_routes(struct socketio *server);

/* Whether new sessions may begin, as they may at first. Until then a client gets 503 and comes again;
 * one that a namespace has refused does not. Any thread. */
void socketio_admit(struct socketio *server, bool admits);

/* Refuse new sessions. Those that are open outlive route_site_stop() now and are the owner's to end,
 * with socketio_stop(). Any thread. */
void socketio_drain(struct socketio *server);

/* How many messages wait for a poller to come for them. Any thread. */
size_t socketio_waiting(const struct socketio *server);

/* Close all sessions and refuse new ones. Call it, or socketio_drain(), before route_site_stop(), or
 * sockets leave for another reason than SOCKETIO_STOPPING. on_stopped runs once, on loops[0], when
 * none is left. Events emitted from now on are dropped. On the thread of loops[0], once. */
void socketio_stop(struct socketio *server, void (*on_stopped)(void *ctx), void *ctx);

/* After on_stopped, when all connections are closed and no loop runs. Accepts NULL. */
void socketio_free(struct socketio *server);

struct socketio_counts {
    size_t sessions, sockets;
    uint64_t opened;   /* sessions since start */
    uint64_t upgraded; /* of these, from polling to WebSocket */
    uint64_t refused;  /* CONNECT_ERROR */
    uint64_t received; /* events from clients */
    uint64_t emitted;  /* calls of socketio_emit() and socketio_send() */
    uint64_t sent;     /* the same, for each client that got it */
    uint64_t lagged;   /* clients that lost their session for a full queue */
};

/* Any thread; a snapshot. */
struct socketio_counts socketio_counts(const struct socketio *server);

/* Send an event with one argument to every member of a room. `json` is one JSON value, or empty
 * for an event without an argument. An empty room means all sockets of the namespace. Each
 * socket is also alone in a room named by its id. Events that one thread emits arrive in that
 * order. One of more than 16 MiB is dropped, with a warning. Any thread. */
void socketio_emit(struct socketio *server, struct str name_space, struct str room,
                   struct str event, struct str json);

/* --- a socket ------------------------------------------------------------------------------ */

struct str socketio_id(const struct socketio_socket *socket); /* 20 letters and digits */
struct loop *socketio_loop(const struct socketio_socket *socket);

/* A kept header of the opening request; at == NULL when it was absent. Valid as long as the
 * socket. */
struct str socketio_header(const struct socketio_socket *socket, struct str lower_case_name);

/* The client's address, as exchange_peer() writes it. */
struct str socketio_peer(const struct socketio_socket *socket);

/* Decide about a socket that `connect` was called for. `user` comes back from socketio_user().
 */
void socketio_accept(struct socketio_socket *socket, void *user);

/* CONNECT_ERROR {"message": message, "data": data}; `data` is JSON, or empty for none. The
 * socket is gone when this returns; its `disconnected` is not called. */
void socketio_refuse(struct socketio_socket *socket, struct str message, struct str data);

/* What socketio_accept() got; NULL before. */
void *socketio_user(const struct socketio_socket *socket);

/* At most SOCKETIO_ROOMS_MAX rooms a socket; false beyond. Joining twice changes nothing. */
#define SOCKETIO_ROOMS_MAX 256
MUST_CHECK bool socketio_join(struct socketio_socket *socket, struct str room);
void socketio_leave(struct socketio_socket *socket, struct str room);
bool socketio_is_in(const struct socketio_socket *socket, struct str room);

/* Send an event to this socket alone; `json` as in socketio_emit(). */
void socketio_send(struct socketio_socket *socket, struct str event, struct str json);

/* Bytes that wait for this socket's client. 0 when its connection is on another loop. */
size_t socketio_queued(const struct socketio_socket *socket);

/* Answer an event. `json` is one JSON value or empty. Harmless with ack -1. */
void socketio_ack(struct socketio_socket *socket, int64_t ack, struct str json);

/* Send DISCONNECT; `disconnected` follows in a later turn. Events that arrive until then are
 * dropped. The client's other namespaces stay. */
void socketio_disconnect(struct socketio_socket *socket);

#endif
