#include "daemon/daemon_inner.h"
#include "helper/moves.h"

static void a_daemon_that_stops_does_nothing_else(void **state) {
    (void)state;
    static const char *const drawn[] = {"starting serving", "starting stopping",
                                        "serving stopping"};
    assert_moves(daemon_phases, DAEMON_PHASE_COUNT, drawn, ARRAY_LEN(drawn));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_daemon_that_stops_does_nothing_else),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
