#include "base/text.h"

#include "helper/assert_str.h"

static void a_copy_outlives_what_it_was_made_of(void **state) {
    (void)state;
    char room[] = "my words";
    struct text text = text_copy(str_of(room, 2));
    memcpy(room, "another!", 8);
    assert_str(text_str(text), "my");
    assert_int_equal(text.at[text.len], '\0');
    text_done(&text);
}

static void bytes_may_hold_any_byte(void **state) {
    (void)state;
    struct text text = text_copy(STR("a\0b"));
    assert_int_equal(text_str(text).len, 3);
    assert_memory_equal(text_str(text).at, "a\0b", 3);
    text_done(&text);
}

static void no_text_reads_as_empty_and_ends_twice(void **state) {
    (void)state;
    struct text text = {0}, of_nothing = text_copy((struct str){NULL, 0});
    assert_str(text_str(text), "");
    assert_str(text_str(of_nothing), "");
    text_done(&text);
    text_done(&of_nothing);
    text_done(&of_nothing);
    assert_null(of_nothing.at);
}

static void a_secret_ends_like_any_text(void **state) {
    (void)state;
    struct text text = text_copy(STR("sk-secret")), none = {0};
    text_wipe(&text);
    text_wipe(&none);
    assert_null(text.at);
    assert_str(text_str(text), "");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_copy_outlives_what_it_was_made_of),
        cmocka_unit_test(bytes_may_hold_any_byte),
        cmocka_unit_test(no_text_reads_as_empty_and_ends_twice),
        cmocka_unit_test(a_secret_ends_like_any_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
