/* help_text: what a command's --help prints, in its parts.
 *
 *     weir token new [--user USER]       usage: up to the first empty line
 *     weir token check TOKEN
 *
 *     Make a caller's token, or ...      body
 *
 *     Settings (flags beat ...):         settings: the rest; may be empty
 *       --http ADDR   the listener
 *
 * The manual pages (manual.h) and what a shell completes (completion.h) are made of this text, so
 * neither can disagree with --help. Its forms are those that the commands use, and test/cli tests
 * each command's.
 *
 * Memory   views of the text.
 * Threads  any; values only.
 */
#ifndef WEIR_CLI_HELP_TEXT_H
#define WEIR_CLI_HELP_TEXT_H

#include "base/str.h"

struct help_text {
    struct str usage, body, settings;
};

struct help_text help_text_read(struct str text);

/* Take the next line from `*rest`, without its end. False: there is none. */
bool help_text_line(struct str *rest, struct str *ret);

/* An entry of a list, "  --flag VALUE   meaning": two spaces before it, two or more after it.
 * False: the line is not one. */
bool help_text_entry(struct str line, struct str *ret_what, struct str *ret_meaning);

#endif
