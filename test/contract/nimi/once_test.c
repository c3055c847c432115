/* Unary writes with a key: made once for all callers that wait (K28). */
#include "fixture.h"

#include "fake/exchange_fake.h" /* named here: the build links them */
#include "fake/media_fake.h"
#include "fake/provider_fake.h"

/* Mail between a shared call and who waits for it takes a turn each way. */
static void settle(void) {
    for (int turn = 0; turn < 4; turn++) fake_settle(loop);
}

static struct exchange *ask_as(const char *app, const char *key, const char *words) {
    const struct nimi_chat_message message = {.role = STR("user"), .content = str_from(words)};
    const struct nimi_text_generate_scenario_spec text = {.input = &message, .input_count = 1};
    const struct nimi_scenario_spec spec = {.which_spec = NIMI_SCENARIO_SPEC_TEXT_GENERATE,
                                            .text_generate = &text};
    const struct nimi_scenario_request_head head = {.app_id = str_from(app),
                                                    .model_id = STR("local/m"),
                                                    .route_policy = NIMI_ROUTE_POLICY_LOCAL};
    const struct nimi_execute_scenario_request request = {
        .head = &head, .scenario_type = NIMI_SCENARIO_TYPE_TEXT_GENERATE, .spec = &spec};
    struct exchange *x = open_call("ExecuteScenario");
    fake_field(x, "x-nimi-app-id", app);
    fake_field(x, "x-nimi-caller-kind", "third-party-app");
    fake_field(x, "x-nimi-caller-id", app);
    if (key) fake_field(x, "x-nimi-idempotency-key", key);
    fake_start(x, serve, site);
    send_message(x, &nimi_execute_scenario_request_table, &request);
    return x;
}

static struct exchange *ask(const char *key) {
    return ask_as("demo.app", key, "hi");
}

static void answered(struct exchange *x, const char *status) {
    settle();
    assert_str(fake_value(fake_trailers(x), "grpc-status"), status);
    assert_true(fake_closed(x));
    fake_free(x);
}

static unsigned slots_taken(void) {
    return scheduler_occupancy(runtime->scheduler, STR("")).global_used;
}

static void six_at_once_are_one_question_and_six_equal_replies(void **state) {
    struct exchange *x[6];
    struct buf first;
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(x); i++) x[i] = ask("k");
    assert_int_equal(fake_calls_ever(model), 1);
    fake_text(fake_call(model, 0), STR("hello"));
    fake_done(fake_call(model, 0), "m-1");
    settle();
    buf_init(&first, KIB);
    buf_append(&first, fake_sent(x[0]));
    assert_true(first.len > 5);
    for (size_t i = 0; i < ARRAY_LEN(x); i++) {
        assert_true(str_equal(fake_sent(x[i]), buf_str(&first)));
        assert_str(fake_value(fake_trailers(x[i]), "x-nimi-queue-wait-ms"), "0");
        answered(x[i], "0");
    }
    struct exchange *late = ask("k");
    settle();
    assert_true(str_equal(fake_sent(late), buf_str(&first)));
    answered(late, "0");
    assert_int_equal(fake_calls_ever(model), 1);
    buf_done(&first);
}

static void a_turn_that_leaves_takes_nothing_from_waiting_ones(void **state) {
    (void)state;
    struct exchange *first = ask("k"), *second = ask("k");
    fake_leave(first);
    settle();
    fake_free(first);
    assert_int_equal(fake_calls(model), 1);
    fake_text(fake_call(model, 0), STR("hello"));
    fake_done(fake_call(model, 0), "m");
    answered(second, "0");
    assert_int_equal(fake_calls_ever(model), 1);
}

static void the_last_waiter_that_leaves_cancels_it(void **state) {
    (void)state;
    struct exchange *first = ask("k"), *second = ask("k");
    fake_leave(second);
    fake_leave(first);
    settle();
    fake_free(second);
    fake_free(first);
    assert_int_equal(fake_calls(model), 0);
    assert_int_equal(slots_taken(), 0);
    struct exchange *again = ask("k");
    assert_int_equal(fake_calls_ever(model), 2);
    fake_done(fake_call(model, 0), "m");
    answered(again, "0");
}

static void a_failure_reaches_all_waiting_callers_and_no_later_one(void **state) {
    (void)state;
    struct exchange *first = ask("k"), *second = ask("k");
    fake_fail(fake_call(model, 0), ERR_UNAVAILABLE, "overloaded");
    answered(first, "14");
    answered(second, "14");
    struct exchange *again = ask("k");
    assert_int_equal(fake_calls_ever(model), 2);
    fake_done(fake_call(model, 0), "m");
    answered(again, "0");
}

static void another_request_under_a_live_key_is_a_conflict(void **state) {
    (void)state;
    struct exchange *first = ask("k");
    struct exchange *other = ask_as("demo.app", "k", "other words");
    settle();
    refused(other, "3", "PROTOCOL_ENVELOPE_INVALID");
    fake_done(fake_call(model, 0), "m");
    answered(first, "0");
}

static void apps_and_keys_and_calls_without_one_stand_alone(void **state) {
    (void)state;
    struct exchange *x[] = {ask("k"), ask_as("other.app", "k", "hi"), ask("j"), ask(NULL),
                            ask(NULL)};
    /* Two slots an app. */
    assert_int_equal(fake_calls_ever(model), 3);
    while (fake_calls(model)) {
        fake_done(fake_call(model, 0), "m");
        settle();
    }
    for (size_t i = 0; i < ARRAY_LEN(x); i++) answered(x[i], "0");
    assert_int_equal(fake_calls_ever(model), 5);
}

static void what_is_refused_before_it_begins_is_refused_to_all(void **state) {
    (void)state;
    struct exchange *first = ask_as("demo.app", "k", "");
    settle();
    refused(first, "3", "AI_INPUT_INVALID");
    assert_int_equal(fake_calls_ever(model), 0);
    assert_true(list_empty(&instance.shared));
}

static void stopping_ends_what_is_shared_too(void **state) {
    (void)state;
    struct exchange *first = ask("k"), *second = ask("k");
    nimi_runtime_move(runtime, LIFE_STOPPING, "stopping");
    nimi_instance_stopping(&instance);
    rpc_site_warn(site);
    settle();
    assert_int_equal(fake_calls(model), 0);
    assert_str(fake_value(fake_trailers(first), "grpc-message"), "runtime shutting down");
    answered(first, "1");
    answered(second, "1");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(six_at_once_are_one_question_and_six_equal_replies,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(a_turn_that_leaves_takes_nothing_from_waiting_ones,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(the_last_waiter_that_leaves_cancels_it, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(a_failure_reaches_all_waiting_callers_and_no_later_one,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(another_request_under_a_live_key_is_a_conflict, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(apps_and_keys_and_calls_without_one_stand_alone, setup,
                                        teardown),
        cmocka_unit_test_setup_teardown(what_is_refused_before_it_begins_is_refused_to_all,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(stopping_ends_what_is_shared_too, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
