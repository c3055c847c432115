/* waits: a call that waits for the store or for an issuer's keys.
 *
 * A change that has begun goes on when its caller leaves, so what waits is not the call's.
 * Private to contract/nimi/account.
 *
 * Memory   the first member of what waits, which its `drop` frees.
 * Threads  the call's loop.
 */
#ifndef WEIR_CONTRACT_NIMI_ACCOUNT_WAITS_H
#define WEIR_CONTRACT_NIMI_ACCOUNT_WAITS_H

#include "contract/nimi/call.h"
#include "store/kept.h"

struct account_wait {
    struct list link; /* in instance->account.waits */
    struct nimi_instance *instance;
    struct nimi_call *call; /* NULL: its caller has left */
    struct kept_ask *ask;   /* NULL: not now */
    struct key_wait *keys;  /* NULL: not now */
    void (*left)(struct account_wait *wait);
    void (*drop)(struct account_wait *wait);
};

void account_wait_begin(struct account_wait *wait, struct nimi_call *call,
                        void (*left)(struct account_wait *wait),
                        void (*drop)(struct account_wait *wait));

/* It waits no more; `drop` is called. Returns the call if it can still be answered. */
struct nimi_call *account_wait_end(struct account_wait *wait);

/* The instance ends. */
void account_waits_leave(struct list *waits);

#endif
