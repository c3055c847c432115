#include "route/route_socket.h"

#include "base/mem.h"
#include "route/answer.h"

#include <stdlib.h>

/* An idle socket holds a few hundred bytes; one in use a frame in each direction. */
#define ACCEPT_BYTES (16 * KIB)

/* Slow peers pay first when memory is scarce. */
#define SCARCE_PART 8

struct route_socket {
    struct route_call *call;
    struct websocket *reader;
    const struct route_socket_events *events;
    void *ctx;
    size_t queue_max_bytes;
    unsigned code; /* for `closed` */
    bool closing;  /* a close was sent, or the socket was cut */
    bool lagged;
};

/* --- writing ------------------------------------------------------------------------------- */

bool route_socket_lagged(const struct route_socket *socket) {
    return socket->lagged;
}

size_t route_socket_queued(const struct route_socket *socket) {
    return route_queued(socket->call);
}

/* Cut the connection; queued bytes are dropped. */
static void route_socket_cut(struct route_socket *socket) {
    if (socket->closing) return;
    socket->closing = true;
    websocket_stop(socket->reader);
    route_cut(socket->call);
}

/* Whether `len` more bytes may wait. If not, the peer is cut off. */
static bool has_room(struct route_socket *socket, size_t len) {
    if (socket->closing) return false;
    size_t queued = route_queued(socket->call);
    size_t limit = socket->queue_max_bytes / (mem_scarce() ? SCARCE_PART : 1);
    if (queued == 0 || queued + len <= limit) return true;
    socket->lagged = true;
    route_socket_cut(socket);
    return false;
}

void route_socket_send(struct route_socket *socket, enum websocket_kind kind, struct str data) {
    if (!has_room(socket, data.len)) return;
    struct buf *out = route_sse_out(socket->call);
    if (!out) return;
    size_t begin = out->len;
    websocket_append(out, WEBSOCKET_SERVER, kind, data);
    route_sse_wrote(socket->call, begin);
}

void route_socket_send_frame(struct route_socket *socket, struct str frame) {
    if (has_room(socket, frame.len)) route_piece(socket->call, frame);
}

void route_socket_close(struct route_socket *socket, unsigned code, struct str reason) {
    if (socket->closing) return;
    struct buf *out = route_sse_out(socket->call);
    size_t begin = out ? out->len : 0;
    if (socket->code == ROUTE_SOCKET_LOST) socket->code = code;
    if (out) websocket_append_close(out, WEBSOCKET_SERVER, code, reason);
    if (out) route_sse_wrote(socket->call, begin);
    socket->closing = true;
    websocket_stop(socket->reader);
    route_sse_end(socket->call);
}

/* --- reading ------------------------------------------------------------------------------- */

/* RFC 6455 5.5.1: the close is answered with the same code. */
static void take_close(struct route_socket *socket, unsigned code) {
    socket->code = code;
    route_socket_close(socket, code, STR_EMPTY);
}

static void route_socket_on_message(const struct websocket_message *message, void *ctx) {
    struct route_socket *socket = ctx;
    switch (message->kind) {
    case WEBSOCKET_PING: route_socket_send(socket, WEBSOCKET_PONG, message->data); break;
    case WEBSOCKET_PONG: break;
    case WEBSOCKET_CLOSE: take_close(socket, message->code); break;
    case WEBSOCKET_TEXT:
    case WEBSOCKET_BINARY:
        socket->events->message(socket, message->kind, message->data, socket->ctx);
        break;
    }
}

static void on_received(struct lent lent, void *ctx) {
    struct route_socket *socket = ctx;
    struct str bytes = lent_read(lent);
    struct err e;
    route_consumed(socket->call, bytes.len);
    if (!websocket_feed(socket->reader, bytes, &e))
        route_socket_close(socket, websocket_fault(socket->reader), err_text(&e));
}

/* --- the rest ------------------------------------------------------------------------------ */

static void route_socket_on_over(void *ctx) {
    struct route_socket *socket = ctx;
    socket->events->closed(socket->code, socket->ctx);
    websocket_free(socket->reader);
    free(socket);
}

static void route_socket_on_stopping(void *ctx) {
    struct route_socket *socket = ctx;
    if (socket->events->stopping)
        socket->events->stopping(socket->ctx);
    else
        route_socket_close(socket, WEBSOCKET_GOING_AWAY, STR("the server stops"));
}

static const struct route_watch watch = {
    .left = route_socket_on_over,
    .stopping = route_socket_on_stopping,
    .closed = route_socket_on_over,
    .received = on_received,
};

/* RFC 6455 4.2.1 and 4.4. */
static bool check_opening(struct route_call *call) {
    if (!route_wants_upgrade(call, STR("websocket"))) {
        route_field(call, STR("upgrade"), STR("websocket"));
        route_field(call, STR("connection"), STR("upgrade"));
        route_refuse(call, 426, STR("UPGRADE_REQUIRED"),
                     "this is a WebSocket; connect to it with one");
        return false;
    }
    if (!str_equal(answer_header(call, STR("sec-websocket-version")), STR("13"))) {
        route_field(call, STR("sec-websocket-version"), STR("13"));
        route_refuse(call, 426, STR("UPGRADE_REQUIRED"), "Sec-WebSocket-Version must be 13");
        return false;
    }
    if (!websocket_key_ok(answer_header(call, STR("sec-websocket-key")))) {
        route_refuse(call, 400, STR("INVALID_INPUT"),
                     "Sec-WebSocket-Key must be 16 bytes in base64");
        return false;
    }
    return true;
}

static bool has_memory(struct route_call *call) {
    struct err e;
    if (mem_check(ACCEPT_BYTES, &e)) return true;
    answer_overloaded(call, &e);
    return false;
}

struct route_socket *route_socket_accept(struct route_call *call,
                                         const struct route_socket_options *options,
                                         const struct route_socket_events *events, void *ctx) {
    char accept[WEBSOCKET_ACCEPT_BYTES];
    if (!check_opening(call) || !has_memory(call)) return NULL;
    struct route_socket *socket = MEM_NEW(struct route_socket);
    socket->call = call;
    socket->events = events;
    socket->ctx = ctx;
    socket->queue_max_bytes = options->queue_max_bytes;
    socket->code = ROUTE_SOCKET_LOST;
    socket->reader = websocket_new(WEBSOCKET_SERVER, options->message_max_bytes,
                                   route_socket_on_message, socket);
    websocket_accept(answer_header(call, STR("sec-websocket-key")), accept);
    route_field(call, STR("sec-websocket-accept"), str_of(accept, sizeof(accept)));
    route_watch(call, &watch, socket);
    route_upgrade(call, STR("websocket"));
    return socket;
}
