#include "wire/lines.h"

#include "helper/assert_str.h"

static void take_all(struct lines *lines, struct buf *seen) {
    struct str line;
    while (lines_next(lines, &line) == LINES_ONE) {
        buf_append_byte(seen, '[');
        buf_append(seen, line);
        buf_append_byte(seen, ']');
    }
}

static void a_stream_reads_the_same_however_it_is_cut(void **state) {
    (void)state;
    struct str text = STR("one\ntwo\r\n\nth\rree\nnot whole");
    for (size_t first = 0; first <= text.len; first++) {
        for (size_t second = first; second <= text.len; second++) {
            struct lines lines;
            struct buf seen;
            buf_init(&seen, KIB);
            lines_init(&lines, 64);
            assert_true(lines_feed(&lines, str_head(text, first)));
            take_all(&lines, &seen);
            assert_true(lines_feed(&lines, str_skip(str_head(text, second), first)));
            assert_true(lines_feed(&lines, str_skip(text, second)));
            take_all(&lines, &seen);
            assert_str(buf_str(&seen), "[one][two][][th\rree]");
            assert_int_equal(lines_waiting(&lines), 9);
            lines_done(&lines);
            buf_done(&seen);
        }
    }
}

static void a_line_that_is_too_long_is_found_before_its_end(void **state) {
    (void)state;
    struct str text = STR("12345678\n123456789");
    struct lines lines;
    struct str line;
    lines_init(&lines, 8);
    assert_true(lines_feed(&lines, text));
    assert_int_equal(lines_next(&lines, &line), LINES_ONE);
    assert_str(line, "12345678");
    assert_int_equal(lines_next(&lines, &line), LINES_TOO_LONG);
    assert_int_equal(lines_next(&lines, &line), LINES_TOO_LONG);
    lines_done(&lines);
}

static void lines_that_are_not_taken_have_a_limit(void **state) {
    (void)state;
    struct lines lines;
    size_t fed = 0;
    lines_init(&lines, 100);
    while (lines_feed(&lines, STR("a line of some bytes\n"))) fed += 21;
    assert_true(fed > 100 && fed < MIB);
    assert_int_equal(lines_waiting(&lines), fed);
    struct buf seen;
    buf_init(&seen, MIB);
    take_all(&lines, &seen);
    assert_int_equal(seen.len, fed / 21 * 22);
    assert_true(lines_feed(&lines, STR("more\n")));
    lines_done(&lines);
    buf_done(&seen);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stream_reads_the_same_however_it_is_cut),
        cmocka_unit_test(a_line_that_is_too_long_is_found_before_its_end),
        cmocka_unit_test(lines_that_are_not_taken_have_a_limit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
