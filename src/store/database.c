#include "store/database.h"

#include "base/map.h"
#include "base/mem.h"
#include "store/log_file.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#define BUSY_MS 2000 /* how long another program may hold the file */

/* The meaning of each SQLite failure for the caller, and the fix. */
static const struct {
    int sqlite;
    enum err_code code;
    const char *what, *fix;
} failures[] = {
    /* clang-format off */
    {SQLITE_FULL,     ERR_UNAVAILABLE, "the disk is full",
     "free some space, then writing continues"},
    {SQLITE_IOERR,    ERR_UNAVAILABLE, "reading or writing failed",
     "check the disk; the system's log says more"},
    {SQLITE_READONLY, ERR_UNAVAILABLE, "it cannot be written",
     "make the file and its folder writable for this user"},
    {SQLITE_PERM,     ERR_UNAVAILABLE, "access was denied",
     "make the file and its folder writable for this user"},
    {SQLITE_CANTOPEN, ERR_UNAVAILABLE, "it cannot be opened",
     "check that its folder exists and is writable for this user"},
    {SQLITE_BUSY,     ERR_UNAVAILABLE, "another program holds it",
     "end that program, or let it commit"},
    {SQLITE_LOCKED,   ERR_UNAVAILABLE, "another program holds it",
     "end that program, or let it commit"},
    {SQLITE_NOMEM,    ERR_UNAVAILABLE, "memory ran out",
     "give the process more memory"},
    {SQLITE_TOOBIG,   ERR_TOO_LARGE,   "one row is too large",
     "send less in one request"},
    {SQLITE_CORRUPT,  ERR_DATA_LOSS,   "it is damaged",
     "restore it from a backup, or move its folder away to begin anew"},
    {SQLITE_NOTADB,   ERR_DATA_LOSS,   "it is damaged or no database",
     "restore it from a backup, or move its folder away to begin anew"},
    /* clang-format on */
};

enum { FAILURE_FULL = 0 }; /* its index above */

/* SQLite reports a quota or a file size limit as a broken disk. The write-ahead log's file
 * handle knows the system's errno. */
static bool out_of_space(struct database *db) {
    sqlite3_file *wal = NULL;
    int why = 0;
    if (sqlite3_extended_errcode(db->handle) != SQLITE_IOERR_WRITE) return false;
    sqlite3_file_control(db->handle, "main", SQLITE_FCNTL_JOURNAL_POINTER, &wal);
    if (!wal || !wal->pMethods) return false;
    wal->pMethods->xFileControl(wal, SQLITE_FCNTL_LAST_ERRNO, &why);
    return why == ENOSPC || why == EDQUOT || why == EFBIG;
}

/* Whether the data may be on disk in spite of the failure: SQLite rolls it back, but a later
 * start could find it. A write that failed for lack of space was cut short and leaves no
 * doubt. */
static bool leaves_doubt(struct database *db) {
    switch (sqlite3_extended_errcode(db->handle)) {
    case SQLITE_IOERR_FSYNC:
    case SQLITE_IOERR_DIR_FSYNC: return true;
    case SQLITE_IOERR_WRITE: return !out_of_space(db);
    default: return false;
    }
}

/* After a broken connection the outcome of what was under way is not known: as after a failed
 * sync, it is seen once the database is open again. */
static bool fail_postgres(struct database *db, struct err *e) {
    if (postgres_session_broken(db->postgres)) db->sync_failed = true;
    /* A constraint or a table that is missing is a mistake of ours. */
    if (e->code == ERR_ALREADY_EXISTS || e->code == ERR_FAILED_PRECONDITION)
        e->code = ERR_INTERNAL;
    return false;
}

bool database_fail(struct database *db, struct err *e) {
    int sqlite = db->handle ? sqlite3_errcode(db->handle) & 0xFF : SQLITE_NOMEM;
    if (db->handle && leaves_doubt(db)) db->sync_failed = true;
    for (size_t i = 0; i < ARRAY_LEN(failures); i++) {
        if (failures[i].sqlite != sqlite) continue;
        size_t row = sqlite == SQLITE_IOERR && out_of_space(db) ? FAILURE_FULL : i;
        return err_set(e, failures[row].code, "store %s: %s; %s", db->path, failures[row].what,
                       failures[row].fix);
    }
    return err_set(e, ERR_INTERNAL, "store %s: %s", db->path, sqlite3_errmsg(db->handle));
}

/* Turn off SQLite's memory statistics: they take a lock for every allocation and are not
 * used. */
static void configure(void) {
    sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
}

static void leave_log_alone(struct database *db, bool alone) {
    sqlite3_db_config(db->handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, alone, NULL);
}

void database_configure(void) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, configure);
}

static bool open_with(struct database *db, const char *path, int flags, struct err *e) {
    database_configure();
    db->path = str_dup(str_from(path));
    flags |= SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_PRIVATECACHE | SQLITE_OPEN_NOFOLLOW;
    if (sqlite3_open_v2(path, &db->handle, flags, log_file_system()) != SQLITE_OK)
        return database_fail(db, e);
    leave_log_alone(db, true);
    database_wait(db, true);
    return true;
}

bool database_open(struct database *db, const char *path, struct err *e) {
    return open_with(db, path, SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, e);
}

bool database_open_reader(struct database *db, const char *path, struct err *e) {
    return open_with(db, path, SQLITE_OPEN_READONLY, e);
}

void database_wait(struct database *db, bool waits) {
    sqlite3_busy_timeout(db->handle, waits ? BUSY_MS : 0);
}

void database_trust(struct database *db) {
    leave_log_alone(db, false);
}

bool database_open_postgres(struct database *db, const struct postgres_session_options *options,
                            struct err *e) {
    if (!open_with(db, ":memory:", SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE, e) ||
        !postgres_session_open(options, &db->postgres, e))
        return false;
    free(db->path);
    db->path = str_dup(postgres_session_name(db->postgres));
    db->texts = map_new();
    return true;
}

static void close_postgres(struct database *db) {
    size_t cursor = 0;
    struct str text;
    void *sql;
    while (db->texts && map_next(db->texts, &cursor, &text, &sql)) free(sql);
    if (db->texts) map_free(db->texts);
    postgres_session_close(db->postgres);
    db->texts = NULL;
    db->postgres = NULL;
}

void database_close(struct database *db) {
    if (db->handle && db->sync_failed) leave_log_alone(db, true);
    close_postgres(db);
    sqlite3_close_v2(db->handle);
    free(db->path);
    db->handle = NULL;
    db->path = NULL;
    db->sync_failed = false;
    db->changes = 0;
}

/* --- statements ------------------------------------------------------------------------------ */

bool database_run(struct database *db, const char *sql, struct err *e) {
    if (db->postgres) return postgres_session_run(db->postgres, sql, e) || fail_postgres(db, e);
    if (sqlite3_exec(db->handle, sql, NULL, NULL, NULL) == SQLITE_OK) return true;
    return database_fail(db, e);
}

/* The text in PostgreSQL's form; the same text always at the same address. */
static const char *translated(struct database *db, const char *sql) {
    struct str text = str_from(sql);
    char *known = map_find(db->texts, text);
    if (known) return known;
    struct buf out;
    buf_init(&out, 64 * KIB);
    postgres_statement_translate(text, &out);
    known = str_dup(buf_str(&out));
    buf_done(&out);
    map_put(db->texts, text, known);
    return known;
}

bool database_prepare(struct database *db, const char *sql, struct prepared **ret,
                      struct err *e) {
    struct prepared prepared = {0};
    if (db->postgres) {
        prepared.postgres = postgres_statement_new(db->postgres, translated(db, sql));
    } else if (sqlite3_prepare_v3(db->handle, sql, -1, SQLITE_PREPARE_PERSISTENT,
                                  &prepared.sqlite, NULL) != SQLITE_OK) {
        database_fail(db, e);
        return false;
    }
    *ret = MEM_NEW(struct prepared);
    **ret = prepared;
    return true;
}

void database_finalize(struct prepared *statement) {
    if (!statement) return;
    sqlite3_finalize(statement->sqlite);
    postgres_statement_free(statement->postgres);
    free(statement);
}

int64_t database_changes(struct database *db) {
    return db->postgres ? db->changes : sqlite3_changes64(db->handle);
}

bool database_new_id(struct database *db, int64_t *ret, struct err *e) {
    if (db->postgres) return database_number(db, "SELECT lastval()", ret, e);
    *ret = sqlite3_last_insert_rowid(db->handle);
    return true;
}

bool database_in_transaction(struct database *db) {
    return db->postgres ? postgres_session_in_transaction(db->postgres)
                        : !sqlite3_get_autocommit(db->handle);
}

static bool row_of_postgres(struct database *db, struct prepared *statement, bool *ret_row,
                            struct err *e) {
    if (!postgres_statement_row(statement->postgres, ret_row, e)) return fail_postgres(db, e);
    db->changes = postgres_statement_affected(statement->postgres);
    return true;
}

bool database_row(struct database *db, struct prepared *statement, bool *ret_row,
                  struct err *e) {
    if (db->postgres) return row_of_postgres(db, statement, ret_row, e);
    int result = sqlite3_step(statement->sqlite);
    if (result != SQLITE_ROW && result != SQLITE_DONE) return database_fail(db, e);
    *ret_row = result == SQLITE_ROW;
    return true;
}

bool database_do(struct database *db, struct prepared *statement, struct err *e) {
    bool row, ok = database_row(db, statement, &row, e);
    database_reset(statement);
    return ok;
}

void database_bind_values(struct prepared *statement, struct sql_values values) {
    for (size_t i = 0; i < values.count; i++) {
        const struct sql_value *value = &values.at[i];
        int place = (int)i + 1;
        switch (value->kind) {
        case SQL_NUMBER: database_bind_number(statement, place, value->number); break;
        case SQL_BYTES: database_bind(statement, place, value->bytes); break;
        case SQL_TEXT: database_bind_text(statement, place, value->bytes); break;
        }
    }
}

struct database_rows database_ask(struct database *db, const char *sql,
                                  struct sql_values values, struct err *e) {
    struct database_rows rows = {.db = db};
    rows.ok = database_prepare(db, sql, &rows.row, e);
    if (rows.ok) database_bind_values(rows.row, values);
    return rows;
}

bool database_next(struct database_rows *rows, struct err *e) {
    bool row = false;
    rows->ok = rows->ok && database_row(rows->db, rows->row, &row, e);
    return rows->ok && row;
}

bool database_end(struct database_rows *rows) {
    database_finalize(rows->row);
    return rows->ok;
}

bool database_run_with(struct database *db, const char *sql, struct sql_values values,
                       struct err *e) {
    struct database_rows rows = database_ask(db, sql, values, e);
    database_next(&rows, e);
    return database_end(&rows);
}

bool database_number_with(struct database *db, const char *sql, struct sql_values values,
                          int64_t *ret, struct err *e) {
    struct database_rows rows = database_ask(db, sql, values, e);
    if (database_next(&rows, e)) *ret = database_number_of(rows.row, 0);
    return database_end(&rows);
}

bool database_number(struct database *db, const char *sql, int64_t *ret, struct err *e) {
    return database_number_with(db, sql, (struct sql_values){0}, ret, e);
}

bool database_has(struct database *db, const char *sql, struct sql_values values, bool *ret,
                  struct err *e) {
    struct database_rows rows = database_ask(db, sql, values, e);
    *ret = database_next(&rows, e);
    return database_end(&rows);
}

void database_rollback(struct database *db) {
    struct err e;
    if (db->postgres) {
        bool ended = postgres_session_broken(db->postgres) || !database_in_transaction(db) ||
                     database_run(db, "ROLLBACK", &e);
        (void)ended; /* if not, the connection is broken, and the server ends it */
        return;
    }
    if (db->handle && database_in_transaction(db))
        sqlite3_exec(db->handle, "ROLLBACK", NULL, NULL, NULL);
}
