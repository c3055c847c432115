/* socketio_server: a Socket.IO server for tests and measurements, without an orchestrator.
 *
 *     socketio_server [name=value ...]     prints "port N", ends with SIGTERM
 *
 *     port=0  loops=2  ping_ms=25000  timeout_ms=20000  join_ms=45000
 *     payload=1000000  queue=1048576  sessions=16384  connections=1024
 *     chunks=0    events a second, in turn to the rooms "bench:0", "bench:1" ... "bench:rooms-1"
 *     rooms=1000
 *
 * Namespaces: "/v1" wants X-Firebase-UID or {"token":"good"}; "/" takes everyone; "/later"
 * decides after 50 ms. Events:
 *
 *     echo X         "echo" X, and X as its ack
 *     join R         joins the room; acks true       leave R    leaves it
 *     say {room, data}       "said" data to the room
 *     whoami         acks {user, header, peer}       counts     acks the counters
 *     flood N        N "flood" events of 1 KiB to its own room
 *     bye            is disconnected
 */
#include "socketio/socketio.h"

#include "base/log.h"
#include "base/mem.h"
#include "loop/loop.h"
#include "server/server.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <uv.h>

#define LOOPS_MAX 8
#define STOP_WITHIN_MS 2000
#define LATER_MS 50
#define TEXT_MAX_BYTES (2 * MIB)
#define CHUNK_TEXT                                                                             \
    "the quick brown fox jumps over the lazy dog and goes on to the next line of its story"

static struct loop *loops[LOOPS_MAX];
static struct route_site *sites[LOOPS_MAX];
static struct server *server;
static struct socketio *socketio;
static uv_signal_t signals[2];
static struct mail stops[LOOPS_MAX];
static struct timer ticking;
static uint64_t next_room, chunk_debt, last_tick_ns;

static struct {
    uint64_t port, loops, ping_ms, timeout_ms, join_ms, payload, queue, sessions, connections,
        chunks, rooms;
} set = {.loops = 2, .connections = 1024, .rooms = 1000};

/* --- events -------------------------------------------------------------------------------- */

static void text_of(struct json value, struct buf *out) {
    buf_init(out, TEXT_MAX_BYTES);
    bool is_text = json_text(value, out);
    (void)is_text;
}

static void on_echo(struct socketio_socket *socket, const struct socketio_message *message,
                    void *ctx) {
    (void)ctx;
    socketio_send(socket, STR("echo"), message->data.raw);
    socketio_ack(socket, message->ack, message->data.raw);
}

static void on_join(struct socketio_socket *socket, const struct socketio_message *message,
                    void *ctx) {
    struct buf room;
    (void)ctx;
    text_of(message->data, &room);
    bool joined = socketio_join(socket, buf_str(&room));
    socketio_ack(socket, message->ack, joined ? STR("true") : STR("false"));
    buf_done(&room);
}

static void on_leave(struct socketio_socket *socket, const struct socketio_message *message,
                     void *ctx) {
    struct buf room;
    (void)ctx;
    text_of(message->data, &room);
    socketio_leave(socket, buf_str(&room));
    socketio_ack(socket, message->ack, STR("true"));
    buf_done(&room);
}

static void on_say(struct socketio_socket *socket, const struct socketio_message *message,
                   void *ctx) {
    struct buf room;
    (void)ctx;
    text_of(json_find(message->data, STR("room")), &room);
    socketio_emit(socketio, STR("/v1"), buf_str(&room), STR("said"),
                  json_find(message->data, STR("data")).raw);
    socketio_ack(socket, message->ack, STR_EMPTY);
    buf_done(&room);
}

static void on_whoami(struct socketio_socket *socket, const struct socketio_message *message,
                      void *ctx) {
    struct buf out;
    const char *user = socketio_user(socket);
    (void)ctx;
    buf_init(&out, TEXT_MAX_BYTES);
    struct json_writer writer = json_writer(&out);
    json_open_object(&writer);
    json_member_str(&writer, "user", str_from(user));
    json_member_str(&writer, "header", socketio_header(socket, STR("x-firebase-uid")));
    json_member_str(&writer, "peer", socketio_peer(socket));
    json_close(&writer);
    socketio_ack(socket, message->ack, buf_str(&out));
    buf_done(&out);
}

static void on_counts(struct socketio_socket *socket, const struct socketio_message *message,
                      void *ctx) {
    struct socketio_counts counts = socketio_counts(socketio);
    struct buf out;
    (void)ctx;
    buf_init(&out, TEXT_MAX_BYTES);
    struct json_writer writer = json_writer(&out);
    json_open_object(&writer);
    json_member_u64(&writer, "sessions", counts.sessions);
    json_member_u64(&writer, "sockets", counts.sockets);
    json_member_u64(&writer, "opened", counts.opened);
    json_member_u64(&writer, "upgraded", counts.upgraded);
    json_member_u64(&writer, "refused", counts.refused);
    json_member_u64(&writer, "received", counts.received);
    json_member_u64(&writer, "emitted", counts.emitted);
    json_member_u64(&writer, "sent", counts.sent);
    json_member_u64(&writer, "lagged", counts.lagged);
    json_close(&writer);
    socketio_ack(socket, message->ack, buf_str(&out));
    buf_done(&out);
}

static void on_flood(struct socketio_socket *socket, const struct socketio_message *message,
                     void *ctx) {
    char text[1026];
    int64_t count = 0;
    (void)ctx;
    memset(text, 'x', sizeof(text));
    text[0] = text[sizeof(text) - 1] = '"';
    if (!json_i64(message->data, &count)) return;
    for (int64_t i = 0; i < count; i++)
        socketio_emit(socketio, STR("/v1"), socketio_id(socket), STR("flood"),
                      str_of(text, sizeof(text)));
}

static void on_bye(struct socketio_socket *socket, const struct socketio_message *message,
                   void *ctx) {
    (void)message;
    (void)ctx;
    socketio_disconnect(socket);
}

static const struct socketio_event events[] = {
    {STR_INIT("echo"), on_echo},     {STR_INIT("join"), on_join},
    {STR_INIT("leave"), on_leave},   {STR_INIT("say"), on_say},
    {STR_INIT("whoami"), on_whoami}, {STR_INIT("counts"), on_counts},
    {STR_INIT("flood"), on_flood},   {STR_INIT("bye"), on_bye},
};

/* --- namespaces ---------------------------------------------------------------------------- */

static void on_connect(struct socketio_socket *socket, struct json auth, void *ctx) {
    (void)ctx;
    struct str uid = socketio_header(socket, STR("x-firebase-uid"));
    if (uid.len)
        socketio_accept(socket, str_dup(uid));
    else if (json_is(json_find(auth, STR("token")), STR("good")))
        socketio_accept(socket, str_dup(STR("by token")));
    else
        socketio_refuse(socket, STR("unauthorized"), STR("\"missing authentication\""));
}

static void on_disconnected(struct socketio_socket *socket, enum socketio_reason why,
                            void *ctx) {
    (void)ctx;
    printf("gone " STR_FMT "\n", STR_ARG(socketio_reason_name(why)));
    fflush(stdout);
    free(socketio_user(socket));
}

/* A decision that takes its time. */
struct later {
    struct timer timer;
    struct socketio_socket *socket;
    struct list link;
};

static struct list laters[LOOPS_MAX];

static size_t loop_index(const struct loop *loop) {
    size_t i = 0;
    while (loops[i] != loop) i++;
    return i;
}

static void later_free(struct later *later) {
    timer_stop(&later->timer);
    list_remove(&later->link);
    free(later);
}

static void on_later(void *ctx) {
    struct later *later = ctx;
    socketio_accept(later->socket, NULL);
    later_free(later);
}

static void connect_later(struct socketio_socket *socket, struct json auth, void *ctx) {
    struct later *later = MEM_NEW(struct later);
    (void)auth;
    (void)ctx;
    later->socket = socket;
    timer_init(&later->timer, socketio_loop(socket), on_later, later);
    timer_start(&later->timer, LATER_MS);
    list_append(&laters[loop_index(socketio_loop(socket))], &later->link);
}

static void later_gone(struct socketio_socket *socket, enum socketio_reason why, void *ctx) {
    LIST_EACH(&laters[loop_index(socketio_loop(socket))], link) {
        struct later *later = CONTAINER_OF(link, struct later, link);
        if (later->socket == socket) later_free(later);
    }
    on_disconnected(socket, why, ctx);
}

static const struct socketio_namespace namespaces[] = {
    {.name = STR_INIT("/v1"),
     .connect = on_connect,
     .disconnected = on_disconnected,
     .events = events,
     .event_count = ARRAY_LEN(events)},
    {.name = STR_INIT("/"),
     .disconnected = on_disconnected,
     .events = events,
     .event_count = ARRAY_LEN(events)},
    {.name = STR_INIT("/later"),
     .connect = connect_later,
     .disconnected = later_gone,
     .events = events,
     .event_count = ARRAY_LEN(events)},
};

/* --- chunks for measurements --------------------------------------------------------------- */

static uint64_t now_ns(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

static void emit_chunk(void) {
    char room[32], json[256];
    int room_len = snprintf(room, sizeof(room), "bench:%llu", (unsigned long long)next_room);
    int len = snprintf(json, sizeof(json), "{\"at\":%llu,\"chunk\":\"%s\"}",
                       (unsigned long long)now_ns(), CHUNK_TEXT);
    next_room = (next_room + 1) % set.rooms;
    socketio_emit(socketio, STR("/v1"), str_of(room, (size_t)room_len), STR("message.chunk"),
                  str_of(json, (size_t)len));
}

static void on_tick(void *ctx) {
    (void)ctx;
    uint64_t now = now_ns();
    chunk_debt += (now - last_tick_ns) * set.chunks / 1000;
    last_tick_ns = now;
    for (; chunk_debt >= 1000000; chunk_debt -= 1000000) emit_chunk();
    timer_start(&ticking, 1);
}

/* --- the program --------------------------------------------------------------------------- */

static void on_request(struct exchange *exchange, void *ctx) {
    (void)ctx;
    route_serve(sites[loop_index(exchange_loop(exchange))], exchange);
}

static void on_stop_loop(void *ctx) {
    loop_stop(ctx);
}

static void on_server_stopped(void *ctx) {
    (void)ctx;
    for (size_t i = 0; i < ARRAY_LEN(signals); i++) uv_close((uv_handle_t *)&signals[i], NULL);
    for (size_t i = 0; i < set.loops; i++)
        loop_post(loops[i], &stops[i], on_stop_loop, loops[i]);
}

static void on_socketio_stopped(void *ctx) {
    (void)ctx;
    server_stop(server, STOP_WITHIN_MS, on_server_stopped, NULL);
}

static void on_signal(uv_signal_t *handle, int number) {
    (void)handle;
    (void)number;
    timer_stop(&ticking);
    socketio_stop(socketio, on_socketio_stopped, NULL);
}

static bool take_setting(struct str argument) {
    struct str value, name = str_split(argument, '=', &value);
    const struct {
        const char *name;
        uint64_t *place;
    } numbers[] = {
        {"port", &set.port},       {"loops", &set.loops},
        {"ping_ms", &set.ping_ms}, {"timeout_ms", &set.timeout_ms},
        {"join_ms", &set.join_ms}, {"payload", &set.payload},
        {"queue", &set.queue},     {"sessions", &set.sessions},
        {"chunks", &set.chunks},   {"connections", &set.connections},
        {"rooms", &set.rooms},
    };
    uint64_t number;
    if (!value.at || !str_to_u64(value, &number)) return false;
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
        if (!str_equal(name, str_from(numbers[i].name))) continue;
        *numbers[i].place = number;
        return true;
    }
    return false;
}

static bool start_socketio(struct err *e) {
    static const struct str headers[] = {STR_INIT("x-firebase-uid"), STR_INIT("authorization")};
    const struct socketio_options options = {
        .loops = loops,
        .loop_count = set.loops,
        .namespaces = namespaces,
        .namespace_count = ARRAY_LEN(namespaces),
        .headers = headers,
        .header_count = ARRAY_LEN(headers),
        .origins = socketio_default_origins,
        .origin_count = ARRAY_LEN(socketio_default_origins),
        .ping_interval_ms = set.ping_ms,
        .ping_timeout_ms = set.timeout_ms,
        .connect_timeout_ms = set.join_ms,
        .payload_max_bytes = set.payload,
        .queue_max_bytes = set.queue,
        .sessions_max = set.sessions,
    };
    return socketio_new(&options, &socketio, e);
}

static bool start_server(struct server_limits *limits, struct err *e) {
    char address[32];
    *limits = server_limits_default;
    limits->connections_max = set.connections;
    snprintf(address, sizeof(address), "127.0.0.1:%u", (unsigned)set.port);
    server = server_new(loops, set.loops);
    return server_listen(server,
                         &(struct listener_options){.name = STR("http"),
                                                    .address = str_from(address),
                                                    .limits = limits,
                                                    .on_request = on_request},
                         e);
}

static void *run_loop(void *ctx) {
    loop_run(ctx);
    return NULL;
}

static void run(void) {
    static const int numbers[] = {SIGTERM, SIGINT};
    pthread_t threads[LOOPS_MAX];
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
        uv_signal_init(loop_uv(loops[0]), &signals[i]);
        uv_signal_start(&signals[i], on_signal, numbers[i]);
    }
    timer_init(&ticking, loops[0], on_tick, NULL);
    last_tick_ns = now_ns();
    if (set.chunks) timer_start(&ticking, 1);
    for (size_t i = 1; i < set.loops; i++)
        pthread_create(&threads[i], NULL, run_loop, loops[i]);
    printf("port %d\n", server_port(server, STR("http")));
    fflush(stdout);
    loop_run(loops[0]);
    for (size_t i = 1; i < set.loops; i++) pthread_join(threads[i], NULL);
}

int main(int argc, char **argv) {
    struct server_limits limits;
    struct err e;
    for (int i = 1; i < argc; i++) {
        if (take_setting(str_from(argv[i]))) continue;
        fprintf(stderr, "socketio_server: '%s' is not a name=number\n", argv[i]);
        return 2;
    }
    if (set.loops < 1 || set.loops > LOOPS_MAX) set.loops = 1;
    signal(SIGPIPE, SIG_IGN);
    for (size_t i = 0; i < set.loops; i++) {
        loops[i] = loop_new();
        list_init(&laters[i]);
    }
    if (!start_socketio(&e) || !start_server(&limits, &e)) {
        fprintf(stderr, "socketio_server: %s\n", e.text);
        return 1;
    }
    const struct route_table *tables[] = {socketio_routes(socketio)};
    for (size_t i = 0; i < set.loops; i++) sites[i] = route_site_new(loops[i], tables, 1);
    run();
    server_free(server);
    for (size_t i = 0; i < set.loops; i++) {
        route_site_free(sites[i]);
        loop_free(loops[i]);
    }
    socketio_free(socketio);
    return 0;
}
