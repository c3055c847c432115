/* state: what becomes of a download.
 *
 *     queued ─▶ running ─▶ completed
 *        ▲         ├─▶ paused ───┐
 *        └─────────┴─▶ failed ───┴─▶ queued again, or cancelled
 *
 * A new process queues again what was running. A failed one may be resumed.
 *
 * Threads  none; values only.
 * Source   contracts/nimi.md 1.13: the names.
 */
#ifndef WEIR_CONTRACT_NIMI_TRANSFER_STATE_H
#define WEIR_CONTRACT_NIMI_TRANSFER_STATE_H

#include "base/states.h"
#include "base/str.h"

/* The numbers are in the store. */
enum download_state {
    DOWNLOAD_QUEUED,
    DOWNLOAD_RUNNING,
    DOWNLOAD_PAUSED,
    DOWNLOAD_FAILED,
    DOWNLOAD_COMPLETED,
    DOWNLOAD_CANCELLED,
    DOWNLOAD_STATE_COUNT,
};

extern const struct state download_states[DOWNLOAD_STATE_COUNT];

/* Nothing happens any more unless someone asks for it. */
static inline bool download_is_done(enum download_state state) {
    return state >= DOWNLOAD_FAILED;
}

#endif
