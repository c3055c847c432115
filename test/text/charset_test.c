#include "text/charset.h"

#include "helper/assert_str.h"

#include "base/utf8.h"

static void assert_converts(const char *name, struct str bytes, const char *expected) {
    struct buf out;
    buf_init(&out, KIB);
    struct str copy = exact_copy(bytes);
    charset_append(&out, str_from(name), copy);
    assert_str(buf_str(&out), expected);
    free((void *)copy.at);
    buf_done(&out);
}

static void a_content_type_names_its_charset(void **state) {
    (void)state;
    assert_str(charset_of_type(STR("text/html; charset=UTF-8")), "UTF-8");
    assert_str(charset_of_type(STR("text/html;Charset = \"koi8-r\"; x=y")), "koi8-r");
    assert_str(charset_of_type(STR("text/html; charset='big5'")), "big5");
    assert_str(charset_of_type(STR("text/html")), "");
    assert_str(charset_of_type(STR("text/html; charset")), "");
    assert_str(charset_of_type(STR("text/html; charset=")), "");
    assert_str(charset_of_type(STR("")), "");
}

static void a_page_names_its_charset_near_its_beginning(void **state) {
    (void)state;
    assert_str(charset_of_page(STR("<html><META charset=latin1>")), "latin1");
    assert_str(charset_of_page(STR("<meta name=x><meta http-equiv='Content-Type' "
                                   "content='text/html; charset=gbk'>")),
               "gbk");
    assert_str(charset_of_page(STR("<p>charset=no</p>")), "");
    assert_str(charset_of_page(STR("<meta>charset=no")), "");
    struct buf page;
    buf_init(&page, 4 * KIB);
    while (page.len < 1024) buf_append(&page, STR(" "));
    buf_append(&page, STR("<meta charset=latin1>"));
    assert_str(charset_of_page(buf_str(&page)), "");
    buf_done(&page);
}

static void known_charsets_become_utf8(void **state) {
    (void)state;
    assert_converts("windows-1252", STR("caf\xE9 \x80\x93"),
                    "caf\xC3\xA9 \xE2\x82\xAC\xE2\x80\x9C");
    assert_converts("ISO-8859-1", STR("\xFC"), "\xC3\xBC");
    assert_converts("windows-1251", STR("\xCC\xE8\xF0"), "\xD0\x9C\xD0\xB8\xD1\x80");
    assert_converts("shift_jis", STR("\x83\x65\x83\x58"), "\xE3\x83\x86\xE3\x82\xB9");
    assert_converts("utf-8", STR("\xC3\xA9"), "\xC3\xA9");
}

static void bytes_that_are_not_text_become_a_replacement(void **state) {
    (void)state;
    assert_converts("windows-1252", STR("a\x81z"), "a\xEF\xBF\xBDz");
    assert_converts("shift_jis", STR("a\x83"), "a\xEF\xBF\xBD");
    assert_converts("utf-8", STR("a\xFFz"), "a\xEF\xBF\xBDz");
}

static void an_unknown_name_never_reaches_the_library(void **state) {
    (void)state;
    assert_converts("", STR("a\xE9"), "a\xEF\xBF\xBD");
    assert_converts("UTF-7", STR("+AGE-"), "+AGE-");
    assert_converts("../../x//TRANSLIT", STR("a"), "a");
}

static void a_byte_order_mark_decides(void **state) {
    (void)state;
    assert_converts("windows-1252", STR("\xEF\xBB\xBF\xC3\xA9"), "\xC3\xA9");
    assert_converts("utf-8", STR("\xFF\xFE\x61\0\xE9\0"), "a\xC3\xA9");
    assert_converts("", STR("\xFE\xFF\0\x61"), "a");
}

static void any_cut_of_any_charset_is_valid_utf8(void **state) {
    (void)state;
    static const char *const names[] = {"utf-8",  "latin1", "gb18030",
                                        "euc-kr", "big5",   "utf-16le"};
    for (size_t name = 0; name < ARRAY_LEN(names); name++) {
        char bytes[256];
        for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (char)(255 - i);
        for (size_t cut = 0; cut <= sizeof bytes; cut++) {
            struct buf out;
            buf_init(&out, 8 * KIB);
            struct str copy = exact_copy(str_of(bytes, cut));
            charset_append(&out, str_from(names[name]), copy);
            assert_true(utf8_valid(buf_str(&out)));
            free((void *)copy.at);
            buf_done(&out);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_content_type_names_its_charset),
        cmocka_unit_test(a_page_names_its_charset_near_its_beginning),
        cmocka_unit_test(known_charsets_become_utf8),
        cmocka_unit_test(bytes_that_are_not_text_become_a_replacement),
        cmocka_unit_test(an_unknown_name_never_reaches_the_library),
        cmocka_unit_test(a_byte_order_mark_decides),
        cmocka_unit_test(any_cut_of_any_charset_is_valid_utf8),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
