#include "exporter/exporter.h"

#include "helper/moves.h"

static void the_states_move_as_they_are_drawn(void **state) {
    (void)state;
    static const char *const drawn[] = {"idle sending", "sending idle", "sending waiting",
                                        "waiting sending"};
    assert_moves(exporter_states, EXPORTER_STATE_COUNT, drawn, ARRAY_LEN(drawn));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_states_move_as_they_are_drawn)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
