#include "wire/consent.h"

#include "helper/assert_str.h"

static void a_yes_needs_a_yes_and_no_no(void **state) {
    (void)state;
    static const char *const yes[] = {"yes",
                                      "Yes, please",
                                      "OK!",
                                      "y",
                                      "go ahead",
                                      "approve",
                                      "{\"approved\":true}",
                                      "{\"decision\": \"approve\"}",
                                      "true"};
    static const char *const no[] = {"",          "no",        "maybe", "n",
                                     "do not",    "don't",     "false", "{\"approved\":false}",
                                     "yes... no", "yesterday", "?",     "はい"};
    for (size_t i = 0; i < ARRAY_LEN(yes); i++) assert_true(consent_given(str_from(yes[i])));
    for (size_t i = 0; i < ARRAY_LEN(no); i++) assert_false(consent_given(str_from(no[i])));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(a_yes_needs_a_yes_and_no_no)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
