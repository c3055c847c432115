#include "wire/json.h"

#include "helper/assert_str.h"
#include "helper/json_cases.h"

#include "base/utf8.h"

#include <math.h>
#include <stdio.h>

static void assert_written(struct str text, const char *expected) {
    struct buf out;
    buf_init(&out, 1024);
    assert_true(json_put_str(&out, text));
    assert_str(buf_str(&out), expected);
    buf_done(&out);
}

static void strings_are_escaped_as_little_as_possible(void **state) {
    (void)state;
    assert_written(STR(""), "\"\"");
    assert_written(STR("plain / 'text'"), "\"plain / 'text'\"");
    assert_written(STR("\"\\\b\f\n\r\t"), "\"\\\"\\\\\\b\\f\\n\\r\\t\"");
    assert_written(STR("\0\x01\x1F\x7F"), "\"\\u0000\\u0001\\u001f\x7F\"");
    assert_written(STR("é€😀"), "\"é€😀\"");
}

static void one_byte_is_escaped_wherever_it_is(void **state) {
    (void)state;
    for (size_t len = 1; len <= 40; len++) {
        for (size_t at = 0; at < len; at++) {
            for (int byte = 0; byte < 0x80; byte++) {
                char text[40], expected[64];
                const char *escape = byte == '"' ? "\\\"" : byte == '\\' ? "\\\\" : NULL;
                memset(text, byte % 2 ? ' ' : '~', len);
                text[at] = (char)byte;
                if (byte < 0x20) continue; /* below */
                int end =
                    escape ? snprintf(expected, sizeof(expected), "\"%.*s%s%.*s\"", (int)at,
                                      text, escape, (int)(len - at - 1), text + at + 1)
                           : snprintf(expected, sizeof(expected), "\"%.*s\"", (int)len, text);
                assert_true(end > 0);
                assert_written(str_of(text, len), expected);
            }
            for (int byte = 0; byte < 0x20; byte++) {
                char text[40];
                struct buf out;
                buf_init(&out, 1024);
                memset(text, 'x', len);
                text[at] = (char)byte;
                assert_true(json_put_str(&out, str_of(text, len)));
                assert_int_equal(out.at[at + 1], '\\');
                assert_true(out.len == len + 3 || out.len == len + 7);
                buf_done(&out);
            }
        }
    }
}

/* A letter of two bytes is neither cut nor taken for plain, however short the text is. */
static void a_letter_of_two_bytes_is_kept_wherever_it_is(void **state) {
    (void)state;
    for (size_t len = 2; len <= 40; len++) {
        for (size_t at = 0; at + 2 <= len; at++) {
            char text[41], expected[64];
            memset(text, '~', len);
            memcpy(text + at, "\xC3\xA9", 2);
            text[len] = '\0';
            snprintf(expected, sizeof(expected), "\"%s\"", text);
            assert_written(str_of(text, len), expected);
            text[at + 1] = '~'; /* half of it */
            snprintf(expected, sizeof(expected), "\"%.*s\xEF\xBF\xBD%s\"", (int)at, text,
                     text + at + 1);
            assert_written(str_of(text, len), expected);
        }
    }
}

static void write_members(struct buf *out) {
    struct json_writer json = json_writer(out);
    json_open_object(&json);
    json_member_bool(&json, "a", true);
    json_member_str(&json, "a longer name of a member", STR("b"));
    json_member_null(&json, "\"");
    json_member_null(&json, "");
    json_close(&json);
}

/* Where the room ends, what was written before stands there, and the buffer says that it is full. */
static void members_take_the_room_that_they_need(void **state) {
    (void)state;
    struct str whole =
        STR("{\"a\":true,\"a longer name of a member\":\"b\",\"\\\"\":null,\"\":null}");
    for (size_t room = 0; room <= whole.len; room++) {
        struct buf out;
        buf_init(&out, room);
        write_members(&out);
        assert_int_equal(buf_ok(&out), room == whole.len);
        if (buf_ok(&out)) assert_true(str_equal(buf_str(&out), whole));
        assert_true(out.len <= room);
        buf_done(&out);
    }
}

static void bytes_that_are_no_text_become_replacement_characters(void **state) {
    (void)state;
    assert_written(STR("a\xFFz"), "\"a\xEF\xBF\xBDz\"");
    assert_written(STR("\xE2\x82"), "\"\xEF\xBF\xBD\"");
    assert_written(STR("\xC3\n"), "\"\xEF\xBF\xBD\\n\"");
    assert_written(STR("\xED\xA0\x80"), "\"\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\"");
}

static void what_is_written_is_accepted_and_says_the_same(void **state) {
    (void)state;
    struct buf out, back;
    buf_init(&out, 8 * KIB);
    buf_init(&back, 8 * KIB);
    for (uint32_t c = 0; c < 0x110000; c += c < 0x3000 ? 1 : 37) {
        if (c >= 0xD800 && c <= 0xDFFF) continue;
        struct json value;
        struct err e;
        buf_clear(&out);
        buf_clear(&back);
        utf8_append(&back, c);
        buf_append(&back, STR("\\"));
        json_put_str(&out, buf_str(&back));
        assert_true(json_read(buf_str(&out), &value, &e));
        assert_true(json_is(value, buf_str(&back)));
    }
    buf_done(&out);
    buf_done(&back);
}

static void doubles_are_written_short_and_read_back_the_same(void **state) {
    (void)state;
    static const struct {
        double number;
        const char *text;
    } cases[] = {
        {0, "0"},        {0.1, "0.1"},       {-2.5, "-2.5"},
        {1e21, "1e+21"}, {1e-7, "1e-07"},    {0.1 + 0.2, "0.30000000000000004"},
        {NAN, "null"},   {INFINITY, "null"}, {123456789, "123456789"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct buf out;
        struct json value;
        struct err e;
        double back;
        buf_init(&out, 64);
        assert_true(json_put_double(&out, cases[i].number));
        assert_str(buf_str(&out), cases[i].text);
        assert_true(json_read(buf_str(&out), &value, &e));
        if (json_double(value, &back)) assert_true(back == cases[i].number);
        buf_done(&out);
    }
}

static void the_writer_puts_the_commas(void **state) {
    (void)state;
    struct buf out;
    buf_init(&out, 1024);
    struct json_writer w = json_writer(&out);
    json_open_object(&w);
    json_member_str(&w, "id", STR("a\"b"));
    json_member_i64(&w, "low", INT64_MIN);
    json_member_u64(&w, "high", UINT64_MAX);
    json_member_bool(&w, "yes", true);
    json_member_bool(&w, "no", false);
    json_member_null(&w, "nothing");
    json_member_raw(&w, "raw", STR("[1.0, 2]"));
    json_member_object(&w, "empty");
    json_close(&w);
    json_member_array(&w, "parts");
    json_write_i64(&w, -7);
    json_write_u64(&w, 7);
    json_write_str(&w, STR("x"));
    json_write_bool(&w, true);
    json_write_null(&w);
    json_write_double(&w, 0.5);
    json_write_raw(&w, STR("{}"));
    json_open_array(&w);
    json_close(&w);
    json_open_object(&w);
    json_key(&w, STR("\xFF"));
    json_write_i64(&w, 1);
    json_key(&w, STR("k"));
    json_open_array(&w);
    json_close(&w);
    json_close(&w);
    json_close(&w);
    json_close(&w);
    assert_true(buf_ok(&out));
    assert_str(buf_str(&out),
               "{\"id\":\"a\\\"b\",\"low\":-9223372036854775808,\"high\":18446744073709551615,"
               "\"yes\":true,\"no\":false,\"nothing\":null,\"raw\":[1.0, 2],\"empty\":{},"
               "\"parts\":[-7,7,\"x\",true,null,0.5,{},[],{\"\xEF\xBF\xBD\":1,\"k\":[]}]}");
    struct json value;
    struct err e;
    assert_true(json_read(buf_str(&out), &value, &e));
    buf_done(&out);
}

static void one_value_alone_may_be_written(void **state) {
    (void)state;
    struct buf out;
    buf_init(&out, 16);
    struct json_writer w = json_writer(&out);
    json_write_str(&w, STR("x"));
    assert_str(buf_str(&out), "\"x\"");
    buf_done(&out);
}

static void sixty_four_levels_can_be_written(void **state) {
    (void)state;
    struct buf out;
    struct json value;
    struct err e;
    buf_init(&out, 1024);
    struct json_writer w = json_writer(&out);
    for (int i = 0; i < JSON_DEPTH_MAX; i += 2) {
        json_open_object(&w);
        json_member_array(&w, "a");
    }
    for (int i = 0; i < JSON_DEPTH_MAX; i++) json_close(&w);
    assert_true(json_read(buf_str(&out), &value, &e));
    buf_done(&out);
}

static void a_full_buffer_stays_a_prefix(void **state) {
    (void)state;
    struct str whole = STR("{\"a\":\"b\\nc\",\"d\":[1,2]}");
    for (size_t limit = 0; limit <= whole.len; limit++) {
        struct buf out;
        buf_init(&out, limit);
        struct json_writer w = json_writer(&out);
        json_open_object(&w);
        json_member_str(&w, "a", STR("b\nc"));
        json_member_array(&w, "d");
        json_write_i64(&w, 1);
        json_write_i64(&w, 2);
        json_close(&w);
        json_close(&w);
        assert_int_equal(buf_ok(&out), limit == whole.len);
        assert_true(str_starts(whole, buf_str(&out)));
        buf_done(&out);
    }
}

static void compact_takes_only_the_space_between(void **state) {
    (void)state;
    struct buf out;
    buf_init(&out, 1024);
    assert_true(json_compact(
        STR(" { \"a b\\\" \" : [ 1.50 , -0 ,\n1E+2 ] ,\t\"\\\\\" : null }\r"), &out));
    assert_str(buf_str(&out), "{\"a b\\\" \":[1.50,-0,1E+2],\"\\\\\":null}");
    buf_done(&out);
}

static void a_compact_copy_fits_its_arena_or_is_refused(void **state) {
    (void)state;
    struct json value;
    struct err e;
    struct str copy;
    assert_true(json_read(STR("[ 1, 2 ]"), &value, &e));
    struct arena *arena = arena_new(KIB), *small = arena_new(2);
    assert_true(json_compact_copy(value, arena, &copy));
    assert_str(copy, "[1,2]");
    assert_false(json_compact_copy(value, small, &copy));
    arena_free(arena);
    arena_free(small);
}

static void compacting_twice_changes_nothing_more(void **state) {
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(json_must_accept); i++) {
        struct buf once, twice;
        struct json before, after;
        struct err e;
        buf_init(&once, 4096);
        buf_init(&twice, 4096);
        assert_true(json_read(json_must_accept[i].text, &before, &e));
        assert_true(json_compact(json_must_accept[i].text, &once));
        assert_true(json_read(buf_str(&once), &after, &e));
        assert_int_equal(before.kind, after.kind);
        assert_int_equal(json_count(before), json_count(after));
        assert_true(json_compact(buf_str(&once), &twice));
        assert_true(str_equal(buf_str(&once), buf_str(&twice)));
        buf_done(&once);
        buf_done(&twice);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(strings_are_escaped_as_little_as_possible),
        cmocka_unit_test(one_byte_is_escaped_wherever_it_is),
        cmocka_unit_test(a_letter_of_two_bytes_is_kept_wherever_it_is),
        cmocka_unit_test(members_take_the_room_that_they_need),
        cmocka_unit_test(bytes_that_are_no_text_become_replacement_characters),
        cmocka_unit_test(what_is_written_is_accepted_and_says_the_same),
        cmocka_unit_test(doubles_are_written_short_and_read_back_the_same),
        cmocka_unit_test(the_writer_puts_the_commas),
        cmocka_unit_test(one_value_alone_may_be_written),
        cmocka_unit_test(sixty_four_levels_can_be_written),
        cmocka_unit_test(a_full_buffer_stays_a_prefix),
        cmocka_unit_test(compact_takes_only_the_space_between),
        cmocka_unit_test(a_compact_copy_fits_its_arena_or_is_refused),
        cmocka_unit_test(compacting_twice_changes_nothing_more),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
