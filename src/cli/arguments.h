/* arguments: what a command reads from its command line itself; the rest are settings.
 *
 *     weir sessions export ID --user ada --data /srv/weir
 *                   ^act      ^own flag   ^ ID and the settings: the rest
 *
 * Memory   the texts are the process's arguments; arguments_done() frees the lists.
 * Threads  the main thread. */
#ifndef WEIR_CLI_ARGUMENTS_H
#define WEIR_CLI_ARGUMENTS_H

#include "base/str.h"

#define ARGUMENT_FLAGS_MAX 32
#define ARGUMENT_VALUES_MAX 64

struct argument_values {
    const char *at[ARGUMENT_VALUES_MAX + 1]; /* in the order given; ends with NULL */
    size_t count;
};

/* --NAME, or --NAME VALUE and --NAME=VALUE. If it is given twice, the last one counts, or both
 * do. */
struct argument_flag {
    const char *name;
    bool *given;                    /* without a value: set to true; or ... */
    const char **value;             /* ... with one: set to it; or ... */
    struct argument_values *values; /* ... added to them */
};

struct arguments {
    int act;           /* index in `acts` */
    const char **rest; /* a "--" and all that comes after it among them */
    int rest_count;
    const char *names[ARGUMENT_FLAGS_MAX + 1]; /* of the flags, for hints; ends with NULL */
};

/* acts   what the first argument may be; ends with NULL. If the first argument is a flag or
 *        missing, the act is acts[0]. NULL: the command has no acts.
 * flags  end with a row without a name.
 * usage  printed to stderr after the error.
 * False: an unknown act, or a flag without its value; `ret` needs no arguments_done(). */
MUST_CHECK bool arguments_read(int arg_count, const char *const *args, const char *const *acts,
                               const struct argument_flag *flags, const char *usage,
                               struct arguments *ret);

/* Report that `act` is none of `acts`, with the nearest one, and the usage. Returns false. */
bool arguments_refuse_act(const char *act, const char *const *acts, const char *usage);

void arguments_done(struct arguments *arguments);

#endif
