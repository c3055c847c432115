/* The state machines of client/, every pair of states. */
#include "client/direct.h"
#include "client/link.h"
#include "client/websocket_call.h"

#include "helper/moves.h"

static void a_request_moves_as_drawn(void **state) {
    (void)state;
    static const char *const drawn[] = {
        "new dialling",  "new asking",          "new over",          "dialling asking",
        "dialling over", "asking dialling",     "asking redirected", "asking reading",
        "asking over",   "redirected dialling", "redirected asking", "redirected over",
        "reading over",
    };
    assert_moves(direct_states, DIRECT_STATE_COUNT, drawn, ARRAY_LEN(drawn));
}

static void a_connection_moves_as_drawn(void **state) {
    (void)state;
    static const char *const drawn[] = {"securing busy", "securing closed", "busy idle",
                                        "busy closed",   "idle busy",       "idle closed"};
    assert_moves(link_states, LINK_STATE_COUNT, drawn, ARRAY_LEN(drawn));
}

static void a_websocket_moves_as_drawn(void **state) {
    (void)state;
    static const char *const drawn[] = {
        "dialling asking", "dialling over", "asking refused", "asking open",
        "asking over",     "refused over",  "open over",
    };
    assert_moves(websocket_call_states, WEBSOCKET_CALL_STATE_COUNT, drawn, ARRAY_LEN(drawn));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_websocket_moves_as_drawn),
        cmocka_unit_test(a_request_moves_as_drawn),
        cmocka_unit_test(a_connection_moves_as_drawn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
