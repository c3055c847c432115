/* schema: the tables, and how each version of them becomes the next.
 *
 * Every step runs in a transaction of its own that also writes the new version, so a process
 * that dies in one finds the version before or the version after, never half of it.
 *
 * Memory   none.
 * Threads  the store's.
 */
#ifndef WEIR_STORE_SCHEMA_H
#define WEIR_STORE_SCHEMA_H

#include "store/database.h"

/* "weir", where `file` and SQLite itself look for whose database it is. */
#define SCHEMA_APPLICATION_ID 0x77656972

/* The version this program writes. */
extern const int64_t schema_newest;

/* 0 for a database without tables.
 * errors  ERR_FAILED_PRECONDITION newer than schema_newest; ERR_DATA_LOSS no version to read
 */
MUST_CHECK bool schema_version(struct database *db, int64_t *ret, struct err *e);

/* Bring it from `version` to schema_newest. */
MUST_CHECK bool schema_migrate(struct database *db, int64_t version, struct err *e);

#endif
