#include "client/names.h"

#include "base/mem.h"

#include <assert.h>
#include <netdb.h>
#include <pthread.h>
#include <stdlib.h>
#include <uv.h>

#define THREAD_STACK_BYTES ((size_t)(256 * KIB))

/* Shared by its thread and its loop; the last of them frees it. */
struct lookup {
    uv_async_t wake;
    pthread_mutex_t lock;
    bool wanted; /* guarded by the lock: the loop still waits */
    int refs;    /* guarded by the lock */
    char *name;
    struct name_addresses found;
    int failed; /* result of getaddrinfo() */

    /* the loop's */
    struct names *names;
    struct list link; /* in names->lookups */
    struct list waits;
    bool begun;
};

void name_addresses_add(struct name_addresses *list, const struct sockaddr *address) {
    if (list->count == NAMES_ADDRESSES_MAX) return;
    union name_address *to = &list->at[list->count];
    if (address->sa_family == AF_INET) {
        memcpy(&to->four, address, sizeof(to->four));
    } else if (address->sa_family == AF_INET6) {
        memcpy(&to->six, address, sizeof(to->six));
    } else {
        return;
    }
    list->count++;
}

/* --- its memory --- */

static void lookup_unref(struct lookup *lookup) {
    pthread_mutex_lock(&lookup->lock);
    bool last = --lookup->refs == 0;
    pthread_mutex_unlock(&lookup->lock);
    if (!last) return;
    pthread_mutex_destroy(&lookup->lock);
    free(lookup->name);
    free(lookup);
}

static void on_lookup_closed(uv_handle_t *handle) {
    lookup_unref(handle->data);
}

/* Called by the loop; the thread may still be running. */
static void lookup_close(struct lookup *lookup) {
    assert(list_empty(&lookup->waits));
    list_remove(&lookup->link);
    pthread_mutex_lock(&lookup->lock);
    lookup->wanted = false;
    pthread_mutex_unlock(&lookup->lock);
    uv_close((uv_handle_t *)&lookup->wake, on_lookup_closed);
}

/* --- on its thread --- */

static void *look_up(void *ctx) {
    struct lookup *lookup = ctx;
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct addrinfo *infos = NULL;
    lookup->failed = getaddrinfo(lookup->name, NULL, &hints, &infos);
    for (struct addrinfo *info = infos; !lookup->failed && info; info = info->ai_next)
        name_addresses_add(&lookup->found, info->ai_addr);
    if (infos) freeaddrinfo(infos);
    pthread_mutex_lock(&lookup->lock);
    if (lookup->wanted) uv_async_send(&lookup->wake);
    pthread_mutex_unlock(&lookup->lock);
    lookup_unref(lookup);
    return NULL;
}

/* If no thread can be created, the lookup fails as if there were no name server. */
static void lookup_begin(struct lookup *lookup) {
    pthread_attr_t attributes;
    pthread_t thread;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_attr_setstacksize(&attributes, THREAD_STACK_BYTES);
    lookup->begun = true;
    lookup->names->threads++;
    lookup->refs = 2;
    if (pthread_create(&thread, &attributes, look_up, lookup) != 0) {
        lookup->refs = 1;
        lookup->failed = EAI_MEMORY;
        uv_async_send(&lookup->wake);
    }
    pthread_attr_destroy(&attributes);
}

/* --- on the loop --- */

static void begin_some(struct names *names) {
    for (struct list *at = names->lookups.next; at != &names->lookups; at = at->next) {
        struct lookup *lookup = CONTAINER_OF(at, struct lookup, link);
        if (names->threads == NAMES_THREADS_MAX) return;
        if (!lookup->begun) lookup_begin(lookup);
    }
}

/* Each callback may cancel other waits, or ask again. */
static void lookup_report(struct lookup *lookup) {
    struct name_addresses found = lookup->found;
    struct list *link, answered;
    int failed = lookup->failed;
    list_init(&answered);
    while ((link = list_pop(&lookup->waits))) list_append(&answered, link);
    lookup_close(lookup);
    while ((link = list_pop(&answered))) {
        struct name_wait *wait = CONTAINER_OF(link, struct name_wait, link);
        wait->lookup = NULL;
        wait->fn(&found, failed, wait->ctx);
    }
}

static void on_looked_up(uv_async_t *wake) {
    struct lookup *lookup = wake->data;
    struct names *names = lookup->names;
    names->threads--;
    lookup_report(lookup);
    begin_some(names);
}

static struct lookup *lookup_new(struct names *names, struct str name) {
    struct lookup *lookup = MEM_NEW(struct lookup);
    pthread_mutex_init(&lookup->lock, NULL);
    lookup->name = str_dup(name);
    lookup->refs = 1;
    lookup->wanted = true;
    lookup->names = names;
    lookup->wake.data = lookup;
    list_init(&lookup->waits);
    uv_async_init(loop_uv(names->loop), &lookup->wake, on_looked_up);
    list_append(&names->lookups, &lookup->link);
    return lookup;
}

static struct lookup *lookup_of(struct names *names, struct str name) {
    for (struct list *at = names->lookups.next; at != &names->lookups; at = at->next) {
        struct lookup *lookup = CONTAINER_OF(at, struct lookup, link);
        if (str_equal_nocase(str_from(lookup->name), name)) return lookup;
    }
    return lookup_new(names, name);
}

/* --- the public story --- */

void names_init(struct names *names, struct loop *loop) {
    *names = (struct names){.loop = loop};
    list_init(&names->lookups);
}

void names_leave(struct names *names) {
    while (!list_empty(&names->lookups))
        lookup_close(CONTAINER_OF(names->lookups.next, struct lookup, link));
    names->threads = 0;
}

void names_ask(struct names *names, struct str name, struct name_wait *wait, names_fn *fn,
               void *ctx) {
    struct lookup *lookup = lookup_of(names, name);
    *wait = (struct name_wait){.lookup = lookup, .fn = fn, .ctx = ctx};
    list_append(&lookup->waits, &wait->link);
    begin_some(names);
}

/* A running lookup goes on; later requests for the name share it. */
void names_cancel(struct name_wait *wait) {
    struct lookup *lookup = wait->lookup;
    if (!lookup) return;
    wait->lookup = NULL;
    list_remove(&wait->link);
    if (list_empty(&lookup->waits) && !lookup->begun) lookup_close(lookup);
}
