/* Which call a result answers, and that finding it takes no walk. */
#include "conversation/open_calls.h"

#include "helper/assert_str.h"

#define MANY 100000

static struct open_calls calls;

static int set_up(void **state) {
    (void)state;
    open_calls_init(&calls);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    open_calls_done(&calls);
    return 0;
}

static void results_answer_the_calls_of_a_message_in_order(void **state) {
    (void)state;
    open_calls_add(&calls, STR("a"), 1, 10);
    open_calls_add(&calls, STR("b"), 1, 11);
    open_calls_add(&calls, STR("a"), 1, 12);
    assert_int_equal(open_calls_answer(&calls, STR("a")), 10);
    assert_int_equal(open_calls_answer(&calls, STR("a")), 12);
    assert_true(open_calls_answer(&calls, STR("a")) == OPEN_CALLS_NONE);
    assert_int_equal(open_calls_answer(&calls, STR("b")), 11);
    assert_true(open_calls_answer(&calls, STR("c")) == OPEN_CALLS_NONE);
}

static void the_newest_message_is_answered_first(void **state) {
    (void)state;
    open_calls_add(&calls, STR("a"), 1, 10);
    open_calls_add(&calls, STR("a"), 3, 20);
    open_calls_add(&calls, STR("a"), 3, 21);
    assert_int_equal(open_calls_answer(&calls, STR("a")), 20);
    assert_int_equal(open_calls_answer(&calls, STR("a")), 21);
    open_calls_add(&calls, STR("a"), 5, 30);
    assert_int_equal(open_calls_answer(&calls, STR("a")), 30);
    assert_int_equal(open_calls_answer(&calls, STR("a")), 10);
    assert_true(open_calls_answer(&calls, STR("a")) == OPEN_CALLS_NONE);
}

/* In one message, and each in its own. */
static void many_calls_of_one_id_take_one_step_each(void **state) {
    (void)state;
    for (size_t i = 0; i < MANY; i++) open_calls_add(&calls, STR("a"), 1, i);
    for (size_t i = 0; i < MANY; i++) assert_int_equal(open_calls_answer(&calls, STR("a")), i);
    for (size_t i = 0; i < MANY; i++) open_calls_add(&calls, STR("a"), 2 + i, i);
    for (size_t i = MANY; i-- > 0;) assert_int_equal(open_calls_answer(&calls, STR("a")), i);
    assert_int_equal(calls.steps, 4 * MANY);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(results_answer_the_calls_of_a_message_in_order, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(the_newest_message_is_answered_first, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(many_calls_of_one_id_take_one_step_each, set_up,
                                        tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
