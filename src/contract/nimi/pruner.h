/* pruner: deletes uploads whose time is over, from when the runtime serves until it stops.
 *
 *     off ─▶ idle ⇄ asking        idle: a timer is set for the next one whose time will be over
 *      ▲──────┴───────┘
 *
 * Each loop has one. That two of them ask for the same harms nobody.
 *
 * Memory   part of its desk.
 * Threads  the desk's loop.
 * Source   contracts/nimi.md 6.2, last paragraph.
 */
#ifndef WEIR_CONTRACT_NIMI_PRUNER_H
#define WEIR_CONTRACT_NIMI_PRUNER_H

#include "loop/loop.h"
#include "store/upload.h"

struct pruner {
    struct loop *loop;
    struct store *store;      /* NULL: off */
    int64_t (*unix_ms)(void); /* what time it is */
    struct timer due;
    struct upload_ask *ask; /* while it asks */
    bool again;             /* something became over meanwhile */
};

void pruner_init(struct pruner *pruner, struct loop *loop);
void pruner_start(struct pruner *pruner, struct store *store);
void pruner_stop(struct pruner *pruner); /* harmless when it is off */

/* Something was uploaded, or is over: look again. */
void pruner_wake(struct pruner *pruner);

#endif
