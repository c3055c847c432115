#include "mcp/tool_result.h"

#include "helper/assert_str.h"

#include <stdlib.h>

#define RESULT_BYTES (64 * KIB)

struct row {
    const char *result, *said;
    bool failed;
};

static void assert_rows(const struct row *rows, size_t count) {
    for (size_t i = 0; i < count; i++) {
        struct buf said;
        struct err e;
        buf_init(&said, RESULT_BYTES);
        bool good = mcp_tool_result(json_of(str_from(rows[i].result)), &said, &e);
        assert_str(good ? buf_str(&said) : err_text(&e), rows[i].said);
        assert_int_equal(good, !rows[i].failed);
        if (!good) assert_int_equal(e.code, ERR_UNKNOWN);
        buf_done(&said);
    }
}

static void structure_comes_before_text(void **state) {
    (void)state;
    static const struct row rows[] = {
        {"{\"structuredContent\":{\"a\":1},\"content\":[{\"type\":\"text\",\"text\":\"t\"}]}",
         "{\"output\":{\"a\":1}}", false},
        {"{\"structuredContent\":null,\"content\":[{\"type\":\"text\",\"text\":\"t\"}]}",
         "{\"output\":\"t\"}", false},
        {"{\"structuredContent\":{\"a\":1},\"content\":[{\"type\":\"text\",\"text\":\"t\"},"
         "{\"type\":\"image\",\"data\":\"aGk=\",\"mimeType\":\"image/png\"}]}",
         "{\"output\":{\"a\":1},\"left_out\":\"[an image is not shown: image/png, 2 bytes]\"}",
         false},
    };
    assert_rows(rows, ARRAY_LEN(rows));
}

/* A model that reads of a failure calls the tool again. */
static void a_success_without_words_is_a_success(void **state) {
    (void)state;
    static const struct row rows[] = {
        {"{\"isError\":false,\"content\":[]}", "{\"output\":\"\"}", false},
        {"{\"content\":[{\"type\":\"text\",\"text\":\"\"}]}", "{\"output\":\"\"}", false},
        {"{\"content\":[{\"type\":\"text\"}]}", "{\"output\":\"\"}", false},
        {"{}", "{\"output\":\"\"}", false},
    };
    assert_rows(rows, ARRAY_LEN(rows));
}

static void the_parts_stand_one_below_the_other(void **state) {
    (void)state;
    static const struct row rows[] = {
        {"{\"content\":[{\"type\":\"text\",\"text\":\"row one: 10\"},"
         "{\"type\":\"text\",\"text\":\"20 apples\"}]}",
         "{\"output\":\"row one: 10\\n20 apples\"}", false},
        {"{\"content\":[{\"type\":\"text\",\"text\":\"a\\n\"},{\"type\":\"text\",\"text\":\"\"}"
         ","
         "{\"type\":\"text\",\"text\":\"\\\"b\"}]}",
         "{\"output\":\"a\\n\\\"b\"}", false},
    };
    assert_rows(rows, ARRAY_LEN(rows));
}

static void what_is_not_text_is_named(void **state) {
    (void)state;
    static const struct row rows[] = {
        {"{\"content\":[{\"type\":\"image\",\"data\":\"aGVsbG8=\",\"mimeType\":\"image/"
         "png\"}]}",
         "{\"output\":\"[an image is not shown: image/png, 5 bytes]\"}", false},
        {"{\"content\":[{\"type\":\"audio\",\"data\":\"\\/\\/8\",\"mimeType\":\"audio/wav\"}]}",
         "{\"output\":\"[a sound is not shown: audio/wav, 2 bytes]\"}", false},
        {"{\"content\":[{\"type\":\"text\",\"text\":\"May\"},{\"type\":\"image\"},"
         "{\"type\":\"text\",\"text\":\"June\"}]}",
         "{\"output\":\"May\\n[an image is not shown]\\nJune\"}", false},
        {"{\"content\":[{\"type\":\"resource\",\"resource\":{\"uri\":\"file:///a.txt\","
         "\"mimeType\":\"text/plain\",\"text\":\"THE TEXT\"}}]}",
         "{\"output\":\"[resource file:///a.txt]\\nTHE TEXT\"}", false},
        {"{\"content\":[{\"type\":\"resource\",\"resource\":{\"uri\":\"file:///a.bin\","
         "\"mimeType\":\"application/zip\",\"blob\":\"aGVsbG8=\"}},{\"type\":\"resource\"}]}",
         "{\"output\":\"[resource file:///a.bin]\\n[its content is not shown: "
         "application/zip, 5 bytes]\\n[resource]\\n[its content is not shown]\"}",
         false},
        {"{\"content\":[{\"type\":\"text\",\"text\":\"see\"},{\"type\":\"resource_link\","
         "\"uri\":\"file:///a.txt\",\"name\":\"a.txt\"}]}",
         "{\"output\":\"see\\n[link to file:///a.txt, a.txt]\"}", false},
        {"{\"content\":[{\"type\":\"hologram\",\"x\":1},5]}",
         "{\"output\":\"[a part is not shown: hologram]\\n[a part is not shown]\"}", false},
    };
    assert_rows(rows, ARRAY_LEN(rows));
}

static void a_failure_has_its_text_and_its_structure(void **state) {
    (void)state;
    static const struct row rows[] = {
        {"{\"isError\":true,\"content\":[{\"type\":\"text\",\"text\":\"no\"}]}",
         "Tool execution failed. Details: no", true},
        {"{\"isError\":true,\"structuredContent\":{}}", "Tool execution failed.", true},
        {"{\"isError\":true,\"structuredContent\":{\"code\": 7},\"content\":[]}",
         "Tool execution failed. Details: {\"code\":7}", true},
        {"{\"isError\":true,\"structuredContent\":{\"code\":7},\"content\":[{\"type\":\"text\","
         "\"text\":\"no\"},{\"type\":\"image\"}]}",
         "Tool execution failed. Details: no\n[an image is not shown]\n{\"code\":7}", true},
    };
    assert_rows(rows, ARRAY_LEN(rows));
}

/* The reason is as often at the end as at the beginning. */
static void a_long_failure_keeps_both_ends_and_says_so(void **state) {
    (void)state;
    for (size_t middle = 300; middle < 2000; middle++) {
        struct buf result, said;
        struct err e;
        buf_init(&result, RESULT_BYTES);
        buf_init(&said, RESULT_BYTES);
        buf_append(&result,
                   STR("{\"isError\":true,\"content\":[{\"type\":\"text\",\"text\":\""));
        buf_append(&result, STR("FIRST "));
        for (size_t i = 0; i < middle / 2; i++) buf_append(&result, STR("\xC3\xA9"));
        buf_append(&result, STR(" LAST\"}]}"));
        assert_false(mcp_tool_result(json_of(buf_str(&result)), &said, &e));
        bool cut = str_find(err_text(&e), STR(" bytes are left out here]")) < err_text(&e).len;
        assert_int_equal(cut, 11 + middle / 2 * 2 > 420);
        assert_true(str_find(err_text(&e), STR("Details: FIRST ")) < err_text(&e).len);
        assert_true(str_ends(err_text(&e), STR(" LAST")));
        buf_done(&result);
        buf_done(&said);
    }
}

/* The call was made: only a tool that may be repeated has simply failed. */
static void a_result_that_is_no_object_leaves_the_effect_unknown(void **state) {
    (void)state;
    struct buf said;
    struct err e;
    buf_init(&said, RESULT_BYTES);
    assert_false(mcp_tool_result(json_of(STR("5")), &said, &e));
    assert_int_equal(e.code, ERR_EFFECT_UNKNOWN);
    assert_str(err_text(&e), "the tool's result is a number, not an object");
    buf_done(&said);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(structure_comes_before_text),
        cmocka_unit_test(a_success_without_words_is_a_success),
        cmocka_unit_test(the_parts_stand_one_below_the_other),
        cmocka_unit_test(what_is_not_text_is_named),
        cmocka_unit_test(a_failure_has_its_text_and_its_structure),
        cmocka_unit_test(a_long_failure_keeps_both_ends_and_says_so),
        cmocka_unit_test(a_result_that_is_no_object_leaves_the_effect_unknown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
