#include "store/core.h"

#include "base/clock.h"
#include "base/log.h"
#include "store/bank_inner.h"
#include "store/check.h"
#include "store/core_postgres.h"
#include "store/core_replica.h"
#include "store/look.h"
#include "store/schema.h"
#include "store/store_folder.h"

#include <assert.h>
#include <limits.h>
#include <stdio.h>

#define PROJECT_ROWS 512 /* a batch takes some milliseconds, during which no commit begins */
#define LEARN_SESSIONS 1000
#define GROUP_TASKS 64 /* tasks per transaction */
#define PURGE_AGAIN_MS 1000
#define PATH_BYTES (PATH_MAX + 64)

/* --- opening ------------------------------------------------------------------------------ */

static const char *const synchronous[] = {
    [STORE_FULL] = "PRAGMA synchronous = FULL",
    [STORE_NORMAL] = "PRAGMA synchronous = NORMAL",
    [STORE_OFF] = "PRAGMA synchronous = OFF",
};

static int saw_commit(void *ctx, sqlite3 *handle, const char *name, int wal_pages) {
    (void)handle, (void)name;
    struct core *core = ctx;
    core->wal_pages = wal_pages;
    return SQLITE_OK;
}

/* Two megabytes of cache. Dirty pages stay in memory until the commit, so a full disk fails the
 * commit and not a statement that only reads; and log_file.h rests on it, which takes what is
 * written to the log for commits alone. A log that grew longer than 32 MiB beside a reader of
 * another process is cut to that when it begins again. */
static bool core_settle(struct core *core, struct err *e) {
    bool ok = database_run(
        &core->db,
        "PRAGMA wal_autocheckpoint = 0; PRAGMA journal_size_limit = 33554432;"
        "PRAGMA cache_size = -2048;"
        "PRAGMA cache_spill = OFF; PRAGMA mmap_size = 0; PRAGMA temp_store = MEMORY;"
        "PRAGMA secure_delete = ON; PRAGMA trusted_schema = OFF; PRAGMA cell_size_check = ON",
        e);
    /* Set the hook last, because wal_autocheckpoint would replace it. */
    sqlite3_wal_hook(core->db.handle, saw_commit, core);
    int64_t spills = -1;
    ok = ok && database_number(&core->db, "PRAGMA cache_spill", &spills, e);
    assert(!ok || spills == 0);
    return ok && database_run(&core->db, synchronous[core->durability], e);
}

static bool prepare(struct core *core, struct err *e) {
    struct database *db = &core->db;
    return bank_open(db, e) && run_open(&core->runs, db, e) &&
           project_open(&core->project, db, &core->rows, &core->runs, core->known, e) &&
           answer_open(&core->answer, &core->project, e) && audit_open(&core->audit, db, e) &&
           database_prepare(db, "BEGIN IMMEDIATE", &core->begin, e) &&
           database_prepare(db, "COMMIT", &core->commit, e) &&
           database_prepare(db,
                            "SELECT id, workspace, user, name FROM session WHERE id > ?"
                            " ORDER BY id LIMIT ?",
                            &core->learn, e);
}

/* Examine the database without writing. */
static bool inspect(struct core *core, int64_t *ret_version, struct err *e) {
    struct database *db = &core->db;
    int64_t projected = 0;
    if (!schema_version(db, ret_version, e)) return false;
    if (*ret_version == 0)
        return err_set(e, ERR_DATA_LOSS,
                       "store %s: it holds no tables; restore it from a backup, or move its "
                       "folder away to begin anew",
                       db->path);
    return row_open(&core->rows, db, e) &&
           database_number(db, "SELECT value FROM meta WHERE name = 'epoch'", &core->epoch,
                           e) &&
           database_number(db,
                           "SELECT min(value) FROM meta WHERE name IN ('projected', 'usage')",
                           &projected, e) &&
           check_content(db, &core->rows, &core->mark, core->epoch, projected, e);
}

static bool raise_epoch(struct core *core, struct err *e) {
    database_reached(&core->db, "epoch");
    if (!database_run(&core->db,
                      "UPDATE meta SET value = CASE name WHEN 'epoch' THEN value + 1"
                      " ELSE max(value, " AUDIT_LENGTH ") END WHERE name IN ('epoch', 'audit')",
                      e))
        return false;
    core->epoch++;
    mark_note(&core->mark, core->rows.newest, core->epoch);
    database_reached(&core->db, "epoch noted");
    return true;
}

static bool open_mark(struct core *core, const char *folder, struct err *e) {
    return mark_open(&core->mark, folder, core->durability == STORE_FULL, e);
}

/* Does not change any byte of the data. */
static bool open_database(struct core *core, const char *path, int64_t *ret_version,
                          struct err *e) {
    return (core->durability == STORE_OFF || store_folder_resync_log(path, e)) &&
           database_open(&core->db, path, e) && core_settle(core, e) &&
           inspect(core, ret_version, e);
}

static bool begin_checkpoints(struct core *core, struct err *e) {
    int64_t purging = 0;
    if (!database_number(&core->db, "SELECT value FROM meta WHERE name = 'purge'", &purging, e))
        return false;
    core->purging = purging != 0;
    core->opened_with = core->rows.newest;
    core->checkpoint = checkpoint_new(&core->db, core->reader);
    return true;
}

static bool could_not_sync(const struct core *core, struct err *e) {
    return err_set(e, ERR_UNAVAILABLE,
                   "store %s: it could not be synced; check the disk; the system's log says "
                   "more",
                   core->db.path);
}

static bool open_folder(struct core *core, const char *folder, struct err *e) {
    char path[PATH_BYTES];
    bool is_new;
    int64_t version;
    snprintf(path, sizeof(path), "%s/weir.db", folder);
    if (!store_folder_make(folder, e) || !store_folder_lock(folder, &core->lock, e))
        return false;
    if (!open_mark(core, folder, e)) return false;
    if (!check_file(path, &core->mark, &is_new, e)) return false;
    if (is_new && !store_folder_make_file(&core->db, folder, path, e)) return false;
    if (!open_database(core, path, &version, e)) return false;
    database_trust(&core->db);
    if (!schema_migrate(&core->db, version, e)) return false;
    if (!prepare(core, e) || !raise_epoch(core, e)) return false;
    if (!begin_checkpoints(core, e)) return false;
    store_folder_watch(&core->watch, path);
    checkpoint_begin(core->checkpoint, core->wal_pages);
    core->open = !core->db.sync_failed;
    return core->open || could_not_sync(core, e);
}

static bool become_ours(struct core *core, const struct store_options *options, struct err *e) {
    if (!core_is_shared(core)) return prepare(core, e) && raise_epoch(core, e);
    return core_replica_register(core, options, e) && prepare(core, e) &&
           core_replica_prepare(core, e);
}

/* The tables are there: `weir migrate` has made them. */
static bool open_server(struct core *core, const struct store_options *options, struct err *e) {
    core->replica.shared = options->replica.len > 0;
    if (!core_postgres_connect(core, options, e) || !row_open(&core->rows, &core->db, e) ||
        !become_ours(core, options, e))
        return false;
    core->opened_with = core->rows.newest;
    core->open = true;
    return true;
}

/* Whether a replica was fenced meanwhile is seen by its next transaction. */
static bool open_server_again(struct core *core, const struct store_options *options,
                              struct err *e) {
    if (!core_postgres_connect(core, options, e)) return false;
    if (core_is_shared(core))
        return core_replica_resume(core, e) && row_open(&core->rows, &core->db, e) &&
               prepare(core, e) && core_replica_prepare(core, e);
    return core_postgres_is_ours(core, e) && row_open(&core->rows, &core->db, e) &&
           prepare(core, e);
}

static bool copy_folder(const struct store_options *options, char folder[static PATH_MAX],
                        struct err *e) {
    if (options->folder.len == 0 || options->folder.len >= PATH_MAX - 64)
        return err_set(e, ERR_UNAVAILABLE, "store: the folder's name is empty or too long");
    snprintf(folder, PATH_MAX, STR_FMT, STR_ARG(options->folder));
    return true;
}

bool core_open(struct core *core, const struct store_options *options,
               struct session_filter *known, struct long_reader *reader, struct err *e) {
    *core = (struct core){
        .durability = options->durability,
        .db = {.at_step = options->at_step, .ctx = options->ctx},
        .mark = {.file = -1},
        .lock = STORE_FOLDER_UNLOCKED,
        .watch = STORE_FOLDER_UNWATCHED,
        .known = known,
        .reader = reader,
    };
    char folder[PATH_MAX];
    if (options->postgres.len) return open_server(core, options, e);
    return copy_folder(options, folder, e) && open_folder(core, folder, e);
}

static void close_files(struct core *core) {
    database_finalize(core->begin);
    database_finalize(core->commit);
    database_finalize(core->learn);
    core_replica_close(core);
    answer_close(&core->answer);
    audit_close(&core->audit);
    project_close(&core->project);
    run_close(&core->runs);
    row_close(&core->rows);
    checkpoint_free(core->checkpoint);
    database_close(&core->db);
    mark_close(&core->mark);
    store_folder_unwatch(&core->watch);
    core->begin = core->commit = core->learn = NULL;
    core->answer = (struct answer){0};
    core->project = (struct project){0};
    core->runs = (struct runs){0};
    core->rows = (struct rows){0};
    core->checkpoint = NULL;
    core->mark.file = -1;
    core->open = false;
}

void core_close(struct core *core) {
    close_files(core);
    store_folder_unlock(core->lock);
}

/* --- after a failed sync ------------------------------------------------------------------ */

void core_look(struct core *core) {
    if (core->open && core_postgres_is_lost(core)) core->db.sync_failed = true;
}

bool core_stopped(const struct core *core) {
    return !core->open || core->db.sync_failed || checkpoint_sync_failed(core->checkpoint);
}

/* Open the store again. The next transaction then finds an empty log, with nothing in doubt. */
static bool open_again(struct core *core, const char *folder, struct err *e) {
    char path[PATH_BYTES];
    bool is_new;
    int64_t version;
    snprintf(path, sizeof(path), "%s/weir.db", folder);
    if (!open_mark(core, folder, e) || !check_file(path, &core->mark, &is_new, e)) return false;
    if (is_new)
        return err_set(e, ERR_DATA_LOSS, "store %s: it is gone; restore it from a backup",
                       path);
    if (!open_database(core, path, &version, e) || !prepare(core, e)) return false;
    store_folder_watch(&core->watch, path);
    return begin_checkpoints(core, e) && checkpoint_cut(core->checkpoint, CHECKPOINT_WAIT, e);
}

bool core_reopen(struct core *core, const struct store_options *options, struct err *e) {
    char folder[PATH_MAX];
    core->db.sync_failed = true;
    close_files(core);
    core->learned = 0;
    core->wal_pages = 0;
    core->open = options->postgres.len
                     ? open_server_again(core, options, e)
                     : copy_folder(options, folder, e) && open_again(core, folder, e);
    if (!core->open) return false;
    core->opened_with = core->rows.newest;
    database_trust(&core->db);
    mark_note(&core->mark, core->rows.newest, core->epoch);
    database_reached(&core->db, "reopened");
    return true;
}

/* --- writing ------------------------------------------------------------------------------ */

static bool append(struct core *core, const struct store_write *write, struct err *e) {
    const struct look look = {&core->project, &core->audit, core->known};
    for (size_t i = 0; i < write->row_count; i++) {
        const struct store_row *written = &write->rows[i];
        struct row row = {.run = written->run, .bytes = buf_str(&written->bytes)};
        struct shorten_end end = SHORTEN_NOT;
        if (!row_place(&core->rows, row.bytes.len, &row.id, e)) return false;
        if (!look_at(&look, &row, &end, e)) return false;
        /* A reading of the tables that ran out of memory has rolled back everything. */
        if (!database_in_transaction(&core->db))
            return err_set(e, ERR_UNAVAILABLE,
                           "store %s: memory ran out; give the process more memory",
                           core->db.path);
        if (!row_put(&core->rows, row.run, row.bytes, &end, e)) return false;
    }
    return true;
}

/* Begin a transaction that writes. */
static bool core_open_transaction(struct core *core, struct err *e) {
    return core_is_shared(core) ? core_replica_begin(core, e)
                                : database_do(&core->db, core->begin, e);
}

/* What is written to a deleted file is lost when it is closed, so it is not acknowledged. Reading
 * goes on, as long as there is something to save. */
static bool core_is_there(const struct core *core, struct err *e) {
    return !store_folder_deleted(&core->watch) ||
           err_set(
               e, ERR_UNAVAILABLE,
               "store %s: the file was deleted while it is in use; stop weir and restore it "
               "from a backup",
               core->db.path);
}

static bool core_begin(struct core *core, struct err *e) {
    core->doubted = INT64_MAX; /* not committed yet, so it cannot be on disk */
    if (!core_is_there(core, e) || !core_open_transaction(core, e)) return false;
    project_watch(&core->project);
    row_start(&core->rows);
    audit_begin(&core->audit);
    return true;
}

/* When this returns, everything up to row `newest` is on disk. */
static bool core_finish(struct core *core, int64_t newest, struct err *e) {
    core->doubted = newest;
    if (core_is_shared(core) && !core_replica_count(core, newest > core->rows.newest, e)) {
        core->doubted = INT64_MAX;
        return false;
    }
    if (!database_do(&core->db, core->commit, e)) return false;
    database_reached(&core->db, "committed");
    core->rows.newest = newest;
    audit_kept(&core->audit);
    mark_note(&core->mark, newest, core->epoch);
    database_reached(&core->db, "noted");
    return true;
}

/* Returns false. */
static bool undo(struct core *core) {
    database_rollback(&core->db);
    project_forget(&core->project);
    audit_undone(&core->audit);
    return false;
}

bool core_commit(struct core *core, const struct store_write *first,
                 const struct store_write *end, struct err *e) {
    int64_t newest;
    database_reached(&core->db, "commit");
    if (!core_begin(core, e)) return false;
    for (const struct store_write *write = first; write != end; write = write->next) {
        if (!append(core, write, e)) return undo(core);
    }
    if (!row_finish(&core->rows, &newest, e) || !audit_finish(&core->audit, e))
        return undo(core);
    database_reached(&core->db, "rows appended");
    return core_finish(core, newest, e) || undo(core);
}

/* --- tasks -------------------------------------------------------------------------------- */

/* The mark counts rows of the log. An empty row stands for what the tasks wrote, so that its
 * loss would be noticed too. */
static bool stamp(struct core *core, int64_t *ret_newest, struct err *e) {
    struct store_row row = {.run = 0};
    const struct store_write write = {.rows = &row, .row_count = 1};
    return append(core, &write, e) && row_finish(&core->rows, ret_newest, e);
}

static bool run_together(struct core *core, struct store_task *first,
                         const struct store_task *end, struct err *e) {
    int64_t newest;
    bool purges = false, light = true;
    if (!core_begin(core, e)) return false;
    for (struct store_task *task = first; task != end; task = task->next) {
        if (!task->fn(&core->db, task->ctx, e)) return undo(core);
        purges = purges || task->purges;
        light = light && task->light;
    }
    if (purges) project_forget_sessions(&core->project);
    if (!(light ? row_finish(&core->rows, &newest, e) : stamp(core, &newest, e)) ||
        !audit_finish(&core->audit, e))
        return undo(core);
    if (purges && !database_run(&core->db,
                                "INSERT INTO meta VALUES('purge', 1)"
                                " ON CONFLICT(name) DO NOTHING",
                                e))
        return undo(core);
    database_reached(&core->db, "tasks done");
    if (!core_finish(core, newest, e)) return undo(core);
    core->purging = core->purging || purges;
    return true;
}

/* Whether these tasks were committed is known only when the store is open again. Returns the
 * next task. */
static struct store_task *doubt(struct store_task *first, struct store_task *end) {
    for (struct store_task *task = first; task != end; task = task->next)
        task->failed.code = ERR_OUTCOME_UNKNOWN;
    return end;
}

/* A failing task must not fail its neighbours: after a failure each gets its own transaction.
 * Returns the first task not begun. */
static struct store_task *run_writers(struct core *core, struct store_task *first,
                                      struct store_task *end) {
    struct err e;
    if (run_together(core, first, end, &e)) return end;
    if (core_stopped(core)) return doubt(first, end);
    if (first->next == end) {
        first->failed = e;
        return end;
    }
    for (struct store_task *task = first; task != end; task = task->next) {
        if (run_together(core, task, task->next, &e)) continue;
        if (core_stopped(core)) return doubt(task, task->next);
        task->failed = e;
    }
    return end;
}

/* --- purging ------------------------------------------------------------------------------ */

bool core_purge(struct core *core) {
    struct err e;
    if (!core->purging) return true;
    if (clock_mono_ms() < core->purge_ms) return false;
    core->purge_ms = clock_mono_ms() + PURGE_AGAIN_MS;
    if (!checkpoint_cut(core->checkpoint, CHECKPOINT_TRY, &e) ||
        !database_run(&core->db, "DELETE FROM meta WHERE name = 'purge'", &e)) {
        log_often(LOG_WARNING, "what was deleted still stands in the write-ahead log: %s",
                  e.text);
        return false;
    }
    core->purging = false;
    core->purge_ms = 0;
    database_reached(&core->db, "purged");
    return true;
}

/* --- projecting --------------------------------------------------------------------------- */

/* The tables can be rebuilt from the log, so their commits need not be synced. */
static void sync_commits(struct core *core, bool sync) {
    struct err e;
    if (core->durability != STORE_FULL || database_is_postgres(&core->db)) return;
    if (!database_run(&core->db, synchronous[sync ? STORE_FULL : STORE_NORMAL], &e))
        log_warning("%s", e.text);
}

static bool core_keep(struct core *core, struct err *e) {
    database_reached(&core->db, "tables filled");
    if (!database_do(&core->db, core->commit, e)) return false;
    project_keep(&core->project);
    audit_runs_leave(&core->audit.runs, core->project.done);
    database_reached(&core->db, "projected");
    return true;
}

static void core_drop(struct core *core) {
    database_rollback(&core->db);
    project_drop(&core->project);
}

/* What is due, in the open transaction. */
static bool project_due(struct core *core, struct err *e) {
    struct project *project = &core->project;
    bool rows = project_pending(project) > 0;
    if (rows && !project_batch(project, PROJECT_ROWS, e)) return false;
    bool settles = !rows || project_usage_is_due(project);
    return !settles || !project_usage_is_read(project) || project_usage_settle(project, e);
}

static bool read_usage(struct core *core, struct err *e) {
    while (!project_usage_is_read(&core->project)) {
        if (!project_usage_read(&core->project, PROJECT_ROWS, e)) return false;
    }
    return true;
}

/* In a shared store others may have projected them meanwhile. No sums of usage wait: the
 * replica that projects a row writes its sums too, so that each has one writer. Rows between
 * the two marks are those of a process that had the store alone. */
static bool project_shared(struct core *core, struct err *e) {
    struct project *project = &core->project;
    if (core_pending(core) == 0) return true;
    return read_usage(core, e) &&
           (project_pending(project) == 0 || project_batch(project, PROJECT_ROWS, e)) &&
           project_usage_settle(project, e);
}

static bool project_some(struct core *core, struct err *e) {
    bool shared = core_is_shared(core);
    return core_open_transaction(core, e) &&
           (shared ? project_shared(core, e) : project_due(core, e)) && core_keep(core, e);
}

bool core_project(struct core *core, struct err *e) {
    if (core_pending(core) == 0) return true;
    if (!core_is_shared(core) && !project_usage_read(&core->project, PROJECT_ROWS, e))
        return false;
    sync_commits(core, false);
    bool ok = project_some(core, e);
    if (!ok) core_drop(core);
    sync_commits(core, true);
    return ok;
}

static void answer_each(struct core *core, struct store_load *loads) {
    for (struct store_load *load = loads; load; load = load->next) {
        struct err e;
        if (!answer_load(&core->answer, load, &e)) load->failed = e;
    }
}

/* Open a transaction, and project the rest in it. */
static bool open_filled(struct core *core, bool settles, struct err *e) {
    if (!database_do(&core->db, core->begin, e)) return false;
    while (core->project.reached < core->rows.newest) {
        if (!project_batch(&core->project, PROJECT_ROWS, e)) return false;
    }
    return !settles || project_usage_settle(&core->project, e);
}

/* What was read in it counts, also if it cannot be committed (a full disk). */
static void close_filled(struct core *core) {
    struct err unkept;
    if (core_keep(core, &unkept)) return;
    log_debug("the tables lag behind: %s", unkept.text);
    core_drop(core);
}

/* Project the rest and answer in one transaction. */
static bool answer_within(struct core *core, struct store_load *loads, bool settles,
                          struct err *e) {
    if (!open_filled(core, settles, e)) return false;
    answer_each(core, loads);
    close_filled(core);
    return true;
}

static void fail_loads(struct store_load *loads, const struct err *why) {
    for (struct store_load *load = loads; load; load = load->next) load->failed = *why;
}

/* Project the rest, then answer without holding up the other writers. All reads of the
 * transaction see one moment. */
static void answer_shared(struct core *core, struct store_load *loads) {
    struct err e;
    bool ok = core_replica_look(core, &e);
    while (ok && core_pending(core)) ok = core_project(core, &e);
    ok = ok && database_run(&core->db, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", &e);
    if (ok) answer_each(core, loads);
    if (!ok) fail_loads(loads, &e);
    database_rollback(&core->db);
}

static bool asks_for_usage(const struct store_load *loads) {
    while (loads && loads->question != STORE_USAGE) loads = loads->next;
    return loads != NULL;
}

void core_answer(struct core *core, struct store_load *loads) {
    struct project *project = &core->project;
    struct err e;
    if (core_is_shared(core)) {
        answer_shared(core, loads);
        return;
    }
    bool ok = true, settles = asks_for_usage(loads);
    if (settles && !read_usage(core, &e)) {
        fail_loads(loads, &e);
        return;
    }
    while (ok && project_pending(project) > PROJECT_ROWS) ok = core_project(core, &e);
    if (settles ? core_pending(core) == 0 : project_pending(project) == 0) {
        answer_each(core, loads);
        return;
    }
    sync_commits(core, false);
    if (!answer_within(core, loads, settles, &e)) {
        core_drop(core);
        fail_loads(loads, &e);
    }
    sync_commits(core, true);
}

/* --- tasks, in their order ---------------------------------------------------------------- */

static bool may_join(const struct store_task *task) {
    return !task->reads_only && !task->needs_tables;
}

static bool fill_tables(struct core *core, struct err *e) {
    if (core_is_shared(core) && !core_replica_look(core, e)) return false;
    while (core_pending(core)) {
        if (!core_project(core, e)) return false;
    }
    return true;
}

static bool read_task(struct core *core, struct store_task *task, struct err *e) {
    return task->fn(&core->db, task->ctx, e);
}

/* As a load is answered: in the transaction that projects the rest, whether it can be committed
 * or not. */
static bool read_within(struct core *core, struct store_task *task, struct err *e) {
    bool ok = open_filled(core, false, e) && read_task(core, task, e);
    if (ok)
        close_filled(core);
    else
        core_drop(core);
    return ok;
}

static bool read_filled(struct core *core, struct store_task *task, struct err *e) {
    if (core_is_shared(core)) return fill_tables(core, e) && read_task(core, task, e);
    bool ok = true;
    while (ok && project_pending(&core->project) > PROJECT_ROWS) ok = core_project(core, e);
    if (project_pending(&core->project) == 0) return read_task(core, task, e);
    sync_commits(core, false);
    ok = read_within(core, task, e);
    sync_commits(core, true);
    return ok;
}

static bool run_reader(struct core *core, struct store_task *task, struct err *e) {
    return task->needs_tables ? read_filled(core, task, e) : read_task(core, task, e);
}

/* A task that needs the tables is first in its group; the tasks after it write no events. */
struct store_task *core_run(struct core *core, struct store_task *tasks) {
    while (tasks && !core_stopped(core)) {
        struct store_task *end = tasks->next;
        struct err e;
        if (tasks->reads_only) {
            if (!run_reader(core, tasks, &e)) tasks->failed = e;
        } else if (tasks->needs_tables && !fill_tables(core, &e)) {
            tasks->failed = e;
        } else {
            for (size_t n = 1; end && may_join(end) && n < GROUP_TASKS; n++) end = end->next;
            end = run_writers(core, tasks, end);
        }
        tasks = end;
    }
    return tasks;
}

/* --- pruning ------------------------------------------------------------------------------ */

bool core_prune(struct core *core, uint64_t kept_ms, bool *ret_end, struct err *e) {
    int64_t before_ms = clock_unix_ms() - (int64_t)kept_ms;
    bool end;
    sync_commits(core, false);
    bool shared = core_is_shared(core), ok = !shared || core_replica_begin(core, e);
    ok = ok && key_prune(project_keys(&core->project), before_ms, &end, e) &&
         (!shared || database_do(&core->db, core->commit, e));
    if (!ok && shared) database_rollback(&core->db);
    sync_commits(core, true);
    if (!ok) return false;
    if (end) database_reached(&core->db, "keys pruned");
    *ret_end = end;
    return true;
}

/* --- learning ----------------------------------------------------------------------------- */

bool core_learn(struct core *core, bool *ret_all, struct err *e) {
    struct prepared *learn = core->learn;
    size_t seen = 0;
    bool row, ok;
    database_bind_number(learn, 1, core->learned);
    database_bind_number(learn, 2, LEARN_SESSIONS);
    while ((ok = database_row(&core->db, learn, &row, e)) && row) {
        core->learned = database_number_of(learn, 0);
        session_filter_add(core->known, database_bytes(learn, 1), database_bytes(learn, 2),
                           database_bytes(learn, 3));
        seen++;
    }
    database_reset(learn);
    /* Sessions of rows that were pending at the start are added when those are projected. */
    *ret_all = ok && seen == 0 && core->project.done >= core->opened_with;
    return ok;
}
