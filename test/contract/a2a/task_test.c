/* The events of a run as a task. */
#include "contract/a2a/task.h"

#include "helper/assert_str.h"

static struct a2a_task task;
static uint64_t seq;

static int setup(void **state) {
    (void)state;
    a2a_task_init(&task, 7);
    seq = 0;
    return 0;
}

static int teardown(void **state) {
    (void)state;
    a2a_task_done(&task);
    return 0;
}

static bool take(struct event event) {
    event.at_ms = 250 * (int64_t)seq;
    return a2a_task_note(&task, &event, ++seq);
}

static void start(const char *extras) {
    take((struct event){.kind = EVENT_STARTED,
                        .agent = STR("manager"),
                        .started = {.session = STR("s"),
                                    .text = STR("hi"),
                                    .extras = str_from(extras),
                                    .unix_ms = 1772366400000}});
}

static bool say(const char *text) {
    return take((struct event){.kind = EVENT_TEXT, .text.text = str_from(text)});
}

static void ask(void) {
    take((struct event){.kind = EVENT_APPROVAL,
                        .approval = {.call_id = STR("approve-c"),
                                     .question = STR("May I?"),
                                     .tool = STR("pay"),
                                     .args = STR("{\"eur\":3}")}});
}

static struct str written(enum a2a_dialect dialect, int64_t history_max, struct buf *out) {
    const struct a2a_view view = {dialect, history_max, true};
    struct json_writer w = json_writer(out);
    buf_clear(out);
    a2a_task_write(&task, &view, &w);
    return buf_str(out);
}

static void a_finished_run_is_a_task_in_both_versions(void **state) {
    (void)state;
    struct buf out;
    buf_init(&out, 1 * MIB);
    start("{\"metadata\":{\"a2a\":{\"messageId\":\"m-1\"}}}");
    assert_false(say("hel"));
    assert_false(say("lo"));
    take((struct event){.kind = EVENT_DONE, .done = {.turns = STR_EMPTY}});
    assert_str(written(A2A_0_3, -1, &out),
               "{\"kind\":\"task\",\"id\":\"7\",\"contextId\":\"s\",\"status\":{"
               "\"state\":\"completed\",\"timestamp\":\"2026-03-01T12:00:00.750Z\"},"
               "\"artifacts\":[{\"artifactId\":\"answer\",\"name\":\"answer\",\"parts\":["
               "{\"kind\":\"text\",\"text\":\"hello\"}]}],"
               "\"history\":[{\"kind\":\"message\",\"messageId\":\"m-1\",\"taskId\":\"7\","
               "\"contextId\":\"s\",\"role\":\"user\",\"parts\":[{\"kind\":\"text\","
               "\"text\":\"hi\"}]}],\"metadata\":{\"weir/agent\":\"manager\"}}");
    assert_str(written(A2A_1_0, 0, &out),
               "{\"id\":\"7\",\"contextId\":\"s\",\"status\":{"
               "\"state\":\"TASK_STATE_COMPLETED\",\"timestamp\":\"2026-03-01T12:00:00.750Z\"},"
               "\"artifacts\":[{\"artifactId\":\"answer\",\"name\":\"answer\",\"parts\":["
               "{\"text\":\"hello\"}]}],\"metadata\":{\"weir/agent\":\"manager\"}}");
    buf_done(&out);
}

static void a_blank_line_is_between_two_replies(void **state) {
    (void)state;
    start("");
    assert_false(say("one"));
    take((struct event){.kind = EVENT_TOOL_CALL, .tool_call = {.call_id = STR("c")}});
    take((struct event){.kind = EVENT_TOOL_RESULT, .tool_result = {.call_id = STR("c")}});
    assert_true(say("two"));
    assert_str(buf_str(&task.answer), "one\n\ntwo");
}

static void a_question_waits_until_its_call_has_a_result(void **state) {
    (void)state;
    struct buf out;
    buf_init(&out, 1 * MIB);
    start("");
    ask();
    assert_int_equal(task.state, A2A_INPUT_REQUIRED);
    assert_int_equal(task.question, 2);
    take((struct event){.kind = EVENT_ITEM, .item = {.type = STR("aside")}});
    assert_int_equal(task.state, A2A_INPUT_REQUIRED);
    assert_str(written(A2A_1_0, 1, &out),
               "{\"id\":\"7\",\"contextId\":\"s\",\"status\":{"
               "\"state\":\"TASK_STATE_INPUT_REQUIRED\","
               "\"timestamp\":\"2026-03-01T12:00:00.250Z\",\"message\":{"
               "\"messageId\":\"7-2\",\"taskId\":\"7\",\"contextId\":\"s\","
               "\"role\":\"ROLE_AGENT\",\"parts\":[{\"text\":\"May I?\"},{\"data\":{"
               "\"approval\":\"7-2\",\"question\":\"May I?\",\"tool\":\"pay\","
               "\"args\":{\"eur\":3}}}]}},\"history\":[{\"messageId\":\"7-2\",\"taskId\":\"7\","
               "\"contextId\":\"s\",\"role\":\"ROLE_AGENT\",\"parts\":[{\"text\":\"May I?\"},"
               "{\"data\":{\"approval\":\"7-2\",\"question\":\"May I?\",\"tool\":\"pay\","
               "\"args\":{\"eur\":3}}}]}],\"metadata\":{\"weir/agent\":\"manager\"}}");
    take((struct event){
        .kind = EVENT_TOOL_RESULT,
        .tool_result = {.call_id = STR("approve-c"), .result = STR("{\"approved\":true}")}});
    assert_int_equal(task.state, A2A_WORKING);
    assert_int_equal(task.line_count, 3);
    assert_str(text_str(task.lines[2].data), "{\"approved\":true}");
    assert_int_equal(task.note.text.len, 0);
    buf_done(&out);
}

static void each_end_is_a_state(void **state) {
    (void)state;
    take((struct event){.kind = EVENT_FAILED,
                        .failed = {.reason = STR("GONE"), .message = STR("away")}});
    assert_int_equal(task.state, A2A_FAILED);
    assert_str(text_str(task.note.text), "away");
    assert_str(text_str(task.note.data), "{\"reason\":\"GONE\"}");
    take((struct event){.kind = EVENT_FAILED, .failed = {.reason = STR("GUARDRAIL_BLOCKED")}});
    assert_int_equal(task.state, A2A_REJECTED);
    take((struct event){.kind = EVENT_CANCELLED, .cancelled = {.message = STR("enough")}});
    assert_int_equal(task.state, A2A_CANCELED);
    assert_str(text_str(task.note.text), "enough");
}

static void a_run_that_streamed_nothing_has_its_answer_from_its_end(void **state) {
    (void)state;
    struct buf turns;
    buf_init(&turns, KIB);
    assert_true(event_turn_append(&turns, STR("a"), STR("one")));
    assert_true(event_turn_append(&turns, STR("b"), STR("two")));
    start("");
    take((struct event){.kind = EVENT_DONE, .done = {.turns = buf_str(&turns)}});
    assert_str(buf_str(&task.answer), "one\n\ntwo");
    buf_done(&turns);
}

/* A conversation of questions without end is kept as far as there is room. */
static void of_a_long_history_the_newest_is_kept(void **state) {
    (void)state;
    start("");
    for (size_t i = 0; i < 1200; i++) ask();
    assert_true(task.line_count <= 1000);
    assert_int_equal(task.lines[task.line_count - 1].seq, seq);
}

static void agentbreeders_task_is_flat(void **state) {
    (void)state;
    struct buf out;
    buf_init(&out, KIB);
    struct json_writer w = json_writer(&out);
    start("");
    say("hello");
    take((struct event){.kind = EVENT_USAGE, .usage = {.total = 5}});
    take((struct event){.kind = EVENT_DONE, .done = {.turns = STR_EMPTY}});
    json_open_object(&w);
    a2a_task_write_flat(&task, &w);
    json_close(&w);
    assert_str(buf_str(&out),
               "{\"task_id\":\"7\",\"status\":\"completed\",\"output\":\"hello\","
               "\"artifacts\":[],\"tokens\":5,\"latency_ms\":750}");
    buf_done(&out);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_finished_run_is_a_task_in_both_versions, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_blank_line_is_between_two_replies, setup, teardown),
        cmocka_unit_test_setup_teardown(a_question_waits_until_its_call_has_a_result, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(each_end_is_a_state, setup, teardown),
        cmocka_unit_test_setup_teardown(a_run_that_streamed_nothing_has_its_answer_from_its_end,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(of_a_long_history_the_newest_is_kept, setup, teardown),
        cmocka_unit_test_setup_teardown(agentbreeders_task_is_flat, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
