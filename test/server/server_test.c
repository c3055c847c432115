/* Real sockets: listeners, several loops, stopping. The client is this thread, with blocking
 * calls; the server's loops have threads of their own. */
#include "server/server.h"

#include "helper/moves.h"
#include "loop/loop.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <semaphore.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>
/* cmocka wants some of these before it. */
#include <cmocka.h>

#define LOOPS 2

struct town {
    struct loop *loops[LOOPS];
    pthread_t threads[LOOPS];
    struct server *server;
    struct server_limits limits;
    struct mail stop, halt[LOOPS];
    uint64_t within_ms;
    sem_t left; /* a call was closed because its peer left */
    sem_t held; /* a call that is never answered has begun */
};

/* --- the application ---------------------------------------------------------------------- */

static void on_body(struct exchange *exchange, struct lent lent, void *ctx) {
    struct str bytes = lent_read(lent);
    (void)ctx;
    exchange_send(exchange, bytes);
    exchange_consumed(exchange, bytes.len);
}

static void on_body_end(struct exchange *exchange, void *ctx) {
    struct town *town = ctx;
    if (str_equal(exchange_path(exchange), STR("/hold"))) {
        sem_post(&town->held);
        return;
    }
    exchange_send(exchange, exchange_peer(exchange));
    exchange_end(exchange, NULL, 0);
}

static void on_closed(struct exchange *exchange, enum exchange_close how, void *ctx) {
    (void)exchange;
    struct town *town = ctx;
    if (how == EXCHANGE_PEER_LEFT) sem_post(&town->left);
}

static const struct exchange_events events = {on_body, on_body_end, NULL, on_closed};

static void on_request(struct exchange *exchange, void *ctx) {
    exchange_accept(exchange, &events, ctx);
    exchange_head(exchange, 200, NULL, 0);
}

/* --- the server --------------------------------------------------------------------------- */

static void halt(void *ctx) {
    loop_stop(ctx);
}

static void halt_all(void *ctx) {
    struct town *town = ctx;
    for (size_t i = 0; i < LOOPS; i++)
        loop_post(town->loops[i], &town->halt[i], halt, town->loops[i]);
}

static void stop(void *ctx) {
    struct town *town = ctx;
    server_stop(town->server, town->within_ms, halt_all, town);
}

static void *run(void *loop) {
    loop_run(loop);
    return NULL;
}

static struct town *build_town(void) {
    struct town *town = calloc(1, sizeof(*town));
    for (size_t i = 0; i < LOOPS; i++) town->loops[i] = loop_new();
    town->server = server_new(town->loops, LOOPS);
    town->limits = server_limits_default;
    town->within_ms = 5000;
    sem_init(&town->left, 0, 0);
    sem_init(&town->held, 0, 0);
    return town;
}

static bool listen_on(struct town *town, struct str name, struct str address, struct err *e) {
    const struct listener_options options = {.name = name,
                                             .address = address,
                                             .limits = &town->limits,
                                             .on_request = on_request,
                                             .ctx = town};
    return server_listen(town->server, &options, e);
}

static void start(struct town *town) {
    for (size_t i = 0; i < LOOPS; i++)
        assert_int_equal(pthread_create(&town->threads[i], NULL, run, town->loops[i]), 0);
}

static void begin_stop(struct town *town) {
    loop_post(town->loops[0], &town->stop, stop, town);
}

static void await_end(struct town *town) {
    for (size_t i = 0; i < LOOPS; i++) pthread_join(town->threads[i], NULL);
    struct server_counts counts = server_counts(town->server);
    assert_int_equal(counts.connections, 0);
    assert_int_equal(counts.exchanges, 0);
    server_free(town->server);
    for (size_t i = 0; i < LOOPS; i++) loop_free(town->loops[i]);
    sem_destroy(&town->left);
    sem_destroy(&town->held);
    free(town);
}

static void finish(struct town *town) {
    begin_stop(town);
    await_end(town);
}

/* --- the client --------------------------------------------------------------------------- */

static int dial(int port) {
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    return fd;
}

static void say(int fd, const char *text) {
    assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

/* Read until `part` has come; false when the connection ends before. */
static bool hear(int fd, const char *part) {
    char text[4096];
    size_t len = 0;
    while (len < sizeof(text) - 1) {
        ssize_t more = recv(fd, text + len, 1, 0);
        if (more <= 0) return false;
        len += (size_t)more;
        text[len] = '\0';
        if (strstr(text, part)) return true;
    }
    return false;
}

#define GET "GET / HTTP/1.1\r\nHost: a\r\n\r\n"
#define HOLD "GET /hold HTTP/1.1\r\nHost: a\r\n\r\n"

/* --- tests -------------------------------------------------------------------------------- */

static void connections_on_every_loop_are_served(void **state) {
    (void)state;
    struct town *town = build_town();
    struct err e;
    assert_true(listen_on(town, STR("http"), STR("127.0.0.1:0"), &e));
    int port = server_port(town->server, STR("http"));
    assert_true(port > 0);
    assert_int_equal(server_port(town->server, STR("other")), 0);
    start(town);
    int fds[8];
    for (size_t i = 0; i < ARRAY_LEN(fds); i++) fds[i] = dial(port);
    for (size_t round = 0; round < 3; round++) {
        for (size_t i = 0; i < ARRAY_LEN(fds); i++) say(fds[i], GET);
        for (size_t i = 0; i < ARRAY_LEN(fds); i++) assert_true(hear(fds[i], "127.0.0.1:"));
        for (size_t i = 0; i < ARRAY_LEN(fds); i++) { /* the rest of the port */
            char digits[16];
            assert_true(recv(fds[i], digits, sizeof(digits), 0) > 0);
        }
    }
    struct server_counts counts = server_counts(town->server);
    assert_int_equal(counts.accepted, 8);
    assert_int_equal(counts.requests, 24);
    assert_int_equal(counts.connections, 8);
    for (size_t i = 0; i < ARRAY_LEN(fds); i++) close(fds[i]);
    finish(town);
}

static void a_unix_socket_is_served_and_its_file_removed(void **state) {
    (void)state;
    char path[64], address[80];
    snprintf(path, sizeof(path), "/tmp/weir-test-%d.sock", (int)getpid());
    snprintf(address, sizeof(address), "unix:%s", path);
    /* A dead server's file is no obstacle. */
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    memcpy(name.sun_path, path, strlen(path));
    int stale = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(bind(stale, (struct sockaddr *)&name, sizeof(name)), 0);
    close(stale);

    struct town *town = build_town();
    struct err e;
    assert_true(listen_on(town, STR("local"), str_from(address), &e));
    assert_int_equal(server_port(town->server, STR("local")), 0);
    start(town);
    int fd = socket(AF_UNIX, SOCK_STREAM, 0);
    assert_int_equal(connect(fd, (struct sockaddr *)&name, sizeof(name)), 0);
    say(fd, GET);
    assert_true(hear(fd, "\r\n\r\nunix"));
    close(fd);
    finish(town);
    assert_int_not_equal(access(path, F_OK), 0);
}

static void a_taken_address_is_explained(void **state) {
    (void)state;
    struct town *town = build_town();
    struct err e;
    char address[32];
    assert_true(listen_on(town, STR("one"), STR("127.0.0.1:0"), &e));
    snprintf(address, sizeof(address), "127.0.0.1:%d", server_port(town->server, STR("one")));
    assert_false(listen_on(town, STR("two"), str_from(address), &e));
    assert_int_equal(e.code, ERR_UNAVAILABLE);
    assert_non_null(strstr(e.text, address));
    char holder[64];
    snprintf(holder, sizeof(holder), "it is taken by pid %d (server_test). Use --two ",
             (int)getpid());
    assert_non_null(strstr(e.text, holder));
    assert_false(listen_on(town, STR("three"), STR("nowhere"), &e));
    assert_int_equal(e.code, ERR_INVALID_ARGUMENT);
    assert_false(listen_on(town, STR("four"), STR("192.0.2.1:1"), &e));
    assert_int_equal(e.code, ERR_UNAVAILABLE);
    start(town);
    finish(town);
}

static void a_server_that_is_not_to_serve_accepts_no_one_who_waits(void **state) {
    (void)state;
    struct town *town = build_town();
    struct err e;
    char byte;
    assert_true(listen_on(town, STR("one"), STR("127.0.0.1:0"), &e));
    int fd = dial(server_port(town->server, STR("one")));
    say(fd, GET);
    server_unlisten(town->server);
    loop_post(town->loops[0], &town->halt[0], halt, town->loops[0]);
    loop_run(town->loops[0]);
    assert_true(recv(fd, &byte, 1, 0) <= 0);
    close(fd);
    server_free(town->server);
    for (size_t i = 0; i < LOOPS; i++) loop_free(town->loops[i]);
    sem_destroy(&town->left);
    sem_destroy(&town->held);
    free(town);
}

static void a_peer_that_leaves_is_noticed_while_nothing_is_said(void **state) {
    (void)state;
    struct town *town = build_town();
    struct err e;
    assert_true(listen_on(town, STR("http"), STR("127.0.0.1:0"), &e));
    start(town);
    int fd = dial(server_port(town->server, STR("http")));
    say(fd, HOLD);
    assert_true(hear(fd, "\r\n\r\n"));
    sem_wait(&town->held);
    close(fd);
    sem_wait(&town->left);
    finish(town);
}

static void stopping_cuts_what_does_not_end(void **state) {
    (void)state;
    struct town *town = build_town();
    struct err e;
    town->within_ms = 10;
    assert_true(listen_on(town, STR("http"), STR("127.0.0.1:0"), &e));
    start(town);
    int fds[4];
    for (size_t i = 0; i < ARRAY_LEN(fds); i++) {
        fds[i] = dial(server_port(town->server, STR("http")));
        say(fds[i], HOLD);
        sem_wait(&town->held);
    }
    finish(town);
    for (size_t i = 0; i < ARRAY_LEN(fds); i++) {
        assert_false(hear(fds[i], "never said"));
        close(fds[i]);
    }
}

/* The idle one is closed when the stop begins, so what comes then came late. */
static void a_late_connection_is_served_while_others_are_busy(void **state) {
    (void)state;
    struct town *town = build_town();
    struct err e;
    assert_true(listen_on(town, STR("http"), STR("127.0.0.1:0"), &e));
    start(town);
    int port = server_port(town->server, STR("http"));
    int busy = dial(port), idle = dial(port);
    say(busy, HOLD);
    sem_wait(&town->held);
    say(idle, GET);
    assert_true(hear(idle, "127.0.0.1:"));
    begin_stop(town);
    assert_false(hear(idle, "never said"));
    int late[3];
    for (size_t i = 0; i < ARRAY_LEN(late); i++) {
        late[i] = dial(port);
        say(late[i], GET);
        assert_true(hear(late[i], "127.0.0.1:"));
    }
    say(late[0], HOLD); /* and the stop does not wait long for it */
    sem_wait(&town->held);
    close(busy);
    await_end(town);
    for (size_t i = 0; i < ARRAY_LEN(late); i++) close(late[i]);
    close(idle);
}

static void let_go(void *ctx) {
    struct town *town = ctx;
    server_let_go(town->server);
}

static void a_server_that_is_held_serves_until_it_is_let_go(void **state) {
    (void)state;
    struct town *town = build_town();
    struct mail mail;
    struct err e;
    assert_true(listen_on(town, STR("http"), STR("127.0.0.1:0"), &e));
    int port = server_port(town->server, STR("http"));
    server_hold(town->server);
    start(town);
    int idle = dial(port);
    say(idle, GET);
    assert_true(hear(idle, "127.0.0.1:"));
    begin_stop(town);
    assert_false(hear(idle, "never said")); /* the stop has begun, and no connection is left */
    for (int i = 0; i < 3; i++) {
        int late = dial(port);
        say(late, GET);
        assert_true(hear(late, "127.0.0.1:"));
        close(late);
    }
    loop_post(town->loops[1], &mail, let_go, town);
    await_end(town);
    close(idle);
}

static void connections_beyond_the_limit_wait_for_their_turn(void **state) { /* H9 */
    (void)state;
    struct town *town = build_town();
    struct err e;
    town->limits.connections_max = 2;
    assert_true(listen_on(town, STR("http"), STR("127.0.0.1:0"), &e));
    int port = server_port(town->server, STR("http"));
    start(town);
    int fds[6];
    for (size_t i = 0; i < ARRAY_LEN(fds); i++) {
        fds[i] = dial(port);
        say(fds[i], GET);
    }
    for (size_t i = 0; i < ARRAY_LEN(fds); i++) {
        assert_true(hear(fds[i], "127.0.0.1:"));
        assert_true(server_counts(town->server).connections <= 2);
        close(fds[i]);
    }
    finish(town);
}

static void a_server_without_descriptors_recovers(void **state) { /* L1 */
    (void)state;
    struct town *town = build_town();
    struct err e;
    assert_true(listen_on(town, STR("http"), STR("127.0.0.1:0"), &e));
    int port = server_port(town->server, STR("http"));
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    /* From here on no new descriptor can be had: the limit is one above the last. */
    struct rlimit before, now;
    getrlimit(RLIMIT_NOFILE, &before);
    now = (struct rlimit){(rlim_t)fd + 1, before.rlim_max};
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &now), 0);
    start(town);
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)port),
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
    say(fd, GET);
    setrlimit(RLIMIT_NOFILE, &before);
    assert_true(hear(fd, "127.0.0.1:"));
    close(fd);
    finish(town);
}

static void only_the_drawn_phases_are_legal(void **state) {
    (void)state;
    static const char *const drawn[] = {"serving draining", "draining closing"};
    assert_moves(server_phases, SERVER_PHASE_COUNT, drawn, ARRAY_LEN(drawn));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_the_drawn_phases_are_legal),
        cmocka_unit_test(connections_on_every_loop_are_served),
        cmocka_unit_test(a_unix_socket_is_served_and_its_file_removed),
        cmocka_unit_test(a_taken_address_is_explained),
        cmocka_unit_test(a_server_that_is_not_to_serve_accepts_no_one_who_waits),
        cmocka_unit_test(a_peer_that_leaves_is_noticed_while_nothing_is_said),
        cmocka_unit_test(stopping_cuts_what_does_not_end),
        cmocka_unit_test(a_late_connection_is_served_while_others_are_busy),
        cmocka_unit_test(a_server_that_is_held_serves_until_it_is_let_go),
        cmocka_unit_test(connections_beyond_the_limit_wait_for_their_turn),
        cmocka_unit_test(a_server_without_descriptors_recovers),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
