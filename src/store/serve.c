#include "store/store_inner.h"

#include "base/clock.h"
#include "base/log.h"
#include "store/core_replica.h"
#include "store/long_reader.h"
#include "store/reply.h"
#include "store/searches.h"

#include <assert.h>

#define BATCH_ROWS 2048       /* per commit */
#define BATCH_BYTES (2 * MIB) /* per commit; a larger write gets a commit of its own */
/* When this much is pending, it is projected even if writes are waiting: */
#define BACKLOG_ROWS 512
#define BACKLOG_COST 2560        /* takes some milliseconds, during which no commit begins */
#define BACKLOG_BYTES (16 * MIB) /* is read again by a start after a crash */
#define IDLE_MS 1000             /* after this long without requests, project everything */
#define PRUNE_EVERY_MS (60 * 60 * 1000)
#define TROUBLE_MS 1000          /* pause after a failed projection */
#define REOPEN_MS 100            /* pause after a failed reopening */
#define ROW_MAX_BYTES (64 * MIB) /* per row */

/* --- commits and tasks -------------------------------------------------------------------- */

static size_t write_bytes(const struct store_write *write) {
    size_t bytes = 0;
    for (size_t i = 0; i < write->row_count; i++) bytes += write->rows[i].bytes.len;
    return bytes;
}

static bool store_serve_too_large(const struct store_write *write) {
    for (size_t i = 0; i < write->row_count; i++) {
        if (write->rows[i].bytes.len > ROW_MAX_BYTES) return true;
    }
    return false;
}

/* Split off the writes for one commit, at least one. */
static struct store_write *take_batch(struct work *work) {
    struct store_write *first = work->writes, *last = first;
    size_t rows = first->row_count, bytes = write_bytes(first);
    while (last->next && !store_serve_too_large(first)) {
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
    if (store_serve_too_large(batch)) {
        err_set(&e, ERR_TOO_LARGE, "store: a row may have at most %zu bytes", ROW_MAX_BYTES);
        reply_writes_failed(batch, &e);
    } else if (core_commit(&store->core, batch, NULL, &e)) {
        reply_writes(batch);
        database_reached(&store->core.db, "answered");
    } else if (core_stopped(&store->core)) {
        work->doubted_writes = batch;
        return;
    } else {
        reply_writes_failed(batch, &e);
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

/* The searches among the tasks, which a server's other connections are for. */
static struct store_task *take_searches(const struct store *store, struct store_task **tasks) {
    struct store_task *searches = NULL, **last = &searches;
    while (store->searches && *tasks) {
        struct store_task *task = *tasks;
        if (!task->search_of.len) {
            tasks = &task->next;
            continue;
        }
        *tasks = task->next;
        task->next = NULL;
        *last = task;
        last = &task->next;
    }
    return searches;
}

static void begin_searches(struct store *store, struct store_task *searches) {
    while (searches) {
        struct store_task *task = searches;
        searches = task->next;
        searches_ask(store->searches, task);
    }
}

static void run_in_order(struct store *store, struct work *work) {
    while (work->writes && !core_stopped(&store->core)) commit(store, work);
    struct store_task *rest = core_run(&store->core, work->tasks);
    struct store_task *tried = cut_before(work->tasks, rest);
    work->tasks = rest;
    if (core_stopped(&store->core)) {
        work->doubted_tasks = tried;
        return;
    }
    core_purge(&store->core);
    reply_tasks(tried);
    database_reached(&store->core.db, "tasks answered");
    checkpoint_look(store->core.checkpoint, store->core.wal_pages);
}

/* Run the tasks, after all writes that were taken with them. A search sees what was asked before
 * it, and begins after it. */
static void run_tasks(struct store *store, struct work *work) {
    struct store_task *searches = take_searches(store, &work->tasks);
    run_in_order(store, work);
    begin_searches(store, searches);
}

/* Do all work taken from the queue, in the required order, until a sync fails. */
static void do_work(struct store *store, struct work *work) {
    struct store_load *loads = work->loads;
    work->loads = NULL;
    if (loads) {
        core_answer(&store->core, loads);
        reply_loads(loads);
    }
    if (work->tasks && !core_stopped(&store->core)) run_tasks(store, work);
    if (work->writes && !core_stopped(&store->core)) commit(store, work);
}

/* Move those of *tasks that failed and are to run again to the end of `again`, in order. */
static void take_insisting(struct work *work, struct store_task **tasks) {
    struct store_task **rest = tasks;
    while (*rest) {
        struct store_task *task = *rest;
        if (!task->insists || !task->failed.code) {
            rest = &task->next;
            continue;
        }
        *rest = task->next;
        task->next = NULL;
        task->failed.code = ERR_NONE;
        *work->last_again = task;
        work->last_again = &task->next;
    }
}

/* Tasks that failed in an earlier round come first. */
static void run_again(struct work *work) {
    *work->last_again = work->tasks;
    work->tasks = work->again;
    work->again = NULL;
    work->last_again = &work->again;
}

/* Answer tasks that were tried or refused, except those that insist while the store is in use. */
static void answer_tasks(struct work *work, struct store_task *tasks) {
    if (!work->closing) take_insisting(work, &tasks);
    reply_tasks(tasks);
}

static void refuse_all(struct work *work, const struct err *why) {
    assert(why->code != ERR_NONE); /* it would be taken for success */
    for (struct store_task *task = work->tasks; task; task = task->next) task->failed = *why;
    if (work->loads) reply_loads_failed(work->loads, why);
    if (work->writes) reply_writes_failed(work->writes, why);
    answer_tasks(work, work->tasks);
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
    if (writes && failed) reply_writes_failed(writes, failed);
    if (writes && !failed) reply_writes(writes);
    answer_tasks(work, tasks);
}

/* What stops a store, and where an operator looks. */
struct fault {
    const char *what, *look;
};

static struct fault fault_of(const struct store *store) {
    if (!store->options.postgres.len) return (struct fault){"a sync failed", "check the disk"};
    return (struct fault){"the database was lost during a commit", "check PostgreSQL"};
}

static bool reopen(struct store *store, struct work *work) {
    long_reader_pause(store->reader, LONG_READER_CLOSED);
    bool ok = core_reopen(&store->core, &store->options, &work->stopped);
    if (ok)
        log_warning("store " STR_FMT ": opened again and sound; writing goes on",
                    STR_ARG(store->options.folder));
    if (!ok)
        log_often(LOG_ERROR, "%s, and opening again: %s", fault_of(store).what,
                  work->stopped.text);
    if (ok) long_reader_resume(store->reader, LONG_READER_CLOSED);
    work->reopen_ms =
        ok ? 0 : clock_mono_ms() + REOPEN_MS; /* a next failure is tried at once */
    return ok;
}

/* False: the store is closing. */
static bool wait_for_reopening(struct store *store, uint64_t at_most_ms) {
    return queue_wait_for_close(store,
                                at_most_ms < REOPEN_MS ? (int64_t)at_most_ms : REOPEN_MS);
}

/* A sync failed. True: the store is open again, the interrupted commit was answered, and the
 * remaining work can continue. */
static bool recover(struct store *store, struct work *work) {
    struct err why;
    struct fault fault = fault_of(store);
    uint64_t doubt_ms = store->options.doubt_ms ? store->options.doubt_ms : STORE_DOUBT_MS;
    uint64_t until_ms = clock_mono_ms() + doubt_ms;
    log_error("store " STR_FMT ": %s: nothing is acknowledged until it is opened "
              "again and looked at; %s",
              STR_ARG(store->options.folder), fault.what, fault.look);
    while (!reopen(store, work)) {
        uint64_t now_ms = clock_mono_ms();
        if (now_ms < until_ms && wait_for_reopening(store, until_ms - now_ms)) continue;
        err_set(&why, ERR_OUTCOME_UNKNOWN,
                "store " STR_FMT ": %s, and whether this was kept cannot be seen "
                "now; repeat it with the same key",
                STR_ARG(store->options.folder), fault.what);
        answer_doubted(work, &why);
        return false;
    }
    err_set(&why, ERR_UNAVAILABLE, "store " STR_FMT ": %s and nothing of this was kept; %s",
            STR_ARG(store->options.folder), fault.what, fault.look);
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

/* --- deferred work ------------------------------------------------------------------------ */

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
                project_pending_cost(&store->core.project) >= BACKLOG_COST ||
                project_pending_bytes(&store->core.project) >= BACKLOG_BYTES ||
                !project_usage_is_read(&store->core.project);
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

/* --- the thread --------------------------------------------------------------------------- */

void serve_requests(struct store *store) {
    struct work work;
    work_init(&work, NO_SLEEP);
    /* What others write is not in `known`, so it is never complete. */
    bool learned = core_is_shared(&store->core);
    while (queue_take(store, &work)) {
        bool idle = !work.writes && !work.loads && !work.tasks;
        bool open = is_open(store, &work);
        if (open) run_again(&work);
        if (open) do_work(store, &work);
        while (open && core_stopped(&store->core)) {
            open = recover(store, &work);
            if (open) run_again(&work);
            if (open) do_work(store, &work);
        }
        if (!open) {
            refuse_all(&work, &work.stopped);
            long_reader_refuse(store->reader, &work.stopped);
        }
        work.pause_ms = open ? tidy(store, &work, idle, &learned) : TROUBLE_MS;
        if (open && core_stopped(&store->core)) work.pause_ms = NO_SLEEP;
    }
    reply_tasks_failed(work.again, &work.stopped);
    struct err e;
    while (!core_stopped(&store->core) && core_pending(&store->core) &&
           core_project(&store->core, &e))
        continue;
    if (core_is_shared(&store->core) && !core_stopped(&store->core) &&
        !store->core.replica.lost && !core_replica_leave(&store->core, &e))
        log_warning("what this replica held is free when its lease is over: %s", e.text);
}

void serve_refuse(struct store *store, const struct err *why) {
    struct work work;
    work_init(&work, FOR_EVER);
    while (queue_take(store, &work)) refuse_all(&work, why);
    reply_tasks_failed(work.again, why);
}
