#include "helper/assert_str.h"
#include "helper/transcript.h"
#include "provider/dialect_limits.h"

#include <stdio.h>

static void every_transcript_reads_as_expected(void **state) {
    (void)state;
    transcripts_replay(&responses_dialect, "test/provider/transcripts/responses");
}

/* --- requests ----------------------------------------------------------------------------- */

static const struct dialect_settings here = {.base_url = STR_INIT("https://api.openai.com/v1"),
                                             .model = STR_INIT("gpt-4.1")};

#define END ",\"store\":false,\"stream\":true}"

static void assert_body_at(const struct provider_request *request, const char *expected,
                           const char *file, int line) {
    struct buf out;
    struct err e;
    struct json body;
    buf_init(&out, MIB);
    if (!responses_dialect.body(&here, request, &out, &e)) print_error("%s\n", e.text);
    assert_true(json_read(buf_str(&out), &body, &e));
    assert_str_at(buf_str(&out), expected, file, line);
    buf_done(&out);
}

#define assert_body(request, expected) assert_body_at((request), (expected), __FILE__, __LINE__)

static void a_question_is_streamed_and_stored_nowhere(void **state) {
    (void)state;
    struct message said = {.role = MESSAGE_USER, .text = STR("hi")};
    struct provider_request request = {
        .system = STR("Be kind."), .messages = &said, .message_count = 1};
    assert_body(&request,
                "{\"model\":\"gpt-4.1\",\"instructions\":\"Be kind.\",\"input\":[{\"type\":"
                "\"message\",\"role\":\"user\",\"content\":\"hi\"}]" END);
    request.system = STR_EMPTY;
    request.model = STR("gpt-4o");
    assert_body(&request, "{\"model\":\"gpt-4o\",\"input\":[{\"type\":\"message\",\"role\":"
                          "\"user\",\"content\":\"hi\"}]" END);
}

static const struct message tool_turn[] = {
    {.role = MESSAGE_OPAQUE,
     .agent = STR_INIT("m"),
     .tool = STR_INIT("openai-responses"),
     .text = STR_INIT("[{\"type\":\"reasoning\",\"encrypted_content\":\"a/b==\"},"
                      "{\"type\":\"function_call\",\"call_id\":\"1\"}]")},
    {.role = MESSAGE_AGENT, .agent = STR_INIT("m"), .text = STR_INIT("I look.")},
    {.role = MESSAGE_TOOL_CALL,
     .agent = STR_INIT("m"),
     .call_id = STR_INIT("1"),
     .tool = STR_INIT("find")},
    {.role = MESSAGE_TOOL_RESULT, .call_id = STR_INIT("1"), .text = STR_INIT("{\"r\":1}")},
    {.role = MESSAGE_AGENT, .agent = STR_INIT("wally"), .text = STR_INIT("hello")},
    {.role = MESSAGE_TOOL_RESULT, .call_id = STR_INIT("gone"), .text = STR_INIT("{}")},
};

#define RESULT                                                                                 \
    "{\"type\":\"function_call_output\",\"call_id\":\"1\",\"output\":\"{\\\"r\\\":1}\"}"
#define CONTEXT                                                                                \
    "{\"type\":\"message\",\"role\":\"user\",\"content\":\"For context:\\n[wally] said: "      \
    "hello\"}"

static void a_reply_without_kept_items_is_written_from_its_messages(void **state) {
    (void)state;
    struct provider_request request = {.agent = STR("m"),
                                       .messages = tool_turn + 1,
                                       .message_count = ARRAY_LEN(tool_turn) - 1};
    assert_body(&request, "{\"model\":\"gpt-4.1\",\"input\":[{\"type\":\"message\",\"role\":"
                          "\"assistant\",\"content\":\"I look.\"},{\"type\":\"function_call\","
                          "\"call_id\":\"1\",\"name\":\"find\",\"arguments\":\"{}\"}," RESULT
                          "," CONTEXT "]" END);
}

static void kept_items_go_back_byte_for_byte(void **state) {
    (void)state;
    struct provider_request request = {
        .agent = STR("m"), .messages = tool_turn, .message_count = ARRAY_LEN(tool_turn)};
    assert_body(&request, "{\"model\":\"gpt-4.1\",\"input\":[{\"type\":\"reasoning\","
                          "\"encrypted_content\":\"a/b==\"},{\"type\":\"function_call\","
                          "\"call_id\":\"1\"}," RESULT "," CONTEXT "]" END);
}

static void kept_bytes_that_are_no_items_are_passed_over(void **state) {
    (void)state;
    static const struct str kept[] = {STR_INIT("[{"), STR_INIT("{}"), STR_INIT("[]")};
    for (size_t i = 0; i < ARRAY_LEN(kept); i++) {
        struct message messages[] = {
            {.role = MESSAGE_OPAQUE,
             .agent = STR("m"),
             .tool = STR("openai-responses"),
             .text = kept[i]},
            {.role = MESSAGE_AGENT, .agent = STR("m"), .text = STR("hi")}};
        struct provider_request request = {
            .agent = STR("m"), .messages = messages, .message_count = 2};
        assert_body(&request, "{\"model\":\"gpt-4.1\",\"input\":[{\"type\":\"message\","
                              "\"role\":\"assistant\",\"content\":\"hi\"}]" END);
    }
}

static void a_call_id_of_64_bytes_stays_and_a_longer_one_is_hashed(void **state) {
    (void)state;
    char id[65], expected[1024];
    memset(id, 'x', sizeof id);
    for (size_t len = 64; len <= 65; len++) {
        const struct message messages[] = {
            {.role = MESSAGE_TOOL_CALL, .call_id = str_of(id, len), .tool = STR("f")},
            {.role = MESSAGE_TOOL_RESULT, .call_id = str_of(id, len), .text = STR("{}")}};
        struct provider_request request = {.messages = messages, .message_count = 2};
        struct str sent =
            len == 64 ? str_of(id, 64) : STR("tc_9537c5fdf120482f7d58d25e9ed583f52c02b");
        snprintf(expected, sizeof expected,
                 "{\"model\":\"gpt-4.1\",\"input\":[{\"type\":\"function_call\",\"call_id\":"
                 "\"" STR_FMT "\",\"name\":\"f\",\"arguments\":\"{}\"},{\"type\":"
                 "\"function_call_output\",\"call_id\":\"" STR_FMT "\",\"output\":\"{}\"}]" END,
                 STR_ARG(sent), STR_ARG(sent));
        assert_body(&request, expected);
    }
}

#define CLOSED "{\"type\":\"object\",\"additionalProperties\":false}"

static void tools_and_options_are_sent(void **state) {
    (void)state;
    const struct tool_offer tool = {STR("find"), STR("Look."), STR("{\"type\":\"object\"}")};
    struct model_options options = {
        .output_tokens_max = 100, .temperature = 0.5, .top_p = -1, .effort = STR("low")};
    struct provider_request request = {
        .tools = &tool, .tool_count = 1, .options = &options, .schema = STR(CLOSED)};
    assert_body(
        &request,
        "{\"model\":\"gpt-4.1\",\"input\":[],\"tools\":[{\"type\":\"function\",\"name\":"
        "\"find\",\"description\":\"Look.\",\"parameters\":{\"type\":\"object\"},\"strict\":"
        "false}],\"include\":[\"reasoning.encrypted_content\"],\"reasoning\":{\"effort\":"
        "\"low\",\"summary\":\"auto\"},\"max_output_tokens\":100,\"temperature\":0.5,"
        "\"text\":{\"format\":{\"type\":\"json_schema\",\"name\":\"reply\",\"strict\":true,"
        "\"schema\":" CLOSED "}}" END);
}

/* The word JSON must be in the input: the API does not look for it in the instructions. */
static void json_mode_is_sent_and_said(void **state) {
    (void)state;
    struct provider_request request = {.system = STR("Be brief."),
                                       .schema = STR("{\"type\":\"object\"}")};
    assert_body(&request,
                "{\"model\":\"gpt-4.1\",\"instructions\":\"Be brief.\",\"input\":[{\"type\":"
                "\"message\",\"role\":\"system\",\"content\":\"Your final answer is one JSON "
                "object alone, without any other text or markup.\"}],\"text\":{\"format\":{"
                "\"type\":\"json_object\"}}" END);
    request = (struct provider_request){.schema = STR(CLOSED), .schema_loose = true};
    assert_body(&request,
                "{\"model\":\"gpt-4.1\",\"input\":[],\"text\":{\"format\":{\"type\":"
                "\"json_schema\",\"name\":\"reply\",\"strict\":false,\"schema\":" CLOSED
                "}}" END);
}

static void what_a_caller_sets_is_sent_where_the_model_takes_it(void **state) {
    (void)state;
    static const struct str stop = STR_INIT("END");
    struct model_options options = {.output_tokens_max = 5,
                                    .temperature = 1.5,
                                    .top_p = 0.5,
                                    .stops = &stop,
                                    .stop_count = 1,
                                    .bends = true};
    struct provider_request request = {.options = &options};
    assert_body(&request, "{\"model\":\"gpt-4.1\",\"input\":[],\"max_output_tokens\":16,"
                          "\"temperature\":1.5,\"top_p\":0.5" END);
    request.model = STR("gpt-5-mini");
    assert_body(&request, "{\"model\":\"gpt-5-mini\",\"input\":[],\"include\":["
                          "\"reasoning.encrypted_content\"],\"max_output_tokens\":16" END);
}

static void a_choice_of_tools_is_sent(void **state) {
    (void)state;
    const struct tool_offer tool = {.name = STR("now")};
    struct provider_request request = {.tools = &tool, .tool_count = 1};
#define NOW                                                                                    \
    "{\"model\":\"gpt-4.1\",\"input\":[],\"tools\":[{\"type\":\"function\",\"name\":\"now\","  \
    "\"parameters\":{\"type\":\"object\",\"properties\":{}},\"strict\":false}],"
    request.tool_choice = STR(TOOL_CHOICE_REQUIRED);
    assert_body(&request, NOW "\"tool_choice\":\"required\"" END);
    request.tool_choice = STR("now");
    assert_body(&request, NOW "\"tool_choice\":{\"type\":\"function\",\"name\":\"now\"}" END);
}

static void only_models_that_reason_are_asked_for_their_reasoning(void **state) {
    (void)state;
    static const struct {
        struct str model;
        bool reasons;
    } cases[] = {
        {STR_INIT("o3-mini"), true},        {STR_INIT("o4-mini"), true},
        {STR_INIT("gpt-5"), true},          {STR_INIT("gpt-5-nano"), true},
        {STR_INIT("openai/gpt-5.1"), true}, {STR_INIT("gpt-5-chat-latest"), false},
        {STR_INIT("gpt-4.1"), false},       {STR_INIT("gpt-4o"), false},
        {STR_INIT("openai/gpt-4o"), false}, {STR_INIT("o"), false},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct provider_request request = {.model = cases[i].model};
        struct buf out;
        struct err e;
        buf_init(&out, KIB);
        assert_true(responses_dialect.body(&here, &request, &out, &e));
        bool asked = str_find(buf_str(&out), STR("encrypted_content")) < out.len;
        assert_int_equal(asked, cases[i].reasons);
        buf_done(&out);
    }
}

static void a_schema_that_is_no_object_is_refused(void **state) {
    (void)state;
    struct provider_request request = {.schema = STR("true")};
    struct buf out;
    struct err e;
    buf_init(&out, KIB);
    assert_false(responses_dialect.body(&here, &request, &out, &e));
    assert_int_equal(e.code, ERR_INVALID_ARGUMENT);
    buf_done(&out);
}

static void the_url_is_the_base_and_its_path(void **state) {
    (void)state;
    struct provider_request request = {0};
    struct buf out;
    buf_init(&out, KIB);
    responses_dialect.url(&here, &request, &out);
    assert_str(buf_str(&out), "https://api.openai.com/v1/responses");
    buf_done(&out);
}

static void a_body_stops_at_its_limit(void **state) {
    (void)state;
    struct provider_request request = {
        .agent = STR("m"), .messages = tool_turn, .message_count = ARRAY_LEN(tool_turn)};
    assert_stops_at_its_limit(&responses_dialect, &here, &request);
}

/* --- replies ------------------------------------------------------------------------------ */

static void put_call(struct buf *out, unsigned index) {
    buf_printf(out,
               "event: response.output_item.done\ndata: {\"output_index\":%u,\"item\":"
               "{\"type\":\"function_call\",\"call_id\":\"c%u\",\"name\":\"f\"}}\n\n",
               index, index);
}

static void calls_beyond_what_a_reply_can_hold_are_passed_over(void **state) {
    (void)state;
    assert_calls_are_bounded(&responses_dialect, put_call,
                             STR("event: response.completed\ndata: {\"response\":"
                                 "{\"model\":\"m\"}}\n\n"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_transcript_reads_as_expected),
        cmocka_unit_test(a_question_is_streamed_and_stored_nowhere),
        cmocka_unit_test(a_reply_without_kept_items_is_written_from_its_messages),
        cmocka_unit_test(kept_items_go_back_byte_for_byte),
        cmocka_unit_test(kept_bytes_that_are_no_items_are_passed_over),
        cmocka_unit_test(a_call_id_of_64_bytes_stays_and_a_longer_one_is_hashed),
        cmocka_unit_test(tools_and_options_are_sent),
        cmocka_unit_test(json_mode_is_sent_and_said),
        cmocka_unit_test(what_a_caller_sets_is_sent_where_the_model_takes_it),
        cmocka_unit_test(a_choice_of_tools_is_sent),
        cmocka_unit_test(only_models_that_reason_are_asked_for_their_reasoning),
        cmocka_unit_test(a_schema_that_is_no_object_is_refused),
        cmocka_unit_test(the_url_is_the_base_and_its_path),
        cmocka_unit_test(a_body_stops_at_its_limit),
        cmocka_unit_test(calls_beyond_what_a_reply_can_hold_are_passed_over),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
