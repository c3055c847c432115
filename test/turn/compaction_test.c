/* Histories that are too long for the model. */
#include "turn/run.h"

#include "fake/provider_fake.h" /* named here: the build links them */
#include "fake/store_fake.h"
#include "fixture.h"

#define SUMMARY "What was said before, in short:\nhe likes tea"

/* One turn of 400 bytes: a hundred tokens. */
static void fill(struct fixture *f) {
    struct turn turn;
    char words[401];
    memset(words, 'w', 400);
    words[400] = '\0';
    say(&turn, f, words);
    reply(f, "noted");
    end(&turn);
}

static void a_history_beyond_the_window_becomes_a_summary(void **state) {
    (void)state;
    for (int with_store = 0; with_store < 2; with_store++) {
        struct fixture f;
        struct turn turn;
        fixture_init(&f, with_store);
        f.agents[0].window_tokens = 100;
        fill(&f);
        say(&turn, &f, "and now?");
        const struct provider_request *request = fake_request(asked(&f));
        assert_int_equal(request->message_count, 1);
        assert_true(str_find(request->messages[0].text, STR("[manager] noted")) <
                    request->messages[0].text.len);
        assert_int_equal(request->tool_count, 0);
        reply(&f, "he likes tea");
        assert_asked(&f, "user=" SUMMARY " user=and now?");
        reply(&f, "tea");
        assert_seen(&turn, "started(and now?) usage(0 -1) item(application/vnd.weir.summary) "
                           "step(earlier turns were condensed into a summary) text(tea) "
                           "usage(1 -1) done(m-1 manager=tea)");
        end(&turn);
        assert_history(&f, "user=" SUMMARY " user=and now? agent/manager=tea");
        fixture_done(&f);
    }
}

/* The turn brings the result of a call that stands before it. */
static void a_summary_leaves_the_calls_that_the_turn_answers(void **state) {
    struct fixture *f = *state;
    struct turn turn;
    struct run_request request = request_of("warm?");
    const struct tool_offer weather = {.name = STR("get_weather")};
    const struct message result = {
        .role = MESSAGE_TOOL_RESULT, .call_id = STR("w1"), .text = STR("{\"c\":31}")};
    fill(f);
    request.tools = &weather;
    request.tool_count = 1;
    start(&turn, f, &request);
    fake_tool_call(asked(f), "w1", "get_weather", "{}");
    fake_done(asked(f), "m-1");
    end(&turn);
    f->agents[0].window_tokens = 100;
    request.text = STR("");
    request.messages = &result;
    request.message_count = 1;
    start(&turn, f, &request);
    reply(f, "he likes tea");
    const struct provider_request *asks = fake_request(asked(f));
    struct buf out;
    buf_init(&out, KIB);
    for (size_t i = 0; i < asks->message_count; i++) write_message(&out, &asks->messages[i]);
    assert_str(buf_str(&out), "user=" SUMMARY " call/get_weather={} result={\"c\":31}");
    assert_int_equal(asks->turn_start, 2);
    buf_done(&out);
    reply(f, "31 degrees");
    end(&turn);
}

static void a_session_that_is_read_back_begins_with_its_summary(void **state) {
    struct fixture *f = *state;
    struct turn turn;
    f->agents[0].window_tokens = 100;
    fill(f);
    say(&turn, f, "and now?");
    reply(f, "he likes tea");
    reply(f, "tea");
    end(&turn);
    turns(f);
    session_table_free(f->engine.sessions); /* as a new process would begin */
    f->engine.sessions = session_table_new(f->store);
    assert_history(f, "user=" SUMMARY " user=and now? agent/manager=tea");
}

static void a_model_that_finds_it_too_long_is_asked_for_a_summary_once(void **state) {
    struct fixture *f = *state;
    struct turn turn;
    fill(f);
    say(&turn, f, "x");
    fake_fail(asked(f), ERR_INVALID_ARGUMENT, "MODEL_CONTEXT");
    turns(f);
    reply(f, "short");
    fake_fail(asked(f), ERR_INVALID_ARGUMENT, "MODEL_CONTEXT");
    turns(f);
    assert_int_equal(run_state(turn.run), RUN_FAILED);
    end(&turn);
}

static void a_model_that_writes_no_summary_fails_the_turn_and_keeps_the_history(void **state) {
    struct fixture *f = *state;
    struct turn turn;
    f->agents[0].window_tokens = 100;
    fill(f);
    say(&turn, f, "x");
    reply(f, " ");
    assert_int_equal(run_state(turn.run), RUN_FAILED);
    end(&turn);
    f->agents[0].window_tokens = 0;
    say(&turn, f, "y");
    assert_int_equal(fake_request(asked(f))->turn_start, 3); /* and what failed */
    reply(f, "z");
    end(&turn);
}

static void cancelling_while_the_summary_is_written_ends_the_turn(void **state) {
    struct fixture *f = *state;
    struct turn turn;
    f->agents[0].window_tokens = 100;
    fill(f);
    say(&turn, f, "x");
    fake_text(asked(f), STR("he"));
    run_cancel(turn.run, STR("enough"));
    assert_seen(&turn, "started(x) usage(0 -1) cancelled(enough)");
    end(&turn);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_history_beyond_the_window_becomes_a_summary),
        TURN_TEST(a_summary_leaves_the_calls_that_the_turn_answers),
        STORED_TURN_TEST(a_session_that_is_read_back_begins_with_its_summary),
        TURN_TEST(a_model_that_finds_it_too_long_is_asked_for_a_summary_once),
        TURN_TEST(a_model_that_writes_no_summary_fails_the_turn_and_keeps_the_history),
        STORED_TURN_TEST(cancelling_while_the_summary_is_written_ends_the_turn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
