#include "base/log.h"
#include "cli/cli.h"
#include "daemon/daemon.h"

static const char usage[] = "weir serve -c weir.yaml\n\n"
                            "Serve agents in the foreground until SIGTERM; SIGHUP\n"
                            "reads the configuration again.\n";

static void log_listener(const struct daemon *daemon, const char *name, struct str address) {
    if (address.len == 0) return;
    int port = daemon_port(daemon, name);
    if (port) {
        log_info("%s listens on " STR_FMT " (port %d)", name, STR_ARG(address), port);
    } else {
        log_info("%s listens on " STR_FMT, name, STR_ARG(address));
    }
}

static void on_ready(const struct daemon *daemon, void *ctx) {
    const struct config *config = ctx;
    log_listener(daemon, "http", config->listen.http);
    log_listener(daemon, "grpc", config->listen.grpc);
    if (config->tokens.key.len && !config->tokens.strict) {
        log_info("undated tokens are accepted; refuse them with tokens.strict");
    }
    log_info("weir " WEIR_VERSION " serves");
}

int command_serve(int arg_count, const char *const *args) {
    struct config *config;
    int code;
    if (!cli_config(arg_count, args, false, usage, NULL, &config, &code)) return code;
    struct err e;
    if (config->operand_count) {
        err_set(&e, ERR_INVALID_ARGUMENT,
                "weir serve takes no argument '" STR_FMT "'; name the file with -c",
                STR_ARG(config->operands[0]));
        code = cli_fail(EXIT_USAGE, &e);
    } else {
        struct config_input input = cli_input(arg_count, args, false);
        struct daemon_options options = {
            .config = config, .input = &input, .on_ready = on_ready, .ctx = config};
        code = daemon_run(&options, &e) ? EXIT_DONE : cli_fail(EXIT_FAILED, &e);
    }
    config_free(config);
    return code;
}
