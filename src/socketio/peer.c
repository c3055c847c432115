/* One session of a client: Engine.IO 4. */
#include "base/log.h"
#include "base/mem.h"
#include "socketio/inner.h"

#include <assert.h>
#include <stdlib.h>

/* Packets in the body of one GET. python-engineio gives up a session that brings it more
 * (Payload.max_decode_packets); the rest is for the next GET. */
#define BODY_PACKETS_MAX 16

#define HEADER_MAX_BYTES (64 * KIB)

/* Clients that do not come back pay first when memory is scarce. */
#define SCARCE_PART 8

/* clang-format off */
const struct state peer_states[PEER_STATE_COUNT] = {
    [PEER_NEW]       = {"new",       TO(PEER_POLLING) | TO(PEER_STREAMING) |
                                     TO(PEER_CLOSED)},
    [PEER_POLLING]   = {"polling",   TO(PEER_PROBING) | TO(PEER_CLOSED)},
    [PEER_PROBING]   = {"probing",   TO(PEER_POLLING) | TO(PEER_STREAMING) |
                                     TO(PEER_CLOSED)},
    [PEER_STREAMING] = {"streaming", TO(PEER_CLOSED)},
    [PEER_CLOSED]    = {"closed",    0},
};
/* clang-format on */

/* The only function that writes peer->state. */
static void peer_move(struct peer *peer, enum peer_state next) {
    assert(states_allow(peer_states, peer->state, next));
    peer->state = next;
}

struct crate {
    struct list link;
    struct parcel *parcel;
};

static const struct socketio_options *peer_options_of(const struct peer *peer) {
    return &peer->branch->server->options;
}

struct loop *peer_loop(const struct peer *peer) {
    return peer->branch->loop;
}

/* --- lives --------------------------------------------------------------------------------- */

static void peer_sweep(void *ctx);
static void on_ping(void *ctx);
static void on_joining(void *ctx);

/* A header that was sent several times is one with commas (RFC 9110 5.3). False: it was not. */
static bool join_header(struct route_call *call, struct str name, struct buf *out) {
    size_t count, found = 0;
    const struct field *fields = exchange_fields(route_exchange(call), &count);
    for (size_t i = 0; i < count; i++) {
        if (!str_equal(fields[i].name, name)) continue;
        if (found++) buf_append(out, STR(", "));
        buf_append(out, fields[i].value);
    }
    return found > 0;
}

static void keep_headers(struct peer *peer, struct route_call *call) {
    const struct socketio_options *options = peer_options_of(peer);
    peer->headers = mem_zero(options->header_count, sizeof(*peer->headers));
    for (size_t i = 0; i < options->header_count; i++) {
        struct buf value;
        buf_init(&value, HEADER_MAX_BYTES);
        if (join_header(call, options->headers[i], &value))
            peer->headers[i] = text_copy(buf_str(&value));
        buf_done(&value);
    }
}

struct peer *peer_new(struct branch *branch, struct route_call *call) {
    struct peer *peer = MEM_NEW(struct peer);
    atomic_init(&peer->refs, 1); /* of the branch */
    peer->branch = branch;
    socketio_new_id(peer->id);
    list_init(&peer->crates);
    list_init(&peer->sockets);
    list_init(&peer->link);
    list_append(&branch->peers, &peer->link);
    timer_init(&peer->ping, branch->loop, on_ping, peer);
    timer_init(&peer->joining, branch->loop, on_joining, peer);
    task_init(&peer->sweep, peer_sweep, peer);
    peer->address = text_copy(exchange_peer(route_exchange(call)));
    keep_headers(peer, call);
    timer_start(&peer->ping, peer_options_of(peer)->ping_interval_ms);
    timer_start(&peer->joining, peer_options_of(peer)->connect_timeout_ms);
    socketio_enter(branch->server, peer);
    return peer;
}

struct peer *peer_ref(struct peer *peer) {
    atomic_fetch_add_explicit(&peer->refs, 1, memory_order_relaxed);
    return peer;
}

void peer_unref(struct peer *peer) {
    if (!peer || atomic_fetch_sub_explicit(&peer->refs, 1, memory_order_acq_rel) > 1) return;
    free(peer);
}

static size_t crate_bytes(const struct parcel *parcel) {
    return parcel_frame(parcel).len + sizeof(struct crate);
}

static void drop_crate(struct peer *peer, struct crate *crate) {
    list_remove(&crate->link);
    peer->crate_bytes -= crate_bytes(crate->parcel);
    atomic_fetch_sub_explicit(&peer->branch->server->crate_count, 1, memory_order_relaxed);
    parcel_unref(crate->parcel);
    free(crate);
}

static void drop_crates(struct peer *peer) {
    /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): what is freed has left the list */
    LIST_EACH(&peer->crates, link) drop_crate(peer, CONTAINER_OF(link, struct crate, link));
}

static struct str one_byte(char kind) {
    static const char kinds[] = {ENGINEIO_OPEN, ENGINEIO_CLOSE,   ENGINEIO_PING,
                                 ENGINEIO_PONG, ENGINEIO_MESSAGE, ENGINEIO_UPGRADE,
                                 ENGINEIO_NOOP};
    return str_of(&kinds[kind - ENGINEIO_OPEN], 1);
}

static unsigned peer_code_of(enum socketio_reason why) {
    if (why == SOCKETIO_STOPPING) return WEBSOCKET_GOING_AWAY;
    return why == SOCKETIO_PROTOCOL_ERROR ? WEBSOCKET_PROTOCOL_ERROR : WEBSOCKET_NORMAL;
}

/* Let go of a line: a WebSocket is closed, a GET gets `last`. */
static void drop_line(struct peer *peer, struct line **place, struct str last) {
    struct line *line = *place;
    if (!line) return;
    *place = NULL;
    if (line_kind(line) == LINE_SOCKET)
        line_close(line, peer_code_of(peer->why), socketio_reason_name(peer->why));
    else
        line_answer(line, 200, last);
    line_unref(line);
}

void peer_close(struct peer *peer) {
    if (peer->state == PEER_CLOSED) return;
    struct socketio *server = peer->branch->server;
    bool owes_noop = peer->why == SOCKETIO_CLIENT_LEFT;
    peer_move(peer, PEER_CLOSED);
    peer->ending = true;
    timer_stop(&peer->ping);
    timer_stop(&peer->joining);
    socketio_leave_ids(server, peer);
    drop_crates(peer);
    drop_line(peer, &peer->line, one_byte(owes_noop ? ENGINEIO_NOOP : ENGINEIO_CLOSE));
    drop_line(peer, &peer->probe, STR_EMPTY);
    socket_sweep(peer, true);
    task_cancel(&peer->sweep);
    list_remove(&peer->link);
    text_done(&peer->address);
    for (size_t i = 0; i < server->options.header_count; i++) text_done(&peer->headers[i]);
    free(peer->headers);
    peer_unref(peer);
}

/* Close it at the end of this turn. The first reason counts. */
static void peer_end(struct peer *peer, enum socketio_reason why) {
    if (peer->ending || peer->state == PEER_CLOSED) return;
    peer->ending = true;
    peer->why = why;
    if (why == SOCKETIO_LAGGED) socketio_count(&peer->branch->server->lagged, 1);
    peer_sweep_soon(peer);
}

void peer_sweep_soon(struct peer *peer) {
    if (peer->state != PEER_CLOSED) loop_defer(peer_loop(peer), &peer->sweep);
}

/* --- sending ------------------------------------------------------------------------------- */

/* What waits becomes the body of the GET. */
static void answer_get(struct peer *peer) {
    struct buf body;
    buf_init(&body, peer->crate_bytes); /* which counts more than the texts */
    for (size_t i = 0; i < BODY_PACKETS_MAX && !list_empty(&peer->crates); i++) {
        struct crate *crate = CONTAINER_OF(peer->crates.next, struct crate, link);
        if (body.len) buf_append_byte(&body, ENGINEIO_SEPARATOR);
        /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): what is freed has left the list */
        buf_append(&body, parcel_text(crate->parcel));
        drop_crate(peer, crate);
    }
    drop_line(peer, &peer->line, buf_str(&body));
    buf_done(&body);
}

static void flush(struct peer *peer) {
    bool polls = peer->state == PEER_POLLING || peer->state == PEER_PROBING;
    if (!polls || !peer->line) return;
    if (!list_empty(&peer->crates))
        answer_get(peer);
    else if (peer->state == PEER_PROBING) /* the client waits for the end of its GET */
        drop_line(peer, &peer->line, one_byte(ENGINEIO_NOOP));
}

static void peer_sweep(void *ctx) {
    struct peer *peer = ctx;
    flush(peer);
    if (peer->ending)
        peer_close(peer);
    else
        socket_sweep(peer, false);
}

static void peer_keep(struct peer *peer, struct parcel *parcel) {
    size_t bytes = crate_bytes(parcel);
    size_t limit = peer_options_of(peer)->queue_max_bytes / (mem_scarce() ? SCARCE_PART : 1);
    if (peer->crate_bytes > 0 && peer->crate_bytes + bytes > limit) {
        peer_end(peer, SOCKETIO_LAGGED);
        return;
    }
    struct crate *crate = MEM_NEW(struct crate);
    crate->parcel = parcel_ref(parcel);
    list_init(&crate->link);
    list_append(&peer->crates, &crate->link);
    peer->crate_bytes += bytes;
    atomic_fetch_add_explicit(&peer->branch->server->crate_count, 1, memory_order_relaxed);
    if (peer->line) peer_sweep_soon(peer);
}

void peer_send(struct peer *peer, struct parcel *parcel) {
    if (peer->ending || peer->state == PEER_CLOSED) return;
    peer->given_bytes +=
        peer->state == PEER_STREAMING ? parcel_frame(parcel).len : crate_bytes(parcel);
    if (peer->state == PEER_STREAMING)
        line_send(peer->line, parcel);
    else
        peer_keep(peer, parcel);
}

void peer_send_text(struct peer *peer, struct str text) {
    struct parcel *parcel = parcel_new(text);
    peer_send(peer, parcel);
    parcel_unref(parcel);
}

void peer_put_opening(const struct peer *peer, struct buf *out, bool may_upgrade) {
    const struct socketio_options *options = peer_options_of(peer);
    struct json_writer writer = json_writer(out);
    buf_append_byte(out, ENGINEIO_OPEN);
    json_open_object(&writer);
    json_member_str(&writer, "sid", str_of(peer->id, SOCKETIO_ID_BYTES));
    json_member_array(&writer, "upgrades");
    if (may_upgrade) json_write_str(&writer, STR("websocket"));
    json_close(&writer);
    json_member_u64(&writer, "pingInterval", options->ping_interval_ms);
    json_member_u64(&writer, "pingTimeout", options->ping_timeout_ms);
    json_member_u64(&writer, "maxPayload", options->payload_max_bytes);
    json_close(&writer);
}

/* --- time ---------------------------------------------------------------------------------- */

size_t peer_queued(const struct peer *peer) {
    return peer->state == PEER_STREAMING ? line_queued(peer->line) : peer->crate_bytes;
}

/* Whether the client has taken something since this was last asked. */
static bool has_progressed(struct peer *peer) {
    size_t queued = peer_queued(peer);
    uint64_t taken = peer->given_bytes > queued ? peer->given_bytes - queued : 0;
    bool more = taken > peer->taken_bytes;
    peer->taken_bytes = taken;
    return more;
}

/* The ping stands in the queue like all else. A client that still takes what is before it has not
 * got it yet. */
static void on_ping(void *ctx) {
    struct peer *peer = ctx;
    bool slow = peer_queued(peer) > 0 && has_progressed(peer);
    if (peer->waits_for_pong && slow) {
        timer_start(&peer->ping, peer_options_of(peer)->ping_timeout_ms);
        return;
    }
    if (peer->waits_for_pong) {
        peer_end(peer, SOCKETIO_TIMEOUT);
        return;
    }
    (void)has_progressed(peer);
    peer->waits_for_pong = true;
    timer_start(&peer->ping, peer_options_of(peer)->ping_timeout_ms);
    peer_send_text(peer, one_byte(ENGINEIO_PING));
}

static void take_pong(struct peer *peer) {
    if (!peer->waits_for_pong) return;
    peer->waits_for_pong = false;
    timer_start(&peer->ping, peer_options_of(peer)->ping_interval_ms);
}

static void on_joining(void *ctx) {
    peer_end(ctx, SOCKETIO_TIMEOUT);
}

/* --- packets of the client ----------------------------------------------------------------- */

/* False: it breaks the protocol. */
static bool take_packet(struct peer *peer, struct str packet, struct err *e) {
    char kind = packet.len ? packet.at[0] : '\0';
    switch (kind) {
    case ENGINEIO_MESSAGE: return socket_take(peer, str_skip(packet, 1), e);
    case ENGINEIO_PONG: take_pong(peer); return true;
    case ENGINEIO_CLOSE: peer_end(peer, SOCKETIO_CLIENT_LEFT); return true;
    case ENGINEIO_NOOP: return true;
    case ENGINEIO_BINARY:
        return err_set(e, ERR_UNIMPLEMENTED, "binary messages are not supported; send text");
    default: return err_set(e, ERR_MALFORMED, "not a packet that a client of Engine.IO sends");
    }
}

static bool peer_take(struct peer *peer, struct str packet, struct err *e) {
    if (peer->ending || peer->state == PEER_CLOSED) return true;
    if (take_packet(peer, packet, e)) return true;
    log_often(LOG_INFO, "a Socket.IO client at " STR_FMT " is cut off: " STR_FMT,
              STR_ARG(text_str(peer->address)), STR_ARG(err_text(e)));
    peer_end(peer, SOCKETIO_PROTOCOL_ERROR);
    return false;
}

/* --- lines --------------------------------------------------------------------------------- */

void peer_start_polling(struct peer *peer) {
    peer_move(peer, PEER_POLLING);
}

void peer_start_streaming(struct peer *peer, struct line *line) {
    peer_move(peer, PEER_STREAMING);
    peer->line = line_ref(line);
}

static void attach_get(struct peer *peer, struct line *line) {
    if (peer->line) { /* the protocol allows one at a time */
        line_answer(line, 400, STR("another GET of this session is waiting"));
        peer_end(peer, SOCKETIO_PROTOCOL_ERROR);
        return;
    }
    peer->line = line_ref(line);
    flush(peer);
}

static void attach_post(struct peer *peer, struct line *line, struct str body) {
    struct err e;
    bool fine = true;
    while (fine && body.at) {
        struct str packet = str_split(body, ENGINEIO_SEPARATOR, &body);
        fine = peer_take(peer, packet, &e);
    }
    if (fine)
        line_answer(line, 200, STR("ok"));
    else
        line_answer(line, 400, err_text(&e));
}

static void attach_probe(struct peer *peer, struct line *line) {
    if (peer->state == PEER_POLLING && !peer->probe)
        peer->probe = line_ref(line);
    else
        line_close(line, WEBSOCKET_POLICY, STR("this session cannot be upgraded"));
}

void peer_attach(struct peer *peer, struct line *line, struct str body) {
    bool polls = peer->state == PEER_POLLING || peer->state == PEER_PROBING;
    bool gone = peer->ending || peer->state == PEER_CLOSED;
    if (line_kind(line) == LINE_SOCKET && gone)
        line_close(line, WEBSOCKET_POLICY, STR("this session is over"));
    else if (line_kind(line) == LINE_SOCKET)
        attach_probe(peer, line);
    else if (gone || !polls)
        line_answer(line, 400, STR("this session is over, or uses a WebSocket"));
    else if (line_kind(line) == LINE_GET)
        attach_get(peer, line);
    else
        attach_post(peer, line, body);
}

/* The WebSocket takes over: what waits goes there, and a GET that still waits ends. */
static void finish_upgrade(struct peer *peer) {
    struct line *line = peer->probe;
    peer->probe = NULL;
    drop_line(peer, &peer->line, one_byte(ENGINEIO_NOOP));
    peer_move(peer, PEER_STREAMING);
    peer->line = line;
    LIST_EACH(&peer->crates, link)
    line_send(line, CONTAINER_OF(link, struct crate, link)->parcel);
    drop_crates(peer);
    socketio_count(&peer->branch->server->upgraded, 1);
}

static void answer_probe(struct peer *peer) {
    struct parcel *answer = parcel_new(STR("3probe"));
    line_send(peer->probe, answer);
    parcel_unref(answer);
    peer_move(peer, PEER_PROBING);
    peer_sweep_soon(peer);
}

static void hear_probe(struct peer *peer, struct str text) {
    if (peer->state == PEER_POLLING && str_equal(text, STR("2probe")))
        answer_probe(peer);
    else if (peer->state == PEER_PROBING && str_equal(text, one_byte(ENGINEIO_UPGRADE)))
        finish_upgrade(peer);
    else
        line_close(peer->probe, WEBSOCKET_PROTOCOL_ERROR, STR("not a probe"));
}

void peer_hear(struct peer *peer, struct line *line, struct str text) {
    struct err e;
    if (peer->ending || peer->state == PEER_CLOSED) return;
    bool fine = true;
    if (line == peer->probe)
        hear_probe(peer, text);
    else if (line == peer->line)
        fine = peer_take(peer, text, &e);
    (void)fine; /* the peer ends */
}

void peer_lose(struct peer *peer, struct line *line, bool lagged) {
    if (line == peer->probe) {
        peer->probe = NULL;
        if (peer->state == PEER_PROBING) peer_move(peer, PEER_POLLING);
        line_unref(line);
        return;
    }
    if (line != peer->line) return;
    if (peer->state == PEER_STREAMING)
        peer_end(peer, lagged ? SOCKETIO_LAGGED : SOCKETIO_CLIENT_LEFT);
    peer->line = NULL;
    line_unref(line);
}
