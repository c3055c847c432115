/* The route /socket.io/: how sessions begin, and which session a request belongs to. */
#include "base/mem.h"
#include "socketio/inner.h"

#define PARAMETER_MAX_BYTES 64
#define SESSION_BYTES (8 * KIB) /* asked for when one begins */

/* The codes of Engine.IO's own server. */
static const struct route_failure unknown_transport = {
    400, STR_INIT("0"), STR_INIT("Transport unknown"), {"", 0}};
static const struct route_failure unknown_session = {
    400, STR_INIT("1"), STR_INIT("Session ID unknown"), {"", 0}};
static const struct route_failure bad_handshake = {
    400, STR_INIT("2"), STR_INIT("Bad handshake method"), {"", 0}};
static const struct route_failure bad_request = {
    400, STR_INIT("3"), STR_INIT("Bad request"), {"", 0}};
static const struct route_failure bad_version = {
    400, STR_INIT("5"), STR_INIT("Unsupported protocol version"), {"", 0}};
static const struct route_failure too_many = {
    503, STR_INIT("3"), STR_INIT("there are too many sessions; try again later"), {"", 0}};
static const struct route_failure shut = {
    503, STR_INIT("3"), STR_INIT("the server begins or stops; try again"), {"", 0}};

struct question {
    char eio[PARAMETER_MAX_BYTES], transport[PARAMETER_MAX_BYTES], sid[PARAMETER_MAX_BYTES];
    struct str version, carrier, id; /* id.at == NULL: a session begins */
};

/* A value that is too long or no text is that of nothing: it is there, and empty. */
static struct str door_ask(struct route_call *call, struct str name, char *room) {
    struct buf out = {
        .at = room, .room = PARAMETER_MAX_BYTES, .max_bytes = PARAMETER_MAX_BYTES};
    switch (route_query(call, name, &out)) {
    case QUERY_READ: return buf_str(&out);
    case QUERY_BAD: return STR_EMPTY;
    case QUERY_ABSENT: break;
    }
    return (struct str){NULL, 0};
}

static void read_question(struct route_call *call, struct question *ret) {
    ret->version = door_ask(call, STR("EIO"), ret->eio);
    ret->carrier = door_ask(call, STR("transport"), ret->transport);
    ret->id = door_ask(call, STR("sid"), ret->sid);
}

static bool is_websocket(const struct question *question) {
    return str_equal(question->carrier, STR("websocket"));
}

/* What is wrong with the parameters, or NULL. */
static const struct route_failure *door_judge(const struct question *question) {
    bool known = is_websocket(question) || str_equal(question->carrier, STR("polling"));
    if (!known) return &unknown_transport;
    return str_equal(question->version, STR("4")) ? NULL : &bad_version;
}

static bool is_shut(const struct socketio *server, const struct branch *branch) {
    return branch->stopped || atomic_load(&server->draining) || atomic_load(&server->shut);
}

/* Whether one more session may begin. If not, the call has been answered. */
static bool may_begin(struct socketio *server, struct route_call *call) {
    struct err e;
    if (is_shut(server, socketio_branch(server, route_loop(call)))) {
        route_fail(call, &shut);
    } else if (atomic_load(&server->session_count) >= server->options.sessions_max) {
        route_fail(call, &too_many);
    } else if (!mem_check(SESSION_BYTES, &e)) {
        route_field(call, STR("retry-after"), STR("1"));
        route_fail(call, &(struct route_failure){503, STR("3"), err_text(&e), STR_EMPTY});
    } else {
        return true;
    }
    return false;
}

static struct route_socket_options socket_options(const struct socketio *server) {
    return (struct route_socket_options){
        .message_max_bytes = server->options.payload_max_bytes,
        .queue_max_bytes = server->options.queue_max_bytes,
    };
}

#define OPENING_MAX_BYTES 256

static void begin_polling(struct socketio *server, struct route_call *call) {
    struct peer *peer = peer_new(socketio_branch(server, route_loop(call)), call);
    struct buf opening;
    buf_init(&opening, OPENING_MAX_BYTES);
    peer_put_opening(peer, &opening, true);
    peer_start_polling(peer);
    route_reply(call, 200, STR("text/plain; charset=UTF-8"), buf_str(&opening));
    buf_done(&opening);
}

static void begin_streaming(struct socketio *server, struct route_call *call) {
    struct route_socket_options options = socket_options(server);
    struct peer *peer = peer_new(socketio_branch(server, route_loop(call)), call);
    struct line *line = line_accept(peer_ref(peer), call, &options);
    if (!line) {
        peer_close(peer);
        return;
    }
    struct buf opening;
    buf_init(&opening, OPENING_MAX_BYTES);
    peer_start_streaming(peer, line);
    peer_put_opening(peer, &opening, false);
    peer_send_text(peer, buf_str(&opening));
    buf_done(&opening);
}

static void door_begin(struct socketio *server, struct route_call *call,
                       const struct question *question) {
    if (!may_begin(server, call)) return;
    if (is_websocket(question))
        begin_streaming(server, call);
    else
        begin_polling(server, call);
}

/* `peer` comes with a reference. */
static void door_go_on(const struct socketio *server, struct peer *peer,
                       struct route_call *call, const struct question *question) {
    struct route_socket_options options = socket_options(server);
    if (!is_websocket(question)) {
        line_poll(peer, call, LINE_GET);
        return;
    }
    struct line *line = line_accept(peer, call, &options);
    if (line) line_attach(line);
}

static void serve_get(struct route_call *call, void *ctx) {
    struct socketio *server = ctx;
    struct question question;
    read_question(call, &question);
    const struct route_failure *failure = door_judge(&question);
    struct peer *peer = question.id.at ? socketio_find(server, question.id) : NULL;
    if (!failure && question.id.at && !peer) failure = &unknown_session;
    if (failure) {
        peer_unref(peer);
        route_fail(call, failure);
    } else if (peer) {
        door_go_on(server, peer, call, &question);
    } else {
        door_begin(server, call, &question);
    }
}

static void serve_post(struct route_call *call, void *ctx) {
    struct socketio *server = ctx;
    struct question question;
    read_question(call, &question);
    const struct route_failure *failure = door_judge(&question);
    if (!failure && is_websocket(&question)) failure = &bad_request;
    if (!failure && !question.id.at) failure = &bad_handshake;
    struct peer *peer = failure ? NULL : socketio_find(server, question.id);
    if (!failure && !peer) failure = &unknown_session;
    if (failure)
        route_fail(call, failure);
    else
        line_poll(peer, call, LINE_POST);
}

/* clang-format off */
const struct route socketio_rows[2] = {
    {STR_INIT("GET"),  STR_INIT("/socket.io/"), serve_get,  ROUTE_GUARDED, ROUTE_PLAIN},
    {STR_INIT("POST"), STR_INIT("/socket.io/"), serve_post, ROUTE_GUARDED, ROUTE_BODY},
};
/* clang-format on */
