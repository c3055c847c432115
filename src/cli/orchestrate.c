/* weir orchestrate: the orchestrator of agent runtimes, in the foreground. */
#include "base/log.h"
#include "base/mem.h"
#include "cli/cli.h"
#include "cli/contracts.h"
#include "daemon/daemon.h"
#include "orchestrator/contract.h"
#include "orchestrator/migrate.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char usage[] =
    "weir orchestrate [-c weir.yaml]\n"
    "weir orchestrate --migrate [-c weir.yaml]\n\n"
    "Drive agent runtimes for clients: REST and Socket.IO in front, the runtimes' gRPC "
    "behind,\n"
    "conversations and usage in PostgreSQL. --migrate makes its tables, or brings them up to\n"
    "date, and ends; nothing else does.\n";

static void orchestrate_on_ready(const struct daemon *daemon, void *ctx) {
    (void)ctx;
    log_info("weir " WEIR_VERSION " orchestrates on port %d",
             daemon_port(daemon, "orchestrator"));
}

static int orchestrate_serve(struct config *config, int arg_count, const char *const *args) {
    struct config_input input = cli_input(arg_count, args, false);
    struct daemon_options options = {.config = config,
                                     .input = &input,
                                     .contracts = &orchestrator_contracts,
                                     .on_ready = orchestrate_on_ready};
    struct err e;
    config->threads = 1; /* what belongs to a workspace is on one loop */
    return daemon_run(&options, &e) ? EXIT_DONE : cli_fail(EXIT_FAILED, &e);
}

static int migrate_now(const struct config *config) {
    const struct orchestrator_options *options = orchestrator_options(config);
    size_t from, to;
    struct err e;
    sigset_t held;
    cli_held_signals(&held);
    pthread_sigmask(SIG_UNBLOCK, &held, NULL);
    if (!options->database.len) {
        err_set(&e, ERR_INVALID_ARGUMENT,
                "which database? Set WEIR_ORCHESTRATOR_DATABASE=postgres://user@host/name");
        return cli_fail(EXIT_USAGE, &e);
    }
    if (!migrate(options, &from, &to, &e)) return cli_fail(EXIT_FAILED, &e);
    if (from == to)
        printf("the tables are up to date: version %zu\n", to);
    else
        printf("the tables have version %zu now, from %zu\n", to, from);
    return EXIT_DONE;
}

/* Take --migrate out of the arguments, wherever it is. */
static bool take_migrate(int *arg_count, const char **args) {
    int kept = 0;
    for (int i = 0; i < *arg_count; i++) {
        if (strcmp(args[i], "--migrate") != 0) args[kept++] = args[i];
    }
    bool found = kept < *arg_count;
    *arg_count = kept;
    return found;
}

int command_orchestrate(int arg_count, const char *const *args) {
    static const char *const own_flags[] = {"migrate", NULL};
    const char **own = mem_zero((size_t)arg_count + 1, sizeof(*own));
    struct config *config;
    int code;
    for (int i = 0; i < arg_count; i++) own[i] = args[i];
    bool migrates = take_migrate(&arg_count, own);
    if (cli_config(arg_count, own, false, usage, own_flags, &config, &code)) {
        code = migrates ? migrate_now(config) : orchestrate_serve(config, arg_count, own);
        config_free(config);
    }
    free(own);
    return code;
}
