/* The states of a connection. What happens in them is in server_test.c and http1_test.c. */
#include "server/conn.h"

#include "helper/moves.h"

MACHINE(conn)

static void only_the_drawn_moves_are_legal(void **state) {
    (void)state;
    static const char *const drawn[] = {"open finishing", "open cut", "finishing lingering",
                                        "finishing cut", "lingering cut"};
    assert_moves(&conn_machine, CONN_STATE_COUNT, drawn, ARRAY_LEN(drawn));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(only_the_drawn_moves_are_legal)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
