#include "wire/xml.h"

#include "helper/assert_str.h"

#define LIST                                                                                   \
    "<?xml version=\"1.0\"?>\n<!-- x --><ListBucketResult xmlns='http://s3/doc/'>"             \
    "<Contents><Key>a &amp; b</Key><Size>5</Size></Contents>"                                  \
    "<Contents a = \"1\" ><Key>c&#x20AC;<![CDATA[<d>]]></Key></Contents><Empty/>"              \
    "</ListBucketResult>"

static void assert_text(struct str content, const char *expected) {
    struct buf text;
    buf_init(&text, KIB);
    assert_true(xml_text(content, &text));
    assert_str(buf_str(&text), expected);
    buf_done(&text);
}

static void elements_are_found_by_name_and_in_order(void **state) {
    (void)state;
    struct str list, name, content, key;
    struct err e;
    assert_true(xml_read(STR(LIST), &list, &e));
    assert_true(xml_is(STR(LIST), STR("ListBucketResult")));
    assert_false(xml_is(STR(LIST), STR("Contents")));
    assert_true(xml_next(&list, &name, &content));
    assert_str(name, "Contents");
    assert_true(xml_find(content, STR("Key"), &key));
    assert_text(key, "a & b");
    assert_text(content, "");
    assert_true(xml_next(&list, &name, &content));
    assert_true(xml_find(content, STR("Key"), &key));
    assert_text(key, "c\xE2\x82\xAC<d>");
    assert_false(xml_find(content, STR("Size"), &key));
    assert_true(xml_next(&list, &name, &content));
    assert_str(name, "Empty");
    assert_int_equal(content.len, 0);
    assert_false(xml_next(&list, &name, &content));
}

static void every_truncation_is_refused(void **state) {
    (void)state;
    struct str whole = STR(LIST), content;
    struct err e;
    for (size_t len = 0; len < whole.len; len++) {
        assert_false(xml_read(str_head(whole, len), &content, &e));
        assert_int_equal(e.code, ERR_MALFORMED);
    }
}

static void what_is_wrong_is_refused_with_its_place(void **state) {
    (void)state;
    static const struct {
        const char *text, *why;
    } rows[] = {
        {"", "XML (byte 0): it ends too early"},
        {"x<a/>", "text outside"},
        {"<a/>x", "text outside"},
        {"<a/><b/>", "a second root element"},
        {"<a></b>", "an element ends that did not begin"},
        {"</a>", "an element ends that did not begin"},
        {"<a>&nbsp;</a>", "an unknown entity"},
        {"<a>&#0;</a>", "an unknown entity"},
        {"<a>&#xD800;</a>", "an unknown entity"},
        {"<a>&#1114112;</a>", "an unknown entity"},
        {"<a>&amp</a>", "an unknown entity"},
        {"<a b></a>", "a tag that is cut or wrong"},
        {"<a b=1></a>", "a tag that is cut or wrong"},
        {"<a b='<'></a>", "a tag that is cut or wrong"},
        {"<1></1>", "a tag that is cut or wrong"},
        {"<!DOCTYPE a><a/>", "a tag that is cut or wrong"},
        {"<?xml version='1.0'?><!DOCTYPE a [<!ENTITY x 'y'>]><a>&x;</a>", "a tag that is cut"},
        {"<a><!DOCTYPE a></a>", "a tag that is cut or wrong"},
        {"<a><!ENTITY x 'y'></a>", "a tag that is cut or wrong"},
        {"<a>&x;</a>", "an unknown entity"},
        {"<a>\xFF</a>", "it is not UTF-8"},
        {"<a><a><a><a><a><a><a><a><a><a><a><a><a><a><a><a><a>", "elements nest too deep"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct str content;
        struct err e;
        assert_false(xml_read(str_from(rows[i].text), &content, &e));
        assert_int_equal(e.code, ERR_MALFORMED);
        assert_non_null(strstr(e.text, rows[i].why));
    }
}

static void a_text_stops_at_the_limit_of_its_buffer(void **state) {
    (void)state;
    struct str content;
    struct err e;
    struct buf text;
    assert_true(xml_read(STR("<a>12345</a>"), &content, &e));
    buf_init(&text, 4);
    assert_false(xml_text(content, &text));
    buf_done(&text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(elements_are_found_by_name_and_in_order),
        cmocka_unit_test(every_truncation_is_refused),
        cmocka_unit_test(what_is_wrong_is_refused_with_its_place),
        cmocka_unit_test(a_text_stops_at_the_limit_of_its_buffer),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
