/* The grammar of ids; A4 and I3 of the fault table. */
#include "base/id.h"

#include "helper/assert_str.h"

#include <string.h>

static void plain_and_spoken_ids_are_fine(void **state) {
    (void)state;
    static const char *const fine[] = {
        "a", "user-1", "a b", "a:b", "J\xC3\xBCrgen", "\xF0\x9F\x90\x99", "\xC2\xA0"};
    for (size_t i = 0; i < ARRAY_LEN(fine); i++)
        if (!id_ok(str_from(fine[i]))) fail_msg("%s", fine[i]);
}

static void controls_and_bytes_that_are_no_text_are_not(void **state) {
    (void)state;
    static const struct str bad[] = {
        STR_INIT(""),         STR_INIT("a\0b"), STR_INIT("a\nb"),         STR_INIT("\x1F"),
        STR_INIT("\x7F"),     STR_INIT("\xFF"), STR_INIT("\xC3"),         STR_INIT("a\xC2\x85"),
        STR_INIT("\xC2\x9F"), STR_INIT("\x80"), STR_INIT("\xED\xA0\x80"),
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        if (id_ok(bad[i])) fail_msg("row %zu", i);
}

static void one_bad_byte_is_found_wherever_it_is(void **state) {
    (void)state;
    char text[40];
    for (size_t len = 1; len <= sizeof(text); len++) {
        for (size_t at = 0; at < len; at++) {
            for (int byte = 0; byte < 256; byte++) {
                memset(text, byte % 2 ? ' ' : '~', len);
                text[at] = (char)byte;
                bool fine = byte >= 0x20 && byte < 0x7F;
                if (id_ok(str_of(text, len)) != fine) fail_msg("%zu %zu %d", len, at, byte);
            }
        }
    }
}

static void two_hundred_and_fifty_six_bytes_fit(void **state) {
    (void)state;
    char text[ID_MAX_BYTES + 1];
    struct err e;
    memset(text, 'x', sizeof(text));
    assert_true(id_ok(str_of(text, ID_MAX_BYTES)));
    assert_false(id_check("session_id", str_of(text, ID_MAX_BYTES + 1), &e));
    assert_int_equal(e.code, ERR_INVALID_ARGUMENT);
    assert_string_equal(
        e.text, "session_id must be 1 to 256 bytes of UTF-8 without control characters");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(plain_and_spoken_ids_are_fine),
        cmocka_unit_test(controls_and_bytes_that_are_no_text_are_not),
        cmocka_unit_test(one_bad_byte_is_found_wherever_it_is),
        cmocka_unit_test(two_hundred_and_fifty_six_bytes_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
