/* The checksum on disk: it detects every small change, and its algorithm never changes. */
#include "store/sum.h"

#include <setjmp.h>
#include <stdarg.h>
/* cmocka wants these four first. */
#include <cmocka.h>

static void any_flipped_bit_gives_another_sum(void **state) {
    (void)state;
    char bytes[100];
    for (size_t i = 0; i < sizeof(bytes); i++) bytes[i] = (char)(i * 37);
    for (size_t len = 0; len <= sizeof(bytes); len++) {
        uint64_t good = sum_of(7, str_of(bytes, len));
        assert_true(sum_of(8, str_of(bytes, len)) != good);
        if (len) assert_true(sum_of(7, str_of(bytes, len - 1)) != good);
        for (size_t bit = 0; bit < 8 * len; bit++) {
            bytes[bit / 8] = (char)(bytes[bit / 8] ^ 1 << bit % 8);
            assert_true(sum_of(7, str_of(bytes, len)) != good);
            bytes[bit / 8] = (char)(bytes[bit / 8] ^ 1 << bit % 8);
        }
    }
}

static void the_sum_of_known_bytes_stays_what_it_is(void **state) {
    (void)state;
    assert_true(sum_of(0, STR_EMPTY) == UINT64_C(0x9f1d7f77418cc022));
    assert_true(sum_of(42, STR("the rows of a log are never changed, only added to")) ==
                UINT64_C(0x119d0edadab8086c));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_flipped_bit_gives_another_sum),
        cmocka_unit_test(the_sum_of_known_bytes_stays_what_it_is),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
