#include "guardrail/guardrail.h"

#include "helper/assert_str.h"

static void a_rule_that_cannot_work_is_refused_with_the_reason(void **state) {
    (void)state;
    static const struct {
        struct guardrail_rule rule;
        const char *reason;
    } cases[] = {
        {{.pattern = STR_INIT("")}, "the pattern is empty"},
        {{.pattern = STR_INIT("a(b")}, "byte 3: missing closing parenthesis"},
        {{.pattern = STR_INIT("a\xFF")}, "wrong at byte"},
        {{.pattern = STR_INIT("x\\Gy")}, "\\G depends on where a search begins"},
        {{.pattern = STR_INIT("x\\Ky")}, "\\K depends on where a search begins"},
        {{.pattern = STR_INIT("a(*SKIP)b")}, "a verb"},
        {{.pattern = STR_INIT("(?<!a{300})b")}, "more than 255 characters"},
        {{.pattern = STR_INIT("a"), .replacement = STR_INIT("$1")}, "the group '1'"},
        {{.pattern = STR_INIT("a"), .replacement = STR_INIT("x${who}")}, "the group 'who'"},
        {{.pattern = STR_INIT("a"), .replacement = STR_INIT("\xFF")}, "is not UTF-8"},
        {{.kind = GUARDRAIL_KEYWORD, .pattern = STR_INIT(" , ,")}, "at least one keyword"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct guardrail *guardrail = NULL;
        struct err e;
        assert_false(guardrail_new(&cases[i].rule, &guardrail, &e));
        assert_int_equal(e.code, ERR_INVALID_ARGUMENT);
        assert_true(str_find(err_text(&e), str_from(cases[i].reason)) < err_text(&e).len);
        assert_null(guardrail);
    }
}

static void a_backslash_hides_what_follows_it(void **state) {
    (void)state;
    static const char *const patterns[] = {"\\\\G", "\\(*x", "[*(]", "a\\$"};
    for (size_t i = 0; i < ARRAY_LEN(patterns); i++) {
        struct guardrail_rule rule = {.name = STR("n"), .pattern = str_from(patterns[i])};
        struct guardrail *guardrail;
        struct err e;
        if (!guardrail_new(&rule, &guardrail, &e)) fail_msg("%s: %s", patterns[i], e.text);
        assert_str(guardrail_name(guardrail), "n");
        guardrail_free(guardrail);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_rule_that_cannot_work_is_refused_with_the_reason),
        cmocka_unit_test(a_backslash_hides_what_follows_it),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
