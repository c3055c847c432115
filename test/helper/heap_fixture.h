/* heap_fixture: each test of a file gets a `struct fixture` of its own, on the heap: *state.
 *
 * Include it after the file's own fixture_init() and fixture_done().
 */
#ifndef WEIR_TEST_HELPER_HEAP_FIXTURE_H
#define WEIR_TEST_HELPER_HEAP_FIXTURE_H

#include "base/mem.h"

#include <stdlib.h>

static int fixture_setup(void **state) {
    struct fixture *f = MEM_NEW(struct fixture);
    fixture_init(f);
    *state = f;
    return 0;
}

static int fixture_teardown(void **state) {
    struct fixture *f = *state;
    fixture_done(f);
    free(f);
    return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, fixture_setup, fixture_teardown)

#endif
