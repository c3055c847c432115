/* How a turn comes to its session: the moves. What happens in them is in run_test.c (waiting,
 * cancelled on the way, places of a workspace) and working_test.c (waiting for a human). */
#include "run/admission.h"

#include "base/attr.h"
#include "helper/assert_str.h"

#include <stdio.h>

static void only_the_drawn_moves_are_legal(void **state) {
    (void)state;
    static const char *const drawn[] = {"outside waits", "outside inside", "waits inside",
                                        "waits outside", "inside outside"};
    for (enum admission_state from = 0; from < ADMISSION_STATE_COUNT; from++) {
        for (enum admission_state to = 0; to < ADMISSION_STATE_COUNT; to++) {
            char move[64];
            bool legal = false;
            snprintf(move, sizeof(move), STR_FMT " " STR_FMT,
                     STR_ARG(admission_state_name(from)), STR_ARG(admission_state_name(to)));
            for (size_t i = 0; i < ARRAY_LEN(drawn); i++)
                legal = legal || strcmp(move, drawn[i]) == 0;
            if (admission_may_become(from, to) != legal) fail_msg("%s", move);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(only_the_drawn_moves_are_legal)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
