#include "run/crowd.h"

#include "base/map.h"
#include "base/mem.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

struct throng {
    struct str workspace; /* the map's key, in one block with this */
    size_t taken, places_max;
    struct list waiting; /* places, the oldest first */
};

struct crowd {
    pthread_mutex_t lock;
    struct map *throngs;
};

struct crowd *crowd_new(void) {
    struct crowd *crowd = MEM_NEW(struct crowd);
    pthread_mutex_init(&crowd->lock, NULL);
    crowd->throngs = map_new();
    return crowd;
}

void crowd_free(struct crowd *crowd) {
    if (!crowd) return;
    assert(map_count(crowd->throngs) == 0);
    map_free(crowd->throngs);
    pthread_mutex_destroy(&crowd->lock);
    free(crowd);
}

static struct throng *throng_of(struct crowd *crowd, struct str workspace) {
    struct throng *throng = map_find(crowd->throngs, workspace);
    if (throng) return throng;
    throng = mem_zero(1, sizeof(*throng) + workspace.len);
    if (workspace.len) memcpy(throng + 1, workspace.at, workspace.len);
    throng->workspace = str_of((char *)(throng + 1), workspace.len);
    list_init(&throng->waiting);
    map_put(crowd->throngs, workspace, throng);
    return throng;
}

/* A workspace where nothing happens is forgotten. */
static void rest(struct crowd *crowd, struct throng *throng) {
    if (throng->taken || !list_empty(&throng->waiting)) return;
    map_remove(crowd->throngs, throng->workspace);
    free(throng);
}

static void take(struct throng *throng, struct place *place) {
    throng->taken++;
    place->state = PLACE_TAKEN;
}

static void tell(void *ctx) {
    struct place *place = ctx;
    place->granted(place->ctx);
}

bool crowd_enter(struct crowd *crowd, struct str workspace, size_t places_max,
                 struct place *place) {
    assert(place->state == PLACE_NONE);
    list_init(&place->link);
    pthread_mutex_lock(&crowd->lock);
    struct throng *throng = place->throng = throng_of(crowd, workspace);
    throng->places_max = places_max; /* as the newest settings have it */
    bool is_free = throng->taken < places_max && list_empty(&throng->waiting);
    if (is_free) {
        take(throng, place);
    } else {
        place->state = PLACE_WAITING;
        list_append(&throng->waiting, &place->link);
    }
    pthread_mutex_unlock(&crowd->lock);
    return is_free;
}

bool crowd_withdraw(struct crowd *crowd, struct place *place) {
    pthread_mutex_lock(&crowd->lock);
    bool waited = place->state == PLACE_WAITING;
    if (waited) {
        list_remove(&place->link);
        place->state = PLACE_NONE;
        rest(crowd, place->throng);
    }
    pthread_mutex_unlock(&crowd->lock);
    return waited;
}

void crowd_leave(struct crowd *crowd, struct place *place) {
    pthread_mutex_lock(&crowd->lock);
    if (place->state == PLACE_TAKEN) {
        struct throng *throng = place->throng;
        place->state = PLACE_NONE;
        throng->taken--;
        while (throng->taken < throng->places_max && !list_empty(&throng->waiting)) {
            struct place *next = CONTAINER_OF(throng->waiting.next, struct place, link);
            list_remove(&next->link);
            take(throng, next);
            loop_post(next->loop, &next->mail, tell, next);
        }
        rest(crowd, throng);
    }
    pthread_mutex_unlock(&crowd->lock);
}
