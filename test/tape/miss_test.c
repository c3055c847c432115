#include "tape/miss.h"

#include "helper/assert_str.h"

static void tells(const char *recorded, const char *asked, const char *expected) {
    struct buf report;
    buf_init(&report, 4 * KIB);
    miss_append(str_from(recorded), str_from(asked), &report);
    assert_str(buf_str(&report), expected);
    buf_done(&report);
}

static void the_first_difference_is_reported_with_its_path_and_both_values(void **state) {
    (void)state;
    tells("{\"a\":1,\"b\":[1,{\"c\":\"x\"}]}", "{\"a\":1,\"b\":[1,{\"c\":\"y\"}]}",
          "b[1].c: recorded \"x\", asked \"y\"");
    tells("{\"a\":1}", "{\"a\":[]}", "a: recorded 1, asked []");
}

static void a_missing_value_is_reported_as_nothing(void **state) {
    (void)state;
    tells("{\"a\":1}", "{\"a\":1,\"b\":2}", "b: recorded nothing, asked 2");
    tells("{\"a\":1,\"b\":2}", "{\"a\":1}", "b: recorded 2, asked nothing");
    tells("{\"a\":[1]}", "{\"a\":[1,2]}", "a[1]: recorded nothing, asked 2");
    tells("{\"a\":[1,2]}", "{\"a\":[1]}", "a[1]: recorded 2, asked nothing");
}

static void the_order_of_members_is_a_difference_where_it_stands(void **state) {
    (void)state;
    tells("{\"a\":1,\"b\":2}", "{\"b\":2,\"a\":1}",
          "request: recorded {\"a\":1,\"b\":2}, asked {\"b\":2,\"a\":1}");
}

static void long_values_are_cut_around_the_difference_between_characters(void **state) {
    (void)state;
    tells("{\"a\":\"0123456789012345678901234567890123456789 one "
          "0123456789012345678901234567890123456789012345678901234567890\"}",
          "{\"a\":\"0123456789012345678901234567890123456789 two\"}",
          "a: recorded ...567890123456789 one "
          "0123456789012345678901234567890123456789..., asked ...567890123456789 two\"");
    tells(
        "{\"a\":\"\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9x\"}",
        "{\"a\":\"\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9y\"}",
        "a: recorded ...\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9x\", "
        "asked "
        "...\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9\xC3\xA9y\"");
}

static void what_has_more_in_common_at_its_ends_is_nearer(void **state) {
    (void)state;
    struct str asked = STR("{\"a\":\"Osaka\",\"b\":1}");
    assert_true(miss_nearness(STR("{\"a\":\"Kyoto\",\"b\":1}"), asked) >
                miss_nearness(STR("{\"a\":\"Kyoto\",\"c\":[]}"), asked));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_difference_is_reported_with_its_path_and_both_values),
        cmocka_unit_test(a_missing_value_is_reported_as_nothing),
        cmocka_unit_test(the_order_of_members_is_a_difference_where_it_stands),
        cmocka_unit_test(long_values_are_cut_around_the_difference_between_characters),
        cmocka_unit_test(what_has_more_in_common_at_its_ends_is_nearer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
