#include "sidecar/program_meta.h"

#include "helper/assert_str.h"

#define PARENT "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
#define OTHER "00-1af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"

static struct json value_of(const char *text) {
    struct json value = {.kind = JSON_NONE};
    struct err e;
    assert_true(!*text || json_read(str_from(text), &value, &e));
    return value;
}

static void what_meta_says_is_read(void **state) {
    (void)state;
    char parent[TRACE_PARENT_BYTES + 1];
    struct trace_state read;
    assert_true(program_meta_read(
        value_of("{\"_meta\":{\"traceparent\":\"" PARENT "\",\"tracestate\":\"a=1, b=2\"}}"),
        parent, &read));
    assert_string_equal(parent, PARENT);
    assert_str(trace_state_str(&read), "a=1,b=2");
    assert_true(program_meta_read(value_of("{\"_meta\":{\"traceparent\":\"" OTHER "\"}}"),
                                  parent, &read));
    assert_string_equal(parent, OTHER);
    assert_int_equal(read.len, 0);
}

static void what_is_no_trace_is_not_read(void **state) {
    (void)state;
    static const char *const wrong[] = {
        "",
        "{}",
        "[1]",
        "{\"traceparent\":\"" PARENT "\"}",
        "{\"_meta\":7}",
        "{\"_meta\":{\"traceparent\":7}}",
        "{\"_meta\":{\"traceparent\":\"" PARENT "x\",\"tracestate\":\"a=1\"}}",
        "{\"_meta\":{\"tracestate\":\"a=1\"}}",
    };
    char parent[TRACE_PARENT_BYTES + 1] = "as before";
    struct trace_state read = {.len = 3};
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        assert_false(program_meta_read(value_of(wrong[i]), parent, &read));
        assert_string_equal(parent, "as before");
        assert_int_equal(read.len, 3);
    }
}

static void a_trace_is_written_beside_all_else(void **state) {
    (void)state;
    static const struct {
        const char *params, *state, *written;
    } cases[] = {
        {"", "", "{\"_meta\":{\"traceparent\":\"" PARENT "\"}}"},
        {"{}", "a=1", "{\"_meta\":{\"traceparent\":\"" PARENT "\",\"tracestate\":\"a=1\"}}"},
        {"{\"name\":\"s\\\"\\u0041\",\"n\\n\":[1, {}]}", "",
         "{\"name\":\"s\\\"\\u0041\",\"n\\n\":[1, {}],\"_meta\":{\"traceparent\":\"" PARENT
         "\"}}"},
        {"{\"_meta\":{\"traceparent\":\"" OTHER
         "\",\"tracestate\":\"b=2\",\"t\":7},\"a\":null}",
         "", "{\"a\":null,\"_meta\":{\"t\":7,\"traceparent\":\"" PARENT "\"}}"},
        {"{\"_meta\":1,\"_meta\":{\"x\":1}}", "",
         "{\"_meta\":{\"x\":1,\"traceparent\":\"" PARENT "\"}}"},
        {"[1,2]", "a=1", "[1,2]"},
    };
    struct buf out;
    buf_init(&out, 4 * KIB);
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        buf_clear(&out);
        program_meta_write(value_of(cases[i].params), STR(PARENT), str_from(cases[i].state),
                           &out);
        assert_str(buf_str(&out), cases[i].written);
    }
    buf_done(&out);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_meta_says_is_read),
        cmocka_unit_test(what_is_no_trace_is_not_read),
        cmocka_unit_test(a_trace_is_written_beside_all_else),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
