/* database: one connection to the SQLite file or to a PostgreSQL server, with its errors as ours.
 *
 * Statements are prepared once and kept. Every error names the file and the fix.
 *
 * Memory   owns the connection and a copy of the path. A statement belongs to the caller that
 *          prepared it, who finalises it before database_close().
 * Threads  one connection belongs to one thread.
 */
#ifndef WEIR_STORE_DATABASE_H
#define WEIR_STORE_DATABASE_H

#include "base/err.h"
#include "store/postgres_statement.h"

#include <sqlite3.h>

struct audit;
struct prepared;

/* A value for a parameter of SQL. */
struct sql_value {
    enum { SQL_NUMBER, SQL_BYTES, SQL_TEXT } kind;
    int64_t number;
    struct str bytes; /* borrowed */
};

struct sql_values {
    const struct sql_value *at;
    size_t count;
};

/* The values of the parameters 1, 2 and so on: VALUES(sql_number(id), sql_bytes(name)). They
 * live as long as the block that this stands in. */
#define VALUES(...)                                                                            \
    ((struct sql_values){(const struct sql_value[]){__VA_ARGS__},                              \
                         ARRAY_LEN(((const struct sql_value[]){__VA_ARGS__}))})

static inline struct sql_value sql_number(int64_t number) {
    return (struct sql_value){.kind = SQL_NUMBER, .number = number};
}

/* Bytes as they are, NUL and invalid UTF-8 included. */
static inline struct sql_value sql_bytes(struct str bytes) {
    return (struct sql_value){.kind = SQL_BYTES, .bytes = bytes};
}

/* Text of ours, such as a query for an index. */
static inline struct sql_value sql_text(struct str text) {
    return (struct sql_value){.kind = SQL_TEXT, .bytes = text};
}

struct map;

struct database {
    sqlite3 *handle; /* of PostgreSQL's store: empty, in memory, for cutting texts into words */
    char *path;
    struct postgres_session *postgres; /* NULL: SQLite */
    struct map *texts;                 /* its statements, by the text they come from */
    int64_t changes;                   /* of its latest statement */
    int64_t replica;  /* who writes to PostgreSQL: core_replica.h; 0: the only process */
    uint64_t changed; /* by tasks of the open transaction, for other replicas: enum change */
    /* Called at each named step that reaches the disk; may be NULL. Tests kill the process
     * there. */
    void (*at_step)(const char *step, void *ctx);
    void *ctx;
    /* What was written before a failed sync may read well and yet never reach the disk. So from
     * then on nothing may be trusted, synced again or folded: only closed. The same holds after
     * a write that failed for any reason but a full disk: it may or may not be there. */
    bool sync_failed;
    /* The audit log that goes with it: tasks add records to it (audit_note). NULL: none. */
    struct audit *audit;
};

/* Call before anything else of SQLite. Any thread, any number of times. */
void database_configure(void);

/* Open `path`, creating an empty file if there is none. Nothing is written yet, and until
 * database_trust() closing leaves the write-ahead log alone. Close it also after a failure. */
MUST_CHECK bool database_open(struct database *db, const char *path, struct err *e);

/* The same to read a file that exists, and that another process may be writing. Each statement
 * sees one moment of it, and must end soon: a write-ahead log cannot be shortened before its
 * readers have left it. */
MUST_CHECK bool database_open_reader(struct database *db, const char *path, struct err *e);

/* Open a database of PostgreSQL. db->path becomes its name. */
MUST_CHECK bool database_open_postgres(struct database *db,
                                       const struct postgres_session_options *options,
                                       struct err *e);

static inline bool database_is_postgres(const struct database *db) {
    return db->postgres != NULL;
}

/* Where the two need different SQL. */
static inline const char *database_sql(const struct database *db, const char *sqlite,
                                       const char *postgres) {
    return db->postgres ? postgres : sqlite;
}

void database_close(struct database *db);

/* The file was checked: from now on closing may fold the write-ahead log into it. */
void database_trust(struct database *db);

/* Whether statements wait, for two seconds at most, for another program that holds the file; they do
 * from the start on. */
void database_wait(struct database *db, bool waits);

/* Run SQL that returns no rows. */
MUST_CHECK bool database_run(struct database *db, const char *sql, struct err *e);

/* The same with values for its parameters. */
MUST_CHECK bool database_run_with(struct database *db, const char *sql,
                                  struct sql_values values, struct err *e);

/* Run SQL that returns one number, or no row (*ret is unchanged). */
MUST_CHECK bool database_number(struct database *db, const char *sql, int64_t *ret,
                                struct err *e);

MUST_CHECK bool database_prepare(struct database *db, const char *sql, struct prepared **ret,
                                 struct err *e);

/* Like database_number(), with values. */
MUST_CHECK bool database_number_with(struct database *db, const char *sql,
                                     struct sql_values values, int64_t *ret, struct err *e);

/* *ret: SQL finds a row. */
MUST_CHECK bool database_has(struct database *db, const char *sql, struct sql_values values,
                             bool *ret, struct err *e);

/* The rows of SQL that is run once:
 *
 *     struct database_rows rows = database_ask(db, sql, VALUES(sql_number(id)), e);
 *     while (database_next(&rows, e)) rows.ok = take(rows.row, e);
 *     return database_end(&rows);
 *
 * The values are borrowed until the end. One that failed, or whose `ok` was set to false, has no
 * next row. The end may come before the last row. */
struct database_rows {
    struct database *db;
    struct prepared *row; /* the current one; NULL: the statement could not be prepared */
    bool ok;
};
struct database_rows database_ask(struct database *db, const char *sql,
                                  struct sql_values values, struct err *e);
bool database_next(struct database_rows *rows, struct err *e);
MUST_CHECK bool database_end(struct database_rows *rows);

/* Step to the next row; *ret_row is false after the last one. Reset the statement
 * afterwards. */
MUST_CHECK bool database_row(struct database *db, struct prepared *statement, bool *ret_row,
                             struct err *e);

/* Run a statement that returns no rows, and reset it. */
MUST_CHECK bool database_do(struct database *db, struct prepared *statement, struct err *e);

/* End a transaction that failed; harmless without one. */
void database_rollback(struct database *db);

/* Fill `e` from SQLite's latest error, and remember a failed sync. Returns false. */
bool database_fail(struct database *db, struct err *e);

static inline void database_reached(struct database *db, const char *step) {
    if (db->at_step) db->at_step(step, db->ctx);
}

/* --- statements ------------------------------------------------------------------------------ */

/* A statement that was prepared, its values, and the row it is at. */
struct prepared {
    sqlite3_stmt *sqlite; /* NULL: PostgreSQL's */
    struct postgres_statement *postgres;
};

/* Bind bytes as they are, NUL and invalid UTF-8 included. Borrowed until the statement is
 * reset. Places count from 1. */
static inline void database_bind(struct prepared *statement, int place, struct str bytes) {
    const char *at = bytes.len ? bytes.at : "";
    if (statement->sqlite)
        sqlite3_bind_blob64(statement->sqlite, place, at, bytes.len, SQLITE_STATIC);
    else
        postgres_statement_bind(statement->postgres, place, postgres_bytes(bytes));
}

/* The same with a copy, for bytes that change before the statement is reset. */
static inline void database_bind_copy(struct prepared *statement, int place, struct str bytes) {
    const char *at = bytes.len ? bytes.at : "";
    if (statement->sqlite)
        sqlite3_bind_blob64(statement->sqlite, place, at, bytes.len, SQLITE_TRANSIENT);
    else
        postgres_statement_bind_copy(statement->postgres, place, bytes);
}

static inline void database_bind_number(struct prepared *statement, int place, int64_t number) {
    if (statement->sqlite)
        sqlite3_bind_int64(statement->sqlite, place, number);
    else
        postgres_statement_bind(statement->postgres, place, postgres_int(number));
}

/* Text of ours, such as a query for an index. */
static inline void database_bind_text(struct prepared *statement, int place, struct str text) {
    if (statement->sqlite)
        sqlite3_bind_text(statement->sqlite, place, text.len ? text.at : "", (int)text.len,
                          SQLITE_STATIC);
    else
        postgres_statement_bind(statement->postgres, place, postgres_text(text));
}

/* All parameters, from the first. */
void database_bind_values(struct prepared *statement, struct sql_values values);

static inline void database_bind_null(struct prepared *statement, int place) {
    if (statement->sqlite)
        sqlite3_bind_null(statement->sqlite, place);
    else
        postgres_statement_bind(statement->postgres, place, postgres_null());
}

/* Read a column of the row, counted from 0. Bytes are valid until the next step or reset. */
static inline struct str database_bytes(struct prepared *statement, int column) {
    if (!statement->sqlite) return postgres_statement_bytes(statement->postgres, column);
    const void *at = sqlite3_column_blob(statement->sqlite, column);
    size_t len = (size_t)sqlite3_column_bytes(statement->sqlite, column);
    return at ? str_of(at, len) : STR_EMPTY;
}

static inline int64_t database_number_of(struct prepared *statement, int column) {
    return statement->sqlite ? sqlite3_column_int64(statement->sqlite, column)
                             : postgres_statement_number(statement->postgres, column);
}

static inline double database_real_of(struct prepared *statement, int column) {
    return statement->sqlite ? sqlite3_column_double(statement->sqlite, column)
                             : postgres_statement_real(statement->postgres, column);
}

static inline bool database_is_null(struct prepared *statement, int column) {
    return statement->sqlite ? sqlite3_column_type(statement->sqlite, column) == SQLITE_NULL
                             : postgres_statement_is_null(statement->postgres, column);
}

static inline void database_reset(struct prepared *statement) {
    if (statement->sqlite)
        sqlite3_reset(statement->sqlite);
    else
        postgres_statement_reset(statement->postgres);
}

/* Accepts NULL. */
void database_finalize(struct prepared *statement);

/* How many rows the latest statement changed. */
int64_t database_changes(struct database *db);

/* The id that the latest insert was given. */
MUST_CHECK bool database_new_id(struct database *db, int64_t *ret, struct err *e);

/* Whether a transaction is open. */
bool database_in_transaction(struct database *db);

#endif
