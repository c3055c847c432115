/* lifecycle: the state of the runtime, and which calls it admits.
 *
 *     stopped ─▶ starting ─▶ ready ⇄ degraded
 *        ▲          │          └──┬──────┘
 *        └──────────┴── stopping ◀┘
 *
 * READY admits every call. So does DEGRADED, but probes see that the runtime is not well. While
 * it stops, only calls that read are admitted.
 *
 * Memory   plain values.
 * Threads  none; the owner guards a shared state.
 * Source   contracts/nimi.md 3.2.
 */
#ifndef WEIR_CONTRACT_NIMI_LIFECYCLE_H
#define WEIR_CONTRACT_NIMI_LIFECYCLE_H

#include "base/states.h"

/* The numbers are those of RuntimeHealthStatus. */
enum lifecycle {
    LIFE_STOPPED = 1,
    LIFE_STARTING,
    LIFE_READY,
    LIFE_DEGRADED,
    LIFE_STOPPING,
    LIFE_COUNT,
};

extern const struct state lifecycle_states[LIFE_COUNT]; /* the first row is none */

/* The only function that changes a state. An illegal move is a bug and asserts. */
void lifecycle_move(enum lifecycle *state, enum lifecycle next);

/* Whether a call is admitted. A call that only reads is admitted while the runtime stops. */
bool lifecycle_admits(enum lifecycle state, bool reads);

struct str lifecycle_name(enum lifecycle state); /* "READY" */

#endif
