/* bank_pruner: take the records of deleted banks out of the store, in steps.
 *
 *     off ─▶ idle ⇄ asking
 *      ▲──────┴───────┘
 *
 * It looks when the runtime begins to serve, which finds what an earlier process left, and after
 * a bank was deleted. Each loop has one; it is harmless if two of them ask for the same.
 *
 * Memory   part of its instance.
 * Threads  the instance's loop.
 */
#ifndef WEIR_CONTRACT_NIMI_MEMORY_BANK_PRUNER_H
#define WEIR_CONTRACT_NIMI_MEMORY_BANK_PRUNER_H

#include "store/bank.h"

struct bank_pruner {
    struct loop *loop;
    struct store *store;  /* NULL: off */
    struct bank_ask *ask; /* while asking */
    bool again;           /* woken while asking */
};

void bank_pruner_start(struct bank_pruner *pruner, struct loop *loop, struct store *store);
void bank_pruner_stop(struct bank_pruner *pruner); /* harmless when it is off */
void bank_pruner_wake(struct bank_pruner *pruner);

#endif
