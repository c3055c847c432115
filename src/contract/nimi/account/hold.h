/* hold: a call that came before the store was asked who is logged in waits for the answer.
 *
 * It waits no longer than the store takes to answer or to fail (STORE_DOUBT_MS), and than its own
 * deadline. Then it goes on, also with an account that is still unavailable.
 * Private to contract/nimi/account.
 *
 * Memory   a copy of what is held; the call keeps the texts.
 * Threads  the call's loop.
 */
#ifndef WEIR_CONTRACT_NIMI_ACCOUNT_HOLD_H
#define WEIR_CONTRACT_NIMI_ACCOUNT_HOLD_H

#include "contract/nimi/account/waits.h"

struct account_held {
    struct account_wait wait; /* of hold.c */
    /* What go_on() needs of the request. */
    struct str app, app_instance, origin;
    uint64_t after;
    int32_t ttl_s;
    void (*go_on)(struct nimi_call *call, const struct account_held *held);
};

/* Call held->go_on() now or later, unless the call is over by then. */
void account_hold(struct nimi_call *call, const struct account_held *held);

#endif
