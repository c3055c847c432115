#include "turn/own_calls.h"

#include "fake/provider_fake.h" /* named here: the build links them */
#include "fake/store_fake.h"
#include "fixture.h"
#include "tool/read_result.h"

/* Our names of the calls of the only run: $1 is "7-1". */
static const char *with_ids(const struct turn *turn, const char *form) {
    static char text[2048];
    char id[32];
    size_t len = 0, at = (size_t)snprintf(id, sizeof(id), "%llu-",
                                          (unsigned long long)run_id(turn->run));
    for (; *form; form++) {
        assert_true(len + at + 2 < sizeof(text));
        if (*form == '$') {
            memcpy(text + len, id, at);
            len += at;
        } else {
            text[len++] = *form;
        }
    }
    text[len] = '\0';
    return text;
}

static void calls_of_its_own_are_recorded_and_not_made(void **state) {
    (void)state;
    for (int with_store = 0; with_store < 2; with_store++) {
        struct fixture f;
        struct turn turn;
        struct buf history;
        fixture_init(&f, with_store);
        say(&turn, &f, "find it");
        fake_text(asked(&f), STR("looking. "));
        fake_own_call(asked(&f), "a", "search", "{\"q\":1}");
        fake_own_call(asked(&f), "b", "search", "no object");
        assert_int_equal(fake_tool_calls(f.search), 0);
        fake_own_result(asked(&f), "b", "[1,2]", "");
        fake_own_result(asked(&f), "a", "{\"hits\":3}", "");
        fake_own_result(asked(&f), "a", "{\"again\":1}", ""); /* it has one */
        fake_own_result(asked(&f), "z", "{}", "");            /* it was not asked for */
        reply(&f, "found it");
        assert_int_equal(run_state(turn.run), RUN_DONE);
        assert_int_equal(fake_calls_ever(f.model), 1);
        assert_seen(&turn,
                    with_ids(&turn, "started(find it) text(looking. ) "
                                    "call(call-$1 search {\"q\":1}) call(call-$2 search {}) "
                                    "result(call-$2 {\"result\":[1,2]}) "
                                    "result(call-$1 {\"hits\":3}) text(found it) "
                                    "usage(0 -1) done(m-1 manager=found it)"));
        end(&turn);
        buf_init(&history, MIB);
        write_history(&f, &history);
        assert_str(buf_str(&history),
                   "user=find it agent/manager=looking.  call/search={\"q\":1} call/search={} "
                   "result={\"result\":[1,2]} result={\"hits\":3} agent/manager=found it");
        buf_done(&history);
        fixture_done(&f);
    }
}

static void a_call_without_a_result_gets_an_empty_one(void **state) {
    struct fixture *f = *state;
    struct turn turn;
    say(&turn, f, "x");
    fake_text(asked(f), STR("all is said"));
    fake_own_call(asked(f), "", "note", "{}");
    fake_done(asked(f), "m-1");
    assert_seen(&turn, with_ids(&turn, "started(x) text(all is said) call(call-$1 note {}) "
                                       "result(call-$1 {}) usage(0 -1) "
                                       "done(m-1 manager=all is said)"));
    end(&turn);
}

static void a_call_that_failed_says_why(void **state) {
    struct fixture *f = *state;
    struct turn turn;
    say(&turn, f, "x");
    fake_own_call(asked(f), "1", "", "{}");
    fake_own_result(asked(f), "", "no such thing", "NOT_FOUND: no such thing");
    reply(f, "sorry");
    assert_seen(&turn,
                with_ids(&turn, "started(x) call(call-$1 unnamed {}) "
                                "result(call-$1 {\"result\":\"no such thing\"} !) text(sorry) "
                                "usage(0 -1) done(m-1 manager=sorry)"));
    end(&turn);
}

/* Its effect is not known, and the turn is not begun again with its key. */
static void an_open_call_is_accounted_for_however_the_turn_ends(void **state) {
    (void)state;
    for (int way = 0; way < 2; way++) {
        struct fixture f;
        struct turn turn;
        fixture_init(&f, true);
        say(&turn, &f, "x");
        fake_own_call(asked(&f), "1", "pay", "{}");
        turns(&f);
        if (way) {
            run_cancel(turn.run, STR("enough"));
        } else {
            fake_fail(asked(&f), ERR_UNAVAILABLE, "AGENT_ENDED");
        }
        turns(&f);
        struct str seen = buf_str(&turn.seen);
        assert_true(str_find(seen, STR("result(call-")) < seen.len);
        assert_true(str_find(seen, STR("unknown")) < seen.len);
        assert_true(str_ends(seen, way ? STR("cancelled(enough)")
                                       : STR("failed(UNAVAILABLE AGENT_ENDED)")));
        end(&turn);
        fixture_done(&f);
    }
}

static void calls_without_end_end_the_turn(void **state) {
    struct fixture *f = *state;
    struct turn turn;
    f->engine.limits.tool_calls_max = 2;
    say(&turn, f, "x");
    size_t made = 0;
    while (fake_calls(f->model) && made < 2000) {
        made++;
        if (!fake_own_call(asked(f), "1", "search", "{}")) break;
    }
    assert_in_range(made, 3, 1000);
    turns(f);
    assert_int_equal(run_state(turn.run), RUN_FAILED);
    assert_true(str_ends(buf_str(&turn.seen), STR("failed(RESOURCE_EXHAUSTED TOOL_CALLS)")));
    end(&turn);
}

static void a_long_result_is_cut(void **state) {
    struct fixture *f = *state;
    struct turn turn;
    f->engine.limits.result_max_bytes = 10;
    say(&turn, f, "x");
    fake_own_call(asked(f), "1", "search", "{}");
    fake_own_result(asked(f), "1", "{\"n\":\"\xC3\xA9\xC3\xA9\xC3\xA9\"}", "");
    reply(f, "ok");
    struct str seen = buf_str(&turn.seen);
    assert_true(str_find(seen, STR("{\"result\":\"{\\\"n\\\":\\\"\xC3\xA9\xC3\xA9\"}")) <
                seen.len);
    end(&turn);
}

/* A call and its result before a question: both are there when the run comes back. */
static void a_question_may_follow(void **state) {
    struct fixture *f = *state;
    struct turn turn, answered;
    say(&turn, f, "x");
    fake_own_call(asked(f), "1", "search", "{}");
    fake_approval(asked(f), "q", "May I?");
    fake_done(asked(f), "m-1");
    turns(f);
    assert_int_equal(run_state(turn.run), RUN_WAITING);
    answer_as_human(&answered, f, "yes");
    assert_asked(f, "user=x call/search={} result={} call/request_approval={} "
                    "result={\"answer\":\"yes\"} user=yes");
    reply(f, "done");
    assert_int_equal(run_state(turn.run), RUN_DONE);
    cursor_close(answered.cursor);
    buf_done(&answered.seen);
    end(&turn);
}

/* The agent names neither: one of its own calls has the number of the reply, too. */
static void a_question_has_a_name_of_its_own(void **state) {
    struct fixture *f = *state;
    struct turn turn, answered;
    say(&turn, f, "x");
    fake_own_call(asked(f), "", "search", "{}");
    fake_approval(asked(f), "", "May I?");
    fake_done(asked(f), "m-1");
    turns(f);
    assert_seen(&turn, with_ids(&turn, "started(x) call(call-$1 search {}) result(call-$1 {}) "
                                       "usage(0 -1) approval(question-$1 May I?)"));
    answer_as_human(&answered, f, "yes");
    fake_own_call(asked(f), "", "search", "{}");
    reply(f, "done");
    assert_seen(&answered,
                with_ids(&turn, "result(question-$1 {\"answer\":\"yes\"}) "
                                "call(call-$2 search {}) text(done) result(call-$2 {}) "
                                "usage(1 -1) done(m-1 manager=done)"));
    cursor_close(answered.cursor);
    buf_done(&answered.seen);
    end(&turn);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(calls_of_its_own_are_recorded_and_not_made),
        STORED_TURN_TEST(a_call_without_a_result_gets_an_empty_one),
        TURN_TEST(a_call_that_failed_says_why),
        cmocka_unit_test(an_open_call_is_accounted_for_however_the_turn_ends),
        TURN_TEST(calls_without_end_end_the_turn),
        TURN_TEST(a_long_result_is_cut),
        STORED_TURN_TEST(a_question_may_follow),
        STORED_TURN_TEST(a_question_has_a_name_of_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
