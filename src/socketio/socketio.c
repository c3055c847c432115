#include "socketio/socketio.h"

#include "base/log.h"
#include "base/mem.h"
#include "socketio/inner.h"
#include "socketio/origin.h"
#include "wire/base64.h"

#include <assert.h>
#include <stdlib.h>
#include <sys/random.h>

#define EVENT_MAX_BYTES (16 * MIB)
#define BODY_STRETCH_MS 10000
#define BODY_STRETCH_BYTES (1 * KIB)
#define RANDOM_BYTES 15
#define NAMESPACES_MAX 64 /* bits of peer->left */

const struct str socketio_default_origins[3] = {
    STR_INIT("http://localhost:*"),
    STR_INIT("https://*.crawbl.com"),
    STR_INIT("crawbl://app"),
};

struct str socketio_reason_name(enum socketio_reason reason) {
    static const struct str names[SOCKETIO_REASON_COUNT] = {
        [SOCKETIO_CLIENT_LEFT] = STR_INIT("client left"),
        [SOCKETIO_SERVER_LEFT] = STR_INIT("server left"),
        [SOCKETIO_TIMEOUT] = STR_INIT("timeout"),
        [SOCKETIO_LAGGED] = STR_INIT("lagged"),
        [SOCKETIO_PROTOCOL_ERROR] = STR_INIT("protocol error"),
        [SOCKETIO_STOPPING] = STR_INIT("the server stops"),
    };
    return names[reason];
}

/* --- lives --------------------------------------------------------------------------------- */

/* Socket.IO's own form of errors; 3 is "bad request". */
static void put_failure(const struct route_failure *failure, struct buf *out) {
    struct json_writer writer = json_writer(out);
    uint64_t code;
    if (!str_to_u64(failure->code, &code)) code = failure->status == 403 ? 4 : 3;
    json_open_object(&writer);
    json_member_u64(&writer, "code", code);
    json_member_str(&writer, "message", failure->message);
    json_close(&writer);
}

static bool lists_origin(struct str origin, void *ctx) {
    const struct socketio *server = ctx;
    for (size_t i = 0; i < server->options.origin_count; i++) {
        if (origin_matches(server->options.origins[i], origin)) return true;
    }
    return false;
}

static const struct field always[] = {{STR_INIT("cache-control"), STR_INIT("no-store")}};

static void fill_table(struct socketio *server) {
    server->table = (struct route_table){
        .rows = socketio_rows,
        .row_count = ARRAY_LEN(socketio_rows),
        .always = always,
        .always_count = ARRAY_LEN(always),
        .body_max_bytes = server->options.payload_max_bytes,
        .body_stretch_ms = BODY_STRETCH_MS,
        .body_stretch_bytes = BODY_STRETCH_BYTES,
        .guard = route_trust,
        .lists_origin = lists_origin,
        .failure_body = put_failure,
        .ctx = server,
    };
}

static void fill_defaults(struct socketio_options *options) {
    if (!options->ping_interval_ms) options->ping_interval_ms = 25000;
    if (!options->ping_timeout_ms) options->ping_timeout_ms = 20000;
    if (!options->connect_timeout_ms) options->connect_timeout_ms = 45000;
    if (!options->payload_max_bytes) options->payload_max_bytes = 1000000;
    if (!options->queue_max_bytes) options->queue_max_bytes = 1 * MIB;
    if (!options->sessions_max) options->sessions_max = 16384;
}

bool socketio_new(const struct socketio_options *options, struct socketio **ret,
                  struct err *e) {
    if (!websocket_load(e)) return false;
    size_t count = options->loop_count;
    assert(count > 0 && options->namespace_count <= NAMESPACES_MAX);
    struct socketio *server = mem_zero(1, sizeof(*server) + count * sizeof(struct branch));
    server->options = *options;
    fill_defaults(&server->options);
    fill_table(server);
    pthread_mutex_init(&server->lock, NULL);
    server->ids = map_new();
    server->branch_count = count;
    for (size_t i = 0; i < count; i++) {
        struct branch *branch = &server->branches[i];
        branch->server = server;
        branch->loop = options->loops[i];
        branch->rooms = map_new();
        list_init(&branch->peers);
    }
    *ret = server;
    return true;
}

void socketio_free(struct socketio *server) {
    if (!server) return;
    for (size_t i = 0; i < server->branch_count; i++) {
        assert(list_empty(&server->branches[i].peers));
        map_free(server->branches[i].rooms);
    }
    map_free(server->ids);
    pthread_mutex_destroy(&server->lock);
    free(server);
}

const struct route_table *socketio_routes(struct socketio *server) {
    return &server->table;
}

/* --- stopping ------------------------------------------------------------------------------ */

void socketio_admit(struct socketio *server, bool admits) {
    atomic_store(&server->shut, !admits);
}

void socketio_drain(struct socketio *server) {
    atomic_store(&server->draining, true);
}

size_t socketio_waiting(const struct socketio *server) {
    return atomic_load(&server->crate_count);
}

static void on_stop_done(void *ctx) {
    struct socketio *server = ctx;
    if (--server->running == 0) server->on_stopped(server->stopped_ctx);
}

static void on_stop(void *ctx) {
    struct branch *branch = ctx;
    branch->stopped = true;
    while (!list_empty(&branch->peers)) {
        struct peer *peer = CONTAINER_OF(branch->peers.next, struct peer, link);
        if (!peer->ending) peer->why = SOCKETIO_STOPPING;
        peer_close(peer);
    }
    loop_post(branch->server->branches[0].loop, &branch->stop_done, on_stop_done,
              branch->server);
}

void socketio_stop(struct socketio *server, void (*on_stopped)(void *ctx), void *ctx) {
    server->on_stopped = on_stopped;
    server->stopped_ctx = ctx;
    server->running = server->branch_count;
    for (size_t i = 0; i < server->branch_count; i++) {
        struct branch *branch = &server->branches[i];
        loop_post(branch->loop, &branch->stop, on_stop, branch);
    }
}

/* --- sessions ------------------------------------------------------------------------------ */

void socketio_new_id(char ret[SOCKETIO_ID_BYTES]) {
    char random[RANDOM_BYTES];
    struct buf out = {.at = ret, .room = SOCKETIO_ID_BYTES, .max_bytes = SOCKETIO_ID_BYTES};
    if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random)) abort();
    bool fits =
        base64_encode(&out, str_of(random, sizeof(random)), BASE64_URL, BASE64_UNPADDED);
    assert(fits && out.len == SOCKETIO_ID_BYTES);
    (void)fits;
}

struct branch *socketio_branch(struct socketio *server, const struct loop *loop) {
    size_t i = 0;
    while (server->branches[i].loop != loop) {
        i++;
        assert(i < server->branch_count);
    }
    return &server->branches[i];
}

static struct str socketio_id_of(const struct peer *peer) {
    return str_of(peer->id, SOCKETIO_ID_BYTES);
}

struct peer *socketio_find(struct socketio *server, struct str id) {
    pthread_mutex_lock(&server->lock);
    struct peer *peer = map_find(server->ids, id);
    if (peer) peer_ref(peer);
    pthread_mutex_unlock(&server->lock);
    return peer;
}

void socketio_enter(struct socketio *server, struct peer *peer) {
    pthread_mutex_lock(&server->lock);
    map_put(server->ids, socketio_id_of(peer), peer);
    pthread_mutex_unlock(&server->lock);
    atomic_fetch_add(&server->session_count, 1);
    socketio_count(&server->opened, 1);
}

void socketio_leave_ids(struct socketio *server, const struct peer *peer) {
    pthread_mutex_lock(&server->lock);
    map_remove(server->ids, socketio_id_of(peer));
    pthread_mutex_unlock(&server->lock);
    atomic_fetch_sub(&server->session_count, 1);
}

/* --- emitting ------------------------------------------------------------------------------ */

struct shipment {
    struct mail mail;
    struct branch *branch;
    struct parcel *parcel; /* one reference */
    struct text key;
};

static void on_shipment(void *ctx) {
    struct shipment *shipment = ctx;
    room_send(shipment->branch, text_str(shipment->key), shipment->parcel);
    parcel_unref(shipment->parcel);
    text_done(&shipment->key);
    free(shipment);
}

static void ship(struct branch *branch, struct str key, struct parcel *parcel) {
    struct shipment *shipment = MEM_NEW(struct shipment);
    shipment->branch = branch;
    shipment->parcel = parcel_ref(parcel);
    shipment->key = text_copy(key);
    loop_post(branch->loop, &shipment->mail, on_shipment, shipment);
}

void socketio_emit(struct socketio *server, struct str name_space, struct str room,
                   struct str event, struct str json) {
    struct buf text, key;
    socketio_count(&server->emitted, 1);
    if (atomic_load(&server->socket_count) == 0) return;
    buf_init(&text, EVENT_MAX_BYTES);
    buf_init(&key, name_space.len + 1 + room.len);
    packet_put_event(&text, name_space, event, json);
    room_key(&key, name_space, room);
    struct parcel *parcel = buf_ok(&text) ? parcel_new(buf_str(&text)) : NULL;
    if (!parcel)
        log_often(LOG_WARNING, "an event for the room " STR_FMT " is larger than 16 MiB",
                  STR_ARG(buf_str(&key)));
    for (size_t i = 0; parcel && i < server->branch_count; i++) {
        struct branch *branch = &server->branches[i];
        if (atomic_load(&branch->socket_count) > 0) ship(branch, buf_str(&key), parcel);
    }
    parcel_unref(parcel);
    buf_done(&text);
    buf_done(&key);
}

struct socketio_counts socketio_counts(const struct socketio *server) {
    return (struct socketio_counts){
        .sessions = atomic_load(&server->session_count),
        .sockets = atomic_load(&server->socket_count),
        .opened = atomic_load(&server->opened),
        .upgraded = atomic_load(&server->upgraded),
        .refused = atomic_load(&server->refused),
        .received = atomic_load(&server->received),
        .emitted = atomic_load(&server->emitted),
        .sent = atomic_load(&server->sent),
        .lagged = atomic_load(&server->lagged),
    };
}
