#include "contract/nimi/transfer/speed.h"

#include "helper/assert_str.h"

static void speed_is_known_after_a_step(void **state) {
    (void)state;
    struct speed speed = {.count = 0};
    assert_int_equal(speed_now(&speed, 1000, 0), 0);
    speed_note(&speed, 1000, 0);
    assert_int_equal(speed_now(&speed, 1100, 100), 0); /* too soon to say */
    speed_note(&speed, 2000, 1000);
    assert_int_equal(speed_now(&speed, 2000, 1000), 1000);
    assert_int_equal(speed_now(&speed, 3000, 1000), 500); /* nothing more has come */
}

/* The last seconds count, not the whole. */
static void old_samples_go(void **state) {
    (void)state;
    struct speed speed = {.count = 0};
    uint64_t now_ms = 0;
    int64_t bytes = 0;
    for (int i = 0; i < 100; i++, now_ms += 100) speed_note(&speed, now_ms, bytes += 10);
    for (int i = 0; i < 100; i++, now_ms += 100) speed_note(&speed, now_ms, bytes += 1000);
    assert_int_equal(speed_now(&speed, now_ms - 100, bytes), 10000);
}

static void fewer_bytes_begin_anew(void **state) {
    (void)state;
    struct speed speed = {.count = 0};
    speed_note(&speed, 0, 1000);
    speed_note(&speed, 1000, 2000);
    speed_note(&speed, 2000, 0);
    assert_int_equal(speed_now(&speed, 2000, 0), 0);
    assert_int_equal(speed_now(&speed, 3000, 700), 700);
}

static void the_rest_takes_whole_seconds(void **state) {
    (void)state;
    assert_int_equal(speed_left_s(100, 0, 1000), 10);
    assert_int_equal(speed_left_s(100, 1, 1000), 10);
    assert_int_equal(speed_left_s(100, 999, 1000), 1);
    assert_int_equal(speed_left_s(100, 1000, 1000), 0);
    assert_int_equal(speed_left_s(0, 0, 1000), 0);
    assert_true(speed_left_s(1, 0, INT64_MAX) == INT64_MAX);
}

static void no_number_is_too_large(void **state) {
    (void)state;
    struct speed speed = {.count = 0};
    speed_note(&speed, 0, 0);
    assert_true(speed_now(&speed, SPEED_STEP_MS, INT64_MAX) > 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(speed_is_known_after_a_step),
        cmocka_unit_test(old_samples_go),
        cmocka_unit_test(fewer_bytes_begin_anew),
        cmocka_unit_test(the_rest_takes_whole_seconds),
        cmocka_unit_test(no_number_is_too_large),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
