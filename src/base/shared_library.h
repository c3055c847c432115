/* shared_library: a library of the system that is loaded on first use.
 *
 * Loading costs megabytes and milliseconds, and a daemon that needs no such library should start
 * without it. Functions are looked up by name once and called through a table of pointers:
 *
 *     struct lamp { __typeof__(lamp_light) *lamp_light; };
 *     static struct lamp table;
 *     static const struct shared_symbol symbols[] = {SHARED_SYMBOL(struct lamp, lamp_light)};
 *     static struct shared_library library = {.file = "liblamp.so.2", .title = "liblamp",
 *                                             .needs = "light needs liblamp", ...};
 *
 * Memory   a library stays for the life of the process: other threads may have state in it.
 * Threads  any; the first call blocks, as it reads files. The table is constant afterwards.
 */
#ifndef WEIR_BASE_SHARED_LIBRARY_H
#define WEIR_BASE_SHARED_LIBRARY_H

#include "base/err.h"

#include <stdatomic.h>
#include <stddef.h>

struct shared_symbol {
    const char *name;
    size_t offset; /* of its pointer in the table */
};

#define SHARED_SYMBOL(table, name)                                                             \
    { #name, offsetof(table, name) }

struct shared_library {
    const char *file;    /* with the ABI version: another version has other functions */
    const char *title;   /* in errors */
    const char *needs;   /* in errors: "TLS needs OpenSSL 3" */
    const char *package; /* that contains it */
    const char *version; /* NULL, or which versions have all functions, for errors */
    enum err_code code;  /* of all errors */
    const struct shared_symbol *symbols;
    size_t symbols_count;
    void *table;
    bool (*check)(struct err *e); /* NULL, or the last step: does it serve? */

    atomic_bool tried; /* private */
    struct err failed; /* the outcome of the attempt */
};

/* Fill the table, once. Each later call has the same outcome.
 * errors  library->code: it is not installed, too old, or lacks a function */
MUST_CHECK bool shared_library_load(struct shared_library *library, struct err *e);

#endif
