#include "agent/process_line.h"

#include "helper/assert_str.h"

static void read_line(struct arena *arena, const char *text, struct process_line *ret) {
    struct err e;
    if (!process_line_read(str_from(text), arena, ret, &e)) fail_msg("%s: %s", text, e.text);
}

static void each_line_has_its_members(void **state) {
    (void)state;
    struct arena *arena = arena_new(64 * KIB);
    struct process_line line;
    read_line(arena, "{\"type\":\"text\",\"turn\":\"7-1\",\"text\":\"a\\nb\",\"more\":[1]}",
              &line);
    assert_int_equal(line.kind, PROCESS_TEXT);
    assert_str(line.turn, "7-1");
    assert_str(line.text, "a\nb");
    read_line(arena, "{\"type\":\"ask\",\"question\":\"May I?\"}", &line);
    assert_int_equal(line.kind, PROCESS_ASK);
    assert_str(line.text, "May I?");
    read_line(arena, "{\"type\":\"usage\",\"input\":3,\"output\":null,\"model\":\"m\"}", &line);
    assert_int_equal(line.usage.prompt, 3);
    assert_int_equal(line.usage.completion, TOKENS_UNKNOWN);
    assert_int_equal(line.usage.total, TOKENS_UNKNOWN);
    assert_str(line.model, "m");
    read_line(arena, "{\"type\":\"usage\",\"input\":3,\"output\":4}", &line);
    assert_int_equal(line.usage.total, 7);
    read_line(arena, "{\"type\":\"error\",\"message\":\"no\",\"code\":\"NOT_FOUND\"}", &line);
    assert_int_equal(line.code, ERR_NOT_FOUND);
    read_line(arena, "{\"type\":\"error\"}", &line);
    assert_int_equal(line.code, ERR_INTERNAL);
    assert_str(line.text, "");
    arena_free(arena);
}

static void calls_are_a_list_of_tools_and_arguments(void **state) {
    (void)state;
    struct arena *arena = arena_new(64 * KIB);
    struct process_line line;
    struct str tool, args;
    read_line(arena,
              "{\"type\":\"call\",\"calls\":[{\"tool\":\"a\",\"args\":{\"n\":1e400}},"
              "{\"tool\":\"b\"}]}",
              &line);
    assert_int_equal(json_count(line.calls), 2);
    process_call_read(json_at(line.calls, 0), arena, &tool, &args);
    assert_str(tool, "a");
    assert_str(args, "{\"n\":1e400}");
    process_call_read(json_at(line.calls, 1), arena, &tool, &args);
    assert_str(tool, "b");
    assert_str(args, "{}");
    arena_free(arena);
}

static void a_line_outside_the_protocol_is_refused_with_the_reason(void **state) {
    (void)state;
    static const struct {
        const char *text, *reason;
    } cases[] = {
        {"", "expected"},
        {"hello", "expected"},
        {"[]", "the line is an array and not an object"},
        {"{}", "'type' is not one of text"},
        {"{\"type\":\"txt\"}", "'type' is not one of text"},
        {"{\"type\":\"text\",\"text\":5}", "'text' is a number and not a string"},
        {"{\"type\":\"text\",\"turn\":{}}", "'turn' is an object and not a string"},
        {"{\"type\":\"call\"}", "'calls' is a list of 1 to 64 calls"},
        {"{\"type\":\"call\",\"calls\":[]}", "'calls' is a list of 1 to 64 calls"},
        {"{\"type\":\"call\",\"calls\":[{}]}", "a call needs 'tool'"},
        {"{\"type\":\"call\",\"calls\":[{\"tool\":\"a\",\"args\":[]}]}",
         "the 'args' of a call are an array and not an object"},
        {"{\"type\":\"usage\",\"input\":-1}", "'input' is not a count of tokens"},
        {"{\"type\":\"usage\",\"output\":\"many\"}", "'output' is not a count of tokens"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct arena *arena = arena_new(64 * KIB);
        struct process_line line;
        struct err e;
        assert_false(process_line_read(str_from(cases[i].text), arena, &line, &e));
        if (str_find(err_text(&e), str_from(cases[i].reason)) == err_text(&e).len)
            fail_msg("%s: %s", cases[i].text, e.text);
        arena_free(arena);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_line_has_its_members),
        cmocka_unit_test(calls_are_a_list_of_tools_and_arguments),
        cmocka_unit_test(a_line_outside_the_protocol_is_refused_with_the_reason),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
