#include "contract/nimi/transfer/state.h"

#define TO(state) (1u << (state))

static const struct {
    struct str name;
    unsigned may_become;
} states[DOWNLOAD_STATE_COUNT] = {
    [DOWNLOAD_QUEUED] = {STR_INIT("queued"),
                         TO(DOWNLOAD_RUNNING) | TO(DOWNLOAD_PAUSED) | TO(DOWNLOAD_CANCELLED)},
    [DOWNLOAD_RUNNING] = {STR_INIT("running"), TO(DOWNLOAD_PAUSED) | TO(DOWNLOAD_FAILED) |
                                                   TO(DOWNLOAD_COMPLETED) |
                                                   TO(DOWNLOAD_CANCELLED)},
    [DOWNLOAD_PAUSED] = {STR_INIT("paused"), TO(DOWNLOAD_QUEUED) | TO(DOWNLOAD_CANCELLED)},
    [DOWNLOAD_FAILED] = {STR_INIT("failed"), TO(DOWNLOAD_QUEUED) | TO(DOWNLOAD_CANCELLED)},
    [DOWNLOAD_COMPLETED] = {STR_INIT("completed"), 0},
    [DOWNLOAD_CANCELLED] = {STR_INIT("cancelled"), 0},
};

struct str download_state_name(enum download_state state) {
    return states[state].name;
}

bool download_may_become(enum download_state state, enum download_state next) {
    return (states[state].may_become & TO(next)) != 0;
}
