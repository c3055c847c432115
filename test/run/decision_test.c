/* What a human's words mean when a call waits for him, and what of it fits the call. */
#include "run/decision.h"

#include "helper/assert_str.h"
#include "run/parking.h"
#include "wire/json.h"
#include "wire/schema.h"

static void words_and_json_say_the_same_three_things(void **state) {
    (void)state;
    static const struct {
        const char *answer;
        enum decision_kind kind;
        const char *args, *reason;
    } rows[] = {
        {"yes", DECISION_APPROVE, "", ""},
        {" ok, go ahead ", DECISION_APPROVE, "", ""},
        {"true", DECISION_APPROVE, "", ""},
        {"\"yes\"", DECISION_APPROVE, "", ""},
        {"{\"approved\":true}", DECISION_APPROVE, "", ""},
        {"{\"decision\":\"approve\"}", DECISION_APPROVE, "", ""},
        {"{\"decision\":\"approve\",\"args\":{\"a\":1}}", DECISION_EDIT, "{\"a\":1}", ""},
        {"{\"decision\":\"edit\",\"args\":{}}", DECISION_EDIT, "{}", ""},
        {"{\"decision\":\"edit\"}", DECISION_REFUSE, "", ""},
        {"{\"decision\":\"refuse\",\"reason\":\"late\"}", DECISION_REFUSE, "", "late"},
        {"{\"approved\":1}", DECISION_REFUSE, "", ""},
        {"not today", DECISION_REFUSE, "", "not today"},
        {"false", DECISION_REFUSE, "", ""},
        {"[true]", DECISION_REFUSE, "", ""},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct arena *arena = arena_new(64 * KIB);
        struct decision decision;
        struct err e;
        assert_true(decision_read(str_from(rows[i].answer), arena, &decision, &e));
        assert_int_equal(decision.kind, rows[i].kind);
        assert_str(decision.args, rows[i].args);
        assert_str(decision.reason, rows[i].reason);
        arena_free(arena);
    }
}

/* Why these words are not taken, or "". */
static void assert_fits(const struct parked_question *asked, const char *answer,
                        const char *why) {
    struct err e;
    bool fits = decision_fits(asked, str_from(answer), &e);
    assert_int_equal(fits, *why == '\0');
    if (!fits) assert_str(err_text(&e), why);
    if (!fits) assert_int_equal(e.code, ERR_INVALID_ARGUMENT);
}

static void an_edit_must_fit_the_tool_and_other_words_need_not(void **state) {
    (void)state;
    struct schema *schema;
    struct err e;
    assert_true(schema_read(STR("{\"type\":\"object\",\"required\":[\"eur\"],"
                                "\"properties\":{\"eur\":{\"type\":\"integer\"}}}"),
                            &schema, &e));
    struct parked_question call = {.tool = STR("pay"), .guards = STR("c1"), .schema = schema};
    assert_fits(&call, "yes", "");
    assert_fits(&call, "no, {", "");
    assert_fits(&call, "{\"decision\":\"edit\",\"args\":{\"eur\":5}}", "");
    assert_fits(&call, "{\"approved\":true,\"args\":{\"eur\":5}}", "");
    assert_fits(&call, "{\"decision\":\"refuse\",\"args\":{\"eur\":\"x\"}}", "");
    assert_fits(&call, "{\"decision\":\"edit\",\"args\":{\"eur\":\"x\"}}",
                "args do not fit the tool 'pay': /eur: expected an integer, got a string");
    assert_fits(&call, "{\"decision\":\"approve\",\"args\":{\"eur\":\"x\"}}",
                "args do not fit the tool 'pay': /eur: expected an integer, got a string");
    assert_fits(&call, " {\"approved\":true,\"args\":{}} ",
                "args do not fit the tool 'pay': the property 'eur' is missing");
    assert_fits(&call, "{\"decision\":\"edit\"}",
                "an edit needs args, the object to call the tool with");
    assert_fits(&call, "{\"decision\":\"edit\",\"args\":[5]}",
                "an edit needs args, the object to call the tool with");
    struct parked_question question = {.tool = STR("pay"), .schema = schema};
    assert_fits(&question, "{\"decision\":\"edit\",\"args\":{\"eur\":\"x\"}}", "");
    struct parked_question free_call = {.tool = STR("pay"), .guards = STR("c1")};
    assert_fits(&free_call, "{\"decision\":\"edit\",\"args\":{\"eur\":\"x\"}}", "");
    schema_free(schema);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_and_json_say_the_same_three_things),
        cmocka_unit_test(an_edit_must_fit_the_tool_and_other_words_need_not),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
