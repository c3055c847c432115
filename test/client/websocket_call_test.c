/* A WebSocket to a server that may do anything, plain and (websocket_secure_test.c) over TLS. */
#include "client/websocket_call.h"

#include "client/peer.h"

struct heard {
    struct loop *loop;
    struct websocket_call *call;
    struct buf text; /* "open message:hello end" */
    struct websocket_end end;
    struct buf body;
    const char *say; /* when it opens */
    bool leaves;     /* at its first message */
    bool pauses;     /* at its first message, and resumes by a timer */
    bool floods;     /* when it opens */
    struct timer resume;
};

static void on_resume(void *ctx) {
    struct heard *heard = ctx;
    buf_append(&heard->text, STR("resume "));
    websocket_call_resume(heard->call);
}

static void on_open(void *ctx) {
    struct heard *heard = ctx;
    static char much[MIB];
    memset(much, 'x', sizeof(much));
    buf_append(&heard->text, STR("open "));
    if (heard->say) assert_true(websocket_call_send(heard->call, str_from(heard->say)));
    for (int i = 0; i < 7 && heard->floods; i++) /* more than the kernel takes */
        assert_true(websocket_call_send(heard->call, str_of(much, sizeof(much))));
}

static void on_message(struct str data, enum websocket_kind kind, void *ctx) {
    struct heard *heard = ctx;
    buf_printf(&heard->text, "%s:" STR_FMT " ", kind == WEBSOCKET_TEXT ? "text" : "binary",
               STR_ARG(str_head(data, 20)));
    if (heard->leaves) {
        websocket_call_free(heard->call);
        loop_stop(heard->loop);
    } else if (heard->pauses) {
        heard->pauses = false;
        websocket_call_pause(heard->call);
        timer_start(&heard->resume, 50);
    }
}

static void on_sent(void *ctx) {
    struct heard *heard = ctx;
    buf_append(&heard->text, STR("sent "));
}

static void on_end(const struct websocket_end *end, void *ctx) {
    struct heard *heard = ctx;
    heard->end = *end;
    buf_append(&heard->body, end->body);
    buf_append(&heard->text, STR("end"));
    loop_stop(heard->loop);
}

static const struct websocket_sink sink = {on_open, on_message, on_sent, on_end};

/* --- the server --------------------------------------------------------------------------- */

static bool say_101(struct peer *peer, int fd, struct str request, const char *more) {
    struct str rest = str_skip(request, str_find(request, STR("Sec-WebSocket-Key: ")) + 19);
    char accept[WEBSOCKET_ACCEPT_BYTES], head[512];
    websocket_accept(str_head(rest, WEBSOCKET_KEY_BYTES), accept);
    snprintf(head, sizeof(head),
             "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
             "Sec-WebSocket-Accept: %.28s\r\n\r\n%s",
             accept, more);
    return peer_say(peer, fd, head);
}

/* What the test said, right after the head, in the same write; then the connection ends. */
static bool say_frames(struct peer *peer, int fd, struct str request) {
    (void)say_101(peer, fd, request, peer->ctx);
    return false;
}

/* The same, a byte at a time, and then it waits. */
static bool say_slowly(struct peer *peer, int fd, struct str request) {
    (void)say_101(peer, fd, request, "");
    for (const char *at = peer->ctx; *at; at++) (void)peer_send(peer, fd, str_of(at, 1));
    return peer_wait(peer, fd);
}

/* All at once, and then it waits. */
static bool say_raw(struct peer *peer, int fd, struct str request) {
    (void)say_101(peer, fd, request, "");
    (void)peer_say(peer, fd, peer->ctx);
    return peer_wait(peer, fd);
}

static bool say_answer(struct peer *peer, int fd, struct str request) {
    (void)request;
    return peer_say(peer, fd, peer->ctx) && peer_wait(peer, fd);
}

static bool say_and_shut(struct peer *peer, int fd, struct str request) {
    (void)request;
    (void)peer_say(peer, fd, peer->ctx);
    return false;
}

static bool say_nothing(struct peer *peer, int fd, struct str request) {
    (void)request;
    return peer_wait(peer, fd);
}

/* Opens, then reads nothing until the other side is gone. */
static bool read_nothing(struct peer *peer, int fd, struct str request) {
    int least = 1;
    setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &least,
               sizeof(least)); /* else the kernel takes it all */
    (void)say_101(peer, fd, request, "");
    while (!atomic_load(&peer->saw_close)) usleep(1000);
    return false;
}

/* Opens, then passes what it gets to the test. */
static char got[4096];
static size_t got_len;

static bool keep_frames(struct peer *peer, int fd, struct str request) {
    (void)say_101(peer, fd, request, peer->ctx);
    ssize_t len;
    got_len = 0;
    while ((len = peer_raw_recv(fd, got + got_len, sizeof(got) - got_len)) > 0)
        got_len += (size_t)len;
    return false;
}

/* --- running ------------------------------------------------------------------------------ */

static void ask(struct heard *heard, peer_fn *answer, const char *text,
                const struct websocket_request *more) {
    struct peer peer;
    struct asker asker;
    struct err e;
    char url[64];
    if (!websocket_load(&e)) fail_msg("%s", e.text);
    peer_start(&peer, answer, (void *)(uintptr_t)text);
    asker_open(&asker);
    snprintf(url, sizeof(url), PEER_SCHEME "://127.0.0.1:%u/v1/realtime?model=m", peer.port);
    struct websocket_request request = *more;
    request.url = str_from(url);
    if (!request.message_max_bytes) request.message_max_bytes = KIB;
    heard->loop = asker.loop;
    timer_init(&heard->resume, asker.loop, on_resume, heard);
    buf_init(&heard->text, 64 * KIB);
    buf_init(&heard->body, 64 * KIB);
    heard->call = websocket_call_start(asker.pool, asker.loop, &request, &sink, heard);
    assert_int_equal(heard->text.len, 0);
    loop_run(asker.loop);
    atomic_store(&peer.saw_close, true);
    asker_shut(&asker);
    peer_stop(&peer);
}

static void heard_done(struct heard *heard) {
    buf_done(&heard->text);
    buf_done(&heard->body);
}

static const struct websocket_request plain = {.message_max_bytes = KIB};

#define HELLO "\x81\x05hello"
#define CLOSE_1000 "\x88\x02\x03\xe8"
#define CLOSE_1011 "\x88\x06\x03\xf3oops"

/* --- tests -------------------------------------------------------------------------------- */

static void messages_come_out_however_they_arrive(void **state) {
    (void)state;
    peer_fn *const ways[] = {say_frames, say_slowly};
    for (size_t i = 0; i < ARRAY_LEN(ways); i++) {
        struct heard heard = {.say = NULL};
        ask(&heard, ways[i], HELLO "\x01\x02He\x89\x01p\x80\x03llo\x82\x01z" CLOSE_1000,
            &plain);
        assert_str(buf_str(&heard.text), "open text:hello text:Hello binary:z end");
        assert_int_equal(heard.end.why.code, ERR_NONE);
        assert_int_equal(heard.end.code, 1000);
        assert_true(heard.end.opened);
        heard_done(&heard);
    }
}

static const struct {
    const char *frames, *heard, *why;
    enum err_code code;
    unsigned close;
} broken[] = {
    {HELLO CLOSE_1011, "open text:hello end", "1011: oops", ERR_UNAVAILABLE, 1011},
    {HELLO, "open text:hello end", "ended the connection", ERR_UNAVAILABLE, 0},
    {HELLO "\x81\x05he", "open text:hello end", "in the middle of a message", ERR_UNAVAILABLE,
     0},
    {"\x83\x02zz", "open end", "no WebSocket", ERR_MALFORMED, 0},
    {"\x81\x85kkkkhello", "open end", "no WebSocket", ERR_MALFORMED, 0},
    {"\xc1\x05hello", "open end", "no WebSocket", ERR_MALFORMED, 0},
    {"\x81\x02\xff\xfe", "open end", "no WebSocket", ERR_MALFORMED, 0},
    {"\x81\x7e\x10\x10hello", "open end", "too much", ERR_TOO_LARGE, 0},
};

static void what_breaks_is_said(void **state) {
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(broken); i++) {
        struct heard heard = {.say = NULL};
        ask(&heard, say_frames, broken[i].frames, &plain);
        assert_str(buf_str(&heard.text), broken[i].heard);
        assert_int_equal(heard.end.why.code, broken[i].code);
        assert_int_equal(heard.end.code, broken[i].close);
        if (!strstr(heard.end.why.text, broken[i].why)) fail_msg("%s", heard.end.why.text);
        heard_done(&heard);
    }
}

static void a_refusal_has_its_status_and_body(void **state) {
    (void)state;
    static const char *const answers[] = {
        "HTTP/1.1 429 Too Many Requests\r\nContent-Length: 14\r\n\r\n{\"error\":\"no\"}",
        ("HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\nHTTP/1.1 429 X\r\nTransfer-Encoding: "
         "chunked\r\n\r\ne\r\n{\"error\":\"no\"}\r\n0\r\n\r\n"),
        "HTTP/1.1 429 X\r\n\r\n{\"error\":\"no\"}"};
    for (size_t i = 0; i < ARRAY_LEN(answers); i++) {
        struct heard heard = {.say = NULL};
        ask(&heard, i == 2 ? say_and_shut : say_answer, answers[i], &plain);
        assert_str(buf_str(&heard.text), "end");
        assert_int_equal(heard.end.status, 429);
        assert_false(heard.end.opened);
        assert_str(buf_str(&heard.body), "{\"error\":\"no\"}");
        heard_done(&heard);
    }
}

static void an_answer_that_opens_nothing_is_refused(void **state) {
    (void)state;
    static const char *const answers[] = {
        "HTTP/1.1 101 X\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
        ("HTTP/1.1 101 X\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
         "Sec-WebSocket-Accept: AAAAAAAAAAAAAAAAAAAAAAAAAAA=\r\n\r\n"),
        "SSH-2.0-OpenSSH\r\n\r\n",
    };
    for (size_t i = 0; i < ARRAY_LEN(answers); i++) {
        struct heard heard = {.say = NULL};
        ask(&heard, say_answer, answers[i], &plain);
        assert_str(buf_str(&heard.text), "end");
        assert_int_equal(heard.end.why.code, ERR_UNAVAILABLE);
        heard_done(&heard);
    }
}

static void a_server_that_never_answers_is_left(void **state) {
    (void)state;
    struct heard heard = {.say = NULL};
    ask(&heard, say_nothing, "", &(struct websocket_request){.open_ms = 60});
    assert_int_equal(heard.end.why.code, ERR_DEADLINE_EXCEEDED);
    heard_done(&heard);
}

static void a_silent_server_is_pinged_and_left(void **state) {
    (void)state;
    struct heard heard = {.say = NULL};
    ask(&heard, keep_frames, "", &(struct websocket_request){.ping_ms = 30, .stall_ms = 60});
    assert_int_equal(heard.end.why.code, ERR_DEADLINE_EXCEEDED);
    assert_non_null(strstr(heard.end.why.text, "ping"));
    assert_int_equal((unsigned char)got[0], 0x89); /* ours are masked: 4 bytes of key, "weir" */
    assert_int_equal((unsigned char)got[1], 0x84);
    heard_done(&heard);
}

static void a_server_that_reads_nothing_is_left(void **state) {
    (void)state;
    struct heard heard = {.floods = true};
    ask(&heard, read_nothing, "", &(struct websocket_request){.ping_ms = 60, .stall_ms = 60});
    assert_int_equal(heard.end.why.code, ERR_DEADLINE_EXCEEDED);
    assert_non_null(strstr(heard.end.why.text, "reads nothing"));
    heard_done(&heard);
}

static void pings_are_answered_and_closes_too(void **state) {
    (void)state;
    struct heard heard = {.say = "hi"};
    ask(&heard, keep_frames, "\x89\x02ok" CLOSE_1000, &plain);
    assert_str(buf_str(&heard.text), "open end");
    assert_int_equal(got_len, 3 * 6 + 2 + 2 + 2);
    assert_int_equal((unsigned char)got[0], 0x81);
    assert_int_equal((unsigned char)got[8], 0x8a);
    assert_int_equal((unsigned char)got[16], 0x88);
    heard_done(&heard);
}

static void a_call_may_be_left_in_its_callback(void **state) {
    (void)state;
    struct heard heard = {.leaves = true};
    ask(&heard, keep_frames, HELLO HELLO, &plain);
    assert_str(buf_str(&heard.text), "open text:hello ");
    assert_int_equal((unsigned char)got[0], 0x88); /* with 1000 */
    heard_done(&heard);
}

static size_t count_of(struct str text, struct str word) {
    size_t count = 0;
    for (size_t at; (at = str_find(text, word)) < text.len; count++)
        text = str_skip(text, at + word.len);
    return count;
}

/* No more than one read brings after the pause; all of it comes in the end. */
static void a_pause_holds_the_rest_back(void **state) {
    (void)state;
    enum { FRAMES = 200, FRAME = 4 + 1000 };
    struct heard heard = {.pauses = true};
    char *frames = mem_zero(FRAMES * FRAME + 5, 1);
    for (size_t i = 0; i < FRAMES; i++) {
        char *frame = frames + i * FRAME;
        memcpy(frame, "\x81\x7e\x03\xe8", 4);
        memset(frame + 4, 'x', 1000);
    }
    memcpy(frames + (size_t)FRAMES * FRAME, CLOSE_1000, 4);
    ask(&heard, say_raw, frames, &plain);
    struct str text = buf_str(&heard.text);
    struct str before = str_head(text, str_find(text, STR("resume ")));
    assert_true(before.len < text.len);
    assert_true(count_of(before, STR("text:")) <= 2 + 32 * KIB / FRAME);
    assert_int_equal(count_of(text, STR("text:")), FRAMES);
    assert_true(str_ends(text, STR("end")));
    heard_done(&heard);
    free(frames);
}

static void a_wrong_request_is_reported(void **state) {
    (void)state;
    const struct http_header header = {STR("x"), STR("a\r\nb")};
    struct heard heard = {.say = NULL};
    ask(&heard, say_nothing, "",
        &(struct websocket_request){.headers = &header, .header_count = 1});
    assert_int_equal(heard.end.why.code, ERR_INVALID_ARGUMENT);
    heard_done(&heard);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(messages_come_out_however_they_arrive),
        cmocka_unit_test(what_breaks_is_said),
        cmocka_unit_test(a_refusal_has_its_status_and_body),
        cmocka_unit_test(an_answer_that_opens_nothing_is_refused),
        cmocka_unit_test(a_server_that_never_answers_is_left),
        cmocka_unit_test(a_silent_server_is_pinged_and_left),
        cmocka_unit_test(a_server_that_reads_nothing_is_left),
        cmocka_unit_test(pings_are_answered_and_closes_too),
        cmocka_unit_test(a_call_may_be_left_in_its_callback),
        cmocka_unit_test(a_pause_holds_the_rest_back),
        cmocka_unit_test(a_wrong_request_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
