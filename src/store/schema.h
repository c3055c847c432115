/* schema: the tables, and the migration of each version to the next.
 *
 * Every step runs in its own transaction, which also writes the new version. If the process
 * dies in a step, the next one finds the old version or the new one, never half of it.
 *
 * Memory   none.
 * Threads  the store's.
 */
#ifndef WEIR_STORE_SCHEMA_H
#define WEIR_STORE_SCHEMA_H

#include "store/database.h"

/* "weir", where SQLite and the tool `file` look for a database's application. */
#define SCHEMA_APPLICATION_ID 0x77656972

/* The version this program writes. */
extern const int64_t schema_newest;

/* The version of a database; 0: it has no tables.
 * errors  ERR_FAILED_PRECONDITION newer than schema_newest; ERR_DATA_LOSS its version cannot be
 *         read */
MUST_CHECK bool schema_version(struct database *db, int64_t *ret, struct err *e);

/* Migrate from `version` to schema_newest. */
MUST_CHECK bool schema_migrate(struct database *db, int64_t version, struct err *e);

#endif
