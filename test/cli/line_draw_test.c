/* What is written to a terminal, checked on a small one: rows of cells and a cursor. */
#include "cli/line_draw.h"

#include "helper/assert_str.h"
#include "text/width.h"

#define COLUMNS 8
#define ROWS 4

static struct line_edit edit;
static struct line_screen screen;

/* The terminal: it obeys what line_draw() writes, and nothing else. */
static struct {
    char cells[ROWS][COLUMNS][8];
    size_t row, column;
} terminal;

static void scroll(void) {
    memmove(terminal.cells[0], terminal.cells[1], sizeof(terminal.cells[0]) * (ROWS - 1));
    memset(terminal.cells[ROWS - 1], 0, sizeof(terminal.cells[0]));
    terminal.row--;
}

static void erase_below(void) {
    for (size_t row = terminal.row; row < ROWS; row++) {
        size_t from = row == terminal.row ? terminal.column : 0;
        memset(terminal.cells[row][from], 0, (COLUMNS - from) * sizeof(terminal.cells[0][0]));
    }
}

static struct str obey_escape(struct str text) {
    size_t number = 0, at = 2;
    for (; at < text.len && text.at[at] >= '0' && text.at[at] <= '9'; at++)
        number = 10 * number + (size_t)(text.at[at] - '0');
    assert_true(at < text.len);
    if (text.at[at] == 'J') {
        erase_below();
    } else if (text.at[at] == 'A') {
        assert_true(number > 0 && number <= terminal.row);
        terminal.row -= number;
    } else {
        assert_int_equal(text.at[at], 'C');
        terminal.column += number;
        assert_true(terminal.column < COLUMNS);
    }
    return str_skip(text, at + 1);
}

static struct str put_character(struct str text) {
    size_t len;
    unsigned width = width_of(width_decode(text, &len));
    assert_true(terminal.column + width <= COLUMNS); /* it never relies on wrapping */
    size_t column = width ? terminal.column : terminal.column - 1;
    char *cell = terminal.cells[terminal.row][column];
    assert_true(strlen(cell) + len < sizeof(terminal.cells[0][0]));
    memcpy(cell + strlen(cell), text.at, len);
    terminal.column += width;
    return str_skip(text, len);
}

static void obey(struct str text) {
    while (text.len) {
        if (str_starts(text, STR("\x1b["))) {
            text = obey_escape(text);
        } else if (text.at[0] == '\r') {
            terminal.column = 0;
            text = str_skip(text, 1);
        } else if (text.at[0] == '\n') {
            if (++terminal.row == ROWS) scroll();
            text = str_skip(text, 1);
        } else {
            assert_true((unsigned char)text.at[0] >= 0x20 && text.at[0] != 0x7F);
            text = put_character(text);
        }
    }
}

static void draw(void) {
    struct buf out;
    buf_init(&out, 64 * KIB);
    screen.columns = COLUMNS;
    screen.rows = ROWS;
    line_draw(&edit, STR("> "), &screen, &out);
    obey(buf_str(&out));
    buf_done(&out);
}

/* The rows, apart by /, with the cursor's place behind. */
static void assert_screen(const char *expected) {
    struct buf seen;
    buf_init(&seen, KIB);
    for (size_t row = 0; row < ROWS; row++) {
        if (row) buf_append_byte(&seen, '/');
        for (size_t column = 0; column < COLUMNS; column++)
            buf_append(&seen, str_from(terminal.cells[row][column]));
    }
    while (seen.len && seen.at[seen.len - 1] == '/') seen.len--;
    buf_printf(&seen, " %zu,%zu", terminal.row, terminal.column);
    assert_str(buf_str(&seen), expected);
    buf_done(&seen);
}

static void type(const char *keys) {
    struct str text = str_from(keys);
    (void)line_edit_eat(&edit, &text);
    draw();
}

static int set_up(void **state) {
    (void)state;
    memset(&terminal, 0, sizeof(terminal));
    screen = (struct line_screen){.drawn = false};
    line_edit_init(&edit, NULL, 64 * KIB);
    line_edit_begin(&edit);
    draw();
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    line_edit_done(&edit);
    return 0;
}

static void a_text_stands_after_its_prompt_and_wraps(void **state) {
    (void)state;
    assert_screen(">  0,2");
    type("hello");
    assert_screen("> hello 0,7");
    type("!");
    assert_screen("> hello! 1,0");
    type("ab");
    assert_screen("> hello!/ab 1,2");
    type("\x01");
    assert_screen("> hello!/ab 0,2");
    type("\x0b");
    assert_screen(">  0,2");
}

static void wide_characters_are_never_cut_by_a_row(void **state) {
    (void)state;
    type("\xe6\xbc\xa2\xe5\xad\x97"
         "a");
    assert_screen("> \xe6\xbc\xa2\xe5\xad\x97"
                  "a 0,7");
    type("\xe6\xbc\xa2");
    assert_screen("> \xe6\xbc\xa2\xe5\xad\x97"
                  "a/\xe6\xbc\xa2 1,2");
    type("\x02\x02\x02");
    assert_screen("> \xe6\xbc\xa2\xe5\xad\x97"
                  "a/\xe6\xbc\xa2 0,4");
    type("\x15"
         "e\xcc\x81"
         "x\x02");
    assert_screen("> e\xcc\x81"
                  "x\xe5\xad\x97"
                  "a/\xe6\xbc\xa2 0,3");
}

static void lines_are_rows_and_only_those_around_the_cursor_are_shown(void **state) {
    (void)state;
    type("a\x1b\r"
         "b\x1b\r"
         "c\x1b\r"
         "d");
    assert_screen("> a/b/c/d 3,1");
    type("\x1b\r"
         "e");
    assert_screen("b/c/d/e 3,1");
    type("\x1b[A\x1b[A\x1b[A\x1b[A");
    assert_screen("> a/b/c/d 0,3");
    type("\x1b[B\x1b[B\x1b[B\x1b[B\x15");
    assert_screen("b/c/d 3,0");
}

static void nothing_of_the_text_moves_the_terminal(void **state) {
    (void)state;
    type("\x1b[200~\x1b[2J\x07\t\xc2\x9b\xe2\x80\xae"
         "\x1b[201~");
    assert_screen("> \xe2\x90\x9b[2J\xe2\x90\x87 /\xef\xbf\xbd\xef\xbf\xbd 1,2");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_text_stands_after_its_prompt_and_wraps, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(wide_characters_are_never_cut_by_a_row, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(
            lines_are_rows_and_only_those_around_the_cursor_are_shown, set_up, tear_down),
        cmocka_unit_test_setup_teardown(nothing_of_the_text_moves_the_terminal, set_up,
                                        tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
