/* The bytes of a row: what was appended is read back, and anything else is rejected. */
#include "store/store.h"

#include <setjmp.h>
#include <stdarg.h>
/* cmocka wants these four first. */
#include <cmocka.h>
#include <stdlib.h>

static const struct store_section samples[] = {
    {1, 1, STR_INIT("a"), 0},
    {127, 128, STR_INIT("events of a run"), 0},
    {128, 1, STR_INIT("\0\xFF\x80"), 0},
    {UINT64_MAX, UINT64_MAX, STR_INIT("the largest numbers"), 0},
    {UINT64_C(1) << 63, 16384, STR_INIT("x"), 0},
};

static void fill(struct buf *row) {
    buf_init(row, 64 * KIB);
    for (size_t i = 0; i < ARRAY_LEN(samples); i++) {
        assert_true(
            store_section_append(row, samples[i].run, samples[i].first_seq, samples[i].events));
    }
}

static void sections_are_read_back_in_order(void **state) {
    (void)state;
    struct buf row;
    fill(&row);
    struct str rest = buf_str(&row);
    struct store_section section;
    bool bad = false;
    for (size_t i = 0; i < ARRAY_LEN(samples); i++) {
        assert_true(store_section_next(&rest, &section, &bad));
        assert_true(section.run == samples[i].run);
        assert_true(section.first_seq == samples[i].first_seq);
        assert_true(str_equal(section.events, samples[i].events));
    }
    assert_false(store_section_next(&rest, &section, &bad));
    assert_false(bad);
    buf_done(&row);
}

static void a_row_cut_anywhere_ends_between_sections_or_is_bad(void **state) {
    (void)state;
    struct buf row;
    fill(&row);
    for (size_t cut = 0; cut < row.len; cut++) {
        char *copy = malloc(cut ? cut : 1);
        if (cut) memcpy(copy, row.at, cut);
        struct str rest = str_of(copy, cut);
        struct store_section section;
        bool bad = false;
        size_t read = 0, end = 0;
        while (store_section_next(&rest, &section, &bad)) read++;
        assert_int_equal(bad, rest.len > 0);
        struct buf whole;
        buf_init(&whole, 64 * KIB);
        for (size_t i = 0; i < read; i++) {
            store_section_append(&whole, samples[i].run, samples[i].first_seq,
                                 samples[i].events);
            end = whole.len;
        }
        assert_int_equal(cut - rest.len, end);
        buf_done(&whole);
        free(copy);
    }
    buf_done(&row);
}

static void bytes_that_are_not_a_section_are_bad(void **state) {
    (void)state;
    static const struct str rows[] = {
        STR_INIT("\x00\x01\x01x"), /* run 0 */
        STR_INIT("\x01\x00\x01x"), /* sequence number 0 */
        STR_INIT("\x01\x01\x00"),  /* no events */
        STR_INIT("\x01\x01\x02x"), /* longer than the row */
        STR_INIT("\x01\x01\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\xFF\x01x"),
        STR_INIT("\x80\x80\x80\x80\x80\x80\x80\x80\x80\x02\x01\x01x"), /* 65 bits */
        STR_INIT("\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01\x01\x01x"),
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct str rest = rows[i];
        struct store_section section;
        bool bad = false;
        assert_false(store_section_next(&rest, &section, &bad));
        assert_true(bad);
        assert_int_equal(rest.len, rows[i].len);
    }
}

static void a_section_without_events_adds_nothing(void **state) {
    (void)state;
    struct buf row;
    buf_init(&row, 16);
    assert_true(store_section_append(&row, 1, 1, STR_EMPTY));
    assert_int_equal(row.len, 0);
    buf_done(&row);
}

static void a_section_past_the_limit_is_left_out_whole(void **state) {
    (void)state;
    for (size_t limit = 0; limit < 12; limit++) {
        struct buf row;
        buf_init(&row, limit);
        bool fits = limit >= 8;
        assert_int_equal(store_section_append(&row, 1, 1, STR("12345")), fits);
        assert_int_equal(row.len, fits ? 8 : 0);
        buf_done(&row);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sections_are_read_back_in_order),
        cmocka_unit_test(a_row_cut_anywhere_ends_between_sections_or_is_bad),
        cmocka_unit_test(bytes_that_are_not_a_section_are_bad),
        cmocka_unit_test(a_section_without_events_adds_nothing),
        cmocka_unit_test(a_section_past_the_limit_is_left_out_whole),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
