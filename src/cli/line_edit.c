#include "cli/line_edit.h"

#include "text/width.h"

#include <ctype.h>

#define CTRL(letter) ((letter)&0x1F)
#define ESC 0x1B
#define DEL 0x7F

static const struct str paste_end = STR_INIT("\x1b[201~");

void line_edit_init(struct line_edit *edit, const struct line_history *history,
                    size_t max_bytes) {
    *edit = (struct line_edit){.history = history};
    buf_init(&edit->text, max_bytes);
    buf_init(&edit->cut, max_bytes);
    buf_init(&edit->draft, max_bytes);
    buf_init(&edit->paste_held, KIB);
}

void line_edit_done(struct line_edit *edit) {
    buf_done(&edit->text);
    buf_done(&edit->cut);
    buf_done(&edit->draft);
    buf_done(&edit->paste_held);
}

void line_edit_begin(struct line_edit *edit) {
    buf_clear(&edit->text);
    buf_clear(&edit->draft);
    buf_clear(&edit->paste_held);
    edit->cursor = edit->back = 0;
    edit->state = KEY_GROUND;
    edit->pastes = edit->paste_cr = false;
    edit->tail.len = 0;
}

/* --- where -------------------------------------------------------------------------------- */

static bool is_inside(const struct line_edit *edit, size_t at) {
    return at < edit->text.len && ((unsigned char)edit->text.at[at] & 0xC0) == 0x80;
}

static bool combines(const struct line_edit *edit, size_t at) {
    size_t len;
    return at < edit->text.len &&
           width_of(width_decode(str_skip(buf_str(&edit->text), at), &len)) == 0;
}

/* A character and the marks that combine with it are one step. */
static size_t step_left(const struct line_edit *edit, size_t at) {
    while (at > 0) {
        do {
            at--;
        } while (at > 0 && is_inside(edit, at));
        if (!combines(edit, at)) break;
    }
    return at;
}

static size_t step_right(const struct line_edit *edit, size_t at) {
    if (at == edit->text.len) return at;
    do {
        do {
            at++;
        } while (is_inside(edit, at));
    } while (combines(edit, at));
    return at;
}

static size_t line_begin(const struct line_edit *edit, size_t at) {
    while (at > 0 && edit->text.at[at - 1] != '\n') at--;
    return at;
}

static size_t line_end(const struct line_edit *edit, size_t at) {
    while (at < edit->text.len && edit->text.at[at] != '\n') at++;
    return at;
}

/* Bytes of characters beyond ASCII are parts of words. */
static bool is_word(const struct line_edit *edit, size_t at) {
    unsigned char byte = (unsigned char)edit->text.at[at];
    return byte >= 0x80 || isalnum(byte) || byte == '_';
}

static size_t word_left(const struct line_edit *edit, size_t at) {
    while (at > 0 && !is_word(edit, at - 1)) at--;
    while (at > 0 && is_word(edit, at - 1)) at--;
    return at;
}

static size_t word_right(const struct line_edit *edit, size_t at) {
    while (at < edit->text.len && !is_word(edit, at)) at++;
    while (at < edit->text.len && is_word(edit, at)) at++;
    return at;
}

/* Up to the blank before, as the terminal's own Ctrl-W goes. */
static size_t blank_left(const struct line_edit *edit, size_t at) {
    while (at > 0 && isspace((unsigned char)edit->text.at[at - 1])) at--;
    while (at > 0 && !isspace((unsigned char)edit->text.at[at - 1])) at--;
    return at;
}

/* --- changing ----------------------------------------------------------------------------- */

/* What does not fit is left out. */
static void insert(struct line_edit *edit, struct str bytes) {
    struct buf *text = &edit->text;
    size_t moved = text->len - edit->cursor;
    if (bytes.len == 0 || bytes.len > text->max_bytes - text->len) return;
    if (!buf_append(text, bytes)) return;
    memmove(text->at + edit->cursor + bytes.len, text->at + edit->cursor, moved);
    memcpy(text->at + edit->cursor, bytes.at, bytes.len);
    edit->cursor += bytes.len;
}

static void insert_text(struct line_edit *edit, struct str bytes) {
    struct buf room;
    insert(edit, utf8_tail_take(&edit->tail, bytes, &room));
    buf_done(&room);
}

static void end_text(struct line_edit *edit) {
    insert(edit, utf8_tail_end(&edit->tail));
}

static void remove_between(struct line_edit *edit, size_t from, size_t to) {
    struct buf *text = &edit->text;
    memmove(text->at + from, text->at + to, text->len - to);
    text->len -= to - from;
    edit->cursor = from;
}

static void delete_between(struct line_edit *edit, size_t from, size_t to) {
    if (from < to) remove_between(edit, from, to);
}

static void cut_between(struct line_edit *edit, size_t from, size_t to) {
    if (from == to) return;
    buf_clear(&edit->cut);
    buf_append(&edit->cut, str_of(edit->text.at + from, to - from));
    remove_between(edit, from, to);
}

/* The end of the line; at the end, the line feed. */
static void cut_to_end(struct line_edit *edit) {
    size_t end = line_end(edit, edit->cursor);
    if (end == edit->cursor && end < edit->text.len) end++;
    cut_between(edit, edit->cursor, end);
}

static void line_edit_replace(struct line_edit *edit, struct str text) {
    buf_clear(&edit->text);
    buf_append(&edit->text, text);
    edit->cursor = edit->text.len;
}

/* --- history, and the lines of the text --------------------------------------------------- */

static void show_back(struct line_edit *edit, size_t back) {
    if (edit->back == 0) {
        buf_clear(&edit->draft);
        buf_append(&edit->draft, buf_str(&edit->text));
    }
    edit->back = back;
    line_edit_replace(edit,
                      back ? line_history_at(edit->history, back) : buf_str(&edit->draft));
}

/* As many characters after `begin` as the cursor is after its own line's beginning. */
static void to_line(struct line_edit *edit, size_t begin) {
    size_t from = line_begin(edit, edit->cursor), end = line_end(edit, begin), at = begin;
    for (; from < edit->cursor && at < end; from = step_right(edit, from))
        at = step_right(edit, at);
    edit->cursor = at < end ? at : end;
}

static void go_up(struct line_edit *edit) {
    size_t begin = line_begin(edit, edit->cursor);
    if (begin > 0)
        to_line(edit, line_begin(edit, begin - 1));
    else if (edit->history && edit->back < edit->history->count)
        show_back(edit, edit->back + 1);
}

static void go_down(struct line_edit *edit) {
    size_t end = line_end(edit, edit->cursor);
    if (end < edit->text.len)
        to_line(edit, end + 1);
    else if (edit->back > 0)
        show_back(edit, edit->back - 1);
}

/* --- keys --------------------------------------------------------------------------------- */

enum key {
    KEY_NONE,
    KEY_LEFT,
    KEY_RIGHT,
    KEY_UP,
    KEY_DOWN,
    KEY_HOME,
    KEY_END,
    KEY_DELETE,
    KEY_WORD_LEFT,
    KEY_WORD_RIGHT,
    KEY_CUT_WORD,
    KEY_CUT_WORD_RIGHT,
    KEY_NEW_LINE,
    KEY_PASTE,
};

static void press(struct line_edit *edit, enum key key) {
    size_t at = edit->cursor;
    switch (key) {
    case KEY_NONE: break;
    case KEY_LEFT: edit->cursor = step_left(edit, at); break;
    case KEY_RIGHT: edit->cursor = step_right(edit, at); break;
    case KEY_UP: go_up(edit); break;
    case KEY_DOWN: go_down(edit); break;
    case KEY_HOME: edit->cursor = line_begin(edit, at); break;
    case KEY_END: edit->cursor = line_end(edit, at); break;
    case KEY_DELETE: delete_between(edit, at, step_right(edit, at)); break;
    case KEY_WORD_LEFT: edit->cursor = word_left(edit, at); break;
    case KEY_WORD_RIGHT: edit->cursor = word_right(edit, at); break;
    case KEY_CUT_WORD: cut_between(edit, word_left(edit, at), at); break;
    case KEY_CUT_WORD_RIGHT: cut_between(edit, at, word_right(edit, at)); break;
    case KEY_NEW_LINE: insert(edit, STR("\n")); break;
    case KEY_PASTE: edit->pastes = true; break;
    }
}

/* "ESC [ parameters letter". Parameter ";5" is Ctrl, ";3" is Alt. */
static enum key line_edit_key_of(struct str parameters, char letter) {
    static const struct {
        char letter;
        enum key key, with_ctrl;
    } letters[] = {{'A', KEY_UP, KEY_UP},
                   {'B', KEY_DOWN, KEY_DOWN},
                   {'H', KEY_HOME, KEY_HOME},
                   {'F', KEY_END, KEY_END},
                   {'C', KEY_RIGHT, KEY_WORD_RIGHT},
                   {'D', KEY_LEFT, KEY_WORD_LEFT}};
    static const struct {
        const char *number;
        enum key key;
    } numbers[] = {{"1", KEY_HOME}, {"7", KEY_HOME},   {"4", KEY_END},
                   {"8", KEY_END},  {"3", KEY_DELETE}, {"200", KEY_PASTE}};
    bool modified = str_ends(parameters, STR(";5")) || str_ends(parameters, STR(";3"));
    for (size_t i = 0; i < ARRAY_LEN(letters); i++) {
        if (letters[i].letter == letter)
            return modified ? letters[i].with_ctrl : letters[i].key;
    }
    for (size_t i = 0; letter == '~' && i < ARRAY_LEN(numbers); i++) {
        if (str_equal(parameters, str_from(numbers[i].number))) return numbers[i].key;
    }
    return KEY_NONE;
}

static enum key alt_key(unsigned char byte) {
    switch (byte) {
    case 'b': return KEY_WORD_LEFT;
    case 'f': return KEY_WORD_RIGHT;
    case 'd': return KEY_CUT_WORD_RIGHT;
    case '\r':
    case '\n': return KEY_NEW_LINE;
    case DEL:
    case CTRL('H'): return KEY_CUT_WORD;
    default: return KEY_NONE;
    }
}

/* An odd number of backslashes ends the text: the last one means that it goes on. */
static enum line_edit_event line_edit_enter(struct line_edit *edit) {
    size_t count = 0;
    while (count < edit->text.len && edit->text.at[edit->text.len - 1 - count] == '\\') count++;
    if (count % 2 == 0 || edit->cursor != edit->text.len) return LINE_ENTERED;
    edit->text.at[edit->text.len - 1] = '\n';
    return LINE_MORE;
}

static enum line_edit_event end_or_delete(struct line_edit *edit) {
    if (edit->text.len == 0) return LINE_OVER;
    press(edit, KEY_DELETE);
    return LINE_MORE;
}

static enum line_edit_event control(struct line_edit *edit, unsigned char byte) {
    size_t at = edit->cursor;
    switch (byte) {
    case ESC: edit->state = KEY_ESCAPE; break;
    case '\r':
    case '\n': return line_edit_enter(edit);
    case CTRL('D'): return end_or_delete(edit);
    case CTRL('L'): return LINE_CLEAR;
    case CTRL('A'): press(edit, KEY_HOME); break;
    case CTRL('E'): press(edit, KEY_END); break;
    case CTRL('B'): press(edit, KEY_LEFT); break;
    case CTRL('F'): press(edit, KEY_RIGHT); break;
    case CTRL('P'): press(edit, KEY_UP); break;
    case CTRL('N'): press(edit, KEY_DOWN); break;
    case CTRL('K'): cut_to_end(edit); break;
    case CTRL('U'): cut_between(edit, line_begin(edit, at), at); break;
    case CTRL('W'): cut_between(edit, blank_left(edit, at), at); break;
    case CTRL('Y'): insert(edit, buf_str(&edit->cut)); break;
    case CTRL('H'):
    case DEL: delete_between(edit, step_left(edit, at), at); break;
    default: break; /* no text */
    }
    return LINE_MORE;
}

/* --- a paste ------------------------------------------------------------------------------ */

/* Line ends become line feeds; a carriage return and its line feed may come apart. */
static void insert_pasted(struct line_edit *edit, struct str bytes) {
    struct buf text;
    buf_init(&text, bytes.len + 1);
    for (size_t i = 0; i < bytes.len; i++) {
        char byte = bytes.at[i];
        if (byte != '\n' || !edit->paste_cr) buf_append_byte(&text, byte == '\r' ? '\n' : byte);
        edit->paste_cr = byte == '\r';
    }
    insert_text(edit, buf_str(&text));
    buf_done(&text);
}

/* What only began like the end of the paste is text. */
static void eat_held(struct line_edit *edit, char byte) {
    struct buf *held = &edit->paste_held;
    buf_append_byte(held, byte);
    if (str_equal(buf_str(held), paste_end)) {
        end_text(edit);
        edit->pastes = edit->paste_cr = false;
        buf_clear(held);
    } else if (!str_starts(paste_end, buf_str(held))) {
        held->len--;
        insert_pasted(edit, buf_str(held));
        buf_clear(held);
        if (byte == ESC)
            buf_append_byte(held, byte);
        else
            insert_pasted(edit, str_of(&byte, 1));
    }
}

static void eat_pasted(struct line_edit *edit, struct str *bytes) {
    size_t plain = edit->paste_held.len ? 0 : str_find_byte(*bytes, ESC);
    insert_pasted(edit, str_head(*bytes, plain));
    *bytes = str_skip(*bytes, plain);
    if (bytes->len == 0) return;
    char byte = bytes->at[0];
    *bytes = str_skip(*bytes, 1);
    eat_held(edit, byte);
}

/* --- bytes -------------------------------------------------------------------------------- */

static bool is_control(unsigned char byte) {
    return byte < 0x20 || byte == DEL;
}

static enum line_edit_event eat_ground(struct line_edit *edit, struct str *bytes) {
    size_t plain = 0;
    while (plain < bytes->len && !is_control((unsigned char)bytes->at[plain])) plain++;
    insert_text(edit, str_head(*bytes, plain));
    *bytes = str_skip(*bytes, plain);
    if (bytes->len == 0) return LINE_MORE;
    unsigned char byte = (unsigned char)bytes->at[0];
    *bytes = str_skip(*bytes, 1);
    end_text(edit);
    return control(edit, byte);
}

static void eat_escape(struct line_edit *edit, unsigned char byte) {
    edit->sequence_len = 0;
    edit->state = byte == '[' ? KEY_SEQUENCE : byte == 'O' ? KEY_LETTER : KEY_GROUND;
    if (byte == ESC) edit->state = KEY_ESCAPE;
    if (edit->state == KEY_GROUND) press(edit, alt_key(byte));
}

/* A sequence that is too long is eaten, and is no key. */
static void eat_sequence(struct line_edit *edit, unsigned char byte) {
    bool fits = edit->sequence_len < sizeof(edit->sequence);
    if (byte >= 0x20 && byte < 0x40) {
        if (fits) edit->sequence[edit->sequence_len++] = (char)byte;
        return;
    }
    edit->state = byte == ESC ? KEY_ESCAPE : KEY_GROUND;
    if (fits && byte >= 0x40)
        press(edit, line_edit_key_of(str_of(edit->sequence, edit->sequence_len), (char)byte));
}

enum line_edit_event line_edit_eat(struct line_edit *edit, struct str *bytes) {
    enum line_edit_event event = LINE_MORE;
    while (bytes->len && event == LINE_MORE) {
        if (edit->pastes) {
            eat_pasted(edit, bytes);
            continue;
        }
        if (edit->state == KEY_GROUND) {
            event = eat_ground(edit, bytes);
            continue;
        }
        unsigned char byte = (unsigned char)bytes->at[0];
        *bytes = str_skip(*bytes, 1);
        if (edit->state == KEY_ESCAPE)
            eat_escape(edit, byte);
        else if (edit->state == KEY_SEQUENCE)
            eat_sequence(edit, byte);
        else
            eat_sequence(edit, byte >= 0x40 ? byte : DEL);
    }
    return event;
}
