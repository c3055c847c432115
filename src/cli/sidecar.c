/* weir sidecar: the layer in front of another program's agent, in the foreground. */
#include "sidecar/sidecar.h"

#include "base/log.h"
#include "base/version.h"
#include "cli/arguments.h"
#include "cli/cli.h"

#include <errno.h>
#include <stdio.h>
#include <unistd.h>

extern char **environ;

static const char usage[] = "weir sidecar [-c sidecar.yaml] [--ports-file FILE]\n\n"
                            "  AGENT_NAME=demo AGENT_AUTH_TOKEN=secret weir sidecar\n\n"
                            "Stand in front of an agent of the Runtime Contract v1: tokens, "
                            "guardrails, rates, and the\n"
                            "fields trace_id, tokens, cost_usd, model and latency_ms in its "
                            "answers; beside it, helpers\n"
                            "for cost, A2A and MCP. The settings are those of the published "
                            "sidecar, and more. Without\n"
                            "-c the file is " SIDECAR_FILE ", if there is one.\n";

static void print_help(void) {
    struct buf settings;
    buf_init(&settings, 64 * KIB);
    sidecar_options_help(&settings);
    printf("%s\nSettings: the key in the file, the variable, the default. Variables beat the "
           "file.\n\n" STR_FMT,
           usage, STR_ARG(buf_str(&settings)));
    buf_done(&settings);
}

static bool asks_for_help(int arg_count, const char *const *args) {
    for (int i = 0; i < arg_count; i++) {
        struct str argument = str_from(args[i]);
        if (str_equal(argument, STR("--help")) || str_equal(argument, STR("-h"))) return true;
    }
    return false;
}

static void write_ports(const char *path, const struct sidecar_ports *ports) {
    char beside[4096];
    snprintf(beside, sizeof(beside), "%s.new", path);
    FILE *file = fopen(beside, "we");
    bool good = file && fprintf(file, "{\"inbound\":%d,\"a2a\":%d,\"mcp\":%d,\"cost\":%d}\n",
                                ports->inbound, ports->a2a, ports->mcp, ports->cost) > 0;
    if (file) good &= fclose(file) == 0;
    if (!good || rename(beside, path) != 0)
        log_error("the ports file %s cannot be written: %s", path, strerrordesc_np(errno));
}

static void sidecar_on_ready(const struct sidecar_ports *ports, void *ctx) {
    const char *const *ports_file = ctx;
    log_info("weir " WEIR_VERSION " sidecar: port %d in front, helpers on %d, %d, %d",
             ports->inbound, ports->a2a, ports->mcp, ports->cost);
    if (*ports_file) write_ports(*ports_file, ports);
}

static int sidecar_serve(const char *file, const char *ports_file) {
    struct sidecar_options *options;
    struct err e;
    log_setup(LOG_INFO, isatty(STDERR_FILENO) ? LOG_PLAIN : LOG_JSON);
    if (!sidecar_options_read(file, (const char *const *)environ, &options, &e))
        return cli_fail(EXIT_FAILED, &e);
    if (options->disabled) {
        log_info("the sidecar is disabled by AGENTBREEDER_SIDECAR");
        sidecar_options_free(options);
        return EXIT_DONE;
    }
    const struct sidecar_run run = {.options = options,
                                    .environment = (const char *const *)environ,
                                    .on_ready = sidecar_on_ready,
                                    .ctx = &ports_file};
    bool good = sidecar_run(&run, &e);
    sidecar_options_free(options);
    return good ? EXIT_DONE : cli_fail(EXIT_FAILED, &e);
}

/* -config and --config are the published sidecar's. */
static const char *long_name(const char *argument) {
    struct str name = str_from(argument);
    return str_equal(name, STR("-c")) || str_equal(name, STR("-config")) ? "--config"
                                                                         : argument;
}

int command_sidecar(int arg_count, const char *const *args) {
    const char *file = NULL, *ports_file = NULL;
    const struct argument_flag flags[] = {
        {.name = "config", .value = &file}, {.name = "ports-file", .value = &ports_file}, {0}};
    const char *own[ARGUMENT_VALUES_MAX];
    struct arguments arguments;
    struct err e;
    if (asks_for_help(arg_count, args)) {
        print_help();
        return EXIT_DONE;
    }
    if (arg_count > ARGUMENT_VALUES_MAX) arg_count = ARGUMENT_VALUES_MAX;
    for (int i = 0; i < arg_count; i++) own[i] = long_name(args[i]);
    if (!arguments_read(arg_count, own, NULL, flags, usage, &arguments)) return EXIT_USAGE;
    bool extra = arguments.rest_count > 0;
    if (extra)
        err_set(&e, ERR_INVALID_ARGUMENT, "weir sidecar takes no argument '%s'",
                arguments.rest[0]);
    arguments_done(&arguments);
    return extra ? cli_fail(EXIT_USAGE, &e) : sidecar_serve(file, ports_file);
}
