#include "contract/nimi/fair.h"

#include "base/map.h"
#include "base/mem.h"
#include "base/text.h"

#include <assert.h>
#include <stdlib.h>

#define STRIDE ((uint64_t)1 << 32) /* a slot's price in virtual time, at weight 1 */

/* A share of what is above it: an owner's of everything, an app's of its owner. */
struct share {
    struct text name;
    uint64_t pass; /* its virtual time */
    unsigned weight;
    size_t items, waiting[FAIR_CLASSES];
};

struct fair_app {
    struct share share; /* must be the first member */
    struct list link;   /* in owner->apps */
    struct fair_owner *owner;
    struct list queue[FAIR_CLASSES];
};

struct fair_owner {
    struct share share; /* must be the first member */
    struct list link;   /* in fair->owners */
    struct list apps;
    struct map *by_name;
    uint64_t now; /* the virtual time of its apps */
};

struct fair {
    struct fair_limits limits;
    struct list owners;
    struct map *by_name;
    uint64_t now; /* the virtual time of the owners */
    size_t waiting[FAIR_CLASSES];
    size_t background_used;
    unsigned passed_over; /* choices since background work that could run was chosen */
};

struct fair *fair_new(const struct fair_limits *limits) {
    struct fair *fair = MEM_NEW(struct fair);
    fair->limits = *limits;
    fair->by_name = map_new();
    list_init(&fair->owners);
    return fair;
}

void fair_free(struct fair *fair) {
    if (!fair) return;
    assert(list_empty(&fair->owners));
    map_free(fair->by_name);
    free(fair);
}

/* --- owners and apps ---------------------------------------------------------------------- */

/* The name of the share of all who have none of their own. */
#define OTHERS STR_EMPTY

static struct str name_or_others(const struct map *by_name, struct str name, size_t max) {
    bool known = map_find(by_name, name) != NULL;
    return known || map_count(by_name) < max ? name : OTHERS;
}

static struct fair_owner *owner_of(struct fair *fair, struct str wanted) {
    struct str name = name_or_others(fair->by_name, wanted, FAIR_OWNERS_MAX);
    struct fair_owner *owner = map_find(fair->by_name, name);
    if (owner) return owner;
    owner = MEM_NEW(struct fair_owner);
    owner->share = (struct share){.name = text_copy(name), .pass = fair->now, .weight = 1};
    owner->by_name = map_new();
    list_init(&owner->apps);
    list_append(&fair->owners, &owner->link);
    map_put(fair->by_name, name, owner);
    return owner;
}

static struct fair_app *app_of(struct fair_owner *owner, struct str wanted, unsigned weight) {
    struct str name = name_or_others(owner->by_name, wanted, FAIR_APPS_MAX);
    struct fair_app *app = map_find(owner->by_name, name);
    if (!app) {
        app = MEM_NEW(struct fair_app);
        app->share = (struct share){.name = text_copy(name), .pass = owner->now};
        app->owner = owner;
        for (size_t i = 0; i < FAIR_CLASSES; i++) list_init(&app->queue[i]);
        list_append(&owner->apps, &app->link);
        map_put(owner->by_name, name, app);
    }
    app->share.weight = str_equal(name, wanted) ? weight : 1;
    return app;
}

static void forget_owner(struct fair *fair, struct fair_owner *owner) {
    map_remove(fair->by_name, text_str(owner->share.name));
    list_remove(&owner->link);
    text_done(&owner->share.name);
    map_free(owner->by_name);
    free(owner);
}

static void forget_app(struct fair_app *app) {
    map_remove(app->owner->by_name, text_str(app->share.name));
    list_remove(&app->link);
    text_done(&app->share.name);
    free(app);
}

void fair_join(struct fair *fair, struct fair_item *item, enum fair_class class,
               struct str owner, struct str app, unsigned weight) {
    assert(weight >= 1 && weight <= FAIR_WEIGHT_MAX);
    item->class = class;
    item->app = app_of(owner_of(fair, owner), app, weight);
    list_init(&item->link);
    item->app->share.items++;
    item->app->owner->share.items++;
}

void fair_leave(struct fair *fair, struct fair_item *item) {
    struct fair_app *app = item->app;
    struct fair_owner *owner = app->owner;
    assert(!list_linked(&item->link));
    item->app = NULL;
    if (--app->share.items == 0) forget_app(app);
    if (--owner->share.items == 0) forget_owner(fair, owner);
}

/* --- waiting ------------------------------------------------------------------------------ */

bool fair_has_place(const struct fair *fair, const struct fair_item *item) {
    enum fair_class class = item->class;
    const struct fair_app *app = item->app;
    size_t waiting = fair->waiting[class];
    size_t free_places =
        waiting < fair->limits.queue_max ? fair->limits.queue_max - waiting : 0;
    return app->share.waiting[class] < fair->limits.queue_per_app &&
           app->share.waiting[class] < free_places &&
           app->owner->share.waiting[class] < 2 * free_places;
}

bool fair_has_room(const struct fair *fair, const struct fair_item *item) {
    return item->class == FAIR_INTERACTIVE ||
           fair->background_used < fair->limits.background_max;
}

/* A caller that begins to wait has no credit for the time when it did not. */
static void share_wait(struct share *share, enum fair_class class, uint64_t now) {
    bool waited = share->waiting[FAIR_INTERACTIVE] + share->waiting[FAIR_BACKGROUND] > 0;
    if (!waited && share->pass < now) share->pass = now;
    share->waiting[class]++;
}

void fair_wait(struct fair *fair, struct fair_item *item) {
    struct fair_app *app = item->app;
    share_wait(&app->share, item->class, app->owner->now);
    share_wait(&app->owner->share, item->class, fair->now);
    fair->waiting[item->class]++;
    list_append(&app->queue[item->class], &item->link);
}

void fair_unwait(struct fair *fair, struct fair_item *item) {
    list_remove(&item->link);
    item->app->share.waiting[item->class]--;
    item->app->owner->share.waiting[item->class]--;
    fair->waiting[item->class]--;
}

/* --- slots -------------------------------------------------------------------------------- */

static void charge(struct share *share, uint64_t *now) {
    if (share->pass < *now) share->pass = *now;
    *now = share->pass;
    share->pass += STRIDE / share->weight;
}

void fair_take(struct fair *fair, struct fair_item *item) {
    struct fair_owner *owner = item->app->owner;
    charge(&item->app->share, &owner->now);
    charge(&owner->share, &fair->now);
    if (item->class == FAIR_BACKGROUND) fair->background_used++;
}

void fair_give_back(struct fair *fair, struct fair_item *item) {
    if (item->class == FAIR_BACKGROUND) fair->background_used--;
}

/* --- the next ----------------------------------------------------------------------------- */

/* What a choice is made by. */
struct choice {
    struct fair *fair;
    enum fair_class class;
    bool (*fits)(const struct fair_item *item, void *ctx);
    void *ctx;
};

/* The first item of the app that fits. All items of an app have the same limits, so the oldest
 * one decides for them; the apps that share a name have their own. */
static struct fair_item *item_of(const struct choice *by, struct fair_app *app) {
    LIST_EACH(&app->queue[by->class], link) {
        struct fair_item *item = CONTAINER_OF(link, struct fair_item, link);
        if (by->fits(item, by->ctx)) return item;
        if (app->share.name.len) break;
    }
    return NULL;
}

static struct fair_item *best_of_owner(const struct choice *by, struct fair_owner *owner) {
    struct fair_item *best = NULL;
    LIST_EACH(&owner->apps, link) {
        struct fair_app *app = CONTAINER_OF(link, struct fair_app, link);
        if (best && app->share.pass >= best->app->share.pass) continue;
        struct fair_item *item = item_of(by, app);
        if (item) best = item;
    }
    return best;
}

static struct fair_item *best_of(const struct choice *by) {
    struct fair_item *best = NULL;
    LIST_EACH(&by->fair->owners, link) {
        struct fair_owner *owner = CONTAINER_OF(link, struct fair_owner, link);
        if (owner->share.waiting[by->class] == 0 ||
            (best && owner->share.pass >= best->app->owner->share.pass))
            continue;
        struct fair_item *item = best_of_owner(by, owner);
        if (item) best = item;
    }
    return best;
}

struct fair_item *fair_next(struct fair *fair,
                            bool (*fits)(const struct fair_item *item, void *ctx), void *ctx) {
    struct choice by = {fair, FAIR_BACKGROUND, fits, ctx};
    bool room = fair->background_used < fair->limits.background_max;
    struct fair_item *background = room ? best_of(&by) : NULL;
    by.class = FAIR_INTERACTIVE;
    struct fair_item *interactive = best_of(&by);
    bool its_turn =
        background && (!interactive || fair->passed_over >= FAIR_BACKGROUND_EVERY - 1);
    if (its_turn || !background) fair->passed_over = 0;
    if (its_turn) return background;
    if (background) fair->passed_over++;
    return interactive;
}
