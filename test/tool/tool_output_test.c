#include "tool/tool_output.h"

#include "helper/assert_str.h"

#include "wire/json.h"

static void result_of(const char *bytes, enum tool_output_form form, const char *pick,
                      const char *expected) {
    struct buf out;
    struct err e;
    struct json value;
    buf_init(&out, 4 * KIB);
    if (!tool_output_write(str_from(bytes), form, str_from(pick), &out, &e))
        fail_msg("%s", e.text);
    assert_str(buf_str(&out), expected);
    assert_true(json_read(buf_str(&out), &value, &e));
    buf_done(&out);
}

static void json_stays_json_and_all_else_is_text(void **state) {
    (void)state;
    result_of(" {\"a\": [1,\n 2]}\n", TOOL_OUTPUT_AUTO, "", "{\"output\":{\"a\":[1,2]}}");
    result_of("42\n", TOOL_OUTPUT_AUTO, "", "{\"output\":42}");
    result_of("two words\r\n\n", TOOL_OUTPUT_AUTO, "", "{\"output\":\"two words\"}");
    result_of("{\"a\":1", TOOL_OUTPUT_AUTO, "", "{\"output\":\"{\\\"a\\\":1\"}");
    result_of("", TOOL_OUTPUT_AUTO, "", "{\"output\":\"\"}");
    result_of("\xFF!", TOOL_OUTPUT_AUTO, "", "{\"output\":\"\xEF\xBF\xBD!\"}");
    result_of("{}", TOOL_OUTPUT_TEXT, "", "{\"output\":\"{}\"}");
}

static void a_member_is_picked_where_it_is_there(void **state) {
    (void)state;
    result_of("{\"output\":{\"b\":2},\"c\":3}", TOOL_OUTPUT_AUTO, "output",
              "{\"output\":{\"b\":2}}");
    result_of("{\"c\":3}", TOOL_OUTPUT_JSON, "output", "{\"output\":{\"c\":3}}");
    result_of("[1]", TOOL_OUTPUT_AUTO, "output", "{\"output\":[1]}");
}

static void what_must_be_json_is_refused_else(void **state) {
    struct buf out;
    struct err e;
    (void)state;
    buf_init(&out, KIB);
    assert_false(tool_output_write(STR("<html>"), TOOL_OUTPUT_JSON, STR_EMPTY, &out, &e));
    assert_int_equal(e.code, ERR_EFFECT_UNKNOWN);
    assert_true(str_starts(err_text(&e), STR("its answer is no JSON: JSON 1:1")));
    buf_done(&out);
}

/* As deep as JSON may be: the result, which is one level deeper, must still read. */
static void what_is_too_deep_for_a_result_is_text(void **state) {
    char deep[2 * JSON_DEPTH_MAX + 1];
    struct buf out;
    struct err e;
    struct json value;
    (void)state;
    memset(deep, '[', JSON_DEPTH_MAX);
    memset(deep + JSON_DEPTH_MAX, ']', JSON_DEPTH_MAX);
    for (size_t levels = JSON_DEPTH_MAX - 1; levels <= JSON_DEPTH_MAX; levels++) {
        buf_init(&out, KIB);
        struct str text = str_of(deep + JSON_DEPTH_MAX - levels, 2 * levels);
        assert_true(tool_output_write(text, TOOL_OUTPUT_AUTO, STR_EMPTY, &out, &e));
        assert_true(json_read(buf_str(&out), &value, &e));
        bool is_text = json_find(value, STR("output")).kind == JSON_STRING;
        assert_int_equal(is_text, levels == JSON_DEPTH_MAX);
        buf_done(&out);
    }
}

static void a_result_that_has_no_room_is_an_error(void **state) {
    struct err e;
    (void)state;
    for (size_t room = 0; room < strlen("{\"output\":\"four\"}"); room++) {
        struct buf out;
        buf_init(&out, room);
        assert_false(tool_output_write(STR("four"), TOOL_OUTPUT_TEXT, STR_EMPTY, &out, &e));
        assert_int_equal(e.code, ERR_EFFECT_UNKNOWN);
        buf_done(&out);
    }
}

static void secrets_are_hidden_in_every_spelling(void **state) {
    static const struct tool_secret secrets[] = {
        {STR_INIT("A"), STR_INIT("s3cret/key")},
        {STR_INIT("B"), STR_INIT("say \"it\"")},
        {STR_INIT("C"), STR_INIT("short")},
    };
    struct buf out;
    (void)state;
    buf_init(&out, KIB);
    tool_output_hide(STR("a s3cret/key, s3cret%2Fkey, say \"it\", say \\\"it\\\", short"),
                     secrets, ARRAY_LEN(secrets), &out);
    assert_str(buf_str(&out), "a ***, ***, ***, ***, short");
    buf_done(&out);
}

static void hides(const char *text, const char *expected) {
    static const struct tool_secret secrets[] = {
        {STR_INIT("A"), STR_INIT("k/\"\xC3\xA4\xF0\x9F\x98\x80z9")}};
    struct buf out;
    buf_init(&out, KIB);
    tool_output_hide(str_from(text), secrets, 1, &out);
    assert_str(buf_str(&out), expected);
    buf_done(&out);
}

static void secrets_are_hidden_with_any_escapes_of_json_and_in_json_within_json(void **state) {
    (void)state;
    hides("{\"k\":\"k\\/\\\"\\u00e4\\ud83d\\uDE00z9\"}", "{\"k\":\"***\"}");
    hides("{\"\\u006b/\\u0022\xC3\xA4\\ud83d\\uDE00\\u007A9\":1}", "{\"***\":1}");
    hides("\"{\\\"k\\\":\\\"k\\\\/\\\\\\\"\\\\u00e4\\\\ud83d\\\\ude00z9\\\"}\"",
          "\"{\\\"k\\\":\\\"***\\\"}\"");
    hides("not whole: {\"k/\\\"\\u00e4\\ud83d\\uDE00z9", "not whole: {\"***");
    hides("k%2f%22%C3%a4%F0%9f%98%80z%39 k\\/", "*** k\\/");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(json_stays_json_and_all_else_is_text),
        cmocka_unit_test(a_member_is_picked_where_it_is_there),
        cmocka_unit_test(what_must_be_json_is_refused_else),
        cmocka_unit_test(what_is_too_deep_for_a_result_is_text),
        cmocka_unit_test(a_result_that_has_no_room_is_an_error),
        cmocka_unit_test(secrets_are_hidden_in_every_spelling),
        cmocka_unit_test(secrets_are_hidden_with_any_escapes_of_json_and_in_json_within_json),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
