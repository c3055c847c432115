#include "record/turn_line.h"

#include "base/log.h"
#include "helper/log_heard.h"

static const struct turn_end done = {.run = 7,
                                     .workspace = STR("w-1"),
                                     .user = STR("u-1"),
                                     .session = STR("s-1"),
                                     .agent = STR("manager"),
                                     .model = STR("m-1"),
                                     .took_ms = 1204,
                                     .state = STR("done"),
                                     .reason = STR_EMPTY};

static void assert_line(const struct turn_end *end, const struct turn_sums *sums,
                        const char *expected) {
    struct log_heard log;
    log_begin(&log);
    turn_line_log(end, sums);
    if (!log_holds(&log, expected)) {
        struct str said = log_text(&log);
        fail_msg("'" STR_FMT "' does not hold '%s'", STR_ARG(said), expected);
    }
    log_end(&log);
}

static void it_names_the_caller_the_work_its_cost_and_its_end(void **state) {
    (void)state;
    struct turn_sums sums = {0};
    struct event_usage usage = USAGE_UNKNOWN;
    usage.prompt = 100;
    usage.completion = 20;
    usage.cost_nano = 210000;
    turn_sums_add(&sums, &usage);
    turn_sums_add(&sums, &usage);
    assert_line(&done, &sums,
                "turn 7 ended: workspace w-1, user u-1, session s-1, agent manager, model m-1, "
                "200 tokens in, 40 tokens out, $0.00042, 1.204 s, done");
}

static void uncounted_usage_is_unknown_and_not_zero(void **state) {
    (void)state;
    struct turn_sums sums = {0};
    struct event_usage usage = USAGE_UNKNOWN;
    turn_sums_add(&sums, &usage);
    assert_line(&done, &sums, "tokens in unknown, tokens out unknown, cost unknown, 1.204 s");
    usage.prompt = 5;
    turn_sums_add(&sums, &usage);
    assert_line(&done, &sums, "5+ tokens in, tokens out unknown, cost unknown, 1.204 s");
}

static void a_turn_without_a_model_call_shows_no_model_and_a_failure_its_reason(void **state) {
    (void)state;
    struct turn_sums sums = {0};
    struct turn_end failed = done;
    failed.model = failed.session = STR_EMPTY;
    failed.took_ms = 3;
    failed.state = STR("failed");
    failed.reason = STR("TURN_TIMEOUT");
    assert_line(&failed, &sums,
                "user u-1, agent manager, 0 tokens in, 0 tokens out, $0.00, 0.003 s, failed: "
                "TURN_TIMEOUT");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_names_the_caller_the_work_its_cost_and_its_end),
        cmocka_unit_test(uncounted_usage_is_unknown_and_not_zero),
        cmocka_unit_test(a_turn_without_a_model_call_shows_no_model_and_a_failure_its_reason),
    };
    log_setup(LOG_INFO, LOG_PLAIN);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
