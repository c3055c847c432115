#include "contract/nimi/realtime/state.h"

#define CUT_SHORT (TO(REALTIME_LISTENING) | TO(REALTIME_OVER))

const struct state realtime_states[REALTIME_STATE_COUNT] = {
    [REALTIME_LISTENING] = {"listening",
                            TO(REALTIME_READING) | TO(REALTIME_WAITING) | TO(REALTIME_OVER)},
    [REALTIME_READING] = {"reading", TO(REALTIME_WAITING) | CUT_SHORT},
    [REALTIME_WAITING] = {"waiting", TO(REALTIME_ASKING) | CUT_SHORT},
    [REALTIME_ASKING] = {"asking", TO(REALTIME_SPEAKING) | CUT_SHORT},
    [REALTIME_SPEAKING] = {"speaking", CUT_SHORT},
    [REALTIME_OVER] = {"over", 0},
};
