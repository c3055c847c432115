/* moves: compare a state machine's table with its drawing, for every pair of states.
 *
 *     MACHINE(record)
 *     assert_moves(&record_machine, RECORD_STATE_COUNT, drawn, ARRAY_LEN(drawn));
 *
 * `drawn` are the legal moves in words, "from to".
 */
#ifndef WEIR_TEST_HELPER_MOVES_H
#define WEIR_TEST_HELPER_MOVES_H

#include "base/attr.h"
#include "helper/assert_str.h"

#include <stdio.h>
#include <string.h>

struct machine {
    struct str (*name)(unsigned state);
    bool (*moves)(unsigned state, unsigned next);
};

#define MACHINE(prefix)                                                                        \
    static struct str prefix##_name_of(unsigned state) {                                       \
        return prefix##_state_name((enum prefix##_state)state);                                \
    }                                                                                          \
    static bool prefix##_moves(unsigned state, unsigned next) {                                \
        return prefix##_may_become((enum prefix##_state)state, (enum prefix##_state)next);     \
    }                                                                                          \
    static const struct machine prefix##_machine = {prefix##_name_of, prefix##_moves};

static inline void assert_moves(const struct machine *machine, unsigned states,
                                const char *const *drawn, size_t count) {
    size_t found = 0;
    for (unsigned from = 0; from < states; from++) {
        for (unsigned to = 0; to < states; to++) {
            char move[64];
            bool legal = false;
            snprintf(move, sizeof(move), STR_FMT " " STR_FMT, STR_ARG(machine->name(from)),
                     STR_ARG(machine->name(to)));
            for (size_t i = 0; i < count; i++) legal = legal || strcmp(move, drawn[i]) == 0;
            if (machine->moves(from, to) != legal) fail_msg("%s", move);
            found += legal;
        }
    }
    assert_int_equal(found, count);
}

#endif
