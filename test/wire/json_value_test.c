#include "wire/json.h"

#include "helper/assert_str.h"

#include <math.h>

static struct json read_ok(const char *text) {
    struct json value;
    struct err e;
    assert_true(json_read(str_from(text), &value, &e));
    return value;
}

/* Compare what a string says, by every way to ask for it. */
static void assert_says(const char *text, struct str expected) {
    struct json string = read_ok(text);
    struct buf out;
    struct str view;
    struct arena *arena = arena_new(4096);
    buf_init(&out, 4096);
    assert_true(json_text(string, &out));
    assert_true(str_equal(buf_str(&out), expected));
    assert_true(json_str(string, arena, &view));
    assert_true(str_equal(view, expected));
    assert_true(json_is(string, expected));
    assert_false(json_is(string, STR("another text altogether")));
    if (expected.len) assert_false(json_is(string, str_head(expected, expected.len - 1)));
    buf_done(&out);
    arena_free(arena);
}

static void strings_are_unescaped(void **state) {
    (void)state;
    assert_says("\"\"", STR(""));
    assert_says("\"plain\"", STR("plain"));
    assert_says("\"\\\"\\\\\\/\\b\\f\\n\\r\\t\"", STR("\"\\/\b\f\n\r\t"));
    assert_says("\"\\u0041\\u00e9\\u20AC\\ud83d\\ude00\"", STR("Aé€😀"));
    assert_says("\"\\uD800\\uDC00\\uDBFF\\uDFFF\"", STR("\xF0\x90\x80\x80\xF4\x8F\xBF\xBF"));
    assert_says("\"a\\u0000b\"", STR("a\0b"));
    assert_says("\"a\\tb\\\\\"", STR("a\tb\\"));
    assert_says("\"\\\\u0041\"", STR("\\u0041"));
    assert_says("\"über\\u002Ftext\"", STR("über/text"));
}

static void a_string_without_escapes_is_lent_and_not_copied(void **state) {
    (void)state;
    struct json string = read_ok("\"plain text\"");
    struct arena *arena = arena_new(0);
    struct str view;
    assert_true(json_str(string, arena, &view));
    assert_ptr_equal(view.at, string.raw.at + 1);
    assert_false(json_str(read_ok("\"a\\nb\""), arena, &view));
    arena_free(arena);
}

static void text_stops_at_the_limit_of_its_buffer(void **state) {
    (void)state;
    struct json string = read_ok("\"ab\\u20ac\\ncd\"");
    for (size_t limit = 0; limit <= 8; limit++) {
        struct buf out;
        buf_init(&out, limit);
        assert_int_equal(json_text(string, &out), limit == 8);
        assert_true(out.len <= limit);
        buf_done(&out);
    }
}

static void a_string_differs_from_one_that_only_begins_like_it(void **state) {
    (void)state;
    assert_false(json_is(read_ok("\"ab\""), STR("a")));
    assert_false(json_is(read_ok("\"a\""), STR("ab")));
    assert_false(json_is(read_ok("\"a\\n\""), STR("a")));
    assert_false(json_is(read_ok("\"a\\n\""), STR("a\nb")));
    assert_false(json_is(read_ok("\"\\u0000\""), STR("")));
    assert_false(json_is(read_ok("\"\\n\""), STR("\\n")));
    assert_false(json_is(read_ok("5"), STR("5")));
}

static void integers_are_read_in_every_spelling(void **state) {
    (void)state;
    static const struct {
        const char *text;
        int64_t number;
    } cases[] = {
        {"0", 0},
        {"-0", 0},
        {"0.000", 0},
        {"0e999999999999999999999", 0},
        {"7", 7},
        {"-7", -7},
        {"5.0", 5},
        {"50e-1", 5},
        {"5000e-3", 5},
        {"0.05e2", 5},
        {"1e18", 1000000000000000000},
        {"-1.5E+1", -15},
        {"9223372036854775807", INT64_MAX},
        {"9223372036854775807.00", INT64_MAX},
        {"-9223372036854775808", INT64_MIN},
        {"-9223372036854775.808e3", INT64_MIN},
        {"12300.00e-2", 123},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        int64_t number = 42;
        if (!json_i64(read_ok(cases[i].text), &number)) fail_msg("%s", cases[i].text);
        assert_int_equal(number, cases[i].number);
    }
}

static void a_number_that_is_no_integer_or_does_not_fit_is_refused(void **state) {
    (void)state;
    static const char *const texts[] = {
        "0.5",
        "5.5",
        "1e-1",
        "15e-2",
        "1e19",
        "1e99999999999999999999999",
        "1e-99999999999999999999999",
        "9223372036854775808",
        "-9223372036854775809",
        "123456789012345678901234567890",
        "0.1234567890123456789012345678901234567890",
        "\"5\"",
        "true",
        "null",
        "[5]",
    };
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        int64_t number = 42;
        if (json_i64(read_ok(texts[i]), &number)) fail_msg("%s", texts[i]);
        assert_int_equal(number, 42);
    }
}

static void doubles_are_the_nearest(void **state) {
    (void)state;
    double number;
    assert_true(json_double(read_ok("0.1"), &number) && number == 0.1);
    assert_true(json_double(read_ok("-1.5e3"), &number) && number == -1500);
    assert_true(json_double(read_ok("1e400"), &number) && isinf(number));
    assert_true(json_double(read_ok("1e-400"), &number) && number == 0);
    assert_true(json_double(read_ok("0.10000000000000000000000000000000000000000000000000000"
                                    "000000000000000000000000"),
                            &number) &&
                number == 0.1);
    assert_false(json_double(read_ok("\"1\""), &number));
}

static void true_and_false_are_the_only_truths(void **state) {
    (void)state;
    bool truth = false;
    assert_true(json_bool(read_ok("true"), &truth) && truth);
    assert_true(json_bool(read_ok("false"), &truth) && !truth);
    assert_false(json_bool(read_ok("0"), &truth));
    assert_false(json_bool(read_ok("null"), &truth));
    assert_false(json_bool(json_find(read_ok("{}"), STR("a")), &truth));
}

static void a_missing_value_has_no_text(void **state) {
    (void)state;
    struct json none = json_find(read_ok("{}"), STR("a"));
    struct buf out;
    struct str view;
    struct arena *arena = arena_new(64);
    buf_init(&out, 64);
    assert_false(json_text(none, &out));
    assert_false(json_str(none, arena, &view));
    assert_false(json_is(none, STR("")));
    buf_done(&out);
    arena_free(arena);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(strings_are_unescaped),
        cmocka_unit_test(a_string_without_escapes_is_lent_and_not_copied),
        cmocka_unit_test(text_stops_at_the_limit_of_its_buffer),
        cmocka_unit_test(a_string_differs_from_one_that_only_begins_like_it),
        cmocka_unit_test(integers_are_read_in_every_spelling),
        cmocka_unit_test(a_number_that_is_no_integer_or_does_not_fit_is_refused),
        cmocka_unit_test(doubles_are_the_nearest),
        cmocka_unit_test(true_and_false_are_the_only_truths),
        cmocka_unit_test(a_missing_value_has_no_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
