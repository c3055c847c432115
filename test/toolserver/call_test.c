/* The states of a call, for every pair. */
#include "toolserver/call.h"

#include "helper/moves.h"

static const char *const drawn[] = {"starting running", "starting answered", "running answered",
                                    "running cancelled", "running left"};

static void a_call_moves_as_it_is_drawn(void **state) {
    (void)state;
    assert_moves(toolserver_call_states, TOOLSERVER_CALL_STATE_COUNT, drawn, ARRAY_LEN(drawn));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_call_moves_as_it_is_drawn)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
