#include "base/sharing.h"

#include "base/map.h"
#include "base/mem.h"
#include "base/text.h"

#include <assert.h>
#include <stdlib.h>

struct sharing_owner {
    struct list link; /* in sharing->turns, while an item of it waits and may have a place */
    struct list line;
    struct text name;
    size_t waiting, placed;
};

struct sharing {
    struct map *owners;
    struct list turns; /* the owner whose turn it is comes first */
    size_t places, most, placed;
};

struct sharing *sharing_new(size_t places, size_t most) {
    assert(places && most);
    struct sharing *sharing = MEM_NEW(struct sharing);
    sharing->owners = map_new();
    list_init(&sharing->turns);
    sharing->places = places;
    sharing->most = most;
    return sharing;
}

void sharing_free(struct sharing *sharing) {
    if (!sharing) return;
    assert(map_count(sharing->owners) == 0);
    map_free(sharing->owners);
    free(sharing);
}

size_t sharing_share(const struct sharing *sharing) {
    return sharing->places > 1 ? sharing->places / 2 : 1;
}

/* --- owners -------------------------------------------------------------------------------- */

static struct sharing_owner *owner_named(struct sharing *sharing, struct str name) {
    struct sharing_owner *owner = map_find(sharing->owners, name);
    if (owner) return owner;
    owner = MEM_NEW(struct sharing_owner);
    owner->name = text_copy(name);
    list_init(&owner->link);
    list_init(&owner->line);
    map_put(sharing->owners, name, owner);
    return owner;
}

/* At the end of the turns, if an item of it may have a place and it does not wait there. */
static void owner_queue(struct sharing *sharing, struct sharing_owner *owner) {
    bool may = owner->waiting && owner->placed < sharing_share(sharing);
    if (!may) list_remove(&owner->link);
    if (may && !list_linked(&owner->link)) list_append(&sharing->turns, &owner->link);
}

static void owner_forget(struct sharing *sharing, struct sharing_owner *owner) {
    map_remove(sharing->owners, text_str(owner->name));
    text_done(&owner->name);
    free(owner);
}

/* --- items --------------------------------------------------------------------------------- */

bool sharing_enter(struct sharing *sharing, struct str name, struct sharing_item *item) {
    struct sharing_owner *owner = owner_named(sharing, name);
    if (owner->waiting + owner->placed >= sharing->most) return false;
    item->owner = owner;
    item->placed = false;
    list_init(&item->link);
    list_append(&owner->line, &item->link);
    owner->waiting++;
    owner_queue(sharing, owner);
    return true;
}

bool sharing_may_next(const struct sharing *sharing) {
    return sharing->placed < sharing->places && !list_empty(&sharing->turns);
}

struct sharing_item *sharing_next(struct sharing *sharing) {
    struct list *turn = sharing->placed < sharing->places ? list_pop(&sharing->turns) : NULL;
    if (!turn) return NULL;
    struct sharing_owner *owner = CONTAINER_OF(turn, struct sharing_owner, link);
    struct sharing_item *item = CONTAINER_OF(owner->line.next, struct sharing_item, link);
    list_remove(&item->link);
    owner->waiting--;
    owner->placed++;
    sharing->placed++;
    item->placed = true;
    owner_queue(sharing, owner);
    return item;
}

void sharing_leave(struct sharing *sharing, struct sharing_item *item) {
    struct sharing_owner *owner = item->owner;
    if (!owner) return;
    item->owner = NULL;
    list_remove(&item->link);
    owner->waiting -= !item->placed;
    owner->placed -= item->placed;
    sharing->placed -= item->placed;
    owner_queue(sharing, owner);
    if (!owner->waiting && !owner->placed) owner_forget(sharing, owner);
}

struct sharing_item *sharing_any_waiting(const struct sharing *sharing) {
    size_t cursor = 0;
    struct str name;
    void *value;
    while (map_next(sharing->owners, &cursor, &name, &value)) {
        const struct sharing_owner *owner = value;
        if (owner->waiting) return CONTAINER_OF(owner->line.next, struct sharing_item, link);
    }
    return NULL;
}
