#include "base/utf8_tail.h"

#include "base/utf8.h"
#include "helper/assert_str.h"

#define BAD "\xEF\xBF\xBD"

static void feed(struct utf8_tail *tail, struct str bytes, struct buf *text) {
    struct buf room;
    struct str piece = utf8_tail_take(tail, bytes, &room);
    assert_true(utf8_valid(piece));
    buf_append(text, piece);
    buf_done(&room);
}

static void a_text_reads_the_same_however_it_is_cut(void **state) {
    (void)state;
    struct str text = STR("a\xC3\xA9\xE2\x82\xAC\xFF\xF0\x9F\x98\x80z\xE2\x82q");
    struct str expect = STR("a\xC3\xA9\xE2\x82\xAC" BAD "\xF0\x9F\x98\x80z" BAD "q");
    for (size_t first = 0; first <= text.len; first++) {
        for (size_t second = first; second <= text.len; second++) {
            struct utf8_tail tail = {.len = 0};
            struct buf all;
            buf_init(&all, KIB);
            feed(&tail, str_head(text, first), &all);
            feed(&tail, str_skip(str_head(text, second), first), &all);
            feed(&tail, str_skip(text, second), &all);
            assert_str(utf8_tail_end(&tail), "");
            assert_str(buf_str(&all), expect.at);
            buf_done(&all);
        }
    }
}

static void valid_text_is_not_copied(void **state) {
    (void)state;
    struct utf8_tail tail = {.len = 0};
    struct str text = STR("caf\xC3\xA9");
    struct buf room;
    struct str piece = utf8_tail_take(&tail, text, &room);
    assert_ptr_equal(piece.at, text.at);
    assert_int_equal(piece.len, text.len);
    buf_done(&room);
}

static void a_character_that_never_comes_whole_ends_as_one_replacement(void **state) {
    (void)state;
    struct str begun = STR("\xF0\x9F\x98");
    for (size_t len = 1; len <= begun.len; len++) {
        struct utf8_tail tail = {.len = 0};
        struct buf all;
        buf_init(&all, KIB);
        feed(&tail, str_head(begun, len), &all);
        assert_str(buf_str(&all), "");
        assert_str(utf8_tail_end(&tail), BAD);
        assert_str(utf8_tail_end(&tail), "");
        buf_done(&all);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_text_reads_the_same_however_it_is_cut),
        cmocka_unit_test(valid_text_is_not_copied),
        cmocka_unit_test(a_character_that_never_comes_whole_ends_as_one_replacement),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
