#include "contract/nimi/lifecycle.h"

#include "base/log.h"

#include <assert.h>

#define TO(state) (1u << (state))

static const struct {
    const char *name;
    unsigned may_become;
    bool reads, writes; /* kinds of calls admitted */
} states[LIFE_COUNT] = {
    /* clang-format off */
    [LIFE_STOPPED]  = {"STOPPED",  TO(LIFE_STARTING),                      false, false},
    [LIFE_STARTING] = {"STARTING", TO(LIFE_READY) | TO(LIFE_STOPPED),      true,  true},
    [LIFE_READY]    = {"READY",    TO(LIFE_DEGRADED) | TO(LIFE_STOPPING),  true,  true},
    [LIFE_DEGRADED] = {"DEGRADED", TO(LIFE_READY) | TO(LIFE_STOPPING),     true,  true},
    [LIFE_STOPPING] = {"STOPPING", TO(LIFE_STOPPED),                       true,  false},
    /* clang-format on */
};

bool lifecycle_may_become(enum lifecycle state, enum lifecycle next) {
    return (states[state].may_become & TO(next)) != 0;
}

void lifecycle_move(enum lifecycle *state, enum lifecycle next) {
    assert(lifecycle_may_become(*state, next));
    log_debug("runtime %s -> %s", states[*state].name, states[next].name);
    *state = next;
}

bool lifecycle_admits(enum lifecycle state, bool reads) {
    return reads ? states[state].reads : states[state].writes;
}

struct str lifecycle_name(enum lifecycle state) {
    return str_from(states[state].name);
}
