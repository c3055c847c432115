/* line_history: the lines that a person typed, for the arrow keys, kept from one conversation to the next.
 *
 * The file has one JSON string a line, oldest first, and is its user's alone (0600). Each line is
 * appended under a lock as it is entered, so that two conversations at once both keep theirs; a file
 * that has grown to twice HISTORY_LINES is rewritten with the newest half. A line that was cut short
 * by a crash is skipped. Without a file, or when it cannot be written, the lines last as long as the
 * command.
 *
 * Memory   owns its lines; line_history_done().
 * Threads  the main thread.
 */
#ifndef WEIR_CLI_LINE_HISTORY_H
#define WEIR_CLI_LINE_HISTORY_H

#include "base/buf.h"
#include "base/text.h"

#define HISTORY_LINES 1000
#define HISTORY_LINE_MAX_BYTES (16 * KIB) /* a longer one is not kept */

struct line_history {
    struct text *lines; /* oldest first */
    size_t count;
    struct text path; /* empty: no file */
};

/* path: of the file, or empty. A failure to read it is no error. */
void line_history_init(struct line_history *history, struct str path);
void line_history_done(struct line_history *history);

/* Keep a line, unless it is empty, too long, or the newest one already. One that begins with a space is
 * not kept either: so a secret can be typed. */
void line_history_add(struct line_history *history, struct str line);

/* The line entered `back` lines ago, 1 the newest; back is 1 to count. */
struct str line_history_at(const struct line_history *history, size_t back);

/* Append the path of the file of this program's user: $XDG_STATE_HOME/weir/chat_history, else below
 * ~/.local/state. Nothing if there is no home. */
void line_history_path(struct buf *out);

#endif
