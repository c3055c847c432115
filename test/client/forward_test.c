/* A forwarded request reports every line and byte of an answer, also of one that is no HTTP. */
#include "client/forward.h"

#include "client/peer.h"

struct heard {
    struct loop *loop;
    struct forward *forward;
    struct buf text, raw;
    bool cancel_at_body, cancel_at_line, ended;
};

static void on_bytes(struct str bytes, void *ctx) {
    buf_append(&((struct heard *)ctx)->raw, bytes);
}

static void on_line(struct str line, void *ctx) {
    struct heard *heard = ctx;
    buf_printf(&heard->text, STR_FMT "|", STR_ARG(line));
    if (!heard->cancel_at_line) return;
    forward_cancel(heard->forward);
    loop_stop(heard->loop);
}

static void on_body(struct str bytes, void *ctx) {
    struct heard *heard = ctx;
    buf_append(&heard->text, bytes);
    if (!heard->cancel_at_body) return;
    forward_cancel(heard->forward);
    loop_stop(heard->loop);
}

static void on_end(const struct err *why, enum http_stage stage, void *ctx) {
    struct heard *heard = ctx;
    (void)stage;
    heard->ended = true;
    buf_append(&heard->text, why ? STR("!") : STR("."));
    loop_stop(heard->loop);
}

static const struct forward_sink sink = {
    .on_line = on_line, .on_body = on_body, .on_end = on_end, .on_bytes = on_bytes};

static bool say_text(struct peer *peer, int fd, struct str request) {
    (void)request;
    peer_say(peer, fd, peer->ctx);
    return str_find(str_from(peer->ctx), STR("Content-Length")) < strlen(peer->ctx);
}

static void heard_init(struct heard *heard, struct loop *loop) {
    *heard = (struct heard){.loop = loop};
    buf_init(&heard->text, 64 * KIB);
    buf_init(&heard->raw, 64 * KIB);
}

static void heard_done(struct heard *heard) {
    buf_done(&heard->text);
    buf_done(&heard->raw);
}

static void forward_one(struct asker *asker, const struct peer *peer, bool reuse,
                        struct heard *heard) {
    char url[64];
    struct err e;
    snprintf(url, sizeof(url), PEER_SCHEME "://127.0.0.1:%u", peer->port);
    const struct forward_request request = {
        .url = str_from(url), .head = STR("GET / HTTP/1.1\r\nHost: a\r\n\r\n"), .reuse = reuse};
    assert_true(
        forward_start(asker->pool, asker->loop, &request, &sink, heard, &heard->forward, &e));
    loop_run(asker->loop);
}

static const struct {
    const char *said, *heard;
} answers[] = {
    {"HTTP/1.1 200 OK\r\nA: b\r\nContent-Length: 5\r\n\r\nhello",
     "HTTP/1.1 200|A: b|Content-Length: 5||hello."},
    {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
     "HTTP/1.1 100||HTTP/1.1 200|Content-Length: 0||."},
    {"HTTP/1.1 302 Found\r\nLocation: /b\r\nContent-Length: 0\r\n\r\n",
     "HTTP/1.1 302|Location: /b|Content-Length: 0||."},
    {"HTTP/1.1 200 OK\r\n\r\nhello", "HTTP/1.1 200||hello."},
    {"HTTP/1.1 200 OK\r\nContent-Le", "HTTP/1.1 200|!"},
    {"SSH-2.0-OpenSSH\r\n", "!"},
    {"", "!"},
};

static void each_answer_is_reported_as_it_came(void **state) {
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(answers); i++) {
        struct peer peer;
        struct asker asker;
        struct heard heard;
        peer_start(&peer, say_text, (void *)(uintptr_t)answers[i].said);
        asker_open(&asker);
        heard_init(&heard, asker.loop);
        forward_one(&asker, &peer, false, &heard);
        assert_str(buf_str(&heard.text), answers[i].heard);
        assert_str(buf_str(&heard.raw), answers[i].said);
        heard_done(&heard);
        asker_shut(&asker);
        peer_stop(&peer);
    }
}

static void a_request_may_be_cancelled_in_its_callbacks(void **state) {
    (void)state;
    for (unsigned in_body = 0; in_body < 2; in_body++) {
        struct peer peer;
        struct asker asker;
        struct heard heard;
        peer_start(&peer, say_text, (void *)(uintptr_t)answers[0].said);
        asker_open(&asker);
        heard_init(&heard, asker.loop);
        heard.cancel_at_body = in_body;
        heard.cancel_at_line = !in_body;
        forward_one(&asker, &peer, false, &heard);
        assert_false(heard.ended);
        heard_done(&heard);
        asker_shut(&asker);
        peer_stop(&peer);
    }
}

static void a_connection_is_reused_only_when_that_is_asked_for(void **state) {
    (void)state;
    struct peer peer;
    struct asker asker;
    struct heard heard;
    peer_start(&peer, say_text, (void *)(uintptr_t)answers[0].said);
    asker_open(&asker);
    for (unsigned i = 0; i < 3; i++) {
        heard_init(&heard, asker.loop);
        forward_one(&asker, &peer, i == 1, &heard);
        assert_true(heard.ended);
        heard_done(&heard);
        if (i == 1) forward_close_idle(asker.pool, asker.loop);
    }
    assert_int_equal(atomic_load(&peer.accepted), 2);
    asker_shut(&asker);
    peer_stop(&peer);
}

static void a_url_says_where_and_nothing_else(void **state) {
    (void)state;
    struct forward_server server;
    struct err e;
    assert_true(forward_server_of(STR("https://[::1]:8443/base/"), &server, &e));
    assert_str(server.host, "::1");
    assert_str(server.authority, "[::1]:8443");
    assert_int_equal(server.port, 8443);
    assert_true(server.secure);
    assert_str(server.path, "/base/");
    static const char *const wrong[] = {"", "ftp://a", "a", "http://user@a"};
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
        assert_false(forward_server_of(str_from(wrong[i]), &server, &e));
    /* Without a port: 8080 is the checker's example, and where the sidecar itself listens. */
    assert_false(forward_server_of(STR("a"), &server, &e));
    assert_str(err_text(&e), "'a' is no URL; it should look like http://HOST:PORT");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_answer_is_reported_as_it_came),
        cmocka_unit_test(a_request_may_be_cancelled_in_its_callbacks),
        cmocka_unit_test(a_connection_is_reused_only_when_that_is_asked_for),
        cmocka_unit_test(a_url_says_where_and_nothing_else),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
