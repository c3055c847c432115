/* The settings that the schema cannot check. */
#include "contract/nimi/options.h"

#include "helper/assert_str.h"

static void weights_belong_to_apps(void **state) {
    (void)state;
    struct err e;
    const struct nimi_options options = {.weights = STR("desktop=4, a=b=100")};
    assert_true(nimi_options_check(&options, &e));
    assert_int_equal(nimi_options_weight(&options, STR("desktop")), 4);
    assert_int_equal(nimi_options_weight(&options, STR("a=b")), 100);
    assert_int_equal(nimi_options_weight(&options, STR("other")), 1);
}

static void a_malformed_weight_is_named(void **state) {
    (void)state;
    static const char *const wrong[] = {"desktop", "desktop=", "=2",
                                        "a=0",     "a=101",    "a=2,,b=3"};
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        struct err e;
        const struct nimi_options options = {.weights = str_from(wrong[i])};
        assert_false(nimi_options_check(&options, &e));
        assert_true(str_find(err_text(&e), STR("is no weight")) < err_text(&e).len);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(weights_belong_to_apps),
        cmocka_unit_test(a_malformed_weight_is_named),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
