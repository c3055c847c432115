/* cli: the commands a person types.
 *
 * A command is one row of the table in cli.c and one function in a file of its own. Data goes
 * to stdout, talk to stderr; the exit code says how it went.
 *
 * Threads  the main thread.
 */
#ifndef WEIR_CLI_CLI_H
#define WEIR_CLI_CLI_H

#include "config/config.h"

#include <signal.h>

/* sysexits are for mail; these are what weir's --help promises. */
enum exit_code {
    EXIT_DONE = 0,
    EXIT_FAILED = 1, /* it was tried and did not work */
    EXIT_USAGE = 2,  /* the command line or the configuration is wrong */
};

/* args: what follows the command's name. Returns an exit code. */
typedef int command_fn(int arg_count, const char *const *args);

command_fn command_demo, command_serve, command_run, command_init, command_provider,
    command_approvals, command_sessions, command_usage, command_tool, command_token,
    command_config, command_doctor, command_version;

/* The signals that a daemon listens for. Hold them back before anything else, so that none
 * ends the program in the middle of its start. */
void cli_held_signals(sigset_t *ret);

/* Run what the command line says. */
int cli_main(int arg_count, const char *const *args);

/* --- shared by the commands --------------------------------------------------------------- */

/* Print "weir: error: <text>" and return `code`. */
int cli_fail(enum exit_code code, const struct err *why);

/* Arguments and this process's environment. */
struct config_input cli_input(int arg_count, const char *const *args, bool demo);

/* Load the configuration from these arguments and this process's environment, set up the log
 * and print its warnings. On failure, or when help was asked for (`usage` and all settings
 * are printed), false: end with *ret_code. own_flags: those that the command has taken out
 * already, for hints; ends with NULL, or is NULL. */
MUST_CHECK bool cli_config(int arg_count, const char *const *args, bool demo, const char *usage,
                           const char *const *own_flags, struct config **ret, int *ret_code);

/* The demo's signing key: kept in the data folder.
 * errors  ERR_NOT_FOUND none was made yet; what kept the file from being read */
MUST_CHECK bool demo_key_find(struct str data_folder, struct buf *out, struct err *e);

/* The same; made, and the folder with it, the first time. */
MUST_CHECK bool demo_key_get(struct str data_folder, struct buf *out, struct err *e);

#endif
