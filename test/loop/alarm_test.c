#include "loop/alarm.h"

#include "base/clock.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>

#include <cmocka.h>

struct heard {
    struct loop *loop;
    uint64_t at_us;
    int count;
};

static void hear(void *ctx) {
    struct heard *heard = ctx;
    heard->at_us = clock_mono_us();
    heard->count++;
    loop_stop(heard->loop);
}

static void an_alarm_comes_once_and_not_before_its_moment(void **state) {
    (void)state;
    struct heard heard = {.loop = loop_new()};
    uint64_t at_us = clock_mono_us() + 3700;
    (void)alarm_start(heard.loop, at_us, hear, &heard);
    assert_int_equal(heard.count, 0);
    loop_run(heard.loop);
    assert_int_equal(heard.count, 1);
    assert_true(heard.at_us >= at_us);
    loop_free(heard.loop);
}

static void one_whose_moment_has_passed_comes_at_once(void **state) {
    (void)state;
    struct heard heard = {.loop = loop_new()};
    (void)alarm_start(heard.loop, 1, hear, &heard);
    assert_int_equal(heard.count, 0);
    loop_run(heard.loop);
    assert_int_equal(heard.count, 1);
    loop_free(heard.loop);
}

static void a_stopped_one_never_comes(void **state) {
    (void)state;
    struct heard stopped = {.loop = loop_new()}, heard = {.loop = stopped.loop};
    struct alarm *alarm = alarm_start(stopped.loop, clock_mono_us() + 1000, hear, &stopped);
    (void)alarm_start(heard.loop, clock_mono_us() + 3000, hear, &heard);
    alarm_stop(alarm);
    alarm_stop(NULL);
    loop_run(heard.loop);
    assert_int_equal(stopped.count, 0);
    assert_int_equal(heard.count, 1);
    loop_free(heard.loop);
}

static void count(void *ctx) {
    ((struct heard *)ctx)->count++;
}

static void on_a_fake_loop_its_clock_counts(void **state) {
    (void)state;
    struct heard heard = {.loop = loop_new_fake()};
    (void)alarm_start(heard.loop, clock_mono_us() + 1000000, count, &heard);
    struct alarm *never = alarm_start(heard.loop, clock_mono_us() + 1000000, count, &heard);
    alarm_stop(never);
    loop_advance(heard.loop, 2000);
    assert_int_equal(heard.count, 1);
    loop_free(heard.loop);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_alarm_comes_once_and_not_before_its_moment),
        cmocka_unit_test(one_whose_moment_has_passed_comes_at_once),
        cmocka_unit_test(a_stopped_one_never_comes),
        cmocka_unit_test(on_a_fake_loop_its_clock_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
