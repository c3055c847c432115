#include "turn/run.h"

#include "fake/provider_fake.h" /* named here: the build links them */
#include "fake/store_fake.h"
#include "fixture.h"
#include "tool/read_result.h"

/* --- tools -------------------------------------------------------------------------------- */

/* O2 */
static void tools_of_one_reply_run_side_by_side(void **state) {
    (void)state;
    for (int with_store = 0; with_store < 2; with_store++) {
        struct fixture f;
        struct turn turn;
        fixture_init(&f, with_store);
        say(&turn, &f, "look");
        fake_text(asked(&f), STR("let me see"));
        fake_tool_call(asked(&f), "c1", "search", "{\"q\":1}");
        fake_tool_call(asked(&f), "c2", "write", "");
        fake_tool_call(asked(&f), "", "search", " ");
        fake_done(asked(&f), "m");
        turns(&f);
        assert_int_equal(run_state(turn.run), RUN_WORKING);
        assert_int_equal(fake_tool_calls(f.search), 2);
        assert_int_equal(fake_tool_calls(f.write), 1);
        assert_str(fake_tool_args(f.search, 0), "{\"q\":1}");
        assert_str(fake_tool_args(f.write, 0), "{}");
        fake_tool_answer(f.write, 0, "{\"w\":1}");
        fake_tool_fail(f.search, 0, ERR_UNAVAILABLE);
        fake_tool_answer(f.search, 0, "{\"s\":1}");
        turns(&f);
        assert_int_equal(run_state(turn.run), RUN_ASKING);
        assert_asked(&f,
                     "user=look agent/manager=let me see call/search={\"q\":1} call/write={} "
                     "call/search={} result={\"w\":1} "
                     "result={\"error\":\"the fake tool failed\"}! result={\"s\":1}");
        reply(&f, "found");
        char expected[512];
        int id = snprintf(expected, sizeof(expected), "call-%llu-3",
                          (unsigned long long)run_id(turn.run));
        assert_in_range(id, 8, 40);
        struct str seen = buf_str(&turn.seen);
        assert_true(str_find(seen, str_from(expected)) < seen.len);
        assert_true(str_ends(seen, STR("text(found) usage(1 -1) done(m-1 manager=found)")));
        assert_true(str_starts(
            seen, STR("started(look) text(let me see) usage(0 -1) call(c1 search {\"q\":1}) "
                      "call(c2 write {})")));
        end(&turn);
        fixture_done(&f);
    }
}

static void a_call_is_on_disk_before_it_is_made(void **state) {
    struct fixture *f = *state;
    struct turn turn;
    say(&turn, f, "look");
    fake_store_ask_me(f->store);
    fake_tool_call(asked(f), "c1", "search", "{}");
    fake_tool_call(asked(f), "c2", "write", "{}");
    fake_done(asked(f), "m");
    turns(f);
    assert_int_equal(fake_tool_calls(f->search) + fake_tool_calls(f->write), 0);
    assert_seen(&turn, "started(look) usage(0 -1)");
    fake_store_commit(f->store, 0);
    turns(f);
    assert_int_equal(fake_tool_calls(f->search) + fake_tool_calls(f->write), 2);
    fake_store_always_commit(f->store);
    run_cancel(turn.run, STR("enough"));
    turns(f);
    assert_int_equal(fake_tool_calls(f->search) + fake_tool_calls(f->write), 0);
    end(&turn);
}

static void assert_failed_with(const struct turn *turn, const char *words) {
    struct event event = {0};
    struct cursor *cursor;
    struct err e;
    assert_true(
        cursor_open(run_journal(turn->run), 0, turn->f->loop, turn_ready, NULL, &cursor, &e));
    while (cursor_next(cursor, &event) && event.kind != EVENT_FAILED) continue;
    assert_int_equal(event.kind, EVENT_FAILED);
    assert_str(event.failed.message, words);
    cursor_close(cursor);
}

/* "write" must not be called twice because the turn was not kept. */
static void a_lost_turn_whose_call_acted_is_not_to_be_tried_again(void **state) {
    struct fixture *f = *state;
    for (int acts = 0; acts < 2; acts++) {
        struct turn turn;
        f->search->idempotent = true;
        fake_store_always_commit(f->store);
        say(&turn, f, "x");
        fake_tool_call(asked(f), "c1", acts ? "write" : "search", "{}");
        fake_done(asked(f), "m");
        turns(f);
        fake_store_always_lose(f->store, ERR_UNAVAILABLE);
        fake_tool_answer(acts ? f->write : f->search, 0, "{}");
        turns(f);
        reply(f, "written");
        assert_failed_with(&turn, acts
                                      ? "the turn could not be stored, and a call that it made "
                                        "may have had its effect. Find out before you send it "
                                        "again"
                                      : "the turn could not be stored and does not count; try "
                                        "again");
        end(&turn);
    }
}

static void an_unknown_tool_is_an_answer_not_a_failure(void **state) {
    struct fixture *f = *state;
    struct turn turn;
    say(&turn, f, "x");
    fake_tool_call(asked(f), "c1", "dig", "{}");
    fake_done(asked(f), "m");
    turns(f);
    assert_asked(f, "user=x call/dig={} result={\"error\":\"tool 'dig' not found\"}!");
    reply(f, "sorry");
    assert_seen(&turn, "started(x) usage(0 -1) call(c1 dig {}) "
                       "result(c1 {\"error\":\"tool 'dig' not found\"} !) text(sorry) "
                       "usage(1 -1) done(m-1 manager=sorry)");
    end(&turn);
}

static void tools_beyond_the_limit_wait_for_their_place(void **state) {
    struct fixture *f = *state;
    struct turn turn;
    f->engine.limits.tools_at_once = 2;
    say(&turn, f, "x");
    for (size_t i = 0; i < 5; i++) fake_tool_call(asked(f), "c", "search", "{}");
    fake_done(asked(f), "m");
    for (size_t left = 5; left > 0; left--) {
        turns(f);
        assert_int_equal(fake_tool_calls(f->search), left < 2 ? left : 2);
        fake_tool_answer(f->search, 0, "{}");
    }
    turns(f);
    reply(f, "ok");
    assert_int_equal(run_state(turn.run), RUN_DONE);
    end(&turn);
}

/* "write" is not safe to repeat, "search" is. */
static void call_both(struct fixture *f, struct turn *turn) {
    f->search->idempotent = true;
    say(turn, f, "x");
    fake_tool_call(asked(f), "c1", "search", "{}");
    fake_tool_call(asked(f), "c2", "write", "{}");
    fake_done(asked(f), "m");
    turns(f);
}

static void a_tool_that_hangs_is_cut_and_the_turn_goes_on(void **state) {
    struct fixture *f = *state;
    static const struct tool_timeout by_name[] = {{STR_INIT("write"), 5000}};
    struct turn turn;
    f->search->timeout_ms = 2000;
    f->write->timeout_ms = 1; /* the settings come first */
    f->engine.timeouts = by_name;
    f->engine.timeout_count = 1;
    call_both(f, &turn);
    loop_advance(f->loop, 1999);
    turns(f);
    assert_int_equal(fake_tool_calls(f->search), 1);
    loop_advance(f->loop, 1);
    turns(f);
    assert_int_equal(fake_tool_calls(f->search), 0); /* cancelled */
    assert_int_equal(fake_tool_calls(f->write), 1);
    loop_advance(f->loop, 3000);
    turns(f);
    assert_int_equal(fake_tool_calls(f->write), 0);
    assert_asked(
        f, "user=x call/search={} call/write={} "
           "result={\"error\":\"tool 'search' did not answer within 2s; the setting "
           "tools.search.timeout gives it more\"}! "
           "result={\"effect\":\"unknown\",\"error\":\"tool 'write' did not answer within 5s; "
           "the setting tools.write.timeout gives it more: it may or may not have had its "
           "effect. Find out before you call it again\"}!");
    reply(f, "sorry");
    assert_int_equal(run_state(turn.run), RUN_DONE);
    end(&turn);
}

static void a_tool_without_a_limit_has_that_of_all(void **state) {
    struct fixture *f = *state;
    struct turn turn;
    f->engine.limits.tool_max_ms = 700;
    call_both(f, &turn);
    fake_tool_answer(f->write, 0, "{}"); /* in time: it is not cut later */
    loop_advance(f->loop, 700);
    turns(f);
    assert_asked(f, "user=x call/search={} call/write={} result={} "
                    "result={\"error\":\"tool 'search' did not answer within 700ms; the "
                    "setting limits.tool gives it more\"}!");
    loop_advance(f->loop, 60000);
    turns(f);
    reply(f, "sorry");
    end(&turn);
}

static void without_any_limit_only_the_turn_ends_a_call(void **state) {
    struct fixture *f = *state;
    struct turn turn;
    call_both(f, &turn);
    loop_advance(f->loop, run_limits_default.turn_max_ms - 1);
    turns(f);
    assert_int_equal(fake_tool_calls(f->search) + fake_tool_calls(f->write), 2);
    loop_advance(f->loop, 1);
    turns(f);
    assert_int_equal(run_state(turn.run), RUN_FAILED);
    assert_int_equal(fake_tool_calls(f->search) + fake_tool_calls(f->write), 0);
    end(&turn);
}

static void a_call_that_is_cut_makes_room_for_one_that_waits(void **state) {
    struct fixture *f = *state;
    struct turn turn;
    f->engine.limits.tools_at_once = 1;
    f->engine.limits.tool_max_ms = 1000;
    call_both(f, &turn);
    assert_int_equal(fake_tool_calls(f->write), 0);
    loop_advance(f->loop, 1000);
    turns(f);
    assert_int_equal(fake_tool_calls(f->search), 0);
    assert_int_equal(fake_tool_calls(f->write), 1);
    run_cancel(turn.run, STR("enough")); /* nor does one that is cut with its turn come late */
    loop_advance(f->loop, 5000);
    turns(f);
    end(&turn);
}

static void a_result_that_is_too_long_is_cut_between_characters(void **state) {
    struct fixture *f = *state;
    struct turn turn;
    f->engine.limits.result_max_bytes = 8;
    say(&turn, f, "x");
    for (size_t i = 0; i < 2; i++) fake_tool_call(asked(f), "c", "search", "{}");
    fake_done(asked(f), "m");
    turns(f);
    fake_tool_answer(f->search, 0, "{\"a\":12}");               /* as long as it may be */
    fake_tool_answer(f->search, 0, "{\"a\":\"\xE2\x82\xAC\"}"); /* ends in a character */
    turns(f);
    assert_asked(f, "user=x call/search={} call/search={} result={\"a\":12} "
                    "result={\"cut\":\"{\\\"a\\\":\\\"\",\"bytes_in_all\":11}");
    reply(f, "ok");
    end(&turn);
}

static void an_agent_has_only_the_tools_it_was_given(void **state) {
    struct fixture *f = *state;
    static const struct agent_tool given[] = {{STR_INIT("write"), TOOL_ALLOW}};
    struct turn turn;
    f->agents[0].picks_tools = true;
    f->agents[0].tools = given;
    f->agents[0].tool_count = 1;
    say(&turn, f, "x");
    fake_tool_call(asked(f), "c", "search", "{}");
    fake_tool_call(asked(f), "d", "write", "{}");
    fake_done(asked(f), "m");
    turns(f);
    assert_int_equal(fake_tool_calls(f->search), 0);
    fake_tool_answer(f->write, 0, "{}");
    turns(f);
    reply(f, "ok");
    assert_seen(&turn, "started(x) usage(0 -1) call(c search {}) call(d write {}) "
                       "result(c {\"error\":\"tool 'search' not found\"} !) result(d {}) "
                       "text(ok) usage(1 -1) done(m-1 manager=ok)");
    end(&turn);
}

static void a_run_goes_on_with_the_engine_it_began_with(void **state) {
    struct fixture *f = *state;
    struct turn turn, next;
    struct engine second = f->engine;
    second.refs = 1;
    second.limits.model_calls_max = 1;
    say(&turn, f, "x");
    run_host_use(&f->host, &second);
    fake_tool_call(asked(f), "c", "none", "{}");
    fake_done(asked(f), "m");
    turns(f);
    reply(f, "ok");
    assert_int_equal(run_state(turn.run), RUN_DONE);
    say(&next, f, "y");
    fake_tool_call(asked(f), "c", "none", "{}");
    fake_done(asked(f), "m");
    turns(f);
    assert_int_equal(run_state(next.run), RUN_FAILED);
    end(&next);
    end(&turn);
    run_host_use(&f->host, &f->engine);
    assert_int_equal(second.refs, 1);
}

/* --- transfers ---------------------------------------------------------------------------- */

static void a_turn_is_handed_to_another_agent(void **state) {
    struct fixture *f = *state;
    struct turn turn;
    say(&turn, f, "x");
    fake_text(asked(f), STR("Wally knows"));
    fake_tool_call(asked(f), "t1", "transfer_to_agent", "{\"agent_name\":\"wally\"}");
    fake_done(asked(f), "m");
    turns(f);
    assert_str(fake_request(asked(f))->agent, "wally");
    reply(f, "I do");
    assert_seen(&turn, "started(x) text(Wally knows) usage(0 -1) "
                       "call(t1 transfer_to_agent {\"agent_name\":\"wally\"}) result(t1 {}) "
                       "text(I do) usage(1 -1) done(m-1 wally=I do)");
    end(&turn);
    assert_history(f, "user=x agent/manager=Wally knows "
                      "call/transfer_to_agent={\"agent_name\":\"wally\"} result={} "
                      "agent/wally=I do");
}

static void a_turn_goes_nowhere_it_may_not(void **state) {
    (void)state;
    static const char *const args[] = {"{\"agent_name\":\"eve\"}",
                                       "{\"agent_name\":\"nobody\"}", "{\"agent_name\":5}",
                                       "{}", "what?"};
    for (size_t i = 0; i < ARRAY_LEN(args); i++) {
        struct fixture f;
        struct turn turn;
        fixture_init(&f, false);
        say(&turn, &f, "x");
        fake_tool_call(asked(&f), "t1", "transfer_to_agent", args[i]);
        fake_done(asked(&f), "m");
        turns(&f);
        assert_str(fake_request(asked(&f))->agent, "manager");
        assert_true(fake_request(asked(&f))->messages[2].error);
        reply(&f, "ok");
        assert_int_equal(run_state(turn.run), RUN_DONE);
        end(&turn);
        fixture_done(&f);
    }
}

#define TO_WALLY "{\"agent_name\":\"wally\"}"

/* The manager may search; wally may write, if a human allows it. */
static void share_tools(struct fixture *f) {
    static const struct agent_tool searches[] = {{STR_INIT("search"), TOOL_ALLOW}};
    static const struct agent_tool writes[] = {{STR_INIT("write"), TOOL_ASK}};
    f->agents[0].picks_tools = f->agents[1].picks_tools = true;
    f->agents[0].tools = searches;
    f->agents[1].tools = writes;
    f->agents[0].tool_count = f->agents[1].tool_count = 1;
}

/* One reply asks for both, in either order. */
static void transfer_beside_a_write(struct fixture *f, bool transfer_first) {
    if (transfer_first) fake_tool_call(asked(f), "t", "transfer_to_agent", TO_WALLY);
    fake_tool_call(asked(f), "w", "write", "{}");
    if (!transfer_first) fake_tool_call(asked(f), "t", "transfer_to_agent", TO_WALLY);
    fake_done(asked(f), "m");
    turns(f);
}

static void a_reply_calls_only_tools_of_the_agent_that_made_it(void **state) {
    (void)state;
    for (int first = 0; first < 2; first++) {
        struct fixture f;
        struct turn turn;
        fixture_init(&f, true);
        share_tools(&f);
        say(&turn, &f, "x");
        transfer_beside_a_write(&f, first);
        assert_int_equal(fake_tool_calls(f.write), 0);
        assert_str(fake_request(asked(&f))->agent, "wally");
        assert_asked(&f, first ? "user=x call/transfer_to_agent=" TO_WALLY " call/write={} "
                                 "result={\"error\":\"tool 'write' not found\"}! result={}"
                               : "user=x call/write={} call/transfer_to_agent=" TO_WALLY " "
                                 "result={\"error\":\"tool 'write' not found\"}! result={}");
        fake_tool_call(asked(&f), "w2", "write", "{}"); /* it is wally's own now, and asks */
        fake_done(asked(&f), "m");
        turns(&f);
        assert_int_equal(fake_tool_calls(f.write), 0);
        assert_int_equal(run_state(turn.run), RUN_WAITING);
        run_cancel(turn.run, STR("enough"));
        end(&turn);
        fixture_done(&f);
    }
}

static void a_transfer_waits_for_the_other_calls_of_its_reply(void **state) {
    struct fixture *f = *state;
    struct turn turn;
    share_tools(f);
    f->engine.limits.tools_at_once = 2;
    say(&turn, f, "x");
    fake_tool_call(asked(f), "t", "transfer_to_agent", TO_WALLY);
    for (size_t i = 0; i < 5; i++) fake_tool_call(asked(f), "c", "search", "{}");
    fake_done(asked(f), "m");
    for (size_t left = 5; left > 0; left--) {
        turns(f);
        assert_int_equal(fake_tool_calls(f->search), left < 2 ? left : 2);
        fake_tool_answer(f->search, 0, "{\"s\":1}");
    }
    turns(f);
    assert_str(fake_request(asked(f))->agent, "wally");
    assert_asked(f, "user=x call/transfer_to_agent=" TO_WALLY " call/search={} call/search={} "
                    "call/search={} call/search={} call/search={} result={\"s\":1} "
                    "result={\"s\":1} result={\"s\":1} result={\"s\":1} result={\"s\":1} "
                    "result={}");
    reply(f, "ok");
    end(&turn);
}

static void a_reply_hands_the_turn_to_one_agent(void **state) {
    struct fixture *f = *state;
    struct turn turn;
    say(&turn, f, "x");
    fake_tool_call(asked(f), "t1", "transfer_to_agent", "{\"agent_name\":\"nobody\"}");
    fake_tool_call(asked(f), "t2", "transfer_to_agent", TO_WALLY);
    fake_tool_call(asked(f), "t3", "transfer_to_agent", "{\"agent_name\":\"manager\"}");
    fake_done(asked(f), "m");
    turns(f);
    assert_str(fake_request(asked(f))->agent, "wally");
    assert_asked(f, "user=x call/transfer_to_agent={\"agent_name\":\"nobody\"} "
                    "call/transfer_to_agent=" TO_WALLY " "
                    "call/transfer_to_agent={\"agent_name\":\"manager\"} "
                    "result={\"error\":\"no agent 'nobody' to hand this to\"}! result={} "
                    "result={\"error\":\"this transfer was not made: the same reply has handed "
                    "the turn to 'wally'\"}!");
    reply(f, "ok");
    end(&turn);
}

static void a_result_that_is_too_long_is_kept_and_can_be_read_on(void **state) {
    struct fixture *f = *state;
    struct turn turn;
    f->engine.store = f->store;
    f->engine.reader = read_result_tool_new(f->store);
    f->engine.limits.result_max_bytes = 6;
    say(&turn, f, "x");
    fake_tool_call(asked(f), "c", "search", "{}");
    fake_done(asked(f), "m");
    turns(f);
    fake_tool_answer(f->search, 0, "{\"a\":\"\xC3\xA9\xC3\xA9\"}");
    turns(f);
    assert_asked(f, "user=x call/search={} "
                    "result={\"cut\":\"{\\\"a\\\":\\\"\",\"bytes_in_all\":12,\"result_id\":1,"
                    "\"next_offset\":6,\"hint\":\"This is the beginning. Read on with the tool "
                    "read_result.\"}");
    f->engine.limits.result_max_bytes = 30000;
    fake_tool_call(asked(f), "d", "read_result", "{\"result_id\":1,\"offset\":6}");
    fake_done(asked(f), "m");
    turns(f);
    const struct provider_request *request = fake_request(asked(f));
    assert_str(request->messages[request->message_count - 1].text,
               "{\"result_id\":1,\"offset\":6,\"text\":\"\xC3\xA9\xC3\xA9\\\"}\","
               "\"next_offset\":null,\"bytes_in_all\":12}");
    reply(f, "ok");
    end(&turn);
    tool_free(f->engine.reader);
}

static void a_turn_may_end_while_its_long_result_is_on_its_way(void **state) {
    struct fixture *f = *state;
    struct turn turn;
    f->engine.store = f->store;
    f->engine.limits.result_max_bytes = 6;
    say(&turn, f, "x");
    fake_tool_call(asked(f), "c", "search", "{}");
    fake_done(asked(f), "m");
    turns(f);
    fake_tool_answer(f->search, 0, "{\"a\":\"0123456789\"}");
    run_cancel(turn.run, STR("enough"));
    turns(f);
    assert_int_equal(run_state(turn.run), RUN_CANCELLED);
    end(&turn);
}

static void arguments_that_do_not_fit_are_reported_to_the_model(void **state) {
    (void)state;
    struct fixture f;
    struct turn turn;
    struct schema *schema;
    struct err e;
    fixture_init(&f, false);
    assert_true(schema_read(STR("{\"type\":\"object\",\"properties\":{\"q\":{\"type\":"
                                "\"string\"}},\"additionalProperties\":false}"),
                            &schema, &e));
    f.search->schema = schema;
    say(&turn, &f, "x");
    fake_tool_call(asked(&f), "c", "search", "{\"q\":1}");
    fake_done(asked(&f), "m");
    turns(&f);
    assert_int_equal(fake_tool_calls(f.search), 0);
    assert_asked(&f, "user=x call/search={\"q\":1} result={\"error\":\"tool 'search' was not "
                     "called: its arguments do not fit: /q: expected a string, got a "
                     "number\"}!");
    reply(&f, "ok");
    end(&turn);
    fixture_done(&f);
    schema_free(schema);
}

/* O7 */
static void handing_on_without_end_stops_at_the_limit(void **state) {
    struct fixture *f = *state;
    struct turn turn;
    say(&turn, f, "x");
    for (size_t i = 0; i < 17; i++) {
        assert_int_equal(fake_calls_ever(f->model), i + 1);
        fake_tool_call(asked(f), "t", "transfer_to_agent",
                       i % 2 ? "{\"agent_name\":\"manager\"}" : "{\"agent_name\":\"wally\"}");
        fake_done(asked(f), "m");
        turns(f);
    }
    assert_int_equal(run_state(turn.run), RUN_FAILED);
    assert_int_equal(fake_calls(f->model), 0);
    assert_true(str_ends(buf_str(&turn.seen), STR("failed(RESOURCE_EXHAUSTED TRANSFERS)")));
    end(&turn);
}

/* --- a human ------------------------------------------------------------------------------ */

static void a_question_waits_for_a_human_and_goes_on(void **state) {
    (void)state;
    for (int with_store = 0; with_store < 2; with_store++) {
        struct fixture f;
        struct turn turn, later;
        fixture_init(&f, with_store);
        say(&turn, &f, "delete it");
        fake_tool_call(asked(&f), "c1", "search", "{}"); /* beside it: not made */
        fake_approval(asked(&f), "a1", "Really?");
        fake_approval(asked(&f), "a2", "Really really?");
        fake_done(asked(&f), "m");
        assert_seen(&turn, "started(delete it) usage(0 -1) approval(a1 Really?)");
        assert_int_equal(run_state(turn.run), RUN_WAITING);
        assert_int_equal(fake_tool_calls(f.search), 0);
        loop_advance(f.loop, UINT64_C(24) * 3600 * 1000); /* he may take his time */
        assert_int_equal(run_state(turn.run), RUN_WAITING);
        answer_as_human(&later, &f, "yes \"do\"");
        assert_asked(&f, "user=delete it call/request_approval={} "
                         "result={\"answer\":\"yes \\\"do\\\"\"} user=yes \"do\"");
        reply(&f, "gone");
        assert_seen(&later, "result(a1 {\"answer\":\"yes \\\"do\\\"\"}) text(gone) usage(1 -1) "
                            "done(m-1 manager=gone)");
        end(&later);
        end(&turn);
        assert_history(&f, "user=delete it call/request_approval={} "
                           "result={\"answer\":\"yes \\\"do\\\"\"} user=yes \"do\" "
                           "agent/manager=gone");
        fixture_done(&f);
    }
}

static void a_waiting_run_leaves_its_session_to_others(void **state) {
    struct fixture *f = *state;
    struct turn turn, other, later;
    say(&turn, f, "one");
    fake_approval(asked(f), "a1", "Really?");
    fake_done(asked(f), "m");
    turns(f);
    say(&other, f, "two");
    assert_asked(f, "user=two");
    answer_as_human(&later, f, "yes"); /* waits for the other turn */
    assert_int_equal(run_state(turn.run), RUN_WAITING);
    assert_int_equal(fake_calls(f->model), 1);
    reply(f, "second");
    assert_int_equal(run_state(turn.run), RUN_ASKING);
    reply(f, "first");
    assert_int_equal(run_state(turn.run), RUN_DONE);
    end(&later);
    end(&other);
    end(&turn);
    assert_history(f, "user=two agent/manager=second user=one call/request_approval={} "
                      "result={\"answer\":\"yes\"} user=yes agent/manager=first");
}

static void two_questions_of_a_session_are_both_answered(void **state) {
    struct fixture *f = *state;
    struct turn one, two, later;
    say(&one, f, "one");
    say(&two, f, "two"); /* queued after it */
    for (size_t i = 0; i < 2; i++) {
        fake_approval(asked(f), "a", "Really?");
        fake_done(asked(f), "m");
        turns(f);
    }
    assert_int_equal(run_state(one.run), RUN_WAITING);
    assert_int_equal(run_state(two.run), RUN_WAITING);
    answer_as_human(&later, f, "yes");
    assert_int_equal(run_state(one.run), RUN_ASKING);
    reply(f, "ok");
    end(&later);
    run_cancel(two.run, STR("enough"));
    turns(f);
    assert_int_equal(run_state(two.run), RUN_CANCELLED);
    end(&two);
    end(&one);
}

/* --- turns inside turns (K11) ------------------------------------------------------------- */

static void ask_for_search(struct fixture *f, const char *id) {
    assert_true(fake_tool_call(asked(f), id, "search", "{}"));
    fake_done(asked(f), "m");
    turns(f);
}

static void a_turn_inside_a_turn_sees_all_but_the_open_call(void **state) {
    (void)state;
    for (int with_store = 0; with_store < 2; with_store++) {
        struct fixture f;
        struct turn before, parent, child;
        fixture_init(&f, with_store);
        say(&before, &f, "hi");
        reply(&f, "hello");
        end(&before);
        say(&parent, &f, "ask wally");
        fake_text(asked(&f), STR("asking"));
        ask_for_search(&f, "c1");
        struct run_request request = request_of("what now?");
        request.agent = STR("wally");
        request.policy = SESSION_REJECT; /* lending beats the policy */
        start(&child, &f, &request);
        assert_asked(&f, "user=hi agent/manager=hello user=ask wally agent/manager=asking "
                         "user=what now?");
        fake_tool_answer(f.search, 0, "{\"a\":1}"); /* the parent waits for its child */
        turns(&f);
        assert_int_equal(run_state(parent.run), RUN_WORKING);
        reply(&f, "nothing");
        assert_int_equal(run_state(child.run), RUN_DONE);
        assert_asked(&f, "user=hi agent/manager=hello user=ask wally agent/manager=asking "
                         "call/search={} result={\"a\":1}");
        reply(&f, "he says nothing");
        end(&child);
        end(&parent);
        assert_history(&f, "user=hi agent/manager=hello user=ask wally agent/manager=asking "
                           "call/search={} result={\"a\":1} agent/manager=he says nothing "
                           "user=what now? agent/wally=nothing");
        fixture_done(&f);
    }
}

static void turns_stand_three_deep_and_end_from_the_inside(void **state) {
    struct fixture *f = *state;
    struct turn turn[4];
    static const char *const words[] = {"zero", "one", "two", "three"};
    for (size_t i = 0; i < 4; i++) {
        say(&turn[i], f, words[i]);
        ask_for_search(f, "c");
    }
    struct run_request request = request_of("four");
    struct run *run;
    struct err e;
    assert_false(run_start(&f->host, &request, &run, &e));
    assert_int_equal(e.code, ERR_RESOURCE_EXHAUSTED);
    for (size_t i = 4; i-- > 0;) {
        fake_tool_answer(f->search, fake_tool_calls(f->search) - 1, "{}");
        turns(f);
        reply(f, words[i]);
        assert_int_equal(run_state(turn[i].run), RUN_DONE);
    }
    for (size_t i = 0; i < 4; i++) end(&turn[i]);
    assert_history(f, "user=zero call/search={} result={} agent/manager=zero "
                      "user=one call/search={} result={} agent/manager=one "
                      "user=two call/search={} result={} agent/manager=two "
                      "user=three call/search={} result={} agent/manager=three");
}

static void a_child_outlives_a_parent_that_is_cancelled(void **state) {
    (void)state;
    for (int freed = 0; freed < 2; freed++) {
        struct fixture f;
        struct turn parent, child, next;
        fixture_init(&f, true);
        say(&parent, &f, "p");
        ask_for_search(&f, "c1");
        say(&child, &f, "c");
        fake_tool_answer(f.search, 0, "{}"); /* now the parent waits for the child */
        turns(&f);
        run_cancel(parent.run, STR("enough"));
        if (freed) end(&parent);
        turns(&f);
        say(&next, &f, "n");
        assert_int_equal(run_state(next.run), RUN_QUEUED);
        assert_asked(&f, "user=p user=c");
        reply(&f, "done");
        assert_asked(&f, "user=p! call/search={} result={} user=c agent/manager=done user=n");
        reply(&f, "too");
        if (!freed) end(&parent);
        end(&child);
        end(&next);
        fixture_done(&f);
    }
}

/* The child ends in the very turn in which its parent goes. */
static void a_parent_may_end_while_its_child_reports(void **state) {
    struct fixture *f = *state;
    struct turn parent, child;
    say(&parent, f, "p");
    ask_for_search(f, "c1");
    say(&child, f, "c");
    fake_tool_answer(f->search, 0, "{}");
    turns(f);
    fake_text(asked(f), STR("x"));
    fake_done(asked(f), "m");
    run_cancel(parent.run, STR("enough"));
    cursor_close(parent.cursor);
    buf_done(&parent.seen);
    run_unref(parent.run);
    end(&child);
    assert_history(f, "user=p! call/search={} result={} user=c agent/manager=x");
}

/* What a child has read stays readable, though its parent's long turn fell out of memory. */
static void a_child_keeps_what_it_has_read(void **state) {
    struct fixture *f = *state;
    struct turn parent, child;
    char *text = mem_alloc(HISTORY_MAX_BYTES + 100);
    memset(text, 'x', HISTORY_MAX_BYTES + 99);
    text[HISTORY_MAX_BYTES + 99] = '\0';
    say(&parent, f, text);
    ask_for_search(f, "c1");
    say(&child, f, "c");
    ask_for_search(f, "c2"); /* lends, with a history that has no room for the parent */
    run_cancel(parent.run, STR("enough"));
    end(&parent);
    fake_tool_answer(f->search, 0, "{}");
    turns(f);
    assert_int_equal(fake_request(asked(f))->messages[0].text.len, HISTORY_MAX_BYTES + 99);
    assert_true(str_ends(fake_request(asked(f))->messages[0].text, STR("xxx")));
    reply(f, "ok");
    end(&child);
    free(text);
}

/* A parked run's words may have left the session's memory before it is answered. */
static void a_parked_run_keeps_what_it_has_read(void **state) {
    struct fixture *f = *state;
    struct turn first, parked, long_one, later;
    say(&first, f, "remember me");
    reply(f, "yes");
    end(&first);
    say(&parked, f, "ask");
    fake_approval(asked(f), "a", "Really?");
    fake_done(asked(f), "m");
    turns(f);
    char *text = mem_alloc(HISTORY_MAX_BYTES + 1);
    memset(text, 'x', HISTORY_MAX_BYTES);
    text[HISTORY_MAX_BYTES] = '\0';
    say(&long_one, f, text);
    reply(f, "long");
    end(&long_one);
    free(text);
    answer_as_human(&later, f, "go");
    assert_asked(f, "user=remember me agent/manager=yes user=ask call/request_approval={} "
                    "result={\"answer\":\"go\"} user=go");
    reply(f, "ok");
    end(&later);
    end(&parked);
}

/* The tool's turn comes in on another loop of the same program. */
static void a_child_may_run_on_another_loop(void **state) {
    struct fixture *f = *state;
    struct turn parent;
    struct loop *other = loop_new_fake();
    struct run_host host;
    run_host_init(&host, &f->engine, other, NULL);
    say(&parent, f, "p");
    ask_for_search(f, "c1");
    struct run_request request = request_of("c");
    struct run *child;
    struct err e;
    assert_true(run_start(&host, &request, &child, &e));
    assert_asked(f, "user=p user=c");
    fake_tool_answer(f->search, 0, "{}");
    turns(f);
    fake_text(asked(f), STR("far"));
    fake_done(asked(f), "m");
    turns(f);
    assert_int_equal(run_state(parent.run), RUN_WORKING); /* it has not heard of it */
    loop_turn(other);
    turns(f);
    assert_asked(f, "user=p call/search={} result={}");
    reply(f, "near");
    run_unref(child);
    run_host_done(&host);
    end(&parent);
    loop_turn(other);
    loop_free(other);
}

static void assert_not_called(const char *args, const char *told) {
    struct fixture f;
    struct turn turn;
    fixture_init(&f, false);
    say(&turn, &f, "x");
    fake_tool_call(asked(&f), "s1", "search", args);
    fake_done(asked(&f), "m-1");
    turns(&f);
    assert_int_equal(fake_tool_calls(f.search), 0);
    assert_int_equal(fake_calls_ever(f.model), 2);
    const struct provider_request *request = fake_request(asked(&f));
    const struct message *result = &request->messages[request->message_count - 1];
    assert_int_equal(result->role, MESSAGE_TOOL_RESULT);
    assert_true(result->error && str_find(result->text, str_from(told)) < result->text.len);
    assert_str(request->messages[request->message_count - 2].text, "{}");
    reply(&f, "I see");
    end(&turn);
    fixture_done(&f);
}

/* checks.md U5. A call with {} is another call than the one that the model wanted. */
static void arguments_that_are_no_object_are_not_called_with(void **state) {
    (void)state;
    static const char *const wrong[][2] = {
        {"{\"id\":7", "are not one JSON object: JSON 1:8"},
        {"{\"id\":7", "they were: {\\\"id\\\":7"},
        {"{\"id\":1}{\"id\":2}", "are not one JSON object: JSON 1:9"},
        {"{\"at\":\"\\ud83d\"", "are not one JSON object"},
        {"[1]", "must be one JSON object, not an array: [1]"},
        {"null", "not null: null"},
        {"\"\\udce9\"", "are not one JSON object"},
    };
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) assert_not_called(wrong[i][0], wrong[i][1]);
}

static void arguments_of_nothing_are_an_object_and_half_a_pair_is_mended(void **state) {
    (void)state;
    static const char *const args[][2] = {
        {"", "{}"},
        {" ", "{}"},
        {" {\"a\" : 1} ", " {\"a\" : 1} "},
        {"{\"a\":\"caf\\udce9\"}", "{\"a\":\"caf\\ufffd\"}"},
        {"{\"a\":\"\\ud83d\\ude00\"}", "{\"a\":\"\\ud83d\\ude00\"}"},
    };
    for (size_t i = 0; i < ARRAY_LEN(args); i++) {
        struct fixture f;
        struct turn turn;
        fixture_init(&f, false);
        say(&turn, &f, "x");
        fake_tool_call(asked(&f), "s1", "search", args[i][0]);
        fake_done(asked(&f), "m-1");
        turns(&f);
        assert_str(fake_tool_args(f.search, 0), args[i][1]);
        fake_tool_answer(f.search, 0, "{}");
        turns(&f);
        reply(&f, "I see");
        end(&turn);
        fixture_done(&f);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        STORED_TURN_TEST(a_tool_that_hangs_is_cut_and_the_turn_goes_on),
        TURN_TEST(a_tool_without_a_limit_has_that_of_all),
        TURN_TEST(without_any_limit_only_the_turn_ends_a_call),
        TURN_TEST(a_call_that_is_cut_makes_room_for_one_that_waits),
        TURN_TEST(a_result_that_is_too_long_is_cut_between_characters),
        TURN_TEST(an_agent_has_only_the_tools_it_was_given),
        TURN_TEST(a_run_goes_on_with_the_engine_it_began_with),
        cmocka_unit_test(tools_of_one_reply_run_side_by_side),
        STORED_TURN_TEST(a_call_is_on_disk_before_it_is_made),
        STORED_TURN_TEST(a_lost_turn_whose_call_acted_is_not_to_be_tried_again),
        STORED_TURN_TEST(an_unknown_tool_is_an_answer_not_a_failure),
        TURN_TEST(tools_beyond_the_limit_wait_for_their_place),
        STORED_TURN_TEST(a_turn_is_handed_to_another_agent),
        cmocka_unit_test(a_turn_goes_nowhere_it_may_not),
        cmocka_unit_test(a_reply_calls_only_tools_of_the_agent_that_made_it),
        TURN_TEST(a_transfer_waits_for_the_other_calls_of_its_reply),
        STORED_TURN_TEST(a_reply_hands_the_turn_to_one_agent),
        STORED_TURN_TEST(a_result_that_is_too_long_is_kept_and_can_be_read_on),
        STORED_TURN_TEST(a_turn_may_end_while_its_long_result_is_on_its_way),
        cmocka_unit_test(arguments_that_do_not_fit_are_reported_to_the_model),
        STORED_TURN_TEST(handing_on_without_end_stops_at_the_limit),
        cmocka_unit_test(a_question_waits_for_a_human_and_goes_on),
        STORED_TURN_TEST(a_waiting_run_leaves_its_session_to_others),
        STORED_TURN_TEST(two_questions_of_a_session_are_both_answered),
        cmocka_unit_test(a_turn_inside_a_turn_sees_all_but_the_open_call),
        STORED_TURN_TEST(turns_stand_three_deep_and_end_from_the_inside),
        cmocka_unit_test(a_child_outlives_a_parent_that_is_cancelled),
        TURN_TEST(a_parent_may_end_while_its_child_reports),
        TURN_TEST(a_child_keeps_what_it_has_read),
        TURN_TEST(a_parked_run_keeps_what_it_has_read),
        TURN_TEST(a_child_may_run_on_another_loop),
        cmocka_unit_test(arguments_that_are_no_object_are_not_called_with),
        cmocka_unit_test(arguments_of_nothing_are_an_object_and_half_a_pair_is_mended),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
