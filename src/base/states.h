/* states: the table of a state machine: what each state is called, and what may follow it.
 *
 * A machine has an enum, one table with a row for each of its values, and one function that
 * moves. That function asserts states_allow(). `make docs` draws the tables, and a test tries
 * every pair of states.
 *
 *     const struct state lamp_states[LAMP_STATE_COUNT] = {
 *         [LAMP_DARK] = {"dark", TO(LAMP_LIT)},
 *         [LAMP_LIT] = {"lit", TO(LAMP_DARK)},
 *     };
 */
#ifndef WEIR_BASE_STATES_H
#define WEIR_BASE_STATES_H

#include "base/str.h"

#define TO(state) (1u << (state))

struct state {
    const char *name;
    unsigned may_become; /* TO() of each state that may follow */
};

static inline bool states_allow(const struct state *table, unsigned state, unsigned next) {
    return (table[state].may_become & TO(next)) != 0;
}

static inline struct str states_name(const struct state *table, unsigned state) {
    return str_from(table[state].name);
}

#endif
