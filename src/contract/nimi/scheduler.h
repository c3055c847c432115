/* scheduler: limit how many model calls run at once, in all and per app.
 *
 * A ticket is granted when a global slot and a slot of its app are both free. Of the waiting
 * tickets whose app has a free slot, the oldest is granted first, so an app whose own slots are
 * taken does not block other apps. A ticket that waited half a minute is flagged as starved.
 * The queue is bounded; when it is full a ticket is refused at once.
 *
 * Memory   a ticket lives from scheduler_take() to scheduler_release().
 * Threads  any; a ticket belongs to the loop it was taken on, and its callback runs there.
 * Source   contracts/nimi.md 3.2 K-DAEMON-007, section 9 number 21.
 */
#ifndef WEIR_CONTRACT_NIMI_SCHEDULER_H
#define WEIR_CONTRACT_NIMI_SCHEDULER_H

#include "base/str.h"
#include "loop/loop.h"

#define SCHEDULER_QUEUE_MAX 256
#define SCHEDULER_NO_LIMIT INT32_MAX
#define SCHEDULER_STARVED_MS 30000

struct scheduler;
struct ticket;

struct scheduler_limits {
    unsigned global, per_app; /* slots, or SCHEDULER_NO_LIMIT */
    size_t queue_max;         /* tickets that may wait */
};

struct scheduler *scheduler_new(const struct scheduler_limits *limits);
void scheduler_free(struct scheduler *scheduler); /* no ticket may be left; NULL is fine */

/* Called on the ticket's loop, never before scheduler_take() has returned, and not if the
 * ticket is released first. */
typedef void ticket_granted_fn(void *ctx);

enum ticket_state { TICKET_GRANTED, TICKET_WAITS, TICKET_REFUSED };

/* Ask for a slot for `app` (copied). on_granted is called only if the ticket has to wait. When
 * refused there is no ticket and *ret is NULL. */
enum ticket_state scheduler_take(struct scheduler *scheduler, struct str app, struct loop *loop,
                                 ticket_granted_fn *on_granted, void *ctx, struct ticket **ret);

/* Give the slot back, or stop waiting. NULL is fine. */
void scheduler_release(struct ticket *ticket);

uint64_t ticket_waited_ms(const struct ticket *ticket); /* of a granted ticket */
bool ticket_starved(const struct ticket *ticket);

struct occupancy {
    unsigned global_used, global_cap, app_used, app_cap;
    size_t waiting;
};

/* The occupancy that the next ticket of `app` would meet. */
struct occupancy scheduler_occupancy(struct scheduler *scheduler, struct str app);

#endif
