#include "base/units.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static uint64_t duration(const char *text) {
    struct err e;
    uint64_t us = 0;
    assert_true(units_duration(str_from(text), &us, &e));
    return us;
}

static uint64_t size(const char *text) {
    struct err e;
    uint64_t bytes = 0;
    assert_true(units_size(str_from(text), &bytes, &e));
    return bytes;
}

static void durations_read_as_people_write_them(void **state) {
    (void)state;
    assert_int_equal(duration("0"), 0);
    assert_int_equal(duration("0s"), 0);
    assert_int_equal(duration("500us"), 500);
    assert_int_equal(duration("20ms"), 20000);
    assert_int_equal(duration("20 ms"), 20000);
    assert_int_equal(duration("1.5s"), 1500000);
    assert_int_equal(duration("0.000001s"), 1);
    assert_int_equal(duration("5m"), 300000000);
    assert_int_equal(duration("2h"), UINT64_C(7200000000));
}

static void sizes_count_in_1024(void **state) {
    (void)state;
    assert_int_equal(size("30000B"), 30000);
    assert_int_equal(size("256KiB"), 262144);
    assert_int_equal(size("1.5MiB"), 1572864);
    assert_int_equal(size("4GiB"), UINT64_C(4294967296));
}

static void what_is_unclear_is_refused_with_the_fix(void **state) {
    (void)state;
    static const char *const wrong[] = {
        "",
        "5x",
        "ms",
        "-5s",
        "+5s",
        "1.s",
        ".5s",
        "1.2.3s",
        "1e3s",
        "5s5s",
        " 5s",
        "5S",
        "s5",
        "٣s",
        "0.3us",
        "1.0000000001s",
        "18446744073709551616us",
        "9999999999999999h",
        "99999999999999999999999999s",
    };
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        struct err e;
        uint64_t us = 77;
        assert_false(units_duration(str_from(wrong[i]), &us, &e));
        assert_int_equal(us, 77);
        assert_int_equal(e.code, ERR_MALFORMED);
        assert_true(str_find(err_text(&e), STR("write it like")) < err_text(&e).len);
    }
    struct err e;
    uint64_t us = 77;
    assert_false(units_duration(STR("20"), &us, &e));
    assert_string_equal(e.text, "'20' has no unit; write it like 20ms, 1.5s or 5m");
    assert_false(units_size(STR("4096"), &us, &e));
    assert_string_equal(e.text, "'4096' has no unit; write it like 30000B, 256KiB or 4MiB");
}

static void what_is_written_reads_back_as_the_same_number(void **state) {
    (void)state;
    static const uint64_t numbers[] = {
        0, 1, 999, 1000, 1024, 1536, 60000000, 90000000, 3600000000, 262144000, UINT64_MAX};
    struct buf text;
    buf_init(&text, 64);
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
        struct err e;
        uint64_t back = 77;
        buf_clear(&text);
        assert_true(units_append_duration(&text, numbers[i]));
        assert_true(units_duration(buf_str(&text), &back, &e));
        assert_int_equal(back, numbers[i]);
        buf_clear(&text);
        assert_true(units_append_size(&text, numbers[i]));
        assert_true(units_size(buf_str(&text), &back, &e));
        assert_int_equal(back, numbers[i]);
    }
    buf_done(&text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(durations_read_as_people_write_them),
        cmocka_unit_test(sizes_count_in_1024),
        cmocka_unit_test(what_is_unclear_is_refused_with_the_fix),
        cmocka_unit_test(what_is_written_reads_back_as_the_same_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
