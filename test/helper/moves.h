/* moves: compare a state machine's table with its drawing, for every pair of states.
 *
 *     assert_moves(record_states, RECORD_STATE_COUNT, drawn, ARRAY_LEN(drawn));
 *
 * `drawn` are the legal moves in words, "from to".
 */
#ifndef WEIR_TEST_HELPER_MOVES_H
#define WEIR_TEST_HELPER_MOVES_H

#include "base/states.h"
#include "helper/assert_str.h"

#include <stdio.h>
#include <string.h>

static inline void assert_moves(const struct state *table, unsigned states,
                                const char *const *drawn, size_t count) {
    size_t found = 0;
    for (unsigned from = 0; from < states; from++) {
        for (unsigned to = 0; to < states; to++) {
            char move[64];
            bool legal = false;
            snprintf(move, sizeof(move), STR_FMT " " STR_FMT, STR_ARG(states_name(table, from)),
                     STR_ARG(states_name(table, to)));
            for (size_t i = 0; i < count; i++) legal = legal || strcmp(move, drawn[i]) == 0;
            if (states_allow(table, from, to) != legal) fail_msg("%s", move);
            found += legal;
        }
    }
    assert_int_equal(found, count);
}

#endif
