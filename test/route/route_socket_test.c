/* A WebSocket of a route, as the peer sees it: the opening, messages both ways, endings. */
#include "route/route_socket.h"

#include "fake/exchange_fake.h"
#include "helper/assert_str.h"

#include "base/mem.h"

#define MESSAGE_MAX_BYTES 100
#define QUEUE_MAX_BYTES 200

static struct loop *loop;
static struct route_site *site;
static struct buf seen;
static struct route_socket *sock; /* NULL once it is closed */

static void on_message(struct route_socket *it, enum websocket_kind kind, struct str data,
                       void *ctx) {
    assert_ptr_equal(ctx, &seen);
    buf_printf(&seen, "%s=" STR_FMT ";", kind == WEBSOCKET_TEXT ? "text" : "binary",
               STR_ARG(data));
    if (str_equal(data, STR("echo"))) route_socket_send(it, kind, data);
    if (str_equal(data, STR("close"))) route_socket_close(it, 4000, STR("as you wish"));
}

static void on_closed(unsigned code, void *ctx) {
    assert_ptr_equal(ctx, &seen);
    buf_printf(&seen, "closed %u;", code);
    sock = NULL;
}

static const struct route_socket_events events = {.message = on_message, .closed = on_closed};

static void handle(struct route_call *call, void *ctx) {
    const struct route_socket_options options = {MESSAGE_MAX_BYTES, QUEUE_MAX_BYTES};
    (void)ctx;
    sock = route_socket_accept(call, &options, &events, &seen);
}

static const struct route rows[] = {
    {STR_INIT("GET"), STR_INIT("/ws"), handle, ROUTE_OPEN, ROUTE_PLAIN},
};
static const struct route_table table = {.rows = rows, .row_count = 1, .body_max_bytes = 10};
static const struct route_table *const tables[] = {&table};

static int setup(void **state) {
    struct err e;
    (void)state;
    if (!websocket_load(&e)) return -1;
    loop = loop_new_fake();
    site = route_site_new(loop, tables, 1);
    buf_init(&seen, 64 * KIB);
    sock = NULL;
    return 0;
}

static int teardown(void **state) {
    (void)state;
    route_site_free(site);
    loop_free(loop);
    buf_done(&seen);
    return 0;
}

static void serve(struct exchange *exchange, void *ctx) {
    route_serve(ctx, exchange);
}

struct opening {
    const char *connection, *upgrade, *version, *key;
};

static const struct opening good = {"keep-alive, Upgrade", "WebSocket", "13",
                                    "dGhlIHNhbXBsZSBub25jZQ=="};

static struct exchange *opened(const struct opening *opening, enum exchange_http http) {
    struct exchange *x = fake_new(loop, "GET", "/ws");
    fake_http(x, http);
    if (opening->connection) fake_field(x, "connection", opening->connection);
    if (opening->upgrade) fake_field(x, "upgrade", opening->upgrade);
    if (opening->version) fake_field(x, "sec-websocket-version", opening->version);
    if (opening->key) fake_field(x, "sec-websocket-key", opening->key);
    fake_start(x, serve, site);
    fake_body_end(x);
    return x;
}

static struct exchange *connected(void) {
    struct exchange *x = opened(&good, EXCHANGE_HTTP_1_1);
    fake_settle(loop);
    assert_int_equal(fake_status(x), 101);
    assert_non_null(sock);
    return x;
}

/* The peer sends one message. */
static void says(struct exchange *x, enum websocket_kind kind, struct str data) {
    struct buf frame;
    buf_init(&frame, 4096);
    if (kind == WEBSOCKET_CLOSE)
        websocket_append_close(&frame, WEBSOCKET_CLIENT, 1000, data);
    else
        websocket_append(&frame, WEBSOCKET_CLIENT, kind, data);
    fake_body(x, buf_str(&frame));
    fake_settle(loop);
    buf_done(&frame);
}

static void done(struct exchange *x, const char *expected) {
    fake_settle(loop);
    assert_true(fake_closed(x));
    assert_null(sock);
    assert_str(buf_str(&seen), expected);
    fake_free(x);
}

static void sent(struct exchange *x, struct str expected) {
    if (str_equal(fake_sent(x), expected)) return;
    fail_msg("sent %zu bytes", fake_sent(x).len);
}

/* --- opening ------------------------------------------------------------------------------ */

static void an_upgrade_is_answered_with_its_accept(void **state) {
    (void)state;
    struct exchange *x = connected();
    assert_str(fake_value(fake_head(x), "sec-websocket-accept"),
               "s3pPLMBiTxaQ9kYGzzhZRbK+xOo=");
    assert_str(fake_value(fake_head(x), "upgrade"), "websocket");
    assert_true(fake_forgotten(x));
    fake_leave(x);
    done(x, "closed 1006;");
}

static void refused(struct opening opening, enum exchange_http http, int status) {
    struct exchange *x = opened(&opening, http);
    assert_null(sock);
    assert_int_equal(fake_status(x), status);
    done(x, "");
}

static void what_is_no_websocket_is_refused(void **state) {
    (void)state;
    struct opening plain = {0}, other = good, old = good, keyless = good, odd = good;
    other.upgrade = "h2c";
    old.version = "8";
    keyless.key = NULL;
    odd.key = "short";
    refused(plain, EXCHANGE_HTTP_1_1, 426);
    refused(other, EXCHANGE_HTTP_1_1, 426);
    refused(old, EXCHANGE_HTTP_1_1, 426);
    refused(keyless, EXCHANGE_HTTP_1_1, 400);
    refused(odd, EXCHANGE_HTTP_1_1, 400);
    refused(good, EXCHANGE_HTTP_2, 426);
    refused(good, EXCHANGE_HTTP_1_0, 426);
}

/* --- messages ----------------------------------------------------------------------------- */

static void messages_go_both_ways(void **state) {
    (void)state;
    struct exchange *x = connected();
    says(x, WEBSOCKET_TEXT, STR("a"));
    says(x, WEBSOCKET_BINARY, STR("b"));
    says(x, WEBSOCKET_TEXT, STR("echo"));
    sent(x, STR("\x81\x04"
                "echo"));
    assert_int_equal(fake_unconsumed(x), 0);
    fake_leave(x);
    done(x, "text=a;binary=b;text=echo;closed 1006;");
}

static void a_ping_is_answered_with_its_data(void **state) {
    (void)state;
    struct exchange *x = connected();
    says(x, WEBSOCKET_PING, STR("p"));
    says(x, WEBSOCKET_PONG, STR("q"));
    sent(x, STR("\x8a\x01p"));
    fake_leave(x);
    done(x, "closed 1006;");
}

/* --- endings ------------------------------------------------------------------------------ */

static void a_close_is_answered_and_ends_the_connection(void **state) {
    (void)state;
    struct exchange *x = connected();
    says(x, WEBSOCKET_CLOSE, STR("bye"));
    sent(x, STR("\x88\x02\x03\xe8"));
    done(x, "closed 1000;");
}

static void we_may_close_and_hear_nothing_more(void **state) {
    (void)state;
    struct exchange *x = connected();
    says(x, WEBSOCKET_TEXT, STR("close"));
    sent(x, STR("\x88\x0d\x0f\xa0"
                "as you wish"));
    done(x, "text=close;closed 4000;");
}

static void a_fault_is_answered_with_its_code(void **state) {
    (void)state;
    struct exchange *x = connected();
    fake_body(x, STR("\x81\x01z"));
    fake_settle(loop);
    assert_true(str_starts(str_skip(fake_sent(x), 2), STR("\x03\xea")));
    done(x, "closed 1002;");
}

static void a_message_beyond_the_limit_is_answered_with_1009(void **state) {
    (void)state;
    char text[MESSAGE_MAX_BYTES + 1];
    struct exchange *x = connected();
    memset(text, 'x', sizeof(text));
    says(x, WEBSOCKET_TEXT, str_of(text, sizeof(text)));
    done(x, "closed 1009;");
}

static void a_stop_closes_with_1001(void **state) {
    (void)state;
    struct exchange *x = connected();
    route_site_stop(site);
    fake_settle(loop);
    assert_true(str_starts(str_skip(fake_sent(x), 2), STR("\x03\xe9")));
    done(x, "closed 1001;");
}

static void a_peer_that_reads_nothing_is_cut_when_its_queue_is_full(void **state) {
    (void)state;
    struct exchange *x = connected();
    fake_stop_reading(x);
    for (int i = 0; i < 19; i++) {
        route_socket_send(sock, WEBSOCKET_TEXT, STR("12345678"));
        assert_false(route_socket_lagged(sock));
    }
    route_socket_send(sock, WEBSOCKET_TEXT, STR("12345678")); /* 200 bytes, all of the queue */
    assert_false(route_socket_lagged(sock));
    route_socket_send(sock, WEBSOCKET_TEXT, STR("12345678"));
    assert_true(route_socket_lagged(sock));
    route_socket_send_frame(sock, STR("dropped"));
    route_socket_close(sock, 1000, STR("dropped"));
    done(x, "closed 1006;");
}

static void while_memory_is_scarce_less_may_wait(void **state) {
    (void)state;
    struct exchange *x = connected();
    fake_stop_reading(x);
    mem_limit(mem_counted() + 1000 * KIB);
    mem_count(900 * KIB);
    route_socket_send(sock, WEBSOCKET_TEXT, STR("12345678"));
    route_socket_send(sock, WEBSOCKET_TEXT, STR("12345678"));
    assert_false(route_socket_lagged(sock)); /* 20 of 25 bytes */
    route_socket_send(sock, WEBSOCKET_TEXT, STR("12345678"));
    mem_uncount(900 * KIB);
    mem_limit(0);
    assert_true(route_socket_lagged(sock));
    done(x, "closed 1006;");
}

static void a_message_of_any_size_fits_an_empty_queue(void **state) {
    (void)state;
    char text[QUEUE_MAX_BYTES * 2];
    struct exchange *x = connected();
    memset(text, 'x', sizeof(text));
    route_socket_send(sock, WEBSOCKET_TEXT, str_of(text, sizeof(text)));
    assert_false(route_socket_lagged(sock));
    fake_settle(loop);
    assert_int_equal(fake_sent(x).len, sizeof(text) + 4);
    fake_leave(x);
    done(x, "closed 1006;");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(an_upgrade_is_answered_with_its_accept),
        TEST(what_is_no_websocket_is_refused),
        TEST(messages_go_both_ways),
        TEST(a_ping_is_answered_with_its_data),
        TEST(a_close_is_answered_and_ends_the_connection),
        TEST(we_may_close_and_hear_nothing_more),
        TEST(a_fault_is_answered_with_its_code),
        TEST(a_message_beyond_the_limit_is_answered_with_1009),
        TEST(a_stop_closes_with_1001),
        TEST(a_peer_that_reads_nothing_is_cut_when_its_queue_is_full),
        TEST(while_memory_is_scarce_less_may_wait),
        TEST(a_message_of_any_size_fits_an_empty_queue),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
