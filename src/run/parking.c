#include "run/parking.h"

#include "base/buf.h"
#include "base/map.h"
#include "base/mem.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

#define STRIPE_COUNT 16
#define KEY_MAX_BYTES (64 * KIB)

/* The runs of one workspace and session, of all its users; gone with the last of them. */
struct lot {
    struct list parked;
};

struct stripe {
    pthread_mutex_t lock;
    struct map *lots;
};

struct parking {
    struct stripe stripes[STRIPE_COUNT];
};

struct parking *parking_new(void) {
    struct parking *parking = MEM_NEW(struct parking);
    for (size_t i = 0; i < STRIPE_COUNT; i++) {
        pthread_mutex_init(&parking->stripes[i].lock, NULL);
        parking->stripes[i].lots = map_new();
    }
    return parking;
}

void parking_free(struct parking *parking) {
    if (!parking) return;
    for (size_t i = 0; i < STRIPE_COUNT; i++) {
        assert(map_count(parking->stripes[i].lots) == 0);
        map_free(parking->stripes[i].lots);
        pthread_mutex_destroy(&parking->stripes[i].lock);
    }
    free(parking);
}

/* The length in front, so that no two pairs of names share a key. */
static bool write_key(struct buf *key, const struct session_name *name) {
    buf_init(key, KEY_MAX_BYTES);
    buf_append_u64(key, name->workspace.len);
    buf_append_byte(key, ':');
    buf_append(key, name->workspace);
    buf_append(key, name->session);
    return buf_ok(key);
}

static struct stripe *lock_stripe(struct parking *parking, struct str key) {
    struct stripe *stripe = &parking->stripes[map_hash(key) >> 32 & (STRIPE_COUNT - 1)];
    pthread_mutex_lock(&stripe->lock);
    return stripe;
}

void parking_add(struct parking *parking, struct parked *parked) {
    struct buf key;
    bool fits = write_key(&key, &parked->name);
    assert(fits); /* the session has a longer one */
    (void)fits;
    struct stripe *stripe = lock_stripe(parking, buf_str(&key));
    struct lot *lot = map_find(stripe->lots, buf_str(&key));
    if (!lot) {
        lot = MEM_NEW(struct lot);
        list_init(&lot->parked);
        map_put(stripe->lots, buf_str(&key), lot);
    }
    list_append(&lot->parked, &parked->link);
    pthread_mutex_unlock(&stripe->lock);
    buf_done(&key);
}

static struct parked *oldest_of(struct lot *lot, struct str user) {
    LIST_EACH(&lot->parked, link) {
        struct parked *parked = CONTAINER_OF(link, struct parked, link);
        if (!user.at || str_equal(parked->name.user, user)) return parked;
    }
    return NULL;
}

static void take_out(struct stripe *stripe, struct str key, struct parked *parked) {
    struct lot *lot = map_find(stripe->lots, key);
    list_remove(&parked->link);
    if (!list_empty(&lot->parked)) return;
    map_remove(stripe->lots, key);
    free(lot);
}

struct parked *parking_take(struct parking *parking, const struct session_name *name) {
    struct buf key;
    struct parked *parked = NULL;
    if (write_key(&key, name)) {
        struct stripe *stripe = lock_stripe(parking, buf_str(&key));
        struct lot *lot = map_find(stripe->lots, buf_str(&key));
        parked = lot ? oldest_of(lot, name->user) : NULL;
        if (parked) take_out(stripe, buf_str(&key), parked);
        pthread_mutex_unlock(&stripe->lock);
    }
    buf_done(&key);
    return parked;
}

bool parking_remove(struct parking *parking, struct parked *parked) {
    struct buf key;
    bool fits = write_key(&key, &parked->name);
    assert(fits);
    (void)fits;
    struct stripe *stripe = lock_stripe(parking, buf_str(&key));
    bool here = list_linked(&parked->link);
    if (here) take_out(stripe, buf_str(&key), parked);
    pthread_mutex_unlock(&stripe->lock);
    buf_done(&key);
    return here;
}

bool parking_has(struct parking *parking, const struct session_name *name) {
    struct buf key;
    bool has = false;
    if (write_key(&key, name)) {
        struct stripe *stripe = lock_stripe(parking, buf_str(&key));
        struct lot *lot = map_find(stripe->lots, buf_str(&key));
        has = lot && oldest_of(lot, name->user);
        pthread_mutex_unlock(&stripe->lock);
    }
    buf_done(&key);
    return has;
}
