/* The states of a connection, and the end of its home. What happens in them is in server_test.c and http1_test.c. */
#include "server/conn.h"

#include "helper/moves.h"

static void only_the_drawn_moves_are_legal(void **state) {
    (void)state;
    static const char *const drawn[] = {"open finishing", "open cut", "finishing lingering",
                                        "finishing cut", "lingering cut"};
    assert_moves(conn_states, CONN_STATE_COUNT, drawn, ARRAY_LEN(drawn));
}

/* The daemon's thread ends the homes while other loops still turn, and must find no timer. */
static void a_home_that_was_shut_down_has_no_timer(void **state) {
    (void)state;
    struct home home;
    struct loop *loop = loop_new_fake();
    home_init(&home, loop);
    home_settle(&home);
    assert_true(timer_waits(&home.rest));
    home_shut_down(&home);
    assert_false(timer_waits(&home.rest));
    home_settle(&home);
    assert_false(timer_waits(&home.rest));
    home_done(&home);
    loop_free(loop);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_the_drawn_moves_are_legal),
        cmocka_unit_test(a_home_that_was_shut_down_has_no_timer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
