#include "base/nearest.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static const char *const known[] = {"search", "researcher", "delegates", "pace", "wait", NULL};

static void expect(const char *wanted, const char *meant) {
    struct str found = nearest_name(str_from(wanted), known);
    assert_true(str_equal(found, str_from(meant)));
}

static void a_slip_of_the_finger_finds_the_name_that_was_meant(void **state) {
    (void)state;
    expect("serch", "search");       /* one lost */
    expect("seaarch", "search");     /* one too many */
    expect("saerch", "search");      /* two swapped */
    expect("zearch", "search");      /* one wrong */
    expect("SEARCH", "search");      /* case does not count */
    expect("reserch", "researcher"); /* three, in a long name */
    expect("delegate", "delegates");
    expect("pcae", "pace");
}

static void another_name_is_not_a_slip(void **state) {
    (void)state;
    expect("", "");
    expect("writer", "");
    expect("x", "");
    expect("space-time", "");
}

static void a_name_beyond_all_measure_is_simply_not_known(void **state) {
    (void)state;
    char name[4096];
    memset(name, 'a', sizeof(name) - 1);
    name[sizeof(name) - 1] = '\0';
    expect(name, "");
}

static void of_two_that_are_near_the_nearer_one_is_meant(void **state) {
    (void)state;
    struct nearest nearest;
    nearest_init(&nearest, STR("wait"));
    nearest_offer(&nearest, STR("want"));
    nearest_offer(&nearest, STR("wait"));
    nearest_offer(&nearest, STR("bait"));
    assert_true(str_equal(nearest.found, STR("wait")));
    assert_int_equal(nearest.edits, 0);
}

static void the_hint_ends_a_sentence_or_says_nothing(void **state) {
    (void)state;
    struct nearest nearest;
    nearest_init(&nearest, STR("serch"));
    assert_string_equal(nearest_hint(&nearest), "");
    nearest_offer(&nearest, STR("search"));
    assert_string_equal(nearest_hint(&nearest), "; did you mean 'search'?");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_slip_of_the_finger_finds_the_name_that_was_meant),
        cmocka_unit_test(another_name_is_not_a_slip),
        cmocka_unit_test(a_name_beyond_all_measure_is_simply_not_known),
        cmocka_unit_test(of_two_that_are_near_the_nearer_one_is_meant),
        cmocka_unit_test(the_hint_ends_a_sentence_or_says_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
