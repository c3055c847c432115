/* line_edit: the text that a person edits at a prompt, as a machine that eats what a keyboard sends.
 *
 *     ground ─ESC─▶ escape ─[─▶ sequence ─letter─▶ ground     ESC [ 200 ~: a paste begins
 *        │             └──O───▶ letter ──────────▶ ground
 *        └─ in a paste: text as it is, up to ESC [ 201 ~
 *
 *     left right, Ctrl-B Ctrl-F           a character        home end, Ctrl-A Ctrl-E     the line
 *     Ctrl-left Ctrl-right, Alt-B Alt-F   a word             up down, Ctrl-P Ctrl-N      history
 *     Ctrl-K Ctrl-U Ctrl-W                cut to the end, to the beginning, the word before
 *     Ctrl-Y                              put in what was cut
 *     Enter                               enters; after a backslash at the end, and with Alt, a new line
 *     Ctrl-D                              deletes a character; is the end where nothing is typed
 *
 * In a text of several lines, up and down go through the lines first. There is no terminal in here, so a
 * test drives it with a string and the fuzzer with noise. line_draw.h shows it.
 *
 * Memory   owns its texts; borrows the history. line_edit_done().
 * Threads  none.
 * Source   ECMA-48 5.4; XTerm Control Sequences, "Bracketed Paste Mode".
 */
#ifndef WEIR_CLI_LINE_EDIT_H
#define WEIR_CLI_LINE_EDIT_H

#include "base/utf8_tail.h"
#include "cli/line_history.h"

enum line_key_state { KEY_GROUND, KEY_ESCAPE, KEY_SEQUENCE, KEY_LETTER };

struct line_edit {
    struct buf text; /* UTF-8 */
    size_t cursor;   /* in bytes, at a character's beginning */
    struct buf cut;
    const struct line_history *history;
    size_t back;      /* lines back in the history; 0: the person's own text */
    struct buf draft; /* that text, while an older line is shown */
    enum line_key_state state;
    char sequence[16];
    size_t sequence_len;
    bool pastes;
    bool paste_cr;         /* the last byte of the paste was a carriage return */
    struct buf paste_held; /* what may be the beginning of the end of the paste */
    struct utf8_tail tail;
};

enum line_edit_event {
    LINE_MORE,    /* all bytes are eaten */
    LINE_ENTERED, /* the text is entered */
    LINE_OVER,    /* Ctrl-D, and nothing is typed */
    LINE_CLEAR,   /* Ctrl-L: the screen is to be cleared */
};

void line_edit_init(struct line_edit *edit, const struct line_history *history,
                    size_t max_bytes);
void line_edit_done(struct line_edit *edit);

/* Begin an empty text. */
void line_edit_begin(struct line_edit *edit);

/* Eat bytes up to the first event; *bytes is the rest. */
enum line_edit_event line_edit_eat(struct line_edit *edit, struct str *bytes);

#endif
