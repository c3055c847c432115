#include "store/store_inner.h"

#include "base/clock.h"
#include "base/mem.h"
#include "store/long_reader.h"
#include "store/reply.h"

#include <assert.h>
#include <stdlib.h>

/* --- asking, on any loop ------------------------------------------------------------------ */

static void queue_open(struct store *store) {
    pthread_mutex_lock(&store->shared.lock);
    assert(!store->shared.closing);
}

/* Something is to be done: wake the thread. */
static void queue_shut(struct store *store) {
    bool asleep = store->shared.asleep;
    store->shared.asleep = false;
    pthread_mutex_unlock(&store->shared.lock);
    if (asleep) pthread_cond_signal(&store->shared.changed);
}

void store_write(struct store *store, struct store_write *write) {
    assert(store->magic == STORE_MAGIC && write->home && write->on_written);
    write->next = NULL;
    write->failed.code = ERR_NONE;
    queue_open(store);
    *store->shared.last_write = write;
    store->shared.last_write = &write->next;
    queue_shut(store);
}

/* Whether the session was never written. The answer is then empty and needs neither the thread
 * nor the disk. */
static bool surely_empty(const struct store *store, const struct store_load *load) {
    return (load->question == STORE_SESSION || load->question == STORE_SESSION_RUNS) &&
           atomic_load_explicit(&store->knows_all, memory_order_acquire) &&
           !session_filter_perhaps(store->known, load->workspace, load->user, load->session);
}

void store_load(struct store *store, struct store_load *load) {
    assert(store->magic == STORE_MAGIC && load->home && load->on_loaded);
    load->next = NULL;
    load->failed.code = ERR_NONE;
    load->arena = NULL;
    load->sections = NULL;
    load->section_count = 0;
    load->more = false;
    load->open = false;
    if (surely_empty(store, load)) {
        reply_loads(load);
        return;
    }
    queue_open(store);
    *store->shared.last_load = load;
    store->shared.last_load = &load->next;
    queue_shut(store);
}

/* Whether it may not begin, because too much waits to be given back. */
static bool refuse_task(const struct store *store, struct store_task *task) {
    size_t waiting = atomic_load_explicit(&store->insisting, memory_order_relaxed);
    if (!task->takes || waiting < STORE_INSISTING_MAX) return false;
    err_set(&task->failed, ERR_UNAVAILABLE,
            "store " STR_FMT
            ": it is away, and %zu things wait to be given back to it; nothing "
            "more is taken before that; try again in a moment",
            STR_ARG(store->options.folder), waiting);
    reply_tasks(task);
    return true;
}

void store_run(struct store *store, struct loop *home, struct store_task *task, void *ctx) {
    assert(store->magic == STORE_MAGIC && home && task->fn && task->on_done);
    task->next = NULL;
    task->home = home;
    task->ctx = ctx;
    task->failed.code = ERR_NONE;
    task->counted = task->insists ? &store->insisting : NULL;
    if (refuse_task(store, task)) return;
    if (task->counted) atomic_fetch_add_explicit(task->counted, 1, memory_order_relaxed);
    queue_open(store);
    *store->shared.last_task = task;
    store->shared.last_task = &task->next;
    queue_shut(store);
}

void store_ask(struct store *store, struct long_reader_task *task) {
    assert(store->magic == STORE_MAGIC && !store_is_server(store));
    long_reader_ask(store->reader, task);
}

struct rest {
    struct store_task task;
    task_fn *fn;
    void *ctx;
};

static bool rest_run(struct database *db, void *ctx, struct err *e) {
    struct rest *rest = ctx;
    (void)e;
    sqlite3_db_release_memory(db->handle);
    rest->fn(rest->ctx);
    return true;
}

static void rest_on_done(const struct err *failed, void *ctx) {
    (void)failed;
    free(ctx);
}

void store_rest(struct store *store, struct loop *home, task_fn *fn, void *ctx) {
    struct rest *rest = MEM_NEW(struct rest);
    *rest = (struct rest){.task = {.reads_only = true, .fn = rest_run, .on_done = rest_on_done},
                          .fn = fn,
                          .ctx = ctx};
    store_run(store, home, &rest->task, rest);
}

void store_keep_keys(struct store *store, uint64_t kept_ms) {
    assert(store->magic == STORE_MAGIC);
    atomic_store(&store->keys_kept_ms, kept_ms);
    pthread_mutex_lock(&store->shared.lock);
    queue_shut(store);
}

void store_keep_audit(struct store *store, uint64_t kept_ms, uint64_t kept_bytes) {
    assert(store->magic == STORE_MAGIC);
    atomic_store(&store->audit.keep_ms, kept_ms);
    atomic_store(&store->audit.keep_bytes, kept_bytes);
}

void work_init(struct work *work, int64_t pause_ms) {
    *work = (struct work){.pause_ms = pause_ms};
    work->last_write = &work->writes;
    work->last_again = &work->again;
}

/* --- taking, on the store's thread ------------------------------------------------------- */

static void sleep_until_asked(struct store *store, int64_t pause_ms) {
    struct timespec until = clock_mono_in((uint64_t)pause_ms);
    store->shared.asleep = true;
    int timed_out = 0;
    while (store->shared.asleep && !store->shared.closing && !timed_out) {
        pthread_cond_t *changed = &store->shared.changed;
        timed_out = pause_ms == FOR_EVER
                        ? pthread_cond_wait(changed, &store->shared.lock)
                        : pthread_cond_timedwait(changed, &store->shared.lock, &until);
    }
    store->shared.asleep = false;
}

bool queue_take(struct store *store, struct work *work) {
    pthread_mutex_lock(&store->shared.lock);
    bool idle =
        !work->writes && !store->shared.writes && !store->shared.loads && !store->shared.tasks;
    if (idle && work->pause_ms != NO_SLEEP) sleep_until_asked(store, work->pause_ms);
    if (store->shared.writes) {
        *work->last_write = store->shared.writes;
        work->last_write = store->shared.last_write;
        store->shared.writes = NULL;
        store->shared.last_write = &store->shared.writes;
    }
    work->loads = store->shared.loads;
    store->shared.loads = NULL;
    store->shared.last_load = &store->shared.loads;
    work->tasks = store->shared.tasks;
    store->shared.tasks = NULL;
    store->shared.last_task = &store->shared.tasks;
    work->closing = store->shared.closing;
    pthread_mutex_unlock(&store->shared.lock);
    return work->writes || work->loads || work->tasks || !work->closing;
}

bool queue_wait_for_close(struct store *store, int64_t at_most_ms) {
    struct timespec until = clock_mono_in((uint64_t)at_most_ms);
    int timed_out = 0;
    pthread_mutex_lock(&store->shared.lock);
    while (!store->shared.closing && !timed_out)
        timed_out = pthread_cond_timedwait(&store->shared.changed, &store->shared.lock, &until);
    bool closing = store->shared.closing;
    pthread_mutex_unlock(&store->shared.lock);
    return !closing;
}
