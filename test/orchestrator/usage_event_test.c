/* What is taken from the usage stream, and what is left out. */
#include "orchestrator/usage_event.h"

#include "helper/assert_str.h"

#include <stdio.h>

#define TIME "\"event_time\":\"2026-03-01T23:59:59.5-01:00\""
#define EVENT "{\"event_id\":\"e\"," TIME ",\"prompt_tokens\":10}"

static void an_event_is_a_whole_row(void **state) {
    (void)state;
    struct buf out;
    struct err e;
    buf_init(&out, 4 * KIB);
    assert_true(usage_event_copy(
        STR("{\"event_id\":\"e\",\"event_time\":\"2026-03-01T23:59:59.5-01:00\",\"user_id\":"
            "\"u\","
            "\"prompt_tokens\":10,\"cost_usd\":0.00012500,\"more\":[1],\"model\":null}"),
        &out, &e));
    assert_str(
        buf_str(&out),
        "{\"event_id\":\"e\",\"user_id\":\"u\",\"workspace_id\":\"\",\"conversation_id\":\"\","
        "\"message_id\":\"\",\"agent_id\":\"\",\"agent_db_id\":\"\",\"model\":\"\","
        "\"provider\":\"\",\"turn_id\":\"\",\"session_id\":\"\",\"prompt_tokens\":10,"
        "\"completion_tokens\":0,\"total_tokens\":0,\"tool_use_prompt_tokens\":0,"
        "\"thoughts_tokens\":0,\"cached_tokens\":0,\"call_sequence\":0,"
        "\"cost_usd\":0.00012500,\"event_time\":\"2026-03-02T00:59:59Z\"}");
    buf_done(&out);
}

static void refuse(const char *payload, const char *why) {
    struct buf out;
    struct err e;
    buf_init(&out, 4 * KIB);
    buf_append(&out, STR("before"));
    assert_false(usage_event_copy(str_from(payload), &out, &e));
    assert_str(buf_str(&out), "before");
    buf_done(&out);
    if (str_find(err_text(&e), str_from(why)) < str_from(e.text).len) return;
    print_error("%s: %s\n", payload, e.text);
    fail();
}

static void what_is_no_usage_is_left_out(void **state) {
    (void)state;
#define WITH(more) "{\"event_id\":\"e\"," TIME ",\"prompt_tokens\":1," more "}"
    static const char *const refused[][2] = {
        {"", "JSON"},
        {"5", "no event_id"},
        {"{\"event_id\":\"d\",\"drawer_id\":\"x\"}", "no prompt_tokens"},
        {"{\"event_id\":\"\"," TIME ",\"prompt_tokens\":1}", "no event_id"},
        {"{\"event_id\":\"e\",\"prompt_tokens\":1}", "event_time"},
        {WITH("\"event_time\":\"soon\""), "event_time"},
        {WITH("\"event_time\":\"1969-12-31T23:59:59Z\""), "before 1970"},
        {WITH("\"total_tokens\":-1"), "total_tokens"},
        {WITH("\"total_tokens\":2147483648"), "total_tokens"},
        {WITH("\"total_tokens\":1.5"), "total_tokens"},
        {WITH("\"total_tokens\":\"1\""), "total_tokens"},
        {WITH("\"cost_usd\":-0.1"), "cost_usd"},
        {WITH("\"cost_usd\":1e9"), "cost_usd"},
        {WITH("\"cost_usd\":1e-400000"), "cost_usd"},
        {WITH("\"cost_usd\":0E-999999999999"), "cost_usd"},
        {WITH("\"model\":5"), "model"},
        {WITH("\"model\":\"a\\u0000\""), "NUL"},
    };
    for (size_t i = 0; i < ARRAY_LEN(refused); i++) refuse(refused[i][0], refused[i][1]);
}

static void a_text_is_as_long_as_it_may_be_and_no_longer(void **state) {
    (void)state;
    for (int over = 0; over < 2; over++) {
        char payload[2 * KIB];
        struct buf out;
        struct err e;
        snprintf(payload, sizeof(payload),
                 "{\"event_id\":\"e\"," TIME ",\"prompt_tokens\":1,\"model\":\"%0*d\"}",
                 1024 + over, 0);
        buf_init(&out, 4 * KIB);
        assert_int_equal(usage_event_copy(str_from(payload), &out, &e), !over);
        buf_done(&out);
    }
}

static void every_truncation_is_refused(void **state) {
    (void)state;
    const struct str whole = STR(EVENT);
    for (size_t cut = 0; cut < whole.len; cut++) {
        struct str part = exact_copy(str_head(whole, cut));
        struct buf out;
        struct err e;
        buf_init(&out, 4 * KIB);
        assert_false(usage_event_copy(part, &out, &e));
        buf_done(&out);
        free((void *)(uintptr_t)part.at);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_event_is_a_whole_row),
        cmocka_unit_test(what_is_no_usage_is_left_out),
        cmocka_unit_test(a_text_is_as_long_as_it_may_be_and_no_longer),
        cmocka_unit_test(every_truncation_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
