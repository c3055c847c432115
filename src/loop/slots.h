/* slots: so many at once, in all and for each key; the others wait in line.
 *
 *     none ─▶ taken ─▶ none                              there was room
 *     none ─▶ waiting ─▶ none                            withdrawn
 *             waiting ─▶ granted ─▶ taken ─▶ none        the message arrived
 *                        granted ─▶ returned ─▶ none     left before it arrived
 *
 * A slot is taken at once where there is room for its key and in all. Otherwise it waits, the
 * longest first; a key without room holds up no other key. Who leaves lets the next one in, and
 * its loop is told: until the message has arrived, the slot is granted.
 *
 * Memory   a slot is its user's, and stays until it is left or withdrawn; one that was left
 *          while it was granted stays until `granted` came.
 * Threads  any; one lock inside. `granted` comes on the slot's own loop, never from inside a
 *          call, and only there a slot may be left or withdrawn.
 */
#ifndef WEIR_LOOP_SLOTS_H
#define WEIR_LOOP_SLOTS_H

#include "base/str.h"
#include "loop/loop.h"

struct slots;
struct slot_key; /* one key that is in use */

enum slot_state {
    SLOT_NONE,
    SLOT_WAITING,
    SLOT_GRANTED,  /* it has one, and the message is on its way */
    SLOT_TAKEN,    /* it has one */
    SLOT_RETURNED, /* given back before the message arrived */
    SLOT_STATE_COUNT,
};

struct str slot_state_name(enum slot_state state);
bool slot_may_become(enum slot_state state, enum slot_state next);

/* All zero but for what the user sets. */
struct slot {
    struct loop *loop;
    void (*granted)(void *ctx); /* it waited; comes also when it was left meanwhile */
    void *ctx;
    /* The slots'. */
    enum slot_state state;
    struct slots *slots; /* NULL: it never asked for one */
    struct slot_key *key;
    struct list link;
    struct mail mail;
};

#define SLOTS_NO_LIMIT SIZE_MAX

struct slots_limits {
    size_t all;       /* taken at once, of whatever key */
    size_t queue_max; /* that may wait */
};

struct slots *slots_new(const struct slots_limits *limits);
void slots_free(struct slots *slots); /* no slot may be waiting or taken; NULL is fine */

enum slots_answer {
    SLOTS_TAKEN,
    SLOTS_WAITING, /* `granted` will come, unless it is withdrawn */
    SLOTS_FULL,    /* too many wait: it has none, and none will come */
};

/* Ask for one of `key` (copied), of which at most `key_max` are taken at once: what the newest
 * slot of the key says counts for all of them. */
MUST_CHECK enum slots_answer slots_enter(struct slots *slots, struct str key, size_t key_max,
                                         struct slot *slot);

/* Stop waiting. False: it does not wait; either it has a slot, or never asked for one. */
MUST_CHECK bool slots_withdraw(struct slot *slot);

/* Give it back; harmless where there is none. False: `granted` is still to come. */
bool slots_leave(struct slot *slot);

struct slots_use {
    size_t used, key_used, waiting;
};

struct slots_use slots_used(struct slots *slots, struct str key);

#endif
