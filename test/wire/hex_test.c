/* Bytes as hexadecimal digits, and back. */
#include "wire/hex.h"

#include "helper/assert_str.h"

static void bytes_are_written_and_read_again(void **state) {
    (void)state;
    char all[256], back[256];
    struct buf digits;
    for (int i = 0; i < 256; i++) all[i] = (char)(unsigned char)i;
    buf_init(&digits, 512);
    assert_true(hex_append(&digits, str_of(all, sizeof(all))));
    assert_str(str_head(buf_str(&digits), 8), "00010203");
    assert_str(str_skip(buf_str(&digits), 508), "feff");
    assert_true(hex_read(buf_str(&digits), back, sizeof(back)));
    assert_memory_equal(all, back, sizeof(all));
    assert_false(hex_append(&digits, STR("x"))); /* it is full */
    buf_done(&digits);
}

static void what_is_no_such_text_is_refused(void **state) {
    (void)state;
    static const char *const wrong[] = {"",     "00",   "000",  "00000",
                                        "000g", "0x00", "00 0", "/000"};
    char two[2];
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
        assert_false(hex_read(str_from(wrong[i]), two, sizeof(two)));
    assert_true(hex_read(STR("aBFf"), two, sizeof(two)));
    assert_memory_equal(two, "\xab\xff", 2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bytes_are_written_and_read_again),
        cmocka_unit_test(what_is_no_such_text_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
