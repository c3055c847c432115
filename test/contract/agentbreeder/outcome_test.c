/* The outcome of a run: output by the kind of input, the question to a human, the tools. */
#include "contract/agentbreeder/outcome.h"

#include "helper/assert_str.h"

#include <stdio.h>

static void assert_written(struct outcome *outcome, const struct event *event,
                           const char *expected) {
    struct buf out;
    buf_init(&out, MIB);
    outcome_write(outcome, event, &out);
    assert_str(buf_str(&out), expected);
    buf_done(&out);
}

static const struct event question = {
    .seq = 12,
    .kind = EVENT_APPROVAL,
    .agent = STR_INIT("ann"),
    .approval = {.call_id = STR_INIT("c"),
                 .question = STR_INIT("Pay?"),
                 .tool = STR_INIT("pay"),
                 .args = STR_INIT("{\"eur\":3}")},
};

static void a_question_is_text_for_text_and_an_object_for_the_rest(void **state) {
    (void)state;
    struct outcome outcome;
    outcome_init(&outcome);
    outcome.run = 7;
    outcome_address(&outcome, STR("s"), true, false);
    assert_written(
        &outcome, &question,
        "{\"output\":\"Pay?\",\"session_id\":\"s\",\"thread_id\":\"s\","
        "\"metadata\":{\"interrupted\":true,\"awaiting\":[\"pay\"],"
        "\"approval\":{\"approval_id\":\"7-12\",\"question\":\"Pay?\",\"tool\":\"pay\","
        "\"args\":{\"eur\":3}}},\"history\":[]}");
    outcome_done(&outcome);

    struct event nobody = question;
    nobody.approval.tool = nobody.approval.args = STR_EMPTY;
    outcome_init(&outcome);
    outcome.run = 7;
    outcome_address(&outcome, STR("s"), false, false);
    assert_written(
        &outcome, &nobody,
        "{\"output\":{\"status\":\"interrupted\",\"thread_id\":\"s\","
        "\"awaiting\":[\"ann\"],\"question\":\"Pay?\"},"
        "\"session_id\":\"s\",\"thread_id\":\"s\","
        "\"metadata\":{\"interrupted\":true,\"awaiting\":[\"ann\"],"
        "\"approval\":{\"approval_id\":\"7-12\",\"question\":\"Pay?\"}},\"history\":[]}");
    outcome_done(&outcome);
}

static void a_run_without_words_has_an_empty_output(void **state) {
    (void)state;
    struct outcome outcome;
    outcome_init(&outcome);
    outcome_address(&outcome, STR("s"), true, true);
    assert_written(&outcome, &(struct event){.kind = EVENT_DONE},
                   "{\"output\":\"\",\"session_id\":\"s\",\"thread_id\":\"s\","
                   "\"metadata\":{\"interrupted\":false},\"history\":[]}");
    outcome_done(&outcome);
}

static void used(struct outcome *outcome, const char *model, int64_t prompt,
                 int64_t completion) {
    struct event_usage usage = USAGE_UNKNOWN;
    usage.model = str_from(model);
    usage.prompt = prompt;
    usage.completion = completion;
    outcome_note(outcome, &(struct event){.kind = EVENT_USAGE, .usage = usage});
}

static void a_sidecar_is_told_what_was_used(void **state) {
    (void)state;
    struct outcome outcome;
    for (int tells = 0; tells < 2; tells++) {
        outcome_init(&outcome);
        outcome.tells_usage = tells;
        outcome_address(&outcome, STR("s"), true, false);
        used(&outcome, "small", 3, 4);
        used(&outcome, "large", 5, TOKENS_UNKNOWN);
        assert_written(&outcome, &(struct event){.kind = EVENT_DONE},
                       tells ? "{\"output\":\"\",\"session_id\":\"s\",\"metadata\":{"
                               "\"interrupted\":false,\"usage\":{\"input_tokens\":8,\"model\":"
                               "\"large\"}},\"history\":[]}"
                             : "{\"output\":\"\",\"session_id\":\"s\",\"metadata\":{"
                               "\"interrupted\":false},\"history\":[]}");
        outcome_done(&outcome);
    }
}

/* --- tools -------------------------------------------------------------------------------- */

static void call(struct outcome *outcome, const char *id, const char *tool, int64_t at_ms) {
    outcome_note(outcome,
                 &(struct event){.kind = EVENT_TOOL_CALL,
                                 .at_ms = at_ms,
                                 .tool_call = {.call_id = str_from(id),
                                               .tool = str_from(tool),
                                               .args = STR("{\"n\":18446744073709551616}")}});
}

static void result(struct outcome *outcome, const char *id, struct str text, int64_t at_ms) {
    outcome_note(outcome,
                 &(struct event){.kind = EVENT_TOOL_RESULT,
                                 .at_ms = at_ms,
                                 .tool_result = {.call_id = str_from(id), .result = text}});
}

static void tools_are_listed_in_the_order_of_their_answers(void **state) {
    (void)state;
    struct outcome outcome;
    outcome_init(&outcome);
    outcome_address(&outcome, STR("s"), true, false);
    outcome_note(&outcome,
                 &(struct event){.kind = EVENT_STARTED, .started = {.unix_ms = 1763740680000}});
    call(&outcome, "1", "slow", 5);
    call(&outcome, "2", "quick", 6);
    call(&outcome, "3", "never", 6);
    result(&outcome, "2", STR("{}"), 8);
    result(&outcome, "?", STR("{}"), 8); /* a human's answer: no call of the history */
    result(&outcome, "1", STR("{\"a\":\"b\"}"), 105);
    assert_written(
        &outcome, &(struct event){.kind = EVENT_DONE},
        "{\"output\":\"\",\"session_id\":\"s\",\"metadata\":{\"interrupted\":false},"
        "\"history\":["
        "{\"name\":\"quick\",\"args\":{\"n\":18446744073709551616},\"result\":\"{}\","
        "\"duration_ms\":2,\"started_at\":\"2025-11-21T15:58:00.006Z\"},"
        "{\"name\":\"slow\",\"args\":{\"n\":18446744073709551616},"
        "\"result\":\"{\\\"a\\\":\\\"b\\\"}\","
        "\"duration_ms\":100,\"started_at\":\"2025-11-21T15:58:00.005Z\"}]}");
    outcome_done(&outcome);
}

static void a_reader_that_joins_in_the_middle_still_knows_the_time(void **state) {
    (void)state;
    struct outcome outcome;
    outcome_init(&outcome);
    outcome_address(&outcome, STR("s"), true, false);
    outcome.run = UINT64_C(1763740700000) << 20; /* its number tells when */
    call(&outcome, "1", "t", 5000);
    assert_true(outcome.started_unix_ms > 1763740680000);
    int64_t first = outcome.started_unix_ms;
    result(&outcome, "1", STR("{}"), 6000);
    assert_int_equal(outcome.started_unix_ms, first);
    outcome_done(&outcome);
}

/* What no longer fits is left out whole, so that the list stays JSON. */
static void a_history_that_is_full_stays_a_list(void **state) {
    (void)state;
    struct outcome outcome;
    outcome_init(&outcome);
    outcome_address(&outcome, STR("s"), true, false);
    char *large = calloc(1, MIB);
    memset(large, 'x', MIB);
    for (size_t i = 0; i < 6; i++) {
        call(&outcome, "1", "t", 1);
        result(&outcome, "1", str_of(large, MIB), 2);
    }
    struct buf out;
    buf_init(&out, 8 * MIB);
    outcome_write(&outcome, &(struct event){.kind = EVENT_DONE}, &out);
    struct json whole;
    struct err e;
    assert_true(json_read(buf_str(&out), &whole, &e));
    assert_int_equal(json_count(json_find(whole, STR("history"))), 3);
    buf_done(&out);
    free(large);
    outcome_done(&outcome);
}

static void call_with(struct outcome *outcome, struct str args, bool held, bool idempotent) {
    outcome_note(outcome, &(struct event){.kind = EVENT_TOOL_CALL,
                                          .tool_call = {.call_id = STR("c"),
                                                        .tool = STR("pay"),
                                                        .args = args,
                                                        .held = held,
                                                        .idempotent = idempotent,
                                                        .said = STR_EMPTY}});
}

static void answer(struct outcome *outcome, const char *id, const char *answered, bool error) {
    outcome_note(outcome, &(struct event){.kind = EVENT_TOOL_RESULT,
                                          .tool_result = {.call_id = str_from(id),
                                                          .result = str_from(answered),
                                                          .error = error,
                                                          .message = STR_EMPTY}});
}

static void assert_acted(const struct outcome *outcome, const char *said, const char *written) {
    struct buf out;
    buf_init(&out, MIB);
    acted_say(&outcome->acted, STR("It broke"), &out);
    assert_str(buf_str(&out), said);
    buf_clear(&out);
    struct json_writer json = json_writer(&out);
    json_open_object(&json);
    acted_write(&outcome->acted, &json);
    json_close(&json);
    assert_str(buf_str(&out), written);
    buf_done(&out);
}

static void decide(struct outcome *outcome, const char *decision, const char *args) {
    char text[200];
    snprintf(text, sizeof(text), "{\"decision\":\"%s\",\"tool\":\"pay\",\"args\":%s}", decision,
             args);
    answer(outcome, EVENT_APPROVAL_ID "c", text, false);
}

static void a_failure_names_only_the_calls_that_may_have_had_an_effect(void **state) {
    (void)state;
    struct outcome outcome;
    outcome_init(&outcome);
    call_with(&outcome, STR("{}"), false, true);
    answer(&outcome, "c", "{}", false);
    call_with(&outcome, STR("{}"), true, false);
    decide(&outcome, "refuse", "{}");
    answer(&outcome, "c", "{\"error\":\"a human refused\"}", true);
    call_with(&outcome, STR("{}"), false, false);
    answer(&outcome, "c", "{\"effect\":\"none\",\"error\":\"it never left\"}", true);
    assert_acted(&outcome, "It broke", "{}");

    call_with(&outcome, STR("{\"n\":1}"), false, false);
    answer(&outcome, "c", "{\"effect\":\"unknown\"}", false); /* the tool's own word */
    assert_acted(&outcome, "It broke; it had called 'pay'. Find out before you send this again",
                 "{\"calls\":[{\"name\":\"pay\",\"args\":{\"n\":1},\"effect\":\"done\"}]}");
    call_with(&outcome, STR("{\"n\":2}"), true, false);
    decide(&outcome, "edit", "{\"n\":3}");
    answer(&outcome, "c", "{\"effect\":\"unknown\",\"error\":\"lost\"}", true);
    call_with(&outcome, STR("{}"), false, false);
    answer(&outcome, "c", "{\"error\":\"402\"}", true);
    assert_acted(&outcome,
                 "It broke; it had called 'pay', which may or may not have had its effect. "
                 "Find out before you send this again",
                 "{\"calls\":[{\"name\":\"pay\",\"args\":{\"n\":3},\"effect\":\"unknown\"},"
                 "{\"name\":\"pay\",\"args\":{\"n\":1},\"effect\":\"done\"},"
                 "{\"name\":\"pay\",\"args\":{},\"effect\":\"failed\"}]}");
    outcome_done(&outcome);
}

static void of_ten_thousand_calls_the_first_are_written_and_all_are_counted(void **state) {
    (void)state;
    struct outcome outcome;
    struct buf out, args;
    struct json read;
    struct err e;
    buf_init(&out, MIB);
    buf_init(&args, MIB);
    buf_printf(&args, "{\"x\":\"%9000d\"}", 0);
    outcome_init(&outcome);
    for (int i = 0; i < 10000; i++) {
        call_with(&outcome, i ? STR("{}") : buf_str(&args), false, false);
        answer(&outcome, "c", "{\"effect\":\"unknown\"}", true);
    }
    struct json_writer json = json_writer(&out);
    json_open_object(&json);
    acted_write(&outcome.acted, &json);
    json_close(&json);
    assert_true(json_read(buf_str(&out), &read, &e));
    assert_true(str_starts(buf_str(&out),
                           STR("{\"calls\":[{\"name\":\"pay\",\"effect\":\"unknown\"},")));
    assert_true(out.len < 70 * KIB);
    buf_clear(&out);
    acted_say(&outcome.acted, STR("It broke"), &out);
    assert_str(buf_str(&out),
               "It broke; it had called 'pay' and 9999 more, which may or may not "
               "have had their effect. Find out before you send this again");
    buf_done(&out);
    buf_done(&args);
    outcome_done(&outcome);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_question_is_text_for_text_and_an_object_for_the_rest),
        cmocka_unit_test(a_run_without_words_has_an_empty_output),
        cmocka_unit_test(a_sidecar_is_told_what_was_used),
        cmocka_unit_test(tools_are_listed_in_the_order_of_their_answers),
        cmocka_unit_test(a_reader_that_joins_in_the_middle_still_knows_the_time),
        cmocka_unit_test(a_history_that_is_full_stays_a_list),
        cmocka_unit_test(a_failure_names_only_the_calls_that_may_have_had_an_effect),
        cmocka_unit_test(of_ten_thousand_calls_the_first_are_written_and_all_are_counted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
