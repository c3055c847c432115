/* tables: the orchestrator's tables, and the steps that bring a database to them.
 *
 * A step is never changed once it was released; a further one is appended. Steps run only by
 * `weir orchestrate --migrate`, each in a transaction of its own with the number that it
 * reaches, and one process at a time. A daemon only compares.
 *
 * Memory   none.
 * Threads  the tables are constant.
 * Source   contracts of the orchestrator, "Rows and REST", "Usage counters and quota".
 */
#ifndef WEIR_ORCHESTRATOR_TABLES_H
#define WEIR_ORCHESTRATOR_TABLES_H

#include <stddef.h>
#include <stdint.h>

/* The statements of one step; ends with NULL. */
struct tables_step {
    const char *const *statements;
};

extern const struct tables_step tables_steps[];
/* How many there are; the number of a complete database. */
extern const size_t tables_newest;

/* Creates the table of the number, which is allowed again and again. */
#define TABLES_BEGIN                                                                           \
    "CREATE TABLE IF NOT EXISTS orchestrator_schema (version bigint PRIMARY KEY, at "          \
    "timestamptz NOT NULL DEFAULT now())"
/* The number of the database; 0: none of our tables. */
#define TABLES_READ "SELECT coalesce(max(version), 0)::bigint FROM orchestrator_schema"
#define TABLES_LOCK "SELECT pg_advisory_xact_lock(4261873)"
/* $1: the number. Fails when it was reached already. */
#define TABLES_REACHED "INSERT INTO orchestrator_schema (version) VALUES ($1)"

#endif
