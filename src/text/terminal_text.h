/* terminal_text: text of others, made safe for a terminal.
 *
 * What a model, a tool or another server says may hold escape sequences: a terminal would move
 * its cursor, change its title, answer as if the user had typed, or show a call that waits for
 * approval as another one. Nothing of that kind gets through: ESC becomes the visible ␛, and so
 * do the other control characters; C1 controls (which some terminals take for ESC [), marks that
 * turn the direction of writing, tags and ill-formed UTF-8 become U+FFFD.
 *
 * Memory   appends to the caller's buffer.
 * Threads  any.
 * Source   ECMA-48 5.3; Unicode TR36 2.4 and TR55 "source code spoofing".
 */
#ifndef WEIR_TEXT_TERMINAL_TEXT_H
#define WEIR_TEXT_TERMINAL_TEXT_H

#include "base/buf.h"

enum terminal_lines {
    TERMINAL_LINES,    /* line feeds and tabs stay, and CR LF is a line feed */
    TERMINAL_ONE_LINE, /* they become blanks */
};

/* Pieces of a stream may be given one by one, if no character is cut between them. False at the
 * buffer's limit. */
bool terminal_text_append(struct buf *out, struct str text, enum terminal_lines lines);

/* The same for JSON: as the escapes that JSON has for them, so that it means what it meant. */
bool terminal_text_append_json(struct buf *out, struct str json);

#endif
