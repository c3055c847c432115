/* slots: limit concurrency in total and for each key; excess requests wait in line.
 *
 *     none ─▶ taken ─▶ none                              there was room
 *     none ─▶ waiting ─▶ none                            withdrawn
 *             waiting ─▶ granted ─▶ taken ─▶ none        the message arrived
 *                        granted ─▶ returned ─▶ none     left before it arrived
 *
 * A slot is taken at once if there is room in total and for its key. Otherwise it waits; the
 * longest waiting goes first, and a key without room does not delay other keys; a user may bring
 * another order. A slot that is left admits the next one by a message to that slot's loop.
 * Until the message arrives, the slot is in state granted.
 *
 * Memory   a slot belongs to its user and must live until it is left or withdrawn. One that was
 *          left while granted must live until `granted` is called.
 * Threads  any; one lock inside. `granted` is called on the slot's own loop, never from inside
 *          a call. A slot may be left or withdrawn only on that loop.
 */
#ifndef WEIR_LOOP_SLOTS_H
#define WEIR_LOOP_SLOTS_H

#include "base/states.h"
#include "base/str.h"
#include "loop/loop.h"

struct slots;
struct slot_key; /* one key that is in use */

enum slot_state {
    SLOT_NONE,
    SLOT_WAITING,
    SLOT_GRANTED,  /* admitted; the message is on its way */
    SLOT_TAKEN,    /* admitted, and its loop knows */
    SLOT_RETURNED, /* given back before the message arrived */
    SLOT_STATE_COUNT,
};

extern const struct state slot_states[SLOT_STATE_COUNT];

/* Zeroed, except for the members the user sets. */
struct slot {
    struct loop *loop;
    void (*granted)(void *ctx); /* after waiting; called even if the slot was left meanwhile */
    void *ctx;
    /* Private to slots. */
    enum slot_state state;
    struct slots *slots; /* NULL: never entered */
    struct slot_key *key;
    struct list link;
    struct mail mail;
};

#define SLOTS_NO_LIMIT SIZE_MAX

/* Another order than that of arrival. Each function is called with the lock held. */
struct slots_order {
    void (*enter)(struct slot *slot, void *ctx);          /* first of all */
    void (*gone)(struct slot *slot, void *ctx);           /* refused, withdrawn or given back */
    bool (*has_room)(const struct slot *slot, void *ctx); /* beside the limits of slots */
    bool (*has_place)(const struct slot *slot, void *ctx); /* it may wait */
    void (*wait)(struct slot *slot, void *ctx);
    void (*unwait)(struct slot *slot, void *ctx);
    void (*take)(struct slot *slot, void *ctx);
    void (*leave)(struct slot *slot, void *ctx);
    struct slot *(*next)(void *ctx); /* a waiting slot that slots_fits(), or NULL */
};

struct slots_limits {
    size_t all;                      /* taken at once, over all keys */
    size_t queue_max;                /* how many may wait; unused with an order */
    const struct slots_order *order; /* NULL: that of arrival */
    void *order_ctx;
};

struct slots *slots_new(const struct slots_limits *limits);
void slots_free(struct slots *slots); /* no slot may be waiting or taken; accepts NULL */

enum slots_answer {
    SLOTS_TAKEN,
    SLOTS_WAITING, /* `granted` will be called, unless it is withdrawn */
    SLOTS_FULL,    /* refused: too many are waiting */
};

/* Enter under `key` (copied), which may have at most `key_max` taken slots. The newest key_max
 * applies to all slots of the key. */
MUST_CHECK enum slots_answer slots_enter(struct slots *slots, struct str key, size_t key_max,
                                         struct slot *slot);

/* Stop waiting. False: it was not waiting; it was admitted, or never entered. */
MUST_CHECK bool slots_withdraw(struct slot *slot);

/* Give the slot back; harmless if there is none. False: `granted` is still to be called. */
bool slots_leave(struct slot *slot);

/* For an order: whether there is room for this slot now, by all limits. */
bool slots_fits(const struct slot *slot);

struct slots_use {
    size_t used, key_used, waiting;
};

struct slots_use slots_used(struct slots *slots, struct str key);

#endif
