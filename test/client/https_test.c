/* Calls over TLS to our own server. The server prefers HTTP/2; the client offers it where a request
 * may share a connection. */
#include "client/http.h"

#include "client/peer.h"
#include "server/server.h"

static char folder[] = "/tmp/weir-https-XXXXXX";

/* --- the server --------------------------------------------------------------------------- */

static void on_body(struct exchange *exchange, struct lent bytes, void *ctx) {
    (void)ctx;
    exchange_consumed(exchange, lent_read(bytes).len);
}

static void on_body_end(struct exchange *exchange, void *ctx) {
    static const struct field fields[] = {{STR_INIT("content-type"), STR_INIT("text/plain")}};
    static const struct field down[] = {
        {STR_INIT("location"), STR_INIT("HTTP://127.0.0.1:1/plain")}};
    (void)ctx;
    if (str_equal(exchange_path(exchange), STR("/silent"))) return;
    if (str_equal(exchange_path(exchange), STR("/down"))) {
        exchange_head(exchange, 302, down, ARRAY_LEN(down));
        exchange_end(exchange, NULL, 0);
        return;
    }
    exchange_head(exchange, 200, fields, ARRAY_LEN(fields));
    exchange_send(exchange,
                  exchange_http(exchange) == EXCHANGE_HTTP_2 ? STR("two") : STR("one"));
    if (str_equal(exchange_path(exchange), STR("/half"))) return;
    exchange_end(exchange, NULL, 0);
}

static void on_closed(struct exchange *exchange, enum exchange_close how, void *ctx) {
    int *left = ctx;
    (void)exchange;
    *left += how == EXCHANGE_PEER_LEFT;
}

static void on_request(struct exchange *exchange, void *ctx) {
    static const struct exchange_events events = {on_body, on_body_end, NULL, on_closed};
    exchange_accept(exchange, &events, ctx);
}

struct scene {
    struct asker asker;
    struct server *server;
    int left; /* calls that their peer gave up */
    char url[64];
};

static void open_scene(struct scene *scene, const char *name) {
    char cert[64], key[64];
    struct err e;
    *scene = (struct scene){0};
    asker_open(&scene->asker);
    scene->server = server_new(&scene->asker.loop, 1);
    snprintf(cert, sizeof(cert), "%s/%s.pem", folder, name);
    snprintf(key, sizeof(key), "%s/%s.key", folder, name);
    struct tls_options tls = {.cert = str_from(cert), .key = str_from(key)};
    struct listener_options options = {.name = STR("http"),
                                       .address = STR("127.0.0.1:0"),
                                       .on_request = on_request,
                                       .ctx = &scene->left,
                                       .tls = &tls};
    if (!server_listen(scene->server, &options, &e)) fail_msg("%s", e.text);
}

static void on_stopped(void *ctx) {
    struct scene *scene = ctx;
    loop_stop(scene->asker.loop);
}

static void shut_scene(struct scene *scene) {
    http_pool_leave(scene->asker.pool, scene->asker.loop);
    http_pool_free(scene->asker.pool);
    server_stop(scene->server, 1000, on_stopped, scene);
    loop_run(scene->asker.loop);
    server_free(scene->server);
    loop_free(scene->asker.loop);
}

static struct http_request request_of(struct scene *scene, const char *path) {
    snprintf(scene->url, sizeof(scene->url), "https://localhost:%d%s",
             server_port(scene->server, STR("http")), path);
    return (struct http_request){.method = STR("GET"), .url = str_from(scene->url)};
}

/* --- tests -------------------------------------------------------------------------------- */

static void a_certificate_of_an_unknown_authority_is_refused(void **state) {
    (void)state;
    struct scene scene;
    struct ask ask = {0};
    open_scene(&scene, "unknown");
    struct http_request request = request_of(&scene, "/");
    ask_start(&ask, &scene.asker, &request);
    loop_run(scene.asker.loop);
    assert_str(buf_str(&ask.heard), "UNAVAILABLE");
    assert_non_null(strstr(ask.why, "its certificate is not trusted"));
    assert_non_null(strstr(ask.why, "SSL_CERT_FILE"));
    assert_int_equal(ask.stage, HTTP_CONNECTING);
    ask_done(&ask);
    shut_scene(&scene);
}

static void calls_that_follow_each_other_share_a_connection(void **state) {
    (void)state;
    struct scene scene;
    open_scene(&scene, "known");
    for (int i = 0; i < 3; i++) {
        struct ask ask = {0};
        struct http_request request = request_of(&scene, "/");
        ask_start(&ask, &scene.asker, &request);
        loop_run(scene.asker.loop);
        assert_str(buf_str(&ask.heard), "200 text/plain;one;whole");
        ask_done(&ask);
    }
    assert_int_equal(server_counts(scene.server).accepted, 1);
    shut_scene(&scene);
}

static void http_2_is_spoken_where_a_request_may_share(void **state) {
    (void)state;
    struct scene scene;
    open_scene(&scene, "known");
    for (int i = 0; i < 4; i++) {
        struct ask ask = {0};
        struct http_request request = request_of(&scene, "/");
        request.shared = true;
        request.once = i >= 2;
        ask_start(&ask, &scene.asker, &request);
        loop_run(scene.asker.loop);
        assert_str(buf_str(&ask.heard),
                   i < 2 ? "200 text/plain;two;whole" : "200 text/plain;one;whole");
        ask_done(&ask);
    }
    assert_int_equal(server_counts(scene.server).accepted, 3);
    shut_scene(&scene);
}

/* X4: what was asked for in secret is not asked for in the open. */
static void https_never_follows_to_http(void **state) {
    (void)state;
    struct scene scene;
    struct ask ask = {0};
    open_scene(&scene, "known");
    struct http_request request = request_of(&scene, "/down");
    request.redirects_max = 5;
    ask_start(&ask, &scene.asker, &request);
    loop_run(scene.asker.loop);
    assert_str(buf_str(&ask.heard), "UNAVAILABLE");
    assert_non_null(strstr(ask.why, "from https: to what is not https:"));
    ask_done(&ask);
    shut_scene(&scene);
}

static bool up_to_https(struct peer *peer, int fd, struct str request) {
    char head[128];
    (void)request;
    snprintf(head, sizeof(head), "HTTP/1.1 302 F\r\nLocation: %s\r\nContent-Length: 0\r\n\r\n",
             (const char *)peer->ctx);
    return peer_say(peer, fd, head);
}

static void nor_when_a_redirect_led_to_https(void **state) {
    (void)state;
    struct scene scene;
    struct peer peer;
    struct ask ask = {0};
    char url[64];
    open_scene(&scene, "known");
    struct http_request down = request_of(&scene, "/down");
    (void)down; /* its address stands in the scene */
    peer_start(&peer, up_to_https, scene.url);
    struct http_request request = get_request(url, sizeof(url), &peer, "/");
    request.redirects_max = 5;
    ask_start(&ask, &scene.asker, &request);
    loop_run(scene.asker.loop);
    assert_str(buf_str(&ask.heard), "UNAVAILABLE");
    assert_non_null(strstr(ask.why, "from https: to what is not https:"));
    ask_done(&ask);
    shut_scene(&scene);
    peer_stop(&peer);
}

static void a_cancelled_stream_ends_at_the_server(void **state) {
    (void)state;
    struct scene scene;
    struct ask half = {.cancels = AT_BODY}, next = {0};
    open_scene(&scene, "known");
    struct http_request request = request_of(&scene, "/half");
    ask_start(&half, &scene.asker, &request);
    loop_run(scene.asker.loop);
    assert_str(buf_str(&half.heard), "200 text/plain;one");
    request = request_of(&scene, "/");
    ask_start(&next, &scene.asker, &request);
    loop_run(scene.asker.loop);
    assert_str(buf_str(&next.heard), "200 text/plain;one;whole");
    assert_int_equal(scene.left, 1);
    ask_done(&half);
    ask_done(&next);
    shut_scene(&scene);
}

static void a_paused_call_does_not_stop_the_others(void **state) {
    (void)state;
    struct scene scene;
    struct ask paused = {.pauses = AT_HEAD, .pauses_left = 1, .pause_ms = 600000}, next = {0};
    open_scene(&scene, "known");
    struct http_request request = request_of(&scene, "/");
    ask_start(&paused, &scene.asker, &request);
    ask_start(&next, &scene.asker, &request);
    scene.asker.open = 1; /* until one of them is over */
    loop_run(scene.asker.loop);
    assert_str(buf_str(&next.heard), "200 text/plain;one;whole");
    assert_int_equal(paused.ends, 0);
    scene.asker.open = 1;
    timer_start(&paused.resume, 0);
    loop_run(scene.asker.loop);
    assert_str(buf_str(&paused.heard), "200 text/plain;one;whole");
    ask_done(&paused);
    ask_done(&next);
    shut_scene(&scene);
}

/* --- certificates ------------------------------------------------------------------------- */

static int make_certificate(const char *name) {
    char line[512];
    snprintf(line, sizeof(line),
             "cd %s && openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 "
             "-nodes -days 2 -subj /CN=localhost -addext subjectAltName=DNS:localhost "
             "-keyout %s.key -out %s.pem >log 2>&1",
             folder, name, name);
    return system(line); /* NOLINT(cert-env33-c): a test */
}

/* One of two is trusted. */
static int make_certificates(void **state) {
    char path[64];
    (void)state;
    if (!mkdtemp(folder)) return -1;
    snprintf(path, sizeof(path), "%s/known.pem", folder);
    setenv("SSL_CERT_FILE", path, 1);
    unsetenv("SSL_CERT_DIR");
    return make_certificate("known") | make_certificate("unknown");
}

static int remove_certificates(void **state) {
    char line[64];
    (void)state;
    snprintf(line, sizeof(line), "rm -r %s", folder);
    return system(line); /* NOLINT(cert-env33-c): a test */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_certificate_of_an_unknown_authority_is_refused),
        cmocka_unit_test(calls_that_follow_each_other_share_a_connection),
        cmocka_unit_test(http_2_is_spoken_where_a_request_may_share),
        cmocka_unit_test(a_cancelled_stream_ends_at_the_server),
        cmocka_unit_test(https_never_follows_to_http),
        cmocka_unit_test(nor_when_a_redirect_led_to_https),
        cmocka_unit_test(a_paused_call_does_not_stop_the_others),
    };
    return cmocka_run_group_tests(tests, make_certificates, remove_certificates);
}
