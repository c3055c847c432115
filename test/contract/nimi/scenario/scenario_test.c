/* StreamScenario on a fake clock: how it starts, waits and ends. */
#include "contract/nimi/fixture.h"

#include "fake/exchange_fake.h" /* named here: the build links them */
#include "fake/media_fake.h"
#include "fake/provider_fake.h"
#include "stream/stream.h"

static struct exchange *ask_with(int reasoning) {
    const struct nimi_chat_message words = {.role = STR("user"), .content = STR("hi")};
    const struct nimi_reasoning_config shown = {.mode = NIMI_REASONING_MODE_ON,
                                                .trace_mode = reasoning};
    const struct nimi_text_generate_scenario_spec text = {
        .input = &words, .input_count = 1, .reasoning = &shown};
    const struct nimi_scenario_spec spec = {.which_spec = NIMI_SCENARIO_SPEC_TEXT_GENERATE,
                                            .text_generate = &text};
    const struct nimi_scenario_request_head head = {.app_id = STR("demo.app"),
                                                    .model_id = STR("local/m"),
                                                    .route_policy = NIMI_ROUTE_POLICY_LOCAL};
    const struct nimi_stream_scenario_request request = {
        .head = &head, .scenario_type = NIMI_SCENARIO_TYPE_TEXT_GENERATE, .spec = &spec};
    struct exchange *x = open_call("StreamScenario");
    fake_start(x, serve, site);
    send_message(x, &nimi_stream_scenario_request_table, &request);
    return x;
}

static struct exchange *ask(void) {
    return ask_with(NIMI_REASONING_TRACE_MODE_HIDE);
}

/* C1 */
static void success_is_deltas_then_one_done_then_ok(void **state) {
    (void)state;
    struct exchange *x = ask();
    assert_heard(x, "started(m) ");
    assert_str(fake_value(fake_head(x), "x-nimi-runtime-version"), "0.1.0");
    struct provider_call *call = fake_call(model, 0);
    fake_text(call, STR("Hello, and a good many words "));
    fake_text(call, STR("more"));
    fake_usage(call, 3, 4);
    fake_done(call, "m-1");
    finish(x, "started(m) text(Hello, and a good many words mor) text(e) completed(0 3/4) =0");
}

/* C2 */
static void unknown_usage_is_minus_one_and_no_delta_is_empty(void **state) {
    (void)state;
    struct exchange *x = ask();
    fake_text(fake_call(model, 0), STR(""));
    fake_thinking(fake_call(model, 0), STR("hm"));
    fake_done(fake_call(model, 0), "m");
    finish(x, "started(m) completed(0 -1/-1) =0");
}

static void reasoning_is_shown_where_it_was_asked_for(void **state) {
    (void)state;
    struct exchange *x = ask_with(NIMI_REASONING_TRACE_MODE_SEPARATE);
    fake_thinking(fake_call(model, 0), STR("hm"));
    fake_text(fake_call(model, 0), STR("yes"));
    fake_done(fake_call(model, 0), "m");
    finish(x, "started(m) thought(hm) text(yes) completed(0 -1/-1) =0");
}

/* C3 */
static void a_failure_flushes_what_was_said_and_ends_ok(void **state) {
    (void)state;
    struct exchange *x = ask();
    fake_text(fake_call(model, 0), STR("Let me"));
    fake_fail(fake_call(model, 0), ERR_UNAVAILABLE, "PROVIDER_ERROR");
    finish(x, "started(m) text(Let me) failed(392 -1/-1) =0");
}

/* C5: the first word, from the moment of the request. */
static void the_first_word_has_sixty_seconds(void **state) {
    (void)state;
    struct exchange *x = ask();
    loop_advance(loop, 59999);
    fake_settle(loop);
    assert_heard(x, "started(m) ");
    loop_advance(loop, 1);
    finish(x, "started(m) failed(394 -1/-1) =0");
    assert_int_equal(fake_calls(model), 0);
}

static void silence_between_words_has_thirty_seconds(void **state) {
    (void)state;
    struct exchange *x = ask();
    loop_advance(loop, 50000);
    fake_text(fake_call(model, 0), STR("one"));
    loop_advance(loop, 29999);
    fake_settle(loop);
    assert_heard(x, "started(m) ");
    loop_advance(loop, 1);
    finish(x, "started(m) text(one) failed(394 -1/-1) =0");
}

static void the_whole_has_two_minutes_whatever_was_said(void **state) {
    (void)state;
    struct exchange *x = ask();
    for (size_t i = 0; i < 5; i++) {
        loop_advance(loop, 20000);
        fake_text(fake_call(model, 0), STR("."));
    }
    loop_advance(loop, 19999);
    assert_int_equal(fake_calls(model), 1);
    loop_advance(loop, 1);
    finish(x, "started(m) text(.....) failed(394 -1/-1) =0");
}

/* C10 */
static void stopping_is_cancelled_and_forges_nothing(void **state) {
    (void)state;
    struct exchange *x = ask();
    fake_text(fake_call(model, 0), STR("half a"));
    nimi_runtime_move(runtime, LIFE_STOPPING, "stopping");
    rpc_site_warn(site);
    fake_settle(loop);
    assert_str(fake_value(fake_trailers(x), "grpc-message"), "runtime shutting down");
    finish(x, "started(m) =1");
    assert_int_equal(fake_calls(model), 0);
    struct exchange *late = ask();
    assert_int_equal(fake_calls_ever(model), 1);
    finish(late, "=14");
}

/* K25 */
static void a_call_that_gets_no_slot_is_a_status(void **state) {
    (void)state;
    struct exchange *first = ask(), *second = ask(), *third = ask();
    assert_int_equal(fake_calls(model), 2);
    fake_text(fake_call(model, 0), STR("a"));
    fake_text(fake_call(model, 1), STR("b"));
    loop_advance(loop, 29000);
    fake_text(fake_call(model, 0), STR("a"));
    fake_text(fake_call(model, 1), STR("b"));
    loop_advance(loop, 29000);
    fake_text(fake_call(model, 0), STR("a"));
    fake_text(fake_call(model, 1), STR("b"));
    loop_advance(loop, 2000);
    finish(third, "=4");
    fake_done(fake_call(model, 1), "m");
    fake_done(fake_call(model, 0), "m");
    finish(first, "started(m) text(aaa) completed(0 -1/-1) =0");
    finish(second, "started(m) text(bbb) completed(0 -1/-1) =0");
}

static void a_caller_who_leaves_ends_the_model_call(void **state) {
    (void)state;
    struct exchange *x = ask();
    fake_leave(x);
    fake_settle(loop);
    assert_int_equal(fake_calls(model), 0);
    assert_int_equal(scheduler_occupancy(runtime->scheduler, STR("")).global_used, 0);
    fake_free(x);
}

/* K20, as far as a fake's queue goes: without a reader the model is not asked on. */
static void a_reader_that_never_reads_is_ended_alone(void **state) {
    (void)state;
    static char words[8 * KIB];
    memset(words, 'x', sizeof(words));
    struct exchange *x = ask();
    fake_stop_reading(x);
    for (size_t i = 0; i < 200 && !fake_paused(fake_call(model, 0)); i++) {
        fake_text(fake_call(model, 0), str_of(words, sizeof(words)));
        fake_settle(loop);
    }
    assert_true(fake_paused(fake_call(model, 0)));
    loop_advance(loop, STREAM_STALL_MS + 1000); /* and now it has had its time */
    fake_settle(loop);
    assert_int_equal(fake_calls(model), 0);
    fake_read_all(x);
    fake_settle(loop);
    assert_true(fake_closed(x));
    struct str status = fake_value(fake_trailers(x), "grpc-status");
    assert_true(fake_aborted(x) >= 0 || str_equal(status, STR("8")));
    fake_free(x);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        T(success_is_deltas_then_one_done_then_ok),
        T(unknown_usage_is_minus_one_and_no_delta_is_empty),
        T(reasoning_is_shown_where_it_was_asked_for),
        T(a_failure_flushes_what_was_said_and_ends_ok),
        T(the_first_word_has_sixty_seconds),
        T(silence_between_words_has_thirty_seconds),
        T(the_whole_has_two_minutes_whatever_was_said),
        T(stopping_is_cancelled_and_forges_nothing),
        T(a_call_that_gets_no_slot_is_a_status),
        T(a_caller_who_leaves_ends_the_model_call),
        T(a_reader_that_never_reads_is_ended_alone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
