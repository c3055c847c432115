#include "run/recall.h"

#include "fake/provider_fake.h" /* named here: the build links them */
#include "fake/store_fake.h"
#include "fixture.h"

/* As after a restart: the session is read from the store, and must be what it was. */
static void assert_recalled(struct fixture *f, const char *expected) {
    assert_history(f, expected);
    session_table_free(f->engine.sessions);
    f->engine.sessions = session_table_new(f->store);
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

static void what_was_said_and_answered_comes_back(void **state) {
    (void)state;
    struct fixture f;
    struct turn turn;
    fixture_init(&f, true);
    say(&turn, &f, "one");
    reply(&f, "first");
    end(&turn);
    say(&turn, &f, "two");
    fake_text(asked(&f), STR("half"));
    fake_fail(asked(&f), ERR_UNAVAILABLE, "GONE");
    end(&turn);
    say(&turn, &f, "three");
    fake_done(asked(&f), "m");
    end(&turn);
    assert_recalled(&f, "user=one agent/manager=first user=three");
    fixture_done(&f);
}

static void calls_come_back_with_their_results(void **state) {
    (void)state;
    struct fixture f;
    struct turn turn;
    fixture_init(&f, true);
    say(&turn, &f, "look");
    loop_advance(f.loop, 1000);
    fake_text(asked(&f), STR("let me see"));
    fake_tool_call(asked(&f), "c1", "search", "{\"q\":1}");
    fake_tool_call(asked(&f), "c2", "write", "{}");
    fake_tool_call(asked(&f), "c3", "none", "{}");
    fake_done(asked(&f), "m");
    turns(&f);
    fake_tool_fail(f.write, 0, ERR_INTERNAL);
    loop_advance(f.loop, 1000);
    turns(&f);
    answer_search(&f, "{\"s\":1}");
    ask_for_search(&f, "c4");
    answer_search(&f, "{}");
    for (size_t i = 0; i < 20; i++) { /* text in rows that are not read back */
        fake_text(asked(&f), STR("bit "));
        loop_advance(f.loop, 300);
        turns(&f);
    }
    fake_done(asked(&f), "m");
    end(&turn);
    assert_recalled(
        &f, "user=look call/search={\"q\":1} call/write={} call/none={} "
            "result={\"error\":\"tool 'none' not found\"}! "
            "result={\"error\":\"the fake tool failed\"}! result={\"s\":1} "
            "call/search={} result={} agent/manager=let me seebit bit bit bit bit bit bit bit "
            "bit bit bit bit bit bit bit bit bit bit bit bit ");
    fixture_done(&f);
}

static void what_was_said_before_a_transfer_keeps_its_place(void **state) {
    (void)state;
    struct fixture f;
    struct turn turn;
    fixture_init(&f, true);
    say(&turn, &f, "x");
    fake_text(asked(&f), STR("wally?"));
    fake_tool_call(asked(&f), "t1", "transfer_to_agent", "{\"agent_name\":\"wally\"}");
    fake_done(asked(&f), "m");
    turns(&f);
    fake_text(asked(&f), STR("manager?"));
    fake_tool_call(asked(&f), "t2", "transfer_to_agent", "{\"agent_name\":\"manager\"}");
    fake_done(asked(&f), "m");
    turns(&f);
    reply(&f, "fine");
    end(&turn);
    assert_recalled(&f, "user=x agent/manager=wally? "
                        "call/transfer_to_agent={\"agent_name\":\"wally\"} result={} "
                        "agent/wally=manager? "
                        "call/transfer_to_agent={\"agent_name\":\"manager\"} result={} "
                        "agent/manager=fine");
    fixture_done(&f);
}

static void a_transfer_without_a_word_leaves_none(void **state) {
    (void)state;
    struct fixture f;
    struct turn turn;
    fixture_init(&f, true);
    say(&turn, &f, "x");
    fake_text(asked(&f), STR(" "));
    fake_tool_call(asked(&f), "t1", "transfer_to_agent", "{\"agent_name\":\"wally\"}");
    fake_done(asked(&f), "m");
    turns(&f);
    reply(&f, "me");
    end(&turn);
    assert_recalled(&f, "user=x call/transfer_to_agent={\"agent_name\":\"wally\"} result={} "
                        "agent/wally=me");
    fixture_done(&f);
}

static void a_question_and_its_answer_come_back(void **state) {
    (void)state;
    struct fixture f;
    struct turn turn, later;
    fixture_init(&f, true);
    say(&turn, &f, "x");
    fake_text(asked(&f), STR("I must ask"));
    fake_approval(asked(&f), "a1", "May I?");
    fake_done(asked(&f), "m");
    turns(&f);
    answer_as_human(&later, &f, "yes \"you\"\n\xE2\x82\xAC");
    reply(&f, "ok");
    end(&later);
    end(&turn);
    assert_recalled(&f, "user=x call/request_approval={} "
                        "result={\"answer\":\"yes \\\"you\\\"\\n\xE2\x82\xAC\"} "
                        "user=yes \"you\"\n\xE2\x82\xAC agent/manager=ok");
    fixture_done(&f);
}

/* A model may call a tool by the name of ours; that must not make a session unreadable. */
static void a_call_named_like_a_question_is_only_a_call(void **state) {
    (void)state;
    struct fixture f;
    struct turn turn;
    fixture_init(&f, true);
    say(&turn, &f, "x");
    fake_tool_call(asked(&f), "c1", "request_approval", "{}");
    fake_done(asked(&f), "m");
    turns(&f);
    reply(&f, "ok");
    end(&turn);
    assert_recalled(&f, "user=x call/request_approval={} "
                        "result={\"error\":\"tool 'request_approval' not found\"}! "
                        "agent/manager=ok");
    fixture_done(&f);
}

static void turns_inside_turns_stand_behind_the_result(void **state) {
    (void)state;
    struct fixture f;
    struct turn outer, first, second, inner;
    fixture_init(&f, true);
    say(&outer, &f, "outer");
    loop_advance(f.loop, 1000);
    ask_for_search(&f, "c1");
    loop_advance(f.loop, 1000);
    say(&first, &f, "first");
    loop_advance(f.loop, 1000);
    ask_for_search(&f, "c2");
    loop_advance(f.loop, 1000);
    say(&inner, &f, "inner");
    reply(&f, "i");
    answer_search(&f, "{\"r\":2}");
    reply(&f, "f");
    say(&second, &f, "second");
    reply(&f, "s");
    answer_search(&f, "{\"r\":1}");
    reply(&f, "o");
    end(&inner);
    end(&second);
    end(&first);
    end(&outer);
    assert_recalled(&f, "user=outer call/search={} result={\"r\":1} user=first call/search={} "
                        "result={\"r\":2} user=inner agent/manager=i agent/manager=f "
                        "user=second agent/manager=s agent/manager=o");
    fixture_done(&f);
}

static void children_of_a_turn_that_failed_are_remembered(void **state) {
    (void)state;
    struct fixture f;
    struct turn outer, middle, inner;
    fixture_init(&f, true);
    say(&outer, &f, "outer");
    loop_advance(f.loop, 1000);
    ask_for_search(&f, "c1");
    loop_advance(f.loop, 1000);
    say(&middle, &f, "middle");
    loop_advance(f.loop, 1000);
    ask_for_search(&f, "c2");
    loop_advance(f.loop, 1000);
    say(&inner, &f, "inner");
    reply(&f, "i");
    run_cancel(middle.run, STR("enough"));
    turns(&f);
    answer_search(&f, "{}");
    reply(&f, "o");
    end(&inner);
    end(&middle);
    end(&outer);
    assert_recalled(&f, "user=outer call/search={} result={} user=inner agent/manager=i "
                        "agent/manager=o");
    fixture_done(&f);
}

static void bytes_that_are_no_events_are_refused(void **state) {
    (void)state;
    struct store_section section = {.run = 9, .first_seq = 1, .events = STR("\1\5abc")};
    struct history *history = NULL;
    struct err e;
    assert_false(recall_history(&section, 1, &history, &e));
    assert_int_equal(e.code, ERR_DATA_LOSS);
    assert_true(str_starts(err_text(&e), STR("recall run 9: ")));
    assert_null(history);
    assert_true(recall_history(NULL, 0, &history, &e));
    assert_int_equal(history->record_count, 0);
    history_unref(history);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_said_and_answered_comes_back),
        cmocka_unit_test(calls_come_back_with_their_results),
        cmocka_unit_test(what_was_said_before_a_transfer_keeps_its_place),
        cmocka_unit_test(a_transfer_without_a_word_leaves_none),
        cmocka_unit_test(a_question_and_its_answer_come_back),
        cmocka_unit_test(a_call_named_like_a_question_is_only_a_call),
        cmocka_unit_test(turns_inside_turns_stand_behind_the_result),
        cmocka_unit_test(children_of_a_turn_that_failed_are_remembered),
        cmocka_unit_test(bytes_that_are_no_events_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
