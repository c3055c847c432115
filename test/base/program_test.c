/* Code and constants that were let go are there again when they are used. */
#include "base/machine.h"
#include "base/program.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka wants these four first. */
#include <cmocka.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

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

/* As a tool does that changes code, or a loader that relocates it. */
static void what_was_written_to_stays(void **state) {
    (void)state;
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    volatile char *byte = (char *)constants[1] + 4000;
    char *begin = (char *)((uintptr_t)byte & ~(uintptr_t)(page - 1));
    assert_int_equal(mprotect(begin, page, PROT_READ | PROT_WRITE), 0);
    *byte = 'x';
    assert_int_equal(mprotect(begin, page, PROT_READ), 0);
    for (int i = 0; i < 3; i++) {
        program_let_go();
        assert_int_equal(*byte, 'x');
        assert_int_equal(constants[1][8999], 'c');
    }
}

static void what_is_locked_reads_the_same(void **state) {
    (void)state;
    if (mlock(constants, sizeof(constants)) != 0) skip();
    program_let_go();
    assert_int_equal(constants[1][8999], 'c');
    assert_int_equal(munlock(constants, sizeof(constants)), 0);
}

static long faults(void) {
    struct rusage usage;
    assert_int_equal(getrusage(RUSAGE_THREAD, &usage), 0);
    return usage.ru_minflt;
}

static void what_was_let_go_is_mapped_again(void **state) {
    (void)state;
    if (machine_is_traced() || access("/proc/self/pagemap", R_OK) != 0) skip();
    faults(); /* what it touches itself, for the first time */
    long used = faults();
    assert_int_equal(faults(), used);
    program_let_go();
    assert_true(faults() > used + 2); /* the code here, in the C library, and its constants */
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_let_go_is_mapped_again),
        cmocka_unit_test(what_was_let_go_is_the_same_when_it_is_used),
        cmocka_unit_test(what_was_written_to_stays),
        cmocka_unit_test(what_is_locked_reads_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
