/* scheduler: limit how many model calls run at once, in all and per app, and share the slots
 * fairly.
 *
 * A ticket is granted when a global slot and a slot of its app are both free. Of the waiting
 * tickets, fair.h chooses: work that someone watches before background work, then by owner and
 * app. A ticket that waited half a minute is flagged as starved. When its app has too many
 * waiting tickets, a ticket is refused at once; the other apps' places are not affected.
 *
 * Where replicas share a store, the slots are those of all together: a ticket that is granted
 * here then waits for a slot in the store (shared_slot.h). The fair order is that of each replica;
 * among those that it chose, who came first goes first.
 *
 * Memory   a ticket lives from scheduler_take() to scheduler_release().
 * Threads  any; a ticket belongs to the loop it was taken on, and its callback runs there.
 * Source   contracts/nimi.md 3.2 K-DAEMON-007, section 9 number 21; checks.md M5.
 */
#ifndef WEIR_CONTRACT_NIMI_SCHEDULER_H
#define WEIR_CONTRACT_NIMI_SCHEDULER_H

#include "contract/nimi/fair.h"
#include "loop/loop.h"

#define SCHEDULER_QUEUE_MAX 1024 /* of one class of work */
#define SCHEDULER_QUEUE_PER_APP 128
#define SCHEDULER_NO_LIMIT INT32_MAX
#define SCHEDULER_STARVED_MS 30000

struct scheduler;
struct store;
struct ticket;

struct scheduler_limits {
    unsigned global, per_app; /* slots, or SCHEDULER_NO_LIMIT */
    unsigned background;      /* slots that background work may have; 0: leave a quarter free */
    size_t queue_max;         /* tickets of one class that may wait */
    size_t queue_per_app;     /* and of one app */
    /* The weight of an app, 1 to FAIR_WEIGHT_MAX. NULL: all have the same. */
    unsigned (*weight)(struct str app, const void *ctx);
    const void *weight_ctx;
    const char *pool; /* the name of the slots among replicas; NULL: not shared */
};

struct scheduler *scheduler_new(const struct scheduler_limits *limits);
void scheduler_free(struct scheduler *scheduler); /* no ticket may be left; NULL is fine */

/* Share its slots with the other replicas of this store; harmless again, and without a pool. Before
 * the first ticket. Any thread. */
void scheduler_share(struct scheduler *scheduler, struct store *store);

/* Called on the ticket's loop, never before scheduler_take() has returned, and not if the
 * ticket is released first. */
typedef void ticket_granted_fn(void *ctx);

enum ticket_state { TICKET_GRANTED, TICKET_WAITS, TICKET_REFUSED };

struct ticket_ask {
    struct str app;   /* copied */
    struct str owner; /* the caller's identity or address; empty: not known; copied */
    enum fair_class class;
    struct loop *loop;
    ticket_granted_fn *on_granted; /* called only if the ticket has to wait */
    void *ctx;
};

/* Ask for a slot. When refused there is no ticket and *ret is NULL. */
enum ticket_state scheduler_take(struct scheduler *scheduler, const struct ticket_ask *ask,
                                 struct ticket **ret);

/* Give the slot back, or stop waiting. NULL is fine. */
void scheduler_release(struct ticket *ticket);

uint64_t ticket_waited_ms(const struct ticket *ticket); /* of a granted ticket */
bool ticket_starved(const struct ticket *ticket);

struct occupancy {
    unsigned global_used, global_cap, app_used, app_cap;
    size_t waiting;
};

/* The occupancy of this process that the next ticket of `app` would meet. */
struct occupancy scheduler_occupancy(struct scheduler *scheduler, struct str app);

#endif
