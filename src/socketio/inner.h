/* inner: what the parts of socketio/ share. Private to it; the rest of the program uses
 * socketio.h.
 *
 *     socketio      one server: options, the map of session ids, the route
 *     branch        the part of it on one loop: its peers and its rooms
 *     peer          one session of a client (Engine.IO), on one branch for life
 *     line          one connection that carries a peer: a WebSocket, a waiting GET, a POST
 *     socket        a peer in one namespace (Socket.IO)
 *     room, member  sockets of a branch that get the same events
 *
 * A line belongs to the loop that accepted its connection, which need not be the loop of its
 * peer: long polling opens connections, and an upgrade comes on another one. So the two call
 * each other directly on one loop and by mail between loops (line.h).
 */
#ifndef WEIR_SOCKETIO_INNER_H
#define WEIR_SOCKETIO_INNER_H

#include "base/map.h"
#include "base/states.h"
#include "base/text.h"
#include "loop/loop.h"
#include "socketio/line.h"
#include "socketio/packet.h"
#include "socketio/parcel.h"
#include "socketio/socketio.h"

#include <pthread.h>
#include <stdatomic.h>

/* --- a server ------------------------------------------------------------------------------ */

struct branch {
    struct socketio *server;
    struct loop *loop;
    struct list peers;
    struct map *rooms;          /* key: see room_key() */
    atomic_size_t socket_count; /* those in rooms; read by any thread */
    bool stopped;
    struct mail stop, stop_done;
};

struct socketio {
    struct socketio_options options; /* with the defaults filled in */
    struct route_table table;
    pthread_mutex_t lock;
    struct map *ids; /* guarded by `lock`: session ids to peers */
    atomic_size_t session_count, socket_count;
    atomic_size_t crate_count; /* of all peers */
    atomic_bool shut;          /* new sessions are refused for now */
    atomic_bool draining;
    atomic_uint_fast64_t opened, upgraded, refused, received, emitted, sent, lagged;
    void (*on_stopped)(void *ctx);
    void *stopped_ctx;
    size_t running; /* branches that have not stopped; on loops[0] */
    size_t branch_count;
    struct branch branches[];
};

static inline void socketio_count(atomic_uint_fast64_t *counter, uint64_t more) {
    atomic_fetch_add_explicit(counter, more, memory_order_relaxed);
}

struct branch *socketio_branch(struct socketio *server, const struct loop *loop);

/* The peer with this session id, with a reference for the caller, or NULL. Any thread. */
struct peer *socketio_find(struct socketio *server, struct str id);
void socketio_enter(struct socketio *server, struct peer *peer);
void socketio_leave_ids(struct socketio *server, const struct peer *peer);

#define SOCKETIO_ID_BYTES 20

/* A new random id of letters, digits, '-' and '_'. */
void socketio_new_id(char ret[SOCKETIO_ID_BYTES]);

extern const struct route socketio_rows[2];

/* --- a session: peer.c --------------------------------------------------------------------- */

enum peer_state {
    PEER_NEW,
    PEER_POLLING,
    PEER_PROBING, /* polling, while a WebSocket tries to take over */
    PEER_STREAMING,
    PEER_CLOSED,
    PEER_STATE_COUNT,
};

extern const struct state peer_states[PEER_STATE_COUNT];

struct peer {
    atomic_uint refs; /* of the branch while it is open, of each line, of finders */
    struct branch *branch;
    char id[SOCKETIO_ID_BYTES];
    enum peer_state state;
    bool ending; /* it closes at the end of this turn */
    bool waits_for_pong;
    enum socketio_reason why;
    struct line *line;  /* the WebSocket, or the GET that waits */
    struct line *probe; /* the WebSocket that tries to take over */
    struct list crates; /* parcels for the next GET */
    size_t crate_bytes;
    uint64_t given_bytes; /* to the client's queue, since it began */
    uint64_t taken_bytes; /* of these, by the client, when its answer to a ping was last due */
    struct list sockets;
    uint64_t left;    /* bit i: it was connected to namespace i, and was disconnected from it */
    struct list link; /* in branch->peers */
    struct timer ping;    /* for the next ping, or for its answer */
    struct timer joining; /* for the first namespace */
    struct task sweep;
    struct text address;
    struct text *headers; /* in the order of options.headers; NULL at == absent */
};

/* A session begins. The branch holds it until it has closed; the caller may use it until it
 * returns to the loop. */
struct peer *peer_new(struct branch *branch, struct route_call *call);
struct peer *peer_ref(struct peer *peer);
void peer_unref(struct peer *peer);

/* The opening packet, appended. */
void peer_put_opening(const struct peer *peer, struct buf *out, bool may_upgrade);

/* The first line: long polling has none to wait on yet. */
void peer_start_polling(struct peer *peer);
void peer_start_streaming(struct peer *peer, struct line *line);

/* Send to the client. The caller keeps its reference of the parcel. */
void peer_send(struct peer *peer, struct parcel *parcel);
void peer_send_text(struct peer *peer, struct str text);

/* Bytes that wait for the client. */
size_t peer_queued(const struct peer *peer);

/* Close it now; not from inside anything the peer called. */
void peer_close(struct peer *peer);
/* Sweep at the end of this turn: flush, sockets that left, the end. */
void peer_sweep_soon(struct peer *peer);

struct loop *peer_loop(const struct peer *peer);

/* --- sockets: socket.c --------------------------------------------------------------------- */

enum socketio_socket_state {
    SOCKET_CONNECTING, /* its owner has not decided yet */
    SOCKET_CONNECTED,
    SOCKET_LEAVING, /* `disconnected` follows at the end of the turn */
    SOCKET_GONE,
    SOCKET_STATE_COUNT,
};

extern const struct state socketio_socket_states[SOCKET_STATE_COUNT];

struct socketio_socket {
    struct peer *peer;
    const struct socketio_namespace *name_space;
    enum socketio_socket_state state;
    enum socketio_reason why;
    char id[SOCKETIO_ID_BYTES];
    void *user;
    struct list link;    /* in peer->sockets */
    struct list members; /* its rooms */
    size_t room_count;
};

/* A Socket.IO packet from the client. False: it breaks the protocol. */
MUST_CHECK bool socket_take(struct peer *peer, struct str text, struct err *e);

/* Tell the owners of sockets that left; with `all`, of every socket. */
void socket_sweep(struct peer *peer, bool all);

/* --- rooms: room.c ------------------------------------------------------------------------- */

struct room {
    struct branch *branch;
    struct list members;
    struct text key;
};

struct member {
    struct list in_room, in_socket;
    struct room *room;
    struct socketio_socket *socket;
};

/* "/v1,workspace:7": the name of a namespace has no comma. */
void room_key(struct buf *out, struct str name_space, struct str room);
void room_join(struct socketio_socket *socket, struct str room);
bool room_leave(struct socketio_socket *socket, struct str room); /* false: it was not in it */
bool room_has(const struct socketio_socket *socket, struct str room);
void room_leave_all(struct socketio_socket *socket);
/* Send to every member. On the branch's loop. */
void room_send(struct branch *branch, struct str key, struct parcel *parcel);

#endif
