/* cli: the commands a person types.
 *
 * A command is one row of the table in cli.c and one function in a file of its own. Data goes
 * to stdout and messages to stderr. The exit code reports success or failure.
 *
 * Threads  the main thread.
 */
#ifndef WEIR_CLI_CLI_H
#define WEIR_CLI_CLI_H

#include "cli/arguments.h"
#include "config/config.h"

#include <signal.h>

/* The exit codes that weir's --help documents. */
enum exit_code {
    EXIT_DONE = 0,
    EXIT_FAILED = 1,      /* it was tried and did not work */
    EXIT_USAGE = 2,       /* the command line or the configuration is wrong */
    EXIT_UNREACHABLE = 3, /* weir validate: the target does not answer */
};

/* args: the arguments after the command's name. Returns an exit code. */
typedef int command_fn(int arg_count, const char *const *args);

command_fn command_demo, command_serve, command_orchestrate, command_run, command_init,
    command_provider, command_approvals, command_sessions, command_usage, command_audit,
    command_agent, command_tool, command_token, command_config, command_doctor,
    command_validate, command_sidecar, command_version, command_watch, command_mcp,
    command_migrate, command_help, command_health, command_runs, command_logs, command_agents,
    command_status, command_stop, command_chat;

struct command {
    const char *name;
    command_fn *run;
    const char *what; /* one line: what it is for, and an example after ": weir " */
};

/* All commands, in the order of weir --help. */
const struct command *cli_commands(size_t *ret_count);

/* NULL: there is none of this name. */
const struct command *cli_command_find(const char *name);

/* Report on stderr that there is no such command, and the nearest one. Returns EXIT_USAGE. */
int cli_refuse_command(const char *name);

/* Append what weir --help prints. */
void cli_help(struct buf *out);

/* The signals that a daemon handles. Block them before anything else, so that none ends the
 * program during its start. */
void cli_held_signals(sigset_t *ret);

/* Run the command that the command line names. It fails if stdout could not be written. */
int cli_main(int arg_count, const char *const *args);

/* --- shared by the commands --------------------------------------------------------------- */

/* Append all settings as --help of a daemon lists them. False: they cannot be listed. */
bool cli_settings_help(struct buf *out);

/* Print "weir: error: <text>" and return `code`. */
int cli_fail(enum exit_code code, const struct err *why);

/* What the settings are for. */
enum settings_use {
    FOR_DEMO,
    FOR_DAEMON,
    FOR_COMMAND, /* few of them count: --help names those */
};

/* The arguments and this process's environment. */
struct config_input cli_input(int arg_count, const char *const *args, bool demo);

/* Load the configuration from these arguments and this process's environment, set up the log
 * and print its warnings. False on failure, or after --help, which prints `usage` and the
 * settings: exit with *ret_code. own_flags: flags that the command has already handled, for
 * hints; ends with NULL, or is NULL. */
MUST_CHECK bool cli_config(int arg_count, const char *const *args, enum settings_use use,
                           const char *usage, const char *const *own_flags, struct config **ret,
                           int *ret_code);

/* The same without the warnings: the daemon has printed them. */
MUST_CHECK bool cli_config_quiet(int arg_count, const char *const *args, enum settings_use use,
                                 const char *usage, const char *const *own_flags,
                                 struct config **ret, int *ret_code);

/* What a command was asked to do. */
struct asked {
    struct config *config;
    const struct arguments *all; /* the rest of them are the operands and the settings */
    int act;                     /* index in `acts` */
    const char *url, *token;     /* NULL: not given */
    bool json;
};

/* Flags that many commands take. */
enum command_takes {
    TAKES_JSON = 1 << 0,   /* --json */
    TAKES_DAEMON = 1 << 1, /* --url, --token */
};

/* A command that takes settings. ctx: where its own flags have put their values. */
struct command_form {
    const char *usage;
    const char *const *acts;           /* see arguments_read() */
    const struct argument_flag *flags; /* its own, or NULL */
    unsigned takes;                    /* enum command_takes */
    bool serves;                       /* every setting counts */
    /* Whether the operands and flags go together. If not, it may say why, and the usage follows.
     * NULL: there may be no operands. */
    bool (*fits)(const struct asked *asked, void *ctx);
    int (*act)(const struct asked *asked, void *ctx); /* returns the exit code */
};

/* Read the flags and the settings of such a command, and let it act. Returns its exit code. */
int cli_command(int arg_count, const char *const *args, const struct command_form *form,
                void *ctx);

/* For `fits`, of a command that looks at its operands itself. */
bool cli_fits_all(const struct asked *asked, void *ctx);

/* For `fits`: whether there are `least` to `most` operands, of which the first `least` are not empty.
 * If not, it reports what is wrong. missing: what is asked for then, such as "the token". */
bool cli_operands_fit(const struct config *config, size_t least, size_t most,
                      const char *missing);

/* For `fits`: false if an act got a flag that another one takes, after reporting it. */
bool cli_flag_fits(bool given, bool taken, const char *flag, const char *instead);

/* Report what the first argument may be. acts: as of arguments_read(). */
void cli_say_acts(const char *const *acts);

/* For commands that look at settings: input->collect notes mistakes instead of failing. `look` gets
 * them, unless --help was asked for, which prints `usage` alone, or there is an operand. */
int cli_look_at(const struct config_input *input, const char *usage,
                int (*look)(struct config *config, void *ctx), void *ctx);

/* Log which configuration file is used, if the user did not name one. */
void cli_log_file(const struct config *config);

/* Read the demo's signing key from the data folder.
 * errors  ERR_NOT_FOUND none was made yet; those of reading the file */
MUST_CHECK bool demo_key_find(struct str data_folder, struct buf *out, struct err *e);

/* The same, but make the key and the folder if they are missing. */
MUST_CHECK bool demo_key_get(struct str data_folder, struct buf *out, struct err *e);

#endif
