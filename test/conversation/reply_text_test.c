#include "conversation/reply_text.h"

#include "helper/assert_str.h"

#include "base/mem.h"

#include <stdlib.h>

#define ALL_BYTES (200 * KIB)

/* Bytes whose place is seen, and no multiple of any piece. */
static struct str letters(void) {
    static char bytes[ALL_BYTES];
    for (size_t i = 0; i < sizeof(bytes); i++) bytes[i] = (char)('a' + i % 23);
    return str_of(bytes, sizeof(bytes));
}

static void append(struct reply_text *text, struct str bytes, size_t step) {
    for (; bytes.len; bytes = str_skip(bytes, step))
        assert_true(reply_text_append(text, str_head(bytes, step)));
}

static void assert_whole(struct reply_text *text, struct str expected) {
    assert_int_equal(text->len, expected.len);
    struct str whole = reply_text_whole(text);
    assert_int_equal(whole.len, expected.len);
    assert_memory_equal(whole.at, expected.at, expected.len);
}

static void it_reads_as_it_was_written_however_it_came(void **state) {
    (void)state;
    static const size_t steps[] = {1, 7, 64, 479, 480, 481, 4000, 4096, 4097, 70000, ALL_BYTES};
    struct str all = letters();
    for (size_t i = 0; i < ARRAY_LEN(steps); i++) {
        struct reply_text text;
        reply_text_init(&text, SIZE_MAX);
        append(&text, all, steps[i]);
        assert_whole(&text, all);
        reply_text_clear(&text);
    }
}

static void it_grows_on_after_it_was_read(void **state) {
    (void)state;
    struct str all = letters();
    for (size_t cut = 0; cut < 9 * KIB; cut += 311) {
        struct reply_text text;
        reply_text_init(&text, SIZE_MAX);
        append(&text, str_head(all, cut), 100);
        assert_whole(&text, str_head(all, cut));
        append(&text, str_skip(all, cut), 1000);
        assert_whole(&text, all);
        reply_text_clear(&text);
    }
}

static void an_empty_one_reads_as_nothing(void **state) {
    (void)state;
    struct reply_text text;
    reply_text_init(&text, 8);
    assert_str(reply_text_whole(&text), "");
    assert_true(reply_text_append(&text, STR_EMPTY));
    assert_true(reply_text_append(&text, str_of(NULL, 0)));
    assert_str(reply_text_whole(&text), "");
    assert_true(reply_text_append(&text, STR("words")));
    reply_text_clear(&text);
    assert_str(reply_text_whole(&text), "");
    reply_text_clear(&text);
}

static void nothing_is_taken_beyond_the_limit(void **state) {
    (void)state;
    struct str all = letters();
    for (size_t limit = 0; limit < 600; limit++) {
        struct reply_text text;
        reply_text_init(&text, limit);
        append(&text, str_head(all, limit), 64);
        assert_false(reply_text_append(&text, STR("x")));
        assert_whole(&text, str_head(all, limit));
        reply_text_clear(&text);
        assert_false(reply_text_append(&text, str_head(all, limit + 1)));
        if (limit) assert_false(reply_text_append(&text, str_head(all, 1)));
        assert_int_equal(text.len, 0);
        reply_text_restart(&text);
        assert_true(reply_text_append(&text, str_head(all, limit)));
        assert_whole(&text, str_head(all, limit));
        reply_text_clear(&text);
    }
}

static void what_came_later_is_put_at_the_end(void **state) {
    (void)state;
    struct str all = letters();
    static const size_t cuts[] = {0, 1, 5000, ALL_BYTES};
    for (size_t i = 0; i < ARRAY_LEN(cuts); i++) {
        struct reply_text text, later;
        reply_text_init(&text, ALL_BYTES + 4);
        reply_text_init(&later, ALL_BYTES);
        append(&text, str_head(all, cuts[i]), 64);
        append(&later, str_skip(all, cuts[i]), 64);
        reply_text_take(&text, &later);
        assert_str(reply_text_whole(&later), "");
        assert_int_equal(text.len, ALL_BYTES);
        assert_true(reply_text_append(&text, STR("last")));
        assert_false(reply_text_append(&text, STR("x")));
        assert_true(str_ends(reply_text_whole(&text), STR("last")));
        assert_memory_equal(reply_text_whole(&text).at, all.at, ALL_BYTES);
        reply_text_clear(&text);
        reply_text_clear(&later);
    }
}

static void the_text_before_is_lent_until_the_next_one_begins(void **state) {
    (void)state;
    struct str all = letters();
    for (size_t len = 0; len < 9 * KIB; len += 797) {
        struct reply_text text;
        reply_text_init(&text, SIZE_MAX);
        append(&text, str_head(all, len), 64);
        struct str before = reply_text_whole(&text);
        reply_text_restart(&text);
        assert_int_equal(text.len, 0);
        assert_memory_equal(before.at, all.at, len);
        assert_str(reply_text_whole(&text), "");
        append(&text, all, 64);
        assert_whole(&text, all);
        reply_text_clear(&text);
    }
}

static void what_came_later_stays_beyond_the_limit_too(void **state) {
    (void)state;
    struct reply_text text, later;
    reply_text_init(&text, 6);
    reply_text_init(&later, 6);
    assert_true(reply_text_append(&text, STR("let ")) &&
                reply_text_append(&later, STR("me in")));
    reply_text_take(&text, &later);
    assert_false(reply_text_append(&text, STR("x")));
    assert_str(reply_text_whole(&text), "let me in");
    assert_false(reply_text_append(&text, STR("x")));
    reply_text_clear(&text);
    assert_true(reply_text_append(&text, STR("let me")));
    reply_text_clear(&text);
}

/* A block that grows would hold up to a quarter more. */
static void it_holds_little_more_than_the_text(void **state) {
    (void)state;
    struct str all = letters();
    struct reply_text text;
    size_t before = mem_counted();
    reply_text_init(&text, SIZE_MAX);
    for (size_t len = 64; len <= 64 * KIB; len += 64) {
        assert_true(reply_text_append(&text, str_head(all, 64)));
        assert_true(mem_counted() - before <= len + len / 8 + 2 * KIB);
    }
    reply_text_whole(&text);
    assert_true(mem_counted() - before <= text.len + KIB);
    reply_text_clear(&text);
    assert_int_equal(mem_counted(), before);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_reads_as_it_was_written_however_it_came),
        cmocka_unit_test(it_grows_on_after_it_was_read),
        cmocka_unit_test(an_empty_one_reads_as_nothing),
        cmocka_unit_test(nothing_is_taken_beyond_the_limit),
        cmocka_unit_test(what_came_later_is_put_at_the_end),
        cmocka_unit_test(what_came_later_stays_beyond_the_limit_too),
        cmocka_unit_test(the_text_before_is_lent_until_the_next_one_begins),
        cmocka_unit_test(it_holds_little_more_than_the_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
