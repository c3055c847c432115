#include "route/pattern.h"

#include "helper/assert_str.h"

static void a_pattern_takes_one_full_segment_for_each_hole(void **state) {
    (void)state;
    static const struct {
        const char *pattern, *path;
        bool matches;
        const char *id;
    } rows[] = {
        {"/invoke", "/invoke", true, ""},
        {"/invoke", "/invoke/", false, ""},
        {"/invoke", "/Invoke", false, ""},
        {"/runs/{id}", "/runs/7", true, "7"},
        {"/runs/{id}", "/runs/", false, ""},
        {"/runs/{id}", "/runs", false, ""},
        {"/runs/{id}", "/runs/7/", false, "7"},
        {"/runs/{id}", "/runs/7/events", false, "7"},
        {"/runs/{id}/events", "/runs/7/events", true, "7"},
        {"/runs/{id}/events", "/runs/a%2Fb/events", true, "a%2Fb"},
        {"/runs/{id}/events", "/runs//events", false, ""},
        {"/runs/{id}/events", "/runs/7/event", false, "7"},
        {"/{a}/{id}", "/x/y", true, "y"},
        {"/{a}/{id}", "x/y", false, ""},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct str pattern = str_from(rows[i].pattern), path = str_from(rows[i].path);
        assert_int_equal(pattern_matches(pattern, path), rows[i].matches);
        if (rows[i].matches)
            assert_str(pattern_parameter(pattern, path, STR("id")), rows[i].id);
    }
}

static void a_query_is_read_as_forms_write_it(void **state) {
    (void)state;
    static const struct {
        const char *query;
        enum query_value found;
        const char *value;
    } rows[] = {
        {"a=1", QUERY_READ, "1"},
        {"b=2&a=1", QUERY_READ, "1"},
        {"a=1&a=2", QUERY_READ, "1"},
        {"a=", QUERY_READ, ""},
        {"a", QUERY_READ, ""},
        {"", QUERY_ABSENT, ""},
        {"ab=1", QUERY_ABSENT, ""},
        {"a=x+y%20z", QUERY_READ, "x y z"},
        {"a=%E2%82%ac", QUERY_READ, "€"},
        {"a=%2", QUERY_BAD, ""},
        {"a=%", QUERY_BAD, ""},
        {"a=%GG", QUERY_BAD, ""},
        {"a=%ff", QUERY_BAD, ""},
        {"a=%ff&a=1", QUERY_BAD, ""},
        {"&&a=1&", QUERY_READ, "1"},
        {"a=b=c", QUERY_READ, "b=c"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct buf out;
        buf_init(&out, 64);
        assert_int_equal(query_find(str_from(rows[i].query), STR("a"), &out), rows[i].found);
        assert_str(buf_str(&out), rows[i].value);
        buf_done(&out);
    }
}

static void a_segment_is_decoded_but_for_its_plus(void **state) {
    (void)state;
    static const struct {
        const char *segment;
        bool ok;
        const char *value;
    } rows[] = {{"plain", true, "plain"}, {"a+b", true, "a+b"}, {"a%2Fb%20c", true, "a/b c"},
                {"%C3%A9", true, "é"},    {"%ff", false, ""},   {"%2", false, ""},
                {"%zz", false, ""},       {"", true, ""}};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct buf out;
        buf_init(&out, 64);
        assert_int_equal(segment_decode(str_from(rows[i].segment), &out), rows[i].ok);
        assert_str(buf_str(&out), rows[i].value);
        buf_done(&out);
    }
}

static void a_value_that_does_not_fit_is_bad(void **state) {
    (void)state;
    for (size_t limit = 0; limit <= 5; limit++) {
        struct buf out;
        buf_init(&out, limit);
        assert_int_equal(query_find(STR("a=12345"), STR("a"), &out),
                         limit == 5 ? QUERY_READ : QUERY_BAD);
        assert_int_equal(out.len, limit == 5 ? 5 : 0);
        buf_done(&out);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_pattern_takes_one_full_segment_for_each_hole),
        cmocka_unit_test(a_query_is_read_as_forms_write_it),
        cmocka_unit_test(a_segment_is_decoded_but_for_its_plus),
        cmocka_unit_test(a_value_that_does_not_fit_is_bad),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
