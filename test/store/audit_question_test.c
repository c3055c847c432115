/* Open questions: found by run in whatever order they came and went, 16 bytes each, so many and
 * no more. */
#include "helper/assert_str.h"

#include "store/audit_question.h"

static void the_call_that_asked_is_recognised(void **state) {
    (void)state;
    struct audit_questions questions = {0};
    audit_questions_put(&questions, 3, STR("c1"));
    assert_true(audit_question_is(audit_questions_find(&questions, 3), STR("c1")));
    assert_false(audit_question_is(audit_questions_find(&questions, 3), STR("c2")));
    assert_false(audit_question_is(audit_questions_find(&questions, 3), STR("")));
    audit_questions_put(&questions, 3, STR("c2")); /* a newer question */
    assert_int_equal(questions.count, 1);
    assert_true(audit_question_is(audit_questions_find(&questions, 3), STR("c2")));
    assert_null(audit_questions_find(&questions, 2));
    assert_null(audit_questions_find(&questions, 4));
    audit_questions_remove(&questions, 4);
    audit_questions_remove(&questions, 3);
    assert_null(audit_questions_find(&questions, 3));
    audit_questions_clear(&questions);
}

/* The runs 1 to 1,000 in an order that is neither rising nor falling. */
static uint64_t run_at(uint64_t i) {
    return i * 389 % 1009;
}

static void questions_are_found_in_any_order_of_coming_and_going(void **state) {
    (void)state;
    struct audit_questions questions = {0};
    for (uint64_t i = 1; i < 1009; i++) {
        audit_questions_put(&questions, run_at(i), STR("c"));
        assert_int_equal(questions.count, i);
        for (uint64_t j = 1; j < 1009; j += 7)
            assert_true((audit_questions_find(&questions, run_at(j)) != NULL) == (j <= i));
    }
    for (uint64_t i = 1; i < 1009; i++) {
        audit_questions_remove(&questions, run_at(i));
        for (uint64_t j = 1; j < 1009; j += 7)
            assert_true((audit_questions_find(&questions, run_at(j)) != NULL) == (j > i));
    }
    assert_int_equal(questions.count, 0);
    assert_true(questions.room <= 16); /* what was taken for many is given back */
    audit_questions_clear(&questions);
}

static void one_more_than_the_limit_is_not_kept(void **state) {
    (void)state;
    struct audit_questions questions = {0};
    for (uint64_t run = 1; run <= AUDIT_QUESTIONS_MAX + 1; run++)
        audit_questions_put(&questions, run, STR("c"));
    assert_int_equal(questions.count, AUDIT_QUESTIONS_MAX);
    assert_null(audit_questions_find(&questions, AUDIT_QUESTIONS_MAX + 1));
    audit_questions_put(&questions, 1, STR("d")); /* a known run may ask again */
    assert_true(audit_question_is(audit_questions_find(&questions, 1), STR("d")));
    audit_questions_clear(&questions);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_call_that_asked_is_recognised),
        cmocka_unit_test(questions_are_found_in_any_order_of_coming_and_going),
        cmocka_unit_test(one_more_than_the_limit_is_not_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
