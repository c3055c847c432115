#include "sidecar/reserved.h"
#include "sidecar/spent.h"

#include "helper/assert_str.h"

static struct json read(const char *text) {
    struct json json;
    struct err e;
    if (!json_read(str_from(text), &json, &e)) fail_msg("%s", e.text);
    return json;
}

static const struct reserved known = {.trace_id = STR_INIT("t"),
                                      .model = STR_INIT("m"),
                                      .input = 1,
                                      .output = 2,
                                      .total = 3,
                                      .cost_nano = 12500000,
                                      .latency_ms = 4};
static const struct reserved unknown = {.trace_id = STR_INIT("t"),
                                        .model = STR_INIT(""),
                                        .input = TOKENS_UNKNOWN,
                                        .output = TOKENS_UNKNOWN,
                                        .total = TOKENS_UNKNOWN,
                                        .cost_nano = TOKENS_UNKNOWN};

static void assert_written(const char *object, struct reserved fields, const char *expected) {
    struct buf out;
    buf_init(&out, 4096);
    reserved_write(object ? read(object) : (struct json){0}, &fields, &out);
    assert_str(buf_str(&out), expected);
    (void)read(expected);
    buf_done(&out);
}

static void our_fields_come_last_and_the_others_stay_as_they_came(void **state) {
    (void)state;
    assert_written(
        "{\"output\": 1.50 , \"a\\u0062\":[ 1 ]}", known,
        "{\"output\":1.50,\"a\\u0062\":[ 1 ],\"trace_id\":\"t\",\"tokens\":{\"input\":"
        "1,\"output\":2,\"total\":3},\"cost_usd\":0.0125,\"model\":\"m\",\"latency_"
        "ms\":4}");
    assert_written(NULL, unknown, "{\"trace_id\":\"t\",\"latency_ms\":0}");
}

static void an_agents_values_go_however_they_are_spelled(void **state) {
    (void)state;
    assert_written(
        "{\"tokens\":1,\"mod\\u0065l\":2,\"cost_usd\":3,\"trace_id\":4,\"latency_ms\":"
        "5,\"model\":6}",
        unknown, "{\"trace_id\":\"t\",\"latency_ms\":0}");
}

static void tokens_have_three_forms(void **state) {
    (void)state;
    struct reserved fields = known;
    fields.model = STR("");
    fields.cost_nano = TOKENS_UNKNOWN;
    fields.tokens = RESERVED_TOKENS_TOTAL;
    assert_written("{}", fields, "{\"trace_id\":\"t\",\"tokens\":3,\"latency_ms\":4}");
    fields.tokens = RESERVED_TOKENS_OFF;
    assert_written("{}", fields, "{\"trace_id\":\"t\",\"latency_ms\":4}");
    fields.tokens = RESERVED_TOKENS_OBJECT;
    fields.output = fields.total = TOKENS_UNKNOWN;
    assert_written("{}", fields,
                   "{\"trace_id\":\"t\",\"tokens\":{\"input\":1},\"latency_ms\":4}");
}

static void a_failure_gets_only_the_trace_id(void **state) {
    (void)state;
    struct buf out;
    buf_init(&out, 4096);
    reserved_write_trace(read("{\"trace_id\":1,\"model\":2}"), STR("t"), &out);
    assert_str(buf_str(&out), "{\"model\":2,\"trace_id\":\"t\"}");
    buf_done(&out);
}

static void usage_is_read_in_the_names_of_the_vendors(void **state) {
    (void)state;
    static const struct {
        const char *text;
        int64_t input, output, total;
        const char *model;
    } rows[] = {
        {"{\"usage\":{\"prompt_tokens\":1,\"completion_tokens\":2,\"total_tokens\":4}}", 1, 2,
         4, ""},
        {"{\"usage\":{\"input_tokens\":1,\"output_tokens\":2,\"model\":\"m\"}}", 1, 2, 3, "m"},
        {"{\"metadata\":{\"model\":\"m\",\"usage\":{\"promptTokenCount\":1}}}", 1, -1, -1, "m"},
        {"{\"model\":\"m\",\"usage\":{\"total\":9,\"input\":-1}}", -1, -1, 9, "m"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct arena *arena = arena_new(4096);
        struct spent_usage usage;
        assert_true(spent_read(read(rows[i].text), arena, &usage));
        assert_int_equal(usage.input, rows[i].input);
        assert_int_equal(usage.output, rows[i].output);
        assert_int_equal(usage.total, rows[i].total);
        assert_str(usage.model, rows[i].model);
        arena_free(arena);
    }
}

static void what_says_nothing_of_usage_is_no_usage(void **state) {
    (void)state;
    static const char *const rows[] = {"{}", "{\"usage\":7}", "{\"usage\":{}}",
                                       "{\"usage\":{\"input_tokens\":\"1\"}}",
                                       "{\"tokens\":{\"input\":1}}"};
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct arena *arena = arena_new(4096);
        struct spent_usage usage;
        assert_false(spent_read(read(rows[i]), arena, &usage));
        arena_free(arena);
    }
}

/* Which of both counts for a request is in accounts_test.c. */
static void posts_are_summed_and_of_answers_the_last_one_counts(void **state) {
    (void)state;
    struct spent spent;
    spent_init(&spent);
    spent_post(&spent, &(struct spent_usage){STR("a"), 1, 2, 3, 5});
    spent_post(&spent, &(struct spent_usage){STR("b"), INT64_MAX, 2, 3, TOKENS_UNKNOWN});
    assert_true(spent.input == INT64_MAX && spent.output == 4 && spent.total == 6);
    assert_int_equal(spent.cost_nano, TOKENS_UNKNOWN);
    assert_str(text_str(spent.model), "b");
    spent_done(&spent);
    spent_init(&spent);
    spent_find(&spent, &(struct spent_usage){STR("first"), 1, 2, 3, TOKENS_UNKNOWN});
    spent_find(&spent, &(struct spent_usage){STR("last"), 100, 101, 201, TOKENS_UNKNOWN});
    assert_true(spent.input == 100 && spent.output == 101 && spent.total == 201);
    assert_str(text_str(spent.model), "last");
    spent_done(&spent);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(our_fields_come_last_and_the_others_stay_as_they_came),
        cmocka_unit_test(an_agents_values_go_however_they_are_spelled),
        cmocka_unit_test(tokens_have_three_forms),
        cmocka_unit_test(a_failure_gets_only_the_trace_id),
        cmocka_unit_test(usage_is_read_in_the_names_of_the_vendors),
        cmocka_unit_test(what_says_nothing_of_usage_is_no_usage),
        cmocka_unit_test(posts_are_summed_and_of_answers_the_last_one_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
