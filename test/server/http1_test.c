/* HTTP/1 as the peer sees it: bytes in, bytes out, and what the application received. */
#include "http1_table.h"

#include "fake.h"
#include "helper/moves.h"
#include "server/http1_step.h"

#include <setjmp.h>
#include <stdarg.h>
/* cmocka wants these before it. */
#include <cmocka.h>
#include <stdio.h>

#define assert_text(fake, expected) assert_true(same((fake), (expected)))

/* --- reading answers ---------------------------------------------------------------------- */

/* What was sent, without the one line that time changes. */
static struct str without_dates(struct fake *fake) {
    struct str line = STR("date: ");
    for (;;) {
        struct str sent = buf_str(&fake->sent);
        size_t at = str_find(sent, line);
        if (at == sent.len) return sent;
        size_t len = str_find(str_skip(sent, at), STR("\r\n")) + 2;
        memmove(fake->sent.at + at, fake->sent.at + at + len, sent.len - at - len);
        fake->sent.len -= len;
    }
}

static bool same(struct fake *fake, const char *expected) {
    struct str sent = without_dates(fake);
    bool equal = str_equal(sent, str_from(expected));
    if (!equal) printf("sent:\n" STR_FMT "\nexpected:\n%s\n", STR_ARG(sent), expected);
    return equal;
}

/* "200 400": the statuses of all answers. */
static void statuses(const struct fake *fake, char *ret, size_t size) {
    struct str rest = buf_str(&fake->sent);
    size_t len = 0;
    ret[0] = '\0';
    for (;;) {
        rest = str_skip(rest, str_find(rest, STR("HTTP/1.1 ")));
        if (rest.len == 0) return;
        rest = str_skip(rest, 9);
        if (rest.len < 3 || rest.at[0] < '1' || rest.at[0] > '9' || len + 5 > size) continue;
        len += (size_t)snprintf(ret + len, size - len, "%.3s ", rest.at);
    }
}

/* --- the table ---------------------------------------------------------------------------- */

struct outcome {
    char statuses[64];
    size_t runs;
    bool over;
};

/* One row, in pieces of these lengths. */
static struct outcome try_row(const struct http1_row *row, size_t first, size_t step) {
    struct fake fake;
    struct echo echo = {0};
    struct outcome outcome;
    fake_open(&fake, echo_start, &echo);
    fake_receive(&fake, str_head(row->raw, first));
    for (size_t at = first; at < row->raw.len; at += step)
        fake_receive(&fake, str_head(str_skip(row->raw, at), step));
    statuses(&fake, outcome.statuses, sizeof(outcome.statuses));
    outcome.runs = echo.begun;
    outcome.over = fake_is_over(&fake);
    fake_shut(&fake);
    assert_int_equal(echo.begun, echo.closed);
    return outcome;
}

static void check_row(const struct http1_row *row, const struct outcome *outcome) {
    int status = atoi(outcome->statuses);
    bool refused = row->status >= 400;
    /* Once an answer is on its way it cannot be taken back: then the connection is cut. */
    bool cut = refused && row->runs == 1 && status == 200 && outcome->over &&
               strlen(outcome->statuses) == 4;
    bool right = (status == row->status || cut) && outcome->runs == row->runs &&
                 (!refused || outcome->over);
    if (!right)
        fail_msg("%s: expected %d after %u requests, got '%s' after %zu%s", row->name,
                 row->status, row->runs, outcome->statuses, outcome->runs,
                 outcome->over ? ", closed" : ", open");
}

static void every_request_of_the_table_gets_its_answer(void **state) {
    (void)state;
    assert_true(ARRAY_LEN(http1_rows) >= 215);
    for (size_t i = 0; i < ARRAY_LEN(http1_rows); i++) {
        struct outcome outcome = try_row(&http1_rows[i], http1_rows[i].raw.len, 1);
        check_row(&http1_rows[i], &outcome);
    }
}

static void every_request_reads_the_same_however_it_is_cut(void **state) {
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(http1_rows); i++) {
        const struct http1_row *row = &http1_rows[i];
        struct outcome bytewise = try_row(row, 0, 1);
        check_row(row, &bytewise);
        /* The long ones are all the same letter. */
        size_t stride = row->raw.len > 1000 ? 997 : 1;
        for (size_t cut = 1; cut < row->raw.len; cut += stride) {
            struct outcome outcome = try_row(row, cut, row->raw.len);
            check_row(row, &outcome);
        }
    }
}

static void no_prefix_of_a_request_runs_it(void **state) {
    (void)state;
    struct str request = STR(POST HOST "Content-Length: 5\r\n" END "hello");
    size_t head = request.len - 5;
    for (size_t len = 0; len < request.len; len++) {
        struct fake fake;
        struct echo echo = {0};
        fake_open(&fake, echo_start, &echo);
        fake_receive(&fake, str_head(request, len));
        assert_int_equal(echo.begun, len >= head);
        fake_peer_ends(&fake);
        assert_int_equal(echo.closed, len >= head);
        if (len >= head) assert_int_equal(echo.how, EXCHANGE_PEER_LEFT);
        fake_shut(&fake);
    }
}

/* --- an application that the test plays itself -------------------------------------------- */

struct played {
    struct exchange *exchange;
    struct buf body;
    size_t begun, drained, closed;
    bool body_ended;
    enum exchange_close how;
};

static void played_body(struct exchange *exchange, struct lent bytes, void *ctx) {
    (void)exchange;
    struct played *played = ctx;
    buf_append(&played->body, lent_read(bytes));
}

static void played_body_end(struct exchange *exchange, void *ctx) {
    (void)exchange;
    ((struct played *)ctx)->body_ended = true;
}

static void played_drained(struct exchange *exchange, void *ctx) {
    (void)exchange;
    ((struct played *)ctx)->drained++;
}

static void played_closed(struct exchange *exchange, enum exchange_close how, void *ctx) {
    (void)exchange;
    struct played *played = ctx;
    played->closed++;
    played->how = how;
    played->exchange = NULL;
}

static const struct exchange_events played_events = {played_body, played_body_end,
                                                     played_drained, played_closed};

static void played_start(struct exchange *exchange, void *ctx) {
    struct played *played = ctx;
    played->begun++;
    played->exchange = exchange;
    exchange_accept(exchange, &played_events, played);
}

struct scene {
    struct fake fake;
    struct played played;
};

static int open_scene(void **state) {
    struct scene *scene = MEM_NEW(struct scene);
    buf_init(&scene->played.body, 16 * MIB);
    fake_open(&scene->fake, played_start, &scene->played);
    *state = scene;
    return 0;
}

static int shut_scene(void **state) {
    struct scene *scene = *state;
    fake_shut(&scene->fake);
    buf_done(&scene->played.body);
    free(scene);
    return 0;
}

static void ask(struct scene *scene, struct str request) {
    fake_receive(&scene->fake, request);
    assert_non_null(scene->played.exchange);
}

static void turn(struct scene *scene) {
    loop_turn(scene->fake.loop);
}

/* --- requests ----------------------------------------------------------------------------- */

static void the_parts_of_a_request_can_be_read(void **state) {
    struct scene *scene = *state;
    ask(scene, STR("POST /a/b?c=d&e HTTP/1.1\r\nHost: Example:80\r\nX-Two:  spaced \r\n"
                   "Content-Length: 3\r\n\r\nxyz"));
    struct exchange *exchange = scene->played.exchange;
    assert_true(str_equal(exchange_method(exchange), STR("POST")));
    assert_true(str_equal(exchange_path(exchange), STR("/a/b")));
    assert_true(str_equal(exchange_query(exchange), STR("c=d&e")));
    assert_true(str_equal(exchange_authority(exchange), STR("Example:80")));
    assert_true(str_equal(exchange_field(exchange, STR("x-two"))->value, STR("spaced")));
    assert_null(exchange_field(exchange, STR("x-three")));
    assert_int_equal(exchange_content_length(exchange), 3);
    assert_int_equal(exchange_http(exchange), EXCHANGE_HTTP_1_1);
    assert_true(str_equal(exchange_peer(exchange), STR("127.0.0.1:1")));
    assert_true(str_equal(exchange_peer_owner(exchange), STR("\177\0\0\1")));
    assert_true(exchange_peer_is_loopback(exchange));
    size_t count;
    const struct field *fields = exchange_fields(exchange, &count);
    assert_int_equal(count, 3);
    assert_true(str_equal(fields[0].name, STR("host")));
    assert_true(str_equal(buf_str(&scene->played.body), STR("xyz")));
    assert_true(scene->played.body_ended);
}

/* Of TLS one read may bring more than it read: the rest of a record that came in part before. */
static void what_comes_during_an_answer_is_kept_however_much_comes_at_once(void **state) {
    struct scene *scene = *state;
    size_t before = 64 * KIB - 1, body = before + HOME_RECEIVE_MAX_BYTES - 256;
    struct buf next;
    buf_init(&next, MIB);
    buf_printf(&next, POST HOST "Content-Length: %zu\r\n" END, body);
    body += 256 - next.len; /* so that it is as long as before + HOME_RECEIVE_MAX_BYTES */
    buf_clear(&next);
    buf_printf(&next, POST HOST "Content-Length: %zu\r\n" END, body);
    for (size_t i = 0; i < body; i++) buf_append_byte(&next, 'x');
    assert_int_equal(next.len, before + HOME_RECEIVE_MAX_BYTES);
    ask(scene, STR(GET HOST END));
    fake_receive(&scene->fake, str_head(buf_str(&next), before));
    assert_true(scene->fake.reading);
    fake_receive(&scene->fake, str_skip(buf_str(&next), before));
    assert_false(scene->fake.reading);
    exchange_head(scene->played.exchange, 200, NULL, 0);
    exchange_end(scene->played.exchange, NULL, 0);
    turn(scene);
    assert_int_equal(scene->played.begun, 2);
    assert_int_equal(scene->played.body.len, body);
    buf_done(&next);
}

static void a_forgotten_request_reads_as_empty(void **state) {
    struct scene *scene = *state;
    ask(scene, STR(GET HOST END));
    exchange_forget_request(scene->played.exchange);
    assert_int_equal(exchange_path(scene->played.exchange).len, 0);
    assert_null(exchange_field(scene->played.exchange, STR("host")));
    exchange_forget_request(scene->played.exchange);
}

static void the_authority_of_the_target_beats_host(void **state) {
    struct scene *scene = *state;
    ask(scene, STR("GET http://b:81/c HTTP/1.1\r\n" HOST END));
    assert_true(str_equal(exchange_authority(scene->played.exchange), STR("b:81")));
    assert_true(str_equal(exchange_path(scene->played.exchange), STR("/c")));
}

static void a_body_that_is_not_consumed_stops_the_reading(void **state) {
    struct scene *scene = *state;
    ask(scene, STR(POST HOST "Content-Length: 1000000\r\n" END));
    char bytes[1000] = {0};
    size_t given = 0;
    while (scene->fake.reading) {
        fake_receive(&scene->fake, str_of(bytes, sizeof(bytes)));
        given += sizeof(bytes);
    }
    assert_true(given >= 64 * KIB && given <= 66 * KIB);
    assert_int_equal(scene->played.body.len, given);
    loop_advance(scene->fake.loop, 60 * 1000); /* waiting for us is not the peer's fault */
    assert_int_equal(scene->played.closed, 0);
    exchange_consumed(scene->played.exchange, given);
    assert_true(scene->fake.reading);
}

static void a_hundred_is_sent_when_the_body_is_wanted(void **state) {
    struct scene *scene = *state;
    ask(scene, STR(POST HOST "Expect: 100-continue\r\nContent-Length: 2\r\n" END));
    assert_text(&scene->fake, "HTTP/1.1 100 Continue\r\n\r\n");
    buf_clear(&scene->fake.sent);
    fake_receive(&scene->fake, STR("hi"));
    assert_true(scene->played.body_ended);
    exchange_head(scene->played.exchange, 200, NULL, 0);
    exchange_end(scene->played.exchange, NULL, 0);
    turn(scene);
    assert_text(&scene->fake, "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
}

static void refuse_at_once(struct exchange *exchange, void *ctx) {
    played_start(exchange, ctx);
    exchange_head(exchange, 403, NULL, 0);
    exchange_end(exchange, NULL, 0);
}

static void no_hundred_is_sent_before_a_refusal(void **state) {
    struct scene *scene = *state;
    scene->fake.listener.on_request = refuse_at_once;
    fake_receive(&scene->fake,
                 STR(POST HOST "Expect: 100-continue\r\nContent-Length: 8388608\r\n" END));
    assert_text(&scene->fake,
                "HTTP/1.1 403 Forbidden\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
    assert_true(scene->fake.ended);
    assert_int_equal(scene->played.how, EXCHANGE_COMPLETE);
}

/* --- answers ------------------------------------------------------------------------------ */

static void say(struct scene *scene, struct str bytes) {
    exchange_send(scene->played.exchange, bytes);
}

static void a_whole_answer_has_a_length_and_leaves_in_one_write(void **state) {
    struct scene *scene = *state;
    ask(scene, STR(GET HOST END));
    const struct field field = {STR("x"), STR("y")};
    exchange_head(scene->played.exchange, 404, &field, 1);
    say(scene, STR("not "));
    say(scene, STR("here"));
    exchange_end(scene->played.exchange, NULL, 0);
    assert_int_equal(scene->fake.sends, 0);
    assert_int_equal(scene->played.closed, 0);
    turn(scene);
    assert_int_equal(scene->fake.sends, 1);
    assert_text(&scene->fake,
                "HTTP/1.1 404 Not Found\r\nx: y\r\ncontent-length: 8\r\n\r\nnot here");
    assert_int_equal(scene->played.how, EXCHANGE_COMPLETE);
    assert_false(fake_is_over(&scene->fake));
}

static void a_streamed_answer_is_chunked(void **state) {
    struct scene *scene = *state;
    ask(scene, STR(GET HOST END));
    exchange_head(scene->played.exchange, 200, NULL, 0);
    turn(scene);
    say(scene, STR("one"));
    say(scene, STR("two"));
    turn(scene);
    say(scene, STR("three"));
    exchange_end(scene->played.exchange, NULL, 0);
    turn(scene);
    assert_text(&scene->fake, "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
                              "6\r\nonetwo\r\n5\r\nthree\r\n0\r\n\r\n");
}

static void bytes_appended_in_place_leave_too(void **state) {
    struct scene *scene = *state;
    ask(scene, STR(GET HOST END));
    exchange_head(scene->played.exchange, 200, NULL, 0);
    buf_append(exchange_out(scene->played.exchange), STR("in place"));
    exchange_touch(scene->played.exchange);
    assert_int_equal(exchange_queued(scene->played.exchange), 8);
    exchange_end(scene->played.exchange, NULL, 0);
    turn(scene);
    assert_text(&scene->fake, "HTTP/1.1 200 OK\r\ncontent-length: 8\r\n\r\nin place");
}

static void http_1_0_reads_until_the_end(void **state) {
    struct scene *scene = *state;
    ask(scene, STR("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"));
    exchange_head(scene->played.exchange, 200, NULL, 0);
    turn(scene);
    say(scene, STR("bytes"));
    turn(scene);
    assert_false(scene->fake.ended);
    exchange_end(scene->played.exchange, NULL, 0);
    turn(scene);
    assert_text(&scene->fake, "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nbytes");
    assert_true(scene->fake.ended);
}

static void http_1_0_may_stay_when_the_length_is_known(void **state) {
    struct scene *scene = *state;
    ask(scene, STR("GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\n"));
    exchange_head(scene->played.exchange, 200, NULL, 0);
    say(scene, STR("x"));
    exchange_end(scene->played.exchange, NULL, 0);
    turn(scene);
    assert_text(&scene->fake,
                "HTTP/1.1 200 OK\r\ncontent-length: 1\r\nconnection: keep-alive\r\n\r\nx");
    assert_false(fake_is_over(&scene->fake));
}

static void the_answer_to_head_has_no_body(void **state) {
    struct scene *scene = *state;
    ask(scene, STR("HEAD / HTTP/1.1\r\n" HOST END));
    const struct field length = {STR("content-length"), STR("5")};
    exchange_head(scene->played.exchange, 200, &length, 1);
    say(scene, STR("hello"));
    exchange_end(scene->played.exchange, NULL, 0);
    turn(scene);
    assert_text(&scene->fake, "HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\n");
    assert_false(fake_is_over(&scene->fake));
}

static void no_content_has_no_length(void **state) {
    struct scene *scene = *state;
    ask(scene, STR(GET HOST END));
    exchange_head(scene->played.exchange, 204, NULL, 0);
    exchange_end(scene->played.exchange, NULL, 0);
    turn(scene);
    assert_text(&scene->fake, "HTTP/1.1 204 No Content\r\n\r\n");
}

static void trailers_reach_only_a_client_that_asks(void **state) {
    struct scene *scene = *state;
    const struct field trailer = {STR("sum"), STR("42")};
    ask(scene, STR(GET HOST "TE: trailers\r\n" END));
    exchange_head(scene->played.exchange, 200, NULL, 0);
    say(scene, STR("x"));
    exchange_end(scene->played.exchange, &trailer, 1);
    turn(scene);
    assert_text(&scene->fake, "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"
                              "1\r\nx\r\n0\r\nsum: 42\r\n\r\n");
    buf_clear(&scene->fake.sent);
    ask(scene, STR(GET HOST END));
    exchange_head(scene->played.exchange, 200, NULL, 0);
    exchange_end(scene->played.exchange, &trailer, 1);
    turn(scene);
    assert_text(&scene->fake, "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
}

static void control_bytes_in_a_value_cannot_end_the_field(void **state) {
    struct scene *scene = *state;
    ask(scene, STR(GET HOST END));
    const struct field field = {STR("x"), STR("a\r\nset-cookie: b")};
    exchange_head(scene->played.exchange, 200, &field, 1);
    exchange_end(scene->played.exchange, NULL, 0);
    turn(scene);
    assert_text(&scene->fake,
                "HTTP/1.1 200 OK\r\nx: a  set-cookie: b\r\ncontent-length: 0\r\n\r\n");
}

static void an_answer_of_another_length_than_announced_ends_the_connection(void **state) {
    struct scene *scene = *state;
    const struct field length = {STR("content-length"), STR("3")};
    ask(scene, STR(GET HOST END));
    exchange_head(scene->played.exchange, 200, &length, 1);
    say(scene, STR("four"));
    exchange_end(scene->played.exchange, NULL, 0);
    turn(scene);
    assert_text(&scene->fake, "HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nfou");
    assert_true(scene->fake.ended);
}

static void an_answer_before_the_end_of_the_request_closes(void **state) {
    struct scene *scene = *state;
    ask(scene, STR(POST HOST "Content-Length: 100\r\n" END "abc"));
    exchange_head(scene->played.exchange, 413, NULL, 0);
    exchange_end(scene->played.exchange, NULL, 0);
    turn(scene);
    assert_text(&scene->fake, "HTTP/1.1 413 Content Too Large\r\ncontent-length: 0\r\n"
                              "connection: close\r\n\r\n");
    assert_int_equal(scene->played.how, EXCHANGE_COMPLETE);
    assert_true(scene->fake.ended);
    fake_receive(&scene->fake, STR("the rest of the body is read in peace"));
    assert_non_null(scene->fake.conn);
    loop_advance(scene->fake.loop, 1000);
    assert_null(scene->fake.conn);
}

static void many_answers_leave_in_one_write(void **state) {
    (void)state;
    struct fake fake;
    struct echo echo = {0};
    fake_open(&fake, echo_start, &echo);
    struct buf requests;
    buf_init(&requests, MIB);
    for (size_t i = 0; i < 100; i++) buf_append(&requests, STR(GET HOST END));
    fake_receive(&fake, buf_str(&requests));
    assert_int_equal(echo.closed, 100);
    assert_int_equal(fake.sends, 1);
    buf_done(&requests);
    fake_shut(&fake);
}

/* --- a peer that does not read ------------------------------------------------------------ */

static void what_the_peer_does_not_take_waits_and_wakes_the_owner(void **state) {
    struct scene *scene = *state;
    ask(scene, STR(GET HOST END));
    scene->fake.window = 0;
    exchange_head(scene->played.exchange, 200, NULL, 0);
    char bytes[1000] = {0};
    for (size_t i = 0; i < 300; i++) say(scene, str_of(bytes, sizeof(bytes)));
    turn(scene);
    assert_true(scene->fake.writing);
    assert_true(exchange_queued(scene->played.exchange) > 200 * KIB);
    exchange_wake_at(scene->played.exchange, 100 * KIB);
    turn(scene);
    assert_int_equal(scene->played.drained, 0);
    loop_advance(scene->fake.loop, 500);
    assert_int_equal(exchange_stalled_ms(scene->played.exchange), 500);
    for (size_t i = 0; i < 40 && !scene->played.drained; i++)
        fake_allow(&scene->fake, 10 * KIB);
    assert_int_equal(scene->played.drained, 1);
    assert_true(exchange_queued(scene->played.exchange) <= 100 * KIB);
    exchange_end(scene->played.exchange, NULL, 0);
    fake_allow(&scene->fake, SIZE_MAX);
    assert_int_equal(scene->played.how, EXCHANGE_COMPLETE);
    assert_false(scene->fake.writing);
}

static void the_owner_is_woken_also_when_nothing_waits(void **state) {
    struct scene *scene = *state;
    ask(scene, STR(GET HOST END));
    exchange_wake_at(scene->played.exchange, 0);
    assert_int_equal(scene->played.drained, 0);
    turn(scene);
    assert_int_equal(scene->played.drained, 1);
}

static void a_peer_that_reads_nothing_for_thirty_seconds_is_cut(void **state) {
    struct scene *scene = *state;
    ask(scene, STR(GET HOST END));
    scene->fake.window = 0;
    exchange_head(scene->played.exchange, 200, NULL, 0);
    say(scene, STR("never read"));
    turn(scene);
    loop_advance(scene->fake.loop, 29999);
    assert_int_equal(scene->played.closed, 0);
    loop_advance(scene->fake.loop, 1);
    assert_int_equal(scene->played.closed, 1);
    assert_int_equal(scene->played.how, EXCHANGE_ABORTED);
    assert_null(scene->fake.conn);
}

/* A long answer of which the peer takes `bytes` every second; how often it could. */
static int drip(struct scene *scene, size_t bytes) {
    static char answer[400 * KIB];
    int times = 0;
    ask(scene, STR(GET HOST END));
    scene->fake.window = 0;
    exchange_head(scene->played.exchange, 200, NULL, 0);
    say(scene, str_of(answer, sizeof(answer)));
    turn(scene);
    for (; times < 120 && !scene->played.closed; times++) {
        fake_allow(&scene->fake, bytes);
        turn(scene);
        loop_advance(scene->fake.loop, 1000);
    }
    return times;
}

static void a_peer_that_takes_a_kilobyte_a_second_is_not_cut(void **state) {
    assert_int_equal(drip(*state, KIB + 60), 120);
}

static void a_peer_that_drips_is_cut_although_it_makes_progress(void **state) { /* H5 */
    assert_int_equal(drip(*state, 1), 30);
}

static void a_peer_that_takes_a_little_less_than_the_rate_is_cut_too(void **state) {
    assert_int_equal(drip(*state, KIB - 60), 30);
}

static void a_short_answer_may_take_its_stretch(void **state) {
    struct scene *scene = *state;
    ask(scene, STR(GET HOST END));
    scene->fake.window = 0;
    exchange_head(scene->played.exchange, 200, NULL, 0);
    say(scene, STR("ten bytes."));
    turn(scene);
    size_t waiting = scene->fake.conn->unsent.len;
    loop_advance(scene->fake.loop, 29000);
    fake_allow(&scene->fake, waiting - 1);
    loop_advance(scene->fake.loop, 1000);
    assert_int_equal(scene->played.closed, 1);
}

static void a_stream_that_has_nothing_to_say_is_asked_for_no_rate(void **state) {
    struct scene *scene = *state;
    ask(scene, STR(GET HOST END));
    exchange_head(scene->played.exchange, 200, NULL, 0);
    for (int i = 0; i < 40; i++) {
        say(scene, STR("x"));
        turn(scene);
        loop_advance(scene->fake.loop, 10000);
    }
    assert_int_equal(scene->played.closed, 0);
}

static void past_its_limit_a_stalled_connection_loses_the_exchange(void **state) {
    struct scene *scene = *state;
    ask(scene, STR(GET HOST END));
    scene->fake.window = 0;
    exchange_head(scene->played.exchange, 200, NULL, 0);
    char bytes[10000] = {0};
    for (size_t i = 0; i < 150; i++) say(scene, str_of(bytes, sizeof(bytes)));
    turn(scene);
    assert_int_equal(scene->played.closed, 0); /* it may still begin to read */
    loop_advance(scene->fake.loop, 2000);
    say(scene, STR("x"));
    turn(scene);
    assert_int_equal(scene->played.closed, 1);
    assert_int_equal(scene->played.how, EXCHANGE_ABORTED);
}

/* --- sent now ------------------------------------------------------------------------------ */

#define CHUNKED_HEAD "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n"

static void say_now(struct scene *scene, struct str bytes) {
    exchange_send_now(scene->played.exchange, bytes);
}

static void stream(struct scene *scene) {
    ask(scene, STR(GET HOST END));
    exchange_head(scene->played.exchange, 200, NULL, 0);
    turn(scene);
}

static void what_is_sent_now_leaves_before_the_turn_ends(void **state) {
    struct scene *scene = *state;
    stream(scene);
    say_now(scene, STR("an event of seventeen"));
    assert_text(&scene->fake, CHUNKED_HEAD "15\r\nan event of seventeen\r\n");
    assert_int_equal(exchange_queued(scene->played.exchange), 0);
    say_now(scene, STR_EMPTY); /* no chunk of nothing: it would end the body */
    say_now(scene, STR("two"));
    exchange_end(scene->played.exchange, NULL, 0);
    turn(scene);
    assert_text(&scene->fake,
                CHUNKED_HEAD "15\r\nan event of seventeen\r\n3\r\ntwo\r\n0\r\n\r\n");
    assert_int_equal(scene->played.how, EXCHANGE_COMPLETE);
}

static void what_is_sent_now_stays_behind_what_waits(void **state) {
    struct scene *scene = *state;
    ask(scene, STR(GET HOST END));
    exchange_head(scene->played.exchange, 200, NULL, 0);
    say_now(scene, STR("one"));
    say_now(scene, STR("two"));
    assert_int_equal(scene->fake.sends, 0); /* the head waits */
    turn(scene);
    say(scene, STR("three"));
    say_now(scene, STR("four"));
    turn(scene);
    assert_text(&scene->fake, CHUNKED_HEAD "6\r\nonetwo\r\n9\r\nthreefour\r\n");
}

static void append_now(struct scene *scene, struct str bytes) {
    buf_append(exchange_out(scene->played.exchange), bytes);
    exchange_touch_now(scene->played.exchange);
}

static void what_is_appended_leaves_before_the_turn_ends(void **state) {
    struct scene *scene = *state;
    stream(scene);
    append_now(scene, STR("an event of seventeen"));
    append_now(scene, STR_EMPTY); /* no chunk of nothing: it would end the body */
    assert_text(&scene->fake, CHUNKED_HEAD "15\r\nan event of seventeen\r\n");
    assert_int_equal(exchange_queued(scene->played.exchange), 0);
    append_now(scene, STR("two"));
    exchange_end(scene->played.exchange, NULL, 0);
    turn(scene);
    assert_text(&scene->fake,
                CHUNKED_HEAD "15\r\nan event of seventeen\r\n3\r\ntwo\r\n0\r\n\r\n");
    assert_int_equal(scene->played.how, EXCHANGE_COMPLETE);
}

/* A piece that is taken in part, more pieces behind it, then an end: nothing is sent twice, and
 * nothing after it. */
static void what_is_appended_in_pieces_leaves_together(void **state) {
    struct scene *scene = *state;
    stream(scene);
    size_t sends = scene->fake.sends;
    buf_append(exchange_out(scene->played.exchange), STR("one "));
    buf_append(exchange_out(scene->played.exchange), STR("two "));
    append_now(scene, STR("three"));
    assert_int_equal(scene->fake.sends, sends + 1);
    assert_text(&scene->fake, CHUNKED_HEAD "d\r\none two three\r\n");
    scene->fake.window = 6;
    append_now(scene, STR("four"));
    append_now(scene, STR("five"));
    exchange_abort(scene->played.exchange, ABORT_CANCEL);
    append_now(scene, STR("six"));
    fake_allow(&scene->fake, 1000);
    turn(scene);
    assert_text(&scene->fake, CHUNKED_HEAD "d\r\none two three\r\n4\r\nfou");
    assert_int_equal(scene->played.how, EXCHANGE_ABORTED);
}

static void what_is_appended_stays_behind_what_waits(void **state) {
    struct scene *scene = *state;
    ask(scene, STR(GET HOST END));
    exchange_head(scene->played.exchange, 200, NULL, 0);
    append_now(scene, STR("one"));
    append_now(scene, STR("two"));
    assert_int_equal(scene->fake.sends, 0); /* the head waits */
    turn(scene);
    say(scene, STR("three"));
    append_now(scene, STR("four"));
    turn(scene);
    scene->fake.window = 4; /* of the next chunk */
    append_now(scene, STR("five"));
    append_now(scene, STR("six"));
    fake_allow(&scene->fake, 1000);
    turn(scene);
    assert_text(&scene->fake,
                CHUNKED_HEAD "6\r\nonetwo\r\n9\r\nthreefour\r\n4\r\nfive\r\n3\r\nsix\r\n");
}

/* Events sent now, then queued, while the peer takes `first` bytes and then `step` at a time. */
static void assert_cut_reads_the_same(size_t first, size_t step) {
    static const char event[] = "0123456789abcdefghi";
    struct fake fake;
    struct played played = {0};
    fake_open(&fake, played_start, &played);
    buf_init(&played.body, 1 * KIB);
    fake_receive(&fake, STR(GET HOST END));
    exchange_head(played.exchange, 200, NULL, 0);
    loop_turn(fake.loop);
    buf_clear(&fake.sent);
    fake.window = first;
    struct buf body;
    buf_init(&body, 1 * KIB);
    for (size_t i = 0; i < 6; i++) {
        struct str part = str_head(str_from(event), 10 + i);
        buf_append(&body, part);
        if (i % 3 == 2) {
            exchange_send(played.exchange, part);
        } else if (i % 3 == 1) {
            buf_append(exchange_out(played.exchange), part);
            exchange_touch_now(played.exchange);
        } else {
            exchange_send_now(played.exchange, part);
        }
        if (i % 2) loop_turn(fake.loop);
    }
    exchange_end(played.exchange, NULL, 0);
    loop_turn(fake.loop);
    for (size_t i = 0; i < 200 && played.exchange; i++) fake_allow(&fake, step);
    for (size_t i = 0; i < 200 && fake.writing; i++) fake_allow(&fake, step);
    assert_int_equal(played.how, EXCHANGE_COMPLETE);
    struct buf got; /* the chunks differ, what they hold does not */
    buf_init(&got, 1 * KIB);
    struct str rest = buf_str(&fake.sent);
    for (size_t len = 1; len > 0;) {
        len = strtoul(rest.at, NULL, 16);
        rest = str_skip(rest, str_find_byte(rest, '\n') + 1);
        buf_append(&got, str_head(rest, len));
        rest = str_skip(rest, len + 2);
    }
    assert_int_equal(rest.len, 0);
    assert_int_equal(got.len, body.len);
    assert_memory_equal(got.at, body.at, body.len);
    buf_done(&got);
    buf_done(&body);
    buf_done(&played.body);
    fake_shut(&fake);
}

static void what_is_sent_now_reads_the_same_however_little_is_taken(void **state) {
    (void)state;
    for (size_t first = 0; first < 100; first++) {
        assert_cut_reads_the_same(first, 1);
        assert_cut_reads_the_same(first, 7);
        assert_cut_reads_the_same(first, SIZE_MAX);
    }
}

static void a_peer_that_takes_part_of_it_and_no_more_is_cut(void **state) {
    struct scene *scene = *state;
    stream(scene);
    scene->fake.window = 5;
    say_now(scene, STR("more than five bytes"));
    turn(scene);
    assert_true(scene->fake.writing);
    loop_advance(scene->fake.loop, 29999);
    assert_int_equal(scene->played.closed, 0);
    loop_advance(scene->fake.loop, 2);
    turn(scene);
    assert_int_equal(scene->played.closed, 1);
}

static void a_write_that_fails_now_is_told_later(void **state) {
    struct scene *scene = *state;
    stream(scene);
    scene->fake.broken = true;
    say_now(scene, STR("for nobody"));
    assert_int_equal(scene->played.closed, 0);
    turn(scene);
    assert_int_equal(scene->played.closed, 1);
    assert_int_equal(scene->played.how, EXCHANGE_PEER_LEFT);
}

static void an_aborted_exchange_sends_nothing_now(void **state) {
    struct scene *scene = *state;
    stream(scene);
    exchange_abort(scene->played.exchange, ABORT_CANCEL);
    say_now(scene, STR("ignored"));
    turn(scene);
    assert_text(&scene->fake, CHUNKED_HEAD);
    assert_int_equal(scene->played.how, EXCHANGE_ABORTED);
}

static void what_has_another_form_than_a_chunk_waits_for_the_turn(void **state) {
    struct scene *scene = *state;
    ask(scene, STR("GET / HTTP/1.0\r\n\r\n"));
    exchange_head(scene->played.exchange, 200, NULL, 0);
    turn(scene);
    say_now(scene, STR("bytes"));
    assert_text(&scene->fake, "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\n");
    turn(scene);
    assert_text(&scene->fake, "HTTP/1.1 200 OK\r\nconnection: close\r\n\r\nbytes");
}

static void a_long_piece_sent_now_leaves_too(void **state) {
    struct scene *scene = *state;
    stream(scene);
    size_t lens[] = {16 * KIB - 1, 16 * KIB, 16 * KIB + 1, 200 * KIB}, sum = 0;
    for (size_t i = 0; i < ARRAY_LEN(lens); i++) {
        char *bytes = mem_zero(lens[i], 1);
        size_t before = scene->fake.sends;
        say_now(scene, str_of(bytes, lens[i]));
        assert_int_equal(scene->fake.sends > before, lens[i] <= 16 * KIB);
        turn(scene);
        sum += lens[i];
        free(bytes);
    }
    size_t zeros = 0;
    for (size_t i = 0; i < scene->fake.sent.len; i++) zeros += scene->fake.sent.at[i] == 0;
    assert_int_equal(zeros, sum);
}

/* --- ends --------------------------------------------------------------------------------- */

static void a_peer_that_closes_has_left(void **state) {
    struct scene *scene = *state;
    ask(scene, STR(GET HOST END));
    exchange_head(scene->played.exchange, 200, NULL, 0);
    turn(scene);
    fake_peer_ends(&scene->fake);
    assert_int_equal(scene->played.how, EXCHANGE_PEER_LEFT);
    assert_null(scene->fake.conn);
}

static void a_complete_answer_still_leaves_when_the_peer_has_ended(void **state) {
    struct scene *scene = *state;
    ask(scene, STR(GET HOST END));
    scene->fake.window = 10;
    exchange_head(scene->played.exchange, 200, NULL, 0);
    exchange_end(scene->played.exchange, NULL, 0);
    turn(scene);
    assert_int_equal(scene->played.how, EXCHANGE_COMPLETE);
    fake_peer_ends(&scene->fake);
    assert_false(scene->fake.reading); /* or the end would be noticed without end */
    fake_allow(&scene->fake, SIZE_MAX);
    assert_text(&scene->fake, "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n");
    assert_null(scene->fake.conn);
}

static void a_peer_that_closes_unread_has_left_when_its_request_is_complete(void **state) {
    struct scene *scene = *state;
    ask(scene, STR(POST HOST "Content-Length: 5\r\n" END "he"));
    conn_peer_left_unread(scene->fake.conn);
    assert_int_equal(scene->played.closed, 0);
    fake_receive(&scene->fake, STR("llo"));
    conn_peer_left_unread(scene->fake.conn);
    assert_int_equal(scene->played.how, EXCHANGE_PEER_LEFT);
}

static void a_write_that_fails_means_the_peer_left(void **state) {
    struct scene *scene = *state;
    ask(scene, STR(GET HOST END));
    scene->fake.broken = true;
    exchange_head(scene->played.exchange, 200, NULL, 0);
    turn(scene);
    assert_int_equal(scene->played.how, EXCHANGE_PEER_LEFT);
}

static void an_aborted_exchange_closes_the_connection_at_once(void **state) {
    struct scene *scene = *state;
    ask(scene, STR(GET HOST END));
    exchange_head(scene->played.exchange, 200, NULL, 0);
    turn(scene);
    buf_clear(&scene->fake.sent);
    say(scene, STR("dropped"));
    exchange_abort(scene->played.exchange, ABORT_INTERNAL);
    say(scene, STR("ignored"));
    assert_int_equal(scene->played.closed, 0);
    turn(scene);
    assert_text(&scene->fake, "");
    assert_int_equal(scene->played.how, EXCHANGE_ABORTED);
    assert_null(scene->fake.conn);
}

static void a_bad_chunk_aborts_and_is_answered(void **state) {
    struct scene *scene = *state;
    ask(scene, STR(POST HOST CHUNKED END "5\r\nhello\r\n"));
    fake_receive(&scene->fake, STR("zz"));
    assert_int_equal(scene->played.how, EXCHANGE_ABORTED);
    assert_text(&scene->fake,
                "HTTP/1.1 400 Bad Request\r\ncontent-type: text/plain; charset=utf-8\r\n"
                "content-length: 12\r\nconnection: close\r\n\r\nBad Request\n");
}

/* --- time --------------------------------------------------------------------------------- */

static void a_silent_peer_is_closed_after_ten_seconds(void **state) {
    struct scene *scene = *state;
    loop_advance(scene->fake.loop, 9999);
    assert_non_null(scene->fake.conn);
    loop_advance(scene->fake.loop, 1);
    assert_null(scene->fake.conn);
    assert_text(&scene->fake, "");
}

static void a_slow_header_is_answered_with_408(void **state) {
    struct scene *scene = *state;
    for (size_t i = 0; i < 9; i++) {
        loop_advance(scene->fake.loop, 1000);
        fake_receive(&scene->fake, str_head(str_skip(STR("GET / HTTP/1.1\r\n"), i), 1));
    }
    loop_advance(scene->fake.loop, 1000);
    char text[16];
    statuses(&scene->fake, text, sizeof(text));
    assert_string_equal(text, "408 ");
    assert_int_equal(scene->played.begun, 0);
}

static void a_slow_body_is_answered_with_408(void **state) {
    struct scene *scene = *state;
    ask(scene, STR(POST HOST "Content-Length: 1000000\r\n" END));
    char bytes[1000] = {0};
    for (size_t i = 0; i < 20; i++) { /* fast enough: a thousand bytes a second */
        fake_receive(&scene->fake, str_of(bytes, sizeof(bytes)));
        exchange_consumed(scene->played.exchange, sizeof(bytes));
        loop_advance(scene->fake.loop, 1000);
    }
    assert_int_equal(scene->played.closed, 0);
    for (size_t i = 0; i < 12; i++) {
        loop_advance(scene->fake.loop, 1000);
        if (!scene->played.closed) fake_receive(&scene->fake, str_of(bytes, 1));
    }
    assert_int_equal(scene->played.how, EXCHANGE_ABORTED);
    char text[16];
    statuses(&scene->fake, text, sizeof(text));
    assert_string_equal(text, "408 ");
}

static void an_idle_connection_is_closed_after_five_minutes(void **state) {
    (void)state;
    struct fake fake;
    struct echo echo = {0};
    fake_open(&fake, echo_start, &echo);
    fake_receive(&fake, STR(GET HOST END));
    loop_advance(fake.loop, 299 * 1000);
    assert_false(fake_is_over(&fake));
    fake_receive(&fake, STR(GET HOST END));
    loop_advance(fake.loop, 299 * 1000);
    assert_false(fake_is_over(&fake));
    loop_advance(fake.loop, 2 * 1000);
    assert_true(fake_is_over(&fake));
    assert_int_equal(echo.closed, 2);
    fake_shut(&fake);
}

static void a_long_exchange_is_not_idle(void **state) {
    struct scene *scene = *state;
    ask(scene, STR(GET HOST END));
    exchange_head(scene->played.exchange, 200, NULL, 0);
    turn(scene);
    loop_advance(scene->fake.loop, 24 * 3600 * 1000);
    assert_int_equal(scene->played.closed, 0);
}

static void stopping_lets_the_exchange_end_and_then_closes(void **state) {
    struct scene *scene = *state;
    ask(scene, STR(GET HOST END NEXT));
    conn_shut_down(scene->fake.conn);
    turn(scene);
    assert_false(scene->fake.ended);
    exchange_head(scene->played.exchange, 200, NULL, 0);
    exchange_end(scene->played.exchange, NULL, 0);
    turn(scene);
    assert_text(&scene->fake,
                "HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
    assert_true(scene->fake.ended);
    assert_int_equal(scene->played.begun, 1);
}

static void stopping_closes_an_idle_connection_at_once(void **state) {
    struct scene *scene = *state;
    conn_shut_down(scene->fake.conn);
    turn(scene);
    assert_true(fake_is_over(&scene->fake));
}

static void an_idle_connection_holds_no_buffers(void **state) {
    (void)state;
    struct fake fake;
    struct echo echo = {0};
    fake_open(&fake, echo_start, &echo);
    fake_receive(&fake, STR(GET HOST));
    fake_receive(&fake, STR(END NEXT));
    assert_int_equal(echo.closed, 2);
    assert_null(fake.conn->unsent.at);
    assert_int_equal(fake.conn->queued_bytes, 0);
    fake_shut(&fake);
}

#define TEST(name) cmocka_unit_test(name)
#define SCENE(name) cmocka_unit_test_setup_teardown(name, open_scene, shut_scene)

static void nor_does_its_home_once_it_has_rested(void **state) {
    (void)state;
    struct fake fake;
    struct echo echo = {0};
    fake_open(&fake, echo_start, &echo);
    size_t before = mem_counted();
    for (int round = 0; round < 2; round++) {
        fake_receive(&fake, STR(GET HOST END));
        assert_non_null(fake.home.gather_bytes);
        buf_append(&fake.home.tls_out, STR("what was sealed for another one"));
        fake.home.spares[1] = (struct buf){.at = mem_alloc(100), .room = 100};
        loop_advance(fake.loop, 5 * 1000);
        assert_null(fake.home.gather_bytes);
        assert_null(fake.home.read_bytes);
        assert_null(fake.home.tls_out.at);
        assert_null(fake.home.spares[1].at);
    }
    assert_int_equal(echo.closed, 2);
    assert_int_equal(mem_counted(), before);
    fake_shut(&fake);
}

/* --- another protocol --------------------------------------------------------------------- */

static struct exchange *upgrading; /* the newest that asked for it */

/* Everything in brackets; what ends in a tilde is not consumed, a dot ends it all. */
static void raw_body(struct exchange *exchange, struct lent lent, void *ctx) {
    struct str bytes = lent_read(lent);
    (void)ctx;
    exchange_send(exchange, STR("<"));
    exchange_send(exchange, bytes);
    exchange_send(exchange, STR(">"));
    if (!str_ends(bytes, STR("~"))) exchange_consumed(exchange, bytes.len);
    if (str_ends(bytes, STR("."))) exchange_end(exchange, NULL, 0);
}

static void raw_begin(struct exchange *exchange, void *ctx) {
    const struct field field = {STR("upgrade"), STR("shout")};
    (void)ctx;
    exchange_upgrade(exchange, &field, 1);
}

static void raw_later(struct exchange *exchange, void *ctx) {
    (void)ctx;
    upgrading = exchange;
}

static const struct exchange_events raw_events = {raw_body, raw_begin, NULL, echo_closed};
static const struct exchange_events raw_later_events = {raw_body, raw_later, NULL, echo_closed};

static void raw_start(struct exchange *exchange, void *ctx) {
    struct echo *echo = ctx;
    echo->begun++;
    exchange_accept(exchange, &raw_events, echo);
}

static void raw_later_start(struct exchange *exchange, void *ctx) {
    struct echo *echo = ctx;
    echo->begun++;
    exchange_accept(exchange, &raw_later_events, echo);
}

#define SHOUT GET HOST "Connection: Upgrade\r\nUpgrade: shout\r\n" END
#define SWITCHED                                                                               \
    "HTTP/1.1 101 Switching Protocols\r\nupgrade: shout\r\nconnection: upgrade\r\n\r\n"

static void after_an_upgrade_bytes_pass_as_they_are(void **state) {
    (void)state;
    struct fake fake;
    struct echo echo = {0};
    fake_open(&fake, raw_start, &echo);
    fake_receive(&fake, STR(SHOUT));
    assert_text(&fake, SWITCHED);
    fake_receive(&fake, STR("GET / HTTP/1.1\r\n\r\n"));
    fake_receive(&fake, STR("\r\n"));
    assert_text(&fake, SWITCHED "<GET / HTTP/1.1\r\n\r\n><\r\n>");
    assert_false(fake_is_over(&fake));
    fake_receive(&fake, STR("bye."));
    assert_text(&fake, SWITCHED "<GET / HTTP/1.1\r\n\r\n><\r\n><bye.>");
    assert_true(fake_is_over(&fake));
    assert_int_equal(echo.closed, 1);
    assert_int_equal(echo.how, EXCHANGE_COMPLETE);
    fake_shut(&fake);
}

static void bytes_that_come_before_the_upgrade_wait_for_it(void **state) {
    (void)state;
    struct fake fake;
    struct echo echo = {0};
    fake_open(&fake, raw_later_start, &echo);
    fake_receive(&fake, STR(SHOUT "early"));
    fake_receive(&fake, STR(" bird"));
    assert_text(&fake, "");
    raw_begin(upgrading, NULL);
    fake_receive(&fake, STR_EMPTY);
    assert_text(&fake, SWITCHED "<early bird>");
    fake_receive(&fake, STR("."));
    assert_text(&fake, SWITCHED "<early bird><.>");
    assert_int_equal(echo.closed, 1);
    fake_shut(&fake);
}

static void an_upgraded_peer_that_is_not_read_is_not_read_further(void **state) {
    (void)state;
    struct fake fake;
    struct echo echo = {0};
    fake_open(&fake, raw_later_start, &echo);
    fake_receive(&fake, STR(SHOUT));
    raw_begin(upgrading, NULL);
    char *bytes = mem_alloc(64 * KIB);
    memset(bytes, '~', 64 * KIB);
    fake_receive(&fake, str_of(bytes, 64 * KIB));
    assert_false(fake.reading);
    exchange_consumed(upgrading, 1);
    assert_true(fake.reading);
    free(bytes);
    fake_peer_ends(&fake);
    assert_int_equal(echo.how, EXCHANGE_PEER_LEFT);
    fake_shut(&fake);
}

static void an_upgraded_connection_has_no_deadline_of_reading(void **state) {
    (void)state;
    struct fake fake;
    struct echo echo = {0};
    fake_open(&fake, raw_start, &echo);
    fake_receive(&fake, STR(SHOUT));
    loop_advance(fake.loop, 1000 * 1000);
    assert_false(fake_is_over(&fake));
    conn_shut_down(fake.conn); /* its owner decides when it ends */
    loop_turn(fake.loop);
    assert_false(fake_is_over(&fake));
    fake_receive(&fake, STR("."));
    assert_true(fake_is_over(&fake));
    fake_shut(&fake);
}

static void only_the_drawn_steps_are_legal(void **state) {
    (void)state;
    static const char *const drawn[] = {
        "head body",   "head answer", "head over",   "body answer", "body over",
        "answer head", "answer raw",  "answer over", "raw over",
    };
    assert_moves(http1_steps, HTTP1_STEP_COUNT, drawn, ARRAY_LEN(drawn));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(after_an_upgrade_bytes_pass_as_they_are),
        cmocka_unit_test(bytes_that_come_before_the_upgrade_wait_for_it),
        cmocka_unit_test(an_upgraded_peer_that_is_not_read_is_not_read_further),
        cmocka_unit_test(an_upgraded_connection_has_no_deadline_of_reading),
        TEST(every_request_of_the_table_gets_its_answer),
        TEST(every_request_reads_the_same_however_it_is_cut),
        TEST(no_prefix_of_a_request_runs_it),
        SCENE(the_parts_of_a_request_can_be_read),
        SCENE(what_comes_during_an_answer_is_kept_however_much_comes_at_once),
        SCENE(a_forgotten_request_reads_as_empty),
        SCENE(the_authority_of_the_target_beats_host),
        SCENE(a_body_that_is_not_consumed_stops_the_reading),
        SCENE(a_hundred_is_sent_when_the_body_is_wanted),
        SCENE(no_hundred_is_sent_before_a_refusal),
        SCENE(a_whole_answer_has_a_length_and_leaves_in_one_write),
        SCENE(a_streamed_answer_is_chunked),
        SCENE(bytes_appended_in_place_leave_too),
        SCENE(http_1_0_reads_until_the_end),
        SCENE(http_1_0_may_stay_when_the_length_is_known),
        SCENE(the_answer_to_head_has_no_body),
        SCENE(no_content_has_no_length),
        SCENE(trailers_reach_only_a_client_that_asks),
        SCENE(control_bytes_in_a_value_cannot_end_the_field),
        SCENE(an_answer_of_another_length_than_announced_ends_the_connection),
        SCENE(an_answer_before_the_end_of_the_request_closes),
        TEST(many_answers_leave_in_one_write),
        SCENE(what_the_peer_does_not_take_waits_and_wakes_the_owner),
        SCENE(the_owner_is_woken_also_when_nothing_waits),
        SCENE(a_peer_that_reads_nothing_for_thirty_seconds_is_cut),
        SCENE(a_peer_that_takes_a_kilobyte_a_second_is_not_cut),
        SCENE(a_peer_that_drips_is_cut_although_it_makes_progress),
        SCENE(a_peer_that_takes_a_little_less_than_the_rate_is_cut_too),
        SCENE(a_short_answer_may_take_its_stretch),
        SCENE(a_stream_that_has_nothing_to_say_is_asked_for_no_rate),
        SCENE(past_its_limit_a_stalled_connection_loses_the_exchange),
        SCENE(what_is_sent_now_leaves_before_the_turn_ends),
        SCENE(what_is_sent_now_stays_behind_what_waits),
        SCENE(what_is_appended_leaves_before_the_turn_ends),
        SCENE(what_is_appended_in_pieces_leaves_together),
        SCENE(what_is_appended_stays_behind_what_waits),
        cmocka_unit_test(what_is_sent_now_reads_the_same_however_little_is_taken),
        SCENE(a_peer_that_takes_part_of_it_and_no_more_is_cut),
        SCENE(a_write_that_fails_now_is_told_later),
        SCENE(an_aborted_exchange_sends_nothing_now),
        SCENE(what_has_another_form_than_a_chunk_waits_for_the_turn),
        SCENE(a_long_piece_sent_now_leaves_too),
        SCENE(a_peer_that_closes_has_left),
        SCENE(a_complete_answer_still_leaves_when_the_peer_has_ended),
        SCENE(a_peer_that_closes_unread_has_left_when_its_request_is_complete),
        SCENE(a_write_that_fails_means_the_peer_left),
        SCENE(an_aborted_exchange_closes_the_connection_at_once),
        SCENE(a_bad_chunk_aborts_and_is_answered),
        SCENE(a_silent_peer_is_closed_after_ten_seconds),
        SCENE(a_slow_header_is_answered_with_408),
        SCENE(a_slow_body_is_answered_with_408),
        TEST(an_idle_connection_is_closed_after_five_minutes),
        SCENE(a_long_exchange_is_not_idle),
        SCENE(stopping_lets_the_exchange_end_and_then_closes),
        SCENE(stopping_closes_an_idle_connection_at_once),
        TEST(an_idle_connection_holds_no_buffers),
        TEST(nor_does_its_home_once_it_has_rested),
        cmocka_unit_test(only_the_drawn_steps_are_legal),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
