#include "store/takeover.h"

#include "base/log.h"
#include "base/mem.h"
#include "store/changes.h"

#include <stdlib.h>

/* --- fencing ------------------------------------------------------------------------------ */

static bool fence_dead(struct database *db, void *ctx, struct err *e) {
    const struct takeover *takeover = ctx;
    return database_run_with(db,
                             "UPDATE replica SET fenced = 1 WHERE until < clock_timestamp()"
                             " AND fenced = 0 AND id <> ?1",
                             VALUES(sql_number(takeover->replica)), e);
}

/* --- what they held ----------------------------------------------------------------------- */

/* The fenced, which add nothing to their runs any more, and whose rows are all in the tables.
 * One that was fenced after the tables had been filled is left for the next round, which comes
 * for as long as its row is there (replica_watch.h). */
#define TAKEN                                                                                  \
    "(SELECT id FROM replica WHERE fenced = 1 AND NOT EXISTS (SELECT 1 FROM log WHERE"         \
    " log.replica = replica.id AND log.id >"                                                   \
    " (SELECT value FROM meta WHERE name = 'projected')))"

static const char move_runs[] =
    "INSERT INTO moved(run, holder) SELECT run.id, ?1 FROM run JOIN log ON log.id ="
    " run.last_log LEFT JOIN moved ON moved.run = run.id WHERE run.state = 0 AND"
    " coalesce(moved.holder, log.replica) IN " TAKEN
    " ON CONFLICT(run) DO UPDATE SET holder = excluded.holder RETURNING run,"
    " (SELECT last_seq FROM run WHERE id = moved.run)";

static const char move_leases[] = "UPDATE lease SET holder = -?1 WHERE abs(holder) IN " TAKEN;

static void add_run(struct takeover *takeover, uint64_t run, uint64_t last_seq) {
    size_t size = (takeover->run_count + 1) * sizeof(*takeover->runs);
    takeover->runs = mem_resize(takeover->runs, size);
    takeover->runs[takeover->run_count++] = (struct takeover_run){run, last_seq};
}

static bool take_runs(struct database *db, struct takeover *takeover, struct err *e) {
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

/* In one transaction, so that the one that frees the leases is the one that ends the runs. */
static bool take_all(struct database *db, void *ctx, struct err *e) {
    struct takeover *takeover = ctx;
    /* Answers for these runs are for this one to read, their places are free, and nobody sends to
     * their webhooks. */
    db->changed =
        change_join(db->changed, CHANGE_POSTED | CHANGE_FREED | CHANGE_SLOTS | CHANGE_WEBHOOKS);
    return take_runs(db, takeover, e) &&
           database_run_with(db, move_leases, VALUES(sql_number(takeover->replica)), e) &&
           database_run(db,
                        "DELETE FROM posted WHERE sender IN " TAKEN ";"
                        "DELETE FROM place WHERE holder IN " TAKEN ";"
                        "DELETE FROM slot WHERE holder IN " TAKEN ";"
                        "DELETE FROM once_reply WHERE bytes IS NULL AND holder IN " TAKEN ";"
                        "DELETE FROM kept WHERE space = 7 AND CASE WHEN space = 7 THEN"
                        " CAST(split_part(convert_from(key, 'UTF8'), '-', 1) AS BIGINT)"
                        " END IN " TAKEN ";"
                        "DELETE FROM cancelling USING run WHERE run.id = cancelling.run AND"
                        " run.state <> 0;"
                        "UPDATE posted SET taken = 0 WHERE taken IN " TAKEN ";"
                        "DELETE FROM replica WHERE id > 0 AND id IN " TAKEN ";"
                        "DELETE FROM moved USING run WHERE run.id = moved.run AND"
                        " run.state <> 0",
                        e);
}

/* --- one after the other ------------------------------------------------------------------ */

static void on_taken(struct store_task *task, const struct err *failed, void *ctx) {
    struct takeover *takeover = ctx;
    (void)task;
    takeover->doubted = failed && failed->code == ERR_OUTCOME_UNKNOWN;
    takeover->on_done(takeover, failed, takeover->ctx);
}

static void on_fenced(struct store_task *task, const struct err *failed, void *ctx) {
    struct takeover *takeover = ctx;
    if (failed) {
        takeover->on_done(takeover, failed, takeover->ctx);
        return;
    }
    *task = (struct store_task){.needs_tables = true,
                                .fn = take_all,
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
    db->changed = change_join(db->changed, CHANGE_FREED);
    return database_run_with(db, "DELETE FROM lease WHERE holder = -?1",
                             VALUES(sql_number(freeing->replica)), e);
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
