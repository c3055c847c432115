/* What others say, on a terminal: nothing of it acts there. */
#include "text/terminal_text.h"

#include "base/utf8.h"
#include "helper/assert_str.h"
#include "wire/json.h"

static struct buf out;

static int fresh(void **state) {
    (void)state;
    buf_init(&out, 1 * MIB);
    return 0;
}

static int clear(void **state) {
    (void)state;
    buf_done(&out);
    return 0;
}

static const struct {
    const char *text, *lines, *one_line;
} cases[] = {
    {"plain", "plain", "plain"},
    {"Grüße 系统 😀\tx\n", "Grüße 系统 😀\tx\n", "Grüße 系统 😀 x "},
    {"a\r\nb\r", "a\nb", "a b"},
    {"bad\rgood", "bad␍good", "bad good"},
    {"\x1b[2J\x1b]0;title\x07", "␛[2J␛]0;title␇", "␛[2J␛]0;title␇"},
    {"\x1b]52;c;cm0gLXJm\x1b\\", "␛]52;c;cm0gLXJm␛\\", "␛]52;c;cm0gLXJm␛\\"},
    {"\x1bP$q\"p\x1b\\", "␛P$q\"p␛\\", "␛P$q\"p␛\\"},
    {"\b\b\x7f", "␈␈␡", "␈␈␡"},
    {"\xc2\x9b"
     "31m",
     "\xef\xbf\xbd"
     "31m",
     "\xef\xbf\xbd"
     "31m"},
    {"\x9b"
     "31m",
     "\xef\xbf\xbd"
     "31m",
     "\xef\xbf\xbd"
     "31m"},
    {"a\xe2\x80\xae"
     "b\xe2\x81\xa6",
     "a\xef\xbf\xbd"
     "b\xef\xbf\xbd",
     "a\xef\xbf\xbd"
     "b\xef\xbf\xbd"},
    {"\xe2\x80\xa8", "\xef\xbf\xbd", "\xef\xbf\xbd"},
    {"\xf3\xa0\x81\x81x", "\xef\xbf\xbdx", "\xef\xbf\xbdx"},
    {"👩\xe2\x80\x8d💻", "👩\xe2\x80\x8d💻", "👩\xe2\x80\x8d💻"}, /* joined on purpose */
};

static void what_acts_on_a_terminal_becomes_visible(void **state) {
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        buf_clear(&out);
        assert_true(terminal_text_append(&out, str_from(cases[i].text), TERMINAL_LINES));
        assert_str(buf_str(&out), cases[i].lines);
        buf_clear(&out);
        assert_true(terminal_text_append(&out, str_from(cases[i].text), TERMINAL_ONE_LINE));
        assert_str(buf_str(&out), cases[i].one_line);
    }
}

static void json_keeps_its_meaning(void **state) {
    (void)state;
    struct json value;
    struct err e;
    struct str text, was = STR("\"a\xc2\x9b\x7f\xe2\x80\xae\xf3\xa0\x81\x81\\u001b é\"");
    struct arena *arena = arena_new(KIB);
    assert_true(terminal_text_append_json(&out, was));
    assert_str(buf_str(&out), "\"a\\u009b\\u007f\\u202e\\udb40\\udc41\\u001b é\"");
    assert_true(json_read(buf_str(&out), &value, &e));
    assert_true(json_str(value, arena, &text));
    assert_str(text, "a\xc2\x9b\x7f\xe2\x80\xae\xf3\xa0\x81\x81\x1b é");
    buf_clear(&out);
    assert_true(terminal_text_append_json(&out, STR("[1,\n\x1b\xff]")));
    assert_str(buf_str(&out), "[1, \\u001b\xef\xbf\xbd]");
    arena_free(arena);
}

/* Whatever the bytes are. */
static void nothing_else_gets_through(void **state) {
    (void)state;
    uint32_t seed = 1;
    for (int round = 0; round < 2000; round++) {
        char bytes[64];
        for (size_t i = 0; i < sizeof(bytes); i++) {
            seed = seed * 1664525 + 1013904223;
            bytes[i] = (char)(seed >> 24);
            if (seed & 0x10000) bytes[i] = "\x1b\xc2\x9b\xe2\x80\xae\r\n"[(seed >> 8) % 8];
        }
        struct str text = exact_copy(str_of(bytes, seed % sizeof(bytes)));
        buf_clear(&out);
        assert_true(
            terminal_text_append(&out, text, round % 2 ? TERMINAL_LINES : TERMINAL_ONE_LINE));
        assert_true(utf8_valid(buf_str(&out)));
        for (size_t i = 0; i < out.len; i++) {
            unsigned char c = (unsigned char)out.at[i];
            assert_true(c >= 0x20 || (round % 2 && (c == '\n' || c == '\t')));
            assert_true(c != 0x7F);
            if (i + 1 < out.len && c == 0xC2) assert_true((unsigned char)out.at[i + 1] >= 0xA0);
        }
        free((void *)(uintptr_t)text.at);
    }
}

static void a_full_buffer_is_reported(void **state) {
    (void)state;
    struct buf small;
    buf_init(&small, 2);
    assert_false(terminal_text_append(&small, STR("\x1b"), TERMINAL_LINES));
    buf_done(&small);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(what_acts_on_a_terminal_becomes_visible, fresh, clear),
        cmocka_unit_test_setup_teardown(json_keeps_its_meaning, fresh, clear),
        cmocka_unit_test_setup_teardown(nothing_else_gets_through, fresh, clear),
        cmocka_unit_test(a_full_buffer_is_reported),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
