#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "cli/cli.h"
#include "cli/contracts.h"
#include "cli/model_discovery.h"
#include "contract/crawbl/options.h"
#include "daemon/daemon.h"
#include "daemon/team.h"
#include "wire/token.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#define KEY_BYTES 32
#define DEMO_USER STR("demo")
#define DEMO_WORKSPACE STR("demo")

/* The demo's tokens are shown on screen, so the production key never signs them. */
#define OTHER_KEY_NOTE                                                                         \
    "           CRAWBL_MCP_SIGNING_KEY is not used here: the demo has a key of its own\n"

static const char usage[] = "weir [--model PROVIDER/MODEL]\n\n"
                            "The offline demo in the foreground: a script, not an AI, plays a "
                            "manager with two\n"
                            "delegates and a tool. It needs no key and no other server. With a "
                            "model, one agent\n"
                            "that asks it: weir --model ollama/gemma3\n";

struct demo {
    const struct config *config;
    const struct config_input *input;
    struct model_discovery_watch *watch; /* NULL: no search for models runs */
    struct buf key;
    uint64_t started_us;
};

/* --- the key ------------------------------------------------------------------------------ */

static void demo_make_folder(struct str folder) {
    char *path = str_dup(folder);
    for (char *at = path + 1; *at; at++) {
        if (*at != '/') continue;
        *at = '\0';
        mkdir(path, 0700);
        *at = '/';
    }
    mkdir(path, 0700);
    free(path);
}

static bool new_key(const char *path, struct buf *out, struct err *e) {
    unsigned char bytes[KEY_BYTES];
    if (getrandom(bytes, sizeof(bytes), 0) != sizeof(bytes)) {
        return err_set(e, ERR_UNAVAILABLE, "the system gives no random bytes: %m");
    }
    for (size_t i = 0; i < sizeof(bytes); i++) buf_printf(out, "%02x", bytes[i]);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    bool kept = fd >= 0 && write(fd, out->at, out->len) == (ssize_t)out->len;
    if (fd >= 0) close(fd);
    return kept ||
           err_set(e, ERR_UNAVAILABLE,
                   "cannot keep the demo's key in '%s': %m; choose a folder that can be "
                   "written with --data",
                   path);
}

static void key_path(struct str data_folder, struct buf *path) {
    buf_init(path, data_folder.len + 32);
    buf_printf(path, STR_FMT "/demo.key%c", STR_ARG(data_folder), '\0');
}

bool demo_key_find(struct str data_folder, struct buf *out, struct err *e) {
    struct buf path;
    key_path(data_folder, &path);
    bool got = file_read(str_from(path.at), out, e);
    buf_done(&path);
    return got;
}

bool demo_key_get(struct str data_folder, struct buf *out, struct err *e) {
    struct buf path;
    if (demo_key_find(data_folder, out, e)) return true;
    if (e->code != ERR_NOT_FOUND) return false;
    demo_make_folder(data_folder); /* the store would make it later; the key is needed before */
    key_path(data_folder, &path);
    bool made = new_key(path.at, out, e);
    buf_done(&path);
    return made;
}

/* --- the start screen --------------------------------------------------------------------- */

static double resident_mb(void) {
    FILE *statm = fopen("/proc/self/statm", "re");
    unsigned long all = 0, resident = 0;
    if (statm) {
        /* NOLINTNEXTLINE(cert-err34-c): the kernel writes numbers that fit */
        if (fscanf(statm, "%lu %lu", &all, &resident) != 2) resident = 0;
        fclose(statm);
    }
    return (double)resident * (double)sysconf(_SC_PAGESIZE) / 1e6;
}

static void print_token(const struct demo *demo) {
    struct token_keys *keys = token_keys_new(TOKEN_STRICT, TOKEN_WINDOW_S);
    const struct config *config = demo->config;
    const struct crawbl_options *options = crawbl_options(config);
    struct str user = options->user.len ? options->user : DEMO_USER;
    struct str workspace = options->workspace.len ? options->workspace : DEMO_WORKSPACE;
    struct buf token;
    struct err e;
    bool trimmed;
    buf_init(&token, 4 * KIB);
    if (token_keys_add(keys, buf_str(&demo->key), &trimmed, &e) &&
        token_mint(keys, user, workspace, clock_unix_ms() / 1000, &token, &e)) {
        log_print("  token    " STR_FMT "\n"
                  "           user " STR_FMT ", workspace " STR_FMT
                  ", good for 5 minutes; the next: weir token new%s\n%s",
                  STR_ARG(buf_str(&token)), STR_ARG(user), STR_ARG(workspace),
                  options->key.len ? " --demo" : "", options->key.len ? OTHER_KEY_NOTE : "");
    }
    buf_done(&token);
    token_keys_free(keys);
}

/* Print who answers: one line for each model that an agent uses. An agent that is a program, a
 * library or a server has none. */
static void print_models(const struct config *config) {
    if (team_is_demo(config)) log_print("  model    demo (built in: a script, not an AI)\n");
    for (size_t i = 0; i < config->agent_count; i++) {
        const struct config_model *model = &config->agents[i].model;
        const struct config_provider *provider = model->provider;
        bool printed = !provider;
        for (size_t k = 0; k < i; k++) {
            const struct config_model *other = &config->agents[k].model;
            printed |= other->provider == provider && str_equal(other->name, model->name);
        }
        if (printed || str_equal(provider->kind, STR("scripted"))) continue;
        bool keyless = !provider->key.len && provider->key_name.len;
        log_print("  model    " STR_FMT "/" STR_FMT "%s" STR_FMT "\n", STR_ARG(provider->name),
                  STR_ARG(model->name), keyless ? "   no key: set " : "",
                  STR_ARG(keyless ? provider->key_name : STR_EMPTY));
    }
}

/* One line each; the second one may come from a thread beside the loops. */
static void print_found(struct str what, struct str model, void *ctx) {
    (void)ctx;
    log_print("  found    " STR_FMT "   use it: weir --model " STR_FMT "\n", STR_ARG(what),
              STR_ARG(model));
}

static void demo_on_ready(const struct daemon *daemon, void *ctx) {
    struct demo *demo = ctx;
    const struct config *config = demo->config;
    struct buf agents;
    buf_init(&agents, 4 * KIB);
    daemon_agents_text(daemon, &agents);
    int http = daemon_port(daemon, "http"), grpc = daemon_port(daemon, "grpc");
    log_print("weir %s   ready in %.1f ms · %.1f MB · data " STR_FMT "\n", WEIR_VERSION,
              (double)(clock_mono_us() - demo->started_us) / 1000, resident_mb(),
              STR_ARG(config->data));
    print_models(config);
    if (team_is_demo(config)) model_discovery_keys(demo->input, print_found, NULL);
    log_print("  agents   " STR_FMT "\n", STR_ARG(buf_str(&agents)));
    if (http) {
        const char *scheme = config->tls.cert.len ? "https" : "http";
        log_print("  look     %s://127.0.0.1:%d/weir/   the console\n", scheme, http);
        log_print("  http     %s://127.0.0.1:%d   /health /invoke /stream\n", scheme, http);
    }
    if (grpc) {
        log_print("  grpc     127.0.0.1:%d   crawbl.agentruntime.v1.AgentRuntime/Converse\n",
                  grpc);
        print_token(demo);
    }
    if (http) {
        log_print(
            "  try      curl -N %s127.0.0.1:%d/stream --json '{\"input\":\"plan two days in "
            "Kyoto\"}'\n",
            config->tls.cert.len ? "-k https://" : "", http);
    }
    log_print("  stop     Ctrl-C\n");
    buf_done(&agents);
    if (team_is_demo(config)) demo->watch = model_discovery_watch_start(print_found, NULL);
}

/* The webhook of Crawbl starts its pods without a command. */
static bool is_pod(int arg_count, const char *const *args) {
    struct config_input input = cli_input(arg_count, args, true);
    struct config *config;
    struct err e;
    if (!config_load(&input, &config, &e)) return false; /* which is printed below */
    bool pod = config->remote.pod;
    config_free(config);
    return pod;
}

int command_demo(int arg_count, const char *const *args) {
    if (is_pod(arg_count, args)) return command_serve(arg_count, args);
    struct demo demo = {.started_us = clock_mono_us()};
    struct config *config;
    int code;
    if (!cli_config(arg_count, args, FOR_DEMO, usage, NULL, &config, &code)) return code;
    struct err e;
    demo.config = config;
    buf_init(&demo.key, KIB);
    if (config->operand_count) {
        err_set(&e, ERR_INVALID_ARGUMENT,
                "the demo takes no argument '" STR_FMT "'; a command comes before its flags: "
                "weir COMMAND --help",
                STR_ARG(config->operands[0]));
        code = cli_fail(EXIT_USAGE, &e);
    } else {
        bool keyed = demo_key_get(config->data, &demo.key, &e);
        struct config_input input = cli_input(arg_count, args, true);
        demo.input = &input;
        struct daemon_options options = {.config = config,
                                         .input = &input,
                                         .contracts = &contracts,
                                         .demo_key = buf_str(&demo.key),
                                         .on_ready = demo_on_ready,
                                         .ctx = &demo};
        code = keyed && daemon_run(&options, &e) ? EXIT_DONE : cli_fail(EXIT_FAILED, &e);
        model_discovery_watch_stop(demo.watch);
    }
    buf_done(&demo.key);
    config_free(config);
    return code;
}
