#include "session/history_read.h"

#include "fake/provider_fake.h" /* named here: the build links them */
#include "fake/store_fake.h"
#include "turn/fixture.h"

/* As after a restart: the session will be read from the store. */
static void forget_sessions(struct fixture *f) {
    uint64_t last_run = *session_table_last_run(f->engine.sessions);
    session_table_free(f->engine.sessions);
    f->engine.sessions = session_table_new(f->store);
    *session_table_last_run(f->engine.sessions) = last_run;
}

static void assert_recalled(struct fixture *f, const char *expected) {
    assert_history(f, expected);
    forget_sessions(f);
    assert_history(f, expected);
}

static void ask_for_search(struct fixture *f, const char *id) {
    assert_true(fake_tool_call(asked(f), id, "search", "{}"));
    fake_done(asked(f), "m");
    turns(f);
}

static void answer_search(struct fixture *f, const char *result) {
    fake_tool_answer(f->search, fake_tool_calls(f->search) - 1, result);
    loop_advance(f->loop, 1000); /* a tick of the store passes */
    turns(f);
}

static void questions_and_answers_come_back(void **state) {
    struct fixture *f = *state;
    struct turn turn;
    say(&turn, f, "one");
    reply(f, "first");
    end(&turn);
    say(&turn, f, "two");
    fake_text(asked(f), STR("half"));
    fake_fail(asked(f), ERR_UNAVAILABLE, "GONE");
    end(&turn);
    say(&turn, f, "three");
    fake_done(asked(f), "m");
    end(&turn);
    assert_recalled(f, "user=one agent/manager=first user=two! agent/manager=half user=three");
}

static void calls_come_back_with_their_results(void **state) {
    struct fixture *f = *state;
    struct turn turn;
    say(&turn, f, "look");
    loop_advance(f->loop, 1000);
    fake_text(asked(f), STR("let me see"));
    fake_tool_call(asked(f), "c1", "search", "{\"q\":1}");
    fake_tool_call(asked(f), "c2", "write", "{}");
    fake_tool_call(asked(f), "c3", "none", "{}");
    fake_done(asked(f), "m");
    turns(f);
    fake_tool_fail(f->write, 0, ERR_INTERNAL);
    loop_advance(f->loop, 1000);
    turns(f);
    answer_search(f, "{\"s\":1}");
    ask_for_search(f, "c4");
    answer_search(f, "{}");
    for (size_t i = 0; i < 20; i++) { /* text in rows that are not read back */
        fake_text(asked(f), STR("bit "));
        loop_advance(f->loop, 300);
        turns(f);
    }
    fake_done(asked(f), "m");
    end(&turn);
    assert_recalled(
        f,
        "user=look agent/manager=let me see call/search={\"q\":1} call/write={} call/none={} "
        "result={\"error\":\"tool 'none' not found\"}! "
        "result={\"error\":\"the fake tool failed\"}! result={\"s\":1} "
        "call/search={} result={} agent/manager=bit bit bit bit bit bit bit bit "
        "bit bit bit bit bit bit bit bit bit bit bit bit ");
}

static void words_before_a_transfer_keep_their_place(void **state) {
    struct fixture *f = *state;
    struct turn turn;
    say(&turn, f, "x");
    fake_text(asked(f), STR("wally?"));
    fake_tool_call(asked(f), "t1", "transfer_to_agent", "{\"agent_name\":\"wally\"}");
    fake_done(asked(f), "m");
    turns(f);
    fake_text(asked(f), STR("manager?"));
    fake_tool_call(asked(f), "t2", "transfer_to_agent", "{\"agent_name\":\"manager\"}");
    fake_done(asked(f), "m");
    turns(f);
    reply(f, "fine");
    end(&turn);
    assert_recalled(f, "user=x agent/manager=wally? "
                       "call/transfer_to_agent={\"agent_name\":\"wally\"} result={} "
                       "agent/wally=manager? "
                       "call/transfer_to_agent={\"agent_name\":\"manager\"} result={} "
                       "agent/manager=fine");
}

static void a_transfer_without_a_word_leaves_none(void **state) {
    struct fixture *f = *state;
    struct turn turn;
    say(&turn, f, "x");
    fake_text(asked(f), STR(" "));
    fake_tool_call(asked(f), "t1", "transfer_to_agent", "{\"agent_name\":\"wally\"}");
    fake_done(asked(f), "m");
    turns(f);
    reply(f, "me");
    end(&turn);
    assert_recalled(f, "user=x call/transfer_to_agent={\"agent_name\":\"wally\"} result={} "
                       "agent/wally=me");
}

static void a_question_and_its_answer_come_back(void **state) {
    struct fixture *f = *state;
    struct turn turn, later;
    say(&turn, f, "x");
    fake_text(asked(f), STR("I must ask"));
    fake_approval(asked(f), "a1", "May I?");
    fake_done(asked(f), "m");
    turns(f);
    answer_as_human(&later, f, "yes \"you\"\n\xE2\x82\xAC");
    reply(f, "ok");
    end(&later);
    end(&turn);
    assert_recalled(f, "user=x agent/manager=I must ask call/request_approval={} "
                       "result={\"answer\":\"yes \\\"you\\\"\\n\xE2\x82\xAC\"} "
                       "user=yes \"you\"\n\xE2\x82\xAC agent/manager=ok");
}

/* A model may call a tool by the name of ours; that must not make a session unreadable. */
static void a_call_named_like_a_question_is_only_a_call(void **state) {
    struct fixture *f = *state;
    struct turn turn;
    say(&turn, f, "x");
    fake_tool_call(asked(f), "c1", "request_approval", "{}");
    fake_done(asked(f), "m");
    turns(f);
    reply(f, "ok");
    end(&turn);
    assert_recalled(f, "user=x call/request_approval={} "
                       "result={\"error\":\"tool 'request_approval' not found\"}! "
                       "agent/manager=ok");
}

/* K11 */
static void turns_inside_turns_follow_the_one_around_them(void **state) {
    struct fixture *f = *state;
    struct turn outer, first, second, inner;
    say(&outer, f, "outer");
    loop_advance(f->loop, 1000);
    ask_for_search(f, "c1");
    loop_advance(f->loop, 1000);
    say(&first, f, "first");
    loop_advance(f->loop, 1000);
    ask_for_search(f, "c2");
    loop_advance(f->loop, 1000);
    say(&inner, f, "inner");
    reply(f, "i");
    answer_search(f, "{\"r\":2}");
    reply(f, "f");
    say(&second, f, "second");
    reply(f, "s");
    answer_search(f, "{\"r\":1}");
    reply(f, "o");
    end(&inner);
    end(&second);
    end(&first);
    end(&outer);
    assert_recalled(f, "user=outer call/search={} result={\"r\":1} agent/manager=o "
                       "user=first call/search={} result={\"r\":2} agent/manager=f "
                       "user=inner agent/manager=i user=second agent/manager=s");
}

static void children_of_a_turn_that_failed_are_remembered(void **state) {
    struct fixture *f = *state;
    struct turn outer, middle, inner;
    say(&outer, f, "outer");
    loop_advance(f->loop, 1000);
    ask_for_search(f, "c1");
    loop_advance(f->loop, 1000);
    say(&middle, f, "middle");
    loop_advance(f->loop, 1000);
    ask_for_search(f, "c2");
    loop_advance(f->loop, 1000);
    say(&inner, f, "inner");
    reply(f, "i");
    run_cancel(middle.run, STR("enough"));
    turns(f);
    answer_search(f, "{}");
    reply(f, "o");
    end(&inner);
    end(&middle);
    end(&outer);
    assert_recalled(f, "user=outer call/search={} result={} agent/manager=o user=middle! "
                       "call/search={} result={\"effect\":\"unknown\",\"error\":\"the turn "
                       "ended while this call was out: it may or may not have had its effect. "
                       "Find out before you call it again\"}! user=inner agent/manager=i");
}

/* --- any turns, however they end ---------------------------------------------------------- */

/* Turns at random, and what the model was shown last. */
struct game {
    struct fixture f;
    struct turn turn;
    unsigned seed, calls;
    struct buf prompt;
};

static unsigned roll(struct game *g, unsigned sides) {
    g->seed = g->seed * 1103515245u + 12345u;
    return (g->seed >> 16) % sides;
}

/* The model is asked: with what it was shown before, and more. */
static void look_at_prompt(struct game *g) {
    const struct provider_request *request = fake_request(asked(&g->f));
    struct buf now;
    buf_init(&now, MIB);
    for (size_t i = 0; i < request->message_count; i++) {
        struct message message = request->messages[i];
        if (message.role == MESSAGE_USER) message.error = false; /* for us alone */
        write_message(&now, &message);
    }
    if (!str_starts(buf_str(&now), buf_str(&g->prompt)))
        fail_msg("after\n%.*s\ncame\n%.*s", (int)g->prompt.len, g->prompt.at, (int)now.len,
                 now.at);
    buf_done(&g->prompt);
    g->prompt = now;
}

static bool runs(struct game *g) {
    enum run_state state = run_state(g->turn.run);
    return state != RUN_DONE && state != RUN_FAILED && state != RUN_CANCELLED;
}

static void say_something(struct game *g) {
    static const char *const words[] = {"well", " so \n", "\n\n", "hm", "and"};
    if (roll(g, 6) == 0) fake_opaque(asked(&g->f), "d", "[signed]");
    for (unsigned i = roll(g, 4); i > 0; i--) {
        fake_text(asked(&g->f), str_from(words[roll(g, ARRAY_LEN(words))]));
        if (roll(g, 2)) loop_advance(g->f.loop, 300); /* a tick of the store passes */
    }
    if (roll(g, 3) == 0) fake_usage(asked(&g->f), 3, 4);
}

static void ask_for_calls(struct game *g) {
    static const char *const tools[] = {"search", "write", "none", ""};
    char id[16];
    for (unsigned i = roll(g, 3) + 1; i > 0; i--) {
        snprintf(id, sizeof(id), "c%u", roll(g, 8) ? g->calls++ : g->calls);
        fake_tool_call(asked(&g->f), id, tools[roll(g, ARRAY_LEN(tools))], "{}");
    }
    fake_done(asked(&g->f), "m");
}

static void hand_over(struct game *g) {
    bool wally = str_equal(fake_request(asked(&g->f))->agent, STR("wally"));
    fake_tool_call(asked(&g->f), "t", "transfer_to_agent",
                   wally ? "{\"agent_name\":\"manager\"}" : "{\"agent_name\":\"wally\"}");
    fake_done(asked(&g->f), "m");
}

static void ask_human(struct game *g) {
    struct turn later;
    fake_approval(asked(&g->f), "a", "Really?");
    fake_done(asked(&g->f), "m");
    turns(&g->f);
    if (roll(g, 4) == 0) {
        run_cancel(g->turn.run, STR("never mind"));
        return;
    }
    answer_as_human(&later, &g->f, "yes");
    end(&later);
}

static void step_model(struct game *g) {
    look_at_prompt(g);
    say_something(g);
    switch (roll(g, 8)) {
    case 0: fake_fail(asked(&g->f), ERR_UNAVAILABLE, "GONE"); break;
    case 1: run_cancel(g->turn.run, STR("enough")); break;
    case 2: hand_over(g); break;
    case 3: ask_human(g); break;
    case 4:
    case 5: ask_for_calls(g); break;
    default: fake_done(asked(&g->f), "m"); break;
    }
}

static void step_tools(struct game *g) {
    struct tool *tool = fake_tool_calls(g->f.search) ? g->f.search : g->f.write;
    unsigned what = roll(g, 6);
    if (what == 0) {
        run_cancel(g->turn.run, STR("enough"));
    } else if (what == 1) {
        loop_advance(g->f.loop, g->f.engine.limits.turn_max_ms);
    } else if (what == 2) {
        fake_tool_fail(tool, 0, ERR_EFFECT_UNKNOWN);
    } else {
        fake_tool_answer(tool, fake_tool_calls(tool) - 1, "{\"r\":1}");
    }
}

static void play_turn(struct game *g, unsigned number) {
    char words[32];
    snprintf(words, sizeof(words), "turn %u", number);
    say(&g->turn, &g->f, words);
    while (runs(g)) {
        if (fake_calls(g->f.model)) {
            step_model(g);
        } else {
            step_tools(g);
        }
        turns(&g->f);
    }
    end(&g->turn);
}

/* K27: and it is the same after a restart. */
static void every_prompt_begins_with_the_one_before(void **state) {
    (void)state;
    for (unsigned seed = 1; seed <= 300; seed++) {
        struct game g = {.seed = seed};
        struct buf before, after;
        fixture_init(&g.f, true);
        buf_init(&g.prompt, MIB);
        for (unsigned number = 0; number < 8; number++) {
            play_turn(&g, number);
            buf_init(&before, MIB);
            buf_init(&after, MIB);
            write_history(&g.f, &before);
            if (roll(&g, 2)) {
                forget_sessions(&g.f);
            }
            write_history(&g.f, &after);
            if (!str_equal(buf_str(&after), buf_str(&before)))
                fail_msg("seed %u: remembered\n%.*s\nread back\n%.*s", seed, (int)before.len,
                         before.at, (int)after.len, after.at);
            buf_done(&before);
            buf_done(&after);
        }
        buf_done(&g.prompt);
        fixture_done(&g.f);
    }
}

static void bytes_that_are_no_events_are_refused(void **state) {
    (void)state;
    struct store_section section = {.run = 9, .first_seq = 1, .events = STR("\1\5abc")};
    struct history *history = NULL;
    struct err e;
    assert_false(history_read(&section, 1, &history, &e));
    assert_int_equal(e.code, ERR_DATA_LOSS);
    assert_true(str_starts(err_text(&e), STR("recall run 9: ")));
    assert_null(history);
    assert_true(history_read(NULL, 0, &history, &e));
    assert_int_equal(history->record_count, 0);
    history_unref(history);
}

/* Ids are of when runs began, by the clock of their process; rows are the order in which they were
 * written. */
static void what_was_written_until_a_run_ended_is_kept(void **state) {
    (void)state;
    static const struct store_section all[] = {
        {.run = 5, .first_seq = 1, .row = 1}, {.run = 5, .first_seq = 2, .row = 9},
        {.run = 7, .first_seq = 1, .row = 3}, {.run = 7, .first_seq = 2, .row = 4},
        {.run = 9, .first_seq = 1, .row = 2}, {.run = 9, .first_seq = 2, .row = 2}};
    struct store_section kept[ARRAY_LEN(all)];

    memcpy(kept, all, sizeof(all));
    assert_int_equal(history_read_until(kept, ARRAY_LEN(all), 7), 5);
    assert_int_equal(kept[0].run, 5); /* it had begun, and ended later */
    assert_int_equal(kept[0].row, 1);
    assert_int_equal(kept[1].row, 3);
    assert_int_equal(kept[2].row, 4);
    assert_int_equal(kept[3].run, 9); /* its number is higher, and it had ended */
    assert_int_equal(kept[4].run, 9);

    memcpy(kept, all, sizeof(all));
    assert_int_equal(history_read_until(kept, ARRAY_LEN(all), 5), ARRAY_LEN(all));
    assert_int_equal(history_read_until(kept, ARRAY_LEN(all), 9), 3);
    assert_int_equal(history_read_until(kept, 3, 8), 0);
    assert_int_equal(history_read_until(kept, 0, 8), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        STORED_TURN_TEST(questions_and_answers_come_back),
        STORED_TURN_TEST(calls_come_back_with_their_results),
        STORED_TURN_TEST(words_before_a_transfer_keep_their_place),
        STORED_TURN_TEST(a_transfer_without_a_word_leaves_none),
        STORED_TURN_TEST(a_question_and_its_answer_come_back),
        STORED_TURN_TEST(a_call_named_like_a_question_is_only_a_call),
        STORED_TURN_TEST(turns_inside_turns_follow_the_one_around_them),
        STORED_TURN_TEST(children_of_a_turn_that_failed_are_remembered),
        cmocka_unit_test(every_prompt_begins_with_the_one_before),
        cmocka_unit_test(bytes_that_are_no_events_are_refused),
        cmocka_unit_test(what_was_written_until_a_run_ended_is_kept),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
