/* Servers of both generations: how they are distinguished, and what a stateless one gets. */
#include "mcp/generation.h"

#include "fake/http_fake.h"
#include "fixture.h"

#include "mcp/param_headers.h"

#define META                                                                                   \
    "\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"2026-07-28\","                   \
    "\"io.modelcontextprotocol/clientInfo\":{\"name\":\"weir\",\"version\":\"0.1.0\"},"        \
    "\"io.modelcontextprotocol/clientCapabilities\":{}}"
#define DISCOVERED                                                                             \
    "\"result\":{\"resultType\":\"complete\",\"supportedVersions\":[\"2026-07-28\"],"          \
    "\"capabilities\":{\"tools\":{\"listChanged\":true}}}"

static void answer_error(struct http_call *call, unsigned status, const char *error) {
    struct buf body;
    buf_init(&body, KIB);
    buf_printf(&body, "{\"jsonrpc\":\"2.0\",\"id\":" STR_FMT ",\"error\":%s}",
               STR_ARG(json_find(posted(call), STR("id")).raw), error);
    if (fake_http_head(call, status, "application/json") &&
        fake_http_body(call, buf_str(&body)))
        fake_http_end(call);
    buf_done(&body);
}

static struct json params_of(struct http_call *call) {
    return json_find(posted(call), STR("params"));
}

/* --- telling them apart ------------------------------------------------------------------- */

static void a_stateless_server_is_asked_without_a_handshake(void **state) {
    struct stage *stage = *state;
    struct mcp_request request = stage_request("u");
    stage_call(stage, &request);
    assert_method(out(stage), "server/discover");
    assert_str(fake_http_header(out(stage), "mcp-protocol-version"), "2026-07-28");
    assert_str(fake_http_header(out(stage), "mcp-method"), "server/discover");
    assert_str(params_of(out(stage)).raw, "{" META "}");
    answer_json(out(stage), "s-9", DISCOVERED);
    for (int i = 0; i < 2; i++) { /* it is asked once only what it is */
        assert_method(out(stage), "tools/call");
        assert_str(params_of(out(stage)).raw, "{" META ",\"name\":\"t\"}");
        assert_str(fake_http_header(out(stage), "mcp-protocol-version"), "2026-07-28");
        assert_str(fake_http_header(out(stage), "mcp-session-id"), "");
        answer_json(out(stage), "", "\"result\":{\"resultType\":\"complete\",\"a\":1}");
        stage_said(stage, false, "{\"resultType\":\"complete\",\"a\":1}");
        request.caller.user = STR("another");
        if (i == 0) stage_call(stage, &request);
    }
    assert_true(mcp_client_may_listen(stage->client));
}

static void any_other_refusal_is_that_of_a_server_with_a_handshake(void **state) {
    static const struct {
        unsigned status;
        const char *error;
    } cases[] = {
        {400, "{\"code\":-32000,\"message\":\"Bad Request: Server not initialized\"}"},
        {200, "{\"code\":-32601,\"message\":\"Method not found\"}"},
        {404, "{\"code\":-32601,\"message\":\"Method not found\"}"},
        {400, "{\"code\":-32022,\"message\":\"no\",\"data\":{\"supported\":[\"2025-11-25\"]}}"},
        {500, "{\"code\":-32603,\"message\":\"oh\"}"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct stage stage;
        struct mcp_request request = stage_request("u");
        stage_init_as(&stage, true);
        stage_call(&stage, &request);
        answer_error(out(&stage), cases[i].status, cases[i].error);
        greet(&stage, "s-1");
        assert_method(out(&stage), "tools/call");
        assert_str(params_of(out(&stage)).raw, "{\"name\":\"t\"}");
        assert_str(fake_http_header(out(&stage), "mcp-session-id"), "s-1");
        answer_json(out(&stage), "", "\"result\":1");
        stage_said(&stage, false, "1");
        assert_false(mcp_client_may_listen(stage.client));
        request.caller.user = STR("another"); /* that is known now */
        stage_call(&stage, &request);
        assert_method(out(&stage), "initialize");
        greet(&stage, "s-2");
        answer_json(out(&stage), "", "\"result\":2");
        stage_done(&stage);
    }
}

static void a_server_that_names_our_version_is_taken_at_its_word(void **state) {
    struct stage *stage = *state;
    struct mcp_request request = stage_request("u");
    stage_call(stage, &request);
    answer_error(
        out(stage), 400,
        "{\"code\":-32022,\"message\":\"no\",\"data\":{\"supported\":[\"2026-07-28\"]}}");
    assert_method(out(stage), "tools/call");
    answer_json(out(stage), "", "\"result\":1");
    stage_said(stage, false, "1");
}

static void silence_is_an_answer_too(void **state) {
    struct stage *stage = *state;
    struct mcp_request request = stage_request("u");
    stage_call(stage, &request);
    fake_http_fail(out(stage), ERR_DEADLINE_EXCEEDED, HTTP_WAITING);
    greet(stage, "s-1");
    answer_json(out(stage), "", "\"result\":1");
    stage_said(stage, false, "1");
}

static void a_server_out_of_reach_is_not_greeted_either(void **state) {
    struct stage *stage = *state;
    struct mcp_request request = stage_request("u");
    stage_call(stage, &request);
    fake_http_fail(out(stage), ERR_UNAVAILABLE, HTTP_CONNECTING);
    stage_said(stage, true, "the MCP server cannot be reached");
    assert_int_equal(fake_http_calls(stage->pool), 0);
    stage_call(stage, &request);
    assert_method(out(stage), "server/discover");
    answer_json(out(stage), "", DISCOVERED);
    answer_json(out(stage), "", "\"result\":1");
    stage_said(stage, false, "1");
}

/* What refuses a stateless request with a plain 400 is another server by now. */
static void a_server_that_is_another_one_now_is_asked_again(void **state) {
    struct stage *stage = *state;
    struct mcp_request request = stage_request("u");
    stage_call(stage, &request);
    answer_json(out(stage), "", DISCOVERED);
    answer_error(out(stage), 400, "{\"code\":-32000,\"message\":\"not initialized\"}");
    assert_method(out(stage), "server/discover");
    answer_error(out(stage), 400, "{\"code\":-32000,\"message\":\"not initialized\"}");
    greet(stage, "s-1");
    assert_method(out(stage), "tools/call");
    answer_json(out(stage), "", "\"result\":1");
    stage_said(stage, false, "1");
}

static void a_cancelled_stateless_call_just_ends(void **state) {
    struct stage *stage = *state;
    struct mcp_request request = stage_request("u");
    struct mcp_call *call = stage_call(stage, &request);
    answer_json(out(stage), "", DISCOVERED);
    mcp_call_cancel(call);
    assert_int_equal(fake_http_calls(stage->pool), 0);
}

/* --- rounds ------------------------------------------------------------------------------- */

static void a_server_that_needs_more_gets_its_state_back(void **state) {
    struct stage *stage = *state;
    struct mcp_request request = stage_request("u");
    stage_call(stage, &request);
    answer_json(out(stage), "", DISCOVERED);
    struct json before = json_find(posted(out(stage)), STR("id"));
    int64_t first, second;
    assert_true(json_i64(before, &first));
    answer_json(
        out(stage), "",
        "\"result\":{\"resultType\":\"input_required\",\"requestState\":\"{\\\"n\\\": 1}\","
        "\"inputRequests\":{\"a\":{\"method\":\"elicitation/create\"},"
        "\"b\":{\"method\":\"roots/list\"}}}");
    assert_method(out(stage), "tools/call");
    assert_str(params_of(out(stage)).raw,
               "{" META ",\"name\":\"t\",\"inputResponses\":{\"a\":{\"action\":\"cancel\"},"
               "\"b\":{\"roots\":[]}},\"requestState\":\"{\\\"n\\\": 1}\"}");
    assert_true(json_i64(json_find(posted(out(stage)), STR("id")), &second));
    assert_true(second != first);
    answer_json(out(stage), "", /* without a state: none goes back */
                "\"result\":{\"resultType\":\"input_required\",\"inputRequests\":{}}");
    assert_str(params_of(out(stage)).raw, "{" META ",\"name\":\"t\",\"inputResponses\":{}}");
    answer_json(out(stage), "", "\"result\":{\"ok\":true}");
    stage_said(stage, false, "{\"ok\":true}");
}

static void a_server_that_asks_for_more_than_there_is_is_refused(void **state) {
    struct stage *stage = *state;
    struct mcp_request request = stage_request("u");
    stage_call(stage, &request);
    answer_json(out(stage), "", DISCOVERED);
    answer_json(out(stage), "",
                "\"result\":{\"resultType\":\"input_required\",\"inputRequests\":"
                "{\"a\":{\"method\":\"sampling/createMessage\"}}}");
    stage_said(
        stage, true,
        "the MCP server asks for \"sampling/createMessage\", which it does not get here");
    stage_call(stage, &request);
    for (int i = 0; i < 8; i++)
        answer_json(out(stage), "",
                    "\"result\":{\"resultType\":\"input_required\",\"requestState\":\"s\"}");
    assert_int_equal(stage->answers, 0);
    answer_json(out(stage), "",
                "\"result\":{\"resultType\":\"input_required\",\"requestState\":\"s\"}");
    stage_said(stage, true, "the MCP server asks for more again and again");
}

/* --- progress ----------------------------------------------------------------------------- */

static void on_progress(struct json params, void *ctx) {
    struct stage *stage = ctx;
    buf_append(&stage->said, json_find(params, STR("message")).raw);
}

static void progress_reaches_the_call_whose_token_it_names(void **state) {
    struct stage *stage = *state;
    struct mcp_request request = stage_request("u");
    struct buf events;
    request.progress = on_progress;
    stage_call(stage, &request);
    greet(stage, "");
    struct json token =
        json_find(json_find(params_of(out(stage)), STR("_meta")), STR("progressToken"));
    struct json id = json_find(posted(out(stage)), STR("id"));
    assert_true(str_equal(token.raw, id.raw));
    buf_init(&events, 4 * KIB);
    for (int i = 0; i < 2; i++)
        buf_printf(
            &events,
            "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/progress\",\"params\":"
            "{\"progressToken\":%s" STR_FMT ",\"progress\":1,\"message\":\"m%d\"}}\n\n",
            i ? "" : "9", STR_ARG(id.raw), i);
    buf_printf(&events, "data: {\"jsonrpc\":\"2.0\",\"id\":" STR_FMT ",\"result\":2}\n\n",
               STR_ARG(id.raw));
    struct http_call *call = out(stage);
    assert_true(fake_http_head(call, 200, "text/event-stream"));
    fake_http_body(call, buf_str(&events));
    stage_said(stage, false, "\"m1\"2");
    buf_done(&events);
}

/* --- headers ------------------------------------------------------------------------------ */

static struct json read_as_json(const char *text) {
    struct json value;
    struct err e;
    if (!json_read(str_from(text), &value, &e)) fail_msg("%s", e.text);
    return value;
}

static void arguments_go_as_headers_where_the_schema_says_so(void **state) {
    struct stage *stage = *state;
    struct mcp_request request = stage_request("u");
    request.schema = STR(
        "{\"properties\":{\"r\":{\"type\":\"string\",\"x-mcp-header\":\"Region\"},"
        "\"o\":{\"type\":\"object\",\"properties\":{\"n\":{\"type\":\"integer\","
        "\"x-mcp-header\":\"N\"}}},\"gone\":{\"type\":\"string\",\"x-mcp-header\":\"G\"}}}");
    request.params =
        STR("{\"name\":\"t\",\"arguments\":{\"r\":\"a\\r\\nb\",\"o\":{\"n\":42.0}}}");
    stage_call(stage, &request);
    answer_json(out(stage), "", DISCOVERED);
    assert_str(fake_http_header(out(stage), "Mcp-Param-Region"), "=?base64?YQ0KYg==?=");
    assert_str(fake_http_header(out(stage), "Mcp-Param-N"), "42");
    assert_str(fake_http_header(out(stage), "Mcp-Param-G"), "");
    answer_json(out(stage), "", "\"result\":1");
}

static void a_value_goes_as_it_is_or_encoded(void **state) {
    static const char *const cases[][2] = {
        {"us-west1", "us-west1"},
        {"", ""},
        {" padded ", "=?base64?IHBhZGRlZCA=?="},
        {"Hello, \xE4\xB8\x96\xE7\x95\x8C", "=?base64?SGVsbG8sIOS4lueVjA==?="},
        {"=?base64?literal?=", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct buf text;
        buf_init(&text, KIB);
        param_headers_encode(str_from(cases[i][0]), &text);
        assert_str(buf_str(&text), cases[i][1]);
        buf_done(&text);
    }
}

static void a_schema_that_names_headers_wrongly_is_refused(void **state) {
    static const char *const good[] = {
        "{\"properties\":{\"x-mcp-header\":{\"type\":\"string\"}}}",
        "{\"properties\":{\"a\":{\"type\":\"string\",\"default\":{\"x-mcp-header\":1}}}}",
    };
    static const char *const bad[] = {
        "{\"x-mcp-header\":\"A\",\"type\":\"string\"}",
        "{\"properties\":{\"a\":{\"type\":\"string\",\"x-mcp-header\":\"\"}}}",
        "{\"properties\":{\"a\":{\"type\":\"string\",\"x-mcp-header\":\"a b\"}}}",
        "{\"properties\":{\"a\":{\"type\":\"string\",\"x-mcp-header\":\"a\\r\\n\"}}}",
        "{\"properties\":{\"a\":{\"type\":\"string\",\"x-mcp-header\":7}}}",
        "{\"properties\":{\"a\":{\"type\":\"number\",\"x-mcp-header\":\"A\"}}}",
        ("{\"properties\":{\"a\":{\"type\":\"string\",\"x-mcp-header\":\"A\"},"
         "\"b\":{\"type\":\"string\",\"x-mcp-header\":\"a\"}}}"),
        "{\"properties\":{\"a\":{\"items\":{\"type\":\"string\",\"x-mcp-header\":\"A\"}}}}",
        "{\"anyOf\":[{\"properties\":{\"a\":{\"type\":\"string\",\"x-mcp-header\":\"A\"}}}]}",
        "{\"$defs\":{\"a\":{\"type\":\"string\",\"x-mcp-header\":\"A\"}}}",
    };
    struct err e;
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(good); i++)
        if (!param_headers_check(read_as_json(good[i]), &e))
            fail_msg("%s: %s", good[i], e.text);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        if (param_headers_check(read_as_json(bad[i]), &e)) fail_msg("%s was taken", bad[i]);
}

static void what_a_call_says_in_meta_stays_there(void **state) {
    (void)state;
    struct str params = STR("{\"_meta\":{\"traceparent\":\"00-t\"},\"name\":\"x\"}");
    struct json read, meta;
    struct err e;
    struct buf out;
    buf_init(&out, 4 * KIB);
    mcp_write_params(MCP_HANDSHAKE, MCP_ELICITATION_CANCEL, params, 0, &out);
    assert_str(buf_str(&out), "{\"_meta\":{\"traceparent\":\"00-t\"},\"name\":\"x\"}");
    buf_clear(&out);
    mcp_write_params(MCP_HANDSHAKE, MCP_ELICITATION_CANCEL, params, 7, &out);
    assert_str(buf_str(&out),
               "{\"_meta\":{\"progressToken\":7,\"traceparent\":\"00-t\"},\"name\":\"x\"}");
    buf_clear(&out);
    mcp_write_params(MCP_STATELESS, MCP_ELICITATION_CANCEL, params, 0, &out);
    assert_true(json_read(buf_str(&out), &read, &e));
    assert_int_equal(json_count(read), 2);
    meta = json_find(read, STR("_meta"));
    assert_int_equal(json_count(meta), 4);
    assert_true(json_is(json_find(meta, STR("traceparent")), STR("00-t")));
    buf_done(&out);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        PROBED(a_stateless_server_is_asked_without_a_handshake),
        cmocka_unit_test(any_other_refusal_is_that_of_a_server_with_a_handshake),
        PROBED(a_server_that_names_our_version_is_taken_at_its_word),
        PROBED(silence_is_an_answer_too),
        PROBED(a_server_out_of_reach_is_not_greeted_either),
        PROBED(a_server_that_is_another_one_now_is_asked_again),
        PROBED(a_cancelled_stateless_call_just_ends),
        PROBED(a_server_that_needs_more_gets_its_state_back),
        PROBED(a_server_that_asks_for_more_than_there_is_is_refused),
        TEST(progress_reaches_the_call_whose_token_it_names),
        PROBED(arguments_go_as_headers_where_the_schema_says_so),
        cmocka_unit_test(what_a_call_says_in_meta_stays_there),
        cmocka_unit_test(a_value_goes_as_it_is_or_encoded),
        cmocka_unit_test(a_schema_that_names_headers_wrongly_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
