/* database: one connection to the SQLite file, and SQLite's failures in our words.
 *
 * Statements are prepared once and kept; every failure names the file and the fix.
 *
 * Memory   owns the connection and a copy of the path. Statements belong to who prepared
 *          them and are finalised before database_close().
 * Threads  one connection belongs to one thread.
 */
#ifndef WEIR_STORE_DATABASE_H
#define WEIR_STORE_DATABASE_H

#include "base/err.h"

#include <sqlite3.h>

struct database {
    sqlite3 *handle;
    char *path;
    /* Told of each named step that reaches the disk; may be NULL. Tests die there. */
    void (*at_step)(const char *step, void *ctx);
    void *ctx;
    /* What was written before a sync that failed may read well and never reach the disk. So
     * from then on nothing of it may be believed, synced again or folded: only closed. The same
     * goes for a write that failed for another reason than room: it may be there, or not. */
    bool sync_failed;
};

/* Before anything else of SQLite is called. Any thread, as often as it likes. */
void database_configure(void);

/* Open `path`, creating an empty file when there is none. Nothing is written yet, and closing
 * leaves the write-ahead log alone until database_trust(). Close it also after a failure. */
MUST_CHECK bool database_open(struct database *db, const char *path, struct err *e);
void database_close(struct database *db);

/* The file was found sound: from now on closing may fold the write-ahead log into it. */
void database_trust(struct database *db);

/* Run SQL that gives no rows. */
MUST_CHECK bool database_run(struct database *db, const char *sql, struct err *e);

/* Run SQL that gives one number, or nothing (*ret stays). */
MUST_CHECK bool database_number(struct database *db, const char *sql, int64_t *ret,
                                struct err *e);

MUST_CHECK bool database_prepare(struct database *db, const char *sql, sqlite3_stmt **ret,
                                 struct err *e);

/* Step to the next row: *ret_row is false behind the last one. Reset it afterwards. */
MUST_CHECK bool database_row(struct database *db, sqlite3_stmt *statement, bool *ret_row,
                             struct err *e);

/* Run a statement that gives no rows, and reset it. */
MUST_CHECK bool database_do(struct database *db, sqlite3_stmt *statement, struct err *e);

/* End a transaction that failed; harmless without one. */
void database_rollback(struct database *db);

/* Say what SQLite's latest failure means, and remember a sync that failed. Returns false. */
bool database_fail(struct database *db, struct err *e);

static inline void database_reached(struct database *db, const char *step) {
    if (db->at_step) db->at_step(step, db->ctx);
}

/* Bytes as they are, NUL and invalid UTF-8 included; kept until the statement is reset. */
static inline void database_bind(sqlite3_stmt *statement, int place, struct str bytes) {
    const char *at = bytes.len ? bytes.at : "";
    sqlite3_bind_blob64(statement, place, at, bytes.len, SQLITE_STATIC);
}

/* A column's bytes; valid until the next step or reset. */
static inline struct str database_bytes(sqlite3_stmt *statement, int column) {
    const void *at = sqlite3_column_blob(statement, column);
    size_t len = (size_t)sqlite3_column_bytes(statement, column);
    return at ? str_of(at, len) : STR_EMPTY;
}

#endif
