#include "mcp/tool.h"

#include "fake/http_fake.h"
#include "fixture.h"

struct listed {
    size_t times;
    bool failed;
    struct err why;
};

static void on_listed(const struct err *failed, void *ctx) {
    struct listed *listed = ctx;
    listed->times++;
    listed->failed = failed != NULL;
    if (failed) listed->why = *failed;
}

static const struct mcp_caller caller = {STR_INIT("u"), STR_INIT("w"), STR_INIT("s-1")};

static void all_pages_of_a_list_are_read(void **state) {
    struct stage *stage = *state;
    struct listed listed = {0};
    size_t count;
    struct mcp_listing *listing = mcp_list(stage->client, &caller, on_listed, &listed);
    greet(stage, "");
    assert_str(fake_http_request(out(stage))->body,
               "{\"jsonrpc\":\"2.0\",\"id\":2,\"method\":\"tools/list\"}");
    answer_json(
        out(stage), "",
        "\"result\":{\"tools\":[{\"name\":\"a\",\"description\":\"A \\u00e9\","
        "\"inputSchema\":{\"type\":\"object\"},\"annotations\":{\"readOnlyHint\":true}},"
        "{\"name\":\"a\"},{\"name\":\"b c\"},{\"name\":5},{}],\"nextCursor\":\"p\\\"2\"}");
    assert_str(json_find(posted(out(stage)), STR("params")).raw, "{\"cursor\":\"p\\\"2\"}");
    assert_int_equal(listed.times, 0);
    answer_json(out(stage), "",
                "\"result\":{\"tools\":[{\"name\":\"b-2\",\"inputSchema\":7,"
                "\"annotations\":{\"idempotentHint\":true}},{\"name\":\"c\",\"annotations\":{"
                "\"idempotentHint\":false,\"readOnlyHint\":1}}]}");
    assert_true(listed.times == 1 && !listed.failed);
    const struct mcp_tool_info *tools = mcp_listing_tools(listing, &count);
    assert_int_equal(count, 3);
    assert_str(tools[0].name, "a");
    assert_str(tools[0].description, "A \xC3\xA9");
    assert_str(tools[1].name, "b-2");
    assert_str(tools[1].schema, "{\"type\":\"object\"}");
    assert_true(tools[0].idempotent && tools[1].idempotent && !tools[2].idempotent);
    assert_true(mcp_listing_same(listing, listing));
    assert_false(mcp_listing_same(listing, NULL));
    mcp_listing_free(listing);
}

static void a_list_that_does_not_end_is_refused(void **state) {
    struct stage *stage = *state;
    struct listed listed = {0};
    struct mcp_listing *listing = mcp_list(stage->client, &caller, on_listed, &listed);
    greet(stage, "");
    for (int i = 0; i < MCP_PAGES_MAX; i++) {
        assert_int_equal(listed.times, 0);
        answer_json(out(stage), "", "\"result\":{\"tools\":[],\"nextCursor\":\"x\"}");
    }
    assert_true(listed.times == 1 && listed.failed);
    assert_int_equal(listed.why.code, ERR_TOO_LARGE);
    mcp_listing_free(listing);
}

static void a_list_that_is_none_fails(void **state) {
    (void)state;
    static const char *const answers[] = {"\"result\":{}", "\"result\":{\"tools\":{}}",
                                          "\"error\":{\"code\":-32601,\"message\":\"no\"}"};
    for (size_t i = 0; i < ARRAY_LEN(answers); i++) {
        struct stage stage;
        struct listed listed = {0};
        stage_init(&stage);
        struct mcp_listing *listing = mcp_list(stage.client, &caller, on_listed, &listed);
        greet(&stage, "");
        answer_json(out(&stage), "", answers[i]);
        assert_true(listed.times == 1 && listed.failed);
        mcp_listing_free(listing);
        stage_done(&stage);
    }
}

static void a_list_can_be_let_go_at_each_moment(void **state) {
    (void)state;
    for (int moment = 0; moment < 3; moment++) {
        struct stage stage;
        struct listed listed = {0};
        stage_init(&stage);
        struct mcp_listing *listing = mcp_list(stage.client, &caller, on_listed, &listed);
        if (moment > 0) greet(&stage, "");
        if (moment > 1)
            answer_json(out(&stage), "", "\"result\":{\"tools\":[],\"nextCursor\":\"x\"}");
        mcp_listing_free(listing);
        assert_int_equal(listed.times, 0);
        stage_done(&stage);
    }
}

static void on_tool_done(struct str result, const struct err *failed, void *ctx) {
    stage_hears(json_of(failed ? STR("null") : result), failed, ctx);
}

static struct tool_call *use(struct stage *stage, struct tool *tool) {
    struct tool_request request = {.call_id = STR("c1"),
                                   .args = STR("{\"x\":1}"),
                                   .agent = STR("a"),
                                   .workspace = STR("w"),
                                   .user = STR("u"),
                                   .session = STR("s-9")};
    stage->answers = 0;
    buf_clear(&stage->said);
    return tool->kind->start(tool, stage->loop, &request, on_tool_done, stage);
}

static const struct mcp_tool_info info = {
    .name = STR_INIT("send"),
    .description = STR_INIT("Send it."),
    .schema = STR_INIT("{\"type\":\"object\",\"properties\":{\"x\":{\"type\":\"integer\"}}}"),
};

static void a_tool_is_called_for_the_user_and_the_conversation(void **state) {
    struct stage *stage = *state;
    struct tool *tool = mcp_tool_new(stage->client, &info);
    assert_str(tool->name, "send");
    assert_str(tool->parameters, info.schema.at);
    assert_non_null(tool->schema);
    use(stage, tool);
    greet(stage, "");
    assert_str(json_find(posted(out(stage)), STR("params")).raw,
               "{\"name\":\"send\",\"arguments\":{\"x\":1}}");
    assert_str(fake_http_header(out(stage), "X-Conversation-Id"), "s-9");
    answer_json(out(stage), "",
                "\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"sent\"}]}");
    stage_said(stage, false, "{\"output\":\"sent\"}");
    use(stage, tool);
    answer_json(
        out(stage), "",
        "\"result\":{\"isError\":true,\"content\":[{\"type\":\"text\",\"text\":\"x\"}]}");
    stage_said(stage, true, "Tool execution failed. Details: x");
    use(stage, tool);
    fake_http_fail(out(stage), ERR_UNAVAILABLE, HTTP_WAITING);
    stage_said(stage, true, "the MCP server closed the connection");
    struct tool_call *call = use(stage, tool);
    tool->kind->cancel(call);
    assert_method(out(stage), "notifications/cancelled");
    accept_note(out(stage));
    assert_int_equal(stage->answers, 0);
    tool_free(tool);
}

static void a_tool_that_is_not_idempotent_is_asked_once(void **state) {
    (void)state;
    for (int idempotent = 0; idempotent < 2; idempotent++) {
        struct stage stage;
        struct mcp_tool_info told = info;
        told.idempotent = idempotent;
        stage_init(&stage);
        struct tool *tool = mcp_tool_new(stage.client, &told);
        use(&stage, tool);
        greet(&stage, "");
        assert_int_equal(fake_http_request(out(&stage))->once, !idempotent);
        fake_http_fail(out(&stage), ERR_DEADLINE_EXCEEDED, HTTP_WAITING);
        stage_said(&stage, true, "the MCP server did not answer in time");
        assert_int_equal(stage.code, idempotent ? ERR_DEADLINE_EXCEEDED : ERR_EFFECT_UNKNOWN);
        tool_free(tool);
        stage_done(&stage);
    }
}

static void a_schema_that_we_cannot_read_is_offered_unchecked(void **state) {
    struct stage *stage = *state;
    struct mcp_tool_info strange = info;
    strange.schema = STR("{\"type\":\"object\",\"unevaluatedProperties\":false}");
    strange.idempotent = true;
    struct tool *tool = mcp_tool_new(stage->client, &strange);
    assert_null(tool->schema);
    assert_true(tool->idempotent);
    assert_str(tool->parameters, strange.schema.at);
    tool_free(tool);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(all_pages_of_a_list_are_read),
        TEST(a_list_that_does_not_end_is_refused),
        cmocka_unit_test(a_list_that_is_none_fails),
        cmocka_unit_test(a_list_can_be_let_go_at_each_moment),
        TEST(a_tool_is_called_for_the_user_and_the_conversation),
        cmocka_unit_test(a_tool_that_is_not_idempotent_is_asked_once),
        TEST(a_schema_that_we_cannot_read_is_offered_unchecked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
