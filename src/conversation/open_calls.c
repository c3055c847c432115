#include "conversation/open_calls.h"

#include "base/mem.h"

#include <stdlib.h>

struct call {
    size_t entry;
    struct call *next;
};

/* Never without a call. */
struct group {
    size_t message;
    struct call *first, *last;
    struct group *older;
};

void open_calls_init(struct open_calls *calls) {
    *calls = (struct open_calls){.by_id = map_new()};
}

/* The newest group of this id, or NULL. */
static struct group *find_group(struct open_calls *calls, struct str id) {
    calls->steps++;
    return map_find(calls->by_id, id);
}

/* Remove the first call of a group. Returns what follows: the group, or the older one. */
static struct group *drop_first(struct group *group) {
    struct call *first = group->first;
    struct group *older = group->older;
    group->first = first->next;
    free(first);
    if (group->first) return group;
    free(group);
    return older;
}

void open_calls_done(struct open_calls *calls) {
    size_t cursor = 0;
    struct str id;
    void *value;
    while (map_next(calls->by_id, &cursor, &id, &value)) {
        struct group *group = value;
        while (group) group = drop_first(group);
    }
    map_free(calls->by_id);
}

void open_calls_add(struct open_calls *calls, struct str id, size_t message, size_t entry) {
    struct group *group = find_group(calls, id);
    struct call *call = MEM_NEW(struct call);
    call->entry = entry;
    if (group && group->message == message) {
        group->last->next = call;
        group->last = call;
        return;
    }
    struct group *newest = MEM_NEW(struct group);
    *newest = (struct group){.message = message, .first = call, .last = call, .older = group};
    (void)map_put(calls->by_id, id, newest);
}

size_t open_calls_answer(struct open_calls *calls, struct str id) {
    struct group *group = find_group(calls, id);
    if (!group) return OPEN_CALLS_NONE;
    size_t entry = group->first->entry;
    struct group *left = drop_first(group);
    if (!left)
        (void)map_remove(calls->by_id, id);
    else if (left != group)
        (void)map_put(calls->by_id, id, left);
    return entry;
}
