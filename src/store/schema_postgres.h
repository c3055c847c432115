/* schema_postgres: the tables of a store in PostgreSQL.
 *
 * They are those of SQLite's store (schema.c) with PostgreSQL's types, except memories, whose
 * table is the one that other programs know: agent_memories, with the key of checks.md K14. A
 * daemon never changes them: `weir migrate` does, in one transaction.
 *
 * Memory   none.
 * Threads  the thread that has the database.
 */
#ifndef WEIR_STORE_SCHEMA_POSTGRES_H
#define WEIR_STORE_SCHEMA_POSTGRES_H

#include "store/database.h"

extern const int64_t schema_postgres_newest;

/* The version of the tables; 0: there are none.
 * errors  ERR_FAILED_PRECONDITION a newer weir made them */
MUST_CHECK bool schema_postgres_version(struct database *db, int64_t *ret, struct err *e);

/* Refuse tables that this weir does not work with.
 * errors  ERR_FAILED_PRECONDITION they are missing, older or newer */
MUST_CHECK bool schema_postgres_check(struct database *db, struct err *e);

/* Bring the tables up to the newest version, all steps or none; `schema` (one name, or empty) is
 * made if it is missing. Two that do so at once wait for each other. *ret_from: the version
 * before. */
MUST_CHECK bool schema_postgres_migrate(struct database *db, struct str schema,
                                        int64_t *ret_from, struct err *e);

#endif
