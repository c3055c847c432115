#include "record/run_state.h"

#define CUT_SHORT (TO(RUN_FAILED) | TO(RUN_CANCELLED))

const struct state run_states[RUN_STATE_COUNT] = {
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
