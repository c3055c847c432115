#include "base/log.h"
#include "cli/cli.h"
#include "cli/contracts.h"
#include "cli/model_discovery.h"
#include "cli/own_daemon.h"
#include "contract/agentbreeder/options.h"
#include "contract/crawbl/options.h"
#include "daemon/daemon.h"
#include "daemon/team.h"

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char usage[] = "weir serve [-c weir.yaml]\n\n"
                            "Serve agents in the foreground until SIGTERM; SIGHUP\n"
                            "reads the configuration again. Without -c and WEIR_CONFIG, a\n"
                            "weir.yaml that stands here counts.\n";

static void log_listener(const struct daemon *daemon, const char *name, struct str address) {
    if (address.len == 0) return;
    int port = daemon_port(daemon, name);
    if (port) {
        log_info("%s listens on " STR_FMT " (port %d)", name, STR_ARG(address), port);
    } else {
        log_info("%s listens on " STR_FMT, name, STR_ARG(address));
    }
}

static void log_listeners(const struct daemon *daemon, const struct config *config) {
    for (size_t i = 0; i < contracts.count; i++) {
        const struct contract *row = contracts.rows[i];
        for (size_t n = 0; n < row->listener_count; n++)
            log_listener(daemon, row->listeners[n].name, row->listeners[n].address(config));
    }
}

struct serving {
    const struct config *config;
    const struct config_input *input;
    struct model_discovery_watch *watch; /* NULL: no search for models */
};

static void log_found(struct str what, struct str model, void *ctx) {
    (void)ctx;
    log_info("found " STR_FMT "; use it: weir serve --model " STR_FMT, STR_ARG(what),
             STR_ARG(model));
}

/* After the demo has started, suggest models that could answer instead. */
static void offer_models(struct serving *serving) {
    if (!team_is_demo(serving->config)) return;
    log_info("the built-in demo plays: a script, not an AI");
    model_discovery_keys(serving->input, log_found, NULL);
    serving->watch = model_discovery_watch_start(log_found, NULL);
}

static void serve_on_ready(const struct daemon *daemon, void *ctx) {
    struct serving *serving = ctx;
    const struct config *config = serving->config;
    log_listeners(daemon, config);
    const struct crawbl_options *options = crawbl_options(config);
    if (options->key.len && !options->strict) {
        log_info("undated tokens are accepted; refuse them with tokens.strict");
    }
    log_info("weir " WEIR_VERSION " serves");
    offer_models(serving);
}

static int remove_entry(const char *path, const struct stat *found, int kind, struct FTW *at) {
    (void)found;
    (void)kind;
    (void)at;
    (void)remove(path); /* leftovers end with the machine's memory */
    return 0;
}

/* Remove a data folder in memory; no other process could find it later. */
static void remove_data(struct str folder) {
    char *path = str_dup(folder);
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): the daemon's threads have ended */
    (void)nftw(path, remove_entry, 8, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
    free(path);
}

/* A command that starts a daemon for itself says so in the environment (cli/own_daemon.h). The
 * programs of this daemon are not meant. Returns the token to leave for other commands, or nothing. */
static struct str become_own(struct config *config) {
    /* NOLINTNEXTLINE(concurrency-mt-unsafe): nothing else reads the environment yet */
    const char *asked = getenv(OWN_DAEMON_VARIABLE);
    bool shared = asked && strcmp(asked, OWN_DAEMON_SHARED) == 0;
    if (asked) config->tls.cert = config->tls.key = config->tls.ca = STR_EMPTY;
    if (shared) config->ports_file = STR_EMPTY;
    unsetenv(OWN_DAEMON_VARIABLE); /* NOLINT(concurrency-mt-unsafe) */
    return shared ? agentbreeder_options(config)->token : STR_EMPTY;
}

int command_serve(int arg_count, const char *const *args) {
    struct config *config;
    int code;
    if (!cli_config(arg_count, args, FOR_DAEMON, usage, NULL, &config, &code)) return code;
    struct err e;
    if (config->operand_count) {
        err_set(&e, ERR_INVALID_ARGUMENT,
                "weir serve takes no argument '" STR_FMT "'; name the file with -c",
                STR_ARG(config->operands[0]));
        code = cli_fail(EXIT_USAGE, &e);
    } else {
        struct config_input input = cli_input(arg_count, args, false);
        cli_log_file(config);
        struct serving serving = {.config = config, .input = &input};
        struct daemon_options options = {.config = config,
                                         .input = &input,
                                         .contracts = &contracts,
                                         .client_token = become_own(config),
                                         .starter = getppid(),
                                         .on_ready = serve_on_ready,
                                         .ctx = &serving};
        code = daemon_run(&options, &e) ? EXIT_DONE : cli_fail(EXIT_FAILED, &e);
        model_discovery_watch_stop(serving.watch);
        if (config->data_in_memory) remove_data(config->data);
    }
    config_free(config);
    return code;
}
