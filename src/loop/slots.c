#include "loop/slots.h"

#include "base/list.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/text.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

struct slot_key {
    struct text name;
    size_t used, max, waiting_count;
    struct list waiting; /* oldest first; used when there is no limit in total */
};

struct slots {
    struct slots_limits limits;
    pthread_mutex_t lock;
    struct map *keys;
    size_t used, waiting_count;
    struct list waiting; /* all keys, oldest first; used when there is a limit in total */
};

/* --- states ------------------------------------------------------------------------------- */

const struct state slot_states[SLOT_STATE_COUNT] = {
    [SLOT_NONE] = {"none", TO(SLOT_WAITING) | TO(SLOT_TAKEN)},
    [SLOT_WAITING] = {"waiting", TO(SLOT_NONE) | TO(SLOT_GRANTED)},
    [SLOT_GRANTED] = {"granted", TO(SLOT_TAKEN) | TO(SLOT_RETURNED)},
    [SLOT_TAKEN] = {"taken", TO(SLOT_NONE)},
    [SLOT_RETURNED] = {"returned", TO(SLOT_NONE)},
};

/* The only function that writes slot->state. */
static void slot_move(struct slot *slot, enum slot_state next) {
    assert(states_allow(slot_states, slot->state, next));
    slot->state = next;
}

/* --- life --------------------------------------------------------------------------------- */

struct slots *slots_new(const struct slots_limits *limits) {
    struct slots *slots = MEM_NEW(struct slots);
    slots->limits = *limits;
    pthread_mutex_init(&slots->lock, NULL);
    slots->keys = map_new();
    list_init(&slots->waiting);
    return slots;
}

void slots_free(struct slots *slots) {
    if (!slots) return;
    assert(map_count(slots->keys) == 0);
    map_free(slots->keys);
    pthread_mutex_destroy(&slots->lock);
    free(slots);
}

/* --- with the lock held ------------------------------------------------------------------- */

static struct slot_key *slots_key_of(struct slots *slots, struct str name) {
    struct slot_key *key = map_find(slots->keys, name);
    if (key) return key;
    key = MEM_NEW(struct slot_key);
    key->name = text_copy(name);
    list_init(&key->waiting);
    map_put(slots->keys, name, key);
    return key;
}

/* The slot neither waits nor is taken any more. Forget its key if it was the last. */
static void slot_part(struct slot *slot) {
    struct slots *slots = slot->slots;
    struct slot_key *key = slot->key;
    if (slots->limits.order) slots->limits.order->gone(slot, slots->limits.order_ctx);
    if (key->used || key->waiting_count) return;
    map_remove(slots->keys, text_str(key->name));
    text_done(&key->name);
    free(key);
}

/* Without a limit in total, a slot that is left makes room only for its own key. Each key then
 * has its own queue, and other keys' waiting slots are not walked. */
static struct list *queue_of(struct slots *slots, struct slot_key *key) {
    return slots->limits.all == SLOTS_NO_LIMIT ? &key->waiting : &slots->waiting;
}

bool slots_fits(const struct slot *slot) {
    const struct slots *slots = slot->slots;
    const struct slots_order *order = slots->limits.order;
    return slots->used < slots->limits.all && slot->key->used < slot->key->max &&
           (!order || order->has_room(slot, slots->limits.order_ctx));
}

/* Whether a slot that arrives may be taken at once. With an order, waiting slots of its kind
 * have no room either, because nothing was left since they were looked at. */
static bool is_free(const struct slot *slot) {
    return slots_fits(slot) && (slot->slots->limits.order || !slot->key->waiting_count);
}

static bool has_place(const struct slot *slot) {
    const struct slots_limits *limits = &slot->slots->limits;
    if (limits->order) return limits->order->has_place(slot, limits->order_ctx);
    return slot->slots->waiting_count < limits->queue_max;
}

static void slot_take(struct slot *slot, enum slot_state state) {
    const struct slots_limits *limits = &slot->slots->limits;
    slot->slots->used++;
    slot->key->used++;
    if (limits->order) limits->order->take(slot, limits->order_ctx);
    slot_move(slot, state);
}

static void slot_give_back(struct slot *slot) {
    const struct slots_limits *limits = &slot->slots->limits;
    slot->slots->used--;
    slot->key->used--;
    if (limits->order) limits->order->leave(slot, limits->order_ctx);
    slot_move(slot, slot->state == SLOT_TAKEN ? SLOT_NONE : SLOT_RETURNED);
}

static void slot_queue(struct slot *slot) {
    const struct slots_limits *limits = &slot->slots->limits;
    if (limits->order) {
        limits->order->wait(slot, limits->order_ctx);
    } else {
        list_append(queue_of(slot->slots, slot->key), &slot->link);
    }
    slot->slots->waiting_count++;
    slot->key->waiting_count++;
    slot_move(slot, SLOT_WAITING);
}

static void slot_unqueue(struct slot *slot) {
    const struct slots_limits *limits = &slot->slots->limits;
    if (limits->order) {
        limits->order->unwait(slot, limits->order_ctx);
    } else {
        list_remove(&slot->link);
    }
    slot->slots->waiting_count--;
    slot->key->waiting_count--;
}

static void slots_on_granted(void *ctx);

static void slot_grant(struct slot *slot) {
    slot_unqueue(slot);
    slot_take(slot, SLOT_GRANTED);
    loop_post(slot->loop, &slot->mail, slots_on_granted, slot);
}

static void grant_in_order(struct slots *slots) {
    const struct slots_limits *limits = &slots->limits;
    while (slots->used < limits->all && slots->waiting_count) {
        struct slot *slot = limits->order->next(limits->order_ctx);
        if (!slot) break;
        slot_grant(slot);
    }
}

static void grant_waiting(struct slots *slots, struct slot_key *left) {
    if (slots->limits.order) {
        grant_in_order(slots);
        return;
    }
    struct list *queue = queue_of(slots, left);
    LIST_EACH(queue, link) {
        struct slot *slot = CONTAINER_OF(link, struct slot, link);
        bool fits = slots_fits(slot);
        if (!fits && queue == &left->waiting) break;
        if (fits) slot_grant(slot);
    }
}

/* --- slots -------------------------------------------------------------------------------- */

static void slots_on_granted(void *ctx) {
    struct slot *slot = ctx;
    pthread_mutex_lock(&slot->slots->lock);
    slot_move(slot, slot->state == SLOT_RETURNED ? SLOT_NONE : SLOT_TAKEN);
    pthread_mutex_unlock(&slot->slots->lock);
    slot->granted(slot->ctx);
}

enum slots_answer slots_enter(struct slots *slots, struct str key, size_t key_max,
                              struct slot *slot) {
    enum slots_answer answer = SLOTS_TAKEN;
    list_init(&slot->link);
    pthread_mutex_lock(&slots->lock);
    slot->slots = slots;
    slot->key = slots_key_of(slots, key);
    slot->key->max = key_max;
    if (slots->limits.order) slots->limits.order->enter(slot, slots->limits.order_ctx);
    if (is_free(slot)) {
        slot_take(slot, SLOT_TAKEN);
    } else if (has_place(slot)) {
        slot_queue(slot);
        answer = SLOTS_WAITING;
    } else {
        slot_part(slot);
        answer = SLOTS_FULL;
    }
    pthread_mutex_unlock(&slots->lock);
    return answer;
}

bool slots_withdraw(struct slot *slot) {
    struct slots *slots = slot->slots;
    if (!slots) return false;
    pthread_mutex_lock(&slots->lock);
    bool waited = slot->state == SLOT_WAITING;
    if (waited) {
        slot_unqueue(slot);
        slot_move(slot, SLOT_NONE);
        slot_part(slot);
    }
    pthread_mutex_unlock(&slots->lock);
    return waited;
}

bool slots_leave(struct slot *slot) {
    struct slots *slots = slot->slots;
    if (!slots) return true;
    pthread_mutex_lock(&slots->lock);
    if (slot->state == SLOT_TAKEN || slot->state == SLOT_GRANTED) {
        slot_give_back(slot);
        grant_waiting(slots, slot->key);
        slot_part(slot);
    }
    bool over = slot->state == SLOT_NONE;
    pthread_mutex_unlock(&slots->lock);
    return over;
}

struct slots_use slots_used(struct slots *slots, struct str key) {
    pthread_mutex_lock(&slots->lock);
    const struct slot_key *found = map_find(slots->keys, key);
    struct slots_use use = {slots->used, found ? found->used : 0, slots->waiting_count};
    pthread_mutex_unlock(&slots->lock);
    return use;
}
