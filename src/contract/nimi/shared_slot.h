/* shared_slot: a call's slot among replicas.
 *
 * Where several replicas share a store, a ticket that has a slot of its own process (scheduler.h)
 * then takes one in the store, where those of all replicas are counted. While there is none it
 * waits, and asks again when another call has given one back.
 *
 *     asking ─▶ held
 *       ▲ │
 *       │ ▼
 *     waiting
 *
 * Memory   opaque; shared_slot_leave() ends it, at any time.
 * Threads  the loop of its ticket.
 */
#ifndef WEIR_CONTRACT_NIMI_SHARED_SLOT_H
#define WEIR_CONTRACT_NIMI_SHARED_SLOT_H

#include "base/states.h"
#include "base/str.h"

struct loop;
struct store;
struct shared_slot;

enum shared_slot_state {
    SHARED_SLOT_ASKING,  /* the store */
    SHARED_SLOT_WAITING, /* for another call to give one back */
    SHARED_SLOT_HELD,
    SHARED_SLOT_LEFT,
    SHARED_SLOT_STATE_COUNT
};

extern const struct state shared_slot_states[SHARED_SLOT_STATE_COUNT];

struct shared_slot_options {
    struct store *store; /* shared with other processes */
    struct loop *loop;
    struct str pool, app; /* copied */
    bool background;
    unsigned all_max, app_max, background_max;
    void (*on_held)(void *ctx); /* once, later */
    void *ctx;
};

struct shared_slot *shared_slot_take(const struct shared_slot_options *options);

/* Give it back, or stop waiting; no callback follows. NULL is fine. */
void shared_slot_leave(struct shared_slot *slot);

#endif
