#include "store/core_replica.h"

#include "base/log.h"
#include "store/changes.h"

#include <inttypes.h>
#include <stdio.h>

#define SLOTS 256 /* as record.c has room for in the ids of runs */

/* Each statement after the lock sees what the one before it committed, whatever the server's
 * default is. */
#define BEGIN_LOCKED "BEGIN ISOLATION LEVEL READ COMMITTED; SELECT " REPLICA_LOCK

/* --- becoming one ------------------------------------------------------------------------- */

static bool run_with(struct database *db, const char *sql, struct str text, int64_t a,
                     int64_t b, int64_t c, struct err *e) {
    return database_run_with(
        db, sql, VALUES(sql_bytes(text), sql_number(a), sql_number(b), sql_number(c)), e);
}

#define BACKEND                                                                                \
    "pg_backend_pid(), (SELECT backend_start FROM pg_stat_activity"                            \
    " WHERE pid = pg_backend_pid())"

/* The process that had the name before is gone, or should be. */
#define FENCE_NAMESAKE                                                                         \
    "UPDATE replica SET fenced = 1, until = '-infinity'"                                       \
    " WHERE name = $1 AND id > 0 AND id < $2 AND $3::BIGINT IS NOT NULL"                       \
    " AND $4::BIGINT IS NOT NULL"

/* From this replica's number on, so that a slot rests before it is used again. */
#define FREE_SLOT                                                                              \
    "SELECT slot FROM generate_series(0, 255) AS slot, meta WHERE meta.name = 'epoch'"         \
    " AND slot NOT IN (SELECT slot FROM replica WHERE id > 0)"                                 \
    " ORDER BY (slot - meta.value) & 255 LIMIT 1"

#define ADD                                                                                    \
    "INSERT INTO replica(id, name, slot, until, fenced, commits, pid, begun)"                  \
    " SELECT $2, $1, $3, clock_timestamp() + $4 * interval '1 millisecond', 0, 0, " BACKEND

static bool take_number(struct core *core, struct err *e) {
    return database_run(&core->db, "UPDATE meta SET value = value + 1 WHERE name = 'epoch'",
                        e) &&
           database_number(&core->db, "SELECT value FROM meta WHERE name = 'epoch'",
                           &core->epoch, e);
}

static bool take_slot(struct core *core, struct err *e) {
    int64_t slot = SLOTS;
    if (!database_number(&core->db, FREE_SLOT, &slot, e)) return false;
    core->replica.slot = (unsigned)slot;
    return slot < SLOTS ||
           err_set(e, ERR_RESOURCE_EXHAUSTED, "store %s: %d replicas have it already",
                   core->db.path, SLOTS);
}

static bool enter(struct core *core, const struct store_options *options, struct err *e) {
    struct database *db = &core->db;
    return take_number(core, e) &&
           run_with(db, FENCE_NAMESAKE, options->replica, core->epoch, 0, 0, e) &&
           take_slot(core, e) &&
           run_with(db, ADD, options->replica, core->epoch, core->replica.slot,
                    (int64_t)options->lease_ms, e) &&
           database_run(db, "COMMIT", e);
}

bool core_replica_register(struct core *core, const struct store_options *options,
                           struct err *e) {
    core->replica.lease_ms = options->lease_ms;
    if (!database_run(&core->db, BEGIN_LOCKED, e)) return false;
    if (!enter(core, options, e)) {
        database_rollback(&core->db);
        return false;
    }
    core->db.replica = core->epoch;
    return true;
}

/* A process that stands still within a transaction must not hold the others up for longer than
 * its lease. */
static bool bound_stalls(struct core *core, struct err *e) {
    char sql[96];
    snprintf(sql, sizeof(sql), "SET idle_in_transaction_session_timeout = %" PRIu64,
             core->replica.lease_ms);
    return database_run(&core->db, sql, e);
}

bool core_replica_prepare(struct core *core, struct err *e) {
    struct database *db = &core->db;
    return bound_stalls(core, e) &&
           database_prepare(db,
                            "SELECT coalesce((SELECT max(id) FROM log), 0),"
                            " (SELECT value FROM meta WHERE name = 'projected'),"
                            " (SELECT value FROM meta WHERE name = 'usage'),"
                            " (SELECT count(*) FROM replica WHERE id = ? AND fenced = 0)",
                            &core->replica.look, e) &&
           database_prepare(db,
                            "WITH counted AS (UPDATE replica SET commits = ? WHERE id = ?"
                            " RETURNING id) SELECT pg_notify(" REPLICA_CHANNEL
                            ", CAST(?3 AS TEXT)) FROM counted WHERE ?3 > 0",
                            &core->replica.count, e);
}

void core_replica_close(struct core *core) {
    database_finalize(core->replica.look);
    database_finalize(core->replica.count);
    core->replica.look = core->replica.count = NULL;
}

/* --- after a broken connection ------------------------------------------------------------ */

static bool see_kept(struct core *core, struct err *e) {
    struct database_rows rows =
        database_ask(&core->db, "SELECT commits FROM replica WHERE id = ?",
                     VALUES(sql_number(core->epoch)), e);
    bool there = database_next(&rows, e);
    if (there) core->replica.kept = database_number_of(rows.row, 0);
    if (rows.ok) core->replica.gone = !there;
    return database_end(&rows);
}

bool core_replica_resume(struct core *core, struct err *e) {
    char sql[256];
    snprintf(sql, sizeof(sql),
             "UPDATE replica SET (pid, begun) = (SELECT " BACKEND ") WHERE id = %" PRId64,
             core->epoch);
    core->db.replica = core->epoch;
    bool ok = database_run(&core->db, BEGIN_LOCKED, e) && see_kept(core, e) &&
              database_run(&core->db, sql, e) && database_run(&core->db, "COMMIT", e);
    if (!ok) database_rollback(&core->db);
    /* The next commit's number must not be one that was counted. */
    if (ok) core->replica.commits = core->replica.kept;
    return ok;
}

/* --- transactions ------------------------------------------------------------------------- */

/* How far the log and the tables are. */
struct marks {
    int64_t newest, projected, usage;
};

/* Others have written rows, or filled the tables from rows of ours: what is known of both is
 * old. */
static bool catch_up(struct core *core, const struct marks *now, struct err *e) {
    struct project *project = &core->project;
    if (now->newest == core->rows.newest && project_is_at(project, now->projected, now->usage))
        return true;
    core->rows.newest = now->newest;
    project_move(project, now->projected, now->usage);
    return audit_reread(&core->audit, e);
}

static struct marks read_marks(struct prepared *statement) {
    return (struct marks){.newest = database_number_of(statement, 0),
                          .projected = database_number_of(statement, 1),
                          .usage = database_number_of(statement, 2)};
}

static bool look(struct core *core, bool *ret_alive, struct err *e) {
    struct prepared *statement = core->replica.look;
    bool row = false;
    database_bind_number(statement, 1, core->epoch);
    bool ok = database_row(&core->db, statement, &row, e);
    struct marks now = {0};
    if (ok && row) now = read_marks(statement);
    *ret_alive = ok && row && database_number_of(statement, 3) == 1;
    database_reset(statement);
    return ok && catch_up(core, &now, e);
}

static bool fenced(struct core *core, struct err *e) {
    if (!core->replica.lost)
        log_error("store %s: this replica was away for longer than its lease, and another one "
                  "has taken its place; nothing is written any more",
                  core->db.path);
    core->replica.lost = true;
    return err_set(e, ERR_UNAVAILABLE,
                   "store %s: this replica has lost its lease; ask another one", core->db.path);
}

bool core_replica_begin(struct core *core, struct err *e) {
    bool alive = false;
    core->db.changed = 0;
    if (!database_run(&core->db, BEGIN_LOCKED, e)) return false;
    database_reached(&core->db, "locked");
    if (look(core, &alive, e) && (alive || fenced(core, e))) return true;
    database_rollback(&core->db);
    return false;
}

bool core_replica_count(struct core *core, bool wrote, struct err *e) {
    struct prepared *count = core->replica.count;
    uint64_t what = change_join(core->db.changed, wrote ? CHANGE_WRITTEN : 0);
    database_bind_number(count, 3, (int64_t)what);
    database_bind_number(count, 1, core->replica.commits + 1);
    database_bind_number(count, 2, core->epoch);
    if (!database_do(&core->db, count, e)) return false;
    core->doubted = ++core->replica.commits;
    return true;
}

bool core_replica_look(struct core *core, struct err *e) {
    bool alive;
    return look(core, &alive, e);
}

/* Its leases stay until another replica has taken its runs, some of which may wait for a person:
 * their sessions must not be free before. */
bool core_replica_leave(struct core *core, struct err *e) {
    char sql[512];
    snprintf(sql, sizeof(sql),
             BEGIN_LOCKED "; UPDATE replica SET fenced = 1, until = '-infinity' WHERE id ="
                          " %" PRId64 "; SELECT pg_notify(" REPLICA_CHANNEL ", '%d'); COMMIT",
             core->epoch, CHANGE_LEFT);
    bool ok = database_run(&core->db, sql, e);
    if (!ok) database_rollback(&core->db);
    return ok;
}
