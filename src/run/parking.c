#include "run/parking.h"

#include "base/buf.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/striped.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#define STRIPE_COUNT 16
#define KEY_MAX_BYTES (64 * KIB)

/* The runs of one workspace and session, of all its users; gone with the last of them. */
struct lot {
    struct list parked;
};

struct lot_stripe {
    pthread_mutex_t lock;
    struct map *lots;
};

struct parking {
    struct striped *stripes;
};

struct parking *parking_new(void) {
    struct parking *parking = MEM_NEW(struct parking);
    parking->stripes = STRIPED_NEW(STRIPE_COUNT, struct lot_stripe);
    struct lot_stripe *stripe;
    for (size_t i = 0; (stripe = striped_at(parking->stripes, i)); i++)
        stripe->lots = map_new();
    return parking;
}

void parking_free(struct parking *parking) {
    if (!parking) return;
    const struct lot_stripe *stripe;
    for (size_t i = 0; (stripe = striped_at(parking->stripes, i)); i++) {
        assert(map_count(stripe->lots) == 0);
        map_free(stripe->lots);
    }
    striped_free(parking->stripes);
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

void parking_add(struct parking *parking, struct parked *parked) {
    struct buf key;
    bool fits = write_key(&key, &parked->name);
    assert(fits); /* the session has a longer one */
    (void)fits;
    struct lot_stripe *stripe = striped_lock(parking->stripes, buf_str(&key));
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

static void take_out(struct lot_stripe *stripe, struct str key, struct parked *parked) {
    struct lot *lot = map_find(stripe->lots, key);
    list_remove(&parked->link);
    if (!list_empty(&lot->parked)) return;
    map_remove(stripe->lots, key);
    free(lot);
}

static struct parked *find_run(struct lot *lot, uint64_t run, uint64_t seq) {
    LIST_EACH(&lot->parked, link) {
        struct parked *parked = CONTAINER_OF(link, struct parked, link);
        if (parked->run == run && parked->seq == seq) return parked;
    }
    return NULL;
}

/* Which run is meant; NOBODY or SEVERAL when there is no single one. */
static enum parking_found choose(struct lot *lot, const struct parking_wish *wish,
                                 struct parked **ret) {
    if (wish->run) {
        *ret = find_run(lot, wish->run, wish->seq);
        return *ret ? PARKING_TAKEN : PARKING_NOBODY;
    }
    struct str user = wish->name->user;
    struct parked *oldest = oldest_of(lot, user);
    if (!oldest) return PARKING_NOBODY;
    LIST_EACH(&lot->parked, link) {
        const struct parked *other = CONTAINER_OF(link, struct parked, link);
        bool same_user = str_equal(other->name.user, oldest->name.user);
        if (other == oldest || (user.at && !same_user)) continue;
        if (wish->rule == PARKING_ONLY_ONE) return PARKING_SEVERAL;
        if (wish->rule == PARKING_OF_ONE_USER && !same_user) return PARKING_SEVERAL;
    }
    *ret = oldest;
    return PARKING_TAKEN;
}

static bool copy(const struct parked *parked, struct arena *arena, struct parked_view *ret);

static enum parking_found consider(struct lot *lot, const struct parking_wish *wish,
                                   struct parked **ret) {
    struct parked *parked;
    enum parking_found found = choose(lot, wish, &parked);
    if (found != PARKING_TAKEN) return found;
    found = wish->check(&parked->asked, wish->ctx);
    if (found == PARKING_TAKEN) *ret = parked;
    if (found != PARKING_TAKEN && wish->view && !copy(parked, wish->arena, wish->view))
        return PARKING_NOBODY; /* its text does not fit: nothing can be said of it */
    return found;
}

enum parking_found parking_take(struct parking *parking, const struct parking_wish *wish,
                                struct parked **ret) {
    enum parking_found found = PARKING_NOBODY;
    struct buf key;
    if (write_key(&key, wish->name)) {
        struct lot_stripe *stripe = striped_lock(parking->stripes, buf_str(&key));
        struct lot *lot = map_find(stripe->lots, buf_str(&key));
        if (lot) found = consider(lot, wish, ret);
        if (found == PARKING_TAKEN) take_out(stripe, buf_str(&key), *ret);
        pthread_mutex_unlock(&stripe->lock);
    }
    buf_done(&key);
    return found;
}

bool parking_remove(struct parking *parking, struct parked *parked) {
    struct buf key;
    bool fits = write_key(&key, &parked->name);
    assert(fits);
    (void)fits;
    struct lot_stripe *stripe = striped_lock(parking->stripes, buf_str(&key));
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
        struct lot_stripe *stripe = striped_lock(parking->stripes, buf_str(&key));
        struct lot *lot = map_find(stripe->lots, buf_str(&key));
        has = lot && oldest_of(lot, name->user);
        pthread_mutex_unlock(&stripe->lock);
    }
    buf_done(&key);
    return has;
}

/* --- listing ------------------------------------------------------------------------------ */

static bool matches(const struct parked *parked, const struct parking_filter *filter) {
    const struct session_name *name = &parked->name;
    return (!filter->workspace.at || str_equal(name->workspace, filter->workspace)) &&
           (!filter->user.at || str_equal(name->user, filter->user)) &&
           (!filter->session.at || str_equal(name->session, filter->session)) &&
           (!filter->run || parked->run == filter->run);
}

typedef bool visit_fn(const struct parked *parked, void *ctx);

/* Each stripe under its lock: what is parked stays while it is looked at. */
static bool visit(struct parking *parking, const struct parking_filter *filter, visit_fn *each,
                  void *ctx) {
    bool on = true;
    struct lot_stripe *stripe;
    for (size_t i = 0; on && (stripe = striped_at(parking->stripes, i)); i++) {
        size_t at = 0;
        struct str key;
        void *lot;
        pthread_mutex_lock(&stripe->lock);
        while (on && map_next(stripe->lots, &at, &key, &lot)) {
            LIST_EACH(&((struct lot *)lot)->parked, link) {
                const struct parked *parked = CONTAINER_OF(link, struct parked, link);
                if (on && matches(parked, filter)) on = each(parked, ctx);
            }
        }
        pthread_mutex_unlock(&stripe->lock);
    }
    return on;
}

struct listing {
    struct parked_view *views; /* the lowest runs, sorted */
    size_t count, count_max;
    struct arena *arena;
    bool more;
};

/* First only find which runs match: the texts are copied only for the ones returned. */
static bool note(const struct parked *parked, void *ctx) {
    struct listing *listing = ctx;
    size_t at = listing->count;
    while (at > 0 && listing->views[at - 1].run > parked->run) at--;
    if (listing->count == listing->count_max) {
        listing->more = true;
        if (at == listing->count) return true;
        listing->count--;
    }
    memmove(listing->views + at + 1, listing->views + at,
            (listing->count - at) * sizeof(struct parked_view));
    listing->views[at] = (struct parked_view){.run = parked->run};
    listing->count++;
    return true;
}

static bool copy(const struct parked *parked, struct arena *arena, struct parked_view *ret) {
    const struct parked_question *asked = &parked->asked;
    struct parked_view view = {.run = parked->run, .asked = *asked};
    view.asked.schema = NULL;
    view.asked.words = NULL;
    if (!arena_str(arena, parked->name.workspace, &view.name.workspace) ||
        !arena_str(arena, parked->name.user, &view.name.user) ||
        !arena_str(arena, parked->name.session, &view.name.session) ||
        !arena_str(arena, asked->agent, &view.asked.agent) ||
        !arena_str(arena, asked->question, &view.asked.question) ||
        !arena_str(arena, asked->tool, &view.asked.tool) ||
        !arena_str(arena, asked->args, &view.asked.args) ||
        !arena_str(arena, asked->guards, &view.asked.guards))
        return false;
    view.seq = parked->seq; /* set: it is whole */
    *ret = view;
    return true;
}

static bool fill(const struct parked *parked, void *ctx) {
    struct listing *listing = ctx;
    size_t low = 0, high = listing->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (listing->views[middle].run < parked->run) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    if (low == listing->count || listing->views[low].run != parked->run) return true;
    if (!copy(parked, listing->arena, &listing->views[low])) listing->more = true;
    return true;
}

size_t parking_list(struct parking *parking, const struct parking_filter *filter, size_t count,
                    struct arena *arena, struct parked_view *ret, bool *ret_more) {
    struct listing listing = {.views = ret, .count_max = count, .arena = arena};
    size_t whole = 0;
    *ret_more = false;
    if (count == 0) return 0;
    visit(parking, filter, note, &listing);
    visit(parking, filter, fill, &listing);
    for (size_t i = 0; i < listing.count; i++) { /* who was answered meanwhile has no text */
        if (ret[i].seq) ret[whole++] = ret[i];
    }
    *ret_more = listing.more;
    return whole;
}
