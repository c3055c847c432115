/* How a turn enters its session: the moves. What happens in them is tested in run_test.c
 * (waiting, cancelling meanwhile, places of a workspace) and tool_round_test.c (waiting for a
 * human). */
#include "turn/admission.h"

#include "helper/moves.h"

static void only_the_drawn_moves_are_legal(void **state) {
    (void)state;
    static const char *const drawn[] = {"outside waits", "outside inside", "waits inside",
                                        "waits outside", "inside outside"};
    assert_moves(admission_states, ADMISSION_STATE_COUNT, drawn, ARRAY_LEN(drawn));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(only_the_drawn_moves_are_legal)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
