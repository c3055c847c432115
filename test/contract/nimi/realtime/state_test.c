#include "contract/nimi/realtime/state.h"

#include "helper/assert_str.h"
#include "helper/moves.h"

static void session_states_match_the_drawing(void **state) {
    (void)state;
    static const char *const drawn[] = {
        "listening reading",  "listening waiting", "listening over",   "reading waiting",
        "reading listening",  "reading over",      "waiting asking",   "waiting listening",
        "waiting over",       "asking speaking",   "asking listening", "asking over",
        "speaking listening", "speaking over",
    };
    assert_moves(realtime_states, REALTIME_STATE_COUNT, drawn, ARRAY_LEN(drawn));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(session_states_match_the_drawing)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
