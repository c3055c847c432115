/* What /invoke, /stream and /resume are asked, in every spelling. */
#include "contract/agentbreeder/request.h"

#include "base/buf.h"
#include "helper/assert_str.h"

static struct arena *arena;

static enum err_code ask(const char *body, const char *header, struct runtime_request *ret) {
    struct err e;
    struct str session = header ? str_from(header) : (struct str){NULL, 0};
    if (runtime_request_parse(str_from(body), session, true, arena, ret, &e)) return ERR_NONE;
    assert_true(err_text(&e).len > 0);
    return e.code;
}

static enum err_code resume(struct str body, struct resume_request *ret) {
    struct err e;
    return resume_request_parse(body, arena, ret, &e) ? ERR_NONE : e.code;
}

/* --- input -------------------------------------------------------------------------------- */

static const struct {
    const char *body, *text;
    bool wants_text;
} inputs[] = {
    {"{\"input\":\"a\"}", "a", true},
    {"{\"input\":\"\\u00e9\\n\"}", "é\n", true},
    {"{\"input_message\":\"a\",\"context\":{}}", "a", true},
    {"{\"input\":\"a\",\"input_message\":\"b\",\"messages\":[{\"content\":\"c\"}]}", "a", true},
    {"{\"messages\":[{\"content\":\"a\"},{\"content\":\"b\"}]}", "b", false},
    {"{\"messages\":[{\"content\":[{\"text\":\"a\"},{\"text\":\"b\"}]}]}", "a\n\nb", false},
    {"{\"input\":\"\"}", "", true}, /* K7 */
    {"{\"input\":{\"message\":\"a\",\"query\":\"b\"}}", "a\n\n{\"query\":\"b\"}", false},
    {"{\"input\":{\"message\":\"hi\",\"customer_tier\":\"gold\",\"order_id\": 77}}",
     "hi\n\n{\"customer_tier\":\"gold\",\"order_id\":77}", false},
    {"{\"input\":{\"query\":\"b\"}}", "b", false},
    {"{\"input\":{\"message\":\"\",\"text\":\"b\"}}", "b", false},
    {"{\"input\":{\"text\":\"a\"}}", "a", false},
    {"{\"input\":[{\"content\":\"a\"}]}", "a", false},
    {"{\"input\":[]}", "[]", false},
    {"{\"input\":[1, {\"a\":2}]}", "[1,{\"a\":2}]", false},
    {"{\"input\":{}}", "{}", false},
    {"{\"input\":{\"message\":\"\"}}", "{\"message\":\"\"}", false},
    {"{\"input\":{\"messages\":\"x\"}}", "{\"messages\":\"x\"}", false},
    {"{\"input\":[{\"content\":\"\"}]}", "", false},
    {"{\"input\":{\"messages\":[{\"content\":\"a\"}],\"tier\":\"gold\",\"query\":\"b\"}}",
     "a\n\n{\"tier\":\"gold\",\"query\":\"b\"}", false},
    {"{\"messages\":[{\"content\":\"a\"}],\"thread_id\":\"t\",\"config\":{}}", "a", false},
    {"{\"input\":{\"n\": 12345678901234567890.10, \"m\":[1e400]}}",
     "{\"n\":12345678901234567890.10,\"m\":[1e400]}", false},
};

static void the_text_of_a_turn_is_found_under_each_of_its_names(void **state) {
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(inputs); i++) {
        struct runtime_request request;
        assert_int_equal(ask(inputs[i].body, NULL, &request), ERR_NONE);
        assert_str(request.text, inputs[i].text);
        assert_int_equal(request.wants_text, inputs[i].wants_text);
    }
}

/* --- lists -------------------------------------------------------------------------------- */

#define CALL                                                                                   \
    "{\"role\":\"assistant\",\"content\":null,\"tool_calls\":[{\"id\":\"1\",\"function\":{"    \
    "\"name\":\"f\",\"arguments\":\"{}\"}}]},{\"role\":\"tool\",\"tool_call_id\":\"1\","       \
    "\"content\":\"r\"}"

static void a_list_brings_all_of_its_messages(void **state) {
    (void)state;
    static const char *const bodies[] = {
        "{\"input\":{\"messages\":[{\"role\":\"system\",\"content\":\"s\"},{\"role\":\"user\","
        "\"content\":\"a\"}," CALL ",{\"role\":\"user\",\"content\":\"b\"}]}}",
        "{\"messages\":[{\"role\":\"system\",\"content\":\"s\"},{\"role\":\"user\","
        "\"content\":\"a\"}," CALL ",{\"role\":\"user\",\"content\":\"b\"}]}",
        "{\"input\":[{\"role\":\"system\",\"content\":\"s\"},{\"role\":\"user\","
        "\"content\":\"a\"}," CALL ",{\"role\":\"user\",\"content\":\"b\"}]}",
    };
    static const enum message_role roles[] = {MESSAGE_SYSTEM, MESSAGE_USER, MESSAGE_TOOL_CALL,
                                              MESSAGE_TOOL_RESULT, MESSAGE_USER};
    for (size_t i = 0; i < ARRAY_LEN(bodies); i++) {
        struct runtime_request request;
        assert_int_equal(ask(bodies[i], NULL, &request), ERR_NONE);
        assert_str(request.text, "b");
        assert_int_equal(request.message_count, ARRAY_LEN(roles));
        for (size_t k = 0; k < ARRAY_LEN(roles); k++)
            assert_int_equal(request.messages[k].role, roles[k]);
    }
}

static void keys_beside_a_list_follow_its_last_user_message(void **state) {
    (void)state;
    struct runtime_request request;
    assert_int_equal(ask("{\"input\":{\"messages\":[{\"content\":\"a\"}," CALL
                         "],\"tier\":\"gold\"}}",
                         NULL, &request),
                     ERR_NONE);
    assert_str(request.text, "a\n\n{\"tier\":\"gold\"}");
    assert_int_equal(request.message_count, 3);
    assert_str(request.messages[0].text, "a\n\n{\"tier\":\"gold\"}");
}

static void an_input_that_is_not_a_list_brings_no_messages(void **state) {
    (void)state;
    struct runtime_request request;
    assert_int_equal(ask("{\"input\":\"a\"}", NULL, &request), ERR_NONE);
    assert_null(request.messages);
    assert_int_equal(ask("{\"input\":{\"message\":\"a\"}}", NULL, &request), ERR_NONE);
    assert_null(request.messages);
}

static void a_list_that_cannot_be_taken_is_refused_with_its_place(void **state) {
    (void)state;
    static const struct {
        const char *body, *says;
    } bad[] = {
        {"{\"messages\":[]}", "messages is empty; nothing is asked"},
        {"{\"input\":{\"messages\":[{\"content\":\"a\"},{\"role\":\"bot\",\"content\":\"b\"}]}"
         "}",
         "messages[1]: no role 'bot'; messages are of user, assistant, system or tool"},
        {"{\"messages\":[{\"content\":[{\"type\":\"text\",\"text\":\"a\"},{\"type\":\"x\"}]}]}",
         "messages[0].content[1]: a part of type 'x' cannot be taken here"},
        {"{\"messages\":[{\"content\":\"a\"},{\"role\":\"system\",\"content\":\"b\"}]}",
         "messages[1]: the last message is a system message; the last one is what is asked"},
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct runtime_request request;
        struct err e;
        assert_false(
            runtime_request_parse(str_from(bad[i].body), STR_EMPTY, true, arena, &request, &e));
        assert_int_equal(e.code, ERR_INVALID_ARGUMENT);
        assert_str(err_text(&e), bad[i].says);
    }
}

static void the_schema_of_the_answer_stands_in_the_config(void **state) {
    (void)state;
    struct runtime_request request;
    const char *none = "{\"input\":\"x\",\"config\":{\"output_schema\":null}}";
    const char *some = "{\"input\":\"x\",\"config\":{\"output_schema\":{\"type\":\"object\"}}}";
    const char *text = "{\"input\":\"x\",\"config\":{\"output_schema\":\"object\"}}";
    const char *wrong =
        "{\"input\":\"x\",\"config\":{\"output_schema\":{\"type\":\"objekt\"}}}";
    assert_int_equal(ask(none, NULL, &request), ERR_NONE);
    assert_int_equal(request.schema.len, 0);
    assert_int_equal(ask(some, NULL, &request), ERR_NONE);
    assert_str(request.schema, "{\"type\":\"object\"}");
    assert_int_equal(ask(text, NULL, &request), ERR_INVALID_ARGUMENT);
    assert_int_equal(ask(wrong, NULL, &request), ERR_INVALID_ARGUMENT);
}

/* --- sessions ----------------------------------------------------------------------------- */

static const struct {
    const char *body, *header, *session;
    bool used_thread_id;
} sessions[] = {
    {"{\"input\":\"x\",\"session_id\":\"a\",\"thread_id\":\"b\"}", "h", "a", false},
    {"{\"input\":\"x\",\"thread_id\":\"b\",\"config\":{\"thread_id\":\"c\"}}", "h", "b", true},
    {"{\"input\":\"x\",\"config\":{\"session_id\":\"d\",\"thread_id\":\"c\"}}", "h", "c", true},
    {"{\"input\":\"x\",\"config\":{\"session_id\":\"d\",\"configurable\":{\"thread_id\":\"e\"}}"
     "}",
     "h", "d", false},
    {"{\"input\":\"x\",\"config\":{\"configurable\":{\"thread_id\":\"e\"}}}", "h", "e", true},
    {"{\"input\":\"x\",\"session_id\":\"\",\"thread_id\":null}", "h", "h", false},
    {"{\"input\":\"x\"}", "h", "h", false},
};

static void the_session_comes_from_the_strongest_place_that_names_one(void **state) {
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(sessions); i++) {
        struct runtime_request request;
        assert_int_equal(ask(sessions[i].body, sessions[i].header, &request), ERR_NONE);
        assert_str(request.session, sessions[i].session);
        assert_int_equal(request.used_thread_id, sessions[i].used_thread_id);
    }
}

static void a_request_without_a_session_gets_a_new_one(void **state) {
    (void)state;
    struct runtime_request a, b;
    assert_int_equal(ask("{\"input\":\"x\"}", NULL, &a), ERR_NONE);
    assert_int_equal(ask("{\"input\":\"x\"}", "", &b), ERR_NONE);
    assert_int_equal(a.session.len, 36);
    assert_int_equal(a.session.at[14], '4'); /* a version 4 UUID */
    assert_int_equal(b.session.len, 36);
    assert_false(str_equal(a.session, b.session));
}

static void the_user_stands_in_the_config_or_is_anonymous(void **state) {
    (void)state;
    struct runtime_request request;
    const char *named = "{\"input\":\"x\",\"config\":{\"configurable\":{\"user_id\":\"ann\"}}}";
    const char *wrong = "{\"input\":\"x\",\"config\":{\"configurable\":{\"user_id\":5}}}";
    assert_int_equal(ask(named, NULL, &request), ERR_NONE);
    assert_str(request.user, "ann");
    assert_int_equal(ask(wrong, NULL, &request), ERR_NONE);
    assert_str(request.user, "anonymous");
}

/* --- refusals ----------------------------------------------------------------------------- */

static const struct {
    const char *body;
    enum err_code code;
} refused[] = {
    {"", ERR_MALFORMED},
    {"{", ERR_MALFORMED},
    {"{\"input\":\"x\"} x", ERR_MALFORMED},
    {"{}", ERR_MALFORMED},
    {"{\"messages\":5}", ERR_MALFORMED},
    {"[]", ERR_INVALID_ARGUMENT},
    {"\"x\"", ERR_INVALID_ARGUMENT},
    {"{\"input\":null}", ERR_INVALID_ARGUMENT},
    {"{\"input\":5}", ERR_INVALID_ARGUMENT},
    {"{\"input\":true}", ERR_INVALID_ARGUMENT},
    {"{\"input\":null,\"input_message\":\"x\"}", ERR_INVALID_ARGUMENT},
    {"{\"input\":\"x\",\"session_id\":5}", ERR_INVALID_ARGUMENT},
    {"{\"input\":\"x\",\"config\":{\"thread_id\":[]}}", ERR_INVALID_ARGUMENT},
    {"{\"input\":\"x\",\"config\":[]}", ERR_INVALID_ARGUMENT},
    {"{\"input\":\"x\",\"metadata\":\"y\"}", ERR_INVALID_ARGUMENT},
};

static void what_is_missing_is_malformed_and_what_is_wrong_is_invalid(void **state) {
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(refused); i++) {
        struct runtime_request request;
        assert_int_equal(ask(refused[i].body, NULL, &request), refused[i].code);
    }
}

/* --- /resume ------------------------------------------------------------------------------ */

static const struct {
    const char *body, *thread, *text;
    bool wants_text;
} resumes[] = {
    {"{\"thread_id\":\"t\",\"human_input\":\"yes\"}", "t", "yes", true},
    {"{\"thread_id\":\"\",\"human_input\":\"\"}", "", "", true},
    {"{\"thread_id\":\"t\",\"human_input\":null}", "t", "null", false},
    {"{\"thread_id\":\"t\",\"human_input\": {\"ok\" : true}}", "t", "{\"ok\":true}", false},
    {"{\"thread_id\":\"t\",\"human_input\": [ 1, 2.50 ]}", "t", "[1,2.50]", false},
    {"{\"thread_id\":\"t\",\"human_input\":false}", "t", "false", false},
};

static void a_human_may_answer_with_any_json(void **state) {
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(resumes); i++) {
        struct resume_request request;
        assert_int_equal(resume(str_from(resumes[i].body), &request), ERR_NONE);
        assert_str(request.thread, resumes[i].thread);
        assert_str(request.text, resumes[i].text);
        assert_int_equal(request.wants_text, resumes[i].wants_text);
    }
    struct resume_request request;
    struct str nul = STR("{\"thread_id\":\"t\",\"human_input\":\"a\\u0000b\"}");
    assert_int_equal(resume(nul, &request), ERR_NONE);
    assert_int_equal(request.text.len, 3);
}

static void an_answer_without_its_thread_or_its_words_is_refused(void **state) {
    (void)state;
    static const struct {
        const char *body;
        enum err_code code;
    } bad[] = {
        {"", ERR_MALFORMED},
        {"{", ERR_MALFORMED},
        {"[]", ERR_INVALID_ARGUMENT},
        {"{}", ERR_INVALID_ARGUMENT},
        {"{\"thread_id\":\"t\"}", ERR_INVALID_ARGUMENT},
        {"{\"human_input\":\"x\"}", ERR_INVALID_ARGUMENT},
        {"{\"thread_id\":5,\"human_input\":\"x\"}", ERR_INVALID_ARGUMENT},
        {"{\"thread_id\":null,\"human_input\":\"x\"}", ERR_INVALID_ARGUMENT},
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct resume_request request;
        assert_int_equal(resume(str_from(bad[i].body), &request), bad[i].code);
    }
}

static void every_truncation_is_refused(void **state) {
    (void)state;
    struct str whole = STR("{\"thread_id\":\"t\",\"human_input\":{\"a\":[1]}}");
    for (size_t cut = 0; cut < whole.len; cut++) {
        struct str part = exact_copy(str_head(whole, cut));
        struct resume_request request;
        assert_int_equal(resume(part, &request), ERR_MALFORMED);
        free((char *)part.at);
    }
}

static void a_request_beyond_the_arena_is_refused(void **state) {
    (void)state;
    const char *body = "{\"thread_id\":\"t\\n\",\"human_input\":{\"a\":\"0123456789\"}}";
    for (size_t limit = 0; limit < 12; limit++) {
        struct arena *small = arena_new(limit);
        struct resume_request request;
        struct err e;
        assert_false(resume_request_parse(str_from(body), small, &request, &e));
        assert_int_equal(e.code, ERR_RESOURCE_EXHAUSTED);
        arena_free(small);
    }
}

static void a_caller_may_name_the_agent(void **state) {
    (void)state;
    struct runtime_request request;
    assert_int_equal(ask("{\"input\":\"a\",\"agent\":\"wri\\u0074er\"}", NULL, &request),
                     ERR_NONE);
    assert_str(request.agent, "writer");
    assert_int_equal(ask("{\"input\":\"a\",\"agent\":null}", NULL, &request), ERR_NONE);
    assert_int_equal(request.agent.len, 0);
    assert_int_equal(ask("{\"input\":\"a\",\"agent\":1}", NULL, &request),
                     ERR_INVALID_ARGUMENT);
    assert_int_equal(ask("{\"input\":\"a\",\"agent\":\"x\",\"agent\":\"y\"}", NULL, &request),
                     ERR_MALFORMED);
}

/* --- fingerprints ------------------------------------------------------------------------- */

static const struct {
    const char *body, *header;
    bool same; /* as {"input":"a","session_id":"s"} */
} prints[] = {
    {"{ \"session_id\" : \"s\", \"input\":\"a\"}", NULL, true},
    {"{\"input\":\"a\"}", "s", true},
    {"{\"input\":\"a\",\"thread_id\":\"s\",\"metadata\":{\"m\":1}}", NULL, true},
    {"{\"input\":\"a\",\"session_id\":\"s\",\"config\":null}", NULL, true},
    {"{\"input\":\"a\",\"session_id\":\"s\",\"config\":{}}", NULL, false},
    {"{\"input\":\"b\",\"session_id\":\"s\"}", NULL, false},
    {"{\"input\":[\"a\"],\"session_id\":\"s\"}", NULL, false},
    {"{\"input\":\"a\",\"session_id\":\"t\"}", NULL, false},
    {"{\"input\":\"a\",\"session_id\":\"s\",\"agent\":null}", NULL, true},
    {"{\"input\":\"a\",\"session_id\":\"s\",\"agent\":\"x\"}", NULL, false},
    {"{\"input\":\"a\",\"session_id\":\"s\",\"context\":{\"x\":1}}", NULL, true}, /* not read */
    {"{\"input_message\":\"a\",\"session_id\":\"s\",\"context\":null}", NULL, true},
    {"{\"input_message\":\"a\",\"session_id\":\"s\",\"context\":{\"x\":1}}", NULL, false},
    {"{\"input\":\"a\"}", NULL, false},
};

static void a_fingerprint_is_of_what_is_asked_and_not_of_how(void **state) {
    (void)state;
    struct runtime_request first, request, again;
    assert_int_equal(ask("{\"input\":\"a\",\"session_id\":\"s\"}", NULL, &first), ERR_NONE);
    for (size_t i = 0; i < ARRAY_LEN(prints); i++) {
        assert_int_equal(ask(prints[i].body, prints[i].header, &request), ERR_NONE);
        assert_int_equal(str_equal(request.print, first.print), prints[i].same);
    }
    assert_int_equal(ask("{\"input\":\"a\"}", NULL, &again), ERR_NONE);
    assert_false(str_equal(again.session, request.session)); /* made up, twice */
    assert_true(str_equal(again.print, request.print));
    struct err e;
    assert_true(
        runtime_request_parse(STR("{\"input\":\"a\"}"), STR_EMPTY, false, arena, &again, &e));
    assert_int_equal(again.print.len, 0); /* it is not compared */
}

/* --- what is sent along ------------------------------------------------------------------- */

static void input_config_and_metadata_are_passed_on_whole(void **state) {
    static const struct {
        const char *body, *extras;
    } cases[] = {
        {"{\"input\":\"a\"}", ""},
        {"{\"input\":\"a\",\"config\":null,\"metadata\":null}", ""},
        {"{\"input\":\"a\",\"config\": { \"k\" : [1.50, \"x y\"] }}",
         "{\"config\":{\"k\":[1.50,\"x y\"]}}"},
        {"{\"input\":\"a\",\"metadata\":{\"m\":{}},\"config\":{\"thread_id\":\"t\"}}",
         "{\"config\":{\"thread_id\":\"t\"},\"metadata\":{\"m\":{}}}"},
        {"{\"input\":\"a\",\"context\":{\"not\":1}}", ""},
        {"{\"input_message\":\"a\",\"context\":{\"c\":1}}",
         "{\"metadata\":{\"context\":{\"c\":1}}}"},
        {"{\"input_message\":\"a\",\"context\":2,\"metadata\":{\"m\":1}}",
         "{\"metadata\":{\"m\":1,\"context\":2}}"},
        {"{\"input_message\":\"a\",\"context\":2,\"metadata\":{\"context\":1}}",
         "{\"metadata\":{\"context\":1}}"},
        {"{\"input\":{\"message\":\"hi\", \"n\":1.50}}",
         "{\"input\":{\"message\":\"hi\",\"n\":1.50}}"},
        {"{\"input\":[1, 2],\"config\":{\"k\":1}}", "{\"input\":[1,2],\"config\":{\"k\":1}}"},
        {"{\"messages\":[{\"role\":\"user\",\"content\":\"q\"}],\"metadata\":{\"m\":1}}",
         "{\"input\":{\"messages\":[{\"role\":\"user\",\"content\":\"q\"}]},"
         "\"metadata\":{\"m\":1}}"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct runtime_request request;
        assert_int_equal(ask(cases[i].body, NULL, &request), ERR_NONE);
        assert_str(request.extras, cases[i].extras);
    }
}

static int set_up(void **state) {
    (void)state;
    arena = arena_new(1 * MIB);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    arena_free(arena);
    return 0;
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_text_of_a_turn_is_found_under_each_of_its_names),
        cmocka_unit_test(a_list_brings_all_of_its_messages),
        cmocka_unit_test(keys_beside_a_list_follow_its_last_user_message),
        cmocka_unit_test(an_input_that_is_not_a_list_brings_no_messages),
        cmocka_unit_test(a_list_that_cannot_be_taken_is_refused_with_its_place),
        cmocka_unit_test(the_schema_of_the_answer_stands_in_the_config),
        cmocka_unit_test(the_session_comes_from_the_strongest_place_that_names_one),
        cmocka_unit_test(a_request_without_a_session_gets_a_new_one),
        cmocka_unit_test(the_user_stands_in_the_config_or_is_anonymous),
        cmocka_unit_test(what_is_missing_is_malformed_and_what_is_wrong_is_invalid),
        cmocka_unit_test(a_human_may_answer_with_any_json),
        cmocka_unit_test(an_answer_without_its_thread_or_its_words_is_refused),
        cmocka_unit_test(a_caller_may_name_the_agent),
        cmocka_unit_test(a_fingerprint_is_of_what_is_asked_and_not_of_how),
        cmocka_unit_test(input_config_and_metadata_are_passed_on_whole),
        cmocka_unit_test(every_truncation_is_refused),
        cmocka_unit_test(a_request_beyond_the_arena_is_refused),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
