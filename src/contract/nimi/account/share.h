/* share: a loop's part of the account: the calls that wait, and the time.
 *
 * A change belongs to the loop of its call. So does its deadline: the loop's timer is started
 * again after each call, and every deadline was made by some call. The account itself belongs
 * to the runtime.
 *
 * Memory   a member of the instance.
 * Threads  the instance's loop.
 */
#ifndef WEIR_CONTRACT_NIMI_ACCOUNT_SHARE_H
#define WEIR_CONTRACT_NIMI_ACCOUNT_SHARE_H

#include "base/list.h"
#include "loop/loop.h"

struct kept_ask;
struct nimi_instance;

struct account_share {
    struct list waits; /* calls that wait for the store, or for keys */
    struct timer timer;
    struct kept_ask *reading; /* NULL: not now */
};

void account_share_init(struct nimi_instance *instance);

/* The store is open: read what is known. */
void account_share_serving(struct nimi_instance *instance);

/* No more callbacks. What is on its way to the disk is written. */
void account_share_leave(struct nimi_instance *instance);

#endif
