#include "helper/transcript.h"
#include "provider/asking.h"

#define MODEL .model = STR("claude-sonnet-4-5")
#define OPTIONS(...)                                                                           \
    .options = &(const struct model_options) {                                                 \
        .temperature = -1, .top_p = -1, __VA_ARGS__                                            \
    }
#define MARK "'cache_control':{'type':'ephemeral'}"
#define HELLO "[{'role':'user','content':[{'type':'text','text':'hello'," MARK "}]}]"

static const struct message hello[] = {M_USER("hello")};

static void transcripts_read_the_same_however_they_are_cut(void **state) {
    (void)state;
    transcripts_replay(&anthropic_dialect, "test/provider/transcripts/anthropic");
}

static void the_smallest_request_says_how_long_an_answer_may_be(void **state) {
    (void)state;
    assert_body(&anthropic_dialect, ASKING(hello, MODEL),
                "{'model':'claude-sonnet-4-5','max_tokens':8192,'stream':true,"
                "'messages':" HELLO "}");
}

static void instructions_and_tools_stand_before_the_conversation(void **state) {
    (void)state;
    static const struct tool_offer tools[] = {
        {STR_INIT("search"), STR_INIT("Finds."),
         STR_INIT("{\"type\":\"object\",\"properties\":{\"q\":{\"type\":\"string\"}}}")},
        {STR_INIT("clock"), STR_INIT(""), STR_INIT("")},
    };
    assert_body(
        &anthropic_dialect,
        ASKING(hello, MODEL, .system = STR("Be brief."), .tools = tools, .tool_count = 2),
        "{'model':'claude-sonnet-4-5','max_tokens':8192,'stream':true,"
        "'tools':[{'name':'search','description':'Finds.','input_schema':{'type':"
        "'object','properties':{'q':{'type':'string'}}}},"
        "{'name':'clock','input_schema':{'type':'object','properties':{}}," MARK "}],"
        "'system':[{'type':'text','text':'Be brief.'," MARK "}],"
        "'messages':" HELLO "}");
}

static void sides_take_turns(void **state) {
    (void)state;
    const struct message messages[] = {
        M_USER("one"),         M_USER("two"),          M_SAID("ann", "three"),
        M_SAID("ann", "four"), M_SAID("wally", "fix"), M_USER("three"),
    };
    assert_member(&anthropic_dialect, ASKING(messages, MODEL), "messages",
                  "[{'role':'user','content':[{'type':'text','text':'one'},"
                  "{'type':'text','text':'two'}]},"
                  "{'role':'assistant','content':[{'type':'text','text':'three'},"
                  "{'type':'text','text':'four'}]},"
                  "{'role':'user','content':[{'type':'text','text':'For context:\\n[wally] "
                  "said: fix'},{'type':'text','text':'three'," MARK "}]}]");
}

static void a_person_begins_and_ends(void **state) {
    (void)state;
    assert_member(
        &anthropic_dialect, ASKING(agent_at_both_ends, MODEL), "messages",
        "[{'role':'user','content':[{'type':'text','text':'(earlier messages are left out)'}]},"
        "{'role':'assistant','content':[{'type':'text','text':'I begin'}]},"
        "{'role':'user','content':[{'type':'text','text':'(no text)'}]},"
        "{'role':'assistant','content':[{'type':'text','text':'I end'}]},"
        "{'role':'user','content':[{'type':'text','text':'(go on)'}]}]");
}

static void results_follow_their_calls_in_one_message(void **state) {
    (void)state;
    const struct message messages[] = {
        M_USER("go"),
        M_SAID("ann", "I look."),
        M_CALL("ann", "c1", "find", "{\"q\": 1.50}"),
        M_CALL("ann", "c2", "read", "no json"),
        M_ERROR("c2", "{\"error\":\"no file\"}"),
        M_RESULT("c1", "{\"r\":1}"),
        M_RESULT("c9", "{\"orphan\":1}"),
    };
    assert_member(
        &anthropic_dialect, ASKING(messages, MODEL), "messages",
        "[{'role':'user','content':[{'type':'text','text':'go'}]},"
        "{'role':'assistant','content':[{'type':'text','text':'I look.'},"
        "{'type':'tool_use','id':'c1','name':'find','input':{'q': 1.50}},"
        "{'type':'tool_use','id':'c2','name':'read','input':{}}]},"
        "{'role':'user','content':["
        "{'type':'tool_result','tool_use_id':'c1','content':'{\\'r\\':1}'},"
        "{'type':'tool_result','tool_use_id':'c2','content':'{\\'error\\':\\'no file\\'}',"
        "'is_error':true," MARK "}]}]");
}

static void words_after_results_follow_them_in_one_message(void **state) {
    (void)state;
    const struct message messages[] = {M_USER("go"), M_CALL("ann", "c1", "find", "{}"),
                                       M_RESULT("c1", "{}"), M_USER("and?")};
    assert_member(&anthropic_dialect, ASKING(messages, MODEL), "messages",
                  "[{'role':'user','content':[{'type':'text','text':'go'}]},"
                  "{'role':'assistant','content':[{'type':'tool_use','id':'c1','name':'find',"
                  "'input':{}}]},"
                  "{'role':'user','content':[{'type':'tool_result','tool_use_id':'c1',"
                  "'content':'{}'},{'type':'text','text':'and?'," MARK "}]}]");
}

static void ids_of_other_vendors_are_made_to_fit(void **state) {
    (void)state;
    const struct message messages[] = {M_USER("go"),
                                       M_CALL("ann", "call:1.\xC3\xA9", "find", "{}"),
                                       M_RESULT("call:1.\xC3\xA9", "{}")};
    assert_member(&anthropic_dialect, ASKING(messages, MODEL), "messages",
                  "[{'role':'user','content':[{'type':'text','text':'go'}]},"
                  "{'role':'assistant','content':[{'type':'tool_use','id':'call_1___','name':"
                  "'find','input':{}}]},"
                  "{'role':'user','content':[{'type':'tool_result','tool_use_id':'call_1___',"
                  "'content':'{}'," MARK "}]}]");
}

/* Many servers name the calls of every reply `call_0`; this API refuses an id that recurs. */
static void ids_that_recur_are_told_apart(void **state) {
    (void)state;
    const struct message messages[] = {
        M_USER("go"),
        M_CALL("ann", "call_0", "find", "{}"),
        M_RESULT("call_0", "1"),
        M_CALL("ann", "call_0-2", "find", "{}"),
        M_RESULT("call_0-2", "2"),
        M_CALL("ann", "call_0", "find", "{}"),
        M_RESULT("call_0", "3"),
        M_OPAQUE("ann", "anthropic",
                 "[{\"type\":\"tool_use\",\"id\":\"toolu_1\",\"name\":"
                 "\"find\",\"input\":{}}]"),
        M_CALL("ann", "toolu_1", "find", "{}"),
        M_RESULT("toolu_1", "4"),
        M_CALL("ann", "toolu_1", "find", "{}"),
        M_RESULT("toolu_1", "5"),
        M_CALL("ann", "call:0", "find", "{}"), /* the same once its characters fit */
        M_RESULT("call:0", "6")};
    static const char *const ids[] = {"call_0",  "call_0-2",  "call_0-3",
                                      "toolu_1", "toolu_1-2", "call_0-4"};
    struct buf body;
    struct err e;
    struct json value = {.kind = JSON_NONE};
    buf_init(&body, 64 * KIB);
    assert_true(write_body_of(&anthropic_dialect, ASKING(messages, MODEL), &body, &e));
    assert_true(json_read(buf_str(&body), &value, &e));
    struct json said = json_find(value, STR("messages"));
    for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
        char result[2] = {(char)('1' + i), '\0'};
        struct json call = json_at(json_find(json_at(said, 2 * i + 1), STR("content")), 0);
        struct json answer = json_at(json_find(json_at(said, 2 * i + 2), STR("content")), 0);
        assert_true(json_is(json_find(call, STR("id")), str_from(ids[i])));
        assert_true(json_is(json_find(answer, STR("tool_use_id")), str_from(ids[i])));
        assert_true(json_is(json_find(answer, STR("content")), str_from(result)));
    }
    buf_done(&body);
}

#define THOUGHT                                                                                \
    "[{\"type\":\"thinking\",\"thinking\":\"h\\u006dm\",\"signature\":\"a+/=\"},"              \
    "{\"type\":\"tool_use\",\"id\":\"t:1\",\"name\":\"find\",\"input\":{\"q\": 1}}]"

static void thoughts_go_back_byte_for_byte(void **state) {
    (void)state;
    const struct message messages[] = {M_USER("go"), M_OPAQUE("ann", "anthropic", THOUGHT),
                                       M_CALL("ann", "t:1", "find", "{\"q\": 1}"),
                                       M_RESULT("t:1", "{}")};
    assert_member(&anthropic_dialect, ASKING(messages, MODEL), "messages",
                  "[{'role':'user','content':[{'type':'text','text':'go'}]},"
                  "{'role':'assistant','content':"
                  "[{'type':'thinking','thinking':'h\\u006dm','signature':'a+/='},"
                  "{'type':'tool_use','id':'t:1','name':'find','input':{'q': 1}}]},"
                  "{'role':'user','content':[{'type':'tool_result','tool_use_id':'t:1',"
                  "'content':'{}'," MARK "}]}]");
}

static void opaque_parts_that_cannot_go_back_are_left_out(void **state) {
    (void)state;
    static const char expected[] =
        "[{'role':'user','content':[{'type':'text','text':'go'}]},"
        "{'role':'assistant','content':[{'type':'tool_use','id':'t','name':'find','input':{}}"
        "]},{'role':'user','content':[{'type':'tool_result','tool_use_id':'t','content':'{}'"
        "," MARK "}]}]";
    const struct message of_another[] = {M_USER("go"), M_OPAQUE("ann", "gemini", THOUGHT),
                                         M_CALL("ann", "t", "find", "{}"), M_RESULT("t", "{}")};
    const struct message cut[] = {M_USER("go"), M_OPAQUE("ann", "anthropic", "[{\"type\":"),
                                  M_CALL("ann", "t", "find", "{}"), M_RESULT("t", "{}")};
    const struct message empty[] = {M_USER("go"), M_OPAQUE("ann", "anthropic", "[]"),
                                    M_CALL("ann", "t", "find", "{}"), M_RESULT("t", "{}")};
    assert_member(&anthropic_dialect, ASKING(of_another, MODEL), "messages", expected);
    assert_member(&anthropic_dialect, ASKING(cut, MODEL), "messages", expected);
    assert_member(&anthropic_dialect, ASKING(empty, MODEL), "messages", expected);
}

static void an_answer_can_be_given_a_shape(void **state) {
    (void)state;
    const struct str closed = STR("{\"type\":\"object\",\"additionalProperties\":false}");
    assert_member(&anthropic_dialect,
                  ASKING(hello, MODEL, .schema = closed, .schema_loose = true), "output_config",
                  "{'format':{'type':'json_schema','schema':{'type':'object',"
                  "'additionalProperties':false}}}");
    assert_member(&anthropic_dialect, ASKING(hello, MODEL, .schema = closed), "system", "");
}

static void a_shape_that_the_api_refuses_is_said_in_words(void **state) {
    (void)state;
    const struct str open = STR("{\"type\":\"object\",\"properties\":{}}");
    const struct provider_request *request =
        ASKING(hello, MODEL, .system = STR("Be brief."), .schema = open);
    assert_member(&anthropic_dialect, request, "output_config", "");
    assert_member(
        &anthropic_dialect, request, "system",
        "[{'type':'text','text':'Be brief.'},{'type':'text','text':'Your final answer "
        "is JSON alone, without any other text or markup, and follows this JSON "
        "Schema: {\\'type\\':\\'object\\',\\'properties\\':{}}'," MARK "}]");
    request = ASKING(hello, MODEL, .schema = STR("{\"type\":\"object\"}"));
    assert_member(&anthropic_dialect, request, "output_config", "");
    assert_member(&anthropic_dialect, request, "system",
                  "[{'type':'text','text':'Your final answer is one JSON object alone, without "
                  "any other text or markup.'," MARK "}]");
}

/* --- thinking and sampling ---------------------------------------------------------------- */

struct knobs {
    const char *model;
    struct model_options options;
    const char *expected; /* what stands between max_tokens and messages, and it */
};

static void assert_knobs(const struct knobs *knobs, size_t count) {
    for (size_t i = 0; i < count; i++) {
        struct buf body;
        buf_init(&body, KIB);
        buf_printf(&body, "{'model':'%s',%s'messages':" HELLO "}", knobs[i].model,
                   knobs[i].expected);
        buf_append_byte(&body, '\0');
        assert_body(
            &anthropic_dialect,
            ASKING(hello, .model = str_from(knobs[i].model), .options = &knobs[i].options),
            body.at);
        buf_done(&body);
    }
}

#define KNOBS(...)                                                                             \
    { .temperature = -1, .top_p = -1, __VA_ARGS__ }
#define EFFORT(text) .effort = STR_INIT(text)

static const struct str sequences[] = {STR_INIT("END"), STR_INIT(" \n"),
                                       STR_INIT("\n\nHuman:")};

static void what_a_caller_sets_is_sent_where_the_model_takes_it(void **state) {
    (void)state;
    static const struct knobs knobs[] = {
        {"m",
         {.temperature = 1.5,
          .top_p = 0.5,
          .top_k = 5,
          .seeded = true,
          .presence_penalty = 1,
          .stops = sequences,
          .stop_count = 3,
          .bends = true},
         "'max_tokens':8192,'stream':true,'temperature':1,'top_k':5,"
         "'stop_sequences':['END','\\n\\nHuman:'],"},
        {"m", KNOBS(.stops = &sequences[1], .stop_count = 1, .bends = true),
         "'max_tokens':8192,'stream':true,"},
        {"claude-sonnet-4-5",
         {.temperature = 0.5, .top_p = -1, .top_k = 5, .thinking_tokens = 1024, .bends = true},
         "'max_tokens':9216,'stream':true,'thinking':{'type':'enabled','budget_tokens':1024},"},
    };
    assert_knobs(knobs, ARRAY_LEN(knobs));
}

static void sampling_is_sent_where_it_is_taken(void **state) {
    (void)state;
    static const struct knobs knobs[] = {
        {"m",
         {.temperature = 0, .top_p = -1},
         "'max_tokens':8192,'stream':true,'temperature':0,"},
        {"m",
         {.temperature = -1, .top_p = 0.5},
         "'max_tokens':8192,'stream':true,'top_p':0.5,"},
        {"m",
         {.temperature = 0.25, .top_p = 0.5},
         "'max_tokens':8192,'stream':true,'temperature':0.25,"},
        {"m", KNOBS(.output_tokens_max = 77), "'max_tokens':77,'stream':true,"},
        {"m",
         {.temperature = 1, .top_p = 0.5, .thinking_tokens = 2000},
         "'max_tokens':10192,'stream':true,'thinking':{'type':'enabled','budget_tokens':2000}"
         ","},
        {"m",
         {.temperature = 1, .top_p = 0.95, .thinking_tokens = 2000},
         "'max_tokens':10192,'stream':true,'top_p':0.95,'thinking':{'type':'enabled',"
         "'budget_tokens':2000},"},
    };
    assert_knobs(knobs, ARRAY_LEN(knobs));
}

static void an_effort_is_a_budget_for_older_models(void **state) {
    (void)state;
#define ENABLED(tokens) "'thinking':{'type':'enabled','budget_tokens':" tokens "},"
    static const struct knobs knobs[] = {
        {"claude-sonnet-4-5", KNOBS(EFFORT("low")),
         "'max_tokens':10240,'stream':true," ENABLED("2048")},
        {"claude-opus-4-1-20250805", KNOBS(EFFORT("medium")),
         "'max_tokens':16384,'stream':true," ENABLED("8192")},
        {"claude-3-7-sonnet-latest", KNOBS(EFFORT("high")),
         "'max_tokens':24576,'stream':true," ENABLED("16384")},
        {"claude-haiku-4-5", KNOBS(EFFORT("high"), .output_tokens_max = 4000),
         "'max_tokens':4000,'stream':true," ENABLED("2000")},
        {"claude-haiku-4-5", KNOBS(EFFORT("high"), .output_tokens_max = 2000),
         "'max_tokens':2000,'stream':true,"},
        {"anthropic/claude-sonnet-4", KNOBS(EFFORT("low")),
         "'max_tokens':10240,'stream':true," ENABLED("2048")},
        {"anthropic/claude-3.7-sonnet", KNOBS(EFFORT("low")),
         "'max_tokens':10240,'stream':true," ENABLED("2048")},
        {"claude-opus-4@20250514", KNOBS(EFFORT("low")),
         "'max_tokens':10240,'stream':true," ENABLED("2048")},
        {"anothers-model", KNOBS(EFFORT("low")),
         "'max_tokens':10240,'stream':true," ENABLED("2048")},
    };
    assert_knobs(knobs, ARRAY_LEN(knobs));
#undef ENABLED
}

static void newer_models_get_the_effort_itself(void **state) {
    (void)state;
#define ADAPTIVE(effort)                                                                       \
    "'thinking':{'type':'adaptive','display':'summarized'},'output_config':{'effort':'" effort \
    "'},"
    static const struct knobs knobs[] = {
        {"claude-opus-4-7", KNOBS(EFFORT("high")),
         "'max_tokens':24576,'stream':true," ADAPTIVE("high")},
        {"claude-sonnet-4-6", KNOBS(EFFORT("low"), .output_tokens_max = 500),
         "'max_tokens':500,'stream':true," ADAPTIVE("low")},
        {"anthropic/claude-sonnet-5",
         {.temperature = 1, .top_p = -1, EFFORT("medium")},
         "'max_tokens':16384,'stream':true," ADAPTIVE("medium")},
        {"claude-opus-4-6", KNOBS(EFFORT("low"), .thinking_tokens = 4000),
         "'max_tokens':12192,'stream':true,'thinking':{'type':'enabled','budget_tokens':4000}"
         ","},
    };
    assert_knobs(knobs, ARRAY_LEN(knobs));
#undef ADAPTIVE
}

static void a_tool_round_begun_without_thinking_ends_without(void **state) {
    (void)state;
    static const char budget[] = "{'type':'enabled','budget_tokens':2000}";
    const struct message without[] = {M_USER("go"), M_CALL("ann", "t:1", "find", "{}"),
                                      M_RESULT("t:1", "{}")};
    const struct message with[] = {M_USER("go"),
                                   M_OPAQUE("ann", "anthropic", THOUGHT),
                                   M_CALL("ann", "t:1", "find", "{}"),
                                   M_RESULT("t:1", "{}"),
                                   M_CALL("ann", "t2", "find", "{}"),
                                   M_RESULT("t2", "{}")};
    const struct message over[] = {M_USER("go"), M_CALL("ann", "t:1", "find", "{}"),
                                   M_RESULT("t:1", "{}"), M_SAID("ann", "so"), M_USER("and?")};
    const struct message asked[] = {
        M_USER("go"),          M_CALL("ann", "t:1", "find", "{}"), M_RESULT("t:1", "{}"),
        M_SAID("wally", "hm"), M_CALL("ann", "t:2", "find", "{}"), M_RESULT("t:2", "{}"),
        M_USER("yes")};
    assert_member(&anthropic_dialect, ASKING(asked, MODEL, OPTIONS(.thinking_tokens = 2000)),
                  "thinking", "");
    assert_member(&anthropic_dialect, ASKING(without, MODEL, OPTIONS(.thinking_tokens = 2000)),
                  "thinking", "");
    assert_member(&anthropic_dialect, ASKING(with, MODEL, OPTIONS(.thinking_tokens = 2000)),
                  "thinking", budget);
    assert_member(&anthropic_dialect, ASKING(over, MODEL, OPTIONS(.thinking_tokens = 2000)),
                  "thinking", budget);
}

static void a_choice_of_tools_is_sent(void **state) {
    (void)state;
    static const struct tool_offer tool = {.name = STR_INIT("now")};
    assert_member(&anthropic_dialect,
                  ASKING(hello, MODEL, .tools = &tool, .tool_count = 1,
                         .tool_choice = STR(TOOL_CHOICE_REQUIRED)),
                  "tool_choice", "{'type':'any'}");
    assert_member(
        &anthropic_dialect,
        ASKING(hello, MODEL, .tools = &tool, .tool_count = 1, .tool_choice = STR("now")),
        "tool_choice", "{'type':'tool','name':'now'}");
}

/* "Thinking may not be enabled when tool_choice forces tool use." */
static void a_reply_that_must_call_a_tool_does_not_think(void **state) {
    (void)state;
    static const struct tool_offer tool = {.name = STR_INIT("now")};
    static const char *const models[] = {"claude-sonnet-4-5", "claude-opus-4-7"};
    static const struct model_options options[] = {
        {.temperature = -1, .top_p = -1, .effort = STR_INIT("high")},
        {.temperature = -1, .top_p = -1, .thinking_tokens = 2000}};
    for (size_t i = 0; i < ARRAY_LEN(models) * ARRAY_LEN(options); i++) {
        struct provider_request request =
            *ASKING(hello, .model = str_from(models[i % 2]), .tools = &tool, .tool_count = 1,
                    .tool_choice = STR(TOOL_CHOICE_REQUIRED), .options = &options[i / 2]);
        assert_member(&anthropic_dialect, &request, "tool_choice", "{'type':'any'}");
        assert_member(&anthropic_dialect, &request, "thinking", "");
        assert_member(&anthropic_dialect, &request, "max_tokens", "8192");
        request.tool_choice = STR_EMPTY;
        struct buf body;
        struct err e;
        struct json read = {.kind = JSON_NONE};
        buf_init(&body, BODY_MAX_BYTES);
        assert_true(write_body_of(&anthropic_dialect, &request, &body, &e));
        assert_true(json_read(buf_str(&body), &read, &e));
        assert_int_equal(json_find(read, STR("thinking")).kind, JSON_OBJECT);
        buf_done(&body);
    }
}

static void an_impossible_request_is_refused_with_the_fix(void **state) {
    (void)state;
    assert_refused(&anthropic_dialect, ASKING(hello, .model = STR_EMPTY),
                   "no model is named; set one, 'claude-sonnet-4-5' for example");
    assert_refused(&anthropic_dialect, ASKING(hello, MODEL, .schema = STR("[]")),
                   "the schema of 'the answer' is an array; write an object");
    static const struct tool_offer tool = {STR_INIT("t"), STR_INIT(""), STR_INIT("7")};
    assert_refused(&anthropic_dialect, ASKING(hello, MODEL, .tools = &tool, .tool_count = 1),
                   "the schema of 't' is a number; write an object");
    assert_refused(&anthropic_dialect, ASKING(hello, MODEL, OPTIONS(.thinking_tokens = 1023)),
                   "Anthropic's models think with 1024 tokens or more, not 1023");
    assert_refused(
        &anthropic_dialect,
        ASKING(hello, MODEL, OPTIONS(.thinking_tokens = 2000, .output_tokens_max = 2000)),
        "an answer of 2000 tokens has no room to think with 2000; Anthropic counts both "
        "together");
    assert_refused(&anthropic_dialect, ASKING(hello, MODEL, OPTIONS(.effort = STR("mild"))),
                   "effort 'mild' is not known to Anthropic's models; say low, medium or high");
}

/* --- where -------------------------------------------------------------------------------- */

static void the_base_may_name_the_version_or_not(void **state) {
    (void)state;
    assert_url(&anthropic_dialect, "https://api.anthropic.com", "", "m",
               "https://api.anthropic.com/v1/messages");
    assert_url(&anthropic_dialect, "https://host/anthropic/v1", "beta=true", "m",
               "https://host/anthropic/v1/messages?beta=true");
}

static void it_is_found_by_its_name_and_says_its_version(void **state) {
    (void)state;
    assert_ptr_equal(dialect_find(STR("anthropic")), &anthropic_dialect);
    assert_int_equal(anthropic_dialect.header_count, 1);
    assert_str(anthropic_dialect.headers[0].name, "anthropic-version");
    assert_str(anthropic_dialect.headers[0].value, "2023-06-01");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(transcripts_read_the_same_however_they_are_cut),
        cmocka_unit_test(the_smallest_request_says_how_long_an_answer_may_be),
        cmocka_unit_test(instructions_and_tools_stand_before_the_conversation),
        cmocka_unit_test(sides_take_turns),
        cmocka_unit_test(a_person_begins_and_ends),
        cmocka_unit_test(results_follow_their_calls_in_one_message),
        cmocka_unit_test(words_after_results_follow_them_in_one_message),
        cmocka_unit_test(ids_of_other_vendors_are_made_to_fit),
        cmocka_unit_test(ids_that_recur_are_told_apart),
        cmocka_unit_test(thoughts_go_back_byte_for_byte),
        cmocka_unit_test(opaque_parts_that_cannot_go_back_are_left_out),
        cmocka_unit_test(an_answer_can_be_given_a_shape),
        cmocka_unit_test(a_shape_that_the_api_refuses_is_said_in_words),
        cmocka_unit_test(what_a_caller_sets_is_sent_where_the_model_takes_it),
        cmocka_unit_test(sampling_is_sent_where_it_is_taken),
        cmocka_unit_test(an_effort_is_a_budget_for_older_models),
        cmocka_unit_test(newer_models_get_the_effort_itself),
        cmocka_unit_test(a_tool_round_begun_without_thinking_ends_without),
        cmocka_unit_test(a_choice_of_tools_is_sent),
        cmocka_unit_test(a_reply_that_must_call_a_tool_does_not_think),
        cmocka_unit_test(an_impossible_request_is_refused_with_the_fix),
        cmocka_unit_test(the_base_may_name_the_version_or_not),
        cmocka_unit_test(it_is_found_by_its_name_and_says_its_version),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
