#include "cli/line_draw.h"

#include "text/terminal_text.h"
#include "text/width.h"

struct pen {
    size_t row, column;
};

/* What shows a character, and how wide that is. */
struct shown {
    struct str text;
    unsigned width;
    char room[8];
};

/* --- characters --------------------------------------------------------------------------- */

static void show_safely(struct str character, struct shown *ret) {
    struct buf out = {
        .at = ret->room, .room = sizeof(ret->room), .max_bytes = sizeof(ret->room)};
    size_t len;
    ret->text = STR("?");
    ret->width = 1;
    if (!terminal_text_append(&out, character, TERMINAL_ONE_LINE) || !out.len) return;
    ret->text = str_of(out.at, out.len);
    ret->width = width_of(width_decode(ret->text, &len));
}

/* Take the first character of the text. */
static void take_shown(struct str *text, struct shown *ret) {
    size_t len;
    uint32_t code_point = width_decode(*text, &len);
    struct str character = str_head(*text, len);
    *text = str_skip(*text, len);
    ret->text = character;
    ret->width = 1;
    if (code_point < 0x20 || code_point >= 0x7F) show_safely(character, ret);
}

/* A character that does not fit in the rest of a row begins the next one. */
static bool pen_wraps(const struct pen *pen, size_t columns, unsigned width) {
    return pen->column + width > columns;
}

static void pen_new_row(struct pen *pen) {
    pen->row++;
    pen->column = 0;
}

/* --- rows --------------------------------------------------------------------------------- */

struct drawing {
    size_t columns, top, bottom; /* the rows that are shown: top to bottom - 1 */
    struct pen pen;
    struct buf *out; /* NULL: measured only */
};

static void draw_new_row(struct drawing *drawing) {
    pen_new_row(&drawing->pen);
    size_t row = drawing->pen.row;
    if (drawing->out && row > drawing->top && row < drawing->bottom)
        buf_append(drawing->out, STR("\r\n"));
}

static void draw_text(struct drawing *drawing, struct str text) {
    while (text.len) {
        struct shown shown;
        if (text.at[0] == '\n') {
            draw_new_row(drawing);
            text = str_skip(text, 1);
            continue;
        }
        take_shown(&text, &shown);
        if (pen_wraps(&drawing->pen, drawing->columns, shown.width)) draw_new_row(drawing);
        size_t row = drawing->pen.row;
        if (drawing->out && row >= drawing->top && row < drawing->bottom)
            buf_append(drawing->out, shown.text);
        drawing->pen.column += shown.width;
    }
}

/* A cursor after a full row is at the beginning of the next one. */
static struct pen draw_cursor(struct drawing *drawing) {
    if (drawing->pen.column >= drawing->columns) draw_new_row(drawing);
    return drawing->pen;
}

/* Draw or measure all; returns where the cursor is. */
static struct pen draw_all(struct drawing *drawing, const struct line_edit *edit,
                           struct str prompt) {
    struct str text = buf_str(&edit->text);
    draw_text(drawing, prompt);
    draw_text(drawing, str_head(text, edit->cursor));
    struct pen cursor = draw_cursor(drawing);
    draw_text(drawing, str_skip(text, edit->cursor));
    return cursor;
}

/* --- the whole ---------------------------------------------------------------------------- */

static void move_up(size_t rows, struct buf *out) {
    if (rows) buf_printf(out, "\x1b[%zuA", rows);
}

static void erase(const struct line_screen *screen, struct buf *out) {
    if (!screen->drawn) return;
    buf_append_byte(out, '\r');
    move_up(screen->cursor_row, out);
    buf_append(out, STR("\x1b[J"));
}

void line_draw(const struct line_edit *edit, struct str prompt, struct line_screen *screen,
               struct buf *out) {
    struct drawing measured = {.columns = screen->columns < 2 ? 2 : screen->columns};
    struct drawing drawing = measured;
    struct pen cursor = draw_all(&measured, edit, prompt);
    size_t rows = measured.pen.row + 1, shown = screen->rows ? screen->rows : 1;
    drawing.top = cursor.row >= shown ? cursor.row + 1 - shown : 0;
    drawing.bottom = rows - drawing.top > shown ? drawing.top + shown : rows;
    drawing.out = out;
    erase(screen, out);
    (void)draw_all(&drawing, edit, prompt);
    size_t last = drawing.bottom - 1;
    bool at_end = edit->cursor == edit->text.len && last == cursor.row;
    move_up(last - cursor.row, out);
    if (!at_end) buf_append_byte(out, '\r');
    if (!at_end && cursor.column) buf_printf(out, "\x1b[%zuC", cursor.column);
    screen->cursor_row = cursor.row - drawing.top;
    screen->drawn = true;
}
