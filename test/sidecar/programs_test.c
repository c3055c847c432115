#include "sidecar/programs.h"

#include "helper/moves.h"

static void a_program_moves_as_drawn(void **state) {
    (void)state;
    static const char *const drawn[] = {"cold greeting", "greeting ready", "greeting cold",
                                        "ready cold"};
    assert_moves(program_states, PROGRAM_STATE_COUNT, drawn, ARRAY_LEN(drawn));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_program_moves_as_drawn)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
