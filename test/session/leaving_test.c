#include "session/leaving.h"

#include "helper/assert_str.h"

static void what_is_written_reads_the_same(void **state) {
    (void)state;
    static const struct {
        const char *text;
        struct leaving leaving;
    } rows[] = {
        {"cancel", {LEAVING_CANCELS, 0}},
        {"detach", {LEAVING_DETACHES, 0}},
        {"detach-for=30s", {LEAVING_DETACHES, 30000}},
        {"detach-for=250ms", {LEAVING_DETACHES, 250}},
        {"detach-for=2h", {LEAVING_DETACHES, 7200000}},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct leaving leaving;
        struct err e;
        struct buf out;
        buf_init(&out, 64);
        assert_true(leaving_parse(str_from(rows[i].text), &leaving, &e));
        assert_int_equal(leaving.how, rows[i].leaving.how);
        assert_int_equal(leaving.for_ms, rows[i].leaving.for_ms);
        leaving_append(leaving, &out);
        assert_str(buf_str(&out), rows[i].text);
        buf_done(&out);
    }
}

static void anything_else_is_refused_with_what_to_say(void **state) {
    (void)state;
    static const char *const bad[] = {"",
                                      "Cancel",
                                      "detach-for",
                                      "detach-for=",
                                      "detach-for=30",
                                      "detach-for=0",
                                      "detach-for=1us",
                                      "detach-for=-1s",
                                      "detach "};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct leaving leaving = {LEAVING_DETACHES, 7};
        struct err e;
        assert_false(leaving_parse(str_from(bad[i]), &leaving, &e));
        assert_int_equal(e.code, ERR_INVALID_ARGUMENT);
        assert_non_null(strstr(e.text, "detach-for=30s"));
        assert_int_equal(leaving.for_ms, 7);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_reads_the_same),
        cmocka_unit_test(anything_else_is_refused_with_what_to_say),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
