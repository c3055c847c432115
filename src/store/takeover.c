#include "store/takeover.h"

#include "base/mem.h"
#include "store/changes.h"
#include "store/single.h"

#include <stdlib.h>

/* --- fencing ------------------------------------------------------------------------------ */

static bool fence_dead(struct database *db, void *ctx, struct err *e) {
    (void)ctx;
    return database_run_with(db,
                             "UPDATE replica SET fenced = 1 WHERE until < clock_timestamp()"
                             " AND fenced = 0 AND id <> ?1",
                             VALUES(sql_number(db->replica)), e);
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
    struct database_rows rows = database_ask(db, move_runs, VALUES(sql_number(db->replica)), e);
    takeover->run_count = 0;
    while (database_next(&rows, e))
        add_run(takeover, (uint64_t)database_number_of(rows.row, 0),
                (uint64_t)database_number_of(rows.row, 1));
    return database_end(&rows);
}

static bool find_newest(struct database *db, struct takeover *takeover, struct err *e) {
    int64_t newest;
    if (!database_number(db, "SELECT coalesce(max(id), 0) FROM run", &newest, e)) return false;
    takeover->newest_run = (uint64_t)newest;
    return true;
}

/* In one transaction, so that the one that frees the leases is the one that ends the runs. */
static bool take_all(struct database *db, void *ctx, struct err *e) {
    struct takeover *takeover = ctx;
    /* Answers for these runs are for this one to read, their places are free, and no one sends to
     * their webhooks. */
    db->changed =
        change_join(db->changed, CHANGE_POSTED | CHANGE_FREED | CHANGE_SLOTS | CHANGE_WEBHOOKS);
    return take_runs(db, takeover, e) && find_newest(db, takeover, e) &&
           database_run_with(db, move_leases, VALUES(sql_number(db->replica)), e) &&
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

static void on_taken(const struct err *failed, void *ctx) {
    struct takeover *takeover = ctx;
    takeover->doubted = failed && failed->code == ERR_OUTCOME_UNKNOWN;
    takeover->on_done(takeover, failed, takeover->ctx);
}

static void on_fenced(const struct err *failed, void *ctx) {
    struct takeover *takeover = ctx;
    if (failed) {
        takeover->on_done(takeover, failed, takeover->ctx);
        return;
    }
    struct loop *home = takeover->task.home;
    takeover->task =
        (struct store_task){.needs_tables = true, .fn = take_all, .on_done = on_taken};
    store_run(takeover->store, home, &takeover->task, takeover);
}

void takeover_start(struct store *store, struct loop *home, struct takeover *takeover) {
    takeover->store = store;
    takeover->task = (struct store_task){.light = true, .fn = fence_dead, .on_done = on_fenced};
    store_run(store, home, &takeover->task, takeover);
}

void takeover_done(struct takeover *takeover) {
    free(takeover->runs);
    takeover->runs = NULL;
    takeover->run_count = 0;
}

/* --- the end ------------------------------------------------------------------------------ */

void takeover_free_leases(struct store *store, struct loop *home) {
    store_run_single(
        store, home,
        &(struct store_single){.sql = "DELETE FROM lease WHERE holder = -?1",
                               .values = VALUES(sql_number((int64_t)store_epoch(store))),
                               .changed = CHANGE_FREED,
                               .light = true,
                               .lost = "leases of a dead replica stay",
                               .level = LOG_WARNING});
}
