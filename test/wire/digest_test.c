#include "wire/digest.h"

#include "helper/assert_str.h"

static void assert_digits(const uint8_t digest[DIGEST_BYTES], const char *expected) {
    char digits[DIGEST_DIGITS];
    digest_digits(digest, DIGEST_DIGITS, digits);
    assert_str(str_of(digits, DIGEST_DIGITS), expected);
}

/* FIPS 180-4, the examples of NIST. */
static void a_text_has_the_digest_of_the_standard(void **state) {
    (void)state;
    uint8_t digest[DIGEST_BYTES];
    digest_text(STR("abc"), digest);
    assert_digits(digest, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    digest_text(STR_EMPTY, digest);
    assert_digits(digest, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
}

static void parts_that_are_cut_elsewhere_differ(void **state) {
    (void)state;
    const struct str one[] = {STR_INIT("ab"), STR_INIT("c")};
    const struct str other[] = {STR_INIT("a"), STR_INIT("bc")};
    const struct str more[] = {STR_INIT("ab"), STR_INIT("c"), STR_INIT("")};
    uint8_t a[DIGEST_BYTES], b[DIGEST_BYTES];
    digest_parts(one, 2, a);
    digest_parts(one, 2, b);
    assert_memory_equal(a, b, DIGEST_BYTES);
    digest_parts(other, 2, b);
    assert_memory_not_equal(a, b, DIGEST_BYTES);
    digest_parts(more, 3, b);
    assert_memory_not_equal(a, b, DIGEST_BYTES);
}

static void fewer_digits_are_the_first_ones(void **state) {
    (void)state;
    uint8_t digest[DIGEST_BYTES];
    char digits[8] = "#######";
    digest_text(STR("abc"), digest);
    digest_digits(digest, 5, digits);
    assert_string_equal(digits, "ba781##");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_text_has_the_digest_of_the_standard),
        cmocka_unit_test(parts_that_are_cut_elsewhere_differ),
        cmocka_unit_test(fewer_digits_are_the_first_ones),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
