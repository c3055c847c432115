/* Columns of characters. */
#include "text/width.h"

#include "helper/assert_str.h"

static void characters_have_their_columns(void **state) {
    (void)state;
    static const struct {
        const char *text;
        uint32_t code_point;
        unsigned width;
    } rows[] = {
        {"a", 'a', 1},
        {"\xc3\xa4", 0xE4, 1},
        {"\xcc\x81", 0x301, 0},      /* an accent that combines */
        {"\xe2\x80\x8d", 0x200D, 0}, /* a joiner */
        {"\xef\xb8\x8f", 0xFE0F, 0}, /* emoji style */
        {"\xe6\xbc\xa2", 0x6F22, 2}, /* Han */
        {"\xea\xb0\x80", 0xAC00, 2}, /* Hangul */
        {"\xef\xbc\xa1", 0xFF21, 2}, /* a fullwidth letter */
        {"\xef\xbd\xb1", 0xFF71, 1}, /* a halfwidth one */
        {"\xf0\x9f\x98\x80", 0x1F600, 2},
        {"\xe2\x94\x80", 0x2500, 1}, /* lines of boxes */
        {"\xf0\xa0\x80\x80", 0x20000, 2},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        size_t len;
        assert_int_equal(width_decode(str_from(rows[i].text), &len), rows[i].code_point);
        assert_int_equal(len, strlen(rows[i].text));
        assert_int_equal(width_of(rows[i].code_point), rows[i].width);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(characters_have_their_columns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
