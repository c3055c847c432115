/* What /v1/chat/completions and /v1/responses are asked, and what is refused by its name. */
#include "contract/openai/responses_request.h"

#include "helper/assert_str.h"

static struct arena *arena;
static struct err e;
static struct request_reading reading;
static struct openai_request chat;
static struct responses_request response;

static const struct str no_header = {NULL, 0};

static bool reads_chat(const char *body) {
    reading = (struct request_reading){.arena = arena, .e = &e};
    return chat_request_parse(&reading, str_from(body), no_header, &chat);
}

static bool reads_response(const char *body) {
    reading = (struct request_reading){.arena = arena, .e = &e};
    return responses_request_parse(&reading, str_from(body), no_header, &response);
}

#define HI "\"messages\":[{\"role\":\"user\",\"content\":\"hi\"}]"

static void a_chat_request_is_read(void **state) {
    (void)state;
    assert_true(reads_chat(
        "{\"model\":\"m\",\"stream\":true,\"stream_options\":{\"include_usage\":true},"
        "\"user\":\"u\",\"metadata\":{\"session_id\":\"s\",\"k\": \"v\"},\"temperature\":0.5,"
        "\"response_format\":{\"type\":\"json_schema\",\"json_schema\":{\"name\":\"n\","
        "\"schema\":{\"type\":\"object\"},\"strict\":true}},"
        "\"tools\":[{\"type\":\"function\",\"function\":{\"name\":\"f\",\"parameters\":{}}}],"
        "\"tool_choice\":{\"type\":\"function\",\"function\":{\"name\":\"f\"}}," HI "}"));
    assert_str(chat.turn.agent, "m");
    assert_true(chat.turn.streams && chat.wants_usage);
    assert_str(chat.turn.user, "u");
    assert_str(chat.turn.session, "s");
    assert_str(chat.turn.extras, "{\"metadata\":{\"session_id\":\"s\",\"k\":\"v\"}}");
    assert_str(chat.turn.schema, "{\"type\":\"object\"}");
    assert_int_equal(chat.turn.tool_count, 1);
    assert_str(chat.turn.tools[0].name, "f");
    assert_str(chat.turn.tool_choice, "f");
    assert_str(chat.turn.text, "hi");
    assert_int_equal(chat.turn.message_count, 1);
}

static void what_is_left_out_or_null_is_not_set(void **state) {
    (void)state;
    assert_true(reads_chat("{\"model\":null,\"stream\":null,\"n\":1,\"tools\":null,"
                           "\"tool_choice\":\"auto\",\"metadata\":null," HI "}"));
    assert_str(chat.turn.agent, "");
    assert_str(chat.turn.session, "");
    assert_str(chat.turn.schema, "");
    assert_false(chat.turn.streams);
    assert_int_equal(chat.turn.tool_count, 0);
}

static void a_header_names_the_session_unless_the_body_does(void **state) {
    (void)state;
    reading = (struct request_reading){.arena = arena, .e = &e};
    assert_true(chat_request_parse(&reading, STR("{" HI "}"), STR("head"), &chat));
    assert_str(chat.turn.session, "head");
    assert_true(chat_request_parse(
        &reading, STR("{\"metadata\":{\"session_id\":\"body\"}," HI "}"), STR("head"), &chat));
    assert_str(chat.turn.session, "body");
}

static const struct {
    const char *body, *param;
    enum err_code code;
} refused[] = {
    {"", "", ERR_MALFORMED},
    {"[]", "", ERR_MALFORMED},
    {"{", "", ERR_MALFORMED},
    {"{\"model\":\"a\",\"model\":\"b\"," HI "}", "", ERR_MALFORMED},
    {"{}", "messages", ERR_INVALID_ARGUMENT},
    {"{\"messages\":5}", "messages", ERR_INVALID_ARGUMENT},
    {"{\"messages\":[{\"role\":\"tool\",\"tool_call_id\":\"x\",\"content\":\"y\"}]}",
     "messages", ERR_INVALID_ARGUMENT},
    {"{\"model\":5," HI "}", "model", ERR_INVALID_ARGUMENT},
    {"{\"stream\":\"yes\"," HI "}", "stream", ERR_INVALID_ARGUMENT},
    {"{\"n\":2," HI "}", "n", ERR_INVALID_ARGUMENT},
    {"{\"function_call\":\"auto\"," HI "}", "function_call", ERR_INVALID_ARGUMENT},
    {"{\"logprobs\":true," HI "}", "logprobs", ERR_INVALID_ARGUMENT},
    {"{\"modalities\":[\"audio\"]," HI "}", "modalities", ERR_INVALID_ARGUMENT},
    {"{\"response_format\":{\"type\":\"json_schema\"}," HI "}", "response_format",
     ERR_INVALID_ARGUMENT},
    {"{\"response_format\":{\"type\":\"json_schema\",\"json_schema\":{\"schema\":{\"type\":7}}}"
     "," HI "}",
     "response_format", ERR_INVALID_ARGUMENT},
    {"{\"tools\":{}," HI "}", "tools", ERR_INVALID_ARGUMENT},
    {"{\"tools\":[{\"type\":\"web_search\"}]," HI "}", "tools", ERR_INVALID_ARGUMENT},
    {"{\"tools\":[{\"type\":\"function\",\"function\":{}}]," HI "}", "tools",
     ERR_INVALID_ARGUMENT},
    {"{\"tool_choice\":\"required\"," HI "}", "tool_choice", ERR_INVALID_ARGUMENT},
    {"{\"tool_choice\":5," HI "}", "tool_choice", ERR_INVALID_ARGUMENT},
    {"{\"metadata\":{\"session_id\":5}," HI "}", "metadata.session_id", ERR_INVALID_ARGUMENT},
};

static void what_cannot_be_had_is_refused_by_its_name(void **state) {
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
        if (reads_chat(refused[i].body)) fail_msg("%s", refused[i].body);
        assert_int_equal(e.code, refused[i].code);
        assert_str(reading.param, refused[i].param);
    }
}

/* --- responses ---------------------------------------------------------------------------- */

static void a_response_request_is_read(void **state) {
    (void)state;
    assert_true(
        reads_response("{\"model\":\"m\",\"input\":\"hi\",\"instructions\":\"be short\","
                       "\"metadata\":{\"a\":\"b\"},\"stream\":true}"));
    assert_str(response.common.text, "hi");
    assert_int_equal(response.common.message_count, 2);
    assert_int_equal(response.common.messages[0].role, MESSAGE_SYSTEM);
    assert_str(response.metadata, "{\"a\":\"b\"}");
    assert_true(response.store && response.common.streams);
    assert_false(response.background);
}

static void its_items_become_messages(void **state) {
    (void)state;
    assert_true(reads_response(
        "{\"input\":[{\"role\":\"user\",\"content\":[{\"type\":\"input_text\",\"text\":\"a\"}]}"
        ","
        "{\"type\":\"reasoning\",\"summary\":[]},{\"type\":\"mcp_call\"},"
        "{\"type\":\"message\",\"role\":\"assistant\",\"content\":"
        "[{\"type\":\"output_text\",\"text\":\"b\"}]},"
        "{\"type\":\"function_call\",\"call_id\":\"c\",\"name\":\"f\",\"arguments\":\"{}\"},"
        "{\"type\":\"function_call_output\",\"call_id\":\"c\",\"output\":\"d\"}]}"));
    const struct message *messages = response.common.messages;
    assert_int_equal(response.common.message_count, 4);
    assert_str(messages[0].text, "a");
    assert_str(messages[1].text, "b");
    assert_str(messages[2].tool, "f");
    assert_int_equal(messages[3].role, MESSAGE_TOOL_RESULT);
    assert_str(messages[3].text, "{\"result\":\"d\"}");
}

/* What the agent did itself is in the list that a client keeps. */
static void its_calls_of_the_agent_are_calls_with_results(void **state) {
    (void)state;
    assert_true(reads_response(
        "{\"input\":[{\"role\":\"user\",\"content\":\"a\"},"
        "{\"type\":\"mcp_call\",\"id\":\"i1\",\"name\":\"f\",\"arguments\":\"{\\\"x\\\":1}\","
        "\"output\":\"{\\\"y\\\":2}\",\"error\":null},"
        "{\"type\":\"mcp_call\",\"id\":\"i2\",\"name\":\"g\",\"arguments\":\"{}\","
        "\"output\":null,\"error\":\"no\"},"
        "{\"type\":\"mcp_call\",\"id\":\"i3\",\"name\":\"g\",\"arguments\":\"{}\","
        "\"output\":null,\"error\":null},{\"role\":\"user\",\"content\":\"b\"}]}"));
    const struct message *messages = response.common.messages;
    assert_int_equal(response.common.message_count, 6);
    assert_int_equal(messages[1].role, MESSAGE_TOOL_CALL);
    assert_str(messages[1].text, "{\"x\":1}");
    assert_str(messages[2].call_id, "i1");
    assert_str(messages[2].text, "{\"y\":2}");
    assert_str(messages[3].tool, "g");
    assert_str(messages[4].text, "{\"result\":\"no\"}");
    assert_str(messages[5].text, "b");
    assert_false(reads_response("{\"input\":[{\"type\":\"mcp_call\",\"output\":\"x\"}]}"));
    assert_str(reading.param, "input");
}

static void a_result_alone_goes_on_with_an_earlier_response(void **state) {
    (void)state;
#define RESULT                                                                                 \
    "\"input\":[{\"type\":\"function_call_output\",\"call_id\":\"c\",\"output\":\"d\"}]"
    assert_false(reads_response("{" RESULT "}"));
    assert_str(reading.param, "input");
    assert_true(reads_response("{\"previous_response_id\":\"resp_12_7\"," RESULT "}"));
    assert_int_equal(response.previous_run, 12);
    assert_int_equal(response.common.message_count, 1);
}

static void a_consent_is_a_message_that_decides(void **state) {
    (void)state;
    assert_true(reads_response(
        "{\"previous_response_id\":\"resp_1\",\"input\":[{\"type\":\"mcp_approval_response\","
        "\"approval_request_id\":\"mcpr_7_3\",\"approve\":false,\"reason\":\"no "
        "\\\"way\\\"\"}]}"));
    assert_str(response.common.text, "{\"decision\":\"refuse\",\"reason\":\"no \\\"way\\\"\"}");
    assert_int_equal(response.common.approval_run, 7);
    assert_int_equal(response.common.approval_seq, 3);
}

static void an_id_reads_back(void **state) {
    (void)state;
    struct completion completion = {.run = 12};
    struct response made = {.completion = &completion, .after_seq = 7};
    uint64_t run, seq;
    struct buf id;
    buf_init(&id, 100);
    response_append_id(&made, &id);
    assert_str(buf_str(&id), "resp_12_7");
    assert_true(response_read_id(buf_str(&id), &run, &seq));
    assert_int_equal(run, 12);
    assert_int_equal(seq, 7);
    static const char *const bad[] = {
        "", "resp_", "resp_0", "resp_x", "chat_1", "resp_1_x", "resp_99999999999999999999999"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_false(response_read_id(str_from(bad[i]), &run, &seq));
    buf_done(&id);
}

static int begin(void **state) {
    (void)state;
    arena = arena_new(1 * MIB);
    return 0;
}

static int end(void **state) {
    (void)state;
    arena_free(arena);
    return 0;
}

int main(void) {
#define CASE(name) cmocka_unit_test_setup_teardown(name, begin, end)
    const struct CMUnitTest tests[] = {
        CASE(a_chat_request_is_read),
        CASE(what_is_left_out_or_null_is_not_set),
        CASE(a_header_names_the_session_unless_the_body_does),
        CASE(what_cannot_be_had_is_refused_by_its_name),
        CASE(a_response_request_is_read),
        CASE(its_items_become_messages),
        CASE(its_calls_of_the_agent_are_calls_with_results),
        CASE(a_result_alone_goes_on_with_an_earlier_response),
        CASE(a_consent_is_a_message_that_decides),
        CASE(an_id_reads_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
