#include "base/err.h"

#include "helper/assert_str.h"

#include "base/utf8.h"

static void context_goes_in_front(void **state) {
    (void)state;
    struct err e;
    assert_false(err_set(&e, ERR_NOT_FOUND, "no tool named '%s'", "serch"));
    assert_false(err_add(&e, "12:%d", 9));
    assert_false(err_add(&e, "load agent 'planner.yaml'"));
    assert_int_equal(e.code, ERR_NOT_FOUND);
    assert_string_equal(e.text, "load agent 'planner.yaml': 12:9: no tool named 'serch'");
    assert_str(err_text(&e), e.text);
}

static void long_text_is_cut_between_characters(void **state) {
    (void)state;
    static const char *const fillers[] = {"x", "é", "系", "😈"};
    for (size_t i = 0; i < ARRAY_LEN(fillers); i++) {
        for (size_t shift = 0; shift < 4; shift++) {
            char text[2000];
            size_t len = shift;
            memset(text, 'x', shift);
            while (len < 1000) {
                memcpy(text + len, fillers[i], strlen(fillers[i]) + 1);
                len += strlen(fillers[i]);
            }
            struct err e;
            err_set(&e, ERR_INTERNAL, "%s", text);
            assert_true(strlen(e.text) > ERR_TEXT_BYTES - 5);
            assert_true(utf8_valid(err_text(&e)));
            err_set(&e, ERR_INTERNAL, "short");
            err_add(&e, "%s", text);
            assert_true(strlen(e.text) < ERR_TEXT_BYTES);
            assert_true(utf8_valid(err_text(&e)));
        }
    }
}

static void a_quote_that_was_cut_inside_a_character_is_repaired(void **state) {
    (void)state;
    struct err e;
    for (size_t cut = 0; cut <= 4; cut++) {
        err_set(&e, ERR_NOT_FOUND, "no agent named 'x" STR_FMT "'; ask again",
                STR_ARG(str_head(STR("😈"), cut)));
        assert_true(utf8_valid(err_text(&e)));
        assert_true(str_ends(err_text(&e), STR("'; ask again")));
    }
    assert_str(err_text(&e), "no agent named 'x😈'; ask again");
    err_set(&e, ERR_NOT_FOUND, "no agent named 'x" STR_FMT "'", STR_ARG(str_head(STR("é"), 1)));
    assert_str(err_text(&e), "no agent named 'x\xEF\xBF\xBD'");
    err_add(&e, "\xFF");
    assert_str(err_text(&e), "\xEF\xBF\xBD: no agent named 'x\xEF\xBF\xBD'");

    /* Each bad byte becomes three: what does not fit is left out. */
    char bad[ERR_TEXT_BYTES];
    memset(bad, '\xFF', sizeof(bad));
    err_set(&e, ERR_INTERNAL, STR_FMT, STR_ARG(str_of(bad, sizeof(bad))));
    assert_true(utf8_valid(err_text(&e)));
    assert_true(strlen(e.text) < ERR_TEXT_BYTES);
}

/* What is repaired is longer, and a full text has no room for that. */
static void a_bad_byte_takes_no_more_of_a_long_text_than_its_room(void **state) {
    (void)state;
    char said[ERR_TEXT_BYTES];
    struct err e;
    memset(said, 'a', sizeof(said) - 1);
    said[sizeof(said) - 1] = '\0';
    said[10] = '\xFF';
    err_set(&e, ERR_INTERNAL, "%s", said);
    assert_int_equal(err_text(&e).len, ERR_TEXT_BYTES - 1);
    assert_true(utf8_valid(err_text(&e)));
    assert_true(str_ends(err_text(&e), str_of(said + 11, ERR_TEXT_BYTES - 1 - 13)));
}

static void an_error_may_quote_itself_by_adding(void **state) {
    (void)state;
    struct err e;
    err_set(&e, ERR_ABORTED, "inner");
    err_add(&e, "%s", e.text);
    assert_string_equal(e.text, "inner: inner");
}

static void every_code_has_a_whole_row(void **state) {
    (void)state;
    for (int code = 0; code < ERR_CODE_COUNT; code++) {
        assert_non_null(err_kinds[code].name);
        assert_in_range(err_kinds[code].grpc_status, 0, 16);
        assert_in_range(err_kinds[code].http_status, 200, 599);
        if (code <= ERR_UNAUTHENTICATED) assert_int_equal(err_kinds[code].grpc_status, code);
    }
}

static void codes_are_found_by_any_spelling_of_their_name(void **state) {
    (void)state;
    for (int code = 0; code <= ERR_UNAUTHENTICATED; code++)
        assert_int_equal(err_code_named(err_name((enum err_code)code)), code);
    assert_int_equal(err_code_named(STR("NotFound")), ERR_NOT_FOUND);
    assert_int_equal(err_code_named(STR("deadline_exceeded")), ERR_DEADLINE_EXCEEDED);
    assert_int_equal(err_code_named(STR("Canceled")), ERR_CANCELLED);
    assert_int_equal(err_code_named(STR("CANCELLED")), ERR_CANCELLED);
    assert_int_equal(err_code_named(STR("_ok_")), ERR_NONE);
    assert_int_equal(err_code_named(STR("")), ERR_UNKNOWN);
    assert_int_equal(err_code_named(STR("NOT_FOUN")), ERR_UNKNOWN);
    assert_int_equal(err_code_named(STR("NOT_FOUNDX")), ERR_UNKNOWN);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(context_goes_in_front),
        cmocka_unit_test(long_text_is_cut_between_characters),
        cmocka_unit_test(a_quote_that_was_cut_inside_a_character_is_repaired),
        cmocka_unit_test(a_bad_byte_takes_no_more_of_a_long_text_than_its_room),
        cmocka_unit_test(an_error_may_quote_itself_by_adding),
        cmocka_unit_test(every_code_has_a_whole_row),
        cmocka_unit_test(codes_are_found_by_any_spelling_of_their_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
