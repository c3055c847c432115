#include "mcp/asked.h"

#include "helper/assert_str.h"

#include <stdio.h>

#define FORM(properties, required)                                                             \
    "{\"message\":\"?\",\"requestedSchema\":{\"type\":\"object\",\"properties\":" properties   \
    ",\"required\":" required "}}"
#define NAME "{\"n\\u0061me\":{\"type\":\"string\",\"default\":\"J\\u00f6 \\\"x\\\"\"}}"
#define ALL                                                                                    \
    "{\"a\":{\"type\":\"string\",\"default\":\"x\"},\"b\":{\"type\":\"integer\",\"default\":"  \
    "42},\"c\":{\"type\":\"number\",\"default\":1.50},\"d\":{\"type\":\"boolean\",\"default\"" \
    ":false},\"e\":{\"type\":\"string\",\"enum\":[\"p\",\"q\"],\"default\":\"q\"},\"f\":{"     \
    "\"type\":\"string\"}}"
#define CANCEL "{\"action\":\"cancel\"}"

static const struct {
    const char *params, *reply; /* where defaults are accepted */
} questions[] = {
    {FORM(ALL, "[]"), "{\"action\":\"accept\",\"content\":{\"a\":\"x\",\"b\":42,\"c\":1.50,"
                      "\"d\":false,\"e\":\"q\"}}"},
    {FORM(ALL, "[\"a\",\"d\"]"),
     "{\"action\":\"accept\",\"content\":{\"a\":\"x\",\"b\":42,\"c\":1.50,\"d\":false,"
     "\"e\":\"q\"}}"},
    {FORM(ALL, "[\"a\",\"f\"]"), CANCEL}, /* f is unknown */
    {FORM(ALL, "[\"g\"]"), CANCEL},
    {FORM(ALL, "[1]"), CANCEL},
    {FORM(ALL, "\"a\""), CANCEL},
    {FORM(NAME, "[\"name\"]"), "{\"action\":\"accept\",\"content\":{\"n\\u0061me\":\"J\\u00f6 "
                               "\\\"x\\\"\"}}"},
    {FORM("{}", "[]"), "{\"action\":\"accept\",\"content\":{}}"},
    {FORM("7", "[]"), "{\"action\":\"accept\",\"content\":{}}"},
    {"{\"mode\":\"form\",\"requestedSchema\":{\"properties\":{\"a\":{\"default\":null}}}}",
     "{\"action\":\"accept\",\"content\":{\"a\":null}}"},
    {"{\"mode\":\"url\",\"url\":\"https://x\",\"requestedSchema\":{}}", CANCEL},
    {"{\"message\":\"?\"}", CANCEL},
    {"{}", CANCEL},
};

static struct json value_of(const char *text) {
    struct json value;
    struct err e;
    if (!json_read(str_from(text), &value, &e)) fail_msg("%s", e.text);
    return value;
}

static void assert_reply(const char *method, const char *params,
                         enum mcp_elicitation elicitation, const char *expected) {
    struct buf out;
    char quoted[64];
    buf_init(&out, MIB);
    snprintf(quoted, sizeof(quoted), "\"%s\"", method);
    bool served = mcp_reply(value_of(quoted), value_of(params), elicitation, &out);
    assert_int_equal(served, expected != NULL);
    assert_str(buf_str(&out), expected ? expected : "");
    buf_done(&out);
}

static void a_form_gets_its_defaults_where_they_are_enough(void **state) {
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(questions); i++)
        assert_reply("elicitation/create", questions[i].params, MCP_ELICITATION_DEFAULTS,
                     questions[i].reply);
}

static void without_the_setting_each_question_is_cancelled(void **state) {
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(questions); i++)
        assert_reply("elicitation/create", questions[i].params, MCP_ELICITATION_CANCEL, CANCEL);
}

static void only_what_can_be_answered_is_served(void **state) {
    (void)state;
    static const char *const others[] = {"sampling/createMessage", "roots/list", "tools/call",
                                         ""};
    for (int i = 0; i < 2; i++) {
        enum mcp_elicitation elicitation = (enum mcp_elicitation)i;
        assert_reply("ping", "{}", elicitation, "{}");
        for (size_t n = 0; n < ARRAY_LEN(others); n++)
            assert_reply(others[n], "{}", elicitation, NULL);
    }
}

static void what_cannot_be_answered_is_not_announced(void **state) {
    (void)state;
    static const char *const said[] = {[MCP_ELICITATION_CANCEL] = "{}",
                                       [MCP_ELICITATION_DEFAULTS] =
                                           "{\"elicitation\":{\"form\":{}}}"};
    for (int i = 0; i < 2; i++) {
        struct buf out;
        buf_init(&out, KIB);
        struct json_writer w = json_writer(&out);
        json_open_object(&w);
        mcp_write_capabilities(&w, (enum mcp_elicitation)i);
        json_close(&w);
        assert_str(buf_str(&out), said[i]);
        buf_done(&out);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_form_gets_its_defaults_where_they_are_enough),
        cmocka_unit_test(without_the_setting_each_question_is_cancelled),
        cmocka_unit_test(only_what_can_be_answered_is_served),
        cmocka_unit_test(what_cannot_be_answered_is_not_announced),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
