/* line_draw: an edited text on a terminal, under its prompt.
 *
 * The text may take several rows. Each time all of it is redrawn: up to its first row, everything
 * below is erased, the rows are written, and the cursor is put where it belongs. Where there are more
 * rows than the terminal has, those around the cursor are shown. No character of the text reaches the
 * terminal as a control character (text/terminal_text.h).
 *
 * Memory   a plain value; appends to the caller's buffer.
 * Threads  none.
 * Source   ECMA-48 8.3 (CUU, CUF, ED).
 */
#ifndef WEIR_CLI_LINE_DRAW_H
#define WEIR_CLI_LINE_DRAW_H

#include "cli/line_edit.h"

struct line_screen {
    size_t columns, rows; /* of the terminal; at least 2 and 1 */
    size_t cursor_row;    /* of what is drawn */
    bool drawn;           /* something is */
};

/* prompt: one line. */
void line_draw(const struct line_edit *edit, struct str prompt, struct line_screen *screen,
               struct buf *out);

#endif
