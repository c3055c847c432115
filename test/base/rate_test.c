#include "base/rate.h"

#include "helper/assert_str.h"

#include <stdio.h>

static struct rate *rate_of(const char *text) {
    struct rate_limit limit;
    struct err e;
    assert_true(rate_limit_read(str_from(text), &limit, &e));
    return rate_new(limit);
}

static void a_burst_passes_and_then_one_in_each_part_of_the_time(void **state) {
    (void)state;
    struct rate *rate = rate_of("4/s");
    for (int i = 0; i < 4; i++) assert_int_equal(rate_take(rate, STR("a"), 1000, NULL), 0);
    assert_int_equal(rate_take(rate, STR("a"), 1000, NULL), 250);
    assert_int_equal(rate_take(rate, STR("a"), 1249, NULL), 1);
    assert_int_equal(rate_take(rate, STR("a"), 1250, NULL), 0);
    assert_int_equal(rate_take(rate, STR("a"), 1250, NULL), 250);
    for (int i = 0; i < 4; i++) assert_int_equal(rate_take(rate, STR("a"), 9000, NULL), 0);
    assert_int_equal(rate_take(rate, STR("a"), 9000, NULL), 250);
    rate_free(rate);
}

static void callers_do_not_share(void **state) {
    (void)state;
    struct rate *rate = rate_of("1/h");
    assert_int_equal(rate_take(rate, STR("a"), 0, NULL), 0);
    assert_int_equal(rate_take(rate, STR("b"), 0, NULL), 0);
    assert_int_equal(rate_take(rate, STR("a"), 0, NULL), 3600000);
    rate_free(rate);
}

static void no_limit_is_none(void **state) {
    (void)state;
    struct rate *rate = rate_of("off");
    assert_null(rate);
    for (int i = 0; i < 1000; i++) assert_int_equal(rate_take(rate, STR("a"), 0, NULL), 0);
    rate_free(rate);
}

/* Somebody with a million addresses gets one bucket for most of them, and no memory. */
static void the_buckets_are_bounded_and_full_ones_are_forgotten(void **state) {
    (void)state;
    struct rate *rate = rate_of("1/s");
    uint64_t refused = 0;
    char key[32];
    for (int i = 0; i < RATE_KEYS_MAX + 1000; i++) {
        int len = snprintf(key, sizeof(key), "%d", i);
        refused += rate_take(rate, str_of(key, (size_t)len), 5000, NULL) > 0;
    }
    assert_int_equal(rate_count(rate), RATE_KEYS_MAX);
    assert_int_equal(refused, 999);
    assert_int_equal(rate_take(rate, STR("new"), 7000, NULL), 0);
    assert_int_equal(rate_count(rate), 1);
    rate_free(rate);
}

static void what_is_no_rate_is_refused(void **state) {
    (void)state;
    static const char *const bad[] = {"",    "5",     "5/",        "/s",    "5/d", "-1/s",
                                      "0/s", "1.5/s", "1000001/s", "off/s", "5/ s"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct rate_limit limit;
        struct err e;
        assert_false(rate_limit_read(str_from(bad[i]), &limit, &e));
        assert_true(str_find(err_text(&e), STR("10/s")) < err_text(&e).len);
    }
}

/* What the fields x-ratelimit-* say. */
static void the_room_that_is_left_is_known(void **state) {
    (void)state;
    struct rate *rate = rate_of("4/s");
    struct rate_room room;
    assert_int_equal(rate_take(rate, STR("a"), 1000, &room), 0);
    assert_int_equal(room.limit.count, 4);
    assert_int_equal(room.left, 3);
    assert_int_equal(room.reset_ms, 250);
    for (int i = 0; i < 3; i++) assert_int_equal(rate_take(rate, STR("a"), 1000, &room), 0);
    assert_int_equal(room.left, 0);
    assert_int_equal(room.reset_ms, 1000);
    assert_int_equal(rate_take(rate, STR("a"), 1100, &room), 150);
    assert_int_equal(room.left, 0);
    assert_int_equal(room.wait_ms, 150);
    assert_int_equal(room.reset_ms, 900);
    rate_free(rate);
    assert_int_equal(rate_take(NULL, STR("a"), 0, &room), 0);
    assert_int_equal(room.limit.count, 0);
}

static void a_limit_is_written_as_it_is_read(void **state) {
    (void)state;
    static const char *const texts[] = {"off", "10/s", "600/m", "1000000/h"};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct rate_limit limit;
        struct err e;
        char room[32];
        struct buf out = {.at = room, .room = sizeof(room), .max_bytes = sizeof(room)};
        assert_true(rate_limit_read(str_from(texts[i]), &limit, &e));
        assert_true(rate_limit_append(&out, limit));
        assert_str(buf_str(&out), texts[i]);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_burst_passes_and_then_one_in_each_part_of_the_time),
        cmocka_unit_test(callers_do_not_share),
        cmocka_unit_test(no_limit_is_none),
        cmocka_unit_test(the_buckets_are_bounded_and_full_ones_are_forgotten),
        cmocka_unit_test(what_is_no_rate_is_refused),
        cmocka_unit_test(the_room_that_is_left_is_known),
        cmocka_unit_test(a_limit_is_written_as_it_is_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
