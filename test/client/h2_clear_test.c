/* Requests that share HTTP/2 connections without TLS, to servers that may not speak it. */
#include "client/h2_peer.h"
#include "client/peer.h"

enum speech { TWO, ONE_REFUSES, ONE_CLOSES };

struct scene {
    struct peer peer;
    struct asker asker;
    enum speech speech;
    atomic_int twos, ones; /* requests over HTTP/2 and HTTP/1.1 */
    int32_t half;
    char fields[1024];
    char url[64];
};

/* --- the server --------------------------------------------------------------------------- */

static void on_request(struct h2_peer *h2, int32_t id, struct str path, bool whole) {
    struct scene *scene = h2->ctx;
    if (!whole) return;
    atomic_fetch_add(&scene->twos, 1);
    memcpy(scene->fields, h2->fields, sizeof(scene->fields));
    if (str_equal(path, STR("/required")))
        h2_peer_reset(h2, id, NGHTTP2_HTTP_1_1_REQUIRED);
    else if (str_equal(path, STR("/goaway")))
        h2_peer_goaway(h2, 0, NGHTTP2_HTTP_1_1_REQUIRED);
    else if (str_equal(path, STR("/late"))) {
        h2_peer_begin(h2, id, "200", NULL);
        h2_peer_settle(h2); /* a reset overtakes what was not sent */
        h2_peer_reset(h2, id, NGHTTP2_HTTP_1_1_REQUIRED);
    } else if (str_equal(path, STR("/die")))
        h2->hangs_up = true;
    else
        h2_peer_answer(h2, id, STR("two"), NULL);
}

static void speak_two(struct peer *peer, int fd, struct str first) {
    struct h2_peer h2;
    char bytes[16 * KIB];
    ssize_t got;
    h2_peer_open(&h2, 100, on_request, peer->ctx);
    h2_peer_feed(&h2, first);
    while (peer_send(peer, fd, buf_str(&h2.out)) && !h2.hangs_up) {
        buf_clear(&h2.out);
        if ((got = peer_raw_recv(fd, bytes, sizeof(bytes))) <= 0) break;
        h2_peer_feed(&h2, str_of(bytes, (size_t)got));
    }
    h2_peer_shut(&h2);
}

static bool speak(struct peer *peer, int fd, struct str first) {
    struct scene *scene = peer->ctx;
    if (!str_starts(first, STR("PRI "))) {
        atomic_fetch_add(&scene->ones, 1);
        return peer_say(peer, fd, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\none");
    }
    if (scene->speech == TWO) speak_two(peer, fd, first);
    if (scene->speech == ONE_REFUSES)
        (void)peer_say(peer, fd, "HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n");
    return false;
}

/* --- who asks ----------------------------------------------------------------------------- */

static void open_scene(struct scene *scene, enum speech speech) {
    *scene = (struct scene){.speech = speech};
    peer_start(&scene->peer, speak, scene);
    asker_open(&scene->asker);
}

static void shut_scene(struct scene *scene, int connections, int twos, int ones) {
    asker_shut(&scene->asker);
    peer_stop(&scene->peer);
    assert_int_equal(atomic_load(&scene->peer.accepted), connections);
    assert_int_equal(atomic_load(&scene->twos), twos);
    assert_int_equal(atomic_load(&scene->ones), ones);
}

static void expect_post(struct scene *scene, const char *path, const char *heard) {
    struct ask ask = {0};
    struct http_request request =
        get_request(scene->url, sizeof(scene->url), &scene->peer, path);
    request.method = STR("POST");
    request.body = STR("body");
    request.shared = true;
    ask_start(&ask, &scene->asker, &request);
    loop_run(scene->asker.loop);
    assert_str(buf_str(&ask.heard), heard);
    assert_int_equal(ask.ends, 1);
    ask_done(&ask);
}

/* --- tests -------------------------------------------------------------------------------- */

static void a_server_that_speaks_it_has_one_connection(void **state) {
    (void)state;
    struct scene scene;
    open_scene(&scene, TWO);
    for (int i = 0; i < 3; i++) expect_post(&scene, "/", "200 application/grpc;two;whole");
    assert_non_null(strstr(scene.fields, ":scheme=http;"));
    shut_scene(&scene, 1, 3, 0);
}

/* The second call takes the connection that the first one left. */
static void a_server_without_it_is_asked_over_http_1(void **state) {
    (void)state;
    for (int speech = ONE_REFUSES; speech <= ONE_CLOSES; speech++) {
        struct scene scene;
        open_scene(&scene, (enum speech)speech);
        for (int i = 0; i < 2; i++) expect_post(&scene, "/", "200 ;one;whole");
        shut_scene(&scene, 2, 0, 2);
    }
}

static void a_request_may_be_wanted_over_http_1(void **state) {
    (void)state;
    static const char *const paths[] = {"/required", "/goaway"};
    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        struct scene scene;
        open_scene(&scene, TWO);
        expect_post(&scene, paths[i], "200 ;one;whole");
        shut_scene(&scene, 2, 1, 1);
    }
}

/* It has begun to answer, so it has done something. */
static void an_answer_is_not_asked_for_again(void **state) {
    (void)state;
    struct scene scene;
    open_scene(&scene, TWO);
    expect_post(&scene, "/late", "200 application/grpc;UNAVAILABLE");
    shut_scene(&scene, 1, 1, 0);
}

static void a_request_that_was_sent_is_not_repeated(void **state) {
    (void)state;
    struct scene scene;
    open_scene(&scene, TWO);
    expect_post(&scene, "/die", "UNAVAILABLE");
    shut_scene(&scene, 1, 1, 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_server_that_speaks_it_has_one_connection),
        cmocka_unit_test(a_server_without_it_is_asked_over_http_1),
        cmocka_unit_test(a_request_may_be_wanted_over_http_1),
        cmocka_unit_test(an_answer_is_not_asked_for_again),
        cmocka_unit_test(a_request_that_was_sent_is_not_repeated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
