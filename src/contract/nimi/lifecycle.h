/* lifecycle: what the runtime may do now.
 *
 *     stopped ─▶ starting ─▶ ready ⇄ degraded
 *        ▲          │          └──┬──────┘
 *        └──────────┴── stopping ◀┘
 *
 * READY is served to everybody; DEGRADED too, but probes hear that it is not well; while it
 * stops only calls that read are let in.
 *
 * Memory   plain values.
 * Threads  none; who shares one guards it.
 * Source   contracts/nimi.md 3.2.
 */
#ifndef WEIR_CONTRACT_NIMI_LIFECYCLE_H
#define WEIR_CONTRACT_NIMI_LIFECYCLE_H

#include "base/str.h"

/* The numbers are those of RuntimeHealthStatus. */
enum lifecycle {
    LIFE_STOPPED = 1,
    LIFE_STARTING,
    LIFE_READY,
    LIFE_DEGRADED,
    LIFE_STOPPING,
    LIFE_COUNT,
};

bool lifecycle_may_become(enum lifecycle state, enum lifecycle next);

/* The only function that moves one; an illegal move is our own mistake. */
void lifecycle_move(enum lifecycle *state, enum lifecycle next);

/* Whether a call is let in: one that only reads is, also while the runtime stops. */
bool lifecycle_admits(enum lifecycle state, bool reads);

struct str lifecycle_name(enum lifecycle state); /* "READY" */

#endif
