#include "server/abuse.h"

#include <setjmp.h>
#include <stdarg.h>
/* cmocka wants these before it. */
#include <cmocka.h>

static void a_thousand_refusals_are_fine_and_then_33_a_second(void **state) {
    (void)state;
    struct abuse abuse;
    abuse_init(&abuse);
    for (size_t i = 0; i < 1000; i++) assert_true(abuse_refusal(&abuse, 0));
    assert_false(abuse_refusal(&abuse, 0));
    size_t fine = 0;
    for (uint64_t now_ms = 1; now_ms <= 1000; now_ms++) fine += abuse_refusal(&abuse, now_ms);
    assert_in_range(fine, 30, 33);
}

static void the_two_hundredth_fault_in_ten_seconds_is_one_too_many(void **state) {
    (void)state;
    static const struct {
        uint64_t apart_ms;
        bool ends;
    } rows[] = {{0, true}, {1, true}, {33, true}, {44, true}, {51, false}, {1000, false}};
    for (size_t row = 0; row < ARRAY_LEN(rows); row++) {
        struct abuse abuse;
        abuse_init(&abuse);
        uint64_t now_ms = 123456789;
        size_t fine = 0;
        while (fine < 2000 && abuse_fault(&abuse, now_ms += rows[row].apart_ms)) fine++;
        assert_int_equal(fine, rows[row].ends ? 199 : 2000);
    }
}

static void faults_are_forgotten_after_ten_seconds(void **state) {
    (void)state;
    struct abuse abuse;
    abuse_init(&abuse);
    for (uint64_t round = 0; round < 5; round++) {
        for (size_t i = 0; i < 199; i++) assert_true(abuse_fault(&abuse, round * 10999));
    }
    assert_false(abuse_fault(&abuse, 4 * 10999 + 9000));
}

static void chores_saved_up_have_a_limit(void **state) {
    (void)state;
    struct abuse abuse;
    abuse_init(&abuse);
    for (size_t i = 0; i < 1000; i++) assert_true(abuse_chore(&abuse, 1000 * 1000));
    assert_false(abuse_chore(&abuse, 1000 * 1000));
}

static void faults_and_chores_do_not_share_a_budget(void **state) {
    (void)state;
    struct abuse abuse;
    abuse_init(&abuse);
    while (abuse_fault(&abuse, 0)) {
    }
    assert_true(abuse_chore(&abuse, 0));
}

static void the_third_quick_ping_is_one_too_many(void **state) {
    (void)state;
    struct abuse abuse;
    abuse_init(&abuse);
    assert_true(abuse_ping(&abuse, 1000, 15000));
    assert_true(abuse_ping(&abuse, 2000, 15000));
    assert_false(abuse_ping(&abuse, 3000, 15000));
}

static void patient_pings_and_those_between_traffic_are_fine(void **state) {
    (void)state;
    struct abuse abuse;
    abuse_init(&abuse);
    uint64_t now_ms = 0;
    for (size_t i = 0; i < 100; i++) assert_true(abuse_ping(&abuse, now_ms += 14000, 15000));
    for (size_t i = 0; i < 100; i++) {
        abuse_heard(&abuse);
        assert_true(abuse_ping(&abuse, ++now_ms, 15000));
    }
    for (size_t i = 0; i < 100; i++) {
        assert_true(abuse_ping(&abuse, ++now_ms, 15000));
        abuse_said(&abuse);
    }
    for (size_t i = 0; i < 100; i++) assert_true(abuse_ping(&abuse, ++now_ms, 0));
}

static void a_peer_that_sends_keeps_its_strikes(void **state) {
    (void)state;
    struct abuse abuse;
    abuse_init(&abuse);
    assert_true(abuse_ping(&abuse, 1, 15000));
    assert_true(abuse_ping(&abuse, 2, 15000));
    abuse_heard(&abuse);
    assert_true(abuse_ping(&abuse, 3, 15000));
    assert_false(abuse_ping(&abuse, 4, 15000));
}

static void a_section_may_be_eight_times_too_large_and_no_more(void **state) {
    (void)state;
    struct abuse abuse;
    abuse_init(&abuse);
    for (size_t round = 0; round < 2; round++) {
        abuse_section(&abuse);
        for (size_t i = 0; i < 8; i++) assert_true(abuse_field(&abuse, 100, 100));
        assert_false(abuse_field(&abuse, 1, 100));
    }
}

static void a_stream_that_was_reset_is_remembered(void **state) {
    (void)state;
    struct abuse abuse;
    abuse_init(&abuse);
    assert_false(abuse_was_reset(&abuse, 1));
    for (int32_t id = 1; id < 2000; id += 4) {
        abuse_reset(&abuse, id);
        assert_true(abuse_was_reset(&abuse, id));
        assert_false(abuse_was_reset(&abuse, id + 2));
    }
    /* What fell out is forgotten in the peer's favour. */
    assert_true(abuse_was_reset(&abuse, 3));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_thousand_refusals_are_fine_and_then_33_a_second),
        cmocka_unit_test(the_two_hundredth_fault_in_ten_seconds_is_one_too_many),
        cmocka_unit_test(faults_are_forgotten_after_ten_seconds),
        cmocka_unit_test(chores_saved_up_have_a_limit),
        cmocka_unit_test(faults_and_chores_do_not_share_a_budget),
        cmocka_unit_test(the_third_quick_ping_is_one_too_many),
        cmocka_unit_test(patient_pings_and_those_between_traffic_are_fine),
        cmocka_unit_test(a_peer_that_sends_keeps_its_strikes),
        cmocka_unit_test(a_section_may_be_eight_times_too_large_and_no_more),
        cmocka_unit_test(a_stream_that_was_reset_is_remembered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
