#include "wire/moment.h"

#include "helper/assert_str.h"

static void assert_reads(const char *text, int64_t expected) {
    struct err e;
    int64_t unix_s = 0;
    struct str copy = exact_copy(str_from(text));
    if (!moment_read(copy, &unix_s, &e)) fail_msg("%s", e.text);
    assert_int_equal(unix_s, expected);
    free((void *)copy.at);
}

static void assert_writes(int64_t unix_s, int32_t offset_s, const char *expected) {
    struct buf out;
    buf_init(&out, 64);
    assert_true(moment_put(&out, unix_s, offset_s));
    assert_str(buf_str(&out), expected);
    buf_done(&out);
}

static void a_moment_is_counted_in_seconds_since_1970(void **state) {
    (void)state;
    assert_reads("1970-01-01T00:00:00Z", 0);
    assert_reads("2026-03-01T12:00:00Z", 1772366400);
    assert_reads("2026-03-01T13:00:00+01:00", 1772366400);
    assert_reads("2026-03-01T06:30:00-05:30", 1772366400);
    assert_reads("1969-12-31T23:59:59Z", -1);
    assert_reads("0000-01-01T00:00:00Z", -62167219200);
    assert_reads("9999-12-31T23:59:59Z", 253402300799);
}

static void fractions_are_dropped_and_a_leap_second_is_the_next_one(void **state) {
    (void)state;
    assert_reads("1970-01-01t00:00:01.999z", 1);
    assert_reads("1970-01-01 00:00:01.0Z", 1);
    assert_reads("2016-12-31T23:59:60Z", 1483228800);
}

static void a_malformed_moment_is_refused(void **state) {
    (void)state;
    static const char *const texts[] = {
        "",
        "now",
        "2026-03-01",
        "2026-03-01T12:00:00",
        "2026-03-01T12:00Z",
        "2026-02-29T00:00:00Z",
        "1900-02-29T00:00:00Z",
        "2026-13-01T00:00:00Z",
        "2026-00-01T00:00:00Z",
        "2026-04-31T00:00:00Z",
        "2026-03-01T24:00:00Z",
        "2026-03-01T12:60:00Z",
        "2026-03-01T12:00:61Z",
        "2026-03-01T12:00:00.Z",
        "2026-03-01T12:00:00+1:00",
        "2026-03-01T12:00:00+24:00",
        "2026-03-01T12:00:00Zx",
        "26-03-01T12:00:00Z",
        "-026-03-01T12:00:00Z",
    };
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct err e;
        int64_t unix_s;
        if (moment_read(str_from(texts[i]), &unix_s, &e)) fail_msg("%s was read", texts[i]);
        assert_int_equal(e.code, ERR_INVALID_ARGUMENT);
    }
}

static void every_beginning_is_refused(void **state) {
    (void)state;
    struct str text = STR("2026-03-01T13:00:00.5+01:00");
    for (size_t cut = 0; cut < text.len; cut++) {
        struct err e;
        int64_t unix_s;
        struct str copy = exact_copy(str_head(text, cut));
        assert_false(moment_read(copy, &unix_s, &e));
        free((void *)copy.at);
    }
}

static void a_moment_is_written_as_the_clock_there_shows_it(void **state) {
    (void)state;
    assert_writes(0, 0, "1970-01-01T00:00:00Z");
    assert_writes(1772366400, 3600, "2026-03-01T13:00:00+01:00");
    assert_writes(1772366400, -19800, "2026-03-01T06:30:00-05:30");
    assert_writes(-1, 0, "1969-12-31T23:59:59Z");
    assert_writes(0, 3208, "1970-01-01T00:53:00+00:53"); /* local mean time, whole minutes */
    assert_writes(0, -3208, "1969-12-31T23:06:00-00:54");
}

static void a_year_needs_four_digits(void **state) {
    (void)state;
    struct buf out;
    buf_init(&out, 64);
    assert_false(moment_put(&out, 253402300800, 0));
    assert_false(moment_put(&out, -62167219201, 0));
    assert_false(moment_put(&out, 253402300799, 60));
    buf_done(&out);
}

static void every_day_of_400_years_is_written_and_read_back(void **state) {
    (void)state;
    for (int64_t day = moment_days(1800, 1, 1); day < moment_days(2200, 1, 1); day++) {
        struct err e;
        int64_t again = 0;
        struct buf out;
        buf_init(&out, 64);
        assert_true(moment_put(&out, day * MOMENT_DAY_S + 3723, 0));
        assert_true(moment_read(buf_str(&out), &again, &e));
        assert_int_equal(again, day * MOMENT_DAY_S + 3723);
        buf_done(&out);
    }
}

static void weekdays_follow_each_other(void **state) {
    (void)state;
    assert_str(moment_weekday(0, 0), "Thursday");
    assert_str(moment_weekday(-1, 0), "Wednesday");
    assert_str(moment_weekday(1772366400, 0), "Sunday");
    assert_str(moment_weekday(1772366400, 12 * 3600), "Monday");
    assert_str(moment_weekday(-62167219200, 0), "Saturday");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_moment_is_counted_in_seconds_since_1970),
        cmocka_unit_test(fractions_are_dropped_and_a_leap_second_is_the_next_one),
        cmocka_unit_test(a_malformed_moment_is_refused),
        cmocka_unit_test(every_beginning_is_refused),
        cmocka_unit_test(a_moment_is_written_as_the_clock_there_shows_it),
        cmocka_unit_test(a_year_needs_four_digits),
        cmocka_unit_test(every_day_of_400_years_is_written_and_read_back),
        cmocka_unit_test(weekdays_follow_each_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
