#include "daemon/code_rest.h"

#include "helper/assert_str.h"

#define LOOK_US 400 /* what a look takes itself */

static void only_the_moves_of_the_table_are_allowed(void **state) {
    (void)state;
    static const char *const rows[CODE_STATE_COUNT] = {
        /* starting used let go */
        [CODE_STARTING] = ".#.",
        [CODE_USED] = "..#",
        [CODE_LET_GO] = ".#.",
    };
    for (enum code_state from = 0; from < CODE_STATE_COUNT; from++) {
        assert_true(states_name(code_states, from).len);
        for (enum code_state to = 0; to < CODE_STATE_COUNT; to++)
            assert_int_equal(states_allow(code_states, from, to), rows[from][to] == '#');
    }
}

/* Each look in each state, at each side of each bound. */
static void a_look_lets_the_code_go_or_does_not(void **state) {
    (void)state;
    enum {
        NOTHING = CODE_REST_NOTHING_US,
        QUIET = CODE_REST_QUIET_US,
        WORK = CODE_REST_WORK_US,
        LAST = CODE_REST_LOOKS - 1,
    };
    static const struct {
        enum code_state from;
        bool stays;
        unsigned looks;
        uint64_t since_used_us, since_look_us;
        bool goes;
        enum code_state to;
    } rows[] = {
        {CODE_STARTING, false, 0, 0, 0, true, CODE_USED},
        {CODE_STARTING, false, 0, 9000000, 9000000, true, CODE_USED},
        {CODE_USED, false, 0, 0, 0, true, CODE_LET_GO},
        {CODE_USED, false, 0, 9 * WORK, QUIET, true, CODE_LET_GO},
        {CODE_USED, false, 0, 9 * WORK, QUIET + 1, false, CODE_USED},
        {CODE_USED, true, 0, 0, 0, false, CODE_USED},
        {CODE_USED, true, 0, WORK - 1, 0, false, CODE_USED},
        {CODE_USED, true, 0, WORK, 0, true, CODE_LET_GO},
        {CODE_USED, true, 0, WORK, QUIET + 1, false, CODE_USED},
        {CODE_USED, true, LAST - 1, 0, 0, false, CODE_USED},
        {CODE_USED, true, LAST, 0, 0, true, CODE_LET_GO},
        {CODE_USED, true, LAST, 0, QUIET + 1, false, CODE_USED},
        {CODE_LET_GO, false, 0, 9 * WORK, 0, true, CODE_LET_GO},
        {CODE_LET_GO, false, 9 * LAST, 9 * WORK, NOTHING, true, CODE_LET_GO},
        {CODE_LET_GO, false, 0, 0, NOTHING + 1, false, CODE_USED},
        {CODE_LET_GO, false, 9 * LAST, 9 * WORK, 9 * WORK, false, CODE_USED},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        uint64_t now_us = 100000000;
        struct code_rest rest = {.state = rows[i].from,
                                 .stays = rows[i].stays,
                                 .looks = rows[i].looks,
                                 .used_us = now_us - rows[i].since_used_us,
                                 .looked_us = now_us - rows[i].since_look_us};
        bool goes = code_rest_look(&rest, now_us);
        if (goes != rows[i].goes || rest.state != rows[i].to) fail_msg("row %zu", i);
    }
}

/* --- in a row ----------------------------------------------------------------------------- */

/* How often the code went in so many looks, with so much work before each. */
static size_t times_gone(struct code_rest *rest, size_t looks, uint64_t work_us) {
    size_t times = 0;
    for (size_t i = 0; i < looks; i++) {
        uint64_t now_us = rest->looked_us + work_us;
        times += code_rest_look(rest, now_us);
        code_rest_looked(rest, now_us + LOOK_US);
    }
    return times;
}

static struct code_rest a_started_one(void) {
    struct code_rest rest = {0};
    assert_int_equal(times_gone(&rest, 1, 30000), 1);
    assert_int_equal(rest.state, CODE_USED);
    return rest;
}

static void steady_work_never_pays(void **state) {
    (void)state;
    struct code_rest rest = a_started_one();
    assert_int_equal(times_gone(&rest, 10000, CODE_REST_QUIET_US + 1), 0);
    assert_int_equal(times_gone(&rest, 10000, 15000000), 0);
    assert_int_equal(times_gone(&rest, 1, 0), 1); /* the first rest */
}

static void while_nothing_happens_each_look_lets_go(void **state) {
    (void)state;
    struct code_rest rest = a_started_one();
    assert_int_equal(times_gone(&rest, 1000, CODE_REST_NOTHING_US), 1000);
}

/* Requests between all looks, too few for work: each time the code went, one of them pays. */
static void a_few_requests_now_and_then_pay_once_in_minutes(void **state) {
    (void)state;
    uint64_t least_us = CODE_REST_NOTHING_US + 1, looks = 1000;
    for (uint64_t work_us = least_us; work_us <= CODE_REST_QUIET_US; work_us += 100) {
        struct code_rest rest = a_started_one();
        uint64_t by_time = looks / CODE_REST_LOOKS;
        uint64_t by_work = looks * (work_us + LOOK_US) / CODE_REST_WORK_US;
        assert_in_range(times_gone(&rest, looks, work_us), 1,
                        1 + (by_time > by_work ? by_time : by_work));
    }
}

static void after_one_request_the_code_goes_again_in_minutes(void **state) {
    (void)state;
    struct code_rest rest = a_started_one();
    assert_int_equal(times_gone(&rest, 5, 0), 5);
    assert_int_equal(times_gone(&rest, 1, 1000), 0); /* it is used */
    assert_int_equal(times_gone(&rest, CODE_REST_LOOKS - 1, 0), 0);
    assert_int_equal(times_gone(&rest, 5, 0), 5);
}

static void after_some_work_the_code_goes_at_the_next_rest(void **state) {
    (void)state;
    struct code_rest rest = a_started_one();
    assert_int_equal(times_gone(&rest, 1, 0), 1);
    assert_int_equal(times_gone(&rest, 4, CODE_REST_WORK_US), 0);
    assert_int_equal(times_gone(&rest, 5, 0), 5);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_the_moves_of_the_table_are_allowed),
        cmocka_unit_test(a_look_lets_the_code_go_or_does_not),
        cmocka_unit_test(steady_work_never_pays),
        cmocka_unit_test(while_nothing_happens_each_look_lets_go),
        cmocka_unit_test(a_few_requests_now_and_then_pay_once_in_minutes),
        cmocka_unit_test(after_one_request_the_code_goes_again_in_minutes),
        cmocka_unit_test(after_some_work_the_code_goes_at_the_next_rest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
