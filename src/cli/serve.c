#include "base/log.h"
#include "cli/cli.h"
#include "daemon/daemon.h"

static const char usage[] = "weir serve -c weir.yaml\n\n"
                            "Serve agents in the foreground until SIGTERM.\n";

static bool is_loopback(struct str address) {
    return str_starts(address, STR("127.")) || str_starts(address, STR("localhost:")) ||
           str_starts(address, STR("[::1]")) || str_starts(address, STR("unix:"));
}

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
    if (config->listen.http.len && !config->tokens.auth.len &&
        !is_loopback(config->listen.http)) {
        log_warning("listening on " STR_FMT
                    " without AGENT_AUTH_TOKEN: anyone who can reach this "
                    "host can run your agents. Set it: export AGENT_AUTH_TOKEN=$(openssl rand "
                    "-hex 32)",
                    STR_ARG(config->listen.http));
    }
    log_info("weir " WEIR_VERSION " serves");
}

int command_serve(int arg_count, const char *const *args) {
    struct config *config;
    int code;
    if (!cli_config(arg_count, args, false, usage, &config, &code)) return code;
    struct err e;
    if (config->operand_count) {
        err_set(&e, ERR_INVALID_ARGUMENT,
                "weir serve takes no argument '" STR_FMT "'; name the file with -c",
                STR_ARG(config->operands[0]));
        code = cli_fail(EXIT_USAGE, &e);
    } else {
        struct daemon_options options = {.config = config, .on_ready = on_ready, .ctx = config};
        code = daemon_run(&options, &e) ? EXIT_DONE : cli_fail(EXIT_FAILED, &e);
    }
    config_free(config);
    return code;
}
