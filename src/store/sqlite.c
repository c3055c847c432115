#include "store/store.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "store/changes.h"
#include "store/core.h"
#include "store/core_replica.h"
#include "store/reader.h"
#include "store/replica_watch.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define STORE_MAGIC 0x65726f74u
#define BATCH_ROWS 2048       /* per commit */
#define BATCH_BYTES (2 * MIB) /* per commit; a larger write gets a commit of its own */
/* When this much is pending, it is projected even if writes are waiting: */
#define BACKLOG_ROWS 512
#define BACKLOG_RUNS 1024        /* takes some milliseconds, during which no commit begins */
#define BACKLOG_BYTES (16 * MIB) /* is read again by a start after a crash */
#define IDLE_MS 1000             /* after this long without requests, project everything */
#define PRUNE_EVERY_MS (60 * 60 * 1000)
#define TROUBLE_MS 1000          /* pause after a failed projection */
#define REOPEN_MS 100            /* pause after a failed reopening */
#define ROW_MAX_BYTES (64 * MIB) /* per row */

/* In place of a number of milliseconds. */
#define NO_SLEEP INT64_C(0)
#define FOR_EVER INT64_C(-1)

/* The report that the store is open. It is dropped if store_close() comes first. */
struct opening {
    struct mail mail;
    struct store *store; /* NULL: the store was closed meanwhile */
    bool ok;
    struct err failed;
};

struct store {
    unsigned magic;
    struct store_options options; /* `folder` is our own copy */
    char *folder;
    char *url, *schema;          /* of a server */
    char *replica;               /* the name of this process among several */
    struct replica_watch *watch; /* NULL: the store is this process's alone */
    struct changes *changes;
    struct opening *opening; /* set until it was reported */
    pthread_t thread;
    struct session_filter *known;
    _Atomic bool knows_all;        /* `known` is complete: it has every stored session */
    _Atomic uint64_t keys_kept_ms; /* 0: for ever */
    struct audit_limits audit;
    struct core core; /* used only by the thread */
    struct reader *reader;
    uint64_t epoch;
    struct {
        pthread_mutex_t lock;
        pthread_cond_t changed;
        struct store_write *writes, **last_write;
        struct store_load *loads, **last_load;
        struct store_task *tasks, **last_task;
        bool closing, asleep;
    } shared;
};

/* --- asking, on any loop ------------------------------------------------------------------ */

static void wake(struct store *store, bool asleep) {
    if (asleep) pthread_cond_signal(&store->shared.changed);
}

void store_write(struct store *store, struct store_write *write) {
    assert(store->magic == STORE_MAGIC && write->home && write->on_written);
    write->next = NULL;
    write->failed.code = ERR_NONE;
    pthread_mutex_lock(&store->shared.lock);
    assert(!store->shared.closing);
    *store->shared.last_write = write;
    store->shared.last_write = &write->next;
    bool asleep = store->shared.asleep;
    store->shared.asleep = false;
    pthread_mutex_unlock(&store->shared.lock);
    wake(store, asleep);
}

static void tell_loaded(void *ctx) {
    struct store_load *load = ctx;
    load->on_loaded(load, load->failed.code ? &load->failed : NULL, load->ctx);
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
        loop_post(load->home, &load->mail, tell_loaded, load);
        return;
    }
    pthread_mutex_lock(&store->shared.lock);
    assert(!store->shared.closing);
    *store->shared.last_load = load;
    store->shared.last_load = &load->next;
    bool asleep = store->shared.asleep;
    store->shared.asleep = false;
    pthread_mutex_unlock(&store->shared.lock);
    wake(store, asleep);
}

void store_run(struct store *store, struct store_task *task) {
    assert(store->magic == STORE_MAGIC && task->home && task->fn && task->on_done);
    task->next = NULL;
    task->failed.code = ERR_NONE;
    pthread_mutex_lock(&store->shared.lock);
    assert(!store->shared.closing);
    *store->shared.last_task = task;
    store->shared.last_task = &task->next;
    bool asleep = store->shared.asleep;
    store->shared.asleep = false;
    pthread_mutex_unlock(&store->shared.lock);
    wake(store, asleep);
}

bool store_is_shared(const struct store *store) {
    return store->options.replica.len > 0;
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

void store_ask(struct store *store, struct reader_task *task) {
    assert(store->magic == STORE_MAGIC && !store_is_server(store));
    reader_ask(store->reader, task);
}

void store_keep_keys(struct store *store, uint64_t kept_ms) {
    assert(store->magic == STORE_MAGIC);
    atomic_store(&store->keys_kept_ms, kept_ms);
    pthread_mutex_lock(&store->shared.lock);
    bool asleep = store->shared.asleep;
    store->shared.asleep = false;
    pthread_mutex_unlock(&store->shared.lock);
    wake(store, asleep);
}

void store_keep_audit(struct store *store, uint64_t kept_ms, uint64_t kept_bytes) {
    assert(store->magic == STORE_MAGIC);
    atomic_store(&store->audit.keep_ms, kept_ms);
    atomic_store(&store->audit.keep_bytes, kept_bytes);
}

/* --- answering, from the store's thread --------------------------------------------------- */

/* Writes of one loop that were answered together are one mail, chained by `next`. */
static void tell_written(void *ctx) {
    for (struct store_write *write = ctx, *next; write; write = next) {
        next = write->next;
        write->on_written(write, write->failed.code ? &write->failed : NULL, write->ctx);
    }
}

/* Remove from *writes those with the same home as the first one, in order. */
static struct store_write *take_home(struct store_write **writes) {
    struct store_write *first = *writes, **last = &first, **rest = writes;
    struct loop *home = first->home;
    for (struct store_write *write = first, *next; write; write = next) {
        next = write->next;
        struct store_write ***list = write->home == home ? &last : &rest;
        **list = write;
        *list = &write->next;
    }
    *last = NULL;
    *rest = NULL;
    return first;
}

static void answer_writes(struct store_write *writes) {
    while (writes) {
        struct store_write *group = take_home(&writes);
        loop_post(group->home, &group->mail, tell_written, group);
    }
}

static void answer_loads(struct store_load *loads) {
    for (struct store_load *load = loads, *next; load; load = next) {
        next = load->next;
        loop_post(load->home, &load->mail, tell_loaded, load);
    }
}

static void tell_done(void *ctx) {
    struct store_task *task = ctx;
    task->on_done(task, task->failed.code ? &task->failed : NULL, task->ctx);
}

static void answer_tasks(struct store_task *tasks) {
    for (struct store_task *task = tasks, *next; task; task = next) {
        next = task->next;
        loop_post(task->home, &task->mail, tell_done, task);
    }
}

static void fail_tasks(struct store_task *tasks, const struct err *why) {
    for (struct store_task *task = tasks; task; task = task->next) task->failed = *why;
    answer_tasks(tasks);
}

static void fail_writes(struct store_write *writes, const struct err *why) {
    for (struct store_write *write = writes; write; write = write->next) write->failed = *why;
    answer_writes(writes);
}

static void fail_loads(struct store_load *loads, const struct err *why) {
    for (struct store_load *load = loads; load; load = load->next) load->failed = *why;
    answer_loads(loads);
}

/* --- the thread --------------------------------------------------------------------------- */

/* What the thread has taken from the queue and not finished. */
struct work {
    struct store_write *writes, **last_write;
    struct store_load *loads;
    struct store_task *tasks; /* run after `writes` */
    /* The writes and tasks that were being committed when a sync failed. */
    struct store_write *doubted_writes;
    struct store_task *doubted_tasks;
    uint64_t reopen_ms; /* when to try again */
    struct err stopped; /* why it could not be reopened */
    bool closing;
    int64_t pause_ms;  /* the longest sleep */
    uint64_t prune_ms; /* when the next round of deleting old keys begins */
};

static struct timespec time_in(int64_t ms) {
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    at.tv_sec += ms / 1000;
    at.tv_nsec += (long)(ms % 1000) * 1000000;
    if (at.tv_nsec >= 1000000000) {
        at.tv_sec++;
        at.tv_nsec -= 1000000000;
    }
    return at;
}

static void sleep_until_asked(struct store *store, int64_t pause_ms) {
    struct timespec until = time_in(pause_ms);
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

/* Take everything from the queue; sleep if it is empty. False: the store is closing and all
 * work is done. */
static bool sqlite_take(struct store *store, struct work *work) {
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

static size_t write_bytes(const struct store_write *write) {
    size_t bytes = 0;
    for (size_t i = 0; i < write->row_count; i++) bytes += write->rows[i].bytes.len;
    return bytes;
}

static bool too_large(const struct store_write *write) {
    for (size_t i = 0; i < write->row_count; i++) {
        if (write->rows[i].bytes.len > ROW_MAX_BYTES) return true;
    }
    return false;
}

/* Split off the writes for one commit, at least one. */
static struct store_write *take_batch(struct work *work) {
    struct store_write *first = work->writes, *last = first;
    size_t rows = first->row_count, bytes = write_bytes(first);
    while (last->next && !too_large(first)) {
        rows += last->next->row_count;
        bytes += write_bytes(last->next);
        if (rows > BATCH_ROWS || bytes > BATCH_BYTES) break;
        last = last->next;
    }
    work->writes = last->next;
    if (!work->writes) work->last_write = &work->writes;
    last->next = NULL;
    return first;
}

static void commit(struct store *store, struct work *work) {
    struct err e;
    struct store_write *batch = take_batch(work);
    if (too_large(batch)) {
        err_set(&e, ERR_TOO_LARGE, "store: a row may have at most %zu bytes", ROW_MAX_BYTES);
        fail_writes(batch, &e);
    } else if (core_commit(&store->core, batch, NULL, &e)) {
        answer_writes(batch);
        database_reached(&store->core.db, "answered");
    } else if (core_stopped(&store->core)) {
        work->doubted_writes = batch;
        return;
    } else {
        fail_writes(batch, &e);
    }
    checkpoint_look(store->core.checkpoint, store->core.wal_pages);
}

/* The tasks before `rest` (may be NULL), as a list of their own. */
static struct store_task *cut_before(struct store_task *tasks, const struct store_task *rest) {
    struct store_task **last = &tasks;
    while (*last != rest) last = &(*last)->next;
    *last = NULL;
    return tasks;
}

/* Run the tasks, after all writes that were taken with them. */
static void run_tasks(struct store *store, struct work *work) {
    while (work->writes && !core_stopped(&store->core)) commit(store, work);
    struct store_task *rest = core_run(&store->core, work->tasks);
    struct store_task *tried = cut_before(work->tasks, rest);
    work->tasks = rest;
    if (core_stopped(&store->core)) {
        work->doubted_tasks = tried;
        return;
    }
    core_purge(&store->core);
    answer_tasks(tried);
    database_reached(&store->core.db, "tasks answered");
    checkpoint_look(store->core.checkpoint, store->core.wal_pages);
}

/* Do all work taken from the queue, in the required order, until a sync fails. */
static void do_work(struct store *store, struct work *work) {
    struct store_load *loads = work->loads;
    work->loads = NULL;
    if (loads) {
        core_answer(&store->core, loads);
        answer_loads(loads);
    }
    if (work->tasks && !core_stopped(&store->core)) run_tasks(store, work);
    if (work->writes && !core_stopped(&store->core)) commit(store, work);
}

static void refuse_all(struct work *work, const struct err *why) {
    if (work->loads) fail_loads(work->loads, why);
    if (work->writes) fail_writes(work->writes, why);
    if (work->tasks) fail_tasks(work->tasks, why);
    work->loads = NULL;
    work->tasks = NULL;
    work->writes = NULL;
    work->last_write = &work->writes;
}

/* --- after a failed sync ------------------------------------------------------------------ */

/* Answer the interrupted commit: it is on disk (`failed` is NULL), or it is not, or that is
 * unknown. */
static void answer_doubted(struct work *work, const struct err *failed) {
    struct store_write *writes = work->doubted_writes;
    struct store_task *tasks = work->doubted_tasks;
    work->doubted_writes = NULL;
    work->doubted_tasks = NULL;
    for (struct store_task *task = tasks; task; task = task->next) {
        if (task->failed.code != ERR_OUTCOME_UNKNOWN) continue;
        task->failed.code = ERR_NONE;
        if (failed) task->failed = *failed;
    }
    if (writes && failed) fail_writes(writes, failed);
    if (writes && !failed) answer_writes(writes);
    answer_tasks(tasks);
}

static bool reopen(struct store *store, struct work *work) {
    reader_pause(store->reader, READER_CLOSED);
    bool ok = core_reopen(&store->core, &store->options, &work->stopped);
    if (ok)
        log_warning("store " STR_FMT ": opened again and sound; writing goes on",
                    STR_ARG(store->options.folder));
    if (!ok) log_often(LOG_ERROR, "a sync failed, and opening again: %s", work->stopped.text);
    if (ok) reader_resume(store->reader, READER_CLOSED);
    work->reopen_ms = clock_mono_ms() + REOPEN_MS;
    return ok;
}

/* False: the store is closing. */
static bool wait_for_reopening(struct store *store, uint64_t at_most_ms) {
    struct timespec until = time_in(at_most_ms < REOPEN_MS ? (int64_t)at_most_ms : REOPEN_MS);
    int timed_out = 0;
    pthread_mutex_lock(&store->shared.lock);
    while (!store->shared.closing && !timed_out)
        timed_out = pthread_cond_timedwait(&store->shared.changed, &store->shared.lock, &until);
    bool closing = store->shared.closing;
    pthread_mutex_unlock(&store->shared.lock);
    return !closing;
}

/* A sync failed. True: the store is open again, the interrupted commit was answered, and the
 * remaining work can continue. */
static bool recover(struct store *store, struct work *work) {
    struct err why;
    uint64_t doubt_ms = store->options.doubt_ms ? store->options.doubt_ms : STORE_DOUBT_MS;
    uint64_t until_ms = clock_mono_ms() + doubt_ms;
    log_error("store " STR_FMT ": a sync failed: nothing is acknowledged until it is opened "
              "again and looked at; check the disk",
              STR_ARG(store->options.folder));
    while (!reopen(store, work)) {
        uint64_t now_ms = clock_mono_ms();
        if (now_ms < until_ms && wait_for_reopening(store, until_ms - now_ms)) continue;
        err_set(&why, ERR_OUTCOME_UNKNOWN,
                "store " STR_FMT ": a sync failed, and whether this was kept cannot be seen "
                "now; repeat it with the same key",
                STR_ARG(store->options.folder));
        answer_doubted(work, &why);
        return false;
    }
    err_set(&why, ERR_UNAVAILABLE,
            "store " STR_FMT ": a sync failed and nothing of this was kept; check the disk",
            STR_ARG(store->options.folder));
    if (store->core.replica.gone)
        err_set(&why, ERR_OUTCOME_UNKNOWN,
                "store: this replica has lost its lease, and whether this was kept cannot be "
                "seen; repeat it with the same key");
    answer_doubted(work, core_kept_doubted(&store->core) ? NULL : &why);
    return true;
}

/* Before new work: if the store has stopped, try now and then to reopen it. */
static bool is_open(struct store *store, struct work *work) {
    core_look(&store->core);
    return !core_stopped(&store->core) ||
           (clock_mono_ms() >= work->reopen_ms && reopen(store, work));
}

/* Read some more sessions into `known`. True: there are no more. */
static bool learn(struct store *store) {
    struct err e;
    bool all = false;
    if (!core_learn(&store->core, &all, &e)) {
        log_warning("%s", e.text);
        return true; /* without `known`, every load reads the tables */
    }
    if (all) atomic_store_explicit(&store->knows_all, true, memory_order_release);
    return all;
}

/* Delete some old keys. False: there is nothing to do now. */
static bool prune(struct store *store, struct work *work) {
    struct err e;
    bool end = true;
    uint64_t kept_ms = atomic_load(&store->keys_kept_ms), now_ms = clock_mono_ms();
    if (kept_ms == 0 || now_ms < work->prune_ms) return false;
    if (!core_prune(&store->core, kept_ms, &end, &e)) log_debug("old keys stay: %s", e.text);
    if (end) work->prune_ms = now_ms + PRUNE_EVERY_MS;
    return !end;
}

/* Do deferred work: project rows, complete `known`, delete old keys. Returns how long to sleep
 * afterwards. */
static int64_t tidy(struct store *store, struct work *work, bool idle, bool *learned) {
    struct err e;
    bool much = core_pending(&store->core) >= BACKLOG_ROWS ||
                project_pending_runs(&store->core.project) >= BACKLOG_RUNS ||
                project_pending_bytes(&store->core.project) >= BACKLOG_BYTES;
    bool catch_up = idle || !*learned || much;
    if (catch_up && !core_project(&store->core, &e)) {
        log_debug("the tables lag behind: %s", e.text);
        return TROUBLE_MS;
    }
    if (catch_up && !core_purge(&store->core)) return TROUBLE_MS;
    if (catch_up) checkpoint_look(store->core.checkpoint, store->core.wal_pages);
    if (!*learned) *learned = learn(store);
    if (!*learned || prune(store, work)) return NO_SLEEP;
    return core_pending(&store->core) ? IDLE_MS : FOR_EVER;
}

static void serve(struct store *store) {
    struct work work = {.pause_ms = NO_SLEEP};
    work.last_write = &work.writes;
    /* What others write is not in `known`, so it is never complete. */
    bool learned = core_is_shared(&store->core);
    while (sqlite_take(store, &work)) {
        bool idle = !work.writes && !work.loads && !work.tasks;
        bool open = is_open(store, &work);
        if (open) do_work(store, &work);
        while (open && core_stopped(&store->core)) {
            open = recover(store, &work);
            if (open) do_work(store, &work);
        }
        if (!open) {
            refuse_all(&work, &work.stopped);
            reader_refuse(store->reader, &work.stopped);
        }
        work.pause_ms = open ? tidy(store, &work, idle, &learned) : TROUBLE_MS;
        if (open && core_stopped(&store->core)) work.pause_ms = NO_SLEEP;
    }
    struct err e;
    while (!core_stopped(&store->core) && core_pending(&store->core) &&
           core_project(&store->core, &e))
        continue;
    if (core_is_shared(&store->core) && !core_stopped(&store->core) &&
        !store->core.replica.lost && !core_replica_leave(&store->core, &e))
        log_warning("what this replica held is free when its lease is over: %s", e.text);
}

static void sqlite_refuse(struct store *store, const struct err *why) {
    struct work work = {.pause_ms = FOR_EVER};
    work.last_write = &work.writes;
    while (sqlite_take(store, &work)) refuse_all(&work, why);
}

/* --- opening and closing ------------------------------------------------------------------ */

static void tell_opened(void *ctx) {
    struct opening *opening = ctx;
    struct store *store = opening->store;
    if (store) {
        store->opening = NULL;
        store->options.on_open(opening->ok ? NULL : &opening->failed, store->options.ctx);
    }
    free(opening);
}

static void on_changed(unsigned what, void *ctx) {
    changes_tell(((struct store *)ctx)->changes, what);
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
                                                            .died = on_other_died,
                                                            .lost = on_fenced,
                                                            .ctx = store});
}

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
        reader_refuse(store->reader, &e);
        sqlite_refuse(store, &e);
        return NULL;
    }
    reader_resume(store->reader, READER_CLOSED);
    serve(store);
    reader_pause(store->reader, READER_CLOSED);
    core_close(&store->core);
    return NULL;
}

struct store *store_open(const struct store_options *options) {
    struct store *store = MEM_NEW(struct store);
    store->magic = STORE_MAGIC;
    store->options = *options;
    store->folder = str_dup(options->folder);
    store->options.folder = str_from(store->folder);
    store->url = str_dup(options->postgres);
    store->options.postgres = str_from(store->url);
    store->schema = str_dup(options->schema);
    store->options.schema = str_from(store->schema);
    store->replica = str_dup(options->replica);
    store->options.replica = str_from(store->replica);
    store->changes = changes_new();
    store->known = session_filter_new();
    char *path = mem_alloc(store->options.folder.len + sizeof("/weir.db"));
    sprintf(path, STR_FMT "/weir.db", STR_ARG(store->options.folder));
    store->reader = reader_new(str_from(path));
    free(path);
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
    int failed = pthread_create(&store->thread, NULL, work, store);
    assert(!failed);
    (void)failed;
    return store;
}

void store_close(struct store *store) {
    if (!store) return;
    assert(store->magic == STORE_MAGIC);
    pthread_mutex_lock(&store->shared.lock);
    store->shared.closing = true;
    pthread_cond_signal(&store->shared.changed);
    pthread_mutex_unlock(&store->shared.lock);
    pthread_join(store->thread, NULL);
    replica_watch_stop(store->watch);
    changes_free(store->changes);
    reader_free(store->reader);
    if (store->opening) store->opening->store = NULL;
    pthread_cond_destroy(&store->shared.changed);
    pthread_mutex_destroy(&store->shared.lock);
    session_filter_free(store->known);
    free(store->folder);
    free(store->url);
    free(store->schema);
    free(store->replica);
    store->magic = 0;
    free(store);
}

uint64_t store_epoch(const struct store *store) {
    assert(store->magic == STORE_MAGIC);
    return store->epoch;
}
