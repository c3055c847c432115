/* What a human's words mean when a call waits for approval, and whether an edited call fits its
 * tool. */
#include "session/decision.h"

#include "helper/assert_str.h"
#include "schema/schema.h"
#include "session/pending_approvals.h"
#include "wire/json.h"

static void words_and_json_say_the_same_three_things(void **state) {
    (void)state;
    static const struct {
        const char *answer;
        enum decision_kind kind;
        const char *args, *reason;
    } rows[] = {
        {"yes", DECISION_APPROVE, "", ""},
        {" ok, go ahead ", DECISION_APPROVE, "", ""},
        {"👍🏽", DECISION_APPROVE, "", ""},
        {"true", DECISION_APPROVE, "", ""},
        {"\"yes\"", DECISION_APPROVE, "", ""},
        {"{\"approved\":true}", DECISION_APPROVE, "", ""},
        {"{\"decision\":\"approve\"}", DECISION_APPROVE, "", ""},
        {"{\"decision\":\"approve\",\"args\":{\"a\":1}}", DECISION_EDIT, "{\"a\":1}", ""},
        {"{\"decision\":\"edit\",\"args\":{}}", DECISION_EDIT, "{}", ""},
        {"{\"decision\":\"refuse\",\"reason\":\"late\"}", DECISION_REFUSE, "", "late"},
        {"{\"approved\":false}", DECISION_REFUSE, "", ""},
        {"No.", DECISION_REFUSE, "", ""},
        {"false", DECISION_REFUSE, "", ""},
        {"not today", DECISION_NONE, "", ""},
        {"what would this do?", DECISION_NONE, "", ""},
        {"Ok, how much does it cost?", DECISION_NONE, "", ""},
        {"{\"decision\":\"edit\"}", DECISION_NONE, "", ""},
        {"{\"decision\":\"maybe\",\"approved\":true}", DECISION_NONE, "", ""},
        {"{\"approved\":1}", DECISION_NONE, "", ""},
        {"{\"approved\":null}", DECISION_NONE, "", ""},
        {"{\"approve\":true}", DECISION_NONE, "", ""},
        {"{\"approved\":true,\"approved\":false}", DECISION_NONE, "", ""},
        {"{\"decision\":\"refuse\",\"decision\":\"approve\"}", DECISION_NONE, "", ""},
        {"[true]", DECISION_NONE, "", ""},
        {"null", DECISION_NONE, "", ""},
        {"1", DECISION_NONE, "", ""},
        {"", DECISION_NONE, "", ""},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct arena *arena = arena_new(64 * KIB);
        struct decision decision;
        struct err e;
        assert_true(decision_read(str_from(rows[i].answer), NULL, arena, &decision, &e));
        assert_int_equal(decision.kind, rows[i].kind);
        assert_str(decision.args, rows[i].args);
        assert_str(decision.reason, rows[i].reason);
        arena_free(arena);
    }
}

/* Why these words are not taken, or ""; "?" for words that decide nothing. */
static void assert_fits(const struct pending_question *asked, const char *answer,
                        const char *why) {
    struct err e;
    enum pending_found found = decision_fits(asked, str_from(answer), &e);
    bool undecided = *why == '?';
    assert_int_equal(found, undecided ? PENDING_UNDECIDED
                            : *why    ? PENDING_REFUSED
                                      : PENDING_TAKEN);
    if (undecided) assert_int_equal(e.code, ERR_FAILED_PRECONDITION);
    if (found != PENDING_REFUSED) return;
    assert_str(err_text(&e), why);
    assert_int_equal(e.code, ERR_INVALID_ARGUMENT);
}

static void an_edit_must_fit_the_tool_and_other_words_need_not(void **state) {
    (void)state;
    struct schema *schema;
    struct err e;
    assert_true(schema_read(STR("{\"type\":\"object\",\"required\":[\"eur\"],"
                                "\"properties\":{\"eur\":{\"type\":\"integer\"}}}"),
                            &schema, &e));
    struct pending_question call = {.tool = STR("pay"), .guards = STR("c1"), .schema = schema};
    assert_fits(&call, "yes", "");
    assert_fits(&call, "no, {", "?");
    assert_fits(&call, "is it expensive?", "?");
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
    struct pending_question question = {.tool = STR("pay"), .schema = schema};
    assert_fits(&question, "{\"decision\":\"edit\",\"args\":{\"eur\":\"x\"}}", "");
    assert_fits(&question, "is it expensive?", "");
    struct pending_question free_call = {.tool = STR("pay"), .guards = STR("c1")};
    assert_fits(&free_call, "{\"decision\":\"edit\",\"args\":{\"eur\":\"x\"}}", "");
    schema_free(schema);
}

/* On a wire where words may also be a new turn. */
static void a_plain_question_is_settled_by_a_yes_or_a_no_alone(void **state) {
    (void)state;
    static const struct str ja = STR_INIT("ja, gerne");
    const struct yes_no_words words = {.yes = {&ja, 1}};
    struct pending_question question = {.question = STR("Shall I?"), .words = &words};
    struct err e;
    assert_int_equal(decision_settles(&question, STR("Yes!"), &e), PENDING_TAKEN);
    assert_int_equal(decision_settles(&question, STR("no"), &e), PENDING_TAKEN);
    assert_int_equal(decision_settles(&question, STR("Ja gerne"), &e), PENDING_TAKEN);
    assert_int_equal(decision_settles(&question, STR("the blue one"), &e), PENDING_UNDECIDED);
    assert_int_equal(decision_settles(&question, STR(""), &e), PENDING_UNDECIDED);
}

static void the_same_decision_is_known_again(void **state) {
    (void)state;
    static const struct {
        const char *recorded, *answer;
        bool same;
    } rows[] = {
        {"{\"decision\":\"approve\"}", "yes", true},
        {"{\"decision\":\"approve\"}", "ok, go ahead", true},
        {"{\"decision\":\"approve\"}", "{\"approved\":true}", true},
        {"{\"decision\":\"approve\"}", "no", false},
        {"{\"decision\":\"approve\"}", "why?", false},
        {"{\"decision\":\"approve\"}", "{\"approved\":true,\"args\":{}}", false},
        {"{\"decision\":\"refuse\"}", "no", true},
        {"{\"decision\":\"refuse\",\"reason\":\"nobody answered in time\"}", "no", false},
        {"{\"decision\":\"refuse\",\"reason\":\"r\"}",
         "{\"decision\":\"refuse\",\"reason\":\"r\"}", true},
        {"{\"decision\":\"edit\",\"args\":{\"a\":1}}",
         "{ \"decision\":\"edit\", \"args\" : {\"a\": 1} }", true},
        {"{\"decision\":\"edit\",\"args\":{\"a\":1}}",
         "{\"decision\":\"edit\",\"args\":{\"a\":2}}", false},
        {"{\"answer\":\"the blue one\"}", "the blue one", true},
        {"{\"answer\":\"the blue one\"}", "the red one", false},
        {"{\"answer\":\"yes\"}", "yes", true},
        {"no json", "yes", false},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        bool same =
            decision_repeats(str_from(rows[i].recorded), str_from(rows[i].answer), NULL);
        if (same != rows[i].same) fail_msg("%s: %s", rows[i].recorded, rows[i].answer);
    }
}

static void a_question_is_asked_again_as_it_was(void **state) {
    (void)state;
    struct arena *arena = arena_new(KIB);
    struct event event;
    const struct pending_view view = {.run = 7,
                                      .seq = 5,
                                      .asked = {.agent = STR("a"),
                                                .question = STR("May I?"),
                                                .tool = STR("pay"),
                                                .args = STR("{}"),
                                                .guards = STR("c1")}};
    assert_true(decision_ask_again(&view, arena, &event));
    assert_int_equal(event.kind, EVENT_APPROVAL);
    assert_int_equal(event.seq, 5);
    assert_str(event.agent, "a");
    assert_str(event.approval.call_id, "approve-c1");
    assert_str(event.approval.question, "May I?");
    assert_str(event.approval.guards, "c1");
    arena_free(arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(words_and_json_say_the_same_three_things),
        cmocka_unit_test(an_edit_must_fit_the_tool_and_other_words_need_not),
        cmocka_unit_test(a_plain_question_is_settled_by_a_yes_or_a_no_alone),
        cmocka_unit_test(the_same_decision_is_known_again),
        cmocka_unit_test(a_question_is_asked_again_as_it_was),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
