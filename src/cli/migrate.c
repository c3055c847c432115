/* migrate: bring the tables of a store in PostgreSQL up to what this weir needs. */
#include "cli/cli.h"
#include "store/schema_postgres.h"

#include <inttypes.h>
#include <stdio.h>

static const char usage[] =
    "weir migrate [SETTINGS]\n\n"
    "Make the tables of a store in PostgreSQL (store.url_file or WEIR_STORE_URL), or bring "
    "them\n"
    "up to what this weir needs: all of it or nothing, in one transaction. A daemon never "
    "does\n"
    "that by itself. A table agent_memories that is there already is kept with what it holds;\n"
    "its key becomes workspace, category and key. Exit code 0: done, or nothing to do; 1: it "
    "was\n"
    "tried and refused; 2: wrong usage.\n";

#define STATEMENT_MS (60 * 60 * 1000)

static bool bring_up(const struct config *config, int64_t *ret_from, struct err *e) {
    struct database db = {0};
    const struct postgres_session_options options = {
        .url = config->store.url, .schema = config->store.schema, .timeout_ms = STATEMENT_MS};
    bool ok = database_open_postgres(&db, &options, e) &&
              schema_postgres_migrate(&db, config->store.schema, ret_from, e);
    database_close(&db);
    return ok;
}

static int migrate(const struct config *config) {
    struct err e;
    int64_t from = 0;
    if (config->store.url.len == 0) {
        err_set(&e, ERR_INVALID_ARGUMENT,
                "migrate: no PostgreSQL server is configured; set WEIR_STORE_URL. A store of "
                "SQLite is brought up to date when it is opened");
        return cli_fail(EXIT_USAGE, &e);
    }
    if (!bring_up(config, &from, &e)) return cli_fail(EXIT_FAILED, &e);
    if (from == schema_postgres_newest)
        printf("the tables have version %" PRId64 " already\n", from);
    else
        printf("the tables were brought from version %" PRId64 " to %" PRId64 "\n", from,
               schema_postgres_newest);
    return EXIT_DONE;
}

int command_migrate(int arg_count, const char *const *args) {
    struct config *config;
    int code = EXIT_DONE;
    if (!cli_config(arg_count, args, FOR_COMMAND, usage, NULL, &config, &code)) return code;
    if (cli_operands_fit(config, 0, 0, NULL)) {
        code = migrate(config);
    } else {
        fprintf(stderr, "%s", usage);
        code = EXIT_USAGE;
    }
    config_free(config);
    return code;
}
