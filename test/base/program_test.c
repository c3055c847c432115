/* Code and constants that were let go are there again when they are used. */
#include "base/program.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants these four first. */
#include <cmocka.h>
#include <string.h>

static const char constants[3][9000] = {{'a', 'b'}, {[8999] = 'c'}, {'d'}};

static int square(int number) {
    return number * number;
}

static void what_was_let_go_is_the_same_when_it_is_used(void **state) {
    (void)state;
    static int changed = 1;
    int (*volatile call)(int) = square; /* a relocated address */
    for (int i = 0; i < 3; i++) {
        changed += i;
        program_let_go();
        assert_int_equal(call(7 + i), (7 + i) * (7 + i));
        assert_string_equal(constants[0], "ab");
        assert_int_equal(constants[1][8999], 'c');
        assert_int_equal(constants[2][0], 'd');
    }
    assert_int_equal(changed, 4);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_let_go_is_the_same_when_it_is_used),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
