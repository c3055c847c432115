/* Requests that share HTTP/2 connections, to servers that misbehave by path. */
#define PEER_SECURE
#include "client/h2_peer.h"
#include "client/peer.h"

#define LARGE_BYTES (300 * KIB)

/* --- the server --------------------------------------------------------------------------- */

struct scene {
    struct peer peer;
    struct asker asker;
    uint32_t max_streams;
    atomic_int requests; /* with their body */
    int32_t half;        /* a stream that waits for its rest */
    char fields[1024];   /* of the newest request */
    size_t heard;        /* of its body */
    char url[64];
};

static void on_request(struct h2_peer *h2, int32_t id, struct str path, bool whole) {
    struct scene *scene = h2->ctx;
    bool first = id == 1; /* on its connection */
    if (!whole) return;
    atomic_fetch_add(&scene->requests, 1);
    memcpy(scene->fields, h2->fields, sizeof(scene->fields));
    scene->heard = h2_peer_stream(h2, id)->heard.len;
    if (str_equal(path, STR("/silent"))) return;
    if (str_equal(path, STR("/half"))) {
        scene->half = id;
        h2_peer_begin(h2, id, "200", NULL);
        h2_peer_say(h2, id, STR("part"), false);
    } else if (str_equal(path, STR("/finish"))) {
        h2_peer_say(h2, scene->half, STR(" and rest"), true);
        h2_peer_answer(h2, id, STR("two"), NULL);
    } else if (str_equal(path, STR("/reset"))) {
        h2_peer_begin(h2, id, "200", NULL);
        h2_peer_reset(h2, id, NGHTTP2_INTERNAL_ERROR);
    } else if (str_equal(path, STR("/refuse")) ||
               (str_equal(path, STR("/refuse-once")) && !first)) {
        h2_peer_reset(h2, id, NGHTTP2_REFUSED_STREAM);
    } else if (str_equal(path, STR("/goaway")) && !first) {
        h2_peer_goaway(h2, id - 2, NGHTTP2_NO_ERROR);
        h2_peer_say(h2, scene->half, STR(" and rest"), true);
    } else if (str_equal(path, STR("/die")) || (str_equal(path, STR("/die-once")) && !first)) {
        h2->hangs_up = true;
    } else if (str_equal(path, STR("/required"))) {
        h2_peer_reset(h2, id, NGHTTP2_HTTP_1_1_REQUIRED);
    } else if (str_equal(path, STR("/large"))) {
        char *text = mem_zero(1, LARGE_BYTES);
        h2_peer_answer(h2, id, str_of(text, LARGE_BYTES), NULL);
        free(text);
    } else {
        h2_peer_answer(h2, id, STR("two"), NULL);
    }
}

/* The whole connection: what came first looks like the head of a request. */
static bool speak(struct peer *peer, int fd, struct str first) {
    struct scene *scene = peer->ctx;
    struct h2_peer h2;
    char bytes[16 * KIB];
    ssize_t got;
    if (str_starts(first, STR("GET /required HTTP/1.1\r\n")))
        return peer_say(peer, fd, "HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\none");
    assert_true(str_starts(first, STR("PRI * HTTP/2.0\r\n\r\n")));
    h2_peer_open(&h2, scene->max_streams, on_request, scene);
    h2_peer_feed(&h2, first);
    while (peer_send(peer, fd, buf_str(&h2.out)) && !h2.hangs_up) {
        buf_clear(&h2.out);
        if ((got = peer_raw_recv(fd, bytes, sizeof(bytes))) <= 0) break;
        h2_peer_feed(&h2, str_of(bytes, (size_t)got));
    }
    h2_peer_shut(&h2);
    return false;
}

static struct http_request request_of(struct scene *scene, const char *path) {
    struct http_request request =
        get_request(scene->url, sizeof(scene->url), &scene->peer, path);
    request.shared = true;
    return request;
}

static void begin(struct ask *ask, struct scene *scene, const char *path) {
    struct http_request request = request_of(scene, path);
    ask_start(ask, &scene->asker, &request);
}

static void expect(struct ask *ask, const char *heard) {
    assert_str(buf_str(&ask->heard), heard);
    assert_int_equal(ask->ends, 1);
    ask_done(ask);
}

/* A connection is there, and has carried a call. */
static void open_scene(struct scene *scene, uint32_t max_streams) {
    struct ask ask = {0};
    *scene = (struct scene){.max_streams = max_streams};
    peer_start(&scene->peer, speak, scene);
    asker_open(&scene->asker);
    begin(&ask, scene, "/");
    loop_run(scene->asker.loop);
    expect(&ask, "200 application/grpc;two;whole");
    atomic_store(&scene->requests, 0);
}

static void shut_scene(struct scene *scene, int connections, int requests) {
    asker_shut(&scene->asker);
    peer_stop(&scene->peer);
    assert_int_equal(atomic_load(&scene->peer.accepted), connections);
    assert_int_equal(atomic_load(&scene->requests), requests);
}

/* --- tests -------------------------------------------------------------------------------- */

static void many_calls_share_a_connection(void **state) {
    (void)state;
    struct scene scene;
    struct ask asks[20] = {0};
    open_scene(&scene, 100);
    for (size_t i = 0; i < ARRAY_LEN(asks); i++) begin(&asks[i], &scene, "/");
    loop_run(scene.asker.loop);
    for (size_t i = 0; i < ARRAY_LEN(asks); i++)
        expect(&asks[i], "200 application/grpc;two;whole");
    shut_scene(&scene, 1, ARRAY_LEN(asks));
}

static void what_has_no_room_gets_another_connection(void **state) {
    (void)state;
    struct scene scene;
    struct ask held = {0}, asks[3] = {0}, last = {0};
    open_scene(&scene, 1);
    begin(&held, &scene, "/half");
    for (size_t i = 0; i < ARRAY_LEN(asks); i++) begin(&asks[i], &scene, "/");
    scene.asker.open = ARRAY_LEN(asks); /* the other one has no end */
    loop_run(scene.asker.loop);
    for (size_t i = 0; i < ARRAY_LEN(asks); i++)
        expect(&asks[i], "200 application/grpc;two;whole");
    scene.asker.open = 0;
    begin(&last, &scene, "/");
    loop_run(scene.asker.loop);
    expect(&last, "200 application/grpc;two;whole");
    assert_int_equal(held.ends, 0);
    http_cancel(held.call);
    ask_done(&held);
    int accepted = atomic_load(&scene.peer.accepted);
    assert_in_range(accepted, 2, 4);
    shut_scene(&scene, accepted, 5);
}

static void a_request_is_written_as_http_2_wants_it(void **state) {
    (void)state;
    struct scene scene;
    struct ask ask = {0};
    char *body = mem_zero(1, LARGE_BYTES), authority[64];
    const struct http_header headers[] = {{STR("X-Name"), STR("a Value")},
                                          {STR("Connection"), STR("keep-alive")}};
    open_scene(&scene, 100);
    struct http_request request = request_of(&scene, "/path?query");
    request.method = STR("POST");
    request.headers = headers;
    request.header_count = ARRAY_LEN(headers);
    request.body = str_of(body, LARGE_BYTES);
    ask_start(&ask, &scene.asker, &request);
    loop_run(scene.asker.loop);
    expect(&ask, "200 application/grpc;two;whole");
    snprintf(authority, sizeof(authority), ":authority=127.0.0.1:%u;", scene.peer.port);
    assert_non_null(strstr(scene.fields, authority));
    assert_non_null(strstr(scene.fields, ":method=POST;:scheme=https;"));
    assert_non_null(strstr(scene.fields, ":path=/path?query;"));
    assert_non_null(strstr(scene.fields, "x-name=a Value;"));
    assert_non_null(strstr(scene.fields, "content-length=307200;"));
    assert_null(strstr(scene.fields, "connection"));
    assert_null(strstr(scene.fields, "host"));
    assert_int_equal(scene.heard, LARGE_BYTES);
    shut_scene(&scene, 1, 1);
    free(body);
}

static void a_paused_call_holds_no_other_up(void **state) {
    (void)state;
    struct scene scene;
    struct ask paused = {.pauses = AT_HEAD, .pauses_left = 1, .pause_ms = 600000}, next = {0};
    open_scene(&scene, 100);
    begin(&paused, &scene, "/large");
    begin(&next, &scene, "/");
    scene.asker.open = 1; /* until one of them is over */
    loop_run(scene.asker.loop);
    expect(&next, "200 application/grpc;two;whole");
    assert_int_equal(paused.ends, 0);
    assert_int_equal(paused.bytes, 0);
    scene.asker.open = 1;
    timer_start(&paused.resume, 0);
    loop_run(scene.asker.loop);
    assert_int_equal(paused.bytes, LARGE_BYTES);
    assert_int_equal(paused.code, ERR_NONE);
    ask_done(&paused);
    shut_scene(&scene, 1, 2);
}

static void a_reset_ends_its_call_only(void **state) {
    (void)state;
    struct scene scene;
    struct ask half = {0}, reset = {0}, finish = {0};
    open_scene(&scene, 100);
    begin(&half, &scene, "/half");
    begin(&reset, &scene, "/reset");
    begin(&finish, &scene, "/finish");
    loop_run(scene.asker.loop);
    expect(&half, "200 application/grpc;part and rest;whole");
    assert_int_equal(reset.code, ERR_UNAVAILABLE);
    ask_done(&reset);
    expect(&finish, "200 application/grpc;two;whole");
    shut_scene(&scene, 1, 3);
}

static void a_refused_request_is_made_again_once(void **state) {
    (void)state;
    struct scene scene;
    struct ask once = {0}, always = {0};
    open_scene(&scene, 100);
    begin(&once, &scene, "/refuse-once");
    loop_run(scene.asker.loop);
    expect(&once, "200 application/grpc;two;whole");
    begin(&always, &scene, "/refuse");
    loop_run(scene.asker.loop);
    expect(&always, "UNAVAILABLE");
    shut_scene(&scene, 3, 4);
}

static void a_goaway_lets_what_it_includes_finish(void **state) {
    (void)state;
    struct scene scene;
    struct ask half = {0}, left_out = {0};
    open_scene(&scene, 100);
    begin(&half, &scene, "/half");
    begin(&left_out, &scene, "/goaway");
    loop_run(scene.asker.loop);
    expect(&half, "200 application/grpc;part and rest;whole");
    expect(&left_out, "200 application/grpc;two;whole");
    shut_scene(&scene, 2, 3);
}

static void a_lost_connection_fails_what_was_begun(void **state) {
    (void)state;
    struct scene scene;
    struct ask half = {0}, die = {0};
    open_scene(&scene, 100);
    begin(&half, &scene, "/half");
    begin(&die, &scene, "/die");
    loop_run(scene.asker.loop);
    expect(&half, "200 application/grpc;partUNAVAILABLE");
    expect(&die, "UNAVAILABLE"); /* the server spoke since, so it may have been read */
    shut_scene(&scene, 1, 2);
}

static void a_connection_lost_while_idle_is_replaced_once(void **state) {
    (void)state;
    struct scene scene;
    struct ask once = {0}, always = {0};
    open_scene(&scene, 100);
    begin(&once, &scene, "/die-once");
    loop_run(scene.asker.loop);
    expect(&once, "200 application/grpc;two;whole");
    begin(&always, &scene, "/die");
    loop_run(scene.asker.loop);
    expect(&always, "UNAVAILABLE");
    shut_scene(&scene, 3, 4);
}

/* A connection with another call was not idle, so what is lost on it may have been read. */
static void a_connection_lost_under_a_call_is_not_tried_again(void **state) {
    (void)state;
    struct scene scene;
    struct ask half = {0}, whole = {0}, die = {0};
    open_scene(&scene, 100);
    begin(&half, &scene, "/half");
    begin(&whole, &scene, "/");
    scene.asker.open = 1;
    loop_run(scene.asker.loop);
    expect(&whole, "200 application/grpc;two;whole");
    assert_int_equal(half.ends, 0);
    scene.asker.open = 1;
    begin(&die, &scene, "/die");
    loop_run(scene.asker.loop);
    expect(&half, "200 application/grpc;partUNAVAILABLE");
    expect(&die, "UNAVAILABLE");
    shut_scene(&scene, 1, 3);
}

static void a_request_may_be_wanted_over_http_1(void **state) {
    (void)state;
    struct scene scene;
    struct ask ask = {0};
    open_scene(&scene, 100);
    begin(&ask, &scene, "/required");
    loop_run(scene.asker.loop);
    expect(&ask, "200 ;one;whole");
    shut_scene(&scene, 2, 1);
}

static void a_call_may_be_left_at_any_time(void **state) {
    (void)state;
    for (int i = 0; i < 3; i++) {
        struct scene scene;
        struct ask left = {.cancels = i == 0 ? AT_HEAD : AT_BODY}, next = {0};
        open_scene(&scene, 100);
        begin(&left, &scene, i == 2 ? "/large" : "/");
        begin(&next, &scene, "/");
        loop_run(scene.asker.loop);
        assert_int_equal(left.ends, 0);
        ask_done(&left);
        expect(&next, "200 application/grpc;two;whole");
        shut_scene(&scene, 1, 2);
    }
}

/* The connection may be a dead one: the next call does not try it again. */
static void a_silent_connection_gets_no_further_calls(void **state) {
    (void)state;
    struct scene scene;
    struct ask silent = {0}, next = {0};
    open_scene(&scene, 100);
    struct http_request request = request_of(&scene, "/silent");
    request.first_byte_ms = 50;
    ask_start(&silent, &scene.asker, &request);
    loop_run(scene.asker.loop);
    assert_int_equal(silent.ends, 1);
    assert_int_equal(silent.code, ERR_DEADLINE_EXCEEDED);
    ask_done(&silent);
    begin(&next, &scene, "/");
    loop_run(scene.asker.loop);
    expect(&next, "200 application/grpc;two;whole");
    shut_scene(&scene, 2, 2);
}

static void before_the_first_connection_each_dials(void **state) {
    (void)state;
    struct scene scene = {.max_streams = 100};
    struct ask asks[5] = {0};
    peer_start(&scene.peer, speak, &scene);
    asker_open(&scene.asker);
    for (size_t i = 0; i < ARRAY_LEN(asks); i++) begin(&asks[i], &scene, "/");
    loop_run(scene.asker.loop);
    for (size_t i = 0; i < ARRAY_LEN(asks); i++)
        expect(&asks[i], "200 application/grpc;two;whole");
    shut_scene(&scene, ARRAY_LEN(asks), ARRAY_LEN(asks));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(many_calls_share_a_connection),
        cmocka_unit_test(what_has_no_room_gets_another_connection),
        cmocka_unit_test(a_request_is_written_as_http_2_wants_it),
        cmocka_unit_test(a_paused_call_holds_no_other_up),
        cmocka_unit_test(a_reset_ends_its_call_only),
        cmocka_unit_test(a_refused_request_is_made_again_once),
        cmocka_unit_test(a_goaway_lets_what_it_includes_finish),
        cmocka_unit_test(a_lost_connection_fails_what_was_begun),
        cmocka_unit_test(a_connection_lost_while_idle_is_replaced_once),
        cmocka_unit_test(a_connection_lost_under_a_call_is_not_tried_again),
        cmocka_unit_test(a_request_may_be_wanted_over_http_1),
        cmocka_unit_test(a_call_may_be_left_at_any_time),
        cmocka_unit_test(a_silent_connection_gets_no_further_calls),
        cmocka_unit_test(before_the_first_connection_each_dials),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
