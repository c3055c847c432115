#include "sidecar/relay.h"

#include "helper/moves.h"

static void a_relay_moves_as_drawn(void **state) {
    (void)state;
    static const char *const drawn[] = {
        "reading waiting",     "reading asking",   "reading answered", "reading over",
        "waiting asking",      "waiting answered", "waiting over",     "asking collecting",
        "asking passing",      "asking events",    "asking answered",  "asking over",
        "collecting answered", "collecting over",  "passing answered", "passing over",
        "events answered",     "events over",      "answered over",
    };
    assert_moves(relay_states, RELAY_STATE_COUNT, drawn, ARRAY_LEN(drawn));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_relay_moves_as_drawn)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
