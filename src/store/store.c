#include "store/store.h"

#include "base/mem.h"
#include "store/changes.h"
#include "store/long_reader.h"
#include "store/replica_watch.h"
#include "store/searches.h"
#include "store/store_inner.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

/* The report that the store is open. It is dropped if store_close() comes first. */
struct opening {
    struct mail mail;
    struct store *store; /* NULL: the store was closed meanwhile */
    bool ok;
    struct err failed;
};

static void tell_opened(void *ctx) {
    struct opening *opening = ctx;
    struct store *store = opening->store;
    if (store) {
        store->opening = NULL;
        store->options.on_open(opening->ok ? NULL : &opening->failed, store->options.ctx);
    }
    free(opening);
}

/* --- other replicas ----------------------------------------------------------------------- */

static void on_changed(uint64_t what, void *ctx) {
    changes_tell(((struct store *)ctx)->changes, what);
}

static void on_living(size_t count, void *ctx) {
    atomic_store(&((struct store *)ctx)->living, count);
}

static void on_other_died(void *ctx) {
    const struct store *store = ctx;
    if (store->options.on_died) store->options.on_died(store->options.ctx);
}

static void on_fenced(void *ctx) {
    const struct store *store = ctx;
    if (store->options.on_lost) store->options.on_lost(store->options.ctx);
}

static void watch_others(struct store *store) {
    const struct store_options *options = &store->options;
    if (!store_is_shared(store)) return;
    store->watch =
        replica_watch_start(&(struct replica_watch_options){.url = options->postgres,
                                                            .schema = options->schema,
                                                            .replica = store->core.epoch,
                                                            .lease_ms = options->lease_ms,
                                                            .changed = on_changed,
                                                            .living = on_living,
                                                            .died = on_other_died,
                                                            .lost = on_fenced,
                                                            .ctx = store});
}

/* --- opening and closing ------------------------------------------------------------------ */

static void *work(void *ctx) {
    struct store *store = ctx;
    struct opening *opening = store->opening;
    struct err e;
    opening->ok = core_open(&store->core, &store->options, store->known, store->reader, &e);
    if (!opening->ok) {
        opening->failed = e;
        core_close(&store->core);
    }
    bool ok = opening->ok;
    store->core.audit.limits = &store->audit;
    store->epoch = (uint64_t)store->core.epoch;
    if (ok) watch_others(store);
    loop_post(store->options.loop, &opening->mail, tell_opened, opening);
    if (!ok) {
        long_reader_refuse(store->reader, &e);
        serve_refuse(store, &e);
        return NULL;
    }
    long_reader_resume(store->reader, LONG_READER_CLOSED);
    serve_requests(store);
    long_reader_pause(store->reader, LONG_READER_CLOSED);
    core_close(&store->core);
    return NULL;
}

struct bucket *store_bucket(const struct store *store) {
    return store->options.bucket;
}

struct store *store_new(const struct store_options *options) {
    struct store *store = MEM_NEW(struct store);
    store->magic = STORE_MAGIC;
    store->options = *options;
    struct str *const texts[] = {&store->options.folder, &store->options.postgres,
                                 &store->options.schema, &store->options.replica};
    buf_keep_texts(&store->texts, texts, ARRAY_LEN(texts));
    store->changes = changes_new();
    store->known = session_filter_new();
    char *path = mem_alloc(store->options.folder.len + sizeof("/weir.db"));
    sprintf(path, STR_FMT "/weir.db", STR_ARG(store->options.folder));
    store->reader = long_reader_new(str_from(path));
    free(path);
    if (options->postgres.len)
        store->searches = searches_new(options->postgres, options->schema,
                                       options->searches ? options->searches : STORE_SEARCHES);
    store->opening = MEM_NEW(struct opening);
    store->opening->store = store;
    store->shared.last_write = &store->shared.writes;
    store->shared.last_load = &store->shared.loads;
    store->shared.last_task = &store->shared.tasks;
    pthread_mutex_init(&store->shared.lock, NULL);
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&store->shared.changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    return store;
}

void store_begin(struct store *store) {
    assert(store->magic == STORE_MAGIC && !store->begun);
    store->begun = true;
    int failed = pthread_create(&store->thread, NULL, work, store);
    assert(!failed);
    (void)failed;
}

struct store *store_open(const struct store_options *options) {
    struct store *store = store_new(options);
    store_begin(store);
    return store;
}

/* Nothing was opened: what waits is refused. */
static void never_begun(struct store *store) {
    struct err why;
    err_set(&why, ERR_UNAVAILABLE, "store " STR_FMT ": it is closed before it was opened",
            STR_ARG(store->options.folder));
    serve_refuse(store, &why);
    free(store->opening);
    store->opening = NULL;
}

void store_close(struct store *store) {
    if (!store) return;
    assert(store->magic == STORE_MAGIC);
    pthread_mutex_lock(&store->shared.lock);
    store->shared.closing = true;
    pthread_cond_signal(&store->shared.changed);
    pthread_mutex_unlock(&store->shared.lock);
    if (store->begun)
        pthread_join(store->thread, NULL);
    else
        never_begun(store);
    searches_free(store->searches);
    replica_watch_stop(store->watch);
    changes_free(store->changes);
    long_reader_free(store->reader);
    if (store->opening) store->opening->store = NULL;
    pthread_cond_destroy(&store->shared.changed);
    pthread_mutex_destroy(&store->shared.lock);
    session_filter_free(store->known);
    buf_done(&store->texts);
    store->magic = 0;
    free(store);
}

uint64_t store_epoch(const struct store *store) {
    assert(store->magic == STORE_MAGIC);
    return store->epoch;
}

bool store_is_shared(const struct store *store) {
    return store->options.replica.len > 0;
}

size_t store_living(const struct store *store) {
    size_t living = atomic_load(&store->living);
    return living ? living : 1;
}

unsigned store_slot(const struct store *store) {
    return store->core.replica.slot;
}

struct changes *store_changes(struct store *store) {
    return store->changes;
}

bool store_is_server(const struct store *store) {
    return store->options.postgres.len > 0;
}
