#include "wire/grpc.h"

#include "helper/assert_str.h"

#include "base/mem.h"

/* Feed one piece; what came out is appended to `seen` as "flag:bytes;". */
static bool feed(struct grpc_reader *reader, struct str piece, struct buf *seen,
                 struct err *e) {
    struct str copy = exact_copy(piece), rest = copy;
    struct grpc_message message;
    enum grpc_step step;
    while ((step = grpc_next(reader, &rest, &message, e)) == GRPC_MESSAGE) {
        buf_printf(seen, "%d:" STR_FMT ";", message.compressed, STR_ARG(message.bytes));
    }
    if (step == GRPC_MORE) assert_int_equal(rest.len, 0);
    free((void *)copy.at);
    return step != GRPC_BROKEN;
}

static const struct str three_messages = STR_INIT("\0\0\0\0\3one\1\0\0\0\0\0\0\0\0\5three");

static void a_stream_reads_the_same_however_it_is_cut(void **state) {
    (void)state;
    for (size_t first = 0; first <= three_messages.len; first++) {
        for (size_t second = first; second <= three_messages.len; second++) {
            struct grpc_reader reader;
            struct buf seen;
            struct err e;
            grpc_reader_init(&reader, 16);
            buf_init(&seen, 256);
            assert_true(feed(&reader, str_head(three_messages, first), &seen, &e));
            struct str middle = str_skip(str_head(three_messages, second), first);
            assert_true(feed(&reader, middle, &seen, &e));
            assert_true(feed(&reader, str_skip(three_messages, second), &seen, &e));
            assert_true(grpc_end(&reader, &e));
            assert_str(buf_str(&seen), "0:one;1:;0:three;");
            grpc_reader_done(&reader);
            buf_done(&seen);
        }
    }
}

/* G12 in small: a message that comes byte by byte. */
static void a_large_message_may_come_byte_by_byte(void **state) {
    (void)state;
    size_t len = 300 * KIB;
    char *bytes = mem_alloc(len);
    for (size_t i = 0; i < len; i++) bytes[i] = (char)(i * 7);
    struct buf out;
    buf_init(&out, len + GRPC_PREFIX_BYTES);
    assert_true(grpc_append_message(&out, str_of(bytes, len)));
    struct grpc_reader reader;
    struct grpc_message message;
    struct err e;
    grpc_reader_init(&reader, len);
    for (size_t i = 0; i < out.len; i++) {
        struct str one = str_of(out.at + i, 1);
        enum grpc_step step = grpc_next(&reader, &one, &message, &e);
        assert_int_equal(step, i + 1 == out.len ? GRPC_MESSAGE : GRPC_MORE);
    }
    assert_true(str_equal(message.bytes, str_of(bytes, len)));
    grpc_reader_done(&reader);
    buf_done(&out);
    free(bytes);
}

static void a_message_that_came_whole_is_lent_and_not_copied(void **state) {
    (void)state;
    struct grpc_reader reader;
    struct grpc_message message;
    struct err e;
    struct str rest = three_messages;
    grpc_reader_init(&reader, 16);
    assert_int_equal(grpc_next(&reader, &rest, &message, &e), GRPC_MESSAGE);
    assert_ptr_equal(message.bytes.at, three_messages.at + 5);
    assert_int_equal(reader.partial.room, 0);
    grpc_reader_done(&reader);
}

static void no_memory_is_held_between_messages(void **state) {
    (void)state;
    struct grpc_reader reader;
    struct buf seen;
    struct err e;
    grpc_reader_init(&reader, 16);
    buf_init(&seen, 256);
    assert_true(feed(&reader, STR("\0\0\0\0\3on"), &seen, &e));
    assert_true(reader.partial.room > 0);
    assert_true(feed(&reader, STR("e"), &seen, &e));
    assert_int_equal(reader.partial.room, 0);
    grpc_reader_done(&reader);
    buf_done(&seen);
}

static void memory_grows_with_what_came_and_not_with_what_is_claimed(void **state) {
    (void)state;
    struct grpc_reader reader;
    struct buf seen;
    struct err e;
    grpc_reader_init(&reader, GRPC_MESSAGE_MAX_BYTES);
    buf_init(&seen, 256);
    assert_true(feed(&reader, STR("\0\0\x40\0\0x"), &seen, &e));
    assert_true(reader.partial.room < 1024);
    grpc_reader_done(&reader);
    buf_done(&seen);
}

static void the_size_limit_is_checked_against_the_prefix(void **state) {
    (void)state;
    for (size_t limit = 0; limit <= 3; limit++) {
        struct grpc_reader reader;
        struct buf seen;
        struct err e = {0};
        grpc_reader_init(&reader, limit);
        buf_init(&seen, 256);
        assert_int_equal(feed(&reader, STR("\0\0\0\0\3"), &seen, &e), limit == 3);
        if (limit < 3) assert_int_equal(e.code, ERR_TOO_LARGE);
        grpc_reader_done(&reader);
        buf_done(&seen);
    }
    struct grpc_reader reader;
    struct grpc_message message;
    struct err e;
    struct str most = STR("\0\xFF\xFF\xFF\xFF");
    grpc_reader_init(&reader, GRPC_MESSAGE_MAX_BYTES);
    assert_int_equal(grpc_next(&reader, &most, &message, &e), GRPC_BROKEN);
    assert_string_equal(e.text,
                        "a message of 4294967295 bytes is larger than the limit of 4194304");
    grpc_reader_done(&reader);
}

/* G3 */
static void flags_other_than_0_and_1_are_refused(void **state) {
    (void)state;
    for (int flag = 0; flag < 256; flag++) {
        struct grpc_reader reader;
        struct grpc_message message;
        struct err e = {0};
        char bytes[] = {(char)flag, 0, 0, 0, 1, 'x'};
        struct str rest = str_of(bytes, sizeof(bytes));
        grpc_reader_init(&reader, 16);
        enum grpc_step step = grpc_next(&reader, &rest, &message, &e);
        assert_int_equal(step, flag <= 1 ? GRPC_MESSAGE : GRPC_BROKEN);
        if (flag > 1) assert_int_equal(e.code, ERR_INTERNAL);
        if (flag <= 1) assert_int_equal(message.compressed, flag);
        grpc_reader_done(&reader);
    }
}

/* G2, G3 */
static void a_compressed_message_needs_an_encoding(void **state) {
    (void)state;
    struct grpc_message plain = {.bytes = STR_EMPTY}, packed = {.compressed = true};
    struct err e;
    assert_true(grpc_flag_allowed(plain, grpc_encoding_named(STR("")), &e));
    assert_true(grpc_flag_allowed(plain, grpc_encoding_named(STR("gzip")), &e));
    assert_true(grpc_flag_allowed(packed, grpc_encoding_named(STR("gzip")), &e));
    assert_false(grpc_flag_allowed(packed, grpc_encoding_named(STR("")), &e));
    assert_int_equal(e.code, ERR_INTERNAL);
    assert_false(grpc_flag_allowed(packed, grpc_encoding_named(STR("identity")), &e));
    assert_int_equal(e.code, ERR_INTERNAL);
    assert_false(grpc_flag_allowed(plain, grpc_encoding_named(STR("snappy")), &e));
    assert_int_equal(e.code, ERR_UNIMPLEMENTED);
}

/* G11 */
static void an_end_inside_a_message_is_reported(void **state) {
    (void)state;
    for (size_t cut = 0; cut <= three_messages.len; cut++) {
        struct grpc_reader reader;
        struct buf seen;
        struct err e = {0};
        grpc_reader_init(&reader, 16);
        buf_init(&seen, 256);
        assert_true(feed(&reader, str_head(three_messages, cut), &seen, &e));
        bool between = cut == 0 || cut == 8 || cut == 13 || cut == 23;
        assert_int_equal(grpc_end(&reader, &e), between);
        if (!between) assert_int_equal(e.code, ERR_INTERNAL);
        if (cut == 3)
            assert_string_equal(e.text, "the stream ended inside a message prefix, after 3 "
                                        "of its 5 bytes");
        if (cut == 6)
            assert_string_equal(e.text,
                                "the stream ended inside a message, after 1 of its 3 bytes");
        grpc_reader_done(&reader);
        buf_done(&seen);
    }
}

static void what_is_written_reads_back(void **state) {
    (void)state;
    struct buf out, seen;
    struct err e;
    buf_init(&out, 1024);
    buf_init(&seen, 1024);
    size_t begin = grpc_begin_message(&out);
    buf_append(&out, STR("in parts"));
    grpc_end_message(&out, begin);
    assert_true(grpc_append_message(&out, STR("")));
    assert_true(grpc_append_message(&out, STR("whole")));
    struct grpc_reader reader;
    grpc_reader_init(&reader, 1024);
    assert_true(feed(&reader, buf_str(&out), &seen, &e));
    assert_str(buf_str(&seen), "0:in parts;0:;0:whole;");
    grpc_reader_done(&reader);
    buf_done(&out);
    buf_done(&seen);
}

static void a_full_buffer_stays_full(void **state) {
    (void)state;
    for (size_t limit = 0; limit <= 8; limit++) {
        struct buf out;
        buf_init(&out, limit);
        assert_int_equal(grpc_append_message(&out, STR("abc")), limit == 8);
        buf_done(&out);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_stream_reads_the_same_however_it_is_cut),
        cmocka_unit_test(a_large_message_may_come_byte_by_byte),
        cmocka_unit_test(a_message_that_came_whole_is_lent_and_not_copied),
        cmocka_unit_test(no_memory_is_held_between_messages),
        cmocka_unit_test(memory_grows_with_what_came_and_not_with_what_is_claimed),
        cmocka_unit_test(the_size_limit_is_checked_against_the_prefix),
        cmocka_unit_test(flags_other_than_0_and_1_are_refused),
        cmocka_unit_test(a_compressed_message_needs_an_encoding),
        cmocka_unit_test(an_end_inside_a_message_is_reported),
        cmocka_unit_test(what_is_written_reads_back),
        cmocka_unit_test(a_full_buffer_stays_full),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
