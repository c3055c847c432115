#include "store/takeover.h"

#include "base/log.h"
#include "base/mem.h"

#include <stdlib.h>

/* --- fencing ------------------------------------------------------------------------------ */

static bool fence_dead(struct database *db, void *ctx, struct err *e) {
    const struct takeover *takeover = ctx;
    return database_run_with(db,
                             "UPDATE replica SET fenced = 1 WHERE until < clock_timestamp()"
                             " AND fenced = 0 AND id <> ?1",
                             takeover->replica, e) &&
           database_run_with(db,
                             "UPDATE lease SET holder = -?1 WHERE abs(holder) IN"
                             " (SELECT id FROM replica WHERE fenced = 1)",
                             takeover->replica, e);
}

/* --- their runs --------------------------------------------------------------------------- */

/* Of all that are fenced: none of them can add to its runs any more, and the tables have what
 * they wrote. */
static const char move_runs[] =
    "INSERT INTO moved(run, holder) SELECT run.id, ?1 FROM run JOIN log ON log.id ="
    " run.last_log LEFT JOIN moved ON moved.run = run.id WHERE run.state = 0 AND"
    " coalesce(moved.holder, log.replica) IN (SELECT id FROM replica WHERE fenced = 1)"
    " ON CONFLICT(run) DO UPDATE SET holder = excluded.holder RETURNING run,"
    " (SELECT last_seq FROM run WHERE id = moved.run)";

static void add_run(struct takeover *takeover, uint64_t run, uint64_t last_seq) {
    size_t size = (takeover->run_count + 1) * sizeof(*takeover->runs);
    takeover->runs = mem_resize(takeover->runs, size);
    takeover->runs[takeover->run_count++] = (struct takeover_run){run, last_seq};
}

static bool move(struct database *db, struct takeover *takeover, struct err *e) {
    struct prepared *statement = NULL;
    bool row, ok = database_prepare(db, move_runs, &statement, e);
    takeover->run_count = 0;
    if (ok) database_bind_number(statement, 1, takeover->replica);
    while (ok && (ok = database_row(db, statement, &row, e)) && row)
        add_run(takeover, (uint64_t)database_number_of(statement, 0),
                (uint64_t)database_number_of(statement, 1));
    database_finalize(statement);
    return ok;
}

static bool take_runs(struct database *db, void *ctx, struct err *e) {
    return move(db, ctx, e) &&
           database_run(db,
                        "DELETE FROM replica WHERE fenced = 1 AND id > 0;"
                        "DELETE FROM moved USING run WHERE run.id = moved.run AND"
                        " run.state <> 0",
                        e);
}

/* --- one after the other ------------------------------------------------------------------ */

static void on_taken(struct store_task *task, const struct err *failed, void *ctx) {
    struct takeover *takeover = ctx;
    (void)task;
    takeover->on_done(takeover, failed, takeover->ctx);
}

static void on_fenced(struct store_task *task, const struct err *failed, void *ctx) {
    struct takeover *takeover = ctx;
    if (failed) {
        takeover->on_done(takeover, failed, takeover->ctx);
        return;
    }
    *task = (struct store_task){.needs_tables = true,
                                .fn = take_runs,
                                .home = task->home,
                                .on_done = on_taken,
                                .ctx = takeover};
    store_run(takeover->store, task);
}

void takeover_start(struct store *store, struct loop *home, struct takeover *takeover) {
    takeover->store = store;
    takeover->replica = (int64_t)store_epoch(store);
    takeover->task = (struct store_task){
        .light = true, .fn = fence_dead, .home = home, .on_done = on_fenced, .ctx = takeover};
    store_run(store, &takeover->task);
}

void takeover_done(struct takeover *takeover) {
    free(takeover->runs);
    takeover->runs = NULL;
    takeover->run_count = 0;
}

/* --- the end ------------------------------------------------------------------------------ */

struct freeing {
    struct store_task task;
    int64_t replica;
};

static bool free_leases(struct database *db, void *ctx, struct err *e) {
    const struct freeing *freeing = ctx;
    db->gave_back = true;
    return database_run_with(db, "DELETE FROM lease WHERE holder = -?1", freeing->replica, e);
}

static void on_freed(struct store_task *task, const struct err *failed, void *ctx) {
    (void)task;
    if (failed) log_warning("leases of a dead replica stay: %s", failed->text);
    free(ctx);
}

void takeover_free_leases(struct store *store, struct loop *home) {
    struct freeing *freeing = MEM_NEW(struct freeing);
    freeing->replica = (int64_t)store_epoch(store);
    freeing->task = (struct store_task){
        .light = true, .fn = free_leases, .home = home, .on_done = on_freed, .ctx = freeing};
    store_run(store, &freeing->task);
}
