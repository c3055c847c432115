/* Histories that are too long for the model. */
#include "turn/compaction.h"
#include "turn/run.h"

#include "fake/provider_fake.h" /* named here: the build links them */
#include "fake/store_fake.h"
#include "fixture.h"

#include <stdio.h>

#define FULL_TURNS (HISTORY_TURNS_MAX * 7 / 8) /* of a session that is condensed */
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

/* `count` turns that can be told apart: "n0 www...", "n1 www...". */
static void fill_numbered(struct fixture *f, int count) {
    for (int i = 0; i < count; i++) {
        struct turn turn;
        char words[408];
        memset(words, 'w', sizeof(words));
        words[snprintf(words, 8, "n%d", i)] = ' ';
        words[sizeof(words) - 1] = '\0';
        say(&turn, f, words);
        reply(f, "noted");
        end(&turn);
    }
}

/* The question that is with the model; it holds `newest` and not `oldest`. */
static size_t assert_question(struct fixture *f, const char *newest, const char *oldest) {
    const struct provider_request *request = fake_request(asked(f));
    assert_int_equal(request->message_count, 1);
    struct str text = request->messages[0].text;
    assert_true(str_find(text, str_from(newest)) < text.len);
    assert_true(str_find(text, str_from(oldest)) == text.len);
    assert_true(str_find(text, STR("is left out: it is too long")) < text.len);
    return text.len;
}

/* What was refused as a conversation is too long as a question, too. */
static void a_question_is_half_of_what_was_refused_and_halved_again(void **state) {
    struct fixture *f = *state;
    struct turn turn;
    fill_numbered(f, 40);
    say(&turn, f, "x");
    fake_fail(asked(f), ERR_INVALID_ARGUMENT, "MODEL_CONTEXT");
    turns(f);
    size_t first = assert_question(f, "[user] n39 ", "[user] n0 ");
    assert_true(first <= 40 * 412 / 2 + 200 && first > 40 * 412 / 3);
    fake_fail(asked(f), ERR_INVALID_ARGUMENT, "MODEL_CONTEXT");
    turns(f);
    size_t second = assert_question(f, "[user] n39 ", "[user] n20 ");
    assert_true(second <= first / 2 + 100);
    reply(f, "he likes tea");
    assert_asked(f, "user=" SUMMARY " user=x");
    reply(f, "tea");
    end(&turn);
    assert_history(f, "user=" SUMMARY " user=x agent/manager=tea");
}

static void a_model_that_refuses_each_question_fails_the_turn(void **state) {
    struct fixture *f = *state;
    struct turn turn;
    size_t questions = 0;
    fill_numbered(f, 40);
    say(&turn, f, "x");
    while (run_state(turn.run) == RUN_ASKING && questions < 20) {
        fake_fail(asked(f), ERR_INVALID_ARGUMENT, "MODEL_CONTEXT");
        turns(f);
        questions++;
    }
    assert_int_equal(run_state(turn.run), RUN_FAILED);
    assert_int_equal(questions, 3); /* the conversation, then 8 and 4 KiB of it */
    end(&turn);
}

static void take_turns(struct fixture *f, int count) {
    for (int i = 0; i < count; i++) {
        struct turn turn;
        say(&turn, f, "more");
        assert_true(fake_request(asked(f))->message_count > 1 || i == 0);
        reply(f, "ok");
        end(&turn);
    }
}

/* Its first words are still known after more turns than it remembers, in summaries of summaries. */
static void a_session_is_condensed_before_it_drops_turns(void **state) {
    struct fixture *f = *state;
    struct turn turn;
    f->agents[0].window_tokens = 128000;
    take_turns(f, FULL_TURNS);
    say(&turn, f, "and now?");
    assert_int_equal(fake_request(asked(f))->message_count, 1);
    reply(f, "he likes tea");
    assert_asked(f, "user=" SUMMARY " user=and now?");
    reply(f, "tea");
    end(&turn);
    f->agents[0].window_tokens = 0; /* a summary alone is reason enough */
    take_turns(f, FULL_TURNS - 2);
    say(&turn, f, "and now?");
    struct str question = fake_request(asked(f))->messages[0].text;
    assert_true(str_find(question, STR("he likes tea")) < question.len);
    reply(f, "he likes tea");
    assert_asked(f, "user=" SUMMARY " user=and now?");
    reply(f, "tea");
    end(&turn);
}

static void a_session_that_need_not_be_condensed_yet_goes_on_without_a_summary(void **state) {
    (void)state;
    for (int fails = 0; fails < 2; fails++) {
        struct fixture f;
        struct turn turn;
        fixture_init(&f, false);
        f.agents[0].window_tokens = 128000;
        take_turns(&f, FULL_TURNS);
        say(&turn, &f, "and now?");
        if (fails) {
            fake_fail(asked(&f), ERR_UNAVAILABLE, "PROVIDER_OVERLOADED");
            turns(&f);
        } else {
            reply(&f, " ");
        }
        assert_true(fake_request(asked(&f))->message_count > HISTORY_TURNS_MAX);
        reply(&f, "tea");
        assert_int_equal(run_state(turn.run), RUN_DONE);
        end(&turn);
        fixture_done(&f);
    }
}

/* A turn that can be made is not failed by a summary that it can do without. */
static void a_summary_for_keeping_takes_none_of_what_the_turn_may_use(void **state) {
    (void)state;
    for (int of_calls = 0; of_calls < 2; of_calls++) {
        struct fixture f;
        struct turn turn;
        fixture_init(&f, false);
        f.agents[0].window_tokens = 128000;
        take_turns(&f, FULL_TURNS);
        f.agents[0].limits.model_calls_max = of_calls ? 1 : 0;
        f.agents[0].limits.tokens_max =
            of_calls ? 0 : 300; /* the conversation is less than 100 */
        say(&turn, &f, "and now?");
        reply(&f, "tea");
        assert_int_equal(run_state(turn.run), RUN_DONE);
        assert_seen(&turn, "started(and now?) text(tea) usage(0 -1) done(m-1 manager=tea)");
        end(&turn);
        f.agents[0].limits.model_calls_max = of_calls ? 2 : 0;
        f.agents[0].limits.tokens_max = of_calls ? 0 : 3000;
        say(&turn, &f, "and now?");
        assert_int_equal(fake_request(asked(&f))->message_count, 1); /* there is room */
        reply(&f, "he likes tea");
        reply(&f, "tea");
        assert_int_equal(run_state(turn.run), RUN_DONE);
        end(&turn);
        fixture_done(&f);
    }
}

static void refuse_as_too_long(struct fixture *f) {
    fake_fail(asked(f), ERR_INVALID_ARGUMENT, "MODEL_CONTEXT");
    turns(f);
}

/* A question that was refused is one of the turn's calls. */
static void a_summary_for_keeping_is_asked_for_again_while_the_turn_has_calls(void **state) {
    (void)state;
    for (unsigned calls_max = 2; calls_max < 4; calls_max++) {
        struct fixture f;
        struct turn turn;
        fixture_init(&f, false);
        fill_numbered(&f, FULL_TURNS);
        f.agents[0].window_tokens = 128000;
        f.agents[0].limits.model_calls_max = calls_max;
        say(&turn, &f, "and now?");
        assert_int_equal(fake_request(asked(&f))->message_count, 1);
        size_t first = fake_request(asked(&f))->messages[0].text.len;
        refuse_as_too_long(&f);
        if (calls_max > 2) {
            assert_true(assert_question(&f, "[user] n55 ", "[user] n0 ") < first);
            reply(&f, "he likes tea");
            assert_asked(&f, "user=" SUMMARY " user=and now?");
        }
        assert_true(fake_request(asked(&f))->message_count > 1);
        reply(&f, "tea");
        assert_int_equal(run_state(turn.run), RUN_DONE);
        end(&turn);
        fixture_done(&f);
    }
}

/* What the turn went on without is not what it cannot go on without. */
static void a_summary_that_was_given_up_is_asked_for_when_the_model_needs_it(void **state) {
    struct fixture *f = *state;
    struct turn turn;
    f->agents[0].window_tokens = 128000;
    take_turns(f, FULL_TURNS);
    say(&turn, f, "and now?");
    reply(f, " ");
    assert_true(fake_request(asked(f))->message_count > 1);
    refuse_as_too_long(f);
    assert_int_equal(fake_request(asked(f))->message_count, 1);
    reply(f, "he likes tea");
    assert_asked(f, "user=" SUMMARY " user=and now?");
    refuse_as_too_long(f); /* and that is all that can be done */
    assert_int_equal(run_state(turn.run), RUN_FAILED);
    end(&turn);
}

static void find(struct fixture *f, size_t bytes) {
    char result[8 * KIB];
    assert_true(fake_tool_call(asked(f), "", "search", "{}"));
    fake_done(asked(f), "m-1");
    turns(f);
    snprintf(result, sizeof(result), "{\"found\":\"%0*d\"}", (int)bytes, 0);
    fake_tool_answer(f->search, fake_tool_calls(f->search) - 1, result);
    turns(f);
}

static void a_summary_that_was_given_up_is_asked_for_when_the_window_is_full(void **state) {
    struct fixture *f = *state;
    struct turn turn;
    f->agents[0].window_tokens = 1000;
    take_turns(f, FULL_TURNS);
    say(&turn, f, "and now?");
    assert_int_equal(fake_request(asked(f))->message_count, 1);
    reply(f, " ");
    find(f, 10);
    assert_true(fake_request(asked(f))->message_count >
                1); /* for keeping it is not asked again */
    find(f, 4000);
    assert_int_equal(fake_request(asked(f))->message_count, 1);
    reply(f, " ");
    assert_int_equal(run_state(turn.run), RUN_FAILED); /* it cannot be given up this time */
    end(&turn);
}

static bool asks_for_summary(struct fixture *f) {
    struct turn turn;
    say(&turn, f, "more");
    bool asks = fake_request(asked(f))->message_count == 1;
    if (asks) fake_fail(asked(f), ERR_UNAVAILABLE, "PROVIDER_OVERLOADED");
    turns(f);
    reply(f, "ok");
    assert_int_equal(run_state(turn.run), RUN_DONE);
    end(&turn);
    return asks;
}

/* Else one that fails each time would be paid for in each turn, for ever. */
static void a_session_that_has_just_dropped_turns_is_not_full(void **state) {
    struct fixture *f = *state;
    size_t asked_for = 0;
    f->agents[0].window_tokens = 128000;
    take_turns(f, FULL_TURNS);
    for (size_t i = FULL_TURNS; i <= HISTORY_TURNS_MAX; i++) asked_for += asks_for_summary(f);
    assert_int_equal(asked_for, HISTORY_TURNS_MAX + 1 - FULL_TURNS);
    for (size_t i = HISTORY_TURNS_LEFT; i < FULL_TURNS; i++) assert_false(asks_for_summary(f));
    assert_true(asks_for_summary(f));
}

/* A summary would not make them shorter, and each turn would pay for one. */
static void long_instructions_of_a_turn_make_no_session_full(void **state) {
    struct fixture *f = *state;
    char *text = mem_alloc(HISTORY_MAX_BYTES);
    memset(text, 'i', HISTORY_MAX_BYTES);
    const struct message brought[] = {
        {.role = MESSAGE_SYSTEM, .instructions = true, .text = str_of(text, HISTORY_MAX_BYTES)},
        {.role = MESSAGE_USER, .text = STR("and now?")}};
    struct run_request request = request_of("and now?");
    struct turn turn;
    request.messages = brought;
    request.message_count = ARRAY_LEN(brought);
    f->agents[0].window_tokens = 128000;
    take_turns(f, 1);
    start(&turn, f, &request);
    assert_int_equal(fake_request(asked(f))->message_count, 4);
    reply(f, "tea");
    assert_seen(&turn, "started(and now?) item(application/vnd.weir.messages+json) text(tea) "
                       "usage(0 -1) done(m-1 manager=tea)");
    end(&turn);
    free(text);
}

static void a_compaction_moves_as_its_table_says(void **state) {
    (void)state;
    static const char *const rows[COMPACTION_STATE_COUNT] = {
        [COMPACTION_NONE] = ".#..",
        [COMPACTION_ASKING] = "..##",
        [COMPACTION_REPLACED] = "....",
        [COMPACTION_GIVEN_UP] = ".#..",
    };
    for (enum compaction_state from = 0; from < COMPACTION_STATE_COUNT; from++) {
        for (enum compaction_state to = 0; to < COMPACTION_STATE_COUNT; to++)
            assert_int_equal(states_allow(compaction_states, from, to), rows[from][to] == '#');
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_history_beyond_the_window_becomes_a_summary),
        TURN_TEST(a_summary_leaves_the_calls_that_the_turn_answers),
        STORED_TURN_TEST(a_session_that_is_read_back_begins_with_its_summary),
        TURN_TEST(a_model_that_finds_it_too_long_is_asked_for_a_summary_once),
        TURN_TEST(a_model_that_writes_no_summary_fails_the_turn_and_keeps_the_history),
        TURN_TEST(a_question_is_half_of_what_was_refused_and_halved_again),
        TURN_TEST(a_model_that_refuses_each_question_fails_the_turn),
        TURN_TEST(a_session_is_condensed_before_it_drops_turns),
        cmocka_unit_test(a_session_that_need_not_be_condensed_yet_goes_on_without_a_summary),
        cmocka_unit_test(a_summary_for_keeping_takes_none_of_what_the_turn_may_use),
        cmocka_unit_test(a_summary_for_keeping_is_asked_for_again_while_the_turn_has_calls),
        TURN_TEST(a_summary_that_was_given_up_is_asked_for_when_the_model_needs_it),
        TURN_TEST(a_summary_that_was_given_up_is_asked_for_when_the_window_is_full),
        TURN_TEST(a_session_that_has_just_dropped_turns_is_not_full),
        TURN_TEST(long_instructions_of_a_turn_make_no_session_full),
        cmocka_unit_test(a_compaction_moves_as_its_table_says),
        STORED_TURN_TEST(cancelling_while_the_summary_is_written_ends_the_turn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
