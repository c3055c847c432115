#include "wire/json_unique.h"

#include "helper/assert_str.h"

static bool once(struct str text, struct err *e) {
    struct json value;
    assert_true(json_read(text, &value, e));
    return json_check_unique(value, e);
}

static void members_that_stand_once_are_fine(void **state) {
    static const char *const texts[] = {
        "{}",
        "7",
        "[]",
        "{\"a\":{\"a\":1},\"b\":[{\"a\":1},{\"a\":2}]}",
        "{\"a\":1,\"A\":2,\"\":3}",
    };
    struct err e;
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) assert_true(once(str_from(texts[i]), &e));
}

static void
a_member_that_stands_twice_is_named_at_every_level_and_in_every_spelling(void **state) {
    static const char *const texts[] = {
        "{\"cents\":5,\"cents\":9999}",
        "{\"cents\":5,\"cen\\u0074s\":5}",
        "{\"a\":[1,{\"b\":{\"cents\":1,\"x\":2,\"cents\":{}}}]}",
        "[[{\"\\u0063ents\":1,\"c\\u0065nts\":1}]]",
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct err e;
        assert_false(once(str_from(texts[i]), &e));
        assert_int_equal(e.code, ERR_INVALID_ARGUMENT);
        assert_str(err_text(&e), "the member 'cents' stands twice; give it once");
    }
}

static void a_hundred_thousand_members_are_looked_at_once_each(void **state) {
    struct buf text;
    struct err e;
    (void)state;
    buf_init(&text, 4 * MIB);
    for (int i = 0; i < 100000; i++) buf_printf(&text, "%s\"k%d\":[]", i ? "," : "{", i);
    size_t whole = text.len;
    buf_append_byte(&text, '}');
    assert_true(once(buf_str(&text), &e));
    text.len = whole;
    buf_append(&text, STR(",\"k0\":1}"));
    assert_false(once(buf_str(&text), &e));
    buf_done(&text);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(members_that_stand_once_are_fine),
        cmocka_unit_test(
            a_member_that_stands_twice_is_named_at_every_level_and_in_every_spelling),
        cmocka_unit_test(a_hundred_thousand_members_are_looked_at_once_each),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
