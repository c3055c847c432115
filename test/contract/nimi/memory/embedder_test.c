/* What the embedder may do in each state. Its work is tried end to end in test_nimi_vectors.py. */
#include "contract/nimi/memory/embedder.h"

#include "helper/assert_str.h"

static void only_the_moves_of_the_table_are_allowed(void **state) {
    (void)state;
    static const char *const rows[EMBEDDER_STATE_COUNT] = {
        /* off idle looking asking keeping resting */
        [EMBEDDER_OFF] = ".#....",     [EMBEDDER_IDLE] = "#.#...",
        [EMBEDDER_LOOKING] = "######", [EMBEDDER_ASKING] = "#.###.",
        [EMBEDDER_KEEPING] = "#.#...", [EMBEDDER_RESTING] = "#.#...",
    };
    for (enum embedder_state from = 0; from < EMBEDDER_STATE_COUNT; from++) {
        assert_true(states_name(embedder_states, from).len);
        for (enum embedder_state to = 0; to < EMBEDDER_STATE_COUNT; to++)
            assert_int_equal(states_allow(embedder_states, from, to), rows[from][to] == '#');
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_the_moves_of_the_table_are_allowed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
