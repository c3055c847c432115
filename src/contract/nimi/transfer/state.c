#include "contract/nimi/transfer/state.h"

const struct state download_states[DOWNLOAD_STATE_COUNT] = {
    [DOWNLOAD_QUEUED] = {"queued",
                         TO(DOWNLOAD_RUNNING) | TO(DOWNLOAD_PAUSED) | TO(DOWNLOAD_CANCELLED)},
    [DOWNLOAD_RUNNING] = {"running", TO(DOWNLOAD_PAUSED) | TO(DOWNLOAD_FAILED) |
                                         TO(DOWNLOAD_COMPLETED) | TO(DOWNLOAD_CANCELLED)},
    [DOWNLOAD_PAUSED] = {"paused", TO(DOWNLOAD_QUEUED) | TO(DOWNLOAD_CANCELLED)},
    [DOWNLOAD_FAILED] = {"failed", TO(DOWNLOAD_QUEUED) | TO(DOWNLOAD_CANCELLED)},
    [DOWNLOAD_COMPLETED] = {"completed", 0},
    [DOWNLOAD_CANCELLED] = {"cancelled", 0},
};
