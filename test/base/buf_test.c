#include "base/buf.h"

#include "helper/assert_str.h"

#include <stdio.h>

static void an_empty_buffer_holds_no_memory(void **state) {
    (void)state;
    struct buf buf;
    buf_init(&buf, 100);
    assert_null(buf.at);
    assert_str(buf_str(&buf), "");
    assert_true(buf_append(&buf, STR("")) && buf_append(&buf, (struct str){NULL, 0}));
    assert_null(buf.at);
    buf_done(&buf);
    buf_done(&buf);
}

static void every_kind_of_append_lands_at_the_end(void **state) {
    (void)state;
    struct buf buf;
    buf_init(&buf, 1024);
    assert_true(buf_append(&buf, STR("a\0")));
    assert_true(buf_append_byte(&buf, 'b'));
    assert_true(str_equal(buf_str(&buf), STR("a\0b")));
    buf_clear(&buf);
    assert_true(buf_append_u64(&buf, 0) && buf_append_byte(&buf, ' '));
    assert_true(buf_append_u64(&buf, UINT64_MAX) && buf_append_byte(&buf, ' '));
    assert_true(buf_append_i64(&buf, INT64_MIN) && buf_append_byte(&buf, ' '));
    assert_true(buf_append_i64(&buf, -1) && buf_append_i64(&buf, 1));
    assert_true(buf_printf(&buf, " %s-%d%s", "x", 5, ""));
    assert_true(buf_printf(&buf, "%s", ""));
    assert_str(buf_str(&buf), "0 18446744073709551615 -9223372036854775808 -11 x-5");
    buf_done(&buf);
}

static void numbers_have_all_their_digits(void **state) {
    (void)state;
    char digits[24];
    for (uint64_t number = 0, step = 1; number < UINT64_MAX / 20; number += step) {
        struct buf buf;
        buf_init(&buf, 24);
        assert_true(buf_append_u64(&buf, number));
        snprintf(digits, sizeof(digits), "%llu", (unsigned long long)number);
        assert_str(buf_str(&buf), digits);
        buf_done(&buf);
        if (number > 20000) step = number / 7;
    }
}

static void what_passes_the_limit_is_refused_whole_and_for_good(void **state) {
    (void)state;
    for (size_t limit = 0; limit <= 6; limit++) {
        struct buf buf;
        buf_init(&buf, limit);
        bool first = buf_append(&buf, STR("abc"));
        assert_int_equal(first, limit >= 3);
        assert_int_equal(buf_printf(&buf, "%d", 45), limit >= 5);
        assert_int_equal(buf_append_byte(&buf, '6'), limit >= 6);
        assert_str(buf_str(&buf), limit >= 6   ? "abc456"
                                  : limit >= 5 ? "abc45"
                                  : limit >= 3 ? "abc"
                                               : "");
        assert_int_equal(buf_ok(&buf), limit >= 6);
        if (limit < 6) {
            assert_false(buf_append(&buf, STR("")));
            assert_null(buf_room(&buf, 0));
            buf_clear(&buf);
            assert_true(buf_ok(&buf));
            assert_int_equal(buf_append(&buf, STR("x")), limit >= 1);
        }
        assert_true(buf.room <= limit);
        buf_done(&buf);
    }
}

static void room_is_filled_by_the_caller(void **state) {
    (void)state;
    struct buf buf;
    buf_init(&buf, 8);
    char *room = buf_room(&buf, 8);
    assert_non_null(room);
    memcpy(room, "abc", 3);
    buf_grew(&buf, 3);
    assert_str(buf_str(&buf), "abc");
    assert_null(buf_room(&buf, 6));
    buf_done(&buf);

    buf_init(&buf, 0);
    assert_non_null(buf_room(&buf, 0));
    assert_true(buf_ok(&buf));
    buf_done(&buf);
}

/* A reply that grows for seconds holds little that it does not use. */
static void above_4_kib_at_most_a_quarter_of_the_room_is_unused(void **state) {
    (void)state;
    struct buf buf;
    buf_init(&buf, MIB);
    for (size_t len = 0; len < 100 * KIB; len++) {
        assert_true(buf_append_byte(&buf, (char)('a' + len % 26)));
        if (buf.len > 4 * KIB) assert_true(buf.room <= buf.len + buf.len / 4);
    }
    for (size_t i = 0; i < buf.len; i++) assert_int_equal(buf.at[i], 'a' + i % 26);
    buf_done(&buf);
}

static void clearing_keeps_the_memory_and_releasing_does_not(void **state) {
    (void)state;
    struct buf buf;
    buf_init(&buf, 1000);
    for (int i = 0; i < 500; i++) assert_true(buf_append_byte(&buf, 'x'));
    size_t room = buf.room;
    buf_clear(&buf);
    assert_int_equal(buf.room, room);
    assert_int_equal(buf.len, 0);
    buf_release(&buf);
    assert_null(buf.at);
    assert_int_equal(buf.max_bytes, 1000);
    assert_true(buf_append(&buf, STR("again")));
    buf_done(&buf);
}

static void dropping_moves_the_rest_to_the_front(void **state) {
    (void)state;
    struct buf buf;
    buf_init(&buf, 16);
    assert_true(buf_append(&buf, STR("abcdef")));
    buf_drop(&buf, 0);
    buf_drop(&buf, 2);
    assert_str(buf_str(&buf), "cdef");
    buf_drop(&buf, 4);
    assert_str(buf_str(&buf), "");
    buf_done(&buf);
}

static void a_fixed_room_is_never_grown(void **state) {
    (void)state;
    char room[4];
    struct buf buf = {.at = room, .room = sizeof(room), .max_bytes = sizeof(room)};
    assert_true(buf_append(&buf, STR("abcd")));
    assert_false(buf_append_byte(&buf, 'e'));
    assert_ptr_equal(buf.at, room);
    assert_str(buf_str(&buf), "abcd");
}

static void texts_are_kept_when_what_lent_them_is_gone(void **state) {
    (void)state;
    char lent[] = "onetwo";
    struct str one = {lent, 3}, empty = {lent, 0}, none = {NULL, 0}, two = {lent + 3, 3};
    struct str *texts[] = {&one, &empty, &none, &two};
    struct buf buf;
    buf_keep_texts(&buf, texts, ARRAY_LEN(texts));
    memset(lent, 'x', sizeof(lent) - 1);
    assert_str(one, "one");
    assert_str(two, "two");
    assert_true(empty.at && empty.len == 0 && empty.at != lent);
    assert_null(none.at);
    buf_done(&buf);
}

static void percent_encoding_leaves_the_plain_bytes_alone(void **state) {
    (void)state;
    struct buf out;
    buf_init(&out, KIB);
    assert_true(buf_append_percent(&out, str_of("aZ09-._~/?#%&= \r\n\0\xC3\xA4", 20), "-._~"));
    assert_true(str_equal(buf_str(&out), STR("aZ09-._~%2F%3F%23%25%26%3D%20%0D%0A%00%C3%A4")));
    buf_clear(&out);
    assert_true(buf_append_percent(&out, STR("a/.."), "/"));
    assert_true(str_equal(buf_str(&out), STR("a/%2E%2E")));
    buf_done(&out);
    buf_init(&out, 2);
    assert_false(buf_append_percent(&out, STR("/"), ""));
    buf_done(&out);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(percent_encoding_leaves_the_plain_bytes_alone),
        cmocka_unit_test(an_empty_buffer_holds_no_memory),
        cmocka_unit_test(every_kind_of_append_lands_at_the_end),
        cmocka_unit_test(numbers_have_all_their_digits),
        cmocka_unit_test(what_passes_the_limit_is_refused_whole_and_for_good),
        cmocka_unit_test(room_is_filled_by_the_caller),
        cmocka_unit_test(above_4_kib_at_most_a_quarter_of_the_room_is_unused),
        cmocka_unit_test(clearing_keeps_the_memory_and_releasing_does_not),
        cmocka_unit_test(dropping_moves_the_rest_to_the_front),
        cmocka_unit_test(a_fixed_room_is_never_grown),
        cmocka_unit_test(texts_are_kept_when_what_lent_them_is_gone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
