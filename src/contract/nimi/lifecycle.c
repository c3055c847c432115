#include "contract/nimi/lifecycle.h"

#include "base/log.h"

#include <assert.h>

const struct state lifecycle_states[LIFE_COUNT] = {
    [LIFE_STOPPED] = {"STOPPED", TO(LIFE_STARTING)},
    [LIFE_STARTING] = {"STARTING", TO(LIFE_READY) | TO(LIFE_STOPPED)},
    [LIFE_READY] = {"READY", TO(LIFE_DEGRADED) | TO(LIFE_STOPPING)},
    [LIFE_DEGRADED] = {"DEGRADED", TO(LIFE_READY) | TO(LIFE_STOPPING)},
    [LIFE_STOPPING] = {"STOPPING", TO(LIFE_STOPPED)},
};

/* The kinds of calls that each state admits. */
static const struct {
    bool reads, writes;
} admits[LIFE_COUNT] = {
    [LIFE_STARTING] = {true, true},
    [LIFE_READY] = {true, true},
    [LIFE_DEGRADED] = {true, true},
    [LIFE_STOPPING] = {true, false},
};

void lifecycle_move(enum lifecycle *state, enum lifecycle next) {
    assert(states_allow(lifecycle_states, *state, next));
    log_debug("runtime %s -> %s", lifecycle_states[*state].name, lifecycle_states[next].name);
    *state = next;
}

bool lifecycle_admits(enum lifecycle state, bool reads) {
    return reads ? admits[state].reads : admits[state].writes;
}

struct str lifecycle_name(enum lifecycle state) {
    return states_name(lifecycle_states, state);
}
