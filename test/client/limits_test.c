/* Time, size, pausing and cancelling (checks.md U2, X5, B1, G5). */
#include "client/http.h"

#include "client/peer.h"

#include <limits.h>
#include <zlib.h>

#define OK_PLAIN "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"

struct scene {
    struct peer peer;
    struct asker asker;
    struct ask ask;
    struct http_request request;
    char url[64];
};

static struct scene *open_scene(peer_fn *answer) {
    struct scene *scene = MEM_NEW(struct scene);
    peer_start(&scene->peer, answer, NULL);
    asker_open(&scene->asker);
    scene->request = get_request(scene->url, sizeof(scene->url), &scene->peer, "/");
    return scene;
}

static void run_scene(struct scene *scene) {
    ask_start(&scene->ask, &scene->asker, &scene->request);
    loop_run(scene->asker.loop);
}

/* A connection that did not end in order is closed by the time the call is over: the peer's
 * thread comes home though the pool still stands. */
static void shut_scene(struct scene *scene) {
    peer_stop(&scene->peer);
    asker_shut(&scene->asker);
    ask_done(&scene->ask);
    free(scene);
}

/* --- time --------------------------------------------------------------------------------- */

static bool say_nothing(struct peer *peer, int fd, struct str request) {
    (void)request;
    return peer_wait(peer, fd);
}

static bool say_half_a_head(struct peer *peer, int fd, struct str request) {
    (void)request;
    return peer_say(peer, fd, OK_PLAIN "X-") && peer_wait(peer, fd);
}

static bool say_half(struct peer *peer, int fd, struct str request) {
    (void)request;
    return peer_say(peer, fd, OK_PLAIN "Content-Length: 10\r\n\r\nhello") &&
           peer_wait(peer, fd);
}

/* A handshake fits into it. */
#ifdef PEER_SECURE
enum { SOON_MS = 500 };
#define SOON "500ms"
#define LATER "570ms"
#else
enum { SOON_MS = 30 };
#define SOON "30ms"
#define LATER "100ms"
#endif

static void a_limit_of_time_ends_a_call_and_its_connection(void **state) {
    (void)state;
    static const struct {
        peer_fn *answer;
        uint64_t first_byte_ms, stall_ms, total_ms;
        const char *heard, *why;
        enum http_stage stage;
    } cases[] = {
        {say_nothing, SOON_MS, 0, 0, "DEADLINE_EXCEEDED",
         "the server did not answer within " SOON, HTTP_WAITING},
        {say_half_a_head, SOON_MS, 0, 0, "DEADLINE_EXCEEDED",
         "the server did not answer within " SOON, HTTP_WAITING},
        {say_nothing, 0, 1, SOON_MS, "DEADLINE_EXCEEDED",
         "the whole answer did not come within " SOON, HTTP_WAITING},
        {say_half, 30000, 30, 0, "200 text/plain;helloDEADLINE_EXCEEDED",
         "nothing more of the answer came within 30ms", HTTP_READING},
        {say_half, 30000, 30000, 70 + SOON_MS, "200 text/plain;helloDEADLINE_EXCEEDED",
         "the whole answer did not come within " LATER, HTTP_READING},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct scene *scene = open_scene(cases[i].answer);
        scene->request.first_byte_ms = cases[i].first_byte_ms;
        scene->request.stall_ms = cases[i].stall_ms;
        scene->request.total_ms = cases[i].total_ms;
        run_scene(scene);
        assert_str(buf_str(&scene->ask.heard), cases[i].heard);
        assert_string_equal(scene->ask.why, cases[i].why);
        assert_int_equal(scene->ask.stage, cases[i].stage);
        shut_scene(scene);
    }
}

/* --- size --------------------------------------------------------------------------------- */

static bool say_headers_for_ever(struct peer *peer, int fd, struct str request) {
    (void)request;
    if (!peer_say(peer, fd, OK_PLAIN)) return false;
    while (peer_say(peer, fd, "X-More: and more and more and more and more\r\n")) {
    }
    return false;
}

static bool say_one_header_for_ever(struct peer *peer, int fd, struct str request) {
    (void)request;
    if (!peer_say(peer, fd, OK_PLAIN "X-More: ")) return false;
    while (peer_say(peer, fd, "and more and more and more and more and more ")) {
    }
    return false;
}

static bool say_hints_for_ever(struct peer *peer, int fd, struct str request) {
    (void)request;
    while (peer_say(peer, fd, "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n")) {
    }
    return false;
}

static void headers_without_end_are_refused(void **state) {
    (void)state;
    peer_fn *const answers[] = {say_headers_for_ever, say_one_header_for_ever,
                                say_hints_for_ever};
    for (size_t i = 0; i < ARRAY_LEN(answers); i++) {
        struct scene *scene = open_scene(answers[i]);
        run_scene(scene);
        if (scene->ask.code != ERR_TOO_LARGE) fail_msg("%zu: %s", i, scene->ask.why);
        assert_str(buf_str(&scene->ask.heard), err_kinds[ERR_TOO_LARGE].name);
        assert_int_equal(scene->ask.stage, HTTP_WAITING);
        shut_scene(scene);
    }
}

static bool say_five(struct peer *peer, int fd, struct str request) {
    (void)request;
    return peer_say(peer, fd, OK_PLAIN "Content-Length: 5\r\n\r\nhello");
}

static void a_body_beyond_its_limit_is_delivered_as_far_as_it_fits(void **state) {
    (void)state;
    static const char *const heard[] = {
        [1] = "200 text/plain;hRESOURCE_EXHAUSTED",
        [2] = "200 text/plain;heRESOURCE_EXHAUSTED",
        [3] = "200 text/plain;helRESOURCE_EXHAUSTED",
        [4] = "200 text/plain;hellRESOURCE_EXHAUSTED",
        [5] = "200 text/plain;hello;whole",
        [6] = "200 text/plain;hello;whole",
    };
    for (size_t max = 1; max < ARRAY_LEN(heard); max++) {
        struct scene *scene = open_scene(say_five);
        scene->request.body_max_bytes = max;
        run_scene(scene);
        assert_str(buf_str(&scene->ask.heard), heard[max]);
        assert_int_equal(scene->ask.code, max < 5 ? ERR_TOO_LARGE : ERR_NONE);
        /* Only a connection that is used up may stay open. */
        asker_shut(&scene->asker);
        peer_stop(&scene->peer);
        ask_done(&scene->ask);
        free(scene);
    }
}

/* 64 MiB of zeros, compressed a thousandfold. */
static struct buf bomb;
enum { BOMB_BYTES = 64 * 1024 * 1024 };

static bool say_bomb(struct peer *peer, int fd, struct str request) {
    (void)request;
    return peer_say(peer, fd, OK_PLAIN "Content-Encoding: gzip\r\n\r\n") &&
           peer_send(peer, fd, buf_str(&bomb)) && false;
}

static void a_bomb_is_delivered_as_far_as_it_fits(void **state) {
    (void)state;
    struct scene *scene = open_scene(say_bomb);
    scene->request.body_max_bytes = 200 * KIB;
    run_scene(scene);
    assert_int_equal(scene->ask.code, ERR_TOO_LARGE);
    assert_int_equal(scene->ask.bytes, 200 * KIB);
    shut_scene(scene);
}

/* --- pausing ------------------------------------------------------------------------------ */

enum { LONG_BYTES = 48 * 1024 * 1024 };

static bool say_long(struct peer *peer, int fd, struct str request) {
    static const char zeros[64 * 1024];
    char head[128];
    (void)request;
    snprintf(head, sizeof(head), OK_PLAIN "Content-Length: %d\r\n\r\n", LONG_BYTES);
    if (!peer_say(peer, fd, head)) return false;
    for (size_t sent = 0; sent < LONG_BYTES; sent += sizeof(zeros)) {
        if (!peer_send(peer, fd, str_of(zeros, sizeof(zeros)))) return false;
    }
    return true;
}

struct look {
    struct scene *scene;
    struct timer timer;
    size_t sent;
};

static void look_at_the_peer(void *ctx) {
    struct look *look = ctx;
    look->sent = atomic_load(&look->scene->peer.sent);
}

static void a_paused_call_lets_its_peer_wait(void **state) {
    (void)state;
    const enum moment moments[] = {AT_HEAD, AT_BODY};
    for (size_t i = 0; i < ARRAY_LEN(moments); i++) {
        struct scene *scene = open_scene(say_long);
        struct look look = {.scene = scene};
        scene->request.stall_ms = 500; /* shorter than the pause: it does not count */
        scene->ask.pauses = moments[i];
        scene->ask.pause_ms = 1000;
        timer_init(&look.timer, scene->asker.loop, look_at_the_peer, &look);
        timer_start(&look.timer, 900);
        scene->ask.pauses_left = 1;
        run_scene(scene);
        assert_int_equal(scene->ask.code, ERR_NONE);
        assert_int_equal(scene->ask.bytes, LONG_BYTES);
        assert_in_range(look.sent, 1, LONG_BYTES / 2);
        asker_shut(&scene->asker);
        peer_stop(&scene->peer);
        ask_done(&scene->ask);
        free(scene);
    }
}

static void a_short_answer_that_came_whole_waits_for_its_reader(void **state) {
    (void)state;
    const enum moment moments[] = {AT_HEAD, AT_BODY};
    for (size_t i = 0; i < ARRAY_LEN(moments); i++) {
        struct scene *scene = open_scene(say_five);
        scene->ask.pauses = moments[i];
        scene->ask.pause_ms = 20;
        scene->ask.pauses_left = 1;
        run_scene(scene);
        assert_str(buf_str(&scene->ask.heard), "200 text/plain;hello;whole");
        asker_shut(&scene->asker);
        peer_stop(&scene->peer);
        ask_done(&scene->ask);
        free(scene);
    }
}

static void a_paused_bomb_stays_compressed(void **state) {
    (void)state;
    struct scene *scene = open_scene(say_bomb);
    scene->ask.pauses = AT_BODY;
    scene->ask.pause_ms = 0; /* after each of its pieces */
    scene->ask.pauses_left = INT_MAX;
    run_scene(scene);
    assert_int_equal(scene->ask.code, ERR_NONE);
    assert_int_equal(scene->ask.bytes, BOMB_BYTES);
    assert_true(scene->ask.bodies >= BOMB_BYTES / (64 * 1024));
    shut_scene(scene);
}

static void a_paused_call_still_meets_its_total_limit(void **state) {
    (void)state;
    struct scene *scene = open_scene(say_half);
    scene->request.total_ms = 500;
    scene->ask.pauses = AT_HEAD;
    scene->ask.pause_ms = 60000;
    scene->ask.pauses_left = 1;
    run_scene(scene);
    assert_str(buf_str(&scene->ask.heard), "200 text/plain;DEADLINE_EXCEEDED");
    shut_scene(scene);
}

/* --- cancelling --------------------------------------------------------------------------- */

static void a_call_cancelled_from_a_callback_hears_no_more(void **state) {
    (void)state;
    static const struct {
        enum moment moment;
        const char *heard;
    } cases[] = {{AT_HEAD, "200 text/plain;"}, {AT_BODY, "200 text/plain;hello"}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct scene *scene = open_scene(say_half);
        scene->ask.cancels = cases[i].moment;
        run_scene(scene);
        assert_str(buf_str(&scene->ask.heard), cases[i].heard);
        assert_int_equal(scene->ask.ends, 0);
        shut_scene(scene);
    }
}

static void a_bomb_is_cancelled_between_its_pieces(void **state) {
    (void)state;
    struct scene *scene = open_scene(say_bomb);
    scene->ask.cancels = AT_BODY;
    run_scene(scene);
    assert_int_equal(scene->ask.bodies, 1);
    shut_scene(scene);
}

struct canceller {
    struct ask *ask;
    struct task task;
};

static void cancel_now(void *ctx) {
    struct canceller *canceller = ctx;
    http_cancel(canceller->ask->call);
    ask_over(canceller->ask);
}

static void a_call_is_cancelled_before_it_begins(void **state) {
    (void)state;
    struct scene *scene = open_scene(say_half);
    struct canceller canceller = {.ask = &scene->ask};
    ask_start(&scene->ask, &scene->asker, &scene->request);
    http_cancel(scene->ask.call);
    /* And in the turn in which it begins. */
    ask_start(&scene->ask, &scene->asker, &scene->request);
    scene->asker.open = 1;
    task_init(&canceller.task, cancel_now, &canceller);
    loop_defer(scene->asker.loop, &canceller.task);
    loop_run(scene->asker.loop);
    assert_str(buf_str(&scene->ask.heard), "");
    shut_scene(scene);
}

/* The first call to hear cancels the other, inside libcurl's callback for its own call. */
struct pair {
    struct asker asker;
    struct http_call *calls[2];
    int heard;
};

static void cancel_both(struct pair *pair) {
    pair->heard++;
    http_cancel(pair->calls[0]);
    http_cancel(pair->calls[1]);
    loop_stop(pair->asker.loop);
}

static void pair_head(const struct http_head *head, void *ctx) {
    (void)head;
    cancel_both(ctx);
}

static void pair_body(struct lent lent, void *ctx) {
    struct str bytes = lent_read(lent);
    (void)bytes;
    (void)ctx;
    fail();
}

static void pair_end(const struct err *failed, enum http_stage stage, void *ctx) {
    (void)failed;
    (void)stage;
    (void)ctx;
    fail();
}

static void a_call_may_cancel_another_in_its_callback(void **state) {
    (void)state;
    static const struct http_sink sink = {pair_head, pair_body, pair_end};
    struct peer peer;
    struct pair pair = {0};
    char url[64];
    peer_start(&peer, say_half, NULL);
    asker_open(&pair.asker);
    struct http_request request = get_request(url, sizeof(url), &peer, "/");
    for (int i = 0; i < 2; i++)
        pair.calls[i] = http_start(pair.asker.pool, pair.asker.loop, &request, &sink, &pair);
    loop_run(pair.asker.loop);
    assert_int_equal(pair.heard, 1);
    peer_stop(&peer); /* both connections are closed */
    asker_shut(&pair.asker);
}

/* --- the bomb ----------------------------------------------------------------------------- */

static int make_bomb(void **state) {
    static unsigned char zeros[64 * 1024], out[64 * 1024];
    z_stream z = {0};
    (void)state;
    buf_init(&bomb, MIB);
    if (deflateInit2(&z, 9, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK) return -1;
    for (size_t done = 0; done <= BOMB_BYTES; done += sizeof(zeros)) {
        z.next_in = zeros;
        z.avail_in = done < BOMB_BYTES ? sizeof(zeros) : 0;
        z.next_out = out;
        z.avail_out = sizeof(out);
        deflate(&z, done < BOMB_BYTES ? Z_NO_FLUSH : Z_FINISH);
        buf_append(&bomb, str_of(out, sizeof(out) - z.avail_out));
    }
    deflateEnd(&z);
    return buf_ok(&bomb) ? 0 : -1;
}

static int drop_bomb(void **state) {
    (void)state;
    buf_done(&bomb);
    return 0;
}

int main(void) {
    unsetenv("http_proxy");
    unsetenv("all_proxy");
    unsetenv("ALL_PROXY");
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_limit_of_time_ends_a_call_and_its_connection),
        cmocka_unit_test(headers_without_end_are_refused),
        cmocka_unit_test(a_body_beyond_its_limit_is_delivered_as_far_as_it_fits),
        cmocka_unit_test(a_bomb_is_delivered_as_far_as_it_fits),
        cmocka_unit_test(a_paused_call_lets_its_peer_wait),
        cmocka_unit_test(a_short_answer_that_came_whole_waits_for_its_reader),
        cmocka_unit_test(a_paused_bomb_stays_compressed),
        cmocka_unit_test(a_paused_call_still_meets_its_total_limit),
        cmocka_unit_test(a_call_cancelled_from_a_callback_hears_no_more),
        cmocka_unit_test(a_bomb_is_cancelled_between_its_pieces),
        cmocka_unit_test(a_call_is_cancelled_before_it_begins),
        cmocka_unit_test(a_call_may_cancel_another_in_its_callback),
    };
    return cmocka_run_group_tests(tests, make_bomb, drop_bomb);
}
