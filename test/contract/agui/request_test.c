#include "contract/agui/request.h"

#include "helper/assert_str.h"

#include <stdio.h>

#define ASK "\"messages\":[{\"id\":\"1\",\"role\":\"user\",\"content\":\"hi\"}]"
#define HEAD "{\"threadId\":\"t\",\"runId\":\"r\","

static struct arena *arena;
static struct run_input input;
static struct guest_request request;

static bool parse(const char *body, struct err *e) {
    return run_input_parse(str_from(body), arena, &input, &request, e);
}

static void a_run_is_read(void **state) {
    (void)state;
    struct err e;
    assert_true(parse(HEAD "\"state\":{\"a\": 1},\"context\":[{\"description\":\"page\","
                           "\"value\":\"home\"}],\"forwardedProps\":{\"p\":2},\"tools\":[{"
                           "\"name\":\"w\",\"description\":\"d\"}]," ASK "}",
                      &e));
    assert_str(input.thread, "t");
    assert_str(input.run, "r");
    assert_str(request.session, "t");
    assert_str(request.text, "hi");
    assert_int_equal(request.message_count, 2);
    assert_str(request.messages[0].text,
               "page: home\nThe state of the application, as JSON: {\"a\":1}");
    assert_str(request.extras, "{\"metadata\":{\"state\":{\"a\": 1},\"context\":[{"
                               "\"description\":\"page\",\"value\":\"home\"}],"
                               "\"forwardedProps\":{\"p\":2}}}");
    assert_str(request.tools[0].name, "w");
    assert_true(request.streams);
    assert_false(request.decides);
}

static void an_empty_state_says_nothing(void **state) {
    (void)state;
    struct err e;
    assert_true(parse(HEAD "\"state\":{},\"context\":[],\"forwardedProps\":null," ASK "}", &e));
    assert_int_equal(request.message_count, 1);
    assert_str(request.extras, "");
}

static void an_answer_names_its_question(void **state) {
    (void)state;
    static const struct {
        const char *entry, *text;
        uint64_t run, seq;
    } cases[] = {
        {"{\"interruptId\":\"7-3\",\"status\":\"resolved\",\"payload\":\"yes\"}", "yes", 7, 3},
        {"{\"interruptId\":\"7-3\",\"status\":\"resolved\",\"payload\":{\"approved\": true}}",
         "{\"approved\":true}", 7, 3},
        {"{\"interruptId\":\"7-3\",\"status\":\"cancelled\"}", "{\"decision\":\"refuse\"}", 7,
         3},
        {"{\"interruptId\":\"x\",\"status\":\"resolved\",\"payload\":true}", "true", UINT64_MAX,
         UINT64_MAX},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char body[256];
        struct err e;
        snprintf(body, sizeof(body), HEAD "\"messages\":[],\"resume\":[%s]}", cases[i].entry);
        assert_true(parse(body, &e));
        assert_true(request.decides);
        assert_str(request.text, cases[i].text);
        assert_int_equal(request.approval_run, cases[i].run);
        assert_int_equal(request.approval_seq, cases[i].seq);
    }
}

static void what_is_wrong_is_named_with_its_place(void **state) {
    (void)state;
    static const struct {
        const char *body, *error;
    } cases[] = {
        {"7", "the body must be a RunAgentInput, not a number"},
        {"{}", "threadId must be a string, not nothing"},
        {"{\"threadId\":\"t\"}", "runId must be a string, not nothing"},
        {HEAD ASK ",\"tools\":[{}]}", "tools[0].name must be a string, not nothing"},
        {HEAD ASK ",\"tools\":7}", "tools must be an array, not a number"},
        {HEAD "\"messages\":[]}", "messages is empty; nothing is asked"},
        {HEAD "\"messages\":[],\"resume\":[{},{}]}",
         "resume must be an array of one answer: a run asks one question at a time"},
        {HEAD "\"messages\":[],\"resume\":[{}]}",
         "resume[0].interruptId must be a string, not nothing"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct err e;
        assert_false(parse(cases[i].body, &e));
        assert_str(err_text(&e), cases[i].error);
    }
}

/* Cut anywhere, a body is refused and never half taken. */
static void a_cut_body_is_refused(void **state) {
    (void)state;
    static const char body[] = HEAD ASK "}";
    for (size_t len = 0; len + 1 < sizeof(body); len++) {
        struct err e;
        assert_false(run_input_parse(str_of(body, len), arena, &input, &request, &e));
        assert_int_equal(e.code, ERR_MALFORMED);
    }
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
        cmocka_unit_test(a_run_is_read),
        cmocka_unit_test(an_empty_state_says_nothing),
        cmocka_unit_test(an_answer_names_its_question),
        cmocka_unit_test(what_is_wrong_is_named_with_its_place),
        cmocka_unit_test(a_cut_body_is_refused),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
