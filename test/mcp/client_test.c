#include "mcp/client.h"

#include "fake/http_fake.h"
#include "fixture.h"
#include "helper/moves.h"

#include <stdio.h>

static void only_the_drawn_moves_are_legal(void **state) {
    (void)state;
    static const char *const drawn[] = {
        "fresh probing",   "fresh greeting",    "fresh ready",      "probing greeting",
        "probing ready",   "probing fresh",     "greeting telling", "greeting fresh",
        "telling ready",   "telling listening", "telling fresh",    "listening ready",
        "listening fresh", "ready fresh"};
    assert_moves(mcp_session_states, MCP_SESSION_STATE_COUNT, drawn, ARRAY_LEN(drawn));
}

static void a_session_is_opened_before_the_first_call(void **state) {
    struct stage *stage = *state;
    struct mcp_request request = stage_request("u");
    stage_call(stage, &request);
    struct http_call *call = out(stage);
    assert_str(fake_http_request(call)->method, "POST");
    assert_str(fake_http_request(call)->url, ENDPOINT);
    assert_str(fake_http_request(call)->body,
               "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"initialize\",\"params\":{"
               "\"protocolVersion\":\"2025-11-25\",\"capabilities\":{},\"clientInfo\":{"
               "\"name\":\"weir\",\"version\":\"0.1.0\"}}}");
    assert_str(fake_http_header(call, "Content-Type"), "application/json");
    assert_str(fake_http_header(call, "Accept"), "application/json, text/event-stream");
    assert_str(fake_http_header(call, "Authorization"), "Bearer u/w/1");
    assert_str(fake_http_header(call, "X-Conversation-Id"), "s-1");
    assert_str(fake_http_header(call, "Mcp-Protocol-Version"), "");
    answer_json(call, "id-7", "\"result\":{\"protocolVersion\":\"2025-11-25\"}");
    call = out(stage);
    assert_str(fake_http_request(call)->body,
               "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}");
    assert_str(fake_http_header(call, "Authorization"), "Bearer u/w/2");
    assert_str(fake_http_header(call, "Mcp-Session-Id"), "id-7");
    accept_note(call);
    call = out(stage);
    assert_str(
        fake_http_request(call)->body,
        "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/call\",\"params\":{\"name\":\"t\"}}");
    assert_str(fake_http_header(call, "Authorization"), "Bearer u/w/3");
    assert_str(fake_http_header(call, "Mcp-Session-Id"), "id-7");
    assert_str(fake_http_header(call, "Mcp-Protocol-Version"), "2025-11-25");
    assert_str(fake_http_header(call, "X-Conversation-Id"), "s-1");
    answer_json(call, "", "\"result\":{\"a\":1}");
    stage_said(stage, false, "{\"a\":1}");
    stage_call(stage, &request); /* the session is there */
    assert_method(out(stage), "tools/call");
    answer_json(out(stage), "", "\"result\":2");
    stage_said(stage, false, "2");
}

static void each_user_has_a_session_of_its_own(void **state) {
    struct stage *stage = *state;
    struct mcp_request first = stage_request("u"), second = stage_request("v");
    stage_call(stage, &first);
    greet(stage, "id-u");
    answer_json(out(stage), "", "\"result\":1");
    stage_call(stage, &second);
    greet(stage, "id-v");
    assert_str(fake_http_header(out(stage), "Mcp-Session-Id"), "id-v");
    assert_true(str_starts(fake_http_header(out(stage), "Authorization"), STR("Bearer v/w/")));
    answer_json(out(stage), "", "\"result\":1");
}

static void every_version_that_we_know_is_agreed_to(void **state) {
    (void)state;
    static const char *const known[] = {"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"};
    for (size_t i = 0; i <= ARRAY_LEN(known); i++) {
        struct stage stage;
        struct buf member;
        stage_init(&stage);
        buf_init(&member, KIB);
        buf_printf(&member, "\"result\":{\"protocolVersion\":\"%s\"}",
                   i < ARRAY_LEN(known) ? known[i] : "1999-01-01");
        buf_append_byte(&member, '\0');
        struct mcp_request request = stage_request("u");
        stage_call(&stage, &request);
        answer_json(out(&stage), "", member.at);
        if (i < ARRAY_LEN(known)) {
            assert_str(fake_http_header(out(&stage), "Mcp-Protocol-Version"), known[i]);
            accept_note(out(&stage));
            answer_json(out(&stage), "", "\"result\":1");
            stage_said(&stage, false, "1");
        } else {
            stage_said(&stage, true,
                       "the MCP server speaks no protocol version that we know; ours are "
                       "2025-11-25 and 2026-07-28");
        }
        buf_done(&member);
        stage_done(&stage);
    }
}

static void calls_that_wait_for_a_greeting_go_and_fail_together(void **state) {
    (void)state;
    struct stage stage;
    stage_init(&stage);
    struct mcp_request request = stage_request("u");
    stage_call(&stage, &request);
    stage_call(&stage, &request);
    assert_int_equal(fake_http_calls(stage.pool), 1);
    greet(&stage, "");
    assert_int_equal(fake_http_calls(stage.pool), 2);
    answer_json(out(&stage), "", "\"result\":1");
    answer_json(out(&stage), "", "\"result\":2");
    assert_int_equal(stage.answers, 2);
    stage_done(&stage);

    stage_init(&stage);
    stage_call(&stage, &request);
    stage_call(&stage, &request);
    fake_http_fail(out(&stage), ERR_UNAVAILABLE, HTTP_CONNECTING);
    assert_int_equal(stage.answers, 2);
    assert_true(stage.failed);
    stage_call(&stage, &request); /* and it is tried anew */
    greet(&stage, "");
    answer_json(out(&stage), "", "\"result\":1");
    stage_said(&stage, false, "1");
    stage_done(&stage);
}

#define STREAM                                                                                 \
    ": hi\n\nevent: message\ndata: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\"" \
    ",\"params\":{}}\n\nevent: other\ndata: x\n\ndata: {\"jsonrpc\":\"2.0\",\n"                \
    "data: \"id\":2,\"result\":{\"a\":[1]}}\n\ndata: junk\n\n"

static void an_answer_in_a_stream_reads_the_same_however_it_is_cut(void **state) {
    (void)state;
    struct str stream = STR(STREAM);
    for (size_t cut = 0; cut <= stream.len; cut++) {
        struct stage stage;
        stage_init(&stage);
        struct mcp_request request = stage_request("u");
        stage_call(&stage, &request);
        greet(&stage, "");
        struct http_call *call = out(&stage);
        bool alive = fake_http_head(call, 200, "Text/Event-Stream; x=y");
        if (alive && cut) alive = fake_http_body(call, str_head(stream, cut));
        if (alive && cut < stream.len) alive = fake_http_body(call, str_skip(stream, cut));
        assert_false(alive); /* bytes after the answer are not waited for */
        stage_said(&stage, false, "{\"a\":[1]}");
        stage_done(&stage);
    }
}

static void a_stream_that_ends_early_has_no_answer(void **state) {
    (void)state;
    struct str stream = STR(STREAM);
    size_t answer = str_find(stream, STR("\n\ndata: junk")) + 2;
    for (size_t len = 0; len < answer; len++) {
        struct stage stage;
        stage_init(&stage);
        struct mcp_request request = stage_request("u");
        stage_call(&stage, &request);
        greet(&stage, "");
        struct http_call *call = out(&stage);
        fake_http_head(call, 200, "text/event-stream");
        if (len) assert_true(fake_http_body(call, str_head(stream, len)));
        fake_http_end(call);
        stage_said(&stage, true, "the MCP server ended its stream before the answer came");
        stage_done(&stage);
    }
}

static void what_a_server_asks_meanwhile_is_answered(void **state) {
    struct stage *stage = *state;
    struct mcp_request request = stage_request("u");
    stage_call(stage, &request);
    greet(stage, "id-1");
    struct http_call *call = out(stage);
    fake_http_head(call, 200, "text/event-stream");
    fake_http_body(call,
                   STR("data: {\"jsonrpc\":\"2.0\",\"id\":\"p\",\"method\":\"ping\"}\n\n"
                       "data: {\"jsonrpc\":\"2.0\",\"id\":9,\"method\":\"roots/list\"}\n\n"
                       "data: {\"jsonrpc\":\"2.0\",\"id\":10,\"method\":\"elicitation/create\","
                       "\"params\":{\"message\":\"?\",\"requestedSchema\":{}}}\n\n"
                       "data: {\"jsonrpc\":\"2.0\",\"id\":11,\"method\":"
                       "\"sampling/createMessage\",\"params\":{}}\n\n"
                       "data: {\"jsonrpc\":\"2.0\",\"id\":2,\"result\":1}\n\n"));
    stage_said(stage, false, "1");
    assert_int_equal(fake_http_calls(stage->pool), 4);
    assert_str(fake_http_request(out(stage))->body,
               "{\"jsonrpc\":\"2.0\",\"id\":\"p\",\"result\":{}}");
    assert_str(fake_http_header(out(stage), "Mcp-Session-Id"), "id-1");
    accept_note(out(stage));
    assert_str(fake_http_request(out(stage))->body,
               "{\"jsonrpc\":\"2.0\",\"id\":9,\"error\":{\"code\":-32601,\"message\":\"this "
               "client does not do that\"}}");
    accept_note(out(stage));
    assert_str(fake_http_request(out(stage))->body,
               "{\"jsonrpc\":\"2.0\",\"id\":10,\"result\":{\"action\":\"cancel\"}}");
    accept_note(out(stage));
    assert_str(fake_http_request(out(stage))->body,
               "{\"jsonrpc\":\"2.0\",\"id\":11,\"error\":{\"code\":-32601,\"message\":\"this "
               "client does not do that\"}}");
    accept_note(out(stage));
}

static void a_batch_is_looked_through_for_the_answer(void **state) {
    struct stage *stage = *state;
    struct mcp_request request = stage_request("u");
    stage_call(stage, &request);
    greet(stage, "");
    struct http_call *call = out(stage);
    fake_http_head(call, 200, "application/json");
    fake_http_body(call, STR("[{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":0},"
                             "{\"jsonrpc\":\"2.0\",\"id\":2,\"result\":1}]"));
    fake_http_end(call);
    stage_said(stage, false, "1");
}

static void a_malformed_answer_fails_the_call_with_its_reason(void **state) {
    (void)state;
    static const struct {
        unsigned status;
        const char *type, *body, *why;
    } cases[] = {
        {200, "application/json", "",
         "the MCP server answered with something that is not an answer"},
        {200, "application/json", "{",
         "the MCP server answered with something that is not an answer"},
        {200, "text/html", "<p>hi",
         "the MCP server answered with something that is not an answer"},
        {200, "application/json", "{\"jsonrpc\":\"2.0\",\"id\":99,\"result\":1}",
         "the MCP server answered with something that is not an answer"},
        {200, "application/json",
         "{\"jsonrpc\":\"2.0\",\"id\":2,\"error\":{\"code\":-32602,\"message\":\"unknown "
         "tool\"}}",
         "the MCP server says: unknown tool (-32602)"},
        {200, "application/json",
         "{\"jsonrpc\":\"2.0\",\"id\":null,\"error\":{\"code\":-32700,\"message\":\"no\"}}",
         "the MCP server says: no (-32700)"},
        {401, "text/plain", "invalid token\n", "the MCP server answered 401: invalid token"},
        {404, "text/plain", "", "the MCP server answered 404"},
        {500, "text/plain", "a\x01", "the MCP server answered 500: a"},
        {307, "", "", "the MCP server answered 307"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct stage stage;
        stage_init(&stage);
        struct mcp_request request = stage_request("u");
        stage_call(&stage, &request);
        greet(&stage, "");
        struct http_call *call = out(&stage);
        fake_http_head(call, cases[i].status, cases[i].type);
        if (*cases[i].body) fake_http_body(call, str_from(cases[i].body));
        fake_http_end(call);
        stage_said(&stage, true, cases[i].why);
        stage_done(&stage);
    }
}

/* Over HTTP, as a document. What the server cut in two becomes U+FFFD. */
static void half_a_surrogate_pair_is_no_reason_to_lose_an_answer(void **state) {
    struct stage *stage = *state;
    struct mcp_request request = stage_request("u");
    stage_call(stage, &request);
    greet(stage, "");
    answer_json(out(stage), "", "\"result\":{\"a\":\"x\\ud83d\"}");
    stage_said(stage, false, "{\"a\":\"x\\ufffd\"}");
}

/* Some servers put a signed token there. */
static void a_long_session_id_is_sent_back_whole_or_refused_by_name(void **state) {
    (void)state;
    for (size_t len = 8 * KIB - 1; len <= 8 * KIB + 1; len++) {
        struct stage stage;
        char *id = mem_alloc(len + 1);
        memset(id, 's', len);
        id[len] = '\0';
        stage_init(&stage);
        struct mcp_request request = stage_request("u");
        stage_call(&stage, &request);
        if (len <= 8 * KIB) {
            greet(&stage, id);
            assert_str(fake_http_header(out(&stage), "Mcp-Session-Id"), id);
            answer_json(out(&stage), "", "\"result\":1");
            stage_said(&stage, false, "1");
        } else {
            answer_json(out(&stage), id, "\"result\":{\"protocolVersion\":\"2025-11-25\"}");
            stage_said(&stage, true,
                       "the MCP server gave its session an id of more than 8 KiB");
        }
        stage_done(&stage);
        free(id);
    }
}

static void an_answer_may_follow_many_notifications(void **state) {
    struct stage *stage = *state;
    struct mcp_request request = stage_request("u");
    struct buf note;
    buf_init(&note, 2 * KIB);
    buf_append(&note, STR("data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\","
                          "\"params\":{\"data\":\""));
    for (size_t i = 0; i < KIB; i++) buf_append_byte(&note, 'x');
    buf_append(&note, STR("\"}}\n\n"));
    stage_call(stage, &request);
    greet(stage, "");
    struct http_call *call = out(stage);
    assert_true(fake_http_request(call)->body_max_bytes >= 32 * MIB);
    assert_true(fake_http_head(call, 200, "text/event-stream"));
    for (size_t i = 0; i < 6000; i++) assert_true(fake_http_body(call, buf_str(&note)));
    fake_http_body(call, STR("data: {\"jsonrpc\":\"2.0\",\"id\":2,\"result\":7}\n\n"));
    stage_said(stage, false, "7");
    buf_done(&note);
}

/* Where it is no stream, the answer is all there is. */
static void a_document_of_more_than_4_mib_is_refused(void **state) {
    struct stage *stage = *state;
    struct mcp_request request = stage_request("u");
    char *part = mem_alloc(MIB);
    memset(part, ' ', MIB);
    stage_call(stage, &request);
    greet(stage, "");
    struct http_call *call = out(stage);
    assert_true(fake_http_head(call, 200, "application/json"));
    for (size_t i = 0; i < 4; i++) assert_true(fake_http_body(call, str_of(part, MIB)));
    fake_http_body(call, STR(" "));
    stage_said(stage, true, "the MCP server answered with more than 4 MiB");
    free(part);
}

static void a_session_that_is_lost_is_opened_anew_once(void **state) {
    struct stage *stage = *state;
    struct mcp_request request = stage_request("u");
    stage_call(stage, &request);
    greet(stage, "id-1");
    fake_http_head(out(stage), 404, "text/plain");
    greet(stage, "id-2");
    assert_str(fake_http_header(out(stage), "Mcp-Session-Id"), "id-2");
    answer_json(out(stage), "", "\"result\":1");
    stage_said(stage, false, "1");

    stage_call(stage, &request);
    fake_http_head(out(stage), 404, "text/plain");
    greet(stage, "id-3");
    fake_http_head(out(stage), 404, "text/plain");
    stage_said(stage, true, "the MCP server keeps losing its session");
}

static void two_calls_that_lose_one_session_open_one(void **state) {
    struct stage *stage = *state;
    struct mcp_request request = stage_request("u");
    stage_call(stage, &request);
    stage_call(stage, &request);
    greet(stage, "id-1");
    fake_http_head(out(stage), 404, "text/plain");
    fake_http_head(out(stage), 404, "text/plain");
    assert_int_equal(fake_http_calls(stage->pool), 1);
    greet(stage, "id-2");
    assert_int_equal(fake_http_calls(stage->pool), 2);
    answer_json(out(stage), "", "\"result\":1");
    answer_json(out(stage), "", "\"result\":1");
    assert_int_equal(stage->answers, 2);
    assert_false(stage->failed);
}

static void a_lost_connection_is_mended_once_where_it_does_no_harm(void **state) {
    (void)state;
    static const struct {
        bool repeatable;
        enum err_code code;
        enum http_stage stage;
        bool again;
        const char *why;
    } cases[] = {
        {false, ERR_UNAVAILABLE, HTTP_CONNECTING, true, "the MCP server cannot be reached"},
        {false, ERR_UNAVAILABLE, HTTP_WAITING, false, "the MCP server closed the connection"},
        {true, ERR_UNAVAILABLE, HTTP_WAITING, true, "the MCP server closed the connection"},
        {true, ERR_DEADLINE_EXCEEDED, HTTP_WAITING, false,
         "the MCP server did not answer in time"},
        {true, ERR_TOO_LARGE, HTTP_WAITING, false,
         "the MCP server answered with more than 4 MiB"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct stage stage;
        stage_init(&stage);
        struct mcp_request request = stage_request("u");
        request.repeatable = cases[i].repeatable;
        stage_call(&stage, &request);
        greet(&stage, "id");
        fake_http_fail(out(&stage), cases[i].code, cases[i].stage);
        assert_int_equal(fake_http_calls(stage.pool), cases[i].again ? 1 : 0);
        if (cases[i].again) {
            assert_method(out(&stage), "tools/call");
            fake_http_fail(out(&stage), cases[i].code, cases[i].stage);
        }
        stage_said(&stage, true, cases[i].why);
        stage_done(&stage);
    }
}

/* --- what must not be done twice ---------------------------------------------------------- */

static void only_what_may_be_repeated_shares_a_connection(void **state) {
    (void)state;
    for (int repeatable = 0; repeatable < 2; repeatable++) {
        struct stage stage;
        stage_init(&stage);
        struct mcp_request request = stage_request("u");
        request.repeatable = repeatable;
        stage_call(&stage, &request);
        assert_false(fake_http_request(out(&stage))->once); /* the greeting */
        greet(&stage, "id");
        assert_int_equal(fake_http_request(out(&stage))->once, !repeatable);
        fake_http_fail(out(&stage), ERR_UNAVAILABLE, HTTP_CONNECTING);
        assert_int_equal(fake_http_request(out(&stage))->once, !repeatable); /* sent again */
        answer_json(out(&stage), "", "\"result\":1");
        stage_done(&stage);
    }
}

static void break_while_connecting(struct http_call *call) {
    fake_http_fail(call, ERR_UNAVAILABLE, HTTP_CONNECTING);
}

static void break_while_waiting(struct http_call *call) {
    fake_http_fail(call, ERR_UNAVAILABLE, HTTP_WAITING);
}

static void take_too_long(struct http_call *call) {
    fake_http_fail(call, ERR_DEADLINE_EXCEEDED, HTTP_WAITING);
}

static void break_while_reading(struct http_call *call) {
    if (fake_http_head(call, 200, "application/json"))
        fake_http_fail(call, ERR_UNAVAILABLE, HTTP_READING);
}

static void say_too_much(struct http_call *call) {
    if (fake_http_head(call, 200, "application/json"))
        fake_http_fail(call, ERR_TOO_LARGE, HTTP_READING);
}

static void end_the_stream(struct http_call *call) {
    if (fake_http_head(call, 200, "text/event-stream")) fake_http_end(call);
}

static void say_no_answer(struct http_call *call) {
    if (fake_http_head(call, 200, "text/html")) fake_http_end(call);
}

static void say_500(struct http_call *call) {
    if (fake_http_head(call, 500, "")) fake_http_end(call);
}

static void say_502(struct http_call *call) {
    if (fake_http_head(call, 502, "")) fake_http_end(call);
}

static void say_503(struct http_call *call) {
    if (fake_http_head(call, 503, "")) fake_http_end(call);
}

static void say_400(struct http_call *call) {
    if (fake_http_head(call, 400, "")) fake_http_end(call);
}

static void say_429(struct http_call *call) {
    if (fake_http_head(call, 429, "")) fake_http_end(call);
}

static void refuse_it(struct http_call *call) {
    answer_json(call, "", "\"error\":{\"code\":-32602,\"message\":\"no\"}");
}

static const struct {
    const char *name;
    void (*ends)(struct http_call *call);
    enum err_code code; /* of what may be repeated, or was not done */
    bool unknown;       /* whether the other kind may have been done */
} breaks[] = {
    {"while connecting", break_while_connecting, ERR_UNAVAILABLE, false},
    {"while waiting", break_while_waiting, ERR_UNAVAILABLE, true},
    {"too late", take_too_long, ERR_DEADLINE_EXCEEDED, true},
    {"while reading", break_while_reading, ERR_UNAVAILABLE, true},
    {"too much", say_too_much, ERR_TOO_LARGE, true},
    {"a stream that ends", end_the_stream, ERR_UNAVAILABLE, true},
    {"no answer", say_no_answer, ERR_UNAVAILABLE, true},
    {"500", say_500, ERR_UNAVAILABLE, true},
    {"502", say_502, ERR_UNAVAILABLE, true},
    {"503", say_503, ERR_UNAVAILABLE, false},
    {"400", say_400, ERR_UNAVAILABLE, false},
    {"429", say_429, ERR_RESOURCE_EXHAUSTED, false},
    {"a refusal", refuse_it, ERR_INVALID_ARGUMENT, false},
};

static void what_may_have_been_done_is_unknown_unless_it_may_be_repeated(void **state) {
    (void)state;
    for (size_t i = 0; i < 2 * ARRAY_LEN(breaks); i++) {
        struct stage stage;
        bool repeatable = i % 2, unknown = breaks[i / 2].unknown && !repeatable;
        stage_init(&stage);
        struct mcp_request request = stage_request("u");
        request.repeatable = repeatable;
        stage_call(&stage, &request);
        greet(&stage, "id");
        breaks[i / 2].ends(out(&stage));
        if (stage.answers == 0) breaks[i / 2].ends(out(&stage)); /* it was sent again */
        assert_int_equal(stage.answers, 1);
        assert_true(stage.failed);
        if (stage.code != (unknown ? ERR_EFFECT_UNKNOWN : breaks[i / 2].code))
            fail_msg("%s, %s: %s", breaks[i / 2].name, repeatable ? "repeatable" : "once",
                     err_kinds[stage.code].name);
        stage_done(&stage);
    }
}

static void a_call_can_be_cancelled_at_each_moment(void **state) {
    (void)state;
    for (int moment = 0; moment < 6; moment++) {
        struct stage stage;
        stage_init(&stage);
        struct mcp_request request = stage_request("u");
        struct mcp_call *call = stage_call(&stage, &request);
        if (moment == 1)
            answer_json(out(&stage), "", "\"result\":{\"protocolVersion\":\"2025-11-25\"}");
        if (moment > 1) greet(&stage, "id-1");
        if (moment > 2) fake_http_head(out(&stage), 200, "text/event-stream");
        if (moment > 3) fake_http_body(out(&stage), STR("data: x\n\nda"));
        if (moment > 4) fake_http_body(out(&stage), STR("ta: {"));
        mcp_call_cancel(call);
        if (moment > 1) { /* the server may have begun: it is notified */
            assert_int_equal(fake_http_calls(stage.pool), 1);
            assert_str(fake_http_request(out(&stage))->body,
                       "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/cancelled\",\"params\":"
                       "{\"requestId\":2,\"reason\":\"the turn was cancelled\"}}");
            assert_str(fake_http_header(out(&stage), "Mcp-Session-Id"), "id-1");
            if (moment > 2) accept_note(out(&stage)); /* else the client goes with it out */
        }
        loop_turn(stage.loop);
        assert_int_equal(stage.answers, 0);
        stage_done(&stage);
    }
}

static void a_call_that_cannot_be_authorized_is_not_sent(void **state) {
    struct stage *stage = *state;
    struct mcp_request request = stage_request("u");
    stage->refuses = true;
    stage_call(stage, &request);
    assert_int_equal(fake_http_calls_ever(stage->pool), 0);
    loop_turn(stage->loop);
    stage_said(stage, true, "no token");

    stage->refuses = false;
    stage_call(stage, &request);
    greet(stage, "");
    answer_json(out(stage), "", "\"result\":1");
    stage->refuses = true;
    stage_call(stage, &request);
    loop_turn(stage->loop);
    stage_said(stage, true, "no token");
    stage_call(stage, &request);
    mcp_call_cancel(stage_call(stage, &request));
    loop_turn(stage->loop);
    assert_int_equal(stage->answers, 1);
}

/* A server that is not told who calls acts for somebody else. */
static void a_caller_whose_id_is_no_header_is_not_served(void **state) {
    struct stage *stage = *state;
    static const struct str ids[] = {STR_INIT("j\xC3\xB6rg"), STR_INIT("a\r\nevil: 1"),
                                     STR_INIT("tab\tb"),      STR_INIT("a\x7F"),
                                     STR_INIT("bob\0by"),     STR_INIT(" bob"),
                                     STR_INIT("bob ")};
    for (size_t i = 0; i < 2 * ARRAY_LEN(ids); i++) {
        struct mcp_request request = stage_request("u");
        struct mcp_caller *caller = &request.caller;
        *(i % 2 ? &caller->user : &caller->conversation) = ids[i / 2];
        stage_call(stage, &request);
        loop_turn(stage->loop);
        stage_said(
            stage, true,
            i % 2 ? "the call was not sent: the id of the user cannot stand in the header "
                    "'x-user-id', which carries printable ASCII without a space at either "
                    "end"
                  : "the call was not sent: the id of the conversation cannot stand in the "
                    "header 'x-conversation-id', which carries printable ASCII without a "
                    "space at either end");
        assert_int_equal(stage->code, ERR_INVALID_ARGUMENT);
        assert_int_equal(fake_http_calls_ever(stage->pool), 0);
    }
}

static void such_a_call_does_not_fail_those_that_wait_beside_it(void **state) {
    struct stage *stage = *state;
    struct mcp_request request = stage_request("two words"), wrong = request;
    wrong.caller.conversation = STR("\xC3\xB6");
    stage_call(stage, &request);
    stage_call(stage, &wrong);
    loop_turn(stage->loop);
    assert_int_equal(stage->answers, 1);
    assert_int_equal(stage->code, ERR_INVALID_ARGUMENT);
    buf_clear(&stage->said);
    greet(stage, "");
    assert_str(fake_http_header(out(stage), "x-user-id"), "two words");
    assert_str(fake_http_header(out(stage), "x-conversation-id"), "s-1");
    answer_json(out(stage), "", "\"result\":1");
    assert_int_equal(stage->answers, 2);
    assert_false(stage->failed);
}

static void only_so_many_users_are_remembered(void **state) {
    struct stage *stage = *state;
    for (int i = 0; i < 300; i++) {
        char user[16];
        snprintf(user, sizeof(user), "u%d", i);
        struct mcp_request request = stage_request(user);
        stage_call(stage, &request);
        greet(stage, "");
        answer_json(out(stage), "", "\"result\":1");
    }
    struct mcp_request last = stage_request("u299"), first = stage_request("u0");
    stage_call(stage, &last);
    assert_method(out(stage), "tools/call");
    answer_json(out(stage), "", "\"result\":1");
    stage_call(stage, &first);
    greet(stage, "");
    answer_json(out(stage), "", "\"result\":1");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_the_drawn_moves_are_legal),
        TEST(a_session_is_opened_before_the_first_call),
        TEST(each_user_has_a_session_of_its_own),
        cmocka_unit_test(every_version_that_we_know_is_agreed_to),
        cmocka_unit_test(calls_that_wait_for_a_greeting_go_and_fail_together),
        cmocka_unit_test(an_answer_in_a_stream_reads_the_same_however_it_is_cut),
        cmocka_unit_test(a_stream_that_ends_early_has_no_answer),
        TEST(what_a_server_asks_meanwhile_is_answered),
        TEST(a_batch_is_looked_through_for_the_answer),
        cmocka_unit_test(a_malformed_answer_fails_the_call_with_its_reason),
        TEST(half_a_surrogate_pair_is_no_reason_to_lose_an_answer),
        cmocka_unit_test(a_long_session_id_is_sent_back_whole_or_refused_by_name),
        TEST(an_answer_may_follow_many_notifications),
        TEST(a_document_of_more_than_4_mib_is_refused),
        TEST(a_session_that_is_lost_is_opened_anew_once),
        TEST(two_calls_that_lose_one_session_open_one),
        cmocka_unit_test(a_lost_connection_is_mended_once_where_it_does_no_harm),
        cmocka_unit_test(only_what_may_be_repeated_shares_a_connection),
        cmocka_unit_test(what_may_have_been_done_is_unknown_unless_it_may_be_repeated),
        cmocka_unit_test(a_call_can_be_cancelled_at_each_moment),
        TEST(a_call_that_cannot_be_authorized_is_not_sent),
        TEST(a_caller_whose_id_is_no_header_is_not_served),
        TEST(such_a_call_does_not_fail_those_that_wait_beside_it),
        TEST(only_so_many_users_are_remembered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
