#include "cli/cli.h"
#include "base/log.h"
#include "base/nearest.h"
#include "cli/ask_daemon.h"
#include "cli/contracts.h"
#include "cli/help_text.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

extern char **environ;

static const struct command commands[] = {
    /* clang-format off */
    {"serve",   command_serve,   "serve agents: weir serve [-c weir.yaml]"},
    {"orchestrate", command_orchestrate, "drive runtimes for clients: weir orchestrate [--migrate]"},
    {"sidecar", command_sidecar, "stand in front of an agent: weir sidecar [-c sidecar.yaml]"},
    {"chat",    command_chat,    "a conversation in the terminal: weir chat [AGENT] [--continue]"},
    {"run",     command_run,     "one turn, here: weir run \"plan two days in Kyoto\" [--json]"},
    {"status",  command_status,  "is a daemon there, and can it work: weir status [--json]"},
    {"stop",    command_stop,    "end the daemon of this data folder: weir stop [--now]"},
    {"runs",    command_runs,    "which runs there were: weir runs [--state failed] [--json]"},
    {"logs",    command_logs,    "what happened in a run: weir logs RUN [-f] [--json]"},
    {"agents",  command_agents,  "who takes turns at a running daemon [--json]"},
    {"init",    command_init,    "write a settings file to begin with: weir init [DIR]"},
    {"provider", command_provider, "who answers for models: weir provider list | test NAME [--json]"},
    {"agent",   command_agent,   "who there is, and what each has: weir agent list [--json]"},
    {"tool",    command_tool,    "what agents can have done: weir tool list [AGENT] | call NAME '{...}'"},
    {"approvals", command_approvals, "what waits for a human: weir approvals [list | approve ID | refuse ID]"},
    {"audit",   command_audit,   "what was done here, and whether that record is whole: weir audit verify"},
    {"usage",   command_usage,   "what model calls came to: weir usage [--by agent] [--json]"},
    {"sessions", command_sessions, "what was said: weir sessions [list | export ID | delete ID]"},
    {"watch",   command_watch,   "read a stream, and how it ended: weir watch StreamScenario '{...}' [--json]"},
    {"mcp",     command_mcp,     "agents as tools, over stdin and stdout: weir mcp [-c weir.yaml]"},
    {"token",   command_token,   "make or check a caller's token: weir token new | check TOKEN"},
    {"config",  command_config,  "is it right, and what counts: weir config check FILE | print"},
    {"migrate", command_migrate, "make or change the tables of a store in PostgreSQL"},
    {"doctor",  command_doctor,  "what keeps weir from serving well on this machine [--json]"},
    {"health",  command_health,  "does the daemon serve: for the checks of containers"},
    {"validate", command_validate, "does a server keep its contract: weir validate URL | -- ./server --port {port}"},
    {"validate-contract", command_validate, "the same, under upstream's name"},
    {"version", command_version, "which weir this is [--json]"},
    {"help",    command_help,    "what the commands do: weir help [COMMAND]"},
    /* clang-format on */
};

int cli_fail(enum exit_code code, const struct err *why) {
    log_print("weir: error: %s\n", why->text);
    return (int)code;
}

const struct command *cli_commands(size_t *ret_count) {
    *ret_count = ARRAY_LEN(commands);
    return commands;
}

const struct command *cli_command_find(const char *name) {
    for (size_t i = 0; i < ARRAY_LEN(commands); i++) {
        if (strcmp(name, commands[i].name) == 0) return &commands[i];
    }
    return NULL;
}

void cli_help(struct buf *out) {
    buf_printf(out, "weir runs AI agents and speaks the wire contracts of agent runtimes.\n\n"
                    "  weir                      the offline demo, in the foreground\n");
    for (size_t i = 0; i < ARRAY_LEN(commands); i++)
        buf_printf(out, "  weir %-20s %s\n", commands[i].name, commands[i].what);
    buf_printf(out, "\nweir COMMAND --help says more. Exit code: 0 done, 1 failed, 2 wrong "
                    "usage.\n");
}

/* A daemon handles signals in its loop, including signals during its start. Every other
 * command simply ends, even while it waits for the reader of its output. */
static int run_briefly(command_fn *run, int arg_count, const char *const *args) {
    sigset_t held;
    cli_held_signals(&held);
    pthread_sigmask(SIG_UNBLOCK, &held, NULL);
    return run(arg_count, args);
}

static int run_daemon(command_fn *run, int arg_count, const char *const *args) {
    log_start();
    int code = run(arg_count, args);
    log_stop();
    return code;
}

void cli_held_signals(sigset_t *ret) {
    sigemptyset(ret);
    sigaddset(ret, SIGTERM);
    sigaddset(ret, SIGINT);
    sigaddset(ret, SIGHUP);
}

int cli_refuse_command(const char *name) {
    struct nearest nearest;
    nearest_init(&nearest, str_from(name));
    for (size_t i = 0; i < ARRAY_LEN(commands); i++)
        nearest_offer(&nearest, str_from(commands[i].name));
    fprintf(stderr, "weir: error: no command '%s'%s\nweir --help lists them.\n", name,
            nearest_hint(&nearest));
    return EXIT_USAGE;
}

static int cli_dispatch(int arg_count, const char *const *args) {
    if (arg_count < 2 || (args[1][0] == '-' && strcmp(args[1], "--help") != 0 &&
                          strcmp(args[1], "-h") != 0 && strcmp(args[1], "--version") != 0)) {
        return run_daemon(command_demo, arg_count - 1, args + 1);
    }
    if (strcmp(args[1], "--version") == 0) return command_version(0, NULL);
    if (args[1][0] == '-') return command_help(0, NULL);
    const struct command *command = cli_command_find(args[1]);
    if (!command) return cli_refuse_command(args[1]);
    bool serves = command->run == command_serve || command->run == command_orchestrate ||
                  command->run == command_sidecar;
    return (serves ? run_daemon : run_briefly)(command->run, arg_count - 2, args + 2);
}

/* What was printed may be all that the user will have of it: an export before a deletion. */
static int check_stdout(int code) {
    errno = 0;
    bool whole = fflush(stdout) == 0 && !ferror(stdout);
    if (whole) return code;
    fprintf(stderr,
            "weir: error: stdout cannot be written%s%s: what was printed is not whole\n",
            errno ? ": " : "", errno ? strerrordesc_np(errno) : "");
    return code == EXIT_DONE ? EXIT_FAILED : code;
}

int cli_main(int arg_count, const char *const *args) {
    return check_stdout(cli_dispatch(arg_count, args));
}

/* --- configuration ------------------------------------------------------------------------ */

/* The lines of one setting, in the text of config_help(). */
static struct str entry_of(struct str help, const char *name) {
    struct str rest = help, line, what, meaning;
    while (help_text_line(&rest, &line)) {
        if (!help_text_entry(line, &what, &meaning)) continue;
        struct str first = str_split(what, ' ', &meaning);
        if (!str_equal(first, str_from(name))) continue;
        while (str_starts(rest, STR("      "))) help_text_line(&rest, &meaning);
        return str_of(line.at, (size_t)(rest.at - line.at));
    }
    return STR_EMPTY;
}

static void print_help(const struct config *config, const char *usage, enum settings_use use) {
    static const char *const named[] = {"-c,", "--data", "--http", "--log-level"};
    struct buf settings;
    buf_init(&settings, 256 * KIB);
    config_help(config, &settings);
    printf("%s\n", usage);
    if (use == FOR_COMMAND) {
        printf("Settings: those of weir serve (weir serve --help lists them), most of all\n\n");
        for (size_t i = 0; i < ARRAY_LEN(named); i++)
            printf(STR_FMT, STR_ARG(entry_of(buf_str(&settings), named[i])));
    } else {
        printf(STR_FMT, STR_ARG(buf_str(&settings)));
    }
    buf_done(&settings);
}

bool cli_settings_help(struct buf *out) {
    static const char *const args[] = {"--help"}; /* nothing is read, and the rows are there */
    struct config_input input = cli_input(ARRAY_LEN(args), args, false);
    struct config *config;
    struct err e;
    if (!config_load(&input, &config, &e)) return false;
    config_help(config, out);
    config_free(config);
    return buf_ok(out);
}

struct config_input cli_input(int arg_count, const char *const *args, bool demo) {
    return (struct config_input){.args = args,
                                 .arg_count = (size_t)arg_count,
                                 .environment = (const char *const *)environ,
                                 .demo = demo,
                                 .more = contract_rows,
                                 .more_ctx = &setting_contracts};
}

bool cli_config_quiet(int arg_count, const char *const *args, enum settings_use use,
                      const char *usage, const char *const *own_flags, struct config **ret,
                      int *ret_code) {
    struct config_input input = cli_input(arg_count, args, use == FOR_DEMO);
    input.own_flags = own_flags;
    struct config *config;
    struct err e;
    if (!config_load(&input, &config, &e)) {
        *ret_code = cli_fail(EXIT_USAGE, &e);
        return false;
    }
    if (config->help) {
        print_help(config, usage, use);
        config_free(config);
        *ret_code = EXIT_DONE;
        return false;
    }
    *ret = config;
    return true;
}

bool cli_config(int arg_count, const char *const *args, enum settings_use use,
                const char *usage, const char *const *own_flags, struct config **ret,
                int *ret_code) {
    if (!cli_config_quiet(arg_count, args, use, usage, own_flags, ret, ret_code)) return false;
    config_log(*ret);
    return true;
}

int cli_look_at(const struct config_input *input, const char *usage,
                int (*look)(struct config *config, void *ctx), void *ctx) {
    struct config *config;
    struct err e;
    int code = EXIT_USAGE;
    if (!config_load(input, &config, &e)) return cli_fail(EXIT_USAGE, &e);
    if (config->help) {
        printf("%s", usage);
        code = EXIT_DONE;
    } else if (cli_operands_fit(config, 0, 0, NULL)) {
        code = look(config, ctx);
    } else {
        fprintf(stderr, "%s", usage);
    }
    config_free(config);
    return code;
}

void cli_log_file(const struct config *config) {
    if (config->file_beside)
        log_info("the settings are those of " STR_FMT ", which stands here; another file is "
                 "named with -c",
                 STR_ARG(config->file));
}

/* --- a whole command ---------------------------------------------------------------------- */

bool cli_fits_all(const struct asked *asked, void *ctx) {
    (void)asked;
    (void)ctx;
    return true;
}

bool cli_operands_fit(const struct config *config, size_t least, size_t most,
                      const char *missing) {
    size_t count = config->operand_count;
    if (count > most) {
        fprintf(stderr, "weir: error: '" STR_FMT "' is one argument too many\n",
                STR_ARG(config->operands[most]));
        return false;
    }
    for (size_t i = 0; i < least; i++) {
        if (i < count && config->operands[i].len) continue;
        fprintf(stderr, "weir: error: %s is missing\n", missing);
        return false;
    }
    return true;
}

bool cli_flag_fits(bool given, bool taken, const char *flag, const char *instead) {
    if (!given || taken) return true;
    fprintf(stderr, "weir: error: %s does not belong here; %s\n", flag, instead);
    return false;
}

void cli_say_acts(const char *const *acts) {
    const char *before = "weir: error: say what to do: ";
    for (; *acts; acts++) {
        if (!**acts) continue;
        fprintf(stderr, "%s%s", before, *acts);
        before = acts[1] && acts[2] ? ", " : " or ";
    }
    fputc('\n', stderr);
}

/* An act whose name is empty stands for the one that was not given. */
static bool form_fits(const struct command_form *form, const struct asked *asked, void *ctx) {
    if (form->acts && !form->acts[asked->act][0]) {
        cli_say_acts(form->acts);
        return false;
    }
    return form->fits ? form->fits(asked, ctx) : cli_operands_fit(asked->config, 0, 0, NULL);
}

static int run_form(const struct command_form *form, struct asked *asked, void *ctx) {
    const struct arguments *all = asked->all;
    int code = EXIT_USAGE;
    if (!cli_config(all->rest_count, all->rest, form->serves ? FOR_DAEMON : FOR_COMMAND,
                    form->usage, all->names, &asked->config, &code))
        return code;
    struct err e;
    if ((form->takes & TAKES_DAEMON) && !daemon_url_check(asked->url, &e))
        code = cli_fail(EXIT_USAGE, &e);
    else if (form_fits(form, asked, ctx))
        code = form->act(asked, ctx);
    else
        fprintf(stderr, "%s", form->usage);
    config_free(asked->config);
    return code;
}

int cli_command(int arg_count, const char *const *args, const struct command_form *form,
                void *ctx) {
    struct arguments all;
    struct asked asked = {.all = &all};
    struct argument_flag flags[ARGUMENT_FLAGS_MAX + 1] = {{.name = NULL}};
    size_t count = 0;
    if (form->takes & TAKES_JSON)
        flags[count++] = (struct argument_flag){.name = "json", .given = &asked.json};
    if (form->takes & TAKES_DAEMON) {
        flags[count++] = (struct argument_flag){.name = "url", .value = &asked.url};
        flags[count++] = (struct argument_flag){.name = "token", .value = &asked.token};
    }
    for (const struct argument_flag *own = form->flags; own && own->name; own++) {
        assert(count < ARGUMENT_FLAGS_MAX);
        flags[count++] = *own;
    }
    if (!arguments_read(arg_count, args, form->acts, flags, form->usage, &all))
        return EXIT_USAGE;
    asked.act = all.act;
    int code = run_form(form, &asked, ctx);
    arguments_done(&all);
    return code;
}
