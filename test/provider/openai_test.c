#include "helper/assert_str.h"
#include "helper/transcript.h"
#include "provider/dialect_limits.h"

#include <stdio.h>

#define OPENAI "https://api.openai.com/v1"

static void every_transcript_reads_as_expected(void **state) {
    (void)state;
    transcripts_replay(&openai_dialect, "test/provider/transcripts/openai");
}

/* --- requests ----------------------------------------------------------------------------- */

static const struct dialect_settings here = {.base_url = STR_INIT("http://127.0.0.1:8000/v1"),
                                             .model = STR_INIT("small")};

static void assert_body_at(const struct dialect_settings *settings,
                           const struct provider_request *request, const char *expected,
                           const char *file, int line) {
    struct buf out;
    struct err e;
    struct json body;
    buf_init(&out, MIB);
    if (!openai_dialect.body(settings, request, &out, &e)) print_error("%s\n", e.text);
    assert_true(json_read(buf_str(&out), &body, &e));
    assert_str_at(buf_str(&out), expected, file, line);
    buf_done(&out);
}

#define assert_body(settings, request, expected)                                               \
    assert_body_at((settings), (request), (expected), __FILE__, __LINE__)

#define STREAM "\"stream\":true,\"stream_options\":{\"include_usage\":true}}"

static void a_question_names_its_model_and_streams(void **state) {
    (void)state;
    struct message said = {.role = MESSAGE_USER, .text = STR("say \"hi\"\n")};
    struct provider_request request = {.messages = &said, .message_count = 1};
    assert_body(&here, &request,
                "{\"model\":\"small\",\"messages\":[{\"role\":\"user\",\"content\":"
                "\"say \\\"hi\\\"\\n\"}]," STREAM);
    request.model = STR("large");
    request.system = STR("Be kind.");
    assert_body(&here, &request,
                "{\"model\":\"large\",\"messages\":[{\"role\":\"system\",\"content\":\"Be "
                "kind.\"},{\"role\":\"user\",\"content\":\"say \\\"hi\\\"\\n\"}]," STREAM);
}

static void calls_and_their_results_follow_each_other(void **state) {
    (void)state;
    const struct message messages[] = {
        {.role = MESSAGE_USER, .text = STR("go")},
        {.role = MESSAGE_AGENT, .agent = STR("m"), .text = STR("I look.")},
        {.role = MESSAGE_TOOL_CALL,
         .agent = STR("m"),
         .call_id = STR("1"),
         .tool = STR("find"),
         .text = STR("{\"q\":1}")},
        {.role = MESSAGE_TOOL_CALL, .agent = STR("m"), .call_id = STR("2"), .tool = STR("now")},
        {.role = MESSAGE_TOOL_RESULT, .call_id = STR("2"), .text = STR("{\"t\":5}")},
        {.role = MESSAGE_TOOL_RESULT, .call_id = STR("1"), .text = STR("{}")},
    };
    struct provider_request request = {
        .agent = STR("m"), .messages = messages, .message_count = ARRAY_LEN(messages)};
    assert_body(&here, &request,
                "{\"model\":\"small\",\"messages\":[{\"role\":\"user\",\"content\":\"go\"},"
                "{\"role\":\"assistant\",\"content\":\"I look.\",\"tool_calls\":["
                "{\"id\":\"1\",\"type\":\"function\",\"function\":{\"name\":\"find\","
                "\"arguments\":\"{\\\"q\\\":1}\"}},"
                "{\"id\":\"2\",\"type\":\"function\",\"function\":{\"name\":\"now\","
                "\"arguments\":\"{}\"}}]},"
                "{\"role\":\"tool\",\"tool_call_id\":\"1\",\"content\":\"{}\"},"
                "{\"role\":\"tool\",\"tool_call_id\":\"2\",\"content\":\"{\\\"t\\\":5}\"}]"
                "," STREAM);
}

/* crawbl.md 2.3; the digest is sha256sum's. */
static void a_long_call_id_is_the_same_short_one_on_call_and_result(void **state) {
    (void)state;
    struct str forty = STR("0123456789012345678901234567890123456789");
    struct str longer = STR("01234567890123456789012345678901234567890");
    const struct message messages[] = {
        {.role = MESSAGE_TOOL_CALL, .call_id = forty, .tool = STR("a"), .text = STR("{}")},
        {.role = MESSAGE_TOOL_CALL, .call_id = longer, .tool = STR("b"), .text = STR("{}")},
        {.role = MESSAGE_TOOL_RESULT, .call_id = forty, .text = STR("1")},
        {.role = MESSAGE_TOOL_RESULT, .call_id = longer, .text = STR("2")},
    };
    struct provider_request request = {.messages = messages,
                                       .message_count = ARRAY_LEN(messages)};
    assert_body(
        &here, &request,
        "{\"model\":\"small\",\"messages\":[{\"role\":\"assistant\",\"content\":null,"
        "\"tool_calls\":[{\"id\":\"0123456789012345678901234567890123456789\",\"type\":"
        "\"function\",\"function\":{\"name\":\"a\",\"arguments\":\"{}\"}},{\"id\":"
        "\"tc_79f002c49e81eed01bf23ce1b4f74d3d97b77\",\"type\":\"function\",\"function\":"
        "{\"name\":\"b\",\"arguments\":\"{}\"}}]},{\"role\":\"tool\",\"tool_call_id\":"
        "\"0123456789012345678901234567890123456789\",\"content\":\"1\"},{\"role\":\"tool\","
        "\"tool_call_id\":\"tc_79f002c49e81eed01bf23ce1b4f74d3d97b77\",\"content\":\"2\"}]"
        "," STREAM);
}

static void acts_of_other_agents_stay_apart_from_the_users_words(void **state) {
    (void)state;
    const struct message messages[] = {
        {.role = MESSAGE_TOOL_RESULT, .call_id = STR("gone"), .text = STR("{}")},
        {.role = MESSAGE_USER, .text = STR("go")},
        {.role = MESSAGE_AGENT, .agent = STR("wally"), .text = STR("found")},
        {.role = MESSAGE_USER, .text = STR("and?")},
    };
    struct provider_request request = {
        .agent = STR("m"), .messages = messages, .message_count = ARRAY_LEN(messages)};
    assert_body(&here, &request,
                "{\"model\":\"small\",\"messages\":[{\"role\":\"user\",\"content\":\"go\"},"
                "{\"role\":\"user\",\"content\":\"For context:\\n[wally] said: found\"},"
                "{\"role\":\"user\",\"content\":\"and?\"}]," STREAM);
    struct dialect_settings joining = here;
    joining.joins_users = true;
    assert_body(&joining, &request,
                "{\"model\":\"small\",\"messages\":[{\"role\":\"user\",\"content\":"
                "\"go\\n\\nFor context:\\n[wally] said: found\\n\\nand?\"}]," STREAM);
}

static struct message opaque_of(struct str bytes) {
    return (struct message){.role = MESSAGE_OPAQUE, .text = bytes, .tool = STR("openai")};
}

static void kept_reasoning_goes_back_with_its_reply(void **state) {
    (void)state;
    struct message messages[] = {
        opaque_of(STR("{\"reasoning_details\":[{\"type\":\"reasoning.encrypted\","
                      "\"data\":\"a/b==\"}],\"role\":\"system\"}")),
        {.role = MESSAGE_AGENT, .text = STR("hi")},
    };
    struct provider_request request = {.messages = messages, .message_count = 2};
    assert_body(&here, &request,
                "{\"model\":\"small\",\"messages\":[{\"role\":\"assistant\",\"content\":\"hi\","
                "\"reasoning_details\":[{\"type\":\"reasoning.encrypted\",\"data\":\"a/b==\"}]"
                "}]," STREAM);
    messages[0] = opaque_of(STR("{\"reasoning_content\":\"hm\",\"reasoning_details\":7}"));
    assert_body(&here, &request,
                "{\"model\":\"small\",\"messages\":[{\"role\":\"assistant\",\"content\":\"hi\","
                "\"reasoning_content\":\"hm\"}]," STREAM);
    messages[0] = opaque_of(STR("{\"reasoning_con"));
    assert_body(&here, &request,
                "{\"model\":\"small\",\"messages\":[{\"role\":\"assistant\",\"content\":\"hi\""
                "}]," STREAM);
}

static void tools_are_offered_with_their_schemas(void **state) {
    (void)state;
    const struct tool_offer tools[] = {
        {STR("find"), STR("Look for it."),
         STR("{\"type\":\"object\",\"properties\":{\"q\":{\"type\":\"string\"}}}")},
        {.name = STR("now")},
    };
    struct provider_request request = {.tools = tools, .tool_count = 2};
    assert_body(&here, &request,
                "{\"model\":\"small\",\"messages\":[],\"tools\":[{\"type\":\"function\","
                "\"function\":{\"name\":\"find\",\"description\":\"Look for it.\","
                "\"parameters\":{\"type\":\"object\",\"properties\":{\"q\":{\"type\":"
                "\"string\"}}}}},{\"type\":\"function\",\"function\":{\"name\":\"now\","
                "\"parameters\":{\"type\":\"object\",\"properties\":{}}}}]," STREAM);
}

static void a_choice_of_tools_is_sent(void **state) {
    (void)state;
    static const struct tool_offer tool = {.name = STR_INIT("now")};
    struct provider_request request = {.tools = &tool, .tool_count = 1};
#define NOW                                                                                    \
    "{\"model\":\"small\",\"messages\":[],\"tools\":[{\"type\":\"function\",\"function\":{"    \
    "\"name\":\"now\",\"parameters\":{\"type\":\"object\",\"properties\":{}}}}],"
    request.tool_choice = STR(TOOL_CHOICE_REQUIRED);
    assert_body(&here, &request, NOW "\"tool_choice\":\"required\"," STREAM);
    request.tool_choice = STR("now");
    assert_body(&here, &request,
                NOW "\"tool_choice\":{\"type\":\"function\",\"function\":{\"name\":"
                    "\"now\"}}," STREAM);
}

static void a_schema_that_is_no_object_is_refused(void **state) {
    (void)state;
    static const struct {
        struct str schema;
        const char *error;
    } cases[] = {
        {STR_INIT("[]"), "the schema of 'find' is an array; write an object"},
        {STR_INIT("{"), "the schema of 'find': JSON 1:2 (byte 1): "},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct tool_offer tool = {.name = STR("find"), .parameters = cases[i].schema};
        struct provider_request request = {.tools = &tool, .tool_count = 1};
        struct buf out;
        struct err e;
        buf_init(&out, KIB);
        assert_false(openai_dialect.body(&here, &request, &out, &e));
        assert_int_equal(e.code, ERR_INVALID_ARGUMENT);
        assert_true(str_starts(err_text(&e), str_from(cases[i].error)));
        buf_done(&out);
    }
}

#define CLOSED "{\"type\":\"object\",\"additionalProperties\":false}"

static void options_that_are_set_are_sent(void **state) {
    (void)state;
    struct model_options options = MODEL_OPTIONS_NONE;
    struct provider_request request = {.options = &options};
    assert_body(&here, &request, "{\"model\":\"small\",\"messages\":[]," STREAM);
    options = (struct model_options){.output_tokens_max = 100,
                                     .temperature = 0,
                                     .top_p = 0.9,
                                     .effort = STR("low"),
                                     .thinking_tokens = 2000};
    request.schema = STR(CLOSED);
    assert_body(&here, &request,
                "{\"model\":\"small\",\"messages\":[],\"max_tokens\":100,\"temperature\":0,"
                "\"top_p\":0.9,\"reasoning_effort\":\"low\",\"response_format\":{\"type\":"
                "\"json_schema\",\"json_schema\":{\"name\":\"reply\",\"strict\":true,"
                "\"schema\":" CLOSED "}}," STREAM);
}

static void a_schema_is_strict_where_it_can_be(void **state) {
    (void)state;
    struct provider_request request = {.schema = STR(CLOSED), .schema_loose = true};
    assert_body(&here, &request,
                "{\"model\":\"small\",\"messages\":[],\"response_format\":{\"type\":"
                "\"json_schema\",\"json_schema\":{\"name\":\"reply\",\"strict\":false,"
                "\"schema\":" CLOSED "}}," STREAM);
    request = (struct provider_request){.schema = STR("{\"type\":\"object\",\"not\":{}}")};
    assert_body(&here, &request,
                "{\"model\":\"small\",\"messages\":[],\"response_format\":{\"type\":"
                "\"json_schema\",\"json_schema\":{\"name\":\"reply\",\"strict\":false,"
                "\"schema\":{\"type\":\"object\",\"not\":{}}}}," STREAM);
}

/* OpenAI refuses JSON mode unless the word JSON is said, and a schema that is no object. */
static void what_the_api_has_no_schema_for_is_said_in_words(void **state) {
    (void)state;
    struct provider_request request = {.system = STR("Be brief."),
                                       .schema = STR("{\"type\":\"object\"}")};
    assert_body(
        &here, &request,
        "{\"model\":\"small\",\"messages\":[{\"role\":\"system\",\"content\":\"Be "
        "brief.\\n\\nYour final answer is one JSON object alone, without any other text "
        "or markup.\"}],\"response_format\":{\"type\":\"json_object\"}," STREAM);
    request = (struct provider_request){.schema = STR("{\"type\":\"array\"}")};
    assert_body(&here, &request,
                "{\"model\":\"small\",\"messages\":[{\"role\":\"system\",\"content\":\"Your "
                "final answer is JSON alone, without any other text or markup, and follows "
                "this JSON Schema: {\\\"type\\\":\\\"array\\\"}\"}]," STREAM);
}

static const struct str two_stops[] = {STR_INIT("END"), STR_INIT("\n")};
static const struct model_options callers = {.temperature = 1.5,
                                             .top_p = 0.5,
                                             .presence_penalty = -1,
                                             .frequency_penalty = 0.25,
                                             .top_k = 5,
                                             .seeded = true,
                                             .seed = 42,
                                             .stops = two_stops,
                                             .stop_count = 2,
                                             .bends = true};

static void what_a_caller_sets_is_sent_where_the_model_takes_it(void **state) {
    (void)state;
    struct dialect_settings official = {.base_url = STR(OPENAI)};
    struct provider_request request = {.options = &callers, .model = STR("gpt-4.1")};
#define SAMPLING                                                                               \
    "\"temperature\":1.5,\"top_p\":0.5,\"presence_penalty\":-1,\"frequency_penalty\":0.25,"    \
    "\"stop\":[\"END\",\"\\n\"],\"seed\":42," STREAM
    assert_body(&official, &request, "{\"model\":\"gpt-4.1\",\"messages\":[]," SAMPLING);
    request.model = STR("o3-mini");
    assert_body(&official, &request,
                "{\"model\":\"o3-mini\",\"messages\":[],\"seed\":42," STREAM);
    assert_body(&here, &request, "{\"model\":\"o3-mini\",\"messages\":[]," SAMPLING);
    struct model_options own = callers; /* an operator's own settings are sent as they are */
    own.bends = false;
    request.options = &own;
    assert_body(&official, &request, "{\"model\":\"o3-mini\",\"messages\":[]," SAMPLING);
}

static void the_limit_of_a_reply_is_named_as_its_server_knows_it(void **state) {
    (void)state;
    static const struct {
        struct str base_url;
        const char *key;
    } cases[] = {
        {STR_INIT(OPENAI), "max_completion_tokens"},
        {STR_INIT("https://API.openai.com:443/v1"), "max_completion_tokens"},
        {STR_INIT("https://me.openai.azure.com/openai/v1"), "max_completion_tokens"},
        {STR_INIT("https://api.openai.com.example.com/v1"), "max_tokens"},
        {STR_INIT("https://openai.azure.com/v1"), "max_tokens"},
        {STR_INIT("https://openrouter.ai/api/v1"), "max_tokens"},
        {STR_INIT("http://localhost:11434/v1"), "max_tokens"},
        {STR_INIT(""), "max_tokens"},
    };
    struct model_options options = MODEL_OPTIONS_NONE;
    options.output_tokens_max = 5;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct dialect_settings settings = {.base_url = cases[i].base_url, .model = STR("m")};
        struct provider_request request = {.options = &options};
        char expected[200];
        snprintf(expected, sizeof expected, "{\"model\":\"m\",\"messages\":[],\"%s\":5," STREAM,
                 cases[i].key);
        assert_body(&settings, &request, expected);
    }
}

static void openrouter_gets_the_budget_of_reasoning(void **state) {
    (void)state;
    struct dialect_settings settings = {.base_url = STR("https://openrouter.ai/api/v1")};
    struct model_options options = MODEL_OPTIONS_NONE;
    options.thinking_tokens = 2000;
    options.effort = STR("high");
    struct provider_request request = {.model = STR("a/b"), .options = &options};
    assert_body(&settings, &request,
                "{\"model\":\"a/b\",\"messages\":[],\"reasoning\":{\"max_tokens\":2000}"
                "," STREAM);
}

static void the_url_keeps_its_query(void **state) {
    (void)state;
    struct provider_request request = {0};
    struct buf out;
    buf_init(&out, KIB);
    openai_dialect.url(&here, &request, &out);
    assert_str(buf_str(&out), "http://127.0.0.1:8000/v1/chat/completions");
    buf_clear(&out);
    struct dialect_settings azure = {
        .base_url = STR("https://me.openai.azure.com/openai/deployments/mini"),
        .query = STR("api-version=2024-10-21")};
    openai_dialect.url(&azure, &request, &out);
    assert_str(buf_str(&out), "https://me.openai.azure.com/openai/deployments/mini/chat/"
                              "completions?api-version=2024-10-21");
    buf_done(&out);
}

static void a_body_stops_at_its_limit(void **state) {
    (void)state;
    const struct message messages[] = {{.role = MESSAGE_USER, .text = STR("one")},
                                       {.role = MESSAGE_USER, .text = STR("two")}};
    struct provider_request request = {.messages = messages, .message_count = 2};
    assert_stops_at_its_limit(&openai_dialect, &here, &request);
}

/* --- replies ------------------------------------------------------------------------------ */

static void put_call(struct buf *out, unsigned index) {
    buf_printf(out,
               "data: {\"choices\":[{\"delta\":{\"tool_calls\":[{\"index\":%u,\"id\":"
               "\"c%u\",\"function\":{\"name\":\"f\"}}]}}]}\n\n",
               index, index);
}

static void calls_beyond_what_a_reply_can_hold_are_passed_over(void **state) {
    (void)state;
    assert_calls_are_bounded(&openai_dialect, put_call,
                             STR("data: {\"model\":\"m\"}\n\ndata: [DONE]\n\n"));
}

static void a_long_refusal_is_shown_by_its_beginning(void **state) {
    (void)state;
    struct buf stream, out;
    buf_init(&stream, 64 * KIB);
    buf_init(&out, 64 * KIB);
    for (unsigned i = 0; i < 100; i++)
        buf_append(&stream,
                   STR("data: {\"choices\":[{\"delta\":{\"refusal\":\"I will not. \"}}]}\n\n"));
    buf_append(&stream, STR("data: [DONE]\n\n"));
    transcript_record(&openai_dialect, buf_str(&stream), 7, &out);
    assert_true(str_starts(buf_str(&out),
                           STR("failed MODEL_REFUSED PERMISSION_DENIED \"the model refused "
                               "to answer: I will not. I will not. ")));
    assert_true(out.len < 480);
    buf_done(&stream);
    buf_done(&out);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_transcript_reads_as_expected),
        cmocka_unit_test(a_question_names_its_model_and_streams),
        cmocka_unit_test(calls_and_their_results_follow_each_other),
        cmocka_unit_test(a_long_call_id_is_the_same_short_one_on_call_and_result),
        cmocka_unit_test(acts_of_other_agents_stay_apart_from_the_users_words),
        cmocka_unit_test(kept_reasoning_goes_back_with_its_reply),
        cmocka_unit_test(tools_are_offered_with_their_schemas),
        cmocka_unit_test(a_choice_of_tools_is_sent),
        cmocka_unit_test(a_schema_that_is_no_object_is_refused),
        cmocka_unit_test(options_that_are_set_are_sent),
        cmocka_unit_test(a_schema_is_strict_where_it_can_be),
        cmocka_unit_test(what_the_api_has_no_schema_for_is_said_in_words),
        cmocka_unit_test(what_a_caller_sets_is_sent_where_the_model_takes_it),
        cmocka_unit_test(the_limit_of_a_reply_is_named_as_its_server_knows_it),
        cmocka_unit_test(openrouter_gets_the_budget_of_reasoning),
        cmocka_unit_test(the_url_keeps_its_query),
        cmocka_unit_test(a_body_stops_at_its_limit),
        cmocka_unit_test(calls_beyond_what_a_reply_can_hold_are_passed_over),
        cmocka_unit_test(a_long_refusal_is_shown_by_its_beginning),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
