#include "store/changes.h"

#include "base/list.h"
#include "base/mem.h"
#include "store/crc64.h"

#include <pthread.h>
#include <stdlib.h>

/* Shared by the store and its watchers, so that it outlives them. */
struct changes {
    pthread_mutex_t lock;
    struct list watchers;
    size_t refs;
};

struct changes_watcher {
    struct changes *changes;
    struct list link; /* not linked: it has left */
    struct loop *loop;
    struct mail mail;
    bool posted;
    uint64_t what;
    task_fn *fn;
    void *ctx;
};

/* --- names -------------------------------------------------------------------------------- */

uint64_t change_name(struct str name) {
    return UINT64_C(1) << (8 + crc64_of(name) % 48);
}

bool change_concerns(uint64_t watched, uint64_t told) {
    uint64_t wanted = watched & CHANGE_NAMES, named = told & CHANGE_NAMES;
    uint64_t kinds = watched & told & ~CHANGE_NAMES;
    if (kinds != CHANGE_FREED) return kinds != 0;
    return !wanted || !named || (wanted & named);
}

/* A freed one without a name may be any; beside others it must not be taken for theirs. */
static uint64_t with_names(uint64_t what) {
    bool any = (what & CHANGE_FREED) && !(what & CHANGE_NAMES);
    return any ? what | CHANGE_NAMES : what;
}

uint64_t change_join(uint64_t a, uint64_t b) {
    return with_names(a) | with_names(b);
}

/* --- watchers ----------------------------------------------------------------------------- */

struct changes *changes_new(void) {
    struct changes *changes = MEM_NEW(struct changes);
    pthread_mutex_init(&changes->lock, NULL);
    list_init(&changes->watchers);
    changes->refs = 1;
    return changes;
}

static void changes_unref(struct changes *changes) {
    pthread_mutex_lock(&changes->lock);
    bool last = --changes->refs == 0;
    pthread_mutex_unlock(&changes->lock);
    if (!last) return;
    pthread_mutex_destroy(&changes->lock);
    free(changes);
}

void changes_free(struct changes *changes) {
    if (changes) changes_unref(changes);
}

struct changes_watcher *changes_watch(struct changes *changes, uint64_t what, struct loop *loop,
                                      task_fn *fn, void *ctx) {
    struct changes_watcher *watcher = MEM_NEW(struct changes_watcher);
    watcher->changes = changes;
    watcher->what = what;
    watcher->loop = loop;
    watcher->fn = fn;
    watcher->ctx = ctx;
    pthread_mutex_lock(&changes->lock);
    changes->refs++;
    list_append(&changes->watchers, &watcher->link);
    pthread_mutex_unlock(&changes->lock);
    return watcher;
}

static void watcher_free(struct changes_watcher *watcher) {
    changes_unref(watcher->changes);
    free(watcher);
}

void changes_leave(struct changes_watcher *watcher) {
    if (!watcher) return;
    pthread_mutex_lock(&watcher->changes->lock);
    list_remove(&watcher->link);
    bool posted = watcher->posted;
    pthread_mutex_unlock(&watcher->changes->lock);
    if (!posted) watcher_free(watcher);
}

static void deliver(void *ctx) {
    struct changes_watcher *watcher = ctx;
    pthread_mutex_lock(&watcher->changes->lock);
    watcher->posted = false;
    bool here = list_linked(&watcher->link);
    pthread_mutex_unlock(&watcher->changes->lock);
    if (here)
        watcher->fn(watcher->ctx);
    else
        watcher_free(watcher);
}

void changes_tell(struct changes *changes, uint64_t what) {
    pthread_mutex_lock(&changes->lock);
    LIST_EACH(&changes->watchers, link) {
        struct changes_watcher *watcher = CONTAINER_OF(link, struct changes_watcher, link);
        if (watcher->posted || !change_concerns(watcher->what, what)) continue;
        watcher->posted = true;
        loop_post(watcher->loop, &watcher->mail, deliver, watcher);
    }
    pthread_mutex_unlock(&changes->lock);
}
