/* postgres_statement: a statement of the store, run by PostgreSQL.
 *
 * The store's SQL is written for SQLite and is common to both, after these changes:
 *
 *     ?  ?2            $1  $2
 *     user             "user"                 a reserved word there
 *     x''              ''::bytea
 *     INDEXED BY name  nothing
 *     +column          column                 SQLite: do not use its index
 *     BEGIN IMMEDIATE  BEGIN
 *
 * A statement is sent when its first row is asked for; all its rows come at once.
 *
 * Private to database.
 *
 * Memory   one statement belongs to the caller that prepared it.
 * Threads  the store's.
 */
#ifndef WEIR_STORE_POSTGRES_STATEMENT_H
#define WEIR_STORE_POSTGRES_STATEMENT_H

#include "base/buf.h"
#include "postgres/session.h"

struct postgres_statement;

/* Append `sql` in PostgreSQL's form. */
void postgres_statement_translate(struct str sql, struct buf *ret);

/* `sql` is in PostgreSQL's form and stays as long as the session. */
struct postgres_statement *postgres_statement_new(struct postgres_session *session,
                                                  const char *sql);
void postgres_statement_free(struct postgres_statement *statement); /* accepts NULL */

/* Places count from 1. Bytes are borrowed until the statement is reset, or copied. */
void postgres_statement_bind(struct postgres_statement *statement, int place,
                             struct postgres_value value);
void postgres_statement_bind_copy(struct postgres_statement *statement, int place,
                                  struct str bytes);

/* The next row; *ret_row is false after the last one. */
MUST_CHECK bool postgres_statement_row(struct postgres_statement *statement, bool *ret_row,
                                       struct err *e);
void postgres_statement_reset(struct postgres_statement *statement);

/* Columns of the row, counted from 0. */
struct str postgres_statement_bytes(const struct postgres_statement *statement, int column);
int64_t postgres_statement_number(const struct postgres_statement *statement, int column);
double postgres_statement_real(const struct postgres_statement *statement, int column);
bool postgres_statement_is_null(const struct postgres_statement *statement, int column);

/* How many rows it changed; kept when it is reset. */
int64_t postgres_statement_affected(const struct postgres_statement *statement);

#endif
