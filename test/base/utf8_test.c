#include "base/utf8.h"

#include "helper/assert_str.h"

#define BAD "\xEF\xBF\xBD"

/* Another way to decide: decode, and see whether that was the shortest way to write it. */
static bool is_character(const unsigned char *at, size_t len) {
    uint32_t c;
    if (len == 1) return at[0] < 0x80;
    for (size_t i = 1; i < len; i++) {
        if (at[i] >> 6 != 2) return false;
    }
    if (len == 2 && at[0] >> 5 == 6) {
        c = (at[0] & 0x1Fu) << 6 | (at[1] & 0x3Fu);
        return c >= 0x80;
    }
    if (len == 3 && at[0] >> 4 == 14) {
        c = (at[0] & 0x0Fu) << 12 | (at[1] & 0x3Fu) << 6 | (at[2] & 0x3Fu);
        return c >= 0x800 && !(c >= 0xD800 && c <= 0xDFFF);
    }
    if (len == 4 && at[0] >> 3 == 30) {
        c = (at[0] & 7u) << 18 | (at[1] & 0x3Fu) << 12 | (at[2] & 0x3Fu) << 6 | (at[3] & 0x3Fu);
        return c >= 0x10000 && c <= 0x10FFFF;
    }
    return false;
}

static bool is_text(const unsigned char *at, size_t len) {
    while (len) {
        size_t character = 1;
        while (character <= 4 && character <= len && !is_character(at, character)) character++;
        if (character > 4 || character > len) return false;
        at += character;
        len -= character;
    }
    return true;
}

static void every_short_sequence_is_judged_as_the_table_says(void **state) {
    (void)state;
    /* The ends of every range in table 3-7, and one beyond each. */
    static const unsigned char edges[] = {0x00, 0x41, 0x7F, 0x80, 0x8F, 0x90, 0x9F, 0xA0, 0xBF,
                                          0xC0, 0xC1, 0xC2, 0xDF, 0xE0, 0xE1, 0xEC, 0xED, 0xEE,
                                          0xEF, 0xF0, 0xF1, 0xF3, 0xF4, 0xF5, 0xFF};
    unsigned char bytes[4];
    for (unsigned pair = 0; pair < 0x10000; pair++) {
        bytes[0] = (unsigned char)(pair >> 8);
        bytes[1] = (unsigned char)pair;
        assert_int_equal(utf8_valid(str_of(bytes, 2)), is_text(bytes, 2));
    }
    size_t n = ARRAY_LEN(edges);
    for (size_t i = 0; i < n * n * n * n; i++) {
        for (size_t at = 0, rest = i; at < 4; at++, rest /= n) bytes[at] = edges[rest % n];
        assert_int_equal(utf8_valid(str_of(bytes, 4)), is_text(bytes, 4));
        assert_int_equal(utf8_valid(str_of(bytes, 3)), is_text(bytes, 3));
    }
}

static void every_code_point_is_written_as_valid_text(void **state) {
    (void)state;
    struct buf out;
    buf_init(&out, 4);
    for (uint32_t c = 0; c <= 0x10FFFF; c++) {
        if (c >= 0xD800 && c <= 0xDFFF) continue;
        buf_clear(&out);
        assert_true(utf8_append(&out, c));
        if (!is_character((const unsigned char *)out.at, out.len)) fail_msg("U+%04X", c);
    }
    buf_done(&out);
}

/* The fast path looks at many bytes at a time; a bad byte must be found at any place. */
static void a_bad_byte_is_found_wherever_it_is(void **state) {
    (void)state;
    char text[200];
    for (size_t at = 0; at < sizeof(text); at++) {
        memset(text, 'a', sizeof(text));
        text[at] = '\xFF';
        struct str copy = exact_copy(str_of(text, sizeof(text)));
        assert_int_equal(utf8_valid_prefix(copy), at);
        assert_int_equal(utf8_ascii_prefix(copy), at);
        assert_false(utf8_valid(copy));
        free((void *)copy.at);
    }
    assert_true(utf8_valid((struct str){NULL, 0}));
}

static void a_cut_never_splits_a_character(void **state) {
    (void)state;
    struct str text = STR("aé系😈z");
    static const size_t cuts[] = {0, 1, 1, 3, 3, 3, 6, 6, 6, 6, 10, 11, 11, 11};
    for (size_t max = 0; max < ARRAY_LEN(cuts); max++)
        assert_int_equal(utf8_cut(text, max), cuts[max]);
    /* Bytes that are no text are not worth more than three. */
    assert_int_equal(utf8_cut(STR("\x80\x80\x80\x80\x80"), 4), 4);
    assert_int_equal(utf8_cut(STR_EMPTY, 4), 0);
}

static void pending_is_what_the_next_bytes_may_complete(void **state) {
    (void)state;
    static const struct {
        const char *text;
        size_t pending;
    } cases[] = {
        {"", 0},
        {"abc", 0},
        {"aé", 0},
        {"a\xC3", 1},
        {"a\xE7", 1},
        {"a\xE7\xB3", 2},
        {"a\xF0\x9F\x98", 3},
        {"a\xF0\x9F", 2},
        {"a\x80", 0},
        {"a\xFF", 0},
        {"a\xC0", 0},
        {"a\xE0\x80", 0},     /* can never become a character */
        {"a\xED\xA0", 0},     /* half a surrogate */
        {"a\xF4\x90\x80", 0}, /* beyond the last code point */
        {"\xF0\x9F\x98\x88\x80", 0},
        {"\x80\x80\x80\x80", 0},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct str copy = exact_copy(str_from(cases[i].text));
        assert_int_equal(utf8_pending(copy), cases[i].pending);
        free((void *)copy.at);
    }
}

/* What a stream does with its deltas: hold back what is pending, send the rest. */
static void holding_back_what_is_pending_gives_valid_pieces(void **state) {
    (void)state;
    struct str text = STR("aé系😈z");
    for (size_t cut = 0; cut <= text.len; cut++) {
        struct str head = str_head(text, cut);
        head.len -= utf8_pending(head);
        assert_true(utf8_valid(head));
        assert_true(utf8_valid(str_skip(text, head.len)));
    }
}

static void ill_formed_parts_become_replacement_characters(void **state) {
    (void)state;
    static const struct {
        const char *text, *repaired;
    } cases[] = {
        {"", ""},
        {"aé", "aé"},
        {"a\xFF"
         "b",
         "a" BAD "b"},
        {"\x80\x80", BAD BAD},
        {"\xE7\xB3", BAD},
        {"\xE7\xB3"
         "a",
         BAD "a"},
        {"\xF0\x9F\x98", BAD},
        {"\xE0\x80\x80", BAD BAD BAD},
        {"\xED\xA0\x80", BAD BAD BAD},
        {"\xF0\x80\x80\x41", BAD BAD BAD "A"},
        {"\xC3\xC3\xA9", BAD "é"},
        {"\xF4\x90\x80\x80", BAD BAD BAD BAD},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct buf out;
        buf_init(&out, 64);
        assert_true(utf8_append_repaired(&out, str_from(cases[i].text)));
        assert_str(buf_str(&out), cases[i].repaired);
        buf_done(&out);
    }
}

static void repairing_stops_at_the_limit(void **state) {
    (void)state;
    for (size_t limit = 0; limit <= 5; limit++) {
        struct buf out;
        buf_init(&out, limit);
        assert_int_equal(utf8_append_repaired(&out, STR("a\xFF"
                                                        "b")),
                         limit == 5);
        assert_true(utf8_valid(buf_str(&out)));
        buf_done(&out);
    }
}

static void the_head_of_some_characters_ends_where_the_next_begins(void **state) {
    (void)state;
    struct str text =
        STR("abcdefgh\xC3\xA9ijklmnop\xE2\x82\xACqrst\xF0\x9F\x98\x80uvwxyz123456789"
            "0123456789abcdefghijklmnopqrstuvwxyz0123456789abcdefghijklmnopqrstuvwxyz-\xC3\xA9"
            "0123456789abcdefghijklmnopqrstuvwxyz0123456789abcdefghijklmnopqrstuvwxyz");
    for (size_t from = 0; from < text.len; from++) {
        if (((unsigned char)text.at[from] & 0xC0) == 0x80) continue;
        struct str rest = str_skip(text, from);
        for (uint64_t count = 0; count <= rest.len + 1; count++) {
            uint64_t begun = 0;
            size_t slow = 0;
            for (; slow < rest.len; slow++) {
                if (((unsigned char)rest.at[slow] & 0xC0) != 0x80 && begun++ == count) break;
            }
            assert_int_equal(utf8_head(rest, count), slow);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_short_sequence_is_judged_as_the_table_says),
        cmocka_unit_test(every_code_point_is_written_as_valid_text),
        cmocka_unit_test(a_bad_byte_is_found_wherever_it_is),
        cmocka_unit_test(a_cut_never_splits_a_character),
        cmocka_unit_test(pending_is_what_the_next_bytes_may_complete),
        cmocka_unit_test(holding_back_what_is_pending_gives_valid_pieces),
        cmocka_unit_test(ill_formed_parts_become_replacement_characters),
        cmocka_unit_test(repairing_stops_at_the_limit),
        cmocka_unit_test(the_head_of_some_characters_ends_where_the_next_begins),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
