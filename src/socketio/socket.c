/* A peer in one namespace. */
#include "base/mem.h"
#include "socketio/inner.h"

#include <assert.h>
#include <stdlib.h>

#define PACKET_MAX_BYTES (16 * MIB) /* of one that we write */

/* clang-format off */
const struct state socketio_socket_states[SOCKET_STATE_COUNT] = {
    [SOCKET_CONNECTING] = {"connecting", TO(SOCKET_CONNECTED) | TO(SOCKET_LEAVING) |
                                         TO(SOCKET_GONE)},
    [SOCKET_CONNECTED]  = {"connected",  TO(SOCKET_LEAVING)},
    [SOCKET_LEAVING]    = {"leaving",    TO(SOCKET_GONE)},
    [SOCKET_GONE]       = {"gone",       0},
};
/* clang-format on */

/* The only function that writes socket->state. */
static void socket_move(struct socketio_socket *socket, enum socketio_socket_state next) {
    assert(states_allow(socketio_socket_states, socket->state, next));
    socket->state = next;
}

static struct socketio *server_of(const struct socketio_socket *socket) {
    return socket->peer->branch->server;
}

/* --- lives --------------------------------------------------------------------------------- */

static struct socketio_socket *socket_new(struct peer *peer,
                                          const struct socketio_namespace *name_space) {
    struct socketio_socket *socket = MEM_NEW(struct socketio_socket);
    socket->peer = peer;
    socket->name_space = name_space;
    socketio_new_id(socket->id);
    list_init(&socket->link);
    list_init(&socket->members);
    list_append(&peer->sockets, &socket->link);
    return socket;
}

static uint64_t bit_of(const struct socketio *server,
                       const struct socketio_namespace *name_space) {
    return UINT64_C(1) << (name_space - server->options.namespaces);
}

static void socket_free(struct socketio_socket *socket) {
    socket_move(socket, SOCKET_GONE);
    list_remove(&socket->link);
    free(socket);
}

/* No events reach it from now on; its owner hears of it at the end of the turn. */
static void socket_leave(struct socketio_socket *socket, enum socketio_reason why) {
    if (socket->state == SOCKET_LEAVING) return;
    bool was_connected = socket->state == SOCKET_CONNECTED;
    socket->peer->left |= bit_of(server_of(socket), socket->name_space);
    socket_move(socket, SOCKET_LEAVING);
    socket->why = why;
    room_leave_all(socket);
    if (was_connected) {
        atomic_fetch_sub(&server_of(socket)->socket_count, 1);
        atomic_fetch_sub(&socket->peer->branch->socket_count, 1);
    }
    peer_sweep_soon(socket->peer);
}

static void socket_tell(struct socketio_socket *socket) {
    const struct socketio_namespace *name_space = socket->name_space;
    if (name_space->disconnected)
        name_space->disconnected(socket, socket->why, name_space->ctx);
    socket_free(socket);
}

static struct socketio_socket *next_leaving(struct peer *peer) {
    /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): what is freed has left the list */
    LIST_EACH(&peer->sockets, link) {
        struct socketio_socket *socket = CONTAINER_OF(link, struct socketio_socket, link);
        if (socket->state == SOCKET_LEAVING) return socket;
    }
    return NULL;
}

/* A callback may make other sockets leave, or refuse them, so each search begins again. */
void socket_sweep(struct peer *peer, bool all) {
    struct socketio_socket *socket;
    LIST_EACH(&peer->sockets, link) {
        socket = CONTAINER_OF(link, struct socketio_socket, link);
        if (all) socket_leave(socket, peer->why);
    }
    while ((socket = next_leaving(peer))) socket_tell(socket);
    bool alone = list_empty(&peer->sockets) && !all && !timer_waits(&peer->joining);
    if (alone) timer_start(&peer->joining, peer->branch->server->options.connect_timeout_ms);
}

/* --- sending ------------------------------------------------------------------------------- */

static void send_packet(struct peer *peer, struct buf *packet) {
    if (buf_ok(packet)) peer_send_text(peer, buf_str(packet));
    buf_done(packet);
}

void socketio_send(struct socketio_socket *socket, struct str event, struct str json) {
    struct buf packet;
    socketio_count(&server_of(socket)->emitted, 1);
    if (socket->state != SOCKET_CONNECTED) return;
    buf_init(&packet, PACKET_MAX_BYTES);
    packet_put_event(&packet, socket->name_space->name, event, json);
    send_packet(socket->peer, &packet);
    socketio_count(&server_of(socket)->sent, 1);
}

void socketio_ack(struct socketio_socket *socket, int64_t ack, struct str json) {
    struct buf packet;
    if (ack < 0 || socket->state != SOCKET_CONNECTED) return;
    buf_init(&packet, PACKET_MAX_BYTES);
    packet_put_ack(&packet, socket->name_space->name, ack, json);
    send_packet(socket->peer, &packet);
}

static void send_error(struct peer *peer, struct str name_space, struct str message,
                       struct str data) {
    struct buf packet;
    buf_init(&packet, PACKET_MAX_BYTES);
    packet_put_error(&packet, name_space, message, data);
    send_packet(peer, &packet);
    socketio_count(&peer->branch->server->refused, 1);
}

/* --- connecting ---------------------------------------------------------------------------- */

void socketio_accept(struct socketio_socket *socket, void *user) {
    struct buf packet;
    if (socket->state == SOCKET_LEAVING) return;
    socket_move(socket, SOCKET_CONNECTED);
    socket->user = user;
    atomic_fetch_add(&server_of(socket)->socket_count, 1);
    atomic_fetch_add(&socket->peer->branch->socket_count, 1);
    timer_stop(&socket->peer->joining); /* it has a namespace */
    room_join(socket, STR_EMPTY);
    room_join(socket, socketio_id(socket));
    buf_init(&packet, PACKET_MAX_BYTES);
    packet_put_connect(&packet, socket->name_space->name, socketio_id(socket));
    send_packet(socket->peer, &packet);
}

void socketio_refuse(struct socketio_socket *socket, struct str message, struct str data) {
    if (socket->state == SOCKET_LEAVING) return;
    send_error(socket->peer, socket->name_space->name, message, data);
    socket_free(socket);
}

void socketio_disconnect(struct socketio_socket *socket) {
    struct buf packet;
    if (socket->state == SOCKET_LEAVING) return;
    buf_init(&packet, PACKET_MAX_BYTES);
    packet_put_disconnect(&packet, socket->name_space->name);
    send_packet(socket->peer, &packet);
    socket_leave(socket, SOCKETIO_SERVER_LEFT);
}

static const struct socketio_namespace *find_namespace(const struct socketio *server,
                                                       struct str name) {
    for (size_t i = 0; i < server->options.namespace_count; i++) {
        const struct socketio_namespace *row = &server->options.namespaces[i];
        if (str_equal(row->name, name)) return row;
    }
    return NULL;
}

/* The socket of the peer in this namespace; one that leaves only if there is no newer one. */
static struct socketio_socket *find_socket(const struct peer *peer, struct str name) {
    struct socketio_socket *found = NULL;
    LIST_EACH(&peer->sockets, link) {
        struct socketio_socket *socket = CONTAINER_OF(link, struct socketio_socket, link);
        if (str_equal(socket->name_space->name, name)) found = socket;
    }
    return found;
}

static bool take_connect(struct peer *peer, const struct packet *packet) {
    const struct socketio_namespace *name_space =
        find_namespace(peer->branch->server, packet->name_space);
    const struct socketio_socket *known = find_socket(peer, packet->name_space);
    if (known && known->state != SOCKET_LEAVING) return true;
    if (!name_space) {
        send_error(peer, packet->name_space, STR("Invalid namespace"), STR_EMPTY);
        return true;
    }
    struct socketio_socket *socket = socket_new(peer, name_space);
    if (name_space->connect)
        name_space->connect(socket, packet->data, name_space->ctx);
    else
        socketio_accept(socket, NULL);
    return true;
}

/* --- events -------------------------------------------------------------------------------- */

#define NAME_MAX_BYTES 256

static const struct socketio_event *find_event(const struct socketio_namespace *name_space,
                                               struct str name) {
    for (size_t i = 0; i < name_space->event_count; i++) {
        const struct socketio_event *row = &name_space->events[i];
        if (row->name.len == 0 || str_equal(row->name, name)) return row;
    }
    return NULL;
}

/* A name that is too long is in no table. */
static void socket_take_event(struct socketio_socket *socket, const struct packet *packet) {
    struct buf name;
    buf_init(&name, NAME_MAX_BYTES);
    bool fits = json_text(json_at(packet->data, 0), &name);
    const struct socketio_event *row =
        fits ? find_event(socket->name_space, buf_str(&name)) : NULL;
    const struct socketio_message message = {
        .event = buf_str(&name),
        .data = json_at(packet->data, 1),
        .args = packet->data,
        .ack = packet->ack,
    };
    socketio_count(&server_of(socket)->received, 1);
    if (row) row->fn(socket, &message, socket->name_space->ctx);
    buf_done(&name);
}

/* A client may send events before it learns that we disconnected it. */
static bool was_in(const struct peer *peer, struct str name) {
    const struct socketio *server = peer->branch->server;
    const struct socketio_namespace *name_space = find_namespace(server, name);
    return name_space && (peer->left & bit_of(server, name_space));
}

bool socket_take(struct peer *peer, struct str text, struct err *e) {
    struct packet packet;
    if (!packet_read(text, &packet, e)) return false;
    if (packet.kind == PACKET_CONNECT) return take_connect(peer, &packet);
    struct socketio_socket *socket = find_socket(peer, packet.name_space);
    bool known = socket && socket->state != SOCKET_CONNECTING;
    if (packet.kind == PACKET_DISCONNECT) {
        if (socket) socket_leave(socket, SOCKETIO_CLIENT_LEFT);
        return true;
    }
    if (packet.kind == PACKET_CONNECT_ERROR)
        return err_set(e, ERR_MALFORMED, "CONNECT_ERROR is for servers");
    if (!socket && was_in(peer, packet.name_space)) return true;
    if (!known)
        return err_set(e, ERR_MALFORMED, "an event for a namespace that is not connected");
    if (packet.kind == PACKET_EVENT && socket->state == SOCKET_CONNECTED)
        socket_take_event(socket, &packet);
    return true;
}

/* --- asking -------------------------------------------------------------------------------- */

struct str socketio_id(const struct socketio_socket *socket) {
    return str_of(socket->id, SOCKETIO_ID_BYTES);
}

struct loop *socketio_loop(const struct socketio_socket *socket) {
    return peer_loop(socket->peer);
}

struct str socketio_peer(const struct socketio_socket *socket) {
    return text_str(socket->peer->address);
}

size_t socketio_queued(const struct socketio_socket *socket) {
    return peer_queued(socket->peer);
}

void *socketio_user(const struct socketio_socket *socket) {
    return socket->user;
}

struct str socketio_header(const struct socketio_socket *socket, struct str lower_case_name) {
    const struct socketio_options *options = &server_of(socket)->options;
    for (size_t i = 0; i < options->header_count; i++) {
        struct text value = socket->peer->headers[i];
        if (str_equal(options->headers[i], lower_case_name) && value.at) return text_str(value);
    }
    return (struct str){NULL, 0};
}

bool socketio_join(struct socketio_socket *socket, struct str room) {
    if (socket->state != SOCKET_CONNECTED || room_has(socket, room)) return true;
    if (socket->room_count >= SOCKETIO_ROOMS_MAX + 2) return false; /* and its two own */
    room_join(socket, room);
    return true;
}

void socketio_leave(struct socketio_socket *socket, struct str room) {
    bool was_in = room_leave(socket, room);
    (void)was_in;
}

bool socketio_is_in(const struct socketio_socket *socket, struct str room) {
    return room_has(socket, room);
}
