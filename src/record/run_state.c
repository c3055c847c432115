#include "record/run_state.h"

#define TO(state) (1u << (state))
#define CUT_SHORT (TO(RUN_FAILED) | TO(RUN_CANCELLED))

static const struct {
    const char *name;
    unsigned may_become;
} states[RUN_STATE_COUNT] = {
    /* clang-format off */
    [RUN_QUEUED]    = {"queued",    TO(RUN_ASKING) | TO(RUN_WORKING) | CUT_SHORT},
    [RUN_ASKING]    = {"asking",    TO(RUN_WORKING) | TO(RUN_DONE) | CUT_SHORT},
    [RUN_WORKING]   = {"working",   TO(RUN_ASKING) | TO(RUN_WAITING) | CUT_SHORT},
    [RUN_WAITING]   = {"waiting",   TO(RUN_WORKING) | CUT_SHORT},
    [RUN_DONE]      = {"done",      0},
    [RUN_FAILED]    = {"failed",    0},
    [RUN_CANCELLED] = {"cancelled", 0},
    /* clang-format on */
};

struct str run_state_name(enum run_state state) {
    return str_from(states[state].name);
}

bool run_may_become(enum run_state state, enum run_state next) {
    return (states[state].may_become & TO(next)) != 0;
}
