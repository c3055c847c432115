#include "metrics/metrics.h"

#include "helper/assert_str.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

static int begin(void **state) {
    (void)state;
    metrics_start();
    return 0;
}

static int end(void **state) {
    (void)state;
    metrics_stop();
    return 0;
}

/* The whole text; the caller frees it. */
static char *shown(void) {
    struct buf out;
    buf_init(&out, 32 * MIB);
    assert_true(metrics_append(&out));
    char *text = malloc(out.len + 1);
    memcpy(text, out.at, out.len);
    text[out.len] = '\0';
    buf_done(&out);
    return text;
}

static size_t times(const char *text, const char *what) {
    size_t count = 0;
    while ((text = strstr(text, what))) count++, text++;
    return count;
}

static void assert_shown(const char *line) {
    char *text = shown();
    if (!strstr(text, line)) fail_msg("missing: %s in\n%s", line, text);
    free(text);
}

static void nothing_is_counted_before_the_start(void **state) {
    (void)state;
    struct buf out;
    assert_false(metrics_wanted());
    metrics_report(METRIC_TURNS_STARTED, 1, (struct str[]){STR("manager")});
    buf_init(&out, KIB);
    assert_true(metrics_append(&out));
    assert_int_equal(out.len, 0);
    buf_done(&out);
}

static void a_counter_adds_up(void **state) {
    (void)state;
    const struct str labels[] = {STR("manager"), STR("done")};
    metrics_report(METRIC_TURNS_ENDED, 1, labels);
    metrics_report(METRIC_TURNS_ENDED, 2, labels);
    metrics_report(METRIC_COST, 1234567, (struct str[]){STR("openai"), STR("gpt-5-mini")});
    assert_shown("# TYPE weir_turns_ended_total counter\n"
                 "weir_turns_ended_total{gen_ai_agent_name=\"manager\",state=\"done\"} 3\n");
    assert_shown("weir_cost_usd_total{gen_ai_provider_name=\"openai\",gen_ai_response_model="
                 "\"gpt-5-mini\"} 0.001234567\n");
}

static void a_histogram_counts_up_to_each_bound(void **state) {
    (void)state;
    static const uint64_t values[] = {0, 10000, 10001, 20000, 81920000, 81920001};
    for (size_t i = 0; i < ARRAY_LEN(values); i++)
        metrics_report(METRIC_AGENT_DURATION, values[i], (struct str[]){STR("a"), STR_EMPTY});
#define NAME "gen_ai_invoke_agent_duration_seconds"
    assert_shown(NAME "_bucket{gen_ai_agent_name=\"a\",le=\"0.010000\"} 2\n" NAME
                      "_bucket{gen_ai_agent_name=\"a\",le=\"0.020000\"} 4\n");
    assert_shown(NAME "_bucket{gen_ai_agent_name=\"a\",le=\"81.920000\"} 5\n" NAME
                      "_bucket{gen_ai_agent_name=\"a\",le=\"+Inf\"} 6\n" NAME
                      "_sum{gen_ai_agent_name=\"a\"} 163.880002\n" NAME
                      "_count{gen_ai_agent_name=\"a\"} 6\n");
}

static void a_label_is_escaped_and_cut_between_characters(void **state) {
    (void)state;
    char long_name[METRICS_LABEL_BYTES + 8];
    memset(long_name, 'x', sizeof(long_name));
    memcpy(long_name + METRICS_LABEL_BYTES - 1, "\xC3\xA4", 2); /* does not fit whole */
    metrics_report(METRIC_TURNS_STARTED, 1, (struct str[]){STR("a\"b\\c\nd")});
    metrics_report(METRIC_TURNS_STARTED, 1,
                   (struct str[]){str_of(long_name, sizeof(long_name))});
    assert_shown("{gen_ai_agent_name=\"a\\\"b\\\\c\\nd\"} 1\n");
    char *text = shown();
    assert_null(strchr(text, '\xC3'));
    assert_non_null(strstr(text, "xxx\"} 1\n"));
    free(text);
}

static void the_number_of_series_has_a_limit(void **state) {
    (void)state;
    const size_t all = METRICS_SERIES_MAX + 500;
    for (size_t i = 0; i < all; i++) {
        char name[32];
        snprintf(name, sizeof(name), "agent-%zu", i);
        metrics_report(METRIC_TURNS_STARTED, 1, (struct str[]){str_from(name)});
    }
    metrics_report(METRIC_TURNS_STARTED, 1, (struct str[]){STR("agent-0")});
    char *text = shown();
    assert_int_equal(times(text, "weir_turns_started_total{"), METRICS_SERIES_MAX + 1);
    assert_non_null(strstr(text, "{gen_ai_agent_name=\"other\"} 500\n"));
    assert_non_null(strstr(text, "{gen_ai_agent_name=\"agent-0\"} 2\n"));
    free(text);
}

/* Each label as long as it may be, of characters that are escaped, on the metric with most of them. */
static void the_longest_text_fits(void **state) {
    (void)state;
    char name[METRICS_LABEL_BYTES + 1];
    struct buf out;
    for (size_t i = 0; i < METRICS_SERIES_MAX + 9; i++) {
        memset(name, '"', sizeof(name));
        snprintf(name, sizeof(name), "%05zu", i);
        name[strlen(name)] = '"';
        struct str label = str_of(name, METRICS_LABEL_BYTES);
        metrics_report(METRIC_TOKENS, 5, (struct str[]){label, label, label, label, label});
    }
    buf_init(&out, METRICS_TEXT_MAX_BYTES);
    assert_true(metrics_append(&out));
    buf_done(&out);
}

#define REPORTS 20000

static void *report_much(void *ctx) {
    for (size_t i = 0; i < REPORTS; i++) {
        metrics_report(METRIC_TOKENS, 5,
                       (struct str[]){STR("chat"), STR("openai"), STR("m"),
                                      i % 2 ? STR("m-1") : STR("m-2"), STR("input")});
        if (i % 5000 == 0) free(shown());
    }
    return ctx;
}

static void threads_report_and_read_at_once(void **state) {
    (void)state;
    pthread_t threads[4];
    for (size_t i = 0; i < ARRAY_LEN(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, report_much, NULL), 0);
    for (size_t i = 0; i < ARRAY_LEN(threads); i++) pthread_join(threads[i], NULL);
    assert_shown("gen_ai_client_token_usage_sum{gen_ai_operation_name=\"chat\","
                 "gen_ai_provider_name=\"openai\",gen_ai_request_model=\"m\","
                 "gen_ai_response_model=\"m-1\",gen_ai_token_type=\"input\"} 200000\n");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_is_counted_before_the_start),
        cmocka_unit_test_setup_teardown(a_counter_adds_up, begin, end),
        cmocka_unit_test_setup_teardown(a_histogram_counts_up_to_each_bound, begin, end),
        cmocka_unit_test_setup_teardown(a_label_is_escaped_and_cut_between_characters, begin,
                                        end),
        cmocka_unit_test_setup_teardown(the_number_of_series_has_a_limit, begin, end),
        cmocka_unit_test_setup_teardown(the_longest_text_fits, begin, end),
        cmocka_unit_test_setup_teardown(threads_report_and_read_at_once, begin, end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
