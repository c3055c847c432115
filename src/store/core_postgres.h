/* core_postgres: the connection of a store in PostgreSQL, and whose store it is.
 *
 * One process has a store at a time. It holds an advisory lock of the server, which belongs to
 * its connection: when that ends, so does the lock, and nothing can be written on it any more.
 * So a process that lost its store cannot write to it, however late it notices. A process that
 * connects again goes on only if no other one had the store meanwhile: the epoch is its fencing
 * number.
 *
 * Memory   none.
 * Threads  the store's.
 */
#ifndef WEIR_STORE_CORE_POSTGRES_H
#define WEIR_STORE_CORE_POSTGRES_H

#include "store/core.h"

/* Connect, take the store, and read its epoch if core->epoch is 0.
 * errors  ERR_UNAVAILABLE; ERR_FAILED_PRECONDITION the tables are missing or of another
 *         version, or another process has the store */
MUST_CHECK bool core_postgres_connect(struct core *core, const struct store_options *options,
                                      struct err *e);

/* errors  ERR_FAILED_PRECONDITION another process had the store meanwhile */
MUST_CHECK bool core_postgres_is_ours(struct core *core, struct err *e);

/* Whether the server closed the connection while nothing was asked. False for SQLite. */
bool core_postgres_is_lost(const struct core *core);

#endif
