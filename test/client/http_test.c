/* What a call reports, with a server that sends arbitrary bytes. */
#include "client/http.h"

#include "client/peer.h"

/* --- one answer, one story ---------------------------------------------------------------- */

struct answer {
    const char *name, *bytes, *heard;
    enum http_stage stage;
    bool stays; /* the connection is left open */
};

#define OK_PLAIN "HTTP/1.1 200 OK\r\nContent-Type: text/plain\r\n"
#define GZIP_HELLO                                                                             \
    "\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03\xcb\x48\xcd\xc9\xc9\x07\x00\x86\xa6\x10\x36\x05" \
    "\x00\x00\x00"

static bool say_answer(struct peer *peer, int fd, struct str request) {
    const struct answer *answer = peer->ctx;
    (void)request;
    return peer_say(peer, fd, answer->bytes) && answer->stays;
}

static const struct answer answers[] = {
    {"whole", OK_PLAIN "Content-Length: 5\r\n\r\nhello", "200 text/plain;hello;whole",
     HTTP_COMPLETE, true},
    {"no body", "HTTP/1.1 204 No Content\r\n\r\n", "204 ;;whole", HTTP_COMPLETE, true},
    {"chunked", OK_PLAIN "Transfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n",
     "200 text/plain;hello;whole", HTTP_COMPLETE, true},
    {"trailers",
     OK_PLAIN "Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nContent-Type: x\r\n\r\n",
     "200 text/plain;hello;whole", HTTP_COMPLETE, true},
    {"until it closes", OK_PLAIN "\r\nhello", "200 text/plain;hello;whole", HTTP_COMPLETE,
     false},
    {"an early hint first",
     "HTTP/1.1 103 Early Hints\r\nContent-Type: x/y\r\n\r\n" OK_PLAIN
     "Content-Length: 5\r\n\r\nhello",
     "200 text/plain;hello;whole", HTTP_COMPLETE, true},
    {"a redirect is an answer",
     "HTTP/1.1 302 Found\r\nLocation: /b\r\nContent-Length: 2\r\n\r\nno", "302 ;no;whole",
     HTTP_COMPLETE, true},
    {"an error is an answer",
     "HTTP/1.1 500 Oh\r\nContent-Type: a/b\r\nContent-Length: 2\r\n\r\nno", "500 a/b;no;whole",
     HTTP_COMPLETE, true},
    {"retry after seconds", "HTTP/1.1 429 Slow\r\nRetry-After: 7\r\nContent-Length: 0\r\n\r\n",
     "429  after 7000;;whole", HTTP_COMPLETE, true},
    {"retry after a date gone by",
     "HTTP/1.1 503 No\r\nRetry-After: Sun, 06 Nov 1994 08:49:37 GMT\r\n"
     "Content-Length: 0\r\n\r\n",
     "503  after 0;;whole", HTTP_COMPLETE, true},
    {"retry after nonsense",
     "HTTP/1.1 503 No\r\nRetry-After: soon\r\nContent-Length: 0\r\n\r\n", "503 ;;whole",
     HTTP_COMPLETE, true},
    {"an unknown coding", OK_PLAIN "Content-Encoding: br\r\nContent-Length: 5\r\n\r\nhello",
     "UNAVAILABLE", HTTP_WAITING, true},
    {"no gzip", OK_PLAIN "Content-Encoding: gzip\r\nContent-Length: 5\r\n\r\nhello",
     "200 text/plain;UNAVAILABLE", HTTP_READING, true},
    {"cut short", OK_PLAIN "Content-Length: 9\r\n\r\nhello", "200 text/plain;helloUNAVAILABLE",
     HTTP_READING, false},
    {"a chunk cut short", OK_PLAIN "Transfer-Encoding: chunked\r\n\r\n9\r\nhello",
     "200 text/plain;helloUNAVAILABLE", HTTP_READING, false},
    {"closed at once", "", "UNAVAILABLE", HTTP_WAITING, false},
    {"closed in the head", "HTTP/1.1 200 OK\r\nContent-", "UNAVAILABLE", HTTP_WAITING, false},
    {"no HTTP", "SSH-2.0-something\r\n", "UNAVAILABLE", HTTP_WAITING, false},
};

static void every_answer_is_delivered_in_order(void **state) {
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(answers); i++) {
        struct answer answer = answers[i];
        struct peer peer;
        struct asker asker;
        struct ask ask = {0};
        char url[64];
        peer_start(&peer, say_answer, &answer);
        asker_open(&asker);
        struct http_request request = get_request(url, sizeof(url), &peer, "/");
        ask_start(&ask, &asker, &request);
        loop_run(asker.loop);
        if (!str_equal(buf_str(&ask.heard), str_from(answer.heard)) ||
            ask.stage != answer.stage)
            fail_msg("%s: heard '" STR_FMT "' at stage %d: %s", answer.name,
                     STR_ARG(buf_str(&ask.heard)), (int)ask.stage, ask.why);
        ask_done(&ask);
        asker_shut(&asker);
        peer_stop(&peer);
    }
}

struct cut {
    struct str bytes;
    atomic_size_t at; /* moved on when the asker has all, and the peer perhaps not */
};

static bool say_cut(struct peer *peer, int fd, struct str request) {
    struct cut *cut = peer->ctx;
    size_t at = atomic_load(&cut->at);
    (void)request;
    return peer_send(peer, fd, str_head(cut->bytes, at)) &&
           peer_send(peer, fd, str_skip(cut->bytes, at));
}

static void hear_cut_everywhere(struct str bytes, const char *heard) {
    struct peer peer;
    struct cut cut = {.bytes = bytes};
    char url[64];
    peer_start(&peer, say_cut, &cut);
    for (size_t at = 0; at <= bytes.len; at++) {
        atomic_store(&cut.at, at);
        struct asker asker;
        struct ask ask = {0};
        asker_open(&asker);
        struct http_request request = get_request(url, sizeof(url), &peer, "/");
        ask_start(&ask, &asker, &request);
        loop_run(asker.loop);
        assert_str(buf_str(&ask.heard), heard);
        ask_done(&ask);
        asker_shut(&asker);
    }
    peer_stop(&peer);
}

static void an_answer_reads_the_same_however_it_is_cut(void **state) {
    (void)state;
    hear_cut_everywhere(
        STR(OK_PLAIN "Transfer-Encoding: chunked\r\n\r\n2\r\nhe\r\n3\r\nllo\r\n0\r\n\r\n"),
        "200 text/plain;hello;whole");
}

static void a_compressed_answer_reads_the_same_however_it_is_cut(void **state) {
    (void)state;
    hear_cut_everywhere(
        STR(OK_PLAIN "Content-Encoding: gzip\r\nContent-Length: 25\r\n\r\n" GZIP_HELLO),
        "200 text/plain;hello;whole");
}

/* --- what is asked ------------------------------------------------------------------------ */

static bool say_request(struct peer *peer, int fd, struct str request) {
    char head[128];
    snprintf(head, sizeof(head), OK_PLAIN "Content-Length: %zu\r\n\r\n", request.len);
    return peer_say(peer, fd, head) && peer_send(peer, fd, request);
}

static void a_request_says_what_was_asked_and_no_more(void **state) {
    (void)state;
    struct peer peer;
    struct asker asker;
    struct ask ask = {0};
    char url[64], expected[512];
    const struct http_header headers[] = {{STR_INIT("x-one"), STR_INIT("1")},
                                          {STR_INIT("x-none"), STR_INIT("")}};
    peer_start(&peer, say_request, NULL);
    asker_open(&asker);
    struct http_request request = get_request(url, sizeof(url), &peer, "/path?q=1");
    request.method = STR("POST");
    request.body = STR("body");
    request.headers = headers;
    request.header_count = ARRAY_LEN(headers);
    ask_start(&ask, &asker, &request);
    loop_run(asker.loop);
    snprintf(expected, sizeof(expected),
             "200 text/plain;POST /path?q=1 HTTP/1.1\r\nHost: 127.0.0.1:%u\r\nAccept: */*\r\n"
             "x-one: 1\r\nx-none:\r\nAccept-Encoding: gzip\r\nContent-Length: 4\r\n\r\nbody"
             ";whole",
             peer.port);
    assert_str(buf_str(&ask.heard), expected);
    ask_done(&ask);
    asker_shut(&asker);
    peer_stop(&peer);
}

static void a_request_that_cannot_be_sent_is_reported_at_the_end(void **state) {
    (void)state;
    static const struct http_header broken[] = {{STR_INIT("a"), STR_INIT("b\r\nc: d")}};
    static const struct http_header unnamed[] = {{STR_INIT(""), STR_INIT("b")}};
    const struct http_request requests[] = {
        {.method = STR(""), .url = STR("http://127.0.0.1/")},
        {.method = STR("GET"), .url = STR("")},
        {.method = STR("GET"), .url = STR("http://127.0.0.1/\r\n")},
        {.method = STR("GET"), .url = STR("http://")},
        {.method = STR("GET"), .url = STR("ftp://127.0.0.1/")},
        {.method = STR("GET"), .url = STR("file:///etc/passwd")},
        {.method = STR("GET"), .url = STR("http://a/"), .headers = broken, .header_count = 1},
        {.method = STR("GET"), .url = STR("http://a/"), .headers = unnamed, .header_count = 1},
    };
    for (size_t i = 0; i < ARRAY_LEN(requests); i++) {
        struct asker asker;
        struct ask ask = {0};
        asker_open(&asker);
        ask_start(&ask, &asker, &requests[i]);
        loop_run(asker.loop);
        assert_str(buf_str(&ask.heard), err_kinds[ERR_INVALID_ARGUMENT].name);
        assert_int_equal(ask.code, ERR_INVALID_ARGUMENT);
        assert_int_equal(ask.stage, HTTP_CONNECTING);
        ask_done(&ask);
        asker_shut(&asker);
    }
}

static void a_call_without_the_library_ends_in_a_later_turn(void **state) {
    (void)state;
    struct asker asker = {.loop = loop_new(), .pool = http_pool_new()};
    struct ask ask = {0};
    http_pool_add(asker.pool, asker.loop);
    ask_start(&ask, &asker,
              &(struct http_request){.method = STR("GET"), .url = STR("http://127.0.0.1/")});
    loop_run(asker.loop);
    assert_str(buf_str(&ask.heard), "UNAVAILABLE");
    ask_done(&ask);
    asker_shut(&asker);
}

static void a_port_without_a_listener_is_unavailable(void **state) {
    (void)state;
    struct peer peer;
    struct asker asker;
    struct ask ask = {0};
    char url[64];
    peer_start(&peer, say_request, NULL);
    peer_stop(&peer);
    asker_open(&asker);
    struct http_request request = get_request(url, sizeof(url), &peer, "/");
    ask_start(&ask, &asker, &request);
    loop_run(asker.loop);
    assert_str(buf_str(&ask.heard), "UNAVAILABLE");
    assert_int_equal(ask.stage, HTTP_CONNECTING);
    ask_done(&ask);
    asker_shut(&asker);
}

/* --- redirects ---------------------------------------------------------------------------- */

static bool redirect(struct peer *peer, int fd, struct str request) {
    if (str_starts(request, STR("GET /end")))
        return peer_say(peer, fd, OK_PLAIN "Content-Length: 3\r\n\r\nend");
    return peer_say(peer, fd,
                    str_starts(request, STR("GET /loop"))
                        ? "HTTP/1.1 302 F\r\nLocation: /loop\r\nContent-Length: 2\r\n\r\nno"
                        : "HTTP/1.1 307 F\r\nLocation: /end\r\nContent-Length: 2\r\n\r\nno");
}

static void a_redirect_is_followed_and_only_its_end_is_reported(void **state) {
    (void)state;
    struct peer peer;
    struct asker asker;
    struct ask ends = {0}, loops = {0};
    char url[2][64];
    peer_start(&peer, redirect, NULL);
    asker_open(&asker);
    struct http_request to_end = get_request(url[0], sizeof(url[0]), &peer, "/start");
    struct http_request to_loop = get_request(url[1], sizeof(url[1]), &peer, "/loop");
    to_end.redirects_max = to_loop.redirects_max = 3;
    ask_start(&ends, &asker, &to_end);
    ask_start(&loops, &asker, &to_loop);
    loop_run(asker.loop);
    assert_str(buf_str(&ends.heard), "200 text/plain;end;whole");
    assert_true(str_ends(str_from(ends.url), STR("/end")));
    assert_str(buf_str(&loops.heard), "FAILED_PRECONDITION");
    ask_done(&ends);
    ask_done(&loops);
    asker_shut(&asker);
    peer_stop(&peer);
}

static bool echo_behind_a_redirect(struct peer *peer, int fd, struct str request) {
    if (str_starts(request, STR("POST /end"))) return say_request(peer, fd, request);
    return peer_say(peer, fd, "HTTP/1.1 307 F\r\nLocation: /end\r\nContent-Length: 0\r\n\r\n");
}

static void a_redirect_that_keeps_the_body_sends_it_again(void **state) {
    (void)state;
    struct peer peer;
    struct asker asker;
    struct ask ask = {0};
    char url[64];
    peer_start(&peer, echo_behind_a_redirect, NULL);
    asker_open(&asker);
    struct http_request request = get_request(url, sizeof(url), &peer, "/");
    request.method = STR("POST");
    request.body = STR("the body");
    request.redirects_max = 1;
    ask_start(&ask, &asker, &request);
    loop_run(asker.loop);
    assert_true(str_ends(buf_str(&ask.heard), STR("\r\n\r\nthe body;whole")));
    ask_done(&ask);
    asker_shut(&asker);
    peer_stop(&peer);
}

/* --- many, and again ---------------------------------------------------------------------- */

static bool say_and_reset(struct peer *peer, int fd, struct str request) {
    struct linger now = {.l_onoff = 1};
    (void)request;
    (void)peer_say(peer, fd, OK_PLAIN "Content-Length: 9\r\n\r\nhello");
    setsockopt(fd, SOL_SOCKET, SO_LINGER, &now, sizeof(now));
    return false;
}

static void what_came_before_a_reset_is_heard_and_then_its_end(void **state) {
    (void)state;
    struct peer peer;
    struct asker asker;
    struct ask ask = {0};
    char url[64];
    peer_start(&peer, say_and_reset, NULL);
    asker_open(&asker);
    struct http_request request = get_request(url, sizeof(url), &peer, "/");
    ask_start(&ask, &asker, &request);
    loop_run(asker.loop);
    assert_str(buf_str(&ask.heard), "200 text/plain;helloUNAVAILABLE");
    ask_done(&ask);
    asker_shut(&asker);
    peer_stop(&peer);
}

#define PIECE_MS 40

struct between {
    struct ask *ask;
    struct timer pause, look;
    atomic_bool paused;
};

/* The rest comes once the asker has paused. */
static bool say_with_a_rest(struct peer *peer, int fd, struct str request) {
    struct between *between = peer->ctx;
    (void)request;
    if (!peer_say(peer, fd, OK_PLAIN "Content-Length: 5\r\n\r\nhe")) return false;
    while (!atomic_load(&between->paused)) usleep(1000);
    return peer_say(peer, fd, "llo");
}

static void pause_between(void *ctx) {
    struct between *between = ctx;
    if (between->ask->bytes < 2) {
        timer_start(&between->pause, 1);
        return;
    }
    http_pause(between->ask->call);
    atomic_store(&between->paused, true);
    timer_start(&between->look, PIECE_MS);
}

static void look_and_resume(void *ctx) {
    struct between *between = ctx;
    assert_str(buf_str(&between->ask->heard), "200 text/plain;he");
    http_resume(between->ask->call);
}

/* Not only a callback may pause: the reader of what was heard may be slow later. */
static void a_pause_between_two_pieces_holds_the_second(void **state) {
    (void)state;
    struct peer peer;
    struct asker asker;
    struct ask ask = {0};
    struct between between = {.ask = &ask};
    char url[64];
    peer_start(&peer, say_with_a_rest, &between);
    asker_open(&asker);
    timer_init(&between.pause, asker.loop, pause_between, &between);
    timer_init(&between.look, asker.loop, look_and_resume, &between);
    struct http_request request = get_request(url, sizeof(url), &peer, "/");
    ask_start(&ask, &asker, &request);
    timer_start(&between.pause, 1);
    loop_run(asker.loop);
    assert_str(buf_str(&ask.heard), "200 text/plain;hello;whole");
    ask_done(&ask);
    asker_shut(&asker);
    peer_stop(&peer);
}

static void calls_that_follow_each_other_share_a_connection(void **state) {
    (void)state;
    struct answer answer = answers[0];
    struct peer peer;
    struct asker asker;
    char url[64];
    peer_start(&peer, say_answer, &answer);
    asker_open(&asker);
    for (int i = 0; i < 20; i++) {
        struct ask ask = {0};
        struct http_request request = get_request(url, sizeof(url), &peer, "/");
        ask_start(&ask, &asker, &request);
        loop_run(asker.loop);
        assert_str(buf_str(&ask.heard), answer.heard);
        ask_done(&ask);
    }
    assert_int_equal(atomic_load(&peer.accepted), 1);
    asker_shut(&asker);
    peer_stop(&peer);
}

static void what_must_not_arrive_twice_has_a_connection_of_its_own(void **state) {
    (void)state;
    struct answer answer = answers[0];
    struct peer peer;
    struct asker asker;
    char url[64];
    peer_start(&peer, say_answer, &answer);
    asker_open(&asker);
    for (int i = 0; i < 4; i++) { /* each comes after one that left its connection idle */
        struct ask ask = {0};
        struct http_request request = get_request(url, sizeof(url), &peer, "/");
        request.once = i > 0;
        ask_start(&ask, &asker, &request);
        loop_run(asker.loop);
        assert_str(buf_str(&ask.heard), answer.heard);
        assert_int_equal(atomic_load(&peer.accepted), i + 1);
        ask_done(&ask);
    }
    asker_shut(&asker);
    peer_stop(&peer);
}

/* Answers, and closes when the connection is idle; the first request of each next connection
 * comes again on a fresh one. */
static bool say_and_close(struct peer *peer, int fd, struct str request) {
    (void)request;
    (void)peer_say(peer, fd, OK_PLAIN "Content-Length: 5\r\n\r\nhello");
    return false;
}

static bool drop_the_second(struct peer *peer, int fd, struct str request) {
    atomic_int *requests = peer->ctx;
    (void)request;
    if (atomic_fetch_add(requests, 1) == 1) return false;
    return peer_say(peer, fd, OK_PLAIN "Content-Length: 5\r\n\r\nhello");
}

static bool break_the_second(struct peer *peer, int fd, struct str request) {
    atomic_int *requests = peer->ctx;
    (void)request;
    if (atomic_fetch_add(requests, 1) == 1) return peer_say(peer, fd, "H") && false;
    return peer_say(peer, fd, OK_PLAIN "Content-Length: 5\r\n\r\nhello");
}

static void hear_twice(peer_fn *answer, const char *second, int requests_expected) {
    struct peer peer;
    struct asker asker;
    atomic_int requests = 0;
    char url[64];
    peer_start(&peer, answer, &requests);
    asker_open(&asker);
    for (int i = 0; i < 2; i++) {
        struct ask ask = {0};
        struct http_request request = get_request(url, sizeof(url), &peer, "/");
        request.method = STR("POST");
        request.body = STR("once");
        ask_start(&ask, &asker, &request);
        loop_run(asker.loop);
        assert_str(buf_str(&ask.heard), i ? second : "200 text/plain;hello;whole");
        ask_done(&ask);
    }
    assert_int_equal(atomic_load(&requests), requests_expected);
    asker_shut(&asker);
    peer_stop(&peer);
}

static void a_request_on_a_connection_that_was_dead_is_sent_again(void **state) {
    (void)state;
    hear_twice(say_and_close, "200 text/plain;hello;whole", 0);
    hear_twice(drop_the_second, "200 text/plain;hello;whole", 3);
}

static void but_not_after_a_byte_of_the_answer(void **state) {
    (void)state;
    hear_twice(break_the_second, "UNAVAILABLE", 2);
}

static bool send_elsewhere(struct peer *peer, int fd, struct str request) {
    char head[160];
    (void)request;
    snprintf(head, sizeof(head),
             "HTTP/1.1 302 F\r\nLocation: " PEER_SCHEME
             "://127.0.0.1:%u/b\r\nContent-Length: 0\r\n\r\n",
             *(unsigned *)peer->ctx);
    return peer_say(peer, fd, head);
}

static void secrets_and_the_body_are_not_sent_to_another_server(void **state) {
    (void)state;
    struct peer first, second;
    struct asker asker;
    struct ask ask = {0};
    char url[64], expected[256];
    static const struct http_header headers[] = {{STR_INIT("Authorization"), STR_INIT("key")},
                                                 {STR_INIT("cookie"), STR_INIT("jar")},
                                                 {STR_INIT("x-one"), STR_INIT("1")}};
    peer_start(&second, say_request, NULL);
    peer_start(&first, send_elsewhere, &second.port);
    asker_open(&asker);
    struct http_request request = get_request(url, sizeof(url), &first, "/");
    request.method = STR("POST");
    request.body = STR("body");
    request.headers = headers;
    request.header_count = ARRAY_LEN(headers);
    request.redirects_max = 1;
    ask_start(&ask, &asker, &request);
    loop_run(asker.loop);
    snprintf(expected, sizeof(expected),
             "200 text/plain;GET /b HTTP/1.1\r\nHost: 127.0.0.1:%u\r\nAccept: */*\r\n"
             "x-one: 1\r\nAccept-Encoding: gzip\r\n\r\n;whole",
             second.port);
    assert_str(buf_str(&ask.heard), expected);
    ask_done(&ask);
    asker_shut(&asker);
    peer_stop(&first);
    peer_stop(&second);
}

enum { MANY = 200 };

static void two_hundred_calls_at_once_all_end(void **state) {
    (void)state;
    struct answer answer = answers[0];
    struct peer peer;
    struct asker asker;
    char url[64];
    struct ask *asks = mem_zero(MANY, sizeof(*asks));
    peer_start(&peer, say_answer, &answer);
    asker_open(&asker);
    struct http_request request = get_request(url, sizeof(url), &peer, "/");
    for (int i = 0; i < MANY; i++) ask_start(&asks[i], &asker, &request);
    loop_run(asker.loop);
    for (int i = 0; i < MANY; i++) {
        assert_str(buf_str(&asks[i].heard), answer.heard);
        ask_done(&asks[i]);
    }
    free(asks);
    asker_shut(&asker);
    peer_stop(&peer);
}

/* --- two loops ---------------------------------------------------------------------------- */

struct lane_thread {
    struct asker asker;
    struct http_request request;
    pthread_t thread;
    int good;
};

static void *run_calls(void *ctx) {
    struct lane_thread *lane = ctx;
    struct err e;
    lane->good = http_pool_need(lane->asker.pool, &e) ? 0 : -1000;
    for (int i = 0; i < 30; i++) {
        struct ask ask = {0};
        ask_start(&ask, &lane->asker, &lane->request);
        loop_run(lane->asker.loop);
        if (str_equal(buf_str(&ask.heard), STR("200 text/plain;hello;whole"))) lane->good++;
        ask_done(&ask);
    }
    http_pool_leave(lane->asker.pool, lane->asker.loop);
    return NULL;
}

static void a_pool_serves_two_loops_on_two_threads(void **state) {
    (void)state;
    struct answer answer = answers[0];
    struct peer peer;
    struct lane_thread lanes[2] = {0};
    char url[64];
    struct http_pool *pool = http_pool_new();
    peer_start(&peer, say_answer, &answer);
    for (int i = 0; i < 2; i++) {
        lanes[i].asker = (struct asker){.loop = loop_new(), .pool = pool};
        lanes[i].request = get_request(url, sizeof(url), &peer, "/");
        http_pool_add(pool, lanes[i].asker.loop);
    }
    for (int i = 0; i < 2; i++) pthread_create(&lanes[i].thread, NULL, run_calls, &lanes[i]);
    for (int i = 0; i < 2; i++) {
        pthread_join(lanes[i].thread, NULL);
        assert_int_equal(lanes[i].good, 30);
        loop_free(lanes[i].asker.loop);
    }
    http_pool_free(pool);
    peer_stop(&peer);
}

#ifndef PEER_SECURE
/* --- proxies ------------------------------------------------------------------------------ */

static void a_proxy_of_the_environment_is_honoured(void **state) {
    (void)state;
    struct peer proxy;
    struct asker asker;
    struct ask ask = {0};
    char url[64];
    peer_start(&proxy, say_request, NULL);
    snprintf(url, sizeof(url), "http://127.0.0.1:%u", proxy.port);
    setenv("http_proxy", url, 1);
    asker_open(&asker);
    ask_start(&ask, &asker,
              &(struct http_request){.method = STR("GET"), .url = STR("http://far.invalid/x")});
    loop_run(asker.loop);
    unsetenv("http_proxy");
    assert_true(str_starts(buf_str(&ask.heard),
                           STR("200 text/plain;GET http://far.invalid/x HTTP/1.1\r\n")));
    ask_done(&ask);
    asker_shut(&asker);
    peer_stop(&proxy);
}

#endif

int main(void) {
    /* Those of the machine that runs the tests are not meant. */
    static const char *const proxies[] = {"http_proxy", "https_proxy", "HTTPS_PROXY",
                                          "all_proxy",  "ALL_PROXY",   "no_proxy",
                                          "NO_PROXY"};
    for (size_t i = 0; i < ARRAY_LEN(proxies); i++) unsetenv(proxies[i]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_answer_is_delivered_in_order),
        cmocka_unit_test(an_answer_reads_the_same_however_it_is_cut),
        cmocka_unit_test(a_compressed_answer_reads_the_same_however_it_is_cut),
        cmocka_unit_test(a_request_says_what_was_asked_and_no_more),
        cmocka_unit_test(a_request_that_cannot_be_sent_is_reported_at_the_end),
        cmocka_unit_test(a_call_without_the_library_ends_in_a_later_turn),
        cmocka_unit_test(a_port_without_a_listener_is_unavailable),
        cmocka_unit_test(a_redirect_is_followed_and_only_its_end_is_reported),
        cmocka_unit_test(a_redirect_that_keeps_the_body_sends_it_again),
        cmocka_unit_test(what_came_before_a_reset_is_heard_and_then_its_end),
        cmocka_unit_test(a_pause_between_two_pieces_holds_the_second),
        cmocka_unit_test(calls_that_follow_each_other_share_a_connection),
        cmocka_unit_test(what_must_not_arrive_twice_has_a_connection_of_its_own),
        cmocka_unit_test(a_request_on_a_connection_that_was_dead_is_sent_again),
        cmocka_unit_test(but_not_after_a_byte_of_the_answer),
        cmocka_unit_test(secrets_and_the_body_are_not_sent_to_another_server),
        cmocka_unit_test(two_hundred_calls_at_once_all_end),
        cmocka_unit_test(a_pool_serves_two_loops_on_two_threads),
#ifndef PEER_SECURE
        cmocka_unit_test(a_proxy_of_the_environment_is_honoured),
#endif
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
