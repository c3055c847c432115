/* manual: manual pages, made of what --help prints and of the table of settings.
 *
 * Memory   appends to a buffer of the caller.
 * Threads  any.
 * Source   man-pages(7), man(7).
 */
#ifndef WEIR_CLI_MANUAL_H
#define WEIR_CLI_MANUAL_H

#include "base/buf.h"

struct manual_page {
    struct str name;     /* "weir-token" */
    struct str what;     /* one line */
    struct str help;     /* all that --help prints */
    bool settings_apart; /* its settings are those of weir.yaml(5) */
};

/* weir-token(1). */
void manual_write_command(const struct manual_page *page, struct buf *out);

/* weir(1). help: what weir --help prints */
void manual_write_overview(struct str help, struct buf *out);

/* weir.yaml(5). tables: config_help_markdown() */
void manual_write_settings(struct str tables, struct buf *out);

#endif
