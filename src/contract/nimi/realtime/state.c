#include "contract/nimi/realtime/state.h"

#define TO(state) (1u << (state))
#define CUT_SHORT (TO(REALTIME_LISTENING) | TO(REALTIME_OVER))

static const struct {
    const char *name;
    unsigned may_become;
} states[REALTIME_STATE_COUNT] = {
    [REALTIME_LISTENING] = {"listening",
                            TO(REALTIME_READING) | TO(REALTIME_WAITING) | TO(REALTIME_OVER)},
    [REALTIME_READING] = {"reading", TO(REALTIME_WAITING) | CUT_SHORT},
    [REALTIME_WAITING] = {"waiting", TO(REALTIME_ASKING) | CUT_SHORT},
    [REALTIME_ASKING] = {"asking", TO(REALTIME_SPEAKING) | CUT_SHORT},
    [REALTIME_SPEAKING] = {"speaking", CUT_SHORT},
    [REALTIME_OVER] = {"over", 0},
};

struct str realtime_state_name(enum realtime_state state) {
    return str_from(states[state].name);
}

bool realtime_may_become(enum realtime_state state, enum realtime_state next) {
    return (states[state].may_become & TO(next)) != 0;
}
