/* The moves of a live conversation. */
#include "provider/live.h"

/* clang-format off */
const struct state live_states[LIVE_STATE_COUNT] = {
    [LIVE_OPENING]   = {"opening",   TO(LIVE_SETTING) | TO(LIVE_OVER)},
    [LIVE_SETTING]   = {"setting",   TO(LIVE_READY) | TO(LIVE_OVER)},
    [LIVE_READY]     = {"ready",     TO(LIVE_ASKED) | TO(LIVE_STOPPING) | TO(LIVE_OVER)},
    [LIVE_ASKED]     = {"asked",     TO(LIVE_ANSWERING) | TO(LIVE_STOPPING) |
                                     TO(LIVE_READY) | TO(LIVE_OVER)},
    [LIVE_ANSWERING] = {"answering", TO(LIVE_READY) | TO(LIVE_STOPPING) | TO(LIVE_OVER)},
    [LIVE_STOPPING]  = {"stopping",  TO(LIVE_READY) | TO(LIVE_OVER)},
    [LIVE_OVER]      = {"over",      0},
};
/* clang-format on */
