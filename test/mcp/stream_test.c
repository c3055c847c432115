#include "mcp/stream.h"

#include "fake/http_fake.h"
#include "fixture.h"
#include "helper/moves.h"

#include <stdio.h>

static void only_the_drawn_moves_are_legal(void **state) {
    (void)state;
    static const char *const drawn[] = {"resting asking", "resting over", "asking open",
                                        "asking resting", "asking over",  "open resting",
                                        "open over"};
    assert_moves(mcp_stream_states, MCP_STREAM_STATE_COUNT, drawn, ARRAY_LEN(drawn));
}

/* --- the stage ---------------------------------------------------------------------------- */

static void assert_get(const struct stage *stage, struct http_call *call, const char *last_id) {
    assert_str(fake_http_request(call)->method, "GET");
    assert_str(fake_http_request(call)->url, ENDPOINT);
    assert_str(fake_http_header(call, "accept"), "text/event-stream");
    assert_str(fake_http_header(call, "content-type"), "");
    assert_str(fake_http_header(call, "mcp-session-id"), "id-1");
    assert_str(fake_http_header(call, "mcp-protocol-version"), "2025-06-18");
    assert_str(fake_http_header(call, "last-event-id"), last_id);
    assert_int_equal(fake_http_loop(call) == stage->loop, true);
}

static void expect_silence(struct stage *stage, uint64_t ms) {
    size_t ever = fake_http_calls_ever(stage->pool);
    loop_advance(stage->loop, ms);
    assert_int_equal(fake_http_calls_ever(stage->pool), ever);
}

/* The GET that comes `ms` later, and not before. */
static struct http_call *get_after(struct stage *stage, uint64_t ms, const char *last_id) {
    if (ms > 1) expect_silence(stage, ms - 1);
    loop_advance(stage->loop, 1);
    struct http_call *call = fake_http_call(stage->pool, fake_http_calls(stage->pool) - 1);
    assert_get(stage, call, last_id);
    return call;
}

/* Greeted after so long, and the GET for what comes outside calls is out. */
static struct http_call *listen_late(struct stage *stage, struct mcp_request *request,
                                     uint64_t greeting_ms) {
    stage_init_with(stage, false, true);
    *request = stage_request("u");
    stage_call(stage, request);
    loop_advance(stage->loop, greeting_ms);
    greet(stage, "id-1");
    loop_advance(stage->loop, 0);
    assert_int_equal(fake_http_calls(stage->pool), 1);
    assert_get(stage, out(stage), "");
    return out(stage);
}

static struct http_call *listen_first(struct stage *stage, struct mcp_request *request) {
    return listen_late(stage, request, 0);
}

static struct http_call *last_call(const struct stage *stage) {
    return fake_http_call(stage->pool, fake_http_calls(stage->pool) - 1);
}

/* greet(), where the stream of another session is open. */
static void accept_greeting(struct stage *stage) {
    assert_method(last_call(stage), "initialize");
    answer_json(last_call(stage), "id-1", "\"result\":{\"protocolVersion\":\"2025-06-18\"}");
    assert_method(last_call(stage), "notifications/initialized");
    accept_note(last_call(stage));
}

#define EVENT(text) "data: {\"jsonrpc\":\"2.0\"," text "}\n\n"
#define CHANGED EVENT("\"method\":\"notifications/tools/list_changed\"")

/* --- what comes outside calls ------------------------------------------------------------- */

static void a_call_waits_until_the_stream_is_open(void **state) {
    (void)state;
    struct stage stage;
    struct mcp_request request;
    struct http_call *get = listen_first(&stage, &request);
    fake_http_head(get, 200, "text/event-stream");
    assert_int_equal(fake_http_calls(stage.pool), 2);
    struct http_call *call = last_call(&stage);
    assert_method(call, "tools/call");
    fake_http_body(get, STR(CHANGED));
    assert_int_equal(stage.changes, 1);
    fake_http_body(get, STR(EVENT("\"id\":\"q\",\"method\":\"ping\"")));
    assert_str(fake_http_request(last_call(&stage))->body,
               "{\"jsonrpc\":\"2.0\",\"id\":\"q\",\"result\":{}}");
    assert_str(fake_http_header(last_call(&stage), "mcp-session-id"), "id-1");
    accept_note(last_call(&stage));
    answer_json(call, "", "\"result\":1");
    stage_said(&stage, false, "1");
    assert_int_equal(fake_http_calls(stage.pool), 1); /* the stream is still open */
    stage_done(&stage);                               /* and ends with the client */
}

static void a_server_without_one_is_asked_once(void **state) {
    (void)state;
    static const unsigned statuses[] = {405, 404, 400, 501, 200, 307};
    for (size_t i = 0; i < ARRAY_LEN(statuses); i++) {
        struct stage stage;
        struct mcp_request request;
        struct http_call *get = listen_first(&stage, &request);
        bool lost = statuses[i] == 404;
        assert_false(fake_http_head(get, statuses[i], "text/plain"));
        assert_method(out(&stage), "tools/call");
        answer_json(out(&stage), "", "\"result\":1");
        stage_said(&stage, false, "1");
        expect_silence(&stage, 100000);
        struct mcp_request other = stage_request("v");
        stage_call(&stage, &other);
        greet(&stage, "id-1");
        loop_advance(stage.loop, 0);
        if (lost) { /* of that session: the next one is asked again */
            assert_get(&stage, out(&stage), "");
            assert_false(fake_http_head(out(&stage), 405, ""));
        }
        assert_method(out(&stage), "tools/call");
        answer_json(out(&stage), "", "\"result\":1");
        stage_done(&stage);
    }
}

/* A question of a call is lost if the server reads the call before the GET. */
static void a_busy_server_is_waited_for_longer(void **state) {
    (void)state;
    static const struct {
        uint64_t greeting_ms, wait_ms;
    } rows[] = {{0, 1000}, {100, 1000}, {101, 1010}, {300, 3000}, {500, 5000}, {14000, 5000}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct stage stage;
        struct mcp_request request;
        listen_late(&stage, &request, rows[i].greeting_ms);
        expect_silence(&stage, rows[i].wait_ms - 1);
        loop_advance(stage.loop, 1);
        assert_method(last_call(&stage), "tools/call");
        answer_json(last_call(&stage), "", "\"result\":1");
        stage_done(&stage);
    }
}

static void a_server_that_says_nothing_is_not_waited_for_long(void **state) {
    (void)state;
    struct stage stage;
    struct mcp_request request;
    struct http_call *get = listen_first(&stage, &request);
    expect_silence(&stage, 999);
    loop_advance(stage.loop, 1);
    assert_method(last_call(&stage), "tools/call");
    answer_json(last_call(&stage), "", "\"result\":1");
    fake_http_head(get, 200, "text/event-stream"); /* it is used when it comes */
    fake_http_body(get, STR(CHANGED));
    assert_int_equal(stage.changes, 1);

    struct mcp_request other = stage_request("v"); /* and not again */
    stage_call(&stage, &other);
    accept_greeting(&stage);
    assert_method(last_call(&stage), "tools/call");
    answer_json(last_call(&stage), "", "\"result\":1");
    stage_done(&stage);
}

static void one_that_ends_is_resumed_after_the_wished_time(void **state) {
    (void)state;
    struct stage stage;
    struct mcp_request request;
    struct http_call *get = listen_first(&stage, &request);
    fake_http_head(get, 200, "text/event-stream");
    answer_json(last_call(&stage), "", "\"result\":1");
    fake_http_body(get, STR("id: e-1\n" CHANGED));
    fake_http_end(get);
    get = get_after(&stage, 1000, "e-1"); /* nothing was wished */
    fake_http_head(get, 200, "text/event-stream");
    fake_http_body(get, STR("retry: 300\nid: e-2\ndata:\n\n"));
    fake_http_fail(get, ERR_UNAVAILABLE, HTTP_READING);
    get = get_after(&stage, 300, "e-2");
    fake_http_head(get, 200, "text/event-stream");
    loop_advance(stage.loop, 10000); /* long enough open, without an event */
    fake_http_end(get);
    get_after(&stage, 300, "e-2");
    stage_done(&stage);
}

static void tries_in_vain_are_further_and_further_apart(void **state) {
    (void)state;
    struct stage stage;
    struct mcp_request request;
    struct http_call *get = listen_first(&stage, &request);
    fake_http_head(get, 200, "text/event-stream");
    answer_json(last_call(&stage), "", "\"result\":1");
    static const uint64_t rests_ms[] = {2000, 4000, 8000, 16000, 30000, 30000};
    for (size_t i = 0; i < ARRAY_LEN(rests_ms); i++) {
        if (i == 0) fake_http_end(get);
        if (i == 1) fake_http_fail(get, ERR_UNAVAILABLE, HTTP_CONNECTING);
        if (i > 1) fake_http_head(get, i % 2 ? 503 : 409, "text/plain");
        get = get_after(&stage, rests_ms[i], "");
    }
    fake_http_head_retry(get, 429, "text/plain", 45000);
    get = get_after(&stage, 45000, "");
    fake_http_head(get, 200, "text/event-stream");
    fake_http_body(get, STR(CHANGED));
    fake_http_end(get);
    get_after(&stage, 1000, ""); /* an event: from the beginning */
    stage_done(&stage);
}

static void a_session_that_is_lost_is_noticed_there(void **state) {
    (void)state;
    struct stage stage;
    struct mcp_request request;
    struct http_call *get = listen_first(&stage, &request);
    fake_http_head(get, 200, "text/event-stream");
    answer_json(last_call(&stage), "", "\"result\":1");
    fake_http_end(get);
    get = get_after(&stage, 2000, "");
    assert_false(fake_http_head(get, 404, "text/plain"));
    assert_int_equal(stage.changes, 1); /* it may be another server now */
    expect_silence(&stage, 100000);
    stage_call(&stage, &request);
    greet(&stage, "id-1");
    loop_advance(stage.loop, 0);
    fake_http_head(out(&stage), 200, "text/event-stream");
    answer_json(last_call(&stage), "", "\"result\":2");
    stage_said(&stage, false, "2");
    stage_done(&stage);
}

static void hear_progress(struct json params, void *ctx) {
    struct stage *stage = ctx;
    buf_append(&stage->said, params.raw);
}

static void progress_of_a_call_may_come_there(void **state) {
    (void)state;
    struct stage stage;
    struct mcp_request request;
    struct http_call *get = listen_first(&stage, &request);
    fake_http_head(get, 200, "text/event-stream");
    answer_json(last_call(&stage), "", "\"result\":1");
    request.progress = hear_progress;
    struct mcp_call *call = stage_call(&stage, &request);
    fake_http_body(get, STR(EVENT("\"method\":\"notifications/progress\",\"params\":{"
                                  "\"progressToken\":99,\"progress\":1}")));
    fake_http_body(get, STR(EVENT("\"method\":\"notifications/progress\",\"params\":{"
                                  "\"progressToken\":3,\"progress\":1}")));
    assert_str(buf_str(&stage.said), "{\"progressToken\":3,\"progress\":1}");
    mcp_call_cancel(call);
    accept_note(last_call(&stage));
    stage_done(&stage);
}

/* --- the stream of a call ----------------------------------------------------------------- */

static struct http_call *cut_off(struct stage *stage, struct mcp_request *request,
                                 const char *events) {
    struct http_call *get = listen_first(stage, request);
    assert_false(fake_http_head(get, 405, ""));
    struct http_call *call = out(stage);
    fake_http_head(call, 200, "text/event-stream");
    fake_http_body(call, str_from(events));
    return call;
}

#define PRIMED "id: p-1\nretry: 500\ndata:\n\n"
#define ANSWER "id: p-2\n" EVENT("\"id\":2,\"result\":{\"a\":1}")

static void an_answer_that_was_cut_off_is_fetched(void **state) {
    (void)state;
    for (int broken = 0; broken < 2; broken++) {
        struct stage stage;
        struct mcp_request request;
        struct http_call *call = cut_off(&stage, &request, PRIMED);
        if (broken) {
            fake_http_fail(call, ERR_UNAVAILABLE, HTTP_READING);
        } else {
            fake_http_end(call);
        }
        assert_int_equal(stage.answers, 0);
        call = get_after(&stage, 500, "p-1");
        assert_str(fake_http_header(call, "authorization"), "Bearer u/w/5");
        fake_http_head(call, 200, "text/event-stream");
        fake_http_body(call, STR(EVENT("\"id\":7,\"method\":\"ping\"")));
        assert_str(fake_http_request(last_call(&stage))->body,
                   "{\"jsonrpc\":\"2.0\",\"id\":7,\"result\":{}}");
        accept_note(last_call(&stage));
        assert_false(fake_http_body(call, STR(ANSWER "junk")));
        stage_said(&stage, false, "{\"a\":1}");
        assert_int_equal(fake_http_calls(stage.pool), 0);
        stage_done(&stage);
    }
}

static void it_is_fetched_in_as_many_pieces_as_it_takes(void **state) {
    (void)state;
    struct stage stage;
    struct mcp_request request;
    fake_http_end(cut_off(&stage, &request, PRIMED));
    for (int i = 0; i < 20; i++) {
        char last[16], next[64];
        snprintf(last, sizeof(last), "p-%d", i + 1);
        snprintf(next, sizeof(next), "id: p-%d\ndata:\n\n", i + 2);
        struct http_call *get = get_after(&stage, 500, last);
        fake_http_head(get, 200, "text/event-stream");
        fake_http_body(get, str_from(next));
        fake_http_end(get);
    }
    struct http_call *get = get_after(&stage, 500, "p-21");
    fake_http_head(get, 200, "text/event-stream");
    fake_http_body(get, STR(EVENT("\"id\":2,\"error\":{\"code\":-32602,\"message\":\"no\"}")));
    stage_said(&stage, true, "the MCP server says: no (-32602)");
    assert_int_equal(stage.code, ERR_INVALID_ARGUMENT); /* it is known what became of it */
    stage_done(&stage);
}

static void what_cannot_be_resumed_is_unknown(void **state) {
    (void)state;
    static const struct {
        const char *events;
        unsigned status; /* of the GET; 0: none is sent */
        const char *why;
    } cases[] = {
        {": no id\n\n", 0, "the MCP server ended its stream before the answer came"},
        {PRIMED, 405, "the MCP server answered a GET of its stream with 405"},
        {PRIMED, 404, "the MCP server answered a GET of its stream with 404"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct stage stage;
        struct mcp_request request;
        fake_http_end(cut_off(&stage, &request, cases[i].events));
        if (cases[i].status)
            assert_false(fake_http_head(get_after(&stage, 500, "p-1"), cases[i].status, ""));
        stage_said(&stage, true, cases[i].why);
        assert_int_equal(stage.code, ERR_EFFECT_UNKNOWN);
        assert_int_equal(fake_http_calls(stage.pool), 0);
        stage_done(&stage);
    }
}

static void it_is_tried_a_few_times_and_in_the_time_of_the_call(void **state) {
    (void)state;
    struct stage stage;
    struct mcp_request request;
    fake_http_end(cut_off(&stage, &request, PRIMED));
    for (uint64_t rest_ms = 500; rest_ms <= 8000; rest_ms *= 2)
        fake_http_fail(get_after(&stage, rest_ms, "p-1"), ERR_UNAVAILABLE, HTTP_CONNECTING);
    stage_said(&stage, true, "the MCP server did not resume its stream in 5 tries");
    assert_int_equal(stage.code, ERR_EFFECT_UNKNOWN);
    stage_done(&stage);

    struct http_call *call = cut_off(&stage, &request, "id: p-1\nretry: 3600000\ndata:\n\n");
    loop_advance(stage.loop, 1000);
    fake_http_end(call);
    expect_silence(&stage, 58999); /* it has 60 s, and 1 s is gone */
    assert_int_equal(stage.answers, 0);
    loop_advance(stage.loop, 1);
    stage_said(&stage, true, "the MCP server did not answer in time");
    stage_done(&stage);

    call = cut_off(&stage, &request, PRIMED);
    loop_advance(stage.loop, 1000);
    fake_http_end(call);
    call = get_after(&stage, 500, "p-1");
    assert_int_equal(fake_http_request(call)->total_ms, 58500);
    assert_false(fake_http_head(call, 405, ""));
    stage_done(&stage);
}

static void what_may_be_repeated_is_sent_once_more_then(void **state) {
    (void)state;
    struct stage stage;
    struct mcp_request request;
    struct http_call *get = listen_first(&stage, &request);
    assert_false(fake_http_head(get, 405, ""));
    answer_json(out(&stage), "", "\"result\":1");
    request.repeatable = true;
    stage_call(&stage, &request);
    fake_http_head(out(&stage), 200, "text/event-stream");
    fake_http_body(out(&stage), STR(PRIMED));
    fake_http_end(out(&stage));
    assert_false(fake_http_head(get_after(&stage, 500, "p-1"), 405, ""));
    assert_method(out(&stage), "tools/call");
    answer_json(out(&stage), "", "\"result\":2");
    stage_said(&stage, false, "2");
    stage_done(&stage);
}

static void a_call_can_be_cancelled_while_it_is_resumed(void **state) {
    (void)state;
    for (int moment = 0; moment < 3; moment++) {
        struct stage stage;
        struct mcp_request request;
        struct http_call *get = listen_first(&stage, &request);
        assert_false(fake_http_head(get, 405, ""));
        answer_json(out(&stage), "", "\"result\":1");
        struct mcp_call *call = stage_call(&stage, &request);
        fake_http_head(out(&stage), 200, "text/event-stream");
        fake_http_body(out(&stage), STR(PRIMED));
        fake_http_end(out(&stage));
        if (moment > 0) get = get_after(&stage, 500, "p-1");
        if (moment > 1) fake_http_head(get, 200, "text/event-stream");
        mcp_call_cancel(call);
        assert_int_equal(fake_http_calls(stage.pool), 1);
        assert_method(out(&stage), "notifications/cancelled");
        accept_note(out(&stage));
        loop_advance(stage.loop, 100000);
        assert_int_equal(fake_http_calls(stage.pool), 0);
        assert_int_equal(stage.answers, 0);
        stage_done(&stage);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_the_drawn_moves_are_legal),
        cmocka_unit_test(a_call_waits_until_the_stream_is_open),
        cmocka_unit_test(a_server_without_one_is_asked_once),
        cmocka_unit_test(a_busy_server_is_waited_for_longer),
        cmocka_unit_test(a_server_that_says_nothing_is_not_waited_for_long),
        cmocka_unit_test(one_that_ends_is_resumed_after_the_wished_time),
        cmocka_unit_test(tries_in_vain_are_further_and_further_apart),
        cmocka_unit_test(a_session_that_is_lost_is_noticed_there),
        cmocka_unit_test(progress_of_a_call_may_come_there),
        cmocka_unit_test(an_answer_that_was_cut_off_is_fetched),
        cmocka_unit_test(it_is_fetched_in_as_many_pieces_as_it_takes),
        cmocka_unit_test(what_cannot_be_resumed_is_unknown),
        cmocka_unit_test(it_is_tried_a_few_times_and_in_the_time_of_the_call),
        cmocka_unit_test(what_may_be_repeated_is_sent_once_more_then),
        cmocka_unit_test(a_call_can_be_cancelled_while_it_is_resumed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
