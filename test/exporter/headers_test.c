#include "exporter/headers.h"

#include "helper/assert_str.h"

#include <stdio.h>

static bool read_headers(const char *text, struct exporter_headers *ret, struct err *e) {
    *ret = (struct exporter_headers){.count = 0};
    return exporter_headers_read(ret, str_from(text), e);
}

static void names_and_values_are_trimmed_and_decoded(void **state) {
    (void)state;
    struct exporter_headers headers;
    struct err e;
    assert_true(read_headers(" a = 1 ,b=x%20y%2Cz,, c=p=q", &headers, &e));
    assert_int_equal(headers.count, 3);
    assert_str(text_str(headers.names[0]), "a");
    assert_str(text_str(headers.values[0]), "1");
    assert_str(text_str(headers.values[1]), "x y,z");
    assert_str(text_str(headers.names[2]), "c");
    assert_str(text_str(headers.values[2]), "p=q");
    exporter_headers_done(&headers);
}

static void a_mistake_is_said_without_the_value(void **state) {
    (void)state;
    static const char *const bad[] = {
        "secret",     "=secret",     "a b=secret",         "a=secret%",
        "a=secret%2", "a=secret%zz", "a=secret%0D%0Ax: y", "ok=1,secret"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct exporter_headers headers;
        struct err e;
        assert_false(read_headers(bad[i], &headers, &e));
        assert_int_equal(e.code, ERR_INVALID_ARGUMENT);
        assert_true(str_find(err_text(&e), STR("secret")) == err_text(&e).len);
        exporter_headers_done(&headers);
    }
}

static void one_too_many_is_an_error(void **state) {
    (void)state;
    struct exporter_headers headers;
    struct err e;
    char text[512] = "";
    for (int i = 0; i < EXPORTER_HEADERS_MAX; i++)
        snprintf(text + strlen(text), sizeof(text) - strlen(text), "h%d=%d,", i, i);
    assert_true(read_headers(text, &headers, &e));
    assert_int_equal(headers.count, EXPORTER_HEADERS_MAX);
    exporter_headers_done(&headers);
    strcat(text, "more=1");
    assert_false(read_headers(text, &headers, &e));
    assert_int_equal(e.code, ERR_TOO_LARGE);
    exporter_headers_done(&headers);
}

static void nothing_is_no_header(void **state) {
    (void)state;
    struct exporter_headers headers;
    struct err e;
    assert_true(read_headers("", &headers, &e));
    assert_int_equal(headers.count, 0);
    exporter_headers_done(&headers);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_and_values_are_trimmed_and_decoded),
        cmocka_unit_test(a_mistake_is_said_without_the_value),
        cmocka_unit_test(one_too_many_is_an_error),
        cmocka_unit_test(nothing_is_no_header),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
