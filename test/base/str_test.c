#include "base/str.h"

#include "helper/assert_str.h"

#define NOTHING ((struct str){NULL, 0})

static void views_are_compared_by_their_bytes(void **state) {
    (void)state;
    assert_true(str_equal(STR("a\0b"), STR("a\0b")));
    assert_false(str_equal(STR("a\0b"), STR("a\0c")));
    assert_false(str_equal(STR("a"), STR("ab")));
    assert_true(str_equal(STR_EMPTY, NOTHING));
    assert_true(str_equal_nocase(STR("Content-TYPE"), STR("content-type")));
    assert_false(str_equal_nocase(STR("[{"), STR("{[")));
    assert_false(str_equal_nocase(STR("É"), STR("é")));
}

static void order_is_by_unsigned_bytes_and_the_shorter_first(void **state) {
    (void)state;
    assert_int_equal(str_compare(STR("a"), STR("b")), -1);
    assert_int_equal(str_compare(STR("\xFF"), STR("a")), 1);
    assert_int_equal(str_compare(STR("ab"), STR("a")), 1);
    assert_int_equal(str_compare(STR("a"), STR("ab")), -1);
    assert_int_equal(str_compare(STR("ab"), STR("ab")), 0);
    assert_int_equal(str_compare(NOTHING, STR_EMPTY), 0);
    assert_int_equal(str_compare(NOTHING, STR("a")), -1);
}

static void heads_and_tails_never_reach_beyond(void **state) {
    (void)state;
    assert_str(str_head(STR("abc"), 2), "ab");
    assert_str(str_head(STR("abc"), 9), "abc");
    assert_str(str_skip(STR("abc"), 2), "c");
    assert_str(str_skip(STR("abc"), 9), "");
    assert_int_equal(str_skip(NOTHING, 3).len, 0);
    assert_true(str_starts(STR("abc"), STR("ab")) && str_starts(STR("abc"), STR("")));
    assert_false(str_starts(STR("ab"), STR("abc")));
    assert_true(str_ends(STR("abc"), STR("bc")) && str_ends(STR("abc"), STR("")));
    assert_false(str_ends(STR("bc"), STR("abc")));
    assert_true(str_starts(NOTHING, NOTHING) && str_ends(NOTHING, NOTHING));
}

static void finding_gives_the_first_place_or_the_length(void **state) {
    (void)state;
    assert_int_equal(str_find_byte(STR("a,b,c"), ','), 1);
    assert_int_equal(str_find_byte(STR("abc"), ','), 3);
    assert_int_equal(str_find_byte(STR("a\0b"), '\0'), 1);
    assert_int_equal(str_find_byte(NOTHING, ','), 0);
    assert_int_equal(str_find(STR("ababc"), STR("abc")), 2);
    assert_int_equal(str_find(STR("ab"), STR("abc")), 2);
    assert_int_equal(str_find(STR("ab"), STR("")), 0);
    assert_int_equal(str_find(NOTHING, STR("a")), 0);
    assert_int_equal(str_find_nocase(STR("the HTTP wire"), STR("http")), 4);
    assert_int_equal(str_find_nocase(STR("the"), STR("them")), 3);
    assert_int_equal(str_find_nocase(STR("the"), STR("")), 0);
}

static void trimming_takes_the_space_at_both_ends(void **state) {
    (void)state;
    assert_str(str_trim(STR(" \t\r\n a b \n")), "a b");
    assert_str(str_trim(STR("  ")), "");
    assert_str(str_trim(STR("\v")), "\v");
    assert_int_equal(str_trim(NOTHING).len, 0);
}

static void splitting_tells_an_empty_rest_from_none(void **state) {
    (void)state;
    struct str rest;
    assert_str(str_split(STR("a:b:c"), ':', &rest), "a");
    assert_str(rest, "b:c");
    assert_str(str_split(STR("a:"), ':', &rest), "a");
    assert_true(rest.at != NULL && rest.len == 0);
    assert_str(str_split(STR("a"), ':', &rest), "a");
    assert_true(rest.at == NULL && rest.len == 0);
    assert_int_equal(str_split(rest, ':', &rest).len, 0);
    assert_true(rest.at == NULL);
}

static void numbers_are_digits_that_fit(void **state) {
    (void)state;
    static const struct {
        const char *text;
        uint64_t number;
        bool fits;
    } cases[] = {
        {"0", 0, true},
        {"007", 7, true},
        {"18446744073709551615", UINT64_MAX, true},
        {"18446744073709551616", 0, false},
        {"99999999999999999999", 0, false},
        {"", 0, false},
        {"+1", 0, false},
        {"-1", 0, false},
        {" 1", 0, false},
        {"1 ", 0, false},
        {"0x1", 0, false},
        {"1.0", 0, false},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        uint64_t number = 42;
        assert_int_equal(str_to_u64(str_from(cases[i].text), &number), cases[i].fits);
        assert_int_equal(number, cases[i].fits ? cases[i].number : 42);
    }
    uint64_t number;
    assert_false(str_to_u64(STR("1\0"), &number));
}

static void signed_numbers_reach_both_ends(void **state) {
    (void)state;
    static const struct {
        const char *text;
        int64_t number;
        bool fits;
    } cases[] = {
        {"0", 0, true},
        {"-0", 0, true},
        {"+5", 5, true},
        {"-5", -5, true},
        {"9223372036854775807", INT64_MAX, true},
        {"-9223372036854775808", INT64_MIN, true},
        {"9223372036854775808", 0, false},
        {"-9223372036854775809", 0, false},
        {"-", 0, false},
        {"+", 0, false},
        {"--1", 0, false},
        {"+-1", 0, false},
        {"", 0, false},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        int64_t number = 42;
        assert_int_equal(str_to_i64(str_from(cases[i].text), &number), cases[i].fits);
        assert_int_equal(number, cases[i].fits ? cases[i].number : 42);
    }
}

static void a_copy_ends_in_nul(void **state) {
    (void)state;
    char *copy = str_dup(str_head(STR("abcdef"), 3));
    assert_string_equal(copy, "abc");
    free(copy);
    copy = str_dup(NOTHING);
    assert_string_equal(copy, "");
    free(copy);
    assert_int_equal(str_from(NULL).len, 0);
}

static void plain_text_is_letters_digits_and_what_is_named(void **state) {
    (void)state;
    for (int byte = 0; byte < 256; byte++) {
        bool alnum = (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'z') ||
                     (byte >= 'A' && byte <= 'Z');
        char text[] = {(char)byte};
        assert_int_equal(str_is_alnum((char)byte), alnum);
        assert_int_equal(str_is_plain(str_of(text, 1), "-_"),
                         alnum || byte == '-' || byte == '_');
    }
    assert_true(str_is_plain(STR_EMPTY, ""));
    assert_false(str_is_plain(STR("ab c"), "-"));
}

static void hexadecimal_digits_are_read_in_either_case_and_nothing_else_is(void **state) {
    (void)state;
    for (int byte = 0; byte < 256; byte++) {
        const char *digits = "0123456789abcdef";
        const char *at =
            byte ? strchr(digits, byte >= 'A' && byte <= 'F' ? byte + 32 : byte) : NULL;
        assert_int_equal(str_hex_digit((char)byte), at ? at - digits : -1);
    }
}

static void printable_is_ascii_from_the_blank_to_the_tilde(void **state) {
    (void)state;
    assert_true(str_is_printable(STR_EMPTY));
    for (int byte = 0; byte < 256; byte++) {
        const char text[] = {' ', (char)byte, '~'};
        assert_int_equal(str_is_printable(str_of(text, sizeof(text))),
                         byte >= ' ' && byte <= '~');
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_text_is_letters_digits_and_what_is_named),
        cmocka_unit_test(views_are_compared_by_their_bytes),
        cmocka_unit_test(order_is_by_unsigned_bytes_and_the_shorter_first),
        cmocka_unit_test(heads_and_tails_never_reach_beyond),
        cmocka_unit_test(finding_gives_the_first_place_or_the_length),
        cmocka_unit_test(trimming_takes_the_space_at_both_ends),
        cmocka_unit_test(splitting_tells_an_empty_rest_from_none),
        cmocka_unit_test(numbers_are_digits_that_fit),
        cmocka_unit_test(signed_numbers_reach_both_ends),
        cmocka_unit_test(a_copy_ends_in_nul),
        cmocka_unit_test(hexadecimal_digits_are_read_in_either_case_and_nothing_else_is),
        cmocka_unit_test(printable_is_ascii_from_the_blank_to_the_tilde),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
