/* fair: which waiting call comes next, so that no app waits because of another app's backlog.
 *
 *     owner (an identity, or the address of a peer)
 *       └─ app ─▶ interactive: oldest first     streams and calls that someone watches
 *             └─▶ background:  oldest first     jobs and workflows
 *
 * Interactive work comes before background work. So that background work never stops, every
 * FAIR_BACKGROUND_EVERY-th choice goes to it while both wait. Background work never has more
 * than background_max slots; the rest are free for the next caller who watches.
 *
 * Within a class the owners take turns, and within an owner the apps, in proportion to their
 * weights: each has a virtual time that rises with every slot it gets, and the lowest comes
 * first. App ids are the callers' own words, so an owner has at most FAIR_APPS_MAX shares; its
 * other apps have one share together.
 *
 * A queue is never filled by one app or one owner: an app may have as many waiting items as
 * there are free places, an owner twice as many. What is left is there for others.
 *
 * Memory   an item belongs to its user, from fair_join() to fair_leave().
 * Threads  none; its user has the lock.
 * Source   start-time fair queueing; dynamic thresholds for shared buffers.
 */
#ifndef WEIR_CONTRACT_NIMI_FAIR_H
#define WEIR_CONTRACT_NIMI_FAIR_H

#include "base/list.h"
#include "base/str.h"

#include <stdint.h>

#define FAIR_BACKGROUND_EVERY 8
#define FAIR_APPS_MAX 64
#define FAIR_OWNERS_MAX 1024
#define FAIR_WEIGHT_MAX 100

enum fair_class { FAIR_INTERACTIVE, FAIR_BACKGROUND, FAIR_CLASSES };

struct fair;
struct fair_app;

struct fair_limits {
    size_t queue_max;      /* items of one class that may wait */
    size_t queue_per_app;  /* and of one app */
    size_t background_max; /* slots that background work may have */
};

struct fair_item {
    enum fair_class class;
    struct fair_app *app;
    struct list link;
};

struct fair *fair_new(const struct fair_limits *limits);
void fair_free(struct fair *fair); /* no item may have joined; NULL is fine */

/* Enter the app's queue system, neither waiting nor with a slot. `weight` is 1 to
 * FAIR_WEIGHT_MAX; the newest one counts. Names are copied. */
void fair_join(struct fair *fair, struct fair_item *item, enum fair_class class,
               struct str owner, struct str app, unsigned weight);
void fair_leave(struct fair *fair, struct fair_item *item);

bool fair_has_place(const struct fair *fair, const struct fair_item *item);
bool fair_has_room(const struct fair *fair, const struct fair_item *item);

void fair_wait(struct fair *fair, struct fair_item *item);
void fair_unwait(struct fair *fair, struct fair_item *item);

/* The item gets a slot, or gives it back. It does not wait. */
void fair_take(struct fair *fair, struct fair_item *item);
void fair_give_back(struct fair *fair, struct fair_item *item);

/* The waiting item that comes next, among those with room that also fit by `fits`; NULL: none.
 * It still waits. */
struct fair_item *fair_next(struct fair *fair,
                            bool (*fits)(const struct fair_item *item, void *ctx), void *ctx);

#endif
