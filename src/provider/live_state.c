/* The moves of a live conversation. */
#include "provider/live.h"

#define TO(state) (1u << (state))

/* clang-format off */
static const struct {
    struct str name;
    unsigned may_become;
} states[LIVE_STATE_COUNT] = {
    [LIVE_OPENING]   = {STR_INIT("opening"),   TO(LIVE_SETTING) | TO(LIVE_OVER)},
    [LIVE_SETTING]   = {STR_INIT("setting"),   TO(LIVE_READY) | TO(LIVE_OVER)},
    [LIVE_READY]     = {STR_INIT("ready"),     TO(LIVE_ASKED) | TO(LIVE_STOPPING) | TO(LIVE_OVER)},
    [LIVE_ASKED]     = {STR_INIT("asked"),     TO(LIVE_ANSWERING) | TO(LIVE_STOPPING) |
                                               TO(LIVE_READY) | TO(LIVE_OVER)},
    [LIVE_ANSWERING] = {STR_INIT("answering"), TO(LIVE_READY) | TO(LIVE_STOPPING) | TO(LIVE_OVER)},
    [LIVE_STOPPING]  = {STR_INIT("stopping"),  TO(LIVE_READY) | TO(LIVE_OVER)},
    [LIVE_OVER]      = {STR_INIT("over"),      0},
};
/* clang-format on */

bool live_may_become(enum live_state state, enum live_state next) {
    return states[state].may_become & TO(next);
}

struct str live_state_name(enum live_state state) {
    return states[state].name;
}
