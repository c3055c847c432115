#include "contract/anthropic/request.h"

#include "contract/anthropic/message_error.h"
#include "helper/assert_str.h"
#include "provider/dialect.h"

#define ASK "\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]"
#define HEAD "{\"model\":\"m\",\"max_tokens\":1,"

static struct arena *arena;

static bool parse(const char *body, struct guest_request *ret, struct err *e) {
    return messages_request_parse(str_from(body), MESSAGES_WHOLE, arena, ret, e);
}

static void a_request_is_read(void **state) {
    (void)state;
    struct guest_request request;
    struct err e;
    assert_true(parse(HEAD
                      "\"stream\":true,\"system\":[{\"type\":\"text\",\"text\":\"a\"},"
                      "{\"type\":\"text\",\"text\":\"b\"}],\"metadata\":{\"user_id\":"
                      "\"u\"},\"tools\":[{\"name\":\"w\",\"description\":\"d\","
                      "\"input_schema\":{\"type\": \"object\"}}],\"tool_choice\":{\"type\":"
                      "\"any\"}," ASK "}",
                      &request, &e));
    assert_str(request.agent, "m");
    assert_str(request.user, "u");
    assert_str(request.text, "hi");
    assert_true(request.streams);
    assert_int_equal(request.message_count, 2);
    assert_int_equal(request.messages[0].role, MESSAGE_SYSTEM);
    assert_str(request.messages[0].text, "a\n\nb");
    assert_int_equal(request.tool_count, 1);
    assert_str(request.tools[0].parameters, "{\"type\":\"object\"}");
    assert_str(request.tool_choice, TOOL_CHOICE_REQUIRED);
}

static void a_choice_of_none_offers_no_tool(void **state) {
    (void)state;
    struct guest_request request;
    struct err e;
    assert_true(parse(HEAD "\"tools\":[{\"name\":\"w\",\"input_schema\":{}}],\"tool_choice\":{"
                           "\"type\":\"none\"}," ASK "}",
                      &request, &e));
    assert_int_equal(request.tool_count, 0);
}

static void what_is_wrong_is_named_with_its_place(void **state) {
    (void)state;
    static const struct {
        const char *body, *error;
    } cases[] = {
        {"[]", "the body must be an object, not an array"},
        {"{}", "model: field required; it names an agent"},
        {"{\"model\":7}", "model: must be a string, not a number"},
        {"{\"model\":\"m\"}", "max_tokens: field required"},
        {"{\"model\":\"m\",\"max_tokens\":0}", "max_tokens: must be a whole number above 0"},
        {HEAD "\"x\":1}", "messages: field required"},
        {HEAD "\"stream\":1," ASK "}", "stream: must be true or false, not a number"},
        {HEAD "\"system\":[{\"type\":\"image\"}]," ASK "}",
         "system.0: must be a block of type text"},
        {HEAD "\"tools\":{}," ASK "}", "tools: must be an array, not an object"},
        {HEAD "\"tools\":[{\"type\":\"web_search_20250305\",\"name\":\"w\"}]," ASK "}",
         "tools.0.type: tools that Anthropic's servers run do not exist here; give the agent "
         "one, or send a tool of your own"},
        {HEAD "\"tools\":[{\"name\":\"w\"}]," ASK "}",
         "tools.0.input_schema: must be a JSON Schema, which is an object"},
        {HEAD "\"tool_choice\":{\"type\":\"tool\"}," ASK "}",
         "tool_choice.name: field required"},
        {HEAD "\"tool_choice\":{\"type\":\"x\"}," ASK "}",
         "tool_choice.type: must be auto, any, tool or none"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct guest_request request;
        struct err e;
        assert_false(parse(cases[i].body, &request, &e));
        assert_str(err_text(&e), cases[i].error);
    }
}

/* Cut anywhere, a body is refused and never half taken. */
static void a_cut_body_is_refused(void **state) {
    (void)state;
    static const char body[] = HEAD ASK "}";
    for (size_t len = 0; len + 1 < sizeof(body); len++) {
        struct guest_request request;
        struct err e;
        assert_false(
            messages_request_parse(str_of(body, len), MESSAGES_WHOLE, arena, &request, &e));
        assert_int_equal(e.code, ERR_MALFORMED);
    }
}

static void each_failure_has_its_status_and_says_whether_to_try_again(void **state) {
    (void)state;
    static const struct {
        enum err_code code;
        int status;
        bool retry;
    } cases[] = {
        {ERR_INVALID_ARGUMENT, 400, false}, {ERR_NOT_FOUND, 404, false},
        {ERR_TOO_LARGE, 413, false},        {ERR_RESOURCE_EXHAUSTED, 429, true},
        {ERR_UNAVAILABLE, 503, true},       {ERR_DATA_LOSS, 500, false},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct api_failure error = api_failure_of_code(cases[i].code);
        assert_int_equal(error.status, cases[i].status);
        assert_int_equal(error.retry, cases[i].retry);
    }
    struct api_failure error = api_failure_of_run(ERR_UNAVAILABLE, STR("X"), true);
    assert_int_equal(error.status, 503);
    assert_false(error.retry); /* it acted */
    error = api_failure_of_run(ERR_INVALID_ARGUMENT, STR("MODEL_ERROR"), false);
    assert_int_equal(error.status, 500); /* not the caller's */
    error = api_failure_of_run(ERR_INVALID_ARGUMENT, STR("UNKNOWN_CALL"), false);
    assert_int_equal(error.status, 400);
}

static int setup(void **state) {
    (void)state;
    arena = arena_new(MIB);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    arena_free(arena);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_is_read),
        cmocka_unit_test(a_choice_of_none_offers_no_tool),
        cmocka_unit_test(what_is_wrong_is_named_with_its_place),
        cmocka_unit_test(a_cut_body_is_refused),
        cmocka_unit_test(each_failure_has_its_status_and_says_whether_to_try_again),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
