#include "conversation/open_calls.h"

#include "base/mem.h"

#include <stdlib.h>

struct call {
    size_t entry, message;
    struct call *next; /* of its message */
    /* Of the first of its message: the last one, and the first of an older message. */
    struct call *last, *older;
};

void open_calls_init(struct open_calls *calls) {
    *calls = (struct open_calls){.by_id = map_new()};
}

/* The first call of the newest message, or NULL. */
static struct call *find_first(struct open_calls *calls, struct str id) {
    calls->steps++;
    return map_find(calls->by_id, id);
}

/* Remove the first call of a message. Returns the one that is the first then, or NULL. */
static struct call *drop_first(struct call *first) {
    struct call *next = first->next ? first->next : first->older;
    if (first->next) {
        next->last = first->last;
        next->older = first->older;
    }
    free(first);
    return next;
}

void open_calls_done(struct open_calls *calls) {
    size_t cursor = 0;
    struct str id;
    void *value;
    while (map_next(calls->by_id, &cursor, &id, &value)) {
        struct call *first = value;
        while (first) first = drop_first(first);
    }
    map_free(calls->by_id);
}

void open_calls_add(struct open_calls *calls, struct str id, size_t message, size_t entry) {
    struct call *first = find_first(calls, id), *call = MEM_NEW(struct call);
    *call = (struct call){.entry = entry, .message = message, .last = call, .older = first};
    if (first && first->message == message) {
        first->last->next = call;
        first->last = call;
    } else {
        (void)map_put(calls->by_id, id, call);
    }
}

size_t open_calls_answer(struct open_calls *calls, struct str id) {
    struct call *first = find_first(calls, id);
    if (!first) return OPEN_CALLS_NONE;
    size_t entry = first->entry;
    struct call *left = drop_first(first);
    if (left)
        (void)map_put(calls->by_id, id, left);
    else
        (void)map_remove(calls->by_id, id);
    return entry;
}
