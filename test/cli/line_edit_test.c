/* What keys do to a text, however their bytes are cut. */
#include "cli/line_edit.h"

#include "helper/assert_str.h"

#define LEFT "\x1b[D"
#define RIGHT "\x1b[C"
#define UP "\x1b[A"
#define DOWN "\x1b[B"
#define PASTE "\x1b[200~"
#define PASTED "\x1b[201~"

static struct line_history history;
static struct line_edit edit;

static int set_up(void **state) {
    (void)state;
    line_history_init(&history, STR_EMPTY);
    line_edit_init(&edit, &history, 64);
    line_edit_begin(&edit);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    line_edit_done(&edit);
    line_history_done(&history);
    return 0;
}

/* The text with | at the cursor. */
static void write_text(struct buf *out) {
    buf_append(out, str_head(buf_str(&edit.text), edit.cursor));
    buf_append_byte(out, '|');
    buf_append(out, str_skip(buf_str(&edit.text), edit.cursor));
}

static enum line_edit_event eat(struct str keys) {
    enum line_edit_event event = line_edit_eat(&edit, &keys);
    assert_true(event != LINE_MORE || keys.len == 0);
    return event;
}

static void assert_text(const char *expected) {
    struct buf seen;
    buf_init(&seen, KIB);
    write_text(&seen);
    assert_str(buf_str(&seen), expected);
    buf_done(&seen);
}

/* In one piece, and cut at each byte. */
static void assert_keys(const char *keys, const char *expected) {
    struct str all = str_from(keys);
    for (size_t cut = 0; cut <= all.len; cut++) {
        line_edit_begin(&edit);
        buf_clear(&edit.cut);
        assert_int_equal(eat(str_head(all, cut)), LINE_MORE);
        assert_int_equal(eat(str_skip(all, cut)), LINE_MORE);
        assert_text(expected);
    }
}

static void keys_move_and_change_the_text(void **state) {
    (void)state;
    static const struct {
        const char *keys, *text;
    } rows[] = {
        {"abc", "abc|"},
        {"abc" LEFT LEFT "x", "ax|bc"},
        {"abc" LEFT LEFT LEFT LEFT RIGHT, "a|bc"},
        {"abc" RIGHT, "abc|"},
        {"abc\x02\x02\x06", "ab|c"},
        {"abc\x01x\x05y", "xabcy|"},
        {"abc\x1b[Hx\x1b[Fy", "xabcy|"},
        {"abc\x1b[1~x\x1b[4~y", "xabcy|"},
        {"abc\x1b[7~x\x1b[8~y", "xabcy|"},
        {"abc\x1bOHx\x1bOFy", "xabcy|"},
        {"abc\x7f\x08", "a|"},
        {"\x7f\x1b[3~", "|"},
        {"abc\x01\x1b[3~\x04", "|c"},
        {"one two\x17", "one |"},
        {"one two  \x17", "one |"},
        {"one, two"
         "\x1b"
         "\x7f",
         "one, |"},
        {"one two\x1b[1;5D\x0b", "one |"},
        {"one two\x1b"
         "b\x1b"
         "bx\x1b[1;5C,",
         "xone,| two"},
        {"one two\x01\x1b"
         "f\x1b"
         "d",
         "one|"},
        {"one two" LEFT LEFT LEFT "\x15", "|two"},
        {"one two" LEFT LEFT LEFT "\x0b\x19\x19", "one twotwo|"},
        {"a\x1b\rb", "a\nb|"},
        {"a\\\rb", "a\nb|"},
        {"a\x1b\rb\x01\x0b\x0b", "a\n|"},
        {"ab\x1b\rcd\x1b\re" UP UP, "a|b\ncd\ne"},
        {"abcd\x1b\re\x1b\rfgh" UP DOWN, "abcd\ne\nf|gh"},
        {"a"
         "\x1b[99;9z"
         "b\x1b[<1;2M"
         "c\x1bOP"
         "d\x1b[15~",
         "abcd|"},
        {"a\x1b[111111111111111111111111Cb", "ab|"},
        {"a\x1b\x1b[Db", "b|a"},
        {"a\x1b[\x1b[Db", "b|a"},
        {"a\x09"
         "b\x1b"
         "zc",
         "abc|"},
        /* characters of several bytes, and those that combine */
        {"\xc3\xa4\xe6\xbc\xa2\xf0\x9f\x98\x80" LEFT LEFT,
         "\xc3\xa4|\xe6\xbc\xa2\xf0\x9f\x98\x80"},
        {"ae\xcc\x81o" LEFT LEFT, "a|e\xcc\x81o"},
        {"ae\xcc\x81"
         "\x7f",
         "a|"},
        {"e\xcc\x81"
         "\x01\x1b[3~",
         "|"},
        {"a\xff"
         "b",
         "a\xef\xbf\xbd"
         "b|"},
        /* pastes */
        {PASTE "a\rb\r\nc\nd" PASTED "e", "a\nb\nc\nd"
                                          "e|"},
        {PASTE "a\x1b[Db\x03" PASTED, "a\x1b[Db\x03|"},
        {PASTE "a\x1b\x1b[20" PASTED, "a\x1b\x1b[20|"},
        {"ab" LEFT PASTE "x\x7f" PASTED, "ax\x7f|b"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        assert_keys(rows[i].keys, rows[i].text);
    }
}

static void enter_ends_the_text_and_leaves_the_rest(void **state) {
    (void)state;
    struct str keys = STR("a\\\\\rb");
    assert_int_equal(line_edit_eat(&edit, &keys), LINE_ENTERED);
    assert_text("a\\\\|");
    assert_str(keys, "b");
    line_edit_begin(&edit);
    assert_int_equal(eat(STR("a\xc3\n")), LINE_ENTERED);
    assert_text("a\xef\xbf\xbd|");
    line_edit_begin(&edit);
    assert_int_equal(eat(STR("a\\" LEFT "\r")), LINE_ENTERED); /* not at the end */
    line_edit_begin(&edit);
    assert_int_equal(eat(STR("\x0c")), LINE_CLEAR);
}

static void ctrl_d_is_the_end_only_where_nothing_is_typed(void **state) {
    (void)state;
    assert_int_equal(eat(STR("a\x04")), LINE_MORE);
    assert_text("a|");
    assert_int_equal(eat(STR("\x7f\x04")), LINE_OVER);
}

static void up_and_down_go_through_the_history_and_back_to_the_draft(void **state) {
    (void)state;
    line_history_add(&history, STR("first"));
    line_history_add(&history, STR("two\nlines"));
    assert_keys("dra" UP, "two\nlines|");
    assert_keys("dra" UP UP UP, "first|");
    assert_keys("dra" UP UP UP UP DOWN, "two\nlines|");
    assert_keys("dra" UP UP UP DOWN DOWN "ft", "draft|");
    assert_keys("dra\x10\x10\x10\x0e\x0e\x0e", "dra|");
    assert_keys(UP "!" DOWN, "|");
}

/* A text that is full takes no more, until something is deleted. */
static void what_does_not_fit_is_left_out(void **state) {
    (void)state;
    for (int i = 0; i < 80; i++) (void)eat(STR("x"));
    assert_int_equal(edit.text.len, 64);
    assert_int_equal(eat(STR(PASTE "too long" PASTED "\x7f")), LINE_MORE);
    assert_int_equal(edit.text.len, 63);
    assert_int_equal(eat(STR("y\r")), LINE_ENTERED);
    assert_true(str_ends(buf_str(&edit.text), STR("xy")));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(keys_move_and_change_the_text, set_up, tear_down),
        cmocka_unit_test_setup_teardown(enter_ends_the_text_and_leaves_the_rest, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(ctrl_d_is_the_end_only_where_nothing_is_typed, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(
            up_and_down_go_through_the_history_and_back_to_the_draft, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_does_not_fit_is_left_out, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
