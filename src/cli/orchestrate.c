/* weir orchestrate: the orchestrator of agent runtimes, in the foreground. */
#include "base/log.h"
#include "cli/cli.h"
#include "cli/contracts.h"
#include "daemon/daemon.h"
#include "orchestrator/contract.h"
#include "orchestrator/migrate.h"

#include <stdio.h>

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

static int orchestrate_serve(const struct asked *asked) {
    struct config_input input = cli_input(asked->all->rest_count, asked->all->rest, false);
    struct daemon_options options = {.config = asked->config,
                                     .input = &input,
                                     .contracts = &orchestrator_contracts,
                                     .on_ready = orchestrate_on_ready};
    struct err e;
    asked->config->threads = 1; /* what belongs to a workspace is on one loop */
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

static int orchestrate_act(const struct asked *asked, void *ctx) {
    const bool *migrates = ctx;
    return *migrates ? migrate_now(asked->config) : orchestrate_serve(asked);
}

int command_orchestrate(int arg_count, const char *const *args) {
    bool migrates = false;
    const struct argument_flag flags[] = {{.name = "migrate", .given = &migrates},
                                          {.name = NULL}};
    const struct command_form form = {
        .usage = usage, .flags = flags, .serves = true, .act = orchestrate_act};
    return cli_command(arg_count, args, &form, &migrates);
}
