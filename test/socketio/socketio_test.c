/* Sessions and sockets on a fake loop, with the client at the other end of fake exchanges: the
 * clock, the order of callbacks, and what a slow client costs. test/e2e/test_socketio.py meets
 * the same server with real clients. */
#include "socketio/inner.h"
#include "socketio/socketio.h"

#include "fake/exchange_fake.h"
#include "helper/moves.h"

#define QUEUE_MAX_BYTES 1000

static struct loop *loop;
static struct socketio *server;
static struct route_site *site;
static const struct route_table *tables[1];
static struct buf seen;
static struct socketio_socket *sock; /* the newest; NULL once it is gone */
static bool decides;                 /* the hook accepts at once */

/* --- the owner ----------------------------------------------------------------------------- */

static void on_connect(struct socketio_socket *socket, struct json auth, void *ctx) {
    (void)auth;
    (void)ctx;
    sock = socket;
    if (decides) socketio_accept(socket, &seen);
}

static void on_disconnected(struct socketio_socket *socket, enum socketio_reason why,
                            void *ctx) {
    (void)ctx;
    buf_printf(&seen, STR_FMT ";", STR_ARG(socketio_reason_name(why)));
    if (sock == socket) sock = NULL;
}

static void on_event(struct socketio_socket *socket, const struct socketio_message *message,
                     void *ctx) {
    (void)ctx;
    buf_printf(&seen, STR_FMT "=" STR_FMT ";", STR_ARG(message->event),
               STR_ARG(message->data.raw));
    if (str_equal(message->event, STR("bye"))) socketio_disconnect(socket);
}

static const struct socketio_event events[] = {{{"", 0}, on_event}};
static const struct socketio_namespace namespaces[] = {{.name = STR_INIT("/v1"),
                                                        .connect = on_connect,
                                                        .disconnected = on_disconnected,
                                                        .events = events,
                                                        .event_count = 1}};

static int setup(void **state) {
    struct err e;
    (void)state;
    loop = loop_new_fake();
    const struct socketio_options options = {.loops = &loop,
                                             .loop_count = 1,
                                             .namespaces = namespaces,
                                             .namespace_count = 1,
                                             .payload_max_bytes = 1000,
                                             .queue_max_bytes = QUEUE_MAX_BYTES};
    if (!socketio_new(&options, &server, &e)) return -1;
    tables[0] = socketio_routes(server);
    site = route_site_new(loop, tables, 1);
    buf_init(&seen, 64 * KIB);
    sock = NULL;
    decides = true;
    return 0;
}

static void on_stopped(void *ctx) {
    *(bool *)ctx = true;
}

static int teardown(void **state) {
    bool stopped = false;
    (void)state;
    socketio_stop(server, on_stopped, &stopped);
    while (!stopped) loop_turn(loop);
    fake_settle(loop);
    route_site_free(site);
    socketio_free(server);
    loop_free(loop);
    buf_done(&seen);
    return 0;
}

static void seen_is(const char *expected) {
    assert_str(buf_str(&seen), expected);
    buf_clear(&seen);
}

/* --- the client ---------------------------------------------------------------------------- */

static void serve(struct exchange *exchange, void *ctx) {
    route_serve(ctx, exchange);
}

static struct exchange *ask(const char *method, const char *target, const char *body) {
    struct exchange *x = fake_new(loop, method, target);
    fake_http(x, EXCHANGE_HTTP_1_1);
    fake_start(x, serve, site);
    if (*body) fake_body(x, str_from(body));
    fake_body_end(x);
    fake_settle(loop);
    return x;
}

struct poller {
    char target[128];
};

static void poller_open(struct poller *poller) {
    struct exchange *x = ask("GET", "/socket.io/?EIO=4&transport=polling", "");
    struct str sid = str_head(str_skip(fake_sent(x), 9), SOCKETIO_ID_BYTES);
    assert_int_equal(fake_status(x), 200);
    snprintf(poller->target, sizeof(poller->target),
             "/socket.io/?EIO=4&transport=polling&sid=" STR_FMT, STR_ARG(sid));
    fake_free(x);
}

static void says(const struct poller *poller, const char *body, int status) {
    struct exchange *x = ask("POST", poller->target, body);
    assert_int_equal(fake_status(x), status);
    fake_free(x);
}

static void hears(const struct poller *poller, const char *expected) {
    struct exchange *x = ask("GET", poller->target, "");
    assert_int_equal(fake_status(x), 200);
    assert_str(fake_sent(x), expected);
    fake_free(x);
}

/* Connected, with its answer read. */
static void poller_join(struct poller *poller) {
    poller_open(poller);
    says(poller, "40/v1,", 200);
    struct exchange *x = ask("GET", poller->target, "");
    fake_free(x);
    assert_non_null(sock);
}

static struct exchange *websocket(void) {
    struct exchange *x = fake_new(loop, "GET", "/socket.io/?EIO=4&transport=websocket");
    fake_http(x, EXCHANGE_HTTP_1_1);
    fake_field(x, "connection", "upgrade");
    fake_field(x, "upgrade", "websocket");
    fake_field(x, "sec-websocket-version", "13");
    fake_field(x, "sec-websocket-key", "dGhlIHNhbXBsZSBub25jZQ==");
    fake_start(x, serve, site);
    fake_body_end(x);
    fake_settle(loop);
    assert_int_equal(fake_status(x), 101);
    return x;
}

static void sends(struct exchange *x, const char *text) {
    struct buf frame;
    buf_init(&frame, 4096);
    websocket_append(&frame, WEBSOCKET_CLIENT, WEBSOCKET_TEXT, str_from(text));
    fake_body(x, buf_str(&frame));
    fake_settle(loop);
    buf_done(&frame);
}

/* --- states -------------------------------------------------------------------------------- */

static void every_pair_of_states_is_allowed_or_not(void **state) {
    (void)state;
    static const char *const sessions[] = {
        "new polling",       "new streaming",  "new closed",
        "polling probing",   "polling closed", "probing polling",
        "probing streaming", "probing closed", "streaming closed",
    };
    static const char *const sockets[] = {
        "connecting connected", "connecting leaving", "connecting gone",
        "connected leaving",    "leaving gone",
    };
    assert_moves(peer_states, PEER_STATE_COUNT, sessions, ARRAY_LEN(sessions));
    assert_moves(socketio_socket_states, SOCKET_STATE_COUNT, sockets, ARRAY_LEN(sockets));
}

/* --- time ---------------------------------------------------------------------------------- */

static void the_server_pings_and_waits_for_the_answer(void **state) {
    (void)state;
    struct poller poller;
    poller_join(&poller);
    loop_advance(loop, 24999);
    struct exchange *x = ask("GET", poller.target, "");
    assert_int_equal(fake_status(x), 0);
    loop_advance(loop, 1);
    assert_str(fake_sent(x), "2");
    fake_free(x);
    loop_advance(loop, 19999);
    says(&poller, "3", 200);
    loop_advance(loop, 25000);
    hears(&poller, "2");
    loop_advance(loop, 20000);
    seen_is("timeout;");
    x = ask("GET", poller.target, "");
    assert_int_equal(fake_status(x), 400);
    fake_free(x);
}

static void a_session_without_a_namespace_ends_after_45_seconds(void **state) {
    (void)state;
    struct poller poller;
    poller_open(&poller);
    loop_advance(loop, 25000);
    hears(&poller, "2");
    says(&poller, "3", 200);
    loop_advance(loop, 20000);
    struct exchange *x = ask("GET", poller.target, "");
    assert_int_equal(fake_status(x), 400);
    fake_free(x);
    assert_int_equal(socketio_counts(server).sessions, 0);
}

static void a_session_whose_last_namespace_was_left_ends_too(void **state) {
    (void)state;
    struct poller poller;
    poller_join(&poller);
    says(&poller, "41/v1,", 200);
    seen_is("client left;");
    loop_advance(loop, 25000);
    says(&poller, "3", 200);
    assert_int_equal(socketio_counts(server).sessions, 1);
    loop_advance(loop, 20000);
    assert_int_equal(socketio_counts(server).sessions, 0);
}

/* --- callbacks ----------------------------------------------------------------------------- */

static void disconnected_follows_in_a_later_turn(void **state) {
    (void)state;
    struct poller poller;
    poller_join(&poller);
    socketio_disconnect(sock);
    socketio_send(sock, STR("late"), STR("1"));
    seen_is("");
    loop_turn(loop);
    seen_is("server left;");
    hears(&poller, "41/v1,");
}

static void events_after_a_disconnect_are_dropped(void **state) {
    (void)state;
    struct exchange *x = websocket();
    sends(x, "40/v1,");
    struct buf both;
    buf_init(&both, 256);
    websocket_append(&both, WEBSOCKET_CLIENT, WEBSOCKET_TEXT, STR("42/v1,[\"bye\"]"));
    websocket_append(&both, WEBSOCKET_CLIENT, WEBSOCKET_TEXT, STR("42/v1,[\"late\"]"));
    fake_body(x, buf_str(&both));
    buf_done(&both);
    fake_settle(loop);
    seen_is("bye=;server left;");
    fake_leave(x);
    fake_settle(loop);
    fake_free(x);
}

static void a_socket_that_is_not_decided_about_is_told_to_be_gone(void **state) {
    (void)state;
    decides = false;
    struct exchange *x = websocket();
    sends(x, "40/v1,");
    assert_non_null(sock);
    fake_leave(x);
    fake_settle(loop);
    seen_is("client left;");
    fake_free(x);
}

static void a_socket_may_be_refused_later(void **state) {
    (void)state;
    struct poller poller;
    decides = false;
    poller_open(&poller);
    says(&poller, "40/v1,", 200);
    socketio_refuse(sock, STR("no"), STR_EMPTY);
    seen_is("");
    hears(&poller, "44/v1,{\"message\":\"no\"}");
}

/* --- rooms --------------------------------------------------------------------------------- */

static void an_emit_reaches_a_room_in_a_later_turn_and_once(void **state) {
    (void)state;
    struct poller one, two;
    poller_join(&one);
    assert_true(socketio_join(sock, STR("r")));
    assert_true(socketio_join(sock, STR("r")));
    poller_join(&two);
    socketio_emit(server, STR("/v1"), STR("r"), STR("a"), STR("1"));
    socketio_emit(server, STR("/v1"), STR_EMPTY, STR("b"), STR_EMPTY);
    socketio_emit(server, STR("/v1"), socketio_id(sock), STR("c"), STR("2"));
    socketio_emit(server, STR("/v2"), STR("r"), STR("d"), STR("3"));
    loop_turn(loop);
    hears(&one, "42/v1,[\"a\",1]\x1e"
                "42/v1,[\"b\"]");
    hears(&two, "42/v1,[\"b\"]\x1e"
                "42/v1,[\"c\",2]");
    assert_int_equal(socketio_counts(server).sent, 4);
}

static void a_room_without_members_is_no_more(void **state) {
    (void)state;
    struct poller poller;
    poller_join(&poller);
    size_t rooms = map_count(server->branches[0].rooms);
    assert_true(socketio_join(sock, STR("r")));
    assert_true(socketio_is_in(sock, STR("r")));
    assert_int_equal(map_count(server->branches[0].rooms), rooms + 1);
    socketio_leave(sock, STR("r"));
    socketio_leave(sock, STR("r"));
    assert_false(socketio_is_in(sock, STR("r")));
    assert_int_equal(map_count(server->branches[0].rooms), rooms);
    says(&poller, "1", 200);
    assert_int_equal(map_count(server->branches[0].rooms), 0);
}

static void a_client_whose_queue_is_full_is_dropped_and_the_rest_hear_it(void **state) {
    (void)state;
    struct poller slow, fine;
    poller_join(&slow);
    poller_join(&fine);
    struct str json = STR("\"0123456789012345678901234567890123456789\"");
    for (int i = 0; i < 20; i++) {
        socketio_emit(server, STR("/v1"), STR_EMPTY, STR("x"), json);
        loop_turn(loop);
        struct exchange *x = ask("GET", fine.target, "");
        assert_int_equal(fake_status(x), 200);
        fake_free(x);
    }
    seen_is("lagged;");
    assert_int_equal(socketio_counts(server).lagged, 1);
    assert_int_equal(socketio_counts(server).sessions, 1);
}

static void a_websocket_that_is_not_read_is_dropped(void **state) {
    (void)state;
    struct exchange *x = websocket();
    sends(x, "40/v1,");
    fake_stop_reading(x);
    for (int i = 0; i < 100 && sock; i++) {
        socketio_send(sock, STR("x"), STR("\"0123456789012345678901234567890123456789\""));
        loop_turn(loop);
    }
    seen_is("lagged;");
    fake_settle(loop);
    fake_free(x);
}

static void a_peer_that_stops_answers_a_waiting_get(void **state) {
    (void)state;
    struct poller poller;
    bool stopped = false;
    poller_join(&poller);
    struct exchange *waiting = ask("GET", poller.target, "");
    socketio_stop(server, on_stopped, &stopped);
    loop_turn(loop);
    loop_turn(loop);
    assert_true(stopped);
    assert_str(fake_sent(waiting), "1");
    seen_is("the server stops;");
    struct exchange *x = ask("GET", "/socket.io/?EIO=4&transport=polling", "");
    assert_int_equal(fake_status(x), 503);
    fake_free(x);
    fake_free(waiting);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(every_pair_of_states_is_allowed_or_not),
        TEST(the_server_pings_and_waits_for_the_answer),
        TEST(a_session_without_a_namespace_ends_after_45_seconds),
        TEST(a_session_whose_last_namespace_was_left_ends_too),
        TEST(disconnected_follows_in_a_later_turn),
        TEST(events_after_a_disconnect_are_dropped),
        TEST(a_socket_that_is_not_decided_about_is_told_to_be_gone),
        TEST(a_socket_may_be_refused_later),
        TEST(an_emit_reaches_a_room_in_a_later_turn_and_once),
        TEST(a_room_without_members_is_no_more),
        TEST(a_client_whose_queue_is_full_is_dropped_and_the_rest_hear_it),
        TEST(a_websocket_that_is_not_read_is_dropped),
        TEST(a_peer_that_stops_answers_a_waiting_get),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
