/* query: statements for PostgreSQL with the values that they need.
 *
 *     struct query *query = query_new();
 *     QUERY_STEP(query, "DELETE FROM messages WHERE id = $1", postgres_text(id));
 *     query_ask(query, database, QUERY_REPEATABLE, on_done, ctx);
 *
 * Its statements take effect together or not at all (postgres.h). A *steadfast* one must take
 * effect, and may do so twice without harm: it is asked again until it has.
 *
 * Memory   values are copied; a query frees itself after on_done.
 * Threads  the loop's.
 */
#ifndef WEIR_ORCHESTRATOR_QUERY_H
#define WEIR_ORCHESTRATOR_QUERY_H

#include "postgres/postgres.h"

struct query;

struct readers;

/* Whose a read is: a workspace that the caller has proved to be his, else a user. */
struct read_owner {
    struct str workspace; /* empty: `user` counts */
    struct str user;
};

/* A database and the queries that will be asked again. */
struct queries {
    struct loop *loop;
    struct postgres *postgres;
    struct list again;
    struct readers *readers; /* for what is only read (readers.h); NULL: none */
};

void queries_open(struct queries *database, struct loop *loop,
                  const struct postgres_options *options);
/* Whatever would be asked again fails now, before this returns; then as postgres_close(). */
void queries_close(struct queries *database, task_fn *closed, void *ctx);

/* For how long a steadfast query is repeated. */
#define QUERY_STEADFAST_MS (10 * 60000)

struct query *query_new(void);
void query_drop(struct query *query); /* one that was not asked */

/* Add a statement with its values, which are copied. The text of the statement stays. */
void query_step(struct query *query, const char *sql, const struct postgres_value *values,
                size_t count);
#define QUERY_STEP(query, sql, ...)                                                            \
    query_step(query, sql, (const struct postgres_value[]){__VA_ARGS__},                       \
               sizeof((const struct postgres_value[]){__VA_ARGS__}) /                          \
                   sizeof(struct postgres_value))

/* An empty text is stored as null. */
static inline struct postgres_value query_text_or_null(struct str text) {
    return text.len ? postgres_text(text) : postgres_null();
}

enum query_kind {
    QUERY_ONCE,       /* it fails when its outcome is unknown */
    QUERY_REPEATABLE, /* it reads, or notices that it has taken effect */
    QUERY_STEADFAST,
};

/* `rows` for postgres_rows(); NULL when it failed. Called once, never before query_ask() has
 * returned. */
typedef void query_done_fn(const struct postgres_request *rows, const struct err *failed,
                           void *ctx);

void query_ask(struct query *query, struct queries *database, enum query_kind kind,
               query_done_fn *done, void *ctx);

#endif
