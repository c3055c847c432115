#include "turn/stop_sequences.h"

#include "helper/assert_str.h"

#include <stdint.h>

static const struct {
    const char *text, *shown, *stop;
    struct str stops[3];
    size_t count;
} rows[] = {
    {"a, b END c", "a, b ", "END", {STR_INIT("END")}, 1},
    {"a, b EN", "a, b EN", "", {STR_INIT("END")}, 1},
    {"ENEND", "EN", "END", {STR_INIT("END")}, 1},
    {"aaab", "", "aa", {STR_INIT("aab"), STR_INIT("aa")}, 2},
    {"abcde", "a", "bcd", {STR_INIT("cd"), STR_INIT("bcd")}, 2},
    {"one\n\ntwo", "one", "\n\n", {STR_INIT("\n\n"), STR_INIT("x")}, 2},
    {"caf\xC3\xA9!", "caf", "\xC3\xA9", {STR_INIT("\xC3\xA9")}, 1},
    {"", "", "", {STR_INIT("x")}, 1},
    {"none", "none", "", {STR_INIT("")}, 0},
};

/* Of two that begin at different places, the first; what is shown early is never taken back. */
static void a_reply_ends_before_the_first_however_it_is_cut(void **state) {
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct str text = str_from(rows[i].text);
        for (size_t piece = 1; piece <= text.len + 1; piece++) {
            struct stop_sequences stops;
            struct buf shown;
            struct str stop = STR_EMPTY, rest = text;
            bool found = false;
            buf_init(&shown, KIB);
            stop_sequences_init(&stops, 8);
            stop_sequences_begin(&stops, rows[i].stops, rows[i].count);
            while (rest.len && !found) {
                found = stop_sequences_take(&stops, str_head(rest, piece), &shown, &stop);
                rest = str_skip(rest, piece);
                assert_true(str_starts(str_from(rows[i].shown), buf_str(&shown)));
            }
            if (!found) stop_sequences_end(&stops, &shown);
            assert_str(buf_str(&shown), rows[i].shown);
            if (piece > text.len) assert_str(stop, rows[i].stop);
            assert_int_equal(found, rows[i].stop[0] != 0);
            stop_sequences_done(&stops);
            buf_done(&shown);
        }
    }
}

static void a_new_reply_forgets_what_was_held_back(void **state) {
    (void)state;
    static const struct str end = STR_INIT("END");
    struct stop_sequences stops;
    struct buf shown;
    struct str stop;
    buf_init(&shown, KIB);
    stop_sequences_init(&stops, end.len);
    stop_sequences_begin(&stops, &end, 1);
    assert_false(stop_sequences_take(&stops, STR("EN"), &shown, &stop));
    stop_sequences_begin(&stops, &end, 1);
    assert_false(stop_sequences_take(&stops, STR("D"), &shown, &stop));
    assert_str(buf_str(&shown), "D");
    stop_sequences_done(&stops);
    buf_done(&shown);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_reply_ends_before_the_first_however_it_is_cut),
        cmocka_unit_test(a_new_reply_forgets_what_was_held_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
