#include "orchestrator/migrate.h"

#include "orchestrator/query.h"
#include "orchestrator/tables.h"

/* Longer than a step may take. */
#define TIMEOUT_MS 60000

struct migration {
    struct loop *loop;
    struct queries database;
    bool began;
    size_t from, at;
    struct err failed;
};

static void migrate_on_closed(void *ctx) {
    loop_stop(((struct migration *)ctx)->loop);
}

static void migrate_finish(struct migration *migration, const struct err *failed) {
    if (failed) migration->failed = *failed;
    queries_close(&migration->database, migrate_on_closed, migration);
}

static void migrate_go_on(struct migration *migration);

static void on_step(const struct postgres_request *rows, const struct err *failed, void *ctx) {
    struct migration *migration = ctx;
    (void)rows;
    if (failed) {
        migrate_finish(migration, failed);
        return;
    }
    migration->at++;
    migrate_go_on(migration);
}

/* The number is part of the transaction: a step is done as a whole or not at all, and another
 * process that did it meanwhile makes this one fail. */
static void migrate_go_on(struct migration *migration) {
    if (migration->at == tables_newest) {
        migrate_finish(migration, NULL);
        return;
    }
    struct query *query = query_new();
    query_step(query, TABLES_LOCK, NULL, 0);
    QUERY_STEP(query, TABLES_REACHED, postgres_int((int64_t)migration->at + 1));
    const char *const *statement = tables_steps[migration->at].statements;
    for (; *statement; statement++) query_step(query, *statement, NULL, 0);
    query_ask(query, &migration->database, QUERY_ONCE, on_step, migration);
}

static void migrate_on_begun(const struct postgres_request *rows, const struct err *failed,
                             void *ctx) {
    struct migration *migration = ctx;
    struct err e;
    if (failed) {
        migrate_finish(migration, failed);
        return;
    }
    int64_t version = postgres_number(postgres_rows(rows, 2), 0, 0);
    migration->from = migration->at = (size_t)version;
    if (version <= (int64_t)tables_newest) {
        migrate_go_on(migration);
        return;
    }
    err_set(&e, ERR_FAILED_PRECONDITION,
            "the database's tables have version %lld, which is newer than this weir's %zu: use "
            "the newer weir",
            (long long)version, tables_newest);
    migrate_finish(migration, &e);
}

bool migrate(const struct orchestrator_options *options, size_t *ret_from, size_t *ret_to,
             struct err *e) {
    struct migration migration = {.loop = loop_new()};
    struct query *query = query_new();
    queries_open(&migration.database, migration.loop,
                 &(struct postgres_options){.loop = migration.loop,
                                            .url = options->database,
                                            .schema = options->schema,
                                            .timeout_ms = TIMEOUT_MS});
    query_step(query, TABLES_LOCK, NULL, 0);
    query_step(query, TABLES_BEGIN, NULL, 0);
    query_step(query, TABLES_READ, NULL, 0);
    query_ask(query, &migration.database, QUERY_ONCE, migrate_on_begun, &migration);
    loop_run(migration.loop);
    loop_free(migration.loop);
    *ret_from = migration.from;
    *ret_to = migration.at;
    if (migration.failed.code) *e = migration.failed;
    return migration.failed.code == ERR_NONE;
}
