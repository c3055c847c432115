/* shared_place: one of the places that a workspace has for its turns, among replicas.
 *
 * Where several replicas share a store, a turn that has a place of this process (loop/slots.h)
 * then takes one in the store, where those of all replicas are counted. While there is none it
 * waits, and asks again when another turn has given one back.
 *
 *     asking ─▶ held
 *       ▲ │
 *       │ ▼
 *     waiting
 *
 * Memory   opaque; shared_place_leave() ends it, at any time.
 * Threads  the loop of its turn.
 */
#ifndef WEIR_SESSION_SHARED_PLACE_H
#define WEIR_SESSION_SHARED_PLACE_H

#include "base/states.h"
#include "session/session_table.h"

struct loop;
struct shared_place;

enum shared_place_state {
    SHARED_PLACE_ASKING,  /* the store */
    SHARED_PLACE_WAITING, /* for another turn to give one back */
    SHARED_PLACE_HELD,
    SHARED_PLACE_LEFT,
    SHARED_PLACE_STATE_COUNT
};

extern const struct state shared_place_states[SHARED_PLACE_STATE_COUNT];

struct shared_place_options {
    struct session_table *sessions;
    struct loop *loop;
    uint64_t run;
    struct str workspace; /* copied */
    unsigned max;
    void (*on_held)(void *ctx); /* once, later */
    void *ctx;
};

/* Only where the store is shared. */
struct shared_place *shared_place_take(const struct shared_place_options *options);

/* Give it back, or stop waiting; no callback follows. NULL is fine. False: on_held had not been
 * called. */
bool shared_place_leave(struct shared_place *place);

#endif
