/* pruner: delete expired uploads, from when the runtime serves until it stops.
 *
 *     off ─▶ idle ⇄ asking        idle: a timer is set for the next upload that expires
 *      ▲──────┴───────┘
 *
 * Each loop has one. It is harmless if two of them ask for the same.
 *
 * Memory   part of its instance.
 * Threads  the instance's loop.
 * Source   contracts/nimi.md 6.2, last paragraph.
 */
#ifndef WEIR_CONTRACT_NIMI_UPLOAD_PRUNER_H
#define WEIR_CONTRACT_NIMI_UPLOAD_PRUNER_H

#include "loop/loop.h"
#include "store/upload.h"

struct pruner {
    struct loop *loop;
    struct store *store;      /* NULL: off */
    int64_t (*unix_ms)(void); /* the current time */
    struct timer due;
    struct upload_ask *ask; /* while asking */
    bool again;             /* woken while asking: ask again */
};

void pruner_init(struct pruner *pruner, struct loop *loop);
void pruner_start(struct pruner *pruner, struct store *store);
void pruner_stop(struct pruner *pruner); /* harmless when it is off */

/* Something was uploaded or has expired. Look again. */
void pruner_wake(struct pruner *pruner);

#endif
