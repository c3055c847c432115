#include "tool/tzrule.h"

#include "helper/assert_str.h"

#include "wire/moment.h"

static int64_t at(const char *text) {
    struct err e;
    int64_t unix_s;
    if (!moment_read(str_from(text), &unix_s, &e)) fail_msg("%s", e.text);
    return unix_s;
}

static struct tzrule rule_of(const char *text) {
    struct err e;
    struct tzrule rule;
    struct str copy = exact_copy(str_from(text));
    if (!tzrule_read(copy, &rule, &e)) fail_msg("%s", e.text);
    free((void *)copy.at);
    return rule;
}

/* The offset changes from `before` to `after` at the moment `change`. */
static void assert_change(const char *text, const char *change, int before, int after) {
    struct tzrule rule = rule_of(text);
    assert_int_equal(tzrule_offset(&rule, at(change) - 1), before);
    assert_int_equal(tzrule_offset(&rule, at(change)), after);
}

static void a_rule_without_summer_is_one_offset(void **state) {
    (void)state;
    struct tzrule rule = rule_of("JST-9");
    assert_int_equal(tzrule_offset(&rule, 0), 9 * 3600);
    rule = rule_of("<-0330>3:30");
    assert_int_equal(tzrule_offset(&rule, 0), -12600);
    rule = rule_of("LMT-0:53:28");
    assert_int_equal(tzrule_offset(&rule, 0), 3208);
}

static void clocks_change_on_a_weekday_of_a_month(void **state) {
    (void)state;
    const char *berlin = "CET-1CEST,M3.5.0,M10.5.0/3";
    assert_change(berlin, "2026-03-29T01:00:00Z", 3600, 7200);
    assert_change(berlin, "2026-10-25T01:00:00Z", 7200, 3600);
    const char *york = "EST5EDT,M3.2.0,M11.1.0";
    assert_change(york, "2026-03-08T07:00:00Z", -18000, -14400);
    assert_change(york, "2026-11-01T06:00:00Z", -14400, -18000);
}

static void in_the_south_summer_spans_the_new_year(void **state) {
    (void)state;
    const char *sydney = "AEST-10AEDT,M10.1.0,M4.1.0/3";
    assert_change(sydney, "2026-04-04T16:00:00Z", 39600, 36000);
    assert_change(sydney, "2026-10-03T16:00:00Z", 36000, 39600);
    struct tzrule rule = rule_of(sydney);
    assert_int_equal(tzrule_offset(&rule, at("2026-01-01T00:00:00Z")), 39600);
}

static void a_change_may_lie_outside_of_its_day(void **state) {
    (void)state;
    /* Saturday before the last Sunday of March, 22:00. */
    assert_change("<-02>2<-01>,M3.5.0/-1,M10.5.0/0", "2026-03-29T01:00:00Z", -7200, -3600);
    assert_change("EET-2EEST,M3.4.4/50,M10.4.4/50", "2026-03-28T00:00:00Z", 7200, 10800);
}

static void days_of_the_year_are_counted_with_and_without_february_29(void **state) {
    (void)state;
    assert_change("AAA0BBB,J60/0,J300/0", "2024-03-01T00:00:00Z", 0, 3600);
    assert_change("AAA0BBB,J60/0,J300/0", "2025-03-01T00:00:00Z", 0, 3600);
    assert_change("AAA0BBB,59/0,300/0", "2024-02-29T00:00:00Z", 0, 3600);
    assert_change("AAA0BBB,59/0,300/0", "2025-03-01T00:00:00Z", 0, 3600);
    struct tzrule always = rule_of("XXX3EDT4,0/0,J365/23");
    assert_int_equal(tzrule_offset(&always, at("2026-07-01T00:00:00Z")), -14400);
    assert_int_equal(tzrule_offset(&always, at("2027-01-01T03:00:00Z")), -14400);
}

static void a_malformed_rule_is_refused(void **state) {
    (void)state;
    static const char *const texts[] = {
        "",
        "A-1",
        "CET",
        "CET-25",
        "CET-1CEST",
        "CET-1CEST,",
        "CET-1CEST,M3.5.0",
        "CET-1CEST,M13.5.0,M10.5.0",
        "CET-1CEST,M0.5.0,M10.5.0",
        "CET-1CEST,M3.6.0,M10.5.0",
        "CET-1CEST,M3.5.7,M10.5.0",
        "CET-1CEST,J0,J1",
        "CET-1CEST,J366,J1",
        "CET-1CEST,366,1",
        "CET-1CEST,M3.5.0/168,M10.5.0",
        "CET-1CEST,M3.5.0,M10.5.0x",
        "<>-1",
        "<CET-1",
        "CET-1:60",
        "CET--1",
    };
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct err e;
        struct tzrule rule;
        if (tzrule_read(str_from(texts[i]), &rule, &e)) fail_msg("%s was read", texts[i]);
        assert_int_equal(e.code, ERR_MALFORMED);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_rule_without_summer_is_one_offset),
        cmocka_unit_test(clocks_change_on_a_weekday_of_a_month),
        cmocka_unit_test(in_the_south_summer_spans_the_new_year),
        cmocka_unit_test(a_change_may_lie_outside_of_its_day),
        cmocka_unit_test(days_of_the_year_are_counted_with_and_without_february_29),
        cmocka_unit_test(a_malformed_rule_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
