/* show: what others said, printed by a command.
 *
 * Nothing is printed as it came: see text/terminal_text.h.
 *
 * Memory   appends to the caller's buffers, or prints.
 * Threads  the main thread.
 */
#ifndef WEIR_CLI_SHOW_H
#define WEIR_CLI_SHOW_H

#include "text/terminal_text.h"
#include "wire/json.h"

#include <stdio.h>

/* A member's text on one line; of another kind its JSON; nothing if it is absent. */
void show_member(struct json object, const char *name, struct buf *out);

/* `form` with each {name} replaced by that member. */
void show_form(struct json object, const char *form, struct buf *out);

/* A member as a cell of a table, as printf()'s "%*s": control characters become blanks, and
 * nothing a dash. */
void show_cell(struct json object, const char *name, int width, struct buf *out);

void show_text(FILE *to, struct str text, enum terminal_lines lines);

/* A line of JSON. */
void show_json(FILE *to, struct str json);

/* {"type":"error","code":"...","message":"..."}: what could not be done, for programs. */
void show_json_error(FILE *to, const struct err *problem);

/* A list for people, or one for programs, to standard output. */
void show_listing(struct str list, bool is_json);

/* Whether to use colours there: a terminal, and neither NO_COLOR nor TERM=dumb.
 * asked: what --color says: auto, on or off; NULL: auto. */
bool show_colors(FILE *to, const char *asked);

#endif
