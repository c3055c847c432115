#include "turn/run.h"

#include "fake/provider_fake.h" /* named here: the build links them */
#include "fake/store_fake.h"
#include "fixture.h"
#include "store/changes.h"
#include "turn/turn.h"

static void only_the_moves_of_the_table_are_allowed(void **state) {
    (void)state;
    static const char *const rows[RUN_STATE_COUNT] = {
        /* QAWH DFC: queued asking working waiting done failed cancelled */
        [RUN_QUEUED] = ".##..##",    [RUN_ASKING] = "..#.###", [RUN_WORKING] = ".#.#.##",
        [RUN_WAITING] = "..#..##",   [RUN_DONE] = ".......",   [RUN_FAILED] = ".......",
        [RUN_CANCELLED] = ".......",
    };
    for (enum run_state from = 0; from < RUN_STATE_COUNT; from++) {
        for (enum run_state to = 0; to < RUN_STATE_COUNT; to++) {
            assert_int_equal(states_allow(run_states, from, to), rows[from][to] == '#');
        }
    }
}

/* --- a plain turn ------------------------------------------------------------------------- */

static void a_turn_streams_counts_and_is_done(void **state) {
    (void)state;
    for (int with_store = 0; with_store < 2; with_store++) {
        struct fixture f;
        struct turn turn;
        fixture_init(&f, with_store);
        say(&turn, &f, "hello");
        assert_int_equal(run_state(turn.run), RUN_ASKING);
        assert_str(fake_request(asked(&f))->system, "You manage.");
        assert_asked(&f, "user=hello");
        assert_true(fake_thinking(asked(&f), STR("hm")));
        assert_true(fake_text(asked(&f), STR("Hi ")));
        assert_true(fake_text(asked(&f), STR("")));
        assert_true(fake_text(asked(&f), STR("there")));
        assert_true(fake_usage(asked(&f), 5, 2));
        assert_true(fake_usage(asked(&f), 6, 3)); /* once a call */
        fake_done(asked(&f), "m-1-long");
        assert_seen(&turn, "started(hello) thinking(hm) text(Hi ) text(there) usage(0 5) "
                           "done(m-1-long manager=Hi there)");
        assert_int_equal(run_state(turn.run), RUN_DONE);
        end(&turn);
        assert_history(&f, "user=hello agent/manager=Hi there");
        fixture_done(&f);
    }
}

static void a_turn_is_done_only_when_that_is_on_disk(void **state) {
    struct fixture *f = *state;
    struct turn turn;
    say(&turn, f, "hello");
    fake_store_ask_me(f->store);
    reply(f, "hi");
    assert_seen(&turn, "started(hello) text(hi) usage(0 -1)");
    assert_int_equal(run_state(turn.run), RUN_ASKING);
    fake_store_commit(f->store, 0);
    assert_seen(&turn, "started(hello) text(hi) usage(0 -1) done(m-1 manager=hi)");
    assert_int_equal(run_state(turn.run), RUN_DONE);
    end(&turn);
}

static void a_model_that_says_nothing_leaves_no_turn(void **state) {
    struct fixture *f = *state;
    struct turn turn;
    say(&turn, f, "hello");
    fake_done(asked(f), "m");
    assert_seen(&turn, "started(hello) usage(0 -1) done(m)");
    end(&turn);
    say(&turn, f, "again");
    reply(f, " \n");
    assert_seen(&turn, "started(again) text( \n) usage(0 -1) done(m-1)");
    end(&turn);
    assert_history(f, "user=hello user=again");
}

static void a_model_that_reads_its_turn_alone_is_shown_no_more(void **state) {
    struct fixture *f = *state;
    struct turn turn;
    fake_reads_turn_only(f->model);
    say(&turn, f, "hello");
    reply(f, "hi");
    end(&turn);
    say(&turn, f, "again");
    assert_asked(f, "user=again");
    reply(f, "yes");
    end(&turn);
    assert_history(f, "user=hello agent/manager=hi user=again agent/manager=yes");
    f->agents[0].window_tokens = 128000; /* whether it is full is found in all of the words */
    say(&turn, f, "more");
    assert_asked(f, "user=hello agent/manager=hi user=again agent/manager=yes user=more");
    reply(f, "no");
    end(&turn);
    f->agents[0].window_tokens = 0;
    say(&turn, f, "User: hello\n\nAssistant: hi\n\nUser: packed");
    assert_asked(f, "user=hello agent/manager=hi user=again agent/manager=yes user=more "
                    "agent/manager=no user=User: hello\n\nAssistant: hi\n\nUser: packed");
    fake_fail(asked(f), ERR_INVALID_ARGUMENT, "MODEL_CONTEXT");
    turns(f);
    reply(f, "short"); /* a summary */
    reply(f, "fine");
    assert_int_equal(run_state(turn.run), RUN_DONE);
    end(&turn);
    say(&turn, f, "last"); /* a summary may have to be written again */
    assert_int_equal(fake_request(asked(f))->message_count, 4);
    run_cancel(turn.run, STR("enough"));
    end(&turn);
}

static void an_agent_that_is_named_takes_the_turn(void **state) {
    struct fixture *f = *state;
    struct turn turn;
    struct run_request request = request_of("hello");
    request.agent = STR("eve");
    request.system = STR("Be brief.");
    start(&turn, f, &request);
    assert_str(fake_request(asked(f))->agent, "eve");
    assert_str(fake_request(asked(f))->system, "Be brief.");
    reply(f, "hi");
    assert_seen(&turn, "started(hello) text(hi) usage(0 -1) done(m-1 eve=hi)");
    end(&turn);
    struct run *run;
    struct err e;
    request.agent = STR("nobody");
    assert_false(run_start(&f->host, &request, &run, &e));
    assert_int_equal(e.code, ERR_NOT_FOUND);
}

/* --- text --------------------------------------------------------------------------------- */

/* S3: every cut of a text with characters of one to four bytes. */
static void a_turn_may_bring_an_engine_of_its_own(void **state) {
    struct fixture *f = *state;
    struct turn turn;
    struct agent other = {.slug = STR("other"), .model = STR("m-2"), .provider = f->model};
    struct engine engine = {.agents = &other,
                            .agent_count = 1,
                            .sessions = f->engine.sessions,
                            .limits = run_limits_default,
                            .refs = 1};
    struct run_request request = request_of("hi");
    request.engine = &engine;
    start(&turn, f, &request);
    assert_int_equal(engine.refs, 2);
    assert_str(fake_request(asked(f))->model, "m-2");
    reply(f, "hello");
    assert_seen(&turn, "started(hi) text(hello) usage(0 -1) done(m-1 other=hello)");
    end(&turn);
    assert_int_equal(engine.refs, 1);
}

static void a_character_cut_between_deltas_stays_whole(void **state) {
    (void)state;
    struct str whole = STR("a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x8C\x8Az");
    for (size_t cut = 1; cut < whole.len; cut++) {
        for (size_t next = cut; next < whole.len; next++) {
            struct fixture f;
            struct turn turn;
            fixture_init(&f, false);
            say(&turn, &f, "x");
            fake_text(asked(&f), str_head(whole, cut));
            fake_text(asked(&f), str_skip(str_head(whole, next), cut));
            fake_text(asked(&f), str_skip(whole, next));
            fake_done(asked(&f), "m");
            turns(&f);
            struct str seen = buf_str(&turn.seen);
            assert_true(str_find(seen, STR("\xEF\xBF\xBD")) == seen.len);
            assert_true(
                str_ends(seen, STR("done(m manager=a\xC3\xA9\xE2\x82\xAC\xF0\x9F\x8C\x8Az)")));
            end(&turn);
            fixture_done(&f);
        }
    }
}

/* U10 */
static void bytes_that_are_no_text_are_repaired(void **state) {
    struct fixture *f = *state;
    struct turn turn;
    say(&turn, f, "x");
    fake_text(asked(f), STR("a\xFF"));
    fake_text(asked(f), STR("b\xC3"));
    fake_text(asked(f), STR("c"));
    fake_text(asked(f), STR("d\xF0\x9F"));
    fake_done(asked(f), "m");
    assert_seen(&turn, "started(x) text(a\xEF\xBF\xBD) text(b) text(\xEF\xBF\xBD"
                       "c) text(d) text(\xEF\xBF\xBD) usage(0 -1) "
                       "done(m manager=a\xEF\xBF\xBD"
                       "b\xEF\xBF\xBD"
                       "cd\xEF\xBF\xBD)");
    end(&turn);
}

static void a_reply_that_fails_inside_a_character_leaves_nothing_of_it(void **state) {
    struct fixture *f = *state;
    struct turn turn;
    say(&turn, f, "x");
    fake_thinking(asked(f), STR("hm\xF0\x9F"));
    fake_text(asked(f), STR("a\xC3"));
    fake_fail(asked(f), ERR_UNAVAILABLE, "BROKEN");
    assert_seen(&turn, "started(x) thinking(hm) text(a) thinking(\xEF\xBF\xBD) "
                       "text(\xEF\xBF\xBD) usage(0 -1) failed(UNAVAILABLE BROKEN)");
    assert_int_equal(turn.run->model_round.thinking_tail.len, 0);
    assert_int_equal(turn.run->model_round.text_tail.len, 0);
    end(&turn);
}

/* One piece a letter of `cuts`, as long as its number. */
struct pieces_case {
    const char *text, *cuts;
    size_t reply_max_bytes; /* 0: as usual */
    int64_t tokens_max;
};

static void hear_pieces(const struct pieces_case *of, bool at_once, struct buf *ret) {
    struct fixture f;
    struct turn turn;
    struct str rest = str_from(of->text);
    uint32_t lens[64];
    size_t count = strlen(of->cuts);
    fixture_init(&f, true);
    if (of->reply_max_bytes) f.engine.limits.reply_max_bytes = of->reply_max_bytes;
    f.agents[0].limits.tokens_max = of->tokens_max;
    say(&turn, &f, "x");
    bool goes_on = true;
    for (size_t i = 0; i < count; i++) lens[i] = (uint32_t)(of->cuts[i] - '0');
    if (at_once) goes_on = fake_pieces(asked(&f), rest, lens, count);
    for (size_t i = 0; i < count && goes_on && !at_once; i++) {
        goes_on = fake_text(asked(&f), str_head(rest, lens[i]));
        rest = str_skip(rest, lens[i]);
    }
    if (goes_on) fake_text(asked(&f), STR(" end"));
    if (goes_on && fake_calls(f.model)) fake_done(asked(&f), "m");
    turns(&f);
    buf_init(ret, MIB);
    buf_append(ret, buf_str(&turn.seen));
    write_history(&f, ret);
    end(&turn);
    fixture_done(&f);
}

static void pieces_that_came_at_once_are_shown_as_if_each_came_alone(void **state) {
    (void)state;
    static const struct pieces_case cases[] = {
        {"abcdef", "123", 0, 0},
        {"abcdef", "6", 0, 0},
        {"abcdef", "10203", 0, 0},                  /* empty ones */
        {"a\xC3\xA9z", "22", 0, 0},                 /* inside a character */
        {"a\xC3\xA9z", "13", 0, 0},                 /* beside it */
        {"a\xFFz", "111", 0, 0},                    /* no text */
        {"a\xF0\x9F", "12", 0, 0},                  /* one that does not end */
        {"abcdef", "123", 10, 0},                   /* just within the limit */
        {"abcdef", "123", 5, 0},                    /* the last piece is over it */
        {"abcdef", "123", 0, 5},                    /* the tokens of an agent */
        {"abcdefghijklmnopqrstuvwxyz", "99", 0, 0}, /* not all of it */
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct pieces_case each = cases[i];
        char text[64];
        size_t len = 0;
        for (const char *cut = each.cuts; *cut; cut++) len += (size_t)(*cut - '0');
        snprintf(text, sizeof(text), "%.*s", (int)len, each.text);
        each.text = text;
        struct buf apart, at_once;
        hear_pieces(&each, false, &apart);
        hear_pieces(&each, true, &at_once);
        buf_append_byte(&apart, '\0');
        assert_str(buf_str(&at_once), apart.at);
        buf_done(&apart);
        buf_done(&at_once);
    }
}

/* --- cancel, wherever it is --------------------------------------------------------------- */

static void a_cancel_ends_a_run_in_every_state(void **state) {
    (void)state;
    enum where {
        FRESHLY,
        QUEUED,
        ASKING,
        RECORDING,
        WORKING,
        WAITING,
        ANSWERED,
        ENDING,
        WHERES
    };
    for (int with_store = 0; with_store < 2; with_store++) {
        for (enum where where = 0; where < WHERES; where++) {
            struct fixture f;
            struct turn turn, holder = {0}, later = {0};
            fixture_init(&f, with_store);
            if (where == QUEUED || where == ANSWERED) say(&holder, &f, "hold");
            if (where == ANSWERED) {
                fake_approval(asked(&f), "a", "Really?");
                fake_done(asked(&f), "m");
                turns(&f);
                turn = holder;
                say(&holder, &f, "hold"); /* the answer has to wait for this one */
                answer_as_human(&later, &f, "yes");
            } else if (where == FRESHLY) {
                struct run_request request = request_of("x");
                struct err e;
                turn = (struct turn){.f = &f};
                assert_true(run_start(&f.host, &request, &turn.run, &e));
            } else {
                say(&turn, &f, "x");
            }
            if (where == RECORDING && with_store) fake_store_ask_me(f.store);
            if (where == RECORDING || where == WORKING) {
                fake_tool_call(asked(&f), "c", "search", "{}");
                fake_done(asked(&f), "m");
                if (where == WORKING) turns(&f);
            }
            if (where == WAITING) {
                fake_approval(asked(&f), "a", "Really?");
                fake_done(asked(&f), "m");
                turns(&f);
                assert_int_equal(run_state(turn.run), RUN_WAITING);
            }
            if (where == ENDING) fake_fail(asked(&f), ERR_INTERNAL, "BROKEN");
            run_cancel(turn.run, STR("he left"));
            run_cancel(turn.run, STR("twice"));
            assert_int_equal(fake_tool_calls(f.search), 0);
            if (where == RECORDING && with_store) {
                fake_store_always_commit(f.store);
                while (fake_store_writes(f.store)) fake_store_commit(f.store, 0);
            }
            turns(&f);
            if (where == RECORDING && with_store) {
                while (fake_store_writes(f.store)) fake_store_commit(f.store, 0);
            }
            assert_int_equal(fake_calls(f.model), where == QUEUED || where == ANSWERED ? 1 : 0);
            turns(&f);
            assert_int_equal(run_state(turn.run), where == ENDING ? RUN_FAILED : RUN_CANCELLED);
            if (where == QUEUED) assert_seen(&turn, "cancelled(he left)");
            if (where == ASKING)
                assert_seen(&turn, "started(x) usage(0 -1) cancelled(he left)");
            if (holder.run) {
                reply(&f, "held");
                end(&holder);
            }
            if (later.f) {
                cursor_close(later.cursor);
                buf_done(&later.seen);
            }
            if (where == FRESHLY) buf_init(&turn.seen, 1);
            end(&turn);
            fixture_done(&f);
        }
    }
}

static void a_cancel_may_come_from_a_listener_of_the_text(void **state) {
    struct fixture *f = *state;
    struct turn turn;
    f->engine.limits.reply_max_bytes = 4; /* the run itself stops the model from inside */
    say(&turn, f, "x");
    assert_true(fake_text(asked(f), STR("1234")));
    assert_false(fake_text(asked(f), STR("5")));
    assert_seen(&turn,
                "started(x) text(1234) usage(0 -1) failed(RESOURCE_EXHAUSTED REPLY_TOO_LONG)");
    end(&turn);
}

static void all_runs_of_a_host_are_cancelled_together(void **state) {
    struct fixture *f = *state;
    struct turn turn[3];
    for (size_t i = 0; i < 3; i++) say(&turn[i], f, "x");
    assert_int_equal(f->host.run_count, 3);
    run_host_cancel(&f->host, STR("the server stopped"));
    for (size_t i = 0; i < 3; i++) {
        turns(f);
        assert_int_equal(run_state(turn[i].run), RUN_CANCELLED);
        end(&turn[i]);
    }
}

/* --- failures ----------------------------------------------------------------------------- */

/* U2, C3 */
static void a_model_that_fails_after_text_fails_the_turn(void **state) {
    struct fixture *f = *state;
    struct turn turn;
    say(&turn, f, "x");
    fake_text(asked(f), STR("half a"));
    fake_fail(asked(f), ERR_UNAVAILABLE, "PROVIDER_GONE");
    assert_seen(&turn, "started(x) text(half a) usage(0 -1) failed(UNAVAILABLE PROVIDER_GONE)");
    end(&turn);
    assert_history(f, "user=x! agent/manager=half a"); /* K27 */
}

/* L3: each limit walked down to nothing, each refusal with its own reason. */
static void every_limit_ends_the_turn_with_its_reason(void **state) {
    (void)state;
    struct fixture f;
    struct turn turn;
    for (int with_store = 0; with_store < 2; with_store++) {
        fixture_init(&f, with_store);
        f.engine.limits.model_calls_max = 0;
        say(&turn, &f, "x");
        assert_seen(&turn, "started(x) failed(RESOURCE_EXHAUSTED MODEL_CALLS)");
        end(&turn);
        f.engine.limits.model_calls_max = 1;
        f.engine.limits.tool_calls_max = 0;
        say(&turn, &f, "x");
        for (size_t i = 0; i < 256; i++)
            assert_true(fake_tool_call(asked(&f), "c", "search", "{}"));
        assert_false(fake_tool_call(asked(&f), "c", "search", "{}"));
        assert_seen(&turn, "started(x) usage(0 -1) failed(RESOURCE_EXHAUSTED TOOL_CALLS)");
        end(&turn);
        f.engine.limits.reply_max_bytes = 0;
        say(&turn, &f, "x");
        assert_false(fake_text(asked(&f), STR("a")));
        assert_seen(&turn, "started(x) usage(0 -1) failed(RESOURCE_EXHAUSTED REPLY_TOO_LONG)");
        end(&turn);
        f.engine.limits.turn_max_ms = 0;
        say(&turn, &f, "x");
        loop_advance(f.loop, 0);
        assert_seen(&turn, "started(x) usage(0 -1) failed(DEADLINE_EXCEEDED TURN_TIMEOUT)");
        end(&turn);
        fixture_done(&f);
    }
}

static void repair_does_not_grow_a_reply_past_its_limit(void **state) {
    struct fixture *f = *state;
    struct turn turn;
    f->engine.limits.reply_max_bytes = 4;
    say(&turn, f, "x");
    assert_false(fake_text(asked(f), STR("a\xFF\xFF"))); /* seven bytes when repaired */
    assert_seen(&turn, "started(x) usage(0 -1) failed(RESOURCE_EXHAUSTED REPLY_TOO_LONG)");
    end(&turn);
    say(&turn, f, "x");
    assert_true(fake_text(asked(f), STR("ab\xF0\x9F"))); /* held back, then too much */
    fake_done(asked(f), "m");
    assert_seen(&turn,
                "started(x) text(ab) usage(0 -1) failed(RESOURCE_EXHAUSTED REPLY_TOO_LONG)");
    end(&turn);
}

static void a_turn_takes_no_longer_than_its_limit(void **state) {
    struct fixture *f = *state;
    struct turn turn;
    say(&turn, f, "x");
    fake_tool_call(asked(f), "c", "search", "{}");
    fake_done(asked(f), "m");
    turns(f);
    loop_advance(f->loop, run_limits_default.turn_max_ms - 1);
    assert_int_equal(run_state(turn.run), RUN_WORKING);
    loop_advance(f->loop, 1);
    turns(f);
    assert_int_equal(run_state(turn.run), RUN_FAILED);
    assert_int_equal(fake_tool_calls(f->search), 0);
    end(&turn);
}

/* L3: whatever its memory is, a turn ends cleanly, one way or the other. */
static void a_turn_lives_within_any_memory(void **state) {
    (void)state;
    bool done_once = false, failed_once = false, refused_once = false;
    for (size_t max = 0; max < 1400; max += 7) {
        struct fixture f;
        struct turn turn = {.f = &f};
        struct err e;
        fixture_init(&f, max % 2);
        f.engine.limits.memory_max_bytes = max;
        struct run_request request = request_of("a question of some length");
        if (!run_start(&f.host, &request, &turn.run, &e)) {
            assert_int_equal(e.code, ERR_RESOURCE_EXHAUSTED);
            refused_once = true;
            fixture_done(&f);
            continue;
        }
        follow(&turn, run_journal(turn.run), 0);
        turns(&f);
        if (fake_calls(f.model) && fake_text(asked(&f), STR("let me look")) &&
            fake_tool_call(asked(&f), "c1", "search", "{\"what\":\"somewhere\"}") &&
            fake_tool_call(asked(&f), "c2", "none", "{}") && fake_usage(asked(&f), 5, 7)) {
            fake_done(asked(&f), "model-one");
        }
        turns(&f);
        if (fake_tool_calls(f.search)) {
            fake_tool_answer(f.search, 0, "{\"found\":\"a text that is not so short\"}");
        }
        turns(&f);
        if (fake_calls(f.model) && fake_approval(asked(&f), "a1", "May I?")) {
            fake_done(asked(&f), "model-two");
        }
        turns(&f);
        struct turn later = {0};
        if (run_state(turn.run) == RUN_WAITING) answer_as_human(&later, &f, "yes, please do");
        turns(&f);
        if (fake_calls(f.model) && fake_text(asked(&f), STR("then here it is"))) {
            fake_done(asked(&f), "model-three");
        }
        turns(&f);
        assert_in_range(run_state(turn.run), RUN_DONE, RUN_FAILED);
        struct str seen = buf_str(&turn.seen);
        if (run_state(turn.run) == RUN_FAILED) {
            assert_true(str_ends(seen, STR("failed(RESOURCE_EXHAUSTED RUN_MEMORY)")));
        }
        done_once |= run_state(turn.run) == RUN_DONE;
        failed_once |= run_state(turn.run) == RUN_FAILED;
        if (later.f) {
            cursor_close(later.cursor);
            buf_done(&later.seen);
        }
        end(&turn);
        fixture_done(&f);
    }
    assert_true(done_once && failed_once && refused_once);
}

/* --- a store that is gone (T1) ------------------------------------------------------------ */

/* Another replica finds it from then on; the beginning of any other turn waits for the tick. */
static void a_turn_whose_id_is_the_answer_is_stored_at_once(void **state) {
    struct fixture *f = *state;
    struct turn turn;
    struct run_request request = request_of("x");
    for (int promised = 0; promised < 2; promised++) {
        size_t sent = fake_store_sent(f->store);
        request.promised = promised;
        start(&turn, f, &request);
        assert_int_equal(fake_store_sent(f->store) - sent, promised);
        assert_int_equal(fake_calls(f->model), 1); /* the model need not wait for it */
        reply(f, "an answer");
        end(&turn);
    }
}

static void a_turn_that_cannot_be_stored_fails_and_leaves_nothing(void **state) {
    struct fixture *f = *state;
    struct turn turn;
    say(&turn, f, "x");
    fake_store_always_lose(f->store, ERR_UNAVAILABLE);
    reply(f, "an answer");
    assert_seen(&turn, "started(x) text(an answer) usage(0 -1) "
                       "failed(UNAVAILABLE STORE_UNAVAILABLE)");
    assert_int_equal(run_state(turn.run), RUN_FAILED);
    end(&turn);
    fake_store_always_commit(f->store);
    assert_history(f, "");
}

/* Only the key can find out whether it is there, so the key is not given back. */
static void a_turn_that_may_not_be_stored_says_so(void **state) {
    struct fixture *f = *state;
    struct turn turn;
    say(&turn, f, "x");
    fake_store_always_lose(f->store, ERR_OUTCOME_UNKNOWN);
    reply(f, "an answer");
    assert_seen(&turn, "started(x) text(an answer) usage(0 -1) "
                       "failed(UNAVAILABLE STORE_OUTCOME_UNKNOWN)");
    assert_int_equal(run_state(turn.run), RUN_FAILED);
    end(&turn);
    fake_store_always_commit(f->store);
}

static void a_tool_that_cannot_be_recorded_is_not_called(void **state) {
    struct fixture *f = *state;
    struct turn turn;
    say(&turn, f, "x");
    fake_store_always_lose(f->store, ERR_RESOURCE_EXHAUSTED); /* the disk is full */
    fake_text(asked(f), STR("let me see"));
    fake_tool_call(asked(f), "c1", "search", "{}");
    fake_done(asked(f), "m");
    assert_seen(&turn, "started(x) text(let me see) usage(0 -1) "
                       "failed(UNAVAILABLE STORE_UNAVAILABLE)");
    assert_int_equal(fake_calls_ever(f->model), 1);
    assert_int_equal(fake_tool_calls(f->search), 0);
    end(&turn);
    fake_store_always_commit(f->store);
    assert_history(f, "");
}

static void a_cancel_that_cannot_be_stored_still_ends(void **state) {
    struct fixture *f = *state;
    struct turn turn;
    say(&turn, f, "x");
    fake_approval(asked(f), "a", "Really?");
    fake_done(asked(f), "m");
    turns(f);
    fake_store_always_lose(f->store, ERR_UNAVAILABLE);
    run_cancel(turn.run, STR("he left"));
    turns(f);
    assert_int_equal(run_state(turn.run), RUN_FAILED);
    end(&turn);
}

static void stopping_does_not_wait_for_a_store_that_is_gone(void **state) {
    struct fixture *f = *state;
    struct turn turn;
    bool kept = false;
    say(&turn, f, "x");
    fake_text(asked(f), STR("some"));
    fake_store_always_lose(f->store, ERR_UNAVAILABLE);
    keeper_flush(f->keeper, fixture_kept, &kept);
    turns(f);
    assert_true(kept);
    assert_int_equal(run_state(turn.run), RUN_FAILED);
    end(&turn);
}

/* --- pacing (B1) -------------------------------------------------------------------------- */

static void a_model_waits_for_the_one_who_asked(void **state) {
    struct fixture *f = *state;
    struct run *run;
    struct err e;
    struct run_request request = request_of("x");
    assert_true(run_start(&f->host, &request, &run, &e));
    struct turn turn = {.f = f, .run = run};
    struct cursor *slow;
    assert_true(cursor_open(run_journal(run), 0, f->loop, (cursor_ready_fn *)fixture_kept,
                            &(bool){false}, &slow, &e));
    cursor_pace(slow);
    follow(&turn, run_journal(run), 0); /* an observer reads along and paces nothing */
    char text[1024];
    memset(text, 'x', sizeof(text));
    size_t said = 0;
    while (!fake_paused(asked(f))) {
        fake_text(asked(f), str_of(text, sizeof(text)));
        loop_turn(f->loop);
        said++;
    }
    assert_in_range(said, 10, 13); /* 12 KiB of events */
    struct event event = {0};
    size_t read = 0;
    while (fake_paused(asked(f))) {
        assert_true(cursor_next(slow, &event));
        loop_turn(f->loop);
        read++;
    }
    assert_in_range(read, said / 2 - 3, said / 2 + 3);
    /* Held while tools work: the next question begins paused. */
    fake_tool_call(asked(f), "c", "search", "{}");
    for (size_t i = 0; i < 200; i++) fake_text(asked(f), str_of(text, sizeof(text)));
    fake_done(asked(f), "m");
    loop_turn(f->loop);
    fake_tool_answer(f->search, 0, "{}");
    loop_turn(f->loop);
    assert_true(fake_paused(asked(f)));
    cursor_close(slow); /* no reader waits any more */
    loop_turn(f->loop);
    assert_false(fake_paused(asked(f)));
    reply(f, "ok");
    end(&turn);
}

/* --- a newer message ---------------------------------------------------------------------- */

static void a_newer_message_takes_the_place_of_those_before_it(void **state) {
    struct fixture *f = *state;
    struct turn first, second, third;
    struct run_request request = request_of("newest");
    say(&first, f, "old");
    say(&second, f, "older than it looks"); /* waits for the first */
    request.policy = SESSION_INTERRUPT;
    start(&third, f, &request);
    assert_seen(
        &first,
        "started(old) usage(0 -1) cancelled(a newer message of the session took its place)");
    assert_seen(&second, "cancelled(a newer message of the session took its place)");
    assert_asked(f, "user=old! user=newest"); /* what began was said */
    reply(f, "here");
    assert_int_equal(run_state(third.run), RUN_DONE);
    end(&first);
    end(&second);
    end(&third);
}

static void a_turn_that_waits_for_a_tool_lends_its_session_to_a_newer_message(void **state) {
    struct fixture *f = *state;
    struct turn parent, child;
    struct run_request request = request_of("inner");
    say(&parent, f, "outer");
    fake_tool_call(asked(f), "c", "search", "{}");
    fake_done(asked(f), "m-1");
    turns(f);
    request.policy = SESSION_INTERRUPT;
    start(&child, f, &request);
    reply(f, "in");
    fake_tool_answer(f->search, 0, "{}");
    turns(f);
    reply(f, "out");
    assert_int_equal(run_state(parent.run), RUN_DONE);
    assert_int_equal(run_state(child.run), RUN_DONE);
    end(&parent);
    end(&child);
}

/* --- places of a workspace ---------------------------------------------------------------- */

static struct run_request in(const char *workspace, const char *session) {
    struct run_request request = request_of("x");
    request.name.workspace = str_from(workspace);
    request.name.session = str_from(session);
    return request;
}

/* M5 */
static void one_workspace_cannot_take_the_places_of_another(void **state) {
    struct fixture *f = *state;
    struct turn first, second, other;
    f->engine.limits.workspace_turns_max = 1;
    struct run_request requests[] = {in("w", "a"), in("w", "b"), in("v", "a")};
    start(&first, f, &requests[0]);
    start(&second, f, &requests[1]);
    start(&other, f, &requests[2]);
    assert_int_equal(run_state(first.run), RUN_ASKING);
    assert_int_equal(run_state(second.run), RUN_QUEUED);
    assert_int_equal(run_state(other.run), RUN_ASKING);
    fake_done(fake_call(f->model, 0), "m");
    turns(f);
    assert_int_equal(run_state(first.run), RUN_DONE);
    assert_int_equal(run_state(second.run), RUN_ASKING);
    while (fake_calls(f->model)) fake_done(fake_call(f->model, 0), "m");
    turns(f);
    assert_int_equal(run_state(second.run), RUN_DONE);
    end(&first);
    end(&second);
    end(&other);
}

static void a_place_is_waited_for_so_long_and_no_longer(void **state) {
    struct fixture *f = *state;
    struct turn first, second, third;
    f->engine.limits.workspace_turns_max = 1;
    struct run_request requests[] = {in("w", "a"), in("w", "b"), in("w", "c")};
    start(&first, f, &requests[0]);
    start(&second, f, &requests[1]);
    start(&third, f, &requests[2]);
    run_cancel(third.run, STR("enough"));
    turns(f);
    assert_int_equal(run_state(third.run), RUN_CANCELLED);
    loop_advance(f->loop, 30000);
    assert_seen(&second, "failed(RESOURCE_EXHAUSTED WORKSPACE_TURNS)");
    fake_done(asked(f), "m");
    turns(f);
    assert_int_equal(run_state(first.run), RUN_DONE);
    end(&first);
    end(&second);
    end(&third);
}

static void
a_turn_inside_another_needs_no_place_and_one_that_waits_for_a_human_has_none(void **state) {
    (void)state;
    struct fixture f;
    struct turn parent, child, later, other;
    fixture_init(&f, true);
    f.engine.limits.workspace_turns_max = 1;
    say(&parent, &f, "outer");
    fake_tool_call(asked(&f), "c", "search", "{}");
    fake_done(asked(&f), "m");
    turns(&f);
    say(&child, &f, "inner");
    reply(&f, "in");
    assert_int_equal(run_state(child.run), RUN_DONE);
    fake_tool_answer(f.search, 0, "{}");
    turns(&f);
    fake_approval(asked(&f), "a", "May I?");
    fake_done(asked(&f), "m");
    turns(&f);
    assert_int_equal(run_state(parent.run), RUN_WAITING);
    struct run_request request = in("w", "another");
    start(&other, &f, &request);
    assert_int_equal(run_state(other.run), RUN_ASKING);
    reply(&f, "me too");
    answer_as_human(&later, &f, "yes");
    reply(&f, "out");
    assert_int_equal(run_state(parent.run), RUN_DONE);
    end(&parent);
    end(&child);
    end(&later);
    end(&other);
    fixture_done(&f);
}

/* --- places among replicas ---------------------------------------------------------------- */

static int64_t places(struct fixture *f) {
    return fake_store_number(f->store, "SELECT count(*) FROM place WHERE holder = 1");
}

static void shared_fixture(struct fixture *f) {
    fixture_init(f, true);
    fake_store_share(f->store);
    f->engine.limits.workspace_turns_max = 1;
}

/* Another replica's turn has the only place. */
static void a_turn_of_another_replica_has_a_place_of_the_workspace(void **state) {
    (void)state;
    struct fixture f;
    struct turn first, second, other;
    shared_fixture(&f);
    fake_store_sql(f.store, "INSERT INTO place VALUES(99, CAST('w' AS BLOB), 2)");
    struct run_request requests[] = {in("w", "a"), in("w", "b"), in("v", "a")};
    start(&first, &f, &requests[0]);
    start(&other, &f, &requests[2]);
    assert_int_equal(run_state(first.run), RUN_QUEUED);
    assert_int_equal(run_state(other.run), RUN_ASKING);
    assert_int_equal(places(&f), 1);
    fake_store_sql(f.store, "DELETE FROM place WHERE run = 99");
    changes_tell(store_changes(f.store), CHANGE_FREED);
    turns(&f);
    assert_int_equal(run_state(first.run), RUN_ASKING);
    assert_int_equal(places(&f), 2);
    start(&second, &f, &requests[1]); /* this process has none left, and asks the store later */
    assert_int_equal(run_state(second.run), RUN_QUEUED);
    while (fake_calls(f.model)) {
        fake_done(fake_call(f.model, 0), "m");
        turns(&f);
    }
    assert_int_equal(run_state(first.run), RUN_DONE);
    assert_int_equal(run_state(second.run), RUN_DONE);
    assert_int_equal(run_state(other.run), RUN_DONE);
    assert_int_equal(places(&f), 0);
    end(&first);
    end(&second);
    end(&other);
    fixture_done(&f);
}

static void a_turn_that_waits_for_a_place_among_replicas_may_end(void **state) {
    (void)state;
    struct fixture f;
    struct turn first, second;
    shared_fixture(&f);
    fake_store_sql(f.store, "INSERT INTO place VALUES(99, CAST('w' AS BLOB), 2)");
    struct run_request requests[] = {in("w", "a"), in("w", "b")};
    start(&first, &f, &requests[0]);
    run_cancel(first.run, STR("enough"));
    turns(&f);
    assert_int_equal(run_state(first.run), RUN_CANCELLED);
    start(&second, &f, &requests[1]);
    for (size_t i = 0; i < 62; i++) {
        loop_advance(f.loop, 500);
        turns(&f);
    }
    assert_seen(&second, "failed(RESOURCE_EXHAUSTED WORKSPACE_TURNS)");
    assert_int_equal(places(&f), 0);
    end(&first);
    end(&second);
    fixture_done(&f);
}

/* Two that go on from the same turn: both were let in when it was the newest. */
static void a_turn_goes_on_from_the_past_that_its_caller_knows_or_not_at_all(void **state) {
    struct fixture *f = *state;
    struct turn before, first, second;
    say(&before, f, "one");
    reply(f, "1");
    struct run_request request = request_of("two");
    request.newest_known = run_id(before.run);
    start(&first, f, &request);
    start(&second, f, &request);
    reply(f, "2");
    turns(f);
    assert_seen(&first, "started(two) text(2) usage(0 -1) done(m-1 manager=2)");
    assert_str(buf_str(&second.seen), "failed(INVALID_ARGUMENT SUPERSEDED)");
    end(&second);
    request.newest_known = run_id(first.run);
    start(&second, f, &request);
    assert_asked(f, "user=one agent/manager=1 user=two agent/manager=2 user=two");
    run_cancel(second.run, STR("enough"));
    end(&second);
    start(&second, f, &request); /* what came to nothing does not stand between */
    reply(f, "3");
    assert_seen(&second, "started(two) text(3) usage(0 -1) done(m-1 manager=3)");
    end(&second);
    request.newest_known = run_id(before.run);
    start(&second, f, &request); /* but what came before that does */
    turns(f);
    assert_str(buf_str(&second.seen), "failed(INVALID_ARGUMENT SUPERSEDED)");
    end(&second);
    end(&first);
    end(&before);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_the_moves_of_the_table_are_allowed),
        cmocka_unit_test(a_turn_streams_counts_and_is_done),
        STORED_TURN_TEST(a_turn_is_done_only_when_that_is_on_disk),
        TURN_TEST(a_model_that_says_nothing_leaves_no_turn),
        TURN_TEST(a_model_that_reads_its_turn_alone_is_shown_no_more),
        TURN_TEST(an_agent_that_is_named_takes_the_turn),
        TURN_TEST(a_turn_may_bring_an_engine_of_its_own),
        cmocka_unit_test(a_character_cut_between_deltas_stays_whole),
        TURN_TEST(bytes_that_are_no_text_are_repaired),
        cmocka_unit_test(pieces_that_came_at_once_are_shown_as_if_each_came_alone),
        TURN_TEST(a_reply_that_fails_inside_a_character_leaves_nothing_of_it),
        cmocka_unit_test(a_cancel_ends_a_run_in_every_state),
        TURN_TEST(a_cancel_may_come_from_a_listener_of_the_text),
        STORED_TURN_TEST(all_runs_of_a_host_are_cancelled_together),
        STORED_TURN_TEST(a_model_that_fails_after_text_fails_the_turn),
        cmocka_unit_test(every_limit_ends_the_turn_with_its_reason),
        TURN_TEST(repair_does_not_grow_a_reply_past_its_limit),
        STORED_TURN_TEST(a_turn_takes_no_longer_than_its_limit),
        cmocka_unit_test(a_turn_lives_within_any_memory),
        STORED_TURN_TEST(a_turn_whose_id_is_the_answer_is_stored_at_once),
        STORED_TURN_TEST(a_turn_that_cannot_be_stored_fails_and_leaves_nothing),
        STORED_TURN_TEST(a_turn_that_may_not_be_stored_says_so),
        STORED_TURN_TEST(a_tool_that_cannot_be_recorded_is_not_called),
        STORED_TURN_TEST(a_cancel_that_cannot_be_stored_still_ends),
        STORED_TURN_TEST(stopping_does_not_wait_for_a_store_that_is_gone),
        TURN_TEST(a_model_waits_for_the_one_who_asked),
        STORED_TURN_TEST(a_newer_message_takes_the_place_of_those_before_it),
        STORED_TURN_TEST(a_turn_that_waits_for_a_tool_lends_its_session_to_a_newer_message),
        STORED_TURN_TEST(one_workspace_cannot_take_the_places_of_another),
        STORED_TURN_TEST(a_place_is_waited_for_so_long_and_no_longer),
        cmocka_unit_test(
            a_turn_inside_another_needs_no_place_and_one_that_waits_for_a_human_has_none),
        cmocka_unit_test(a_turn_of_another_replica_has_a_place_of_the_workspace),
        cmocka_unit_test(a_turn_that_waits_for_a_place_among_replicas_may_end),
        STORED_TURN_TEST(a_turn_goes_on_from_the_past_that_its_caller_knows_or_not_at_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
