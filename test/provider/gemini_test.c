#include "helper/transcript.h"
#include "provider/asking.h"

#define OLDER .model = STR("gemini-2.5-flash")
#define NEWER .model = STR("gemini-3-pro-preview")
#define OPTIONS(...)                                                                           \
    .options = &(const struct model_options) {                                                 \
        .temperature = -1, .top_p = -1, __VA_ARGS__                                            \
    }
#define HELLO "'contents':[{'role':'user','parts':[{'text':'hello'}]}]"

static const struct message hello[] = {M_USER("hello")};

static const struct tool_offer tools[] = {
    {STR_INIT("search"), STR_INIT("Finds."),
     STR_INIT("{\"type\":\"object\",\"properties\":{\"q\":{\"type\":[\"string\",\"null\"]}}}")},
    {STR_INIT("clock"), STR_INIT("Tells."),
     STR_INIT("{\"type\":\"object\",\"properties\":{}}")},
    {STR_INIT("dice"), STR_INIT(""), STR_INIT("")},
};

static void transcripts_read_the_same_however_they_are_cut(void **state) {
    (void)state;
    transcripts_replay(&gemini_dialect, "test/provider/transcripts/gemini");
}

static void the_smallest_request_is_what_was_said(void **state) {
    (void)state;
    assert_body(&gemini_dialect, ASKING(hello, OLDER), "{'generationConfig':{}," HELLO "}");
}

static void instructions_and_tools_have_places_of_their_own(void **state) {
    (void)state;
    assert_body(
        &gemini_dialect,
        ASKING(hello, NEWER, .system = STR("Be brief."), .tools = tools, .tool_count = 3),
        "{'systemInstruction':{'parts':[{'text':'Be brief.'}]},"
        "'tools':[{'functionDeclarations':["
        "{'name':'search','description':'Finds.','parametersJsonSchema':{'type':'object',"
        "'properties':{'q':{'type':['string','null']}}}},"
        "{'name':'clock','description':'Tells.'},{'name':'dice','description':''}]}],"
        "'generationConfig':{}," HELLO "}");
}

static void turns_of_a_side_are_one_content(void **state) {
    (void)state;
    const struct message messages[] = {
        M_USER("one"),         M_USER("two"),          M_SAID("ann", "three"),
        M_SAID("ann", "four"), M_SAID("wally", "fix"), M_USER("three"),
    };
    assert_member(&gemini_dialect, ASKING(messages, OLDER), "contents",
                  "[{'role':'user','parts':[{'text':'one'},{'text':'two'}]},"
                  "{'role':'model','parts':[{'text':'three'},{'text':'four'}]},"
                  "{'role':'user','parts':[{'text':'For context:\\n[wally] said: fix'},"
                  "{'text':'three'}]}]");
}

static void a_person_begins_and_ends(void **state) {
    (void)state;
    assert_member(&gemini_dialect, ASKING(agent_at_both_ends, OLDER), "contents",
                  "[{'role':'user','parts':[{'text':'(earlier messages are left out)'}]},"
                  "{'role':'model','parts':[{'text':'I begin'}]},"
                  "{'role':'user','parts':[{'text':'(no text)'}]},"
                  "{'role':'model','parts':[{'text':'I end'}]},"
                  "{'role':'user','parts':[{'text':'(go on)'}]}]");
}

static void results_follow_their_calls_in_one_content(void **state) {
    (void)state;
    const struct message messages[] = {
        M_USER("go"),
        M_SAID("ann", "I look."),
        M_CALL("ann", "c1", "find", "{\"q\": 1.50}"),
        M_CALL("ann", "c2", "read", "no json"),
        M_RESULT("c2", "{\"r\":2}"),
        M_RESULT("c1", "{\"r\":1}"),
        M_RESULT("c9", "{\"orphan\":1}"),
        M_USER("and?"),
    };
    assert_member(&gemini_dialect, ASKING(messages, OLDER), "contents",
                  "[{'role':'user','parts':[{'text':'go'}]},"
                  "{'role':'model','parts':[{'text':'I look.'},"
                  "{'functionCall':{'name':'find','args':{'q': 1.50}}},"
                  "{'functionCall':{'name':'read','args':{}}}]},"
                  "{'role':'user','parts':["
                  "{'functionResponse':{'name':'find','response':{'r':1}}},"
                  "{'functionResponse':{'name':'read','response':{'r':2}}}]},"
                  "{'role':'user','parts':[{'text':'and?'}]}]");
}

static void a_result_is_an_object_and_says_when_it_is_an_error(void **state) {
    (void)state;
#define GONE_WRONG(response)                                                                   \
    "[{'role':'user','parts':[{'text':'go'}]},"                                                \
    "{'role':'model','parts':[{'functionCall':{'name':'f','args':{}}}]},"                      \
    "{'role':'user','parts':[{'functionResponse':{'name':'f','response':" response "}}]}]"
#define CALLED M_USER("go"), M_CALL("ann", "c", "f", "{}")
    const struct message error[] = {CALLED, M_ERROR("c", "{\"error\":\"no\"}")};
    const struct message other[] = {CALLED, M_ERROR("c", "{\"why\":1}")};
    const struct message words[] = {CALLED, M_ERROR("c", "no \"json\"")};
    const struct message list[] = {CALLED, M_RESULT("c", "[1]")};
    assert_member(&gemini_dialect, ASKING(error, OLDER), "contents",
                  GONE_WRONG("{'error':'no'}"));
    assert_member(&gemini_dialect, ASKING(other, OLDER), "contents",
                  GONE_WRONG("{'error':{'why':1}}"));
    assert_member(&gemini_dialect, ASKING(words, OLDER), "contents",
                  GONE_WRONG("{'error':'no \\'json\\''}"));
    assert_member(&gemini_dialect, ASKING(list, OLDER), "contents",
                  GONE_WRONG("{'output':'[1]'}"));
#undef CALLED
#undef GONE_WRONG
}

#define PARTS                                                                                  \
    "[{\"text\":\"h\\u006dm\",\"thought\":true},"                                              \
    "{\"functionCall\": {\"id\":\"a1\",\"name\":\"f\"},\"thoughtSignature\":\"Eq+/==\"},"      \
    "{\"functionCall\":{\"name\":\"f\",\"args\":{\"n\": 2}}}]"

static void signed_parts_go_back_byte_for_byte(void **state) {
    (void)state;
    const struct message messages[] = {
        M_USER("go"),
        M_OPAQUE("ann", "gemini", PARTS),
        M_CALL("ann", "a1", "f", "{}"),
        M_CALL("ann", "call-2", "f", "{\"n\":2}"),
        M_RESULT("a1", "{\"r\":1}"),
        M_RESULT("call-2", "{\"r\":2}"),
    };
    assert_member(&gemini_dialect, ASKING(messages, NEWER), "contents",
                  "[{'role':'user','parts':[{'text':'go'}]},"
                  "{'role':'model','parts':[{'text':'h\\u006dm','thought':true},"
                  "{'functionCall': {'id':'a1','name':'f'},'thoughtSignature':'Eq+/=='},"
                  "{'functionCall':{'name':'f','args':{'n': 2}}}]},"
                  "{'role':'user','parts':["
                  "{'functionResponse':{'id':'a1','name':'f','response':{'r':1}}},"
                  "{'functionResponse':{'name':'f','response':{'r':2}}}]}]");
}

static void calls_without_a_signature_get_the_one_that_fits_all(void **state) {
    (void)state;
    static const char expected[] =
        "[{'role':'user','parts':[{'text':'go'}]},"
        "{'role':'model','parts':[{'functionCall':{'name':'f','args':{}},'thoughtSignature':"
        "'skip_thought_signature_validator'},{'functionCall':{'name':'g','args':{}}}]},"
        "{'role':'user','parts':[{'functionResponse':{'name':'f','response':{}}},"
        "{'functionResponse':{'name':'g','response':{}}}]}]";
#define CALLED                                                                                 \
    M_CALL("ann", "c", "f", "{}"), M_CALL("ann", "d", "g", "{}"), M_RESULT("c", "{}"),         \
        M_RESULT("d", "{}")
    const struct message none[] = {M_USER("go"), CALLED};
    const struct message of_another[] = {M_USER("go"), M_OPAQUE("ann", "anthropic", PARTS),
                                         CALLED};
    const struct message cut[] = {M_USER("go"), M_OPAQUE("ann", "gemini", "[{\"text\":"),
                                  CALLED};
    assert_member(&gemini_dialect, ASKING(none, NEWER), "contents", expected);
    assert_member(&gemini_dialect, ASKING(of_another, NEWER), "contents", expected);
    assert_member(&gemini_dialect, ASKING(cut, NEWER), "contents", expected);
#undef CALLED
}

/* --- the settings of a request ------------------------------------------------------------ */

static void only_options_that_are_set_are_sent(void **state) {
    (void)state;
    assert_member(
        &gemini_dialect,
        ASKING(hello, OLDER, OPTIONS(.output_tokens_max = 77, .thinking_tokens = 2000)),
        "generationConfig",
        "{'maxOutputTokens':77,'thinkingConfig':{'includeThoughts':true,"
        "'thinkingBudget':2000}}");
    const struct model_options sampling = {.temperature = 0, .top_p = 0.5};
    assert_member(&gemini_dialect, ASKING(hello, OLDER, .options = &sampling),
                  "generationConfig", "{'temperature':0,'topP':0.5}");
    static const struct str stops[] = {STR_INIT("1"), STR_INIT("2"), STR_INIT("3"),
                                       STR_INIT("4"), STR_INIT("5"), STR_INIT("6")};
    struct model_options callers = {.temperature = -1,
                                    .top_p = -1,
                                    .top_k = 5,
                                    .seeded = true,
                                    .seed = -7,
                                    .presence_penalty = 2,
                                    .frequency_penalty = -2,
                                    .stops = stops,
                                    .stop_count = 6};
    assert_member(&gemini_dialect, ASKING(hello, OLDER, .options = &callers),
                  "generationConfig",
                  "{'topK':5,'seed':-7,'presencePenalty':1.99,'frequencyPenalty':-2,"
                  "'stopSequences':['1','2','3','4','5']}");
    callers = (struct model_options){
        .temperature = -1, .top_p = -1, .seeded = true, .seed = INT64_C(1) << 40};
    assert_member(&gemini_dialect, ASKING(hello, OLDER, .options = &callers),
                  "generationConfig", "{}");
}

static void an_effort_is_a_budget_or_a_level(void **state) {
    (void)state;
    static const struct {
        const char *model, *effort, *expected;
    } cases[] = {
        {"gemini-2.5-flash", "low", "'thinkingBudget':1024"},
        {"models/gemini-2.5-pro", "medium", "'thinkingBudget':8192"},
        {"gemini-2.5-flash", "high", "'thinkingBudget':24576"},
        {"gemini-3-pro-preview", "high", "'thinkingLevel':'high'"},
        {"models/gemini-flash-latest", "low", "'thinkingLevel':'low'"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct buf config;
        buf_init(&config, KIB);
        buf_printf(&config, "{'thinkingConfig':{'includeThoughts':true,%s}}",
                   cases[i].expected);
        buf_append_byte(&config, '\0');
        assert_member(&gemini_dialect,
                      ASKING(hello, .model = str_from(cases[i].model),
                             OPTIONS(.effort = str_from(cases[i].effort))),
                      "generationConfig", config.at);
        buf_done(&config);
    }
}

static void an_answer_can_be_given_a_shape(void **state) {
    (void)state;
    static const char shaped[] =
        "{'responseMimeType':'application/json','responseJsonSchema':{'type':'array'}}";
    const struct str schema = STR("{\"type\":\"array\"}");
    assert_member(&gemini_dialect, ASKING(hello, OLDER, .schema = schema), "generationConfig",
                  shaped);
    assert_member(&gemini_dialect,
                  ASKING(hello, NEWER, .schema = schema, .tools = tools, .tool_count = 1),
                  "generationConfig", shaped);
    assert_member(&gemini_dialect, ASKING(hello, OLDER, .schema = STR("{\"type\":\"object\"}")),
                  "generationConfig", "{'responseMimeType':'application/json'}");
}

/* "Function calling with a response mime type: 'application/json' is unsupported". */
static void an_older_model_with_tools_gets_the_shape_in_words(void **state) {
    (void)state;
    const struct str schema = STR("{\"type\":\"array\"}");
    const struct provider_request *request =
        ASKING(hello, OLDER, .schema = schema, .system = STR("Be brief."), .tools = tools,
               .tool_count = 1);
    assert_member(&gemini_dialect, request, "generationConfig", "{}");
    assert_member(&gemini_dialect, request, "systemInstruction",
                  "{'parts':[{'text':'Be brief.'},{'text':'Your final answer is JSON alone, "
                  "without any other text or markup, and follows this JSON Schema: "
                  "{\\'type\\':\\'array\\'}'}]}");
}

static void a_choice_of_tools_is_sent(void **state) {
    (void)state;
    assert_member(&gemini_dialect,
                  ASKING(hello, NEWER, .tools = tools, .tool_count = 1,
                         .tool_choice = STR(TOOL_CHOICE_REQUIRED)),
                  "toolConfig", "{'functionCallingConfig':{'mode':'ANY'}}");
    assert_member(
        &gemini_dialect,
        ASKING(hello, NEWER, .tools = tools, .tool_count = 1, .tool_choice = STR("now")),
        "toolConfig",
        "{'functionCallingConfig':{'mode':'ANY','allowedFunctionNames':['now']}}");
}

static void an_impossible_request_is_refused_with_the_fix(void **state) {
    (void)state;
    assert_refused(&gemini_dialect, ASKING(hello, .model = STR_EMPTY),
                   "no model is named; set one, 'gemini-2.5-flash' for example");
    assert_refused(&gemini_dialect, ASKING(hello, OLDER, .schema = STR("[]")),
                   "the schema of 'the answer' is an array; write an object");
    static const struct tool_offer tool = {STR_INIT("t"), STR_INIT(""), STR_INIT("7")};
    assert_refused(&gemini_dialect, ASKING(hello, OLDER, .tools = &tool, .tool_count = 1),
                   "the schema of 't' is a number; write an object");
    assert_refused(&gemini_dialect, ASKING(hello, OLDER, OPTIONS(.effort = STR("mild"))),
                   "effort 'mild' is not known to this Gemini model; say low, medium or "
                   "high");
}

/* --- where -------------------------------------------------------------------------------- */

static void the_model_stands_in_the_url(void **state) {
    (void)state;
    static const char base[] = "https://host/v1beta";
    assert_url(&gemini_dialect, base, "", "gemini-2.5-flash",
               "https://host/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse");
    assert_url(&gemini_dialect, base, "a=b", "models/gemini-2.5-flash",
               "https://host/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse&a=b");
    assert_url(&gemini_dialect, base, "", "tunedModels/mine",
               "https://host/v1beta/tunedModels/mine:streamGenerateContent?alt=sse");
    assert_url(&gemini_dialect, base, "", "a b?c#d",
               "https://host/v1beta/models/a%20b%3Fc%23d:streamGenerateContent?alt=sse");
}

static void it_is_found_by_its_name(void **state) {
    (void)state;
    assert_ptr_equal(dialect_find(STR("gemini")), &gemini_dialect);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(transcripts_read_the_same_however_they_are_cut),
        cmocka_unit_test(the_smallest_request_is_what_was_said),
        cmocka_unit_test(instructions_and_tools_have_places_of_their_own),
        cmocka_unit_test(turns_of_a_side_are_one_content),
        cmocka_unit_test(a_person_begins_and_ends),
        cmocka_unit_test(results_follow_their_calls_in_one_content),
        cmocka_unit_test(a_result_is_an_object_and_says_when_it_is_an_error),
        cmocka_unit_test(signed_parts_go_back_byte_for_byte),
        cmocka_unit_test(calls_without_a_signature_get_the_one_that_fits_all),
        cmocka_unit_test(only_options_that_are_set_are_sent),
        cmocka_unit_test(an_effort_is_a_budget_or_a_level),
        cmocka_unit_test(an_answer_can_be_given_a_shape),
        cmocka_unit_test(an_older_model_with_tools_gets_the_shape_in_words),
        cmocka_unit_test(a_choice_of_tools_is_sent),
        cmocka_unit_test(an_impossible_request_is_refused_with_the_fix),
        cmocka_unit_test(the_model_stands_in_the_url),
        cmocka_unit_test(it_is_found_by_its_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
