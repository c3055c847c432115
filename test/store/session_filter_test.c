/* The filter of known sessions: never a wrong no, rarely a wrong perhaps. */
#include "store/session_filter.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
/* cmocka wants these four first. */
#include <cmocka.h>

static struct str name_of(char text[static 16], int number) {
    snprintf(text, 16, "%d", number);
    return str_from(text);
}

static void what_was_added_is_always_known(void **state) {
    (void)state;
    enum { COUNT = 50000 };
    struct session_filter *known = session_filter_new();
    char name[16];
    for (int i = 0; i < COUNT; i++)
        session_filter_add(known, STR("w"), STR("u"), name_of(name, i));
    for (int i = 0; i < COUNT; i++) {
        assert_true(session_filter_perhaps(known, STR("w"), STR("u"), name_of(name, i)));
    }
    int wrong = 0;
    for (int i = COUNT; i < 2 * COUNT; i++) {
        wrong += session_filter_perhaps(known, STR("w"), STR("u"), name_of(name, i));
    }
    assert_in_range(wrong, 0, COUNT / 20);
    session_filter_free(known);
}

static void the_three_parts_of_a_key_do_not_run_together(void **state) {
    (void)state;
    struct session_filter *known = session_filter_new();
    assert_false(session_filter_perhaps(known, STR("a"), STR("b"), STR("c")));
    session_filter_add(known, STR("a"), STR("b"), STR("c"));
    assert_true(session_filter_perhaps(known, STR("a"), STR("b"), STR("c")));
    assert_false(session_filter_perhaps(known, STR("ab"), STR(""), STR("c")));
    assert_false(session_filter_perhaps(known, STR("b"), STR("a"), STR("c")));
    assert_false(session_filter_perhaps(known, STR(""), STR(""), STR("")));
    session_filter_free(known);
    session_filter_free(NULL);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_added_is_always_known),
        cmocka_unit_test(the_three_parts_of_a_key_do_not_run_together),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
