/* Tool calls that a human allows, refuses or changes. Source: design.md "The run". */
#include "session/decision.h"
#include "session/waiting.h"
#include "turn/run.h"

#include "fake/provider_fake.h" /* named here: the build links them */
#include "fake/store_fake.h"
#include "fixture.h"
#include "session/idempotency_claims.h"

static const struct agent_tool writing_asks[] = {{STR_INIT("write"), TOOL_ASK}};

/* The Manager has to ask before it writes, and asks to search and to write. */
static void fixture_init_asking(struct fixture *f, bool with_store) {
    fixture_init(f, with_store);
    f->agents[0].tools = writing_asks;
    f->agents[0].tool_count = 1;
}

static void ask_to_write(struct turn *turn, struct fixture *f) {
    say(turn, f, "save it");
    fake_tool_call(asked(f), "c1", "write", "{\"k\":1}");
    fake_done(asked(f), "m-1");
    turns(f);
}

static void a_call_that_is_allowed_is_made_then(void **state) {
    (void)state;
    for (int with_store = 0; with_store < 2; with_store++) {
        struct fixture f;
        struct turn turn, later;
        fixture_init_asking(&f, with_store);
        ask_to_write(&turn, &f);
        assert_int_equal(run_state(turn.run), RUN_WAITING);
        assert_int_equal(fake_tool_calls(f.write), 0);
        assert_seen(&turn, "started(save it) usage(0 -1) call(c1 write {\"k\":1}) "
                           "approval(approve-c1 May 'manager' use the tool 'write' with "
                           "{\"k\":1}? (yes or no))");
        answer_as_human(&later, &f, "yes");
        assert_int_equal(fake_tool_calls(f.write), 1);
        assert_str(fake_tool_args(f.write, 0), "{\"k\":1}");
        fake_tool_answer(f.write, 0, "{\"ok\":true}");
        turns(&f);
        assert_asked(&f, "user=save it call/write={\"k\":1} result={\"ok\":true}");
        reply(&f, "saved");
        assert_seen(&later, "result(approve-c1 "
                            "{\"decision\":\"approve\",\"tool\":\"write\",\"args\":{\"k\":1}}) "
                            "result(c1 {\"ok\":true}) text(saved) usage(1 -1) "
                            "done(m-1 manager=saved)");
        end(&turn);
        end(&later);
        assert_history(&f, "user=save it call/write={\"k\":1} result={\"ok\":true} "
                           "agent/manager=saved");
        fixture_done(&f);
    }
}

/* The arguments of a call, in `ret`: {"KEY":"éé..."}, two bytes for each é. */
static void write_long_args(struct buf *ret, const char *key, size_t characters) {
    buf_init(ret, 16 * KIB);
    buf_printf(ret, "{\"%s\":\"", key);
    while (characters-- > 0) buf_append(ret, STR("\xC3\xA9"));
    buf_append(ret, STR("\"}"));
}

/* What the human reads has at most 2,000 bytes of the arguments and no half character; the call
 * itself keeps them all. The third row's arguments are as long as may be, and not cut. */
static void a_long_question_is_cut_at_a_character_and_says_so(void **state) {
    (void)state;
    static const struct {
        const char *key;
        size_t characters, shown;
        bool cut;
    } rows[] = {
        {"k", 1500, 2000, true},  /* the border stands between two characters */
        {"kk", 1500, 1999, true}, /* and here inside one */
        {"k", 996, 2000, false},
        {"kk", 996, 2000, true},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct fixture f;
        struct turn turn, later;
        struct buf args, seen;
        write_long_args(&args, rows[i].key, rows[i].characters);
        buf_append_byte(&args, '\0');
        fixture_init_asking(&f, true);
        say(&turn, &f, "save it");
        fake_tool_call(asked(&f), "c1", "write", args.at);
        fake_done(asked(&f), "m-1");
        turns(&f);
        struct str whole = str_from(args.at);
        buf_init(&seen, 64 * KIB);
        buf_printf(&seen,
                   "started(save it) usage(0 -1) call(c1 write " STR_FMT
                   ") approval(approve-c1 May 'manager' use the tool 'write' with " STR_FMT
                   "%s? (yes or no))",
                   STR_ARG(whole), STR_ARG(str_head(whole, rows[i].shown)),
                   rows[i].cut ? " ..." : "");
        buf_append_byte(&seen, '\0');
        assert_seen(&turn, seen.at);
        answer_as_human(&later, &f, "yes");
        assert_str(fake_tool_args(f.write, 0), args.at);
        fake_tool_answer(f.write, 0, "{}");
        turns(&f);
        reply(&f, "ok");
        end(&turn);
        end(&later);
        fixture_done(&f);
        buf_done(&seen);
        buf_done(&args);
    }
}

static void a_call_that_is_refused_is_never_made_and_the_model_reads_why(void **state) {
    (void)state;
    struct fixture f;
    struct turn turn, later;
    fixture_init_asking(&f, true);
    ask_to_write(&turn, &f);
    answer_as_human(&later, &f, "{\"approved\":false,\"reason\":\"not there\"}");
    assert_int_equal(fake_tool_calls(f.write), 0);
    assert_asked(&f, "user=save it call/write={\"k\":1} "
                     "result={\"error\":\"a human refused this call: not there\"}!");
    reply(&f, "then not");
    assert_int_equal(run_state(turn.run), RUN_DONE);
    end(&turn);
    end(&later);
    fixture_done(&f);
}

static void a_call_may_be_changed_before_it_is_made(void **state) {
    (void)state;
    struct fixture f;
    struct turn turn, later;
    fixture_init_asking(&f, true);
    ask_to_write(&turn, &f);
    answer_as_human(&later, &f, "{\"decision\":\"edit\",\"args\":{\"k\":2}}");
    assert_str(fake_tool_args(f.write, 0), "{\"k\":2}");
    fake_tool_answer(f.write, 0, "{}");
    turns(&f);
    assert_asked(&f, "user=save it call/write={\"k\":2} result={}");
    reply(&f, "ok");
    end(&turn);
    end(&later);
    assert_history(&f, "user=save it call/write={\"k\":2} result={} agent/manager=ok");
    fixture_done(&f);
}

static void calls_beside_it_are_made_before_anybody_is_asked(void **state) {
    (void)state;
    struct fixture f;
    struct turn turn, second, third;
    fixture_init_asking(&f, true);
    say(&turn, &f, "x");
    fake_tool_call(asked(&f), "c1", "write", "{\"k\":1}");
    fake_tool_call(asked(&f), "c2", "search", "{}");
    fake_tool_call(asked(&f), "c3", "write", "{\"k\":3}");
    fake_done(asked(&f), "m-1");
    turns(&f);
    assert_int_equal(run_state(turn.run), RUN_WORKING);
    fake_tool_answer(f.search, 0, "{\"hit\":1}");
    turns(&f);
    assert_int_equal(run_state(turn.run), RUN_WAITING);
    answer_as_human(&second, &f, "ok");
    fake_tool_answer(f.write, 0, "{\"w\":1}");
    turns(&f);
    assert_int_equal(run_state(turn.run), RUN_WAITING);
    answer_as_human(&third, &f, "stop");
    assert_asked(&f, "user=x call/write={\"k\":1} call/search={} call/write={\"k\":3} "
                     "result={\"hit\":1} result={\"w\":1} "
                     "result={\"error\":\"a human refused this call\"}!");
    reply(&f, "done");
    end(&turn);
    end(&second);
    end(&third);
    fixture_done(&f);
}

static void nothing_is_made_before_the_decision_is_on_disk(void **state) {
    (void)state;
    struct fixture f;
    struct turn turn, later;
    fixture_init_asking(&f, true);
    ask_to_write(&turn, &f);
    fake_store_ask_me(f.store);
    answer_as_human(&later, &f, "yes");
    assert_int_equal(fake_tool_calls(f.write), 0);
    assert_int_equal(fake_store_writes(f.store), 1); /* at once, not with the next tick */
    fake_store_commit(f.store, 0);
    turns(&f);
    assert_int_equal(fake_tool_calls(f.write), 1);
    fake_store_always_commit(f.store);
    fake_tool_answer(f.write, 0, "{}");
    turns(&f);
    reply(&f, "ok");
    end(&turn);
    end(&later);
    fixture_done(&f);
}

/* Its answer is still on the way to its loop when the new turn comes. */
static void a_new_turn_does_not_overtake_one_that_was_answered(void **state) {
    (void)state;
    for (int with_store = 0; with_store < 2; with_store++) {
        struct fixture f;
        struct turn turn, later = {.f = &f};
        const struct run_request request = request_of("and now?");
        struct journal *journal;
        uint64_t seq;
        struct err e;
        fixture_init_asking(&f, with_store);
        ask_to_write(&turn, &f);
        assert_int_equal(session_answer_pending(f.engine.sessions, &request.name, STR("no"),
                                                &journal, &seq, &e),
                         PENDING_TAKEN);
        journal_unref(journal);
        assert_true(run_start(&f.host, &request, &later.run, &e));
        follow(&later, run_journal(later.run), 0);
        turns(&f);
        assert_int_equal(run_state(later.run), RUN_QUEUED);
        reply(&f, "then not");
        assert_int_equal(run_state(turn.run), RUN_DONE);
        assert_asked(&f, "user=save it call/write={\"k\":1} "
                         "result={\"error\":\"a human refused this call\"}! "
                         "agent/manager=then not user=and now?");
        reply(&f, "nothing");
        assert_int_equal(run_state(later.run), RUN_DONE);
        end(&turn);
        end(&later);
        fixture_done(&f);
    }
}

/* The answer finds nobody any more. */
static void a_new_turn_does_not_wait_for_one_that_was_answered_and_cancelled(void **state) {
    (void)state;
    struct fixture f;
    struct turn turn, later = {.f = &f};
    const struct run_request request = request_of("and now?");
    struct journal *journal;
    uint64_t seq;
    struct err e;
    fixture_init_asking(&f, true);
    ask_to_write(&turn, &f);
    assert_int_equal(session_answer_pending(f.engine.sessions, &request.name, STR("yes"),
                                            &journal, &seq, &e),
                     PENDING_TAKEN);
    journal_unref(journal);
    assert_true(run_start(&f.host, &request, &later.run, &e));
    follow(&later, run_journal(later.run), 0);
    run_cancel(turn.run, STR("enough"));
    turns(&f);
    assert_int_equal(run_state(turn.run), RUN_CANCELLED);
    assert_int_equal(fake_tool_calls(f.write), 0);
    assert_asked(&f, "user=save it! call/write={\"k\":1} result={\"effect\":\"none\","
                     "\"error\":\"the turn ended first: this call was not made\"}! "
                     "user=and now?");
    reply(&f, "nothing");
    assert_int_equal(run_state(later.run), RUN_DONE);
    end(&turn);
    end(&later);
    fixture_done(&f);
}

/* Nobody has answered it, and its end is on its way to the disk when the new turn comes. */
static void a_new_turn_comes_after_the_end_of_one_that_waited(void **state) {
    (void)state;
    for (int with_store = 0; with_store < 2; with_store++) {
        struct fixture f;
        struct turn turn, later = {.f = &f};
        const struct run_request request = request_of("and now?");
        struct err e;
        fixture_init_asking(&f, with_store);
        ask_to_write(&turn, &f);
        run_cancel(turn.run, STR("enough"));
        assert_false(session_has_pending(f.engine.sessions, &request.name));
        assert_true(run_start(&f.host, &request, &later.run, &e));
        follow(&later, run_journal(later.run), 0);
        turns(&f);
        assert_int_equal(run_state(turn.run), RUN_CANCELLED);
        assert_asked(&f, "user=save it! call/write={\"k\":1} result={\"effect\":\"none\","
                         "\"error\":\"the turn ended first: this call was not made\"}! "
                         "user=and now?");
        reply(&f, "nothing");
        assert_int_equal(run_state(later.run), RUN_DONE);
        end(&turn);
        end(&later);
        fixture_done(&f);
    }
}

/* Another replica that has the session next must read how the turn ended. */
static void a_session_is_given_back_after_the_end_of_a_turn_that_was_answered(void **state) {
    (void)state;
    struct fixture f;
    struct turn turn;
    const struct run_request request = request_of("and now?");
    struct journal *journal;
    uint64_t seq;
    struct err e;
    fixture_init_asking(&f, true);
    fake_store_share(f.store);
    session_table_free(f.engine.sessions);
    f.engine.sessions = session_table_new(f.store);
    ask_to_write(&turn, &f);
    fake_store_ask_me(f.store);
    assert_int_equal(session_answer_pending(f.engine.sessions, &request.name, STR("yes"),
                                            &journal, &seq, &e),
                     PENDING_TAKEN);
    journal_unref(journal);
    run_cancel(turn.run, STR("enough"));
    turns(&f);
    assert_int_equal(fake_store_writes(f.store), 1);
    assert_int_equal(fake_store_tasks(f.store), 0);
    fake_store_always_commit(f.store);
    fake_store_commit(f.store, 0);
    turns(&f);
    assert_int_equal(run_state(turn.run), RUN_CANCELLED);
    assert_int_equal(fake_store_number(f.store, "SELECT count(*) FROM lease"), 0);
    end(&turn);
    fixture_done(&f);
}

static void silence_is_a_no_at_the_deadline_or_a_yes_where_configured(void **state) {
    (void)state;
    for (int yes = 0; yes < 2; yes++) {
        struct fixture f;
        struct turn turn;
        fixture_init_asking(&f, true);
        f.engine.limits.approval_max_ms = 5000;
        f.engine.limits.approval_expires_yes = yes;
        ask_to_write(&turn, &f);
        loop_advance(f.loop, 4999);
        turns(&f);
        assert_int_equal(run_state(turn.run), RUN_WAITING);
        loop_advance(f.loop, 1);
        turns(&f);
        assert_int_equal(fake_tool_calls(f.write), yes);
        if (yes) fake_tool_answer(f.write, 0, "{}");
        turns(&f);
        reply(&f, "ok");
        assert_int_equal(run_state(turn.run), RUN_DONE);
        end(&turn);
        fixture_done(&f);
    }
}

static enum pending_found fits(const struct pending_question *asked, void *ctx) {
    (void)ctx;
    return str_equal(asked->args, STR("{\"k\":1}")) ? PENDING_TAKEN : PENDING_REFUSED;
}

static void a_waiting_run_can_be_read_and_answered_by_its_id(void **state) {
    (void)state;
    struct fixture f;
    struct turn turn;
    fixture_init_asking(&f, true);
    f.engine.limits.approval_max_ms = 5000;
    ask_to_write(&turn, &f);
    struct session_name name = request_of("").name;
    struct arena *arena = arena_new(MIB);
    struct pending_view view;
    bool more;
    size_t count =
        pending_approvals_list(session_table_approvals(f.engine.sessions),
                               &(struct pending_approvals_filter){.workspace = name.workspace},
                               1, arena, &view, &more);
    assert_int_equal(count, 1);
    assert_int_equal(view.run, run_id(turn.run));
    assert_str(view.asked.tool, "write");
    assert_str(view.asked.args, "{\"k\":1}");
    assert_str(view.asked.agent, "manager");
    assert_str(view.asked.guards, "c1");
    assert_int_equal(view.asked.deadline_unix_ms - view.asked.asked_unix_ms, 5000);
    struct pending_answered answered;
    struct err e;
    struct pending_answer answer = {.name = name,
                                    .run = view.run,
                                    .seq = view.seq,
                                    .text = STR("{\"decision\":\"approve\"}"),
                                    .check = fits};
    assert_int_equal(session_settle(f.engine.sessions, &answer, &answered, &e), PENDING_TAKEN);
    journal_unref(answered.journal);
    answer.text = STR("no");
    assert_int_equal(session_settle(f.engine.sessions, &answer, &answered, &e), PENDING_NONE);
    arena_free(arena);
    turns(&f);
    fake_tool_answer(f.write, 0, "{}");
    turns(&f);
    reply(&f, "ok");
    assert_int_equal(run_state(turn.run), RUN_DONE);
    end(&turn);
    fixture_done(&f);
}

/* K29: words that decide nothing leave the call waiting, and follow the question. */
static void words_that_decide_nothing_are_kept_beside_the_question(void **state) {
    (void)state;
    struct fixture f;
    struct turn turn, later;
    fixture_init_asking(&f, true);
    ask_to_write(&turn, &f);
    struct session_name name = request_of("").name;
    struct arena *arena = arena_new(MIB);
    struct pending_answered answered;
    struct err e;
    const struct pending_answer answer = {.name = name,
                                          .text = STR("What happens if I say yes?"),
                                          .asks_again = true,
                                          .arena = arena};
    assert_int_equal(session_settle(f.engine.sessions, &answer, &answered, &e),
                     PENDING_UNDECIDED);
    assert_str(answered.stays.asked.tool, "write");
    turns(&f);
    assert_int_equal(run_state(turn.run), RUN_WAITING);
    assert_int_equal(fake_tool_calls(f.write), 0);
    struct cursor *cursor;
    struct event event, last = {.seq = 0};
    assert_true(cursor_open(run_journal(turn.run), 0, f.loop, NULL, NULL, &cursor, &e));
    while (cursor_next(cursor, &event)) last = event;
    assert_int_equal(last.kind, EVENT_ITEM);
    assert_str(last.item.type, ASIDE_ITEM);
    assert_str(last.item.bytes, "What happens if I say yes?");
    cursor_close(cursor);
    arena_free(arena);
    answer_as_human(&later, &f, "yes");
    assert_int_equal(fake_tool_calls(f.write), 1);
    fake_tool_answer(f.write, 0, "{}");
    turns(&f);
    reply(&f, "ok");
    end(&turn);
    end(&later);
    fixture_done(&f);
}

static void say_aside(struct fixture *f, const char *words, const char *key,
                      const char *print) {
    struct arena *arena = arena_new(MIB);
    struct pending_answered answered;
    struct err e;
    const struct pending_answer answer = {.name = request_of("").name,
                                          .text = str_from(words),
                                          .key = str_from(key),
                                          .key_user = STR("u"),
                                          .print = str_from(print),
                                          .asks_again = true,
                                          .arena = arena};
    assert_int_equal(session_settle(f->engine.sessions, &answer, &answered, &e),
                     PENDING_UNDECIDED);
    arena_free(arena);
}

/* A caller that did not hear the question again repeats its request, perhaps while the first one is on
 * its way. */
static void words_that_come_again_with_their_key_are_kept_once(void **state) {
    (void)state;
    struct fixture f;
    struct turn turn, later;
    fixture_init_asking(&f, true);
    ask_to_write(&turn, &f);
    say_aside(&f, "why?", "k1", "p1");
    say_aside(&f, "why?", "k1", "p1");
    turns(&f);
    say_aside(&f, "why?", "k1", "p1");
    say_aside(&f, "who?", "k1", "p2"); /* the same key, and another request */
    say_aside(&f, "why?", "k2", "p1"); /* the same words, said again */
    say_aside(&f, "how?", "", "");
    say_aside(&f, "how?", "", "");
    turns(&f);
    answer_as_human(&later, &f, "yes");
    fake_tool_answer(f.write, 0, "{}");
    turns(&f);
    assert_asked(&f,
                 "user=save it call/write={\"k\":1} result={} user=why? user=who? user=why? "
                 "user=how? user=how?");
    reply(&f, "ok");
    end(&turn);
    end(&later);
    fixture_done(&f);
}

/* More than the journal's window holds: the answering caller reads on after it. */
static void an_answer_is_followed_by_the_events_after_the_question(void **state) {
    (void)state;
    struct fixture f;
    struct turn turn, later;
    char words[6000];
    fixture_init_asking(&f, true);
    ask_to_write(&turn, &f);
    end(&turn); /* it has no reader meanwhile */
    const struct session_name name = request_of("").name;
    memset(words, 'w', sizeof(words));
    for (size_t i = 0; i < 9; i++) {
        struct arena *arena = arena_new(MIB);
        struct pending_answered answered;
        struct err e;
        const struct pending_answer answer = {.name = name,
                                              .text = str_of(words, sizeof(words)),
                                              .asks_again = true,
                                              .arena = arena};
        assert_int_equal(session_settle(f.engine.sessions, &answer, &answered, &e),
                         PENDING_UNDECIDED);
        arena_free(arena);
        loop_advance(f.loop, 300);
        turns(&f);
    }
    answer_as_human(&later, &f, "yes");
    assert_int_equal(fake_tool_calls(f.write), 1);
    fake_tool_answer(f.write, 0, "{}");
    turns(&f);
    reply(&f, "ok");
    end(&later);
    fixture_done(&f);
}

/* K28: the same decision with the same key finds the run and the question. */
static void an_answer_may_have_a_key_which_stands_for_it_until_the_run_is_over(void **state) {
    (void)state;
    struct fixture f;
    struct turn turn;
    fixture_init_asking(&f, true);
    ask_to_write(&turn, &f);
    struct session_name name = request_of("").name;
    struct idempotency_claims *claims = session_table_claims(f.engine.sessions);
    const struct claim_name key = {name.workspace, STR("someone"), STR("k")};
    struct claim_view view;
    struct pending_answered answered;
    struct err e;
    idempotency_claims_look(claims, &key, &view);
    struct pending_answer answer = {.name = name,
                                    .text = STR("yes"),
                                    .key = key.key,
                                    .key_user = key.user,
                                    .print = STR("p"),
                                    .key_mark = view.mark};
    assert_int_equal(session_settle(f.engine.sessions, &answer, &answered, &e), PENDING_TAKEN);
    uint64_t asked_seq = answered.seq;
    journal_unref(answered.journal);
    assert_int_equal(session_settle(f.engine.sessions, &answer, &answered, &e),
                     PENDING_CLAIMED);
    idempotency_claims_look(claims, &key, &view);
    assert_int_equal(view.run, run_id(turn.run));
    assert_int_equal(view.seq, asked_seq);
    turns(&f);
    fake_tool_answer(f.write, 0, "{}");
    turns(&f);
    reply(&f, "ok");
    assert_int_equal(run_state(turn.run), RUN_DONE);
    idempotency_claims_look(claims, &key, &view);
    assert_int_equal(view.run, 0); /* the store says it now */
    end(&turn);
    fixture_done(&f);
}

static void a_turn_may_be_cancelled_while_it_waits(void **state) {
    (void)state;
    struct fixture f;
    struct turn turn;
    fixture_init_asking(&f, true);
    f.engine.limits.approval_max_ms = 5000;
    ask_to_write(&turn, &f);
    run_cancel(turn.run, STR("enough"));
    turns(&f);
    assert_int_equal(run_state(turn.run), RUN_CANCELLED);
    end(&turn);
    fixture_done(&f);
}

static void a_hidden_tool_is_not_there(void **state) {
    struct fixture *f = *state;
    static const struct agent_tool hidden[] = {{STR_INIT("write"), TOOL_HIDDEN}};
    struct turn turn;
    f->agents[0].tools = hidden;
    f->agents[0].tool_count = 1;
    ask_to_write(&turn, f);
    assert_asked(f, "user=save it call/write={\"k\":1} "
                    "result={\"error\":\"tool 'write' not found\"}!");
    reply(f, "ok");
    end(&turn);
}

/* However often somebody talks beside the question, the journal does not grow without limit. */
static void what_is_said_beside_a_question_has_a_limit(void **state) {
    (void)state;
    struct fixture f;
    struct turn turn;
    char words[4001], key[16];
    fixture_init_asking(&f, true);
    ask_to_write(&turn, &f);
    memset(words, 'w', sizeof(words) - 1);
    words[sizeof(words) - 1] = '\0';
    for (int i = 0; i < 20; i++) {
        snprintf(key, sizeof(key), "k%d", i);
        say_aside(&f, words, key, key);
        turns(&f);
    }
    uint64_t last = journal_appended(run_journal(turn.run));
    for (int i = 20; i < 40; i++) {
        snprintf(key, sizeof(key), "k%d", i);
        say_aside(&f, words, key, key);
        turns(&f);
    }
    assert_int_equal(journal_appended(run_journal(turn.run)), last);
    run_cancel(turn.run, STR("enough"));
    turns(&f);
    end(&turn);
    fixture_done(&f);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_said_beside_a_question_has_a_limit),
        cmocka_unit_test(a_call_that_is_allowed_is_made_then),
        cmocka_unit_test(a_long_question_is_cut_at_a_character_and_says_so),
        cmocka_unit_test(a_call_that_is_refused_is_never_made_and_the_model_reads_why),
        cmocka_unit_test(a_call_may_be_changed_before_it_is_made),
        cmocka_unit_test(calls_beside_it_are_made_before_anybody_is_asked),
        cmocka_unit_test(nothing_is_made_before_the_decision_is_on_disk),
        cmocka_unit_test(a_new_turn_does_not_overtake_one_that_was_answered),
        cmocka_unit_test(a_new_turn_does_not_wait_for_one_that_was_answered_and_cancelled),
        cmocka_unit_test(a_new_turn_comes_after_the_end_of_one_that_waited),
        cmocka_unit_test(a_session_is_given_back_after_the_end_of_a_turn_that_was_answered),
        cmocka_unit_test(silence_is_a_no_at_the_deadline_or_a_yes_where_configured),
        cmocka_unit_test(a_waiting_run_can_be_read_and_answered_by_its_id),
        cmocka_unit_test(words_that_decide_nothing_are_kept_beside_the_question),
        cmocka_unit_test(words_that_come_again_with_their_key_are_kept_once),
        cmocka_unit_test(an_answer_is_followed_by_the_events_after_the_question),
        cmocka_unit_test(an_answer_may_have_a_key_which_stands_for_it_until_the_run_is_over),
        cmocka_unit_test(a_turn_may_be_cancelled_while_it_waits),
        TURN_TEST(a_hidden_tool_is_not_there),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
