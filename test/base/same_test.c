#include "base/same.h"

#include "helper/assert_str.h"

static void bytes_are_the_same_or_differ_anywhere(void **state) {
    (void)state;
    unsigned char a[40] = {0}, b[40] = {0};
    assert_true(same_bytes(NULL, NULL, 0));
    for (size_t len = 0; len <= sizeof(a); len++) {
        assert_true(same_bytes(a, b, len));
        for (size_t bit = 0; bit < 8 * len; bit++) {
            b[bit / 8] = (unsigned char)(1u << bit % 8);
            assert_false(same_bytes(a, b, len));
            b[bit / 8] = 0;
        }
    }
}

static void a_secret_is_given_by_all_of_it_and_nothing_more(void **state) {
    (void)state;
    struct str secret = exact_copy(STR("s3cret"));
    assert_true(same_secret(STR("s3cret"), secret));
    static const struct str wrong[] = {
        STR_INIT(""),       STR_INIT("s3cre"),  STR_INIT("s3crets"), STR_INIT("s3crets3cret"),
        STR_INIT("S3cret"), STR_INIT("x3cret"), STR_INIT("s3cret\0")};
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) assert_false(same_secret(wrong[i], secret));
    free((void *)secret.at);
}

static void an_empty_secret_never_matches(void **state) {
    (void)state;
    assert_false(same_secret(STR(""), STR("")));
    assert_false(same_secret(STR("x"), (struct str){NULL, 0}));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_are_the_same_or_differ_anywhere),
        cmocka_unit_test(a_secret_is_given_by_all_of_it_and_nothing_more),
        cmocka_unit_test(an_empty_secret_never_matches),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
