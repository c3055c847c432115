/* What PostgreSQL's jsonb would refuse is said in another way. */
#include "orchestrator/jsonb.h"

#include "helper/assert_str.h"

#include <stdio.h>

static void what_jsonb_holds_stays_and_the_rest_is_a_text(void **state) {
    (void)state;
    static const struct {
        const char *json, *put;
    } rows[] = {
        {"{\"a\": [1, -2.5e3, 1E-9, true, null]}", "{\"a\": [1, -2.5e3, 1E-9, true, null]}"},
        {"1e999999", "\"1e999999\""},
        {"[1E+999999,-0.1e-99999999999999999999]",
         "[\"1E+999999\",\"-0.1e-99999999999999999999\"]"},
        {"{\"1e999999\":\"1e999999\"}", "{\"1e999999\":\"1e999999\"}"},
        {"{\"e\":1e4096,\"f\":1e4097}", "{\"e\":1e4096,\"f\":\"1e4097\"}"},
        {"\"a\\u0000b\"", "\"a\\ufffdb\""},
        {"\"a\\\\u0000b\"", "\"a\\\\u0000b\""},
        {"\"\\\"1e999999\\u0000\\\\\"", "\"\\\"1e999999\\ufffd\\\\\""},
        {"{\"\\u0000\":[]}", "{\"\\ufffd\":[]}"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct buf out;
        buf_init(&out, KIB);
        jsonb_put(str_from(rows[i].json), &out);
        assert_str(buf_str(&out), rows[i].put);
        buf_done(&out);
    }
}

static void a_nul_is_found_and_what_looks_like_one_is_not(void **state) {
    (void)state;
    assert_true(jsonb_has_nul(STR("\"\\u0000\"")));
    assert_true(jsonb_has_nul(STR("[\"\\\\\\u0000\"]")));
    assert_false(jsonb_has_nul(STR("[\"\\\\u0000\",\"u0000\",\"\\u0001\"]")));
    assert_false(jsonb_has_nul(STR("\"a\\")));
    assert_false(jsonb_has_nul(STR_EMPTY));
}

static void a_number_of_many_digits_is_a_text(void **state) {
    (void)state;
    char digits[JSONB_NUMBER_MAX + 1];
    struct buf out;
    memset(digits, '7', sizeof(digits));
    buf_init(&out, 8 * KIB);
    jsonb_put(str_of(digits, JSONB_NUMBER_MAX), &out);
    assert_int_equal(out.len, JSONB_NUMBER_MAX);
    buf_clear(&out);
    jsonb_put(str_of(digits, JSONB_NUMBER_MAX + 1), &out);
    assert_int_equal(out.len, JSONB_NUMBER_MAX + 3);
    buf_done(&out);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_jsonb_holds_stays_and_the_rest_is_a_text),
        cmocka_unit_test(a_nul_is_found_and_what_looks_like_one_is_not),
        cmocka_unit_test(a_number_of_many_digits_is_a_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
