#include "turn/long_reply.h"

#include "fake/provider_fake.h" /* named here: the build links them */
#include "fake/store_fake.h"
#include "fixture.h"
#include "turn/turn.h"

static void only_the_moves_of_the_table_are_allowed(void **state) {
    (void)state;
    static const char *const rows[LONG_REPLY_STATE_COUNT] = {
        [LONG_REPLY_HELD] = ".#..",
        [LONG_REPLY_STORED] = "..#.",
        [LONG_REPLY_WAITING] = "...#",
        [LONG_REPLY_READING] = "#...",
    };
    for (enum long_reply_state from = 0; from < LONG_REPLY_STATE_COUNT; from++) {
        for (enum long_reply_state to = 0; to < LONG_REPLY_STATE_COUNT; to++)
            assert_int_equal(states_allow(long_reply_states, from, to), rows[from][to] == '#');
    }
}

/* --- a caller that reads when the test says ----------------------------------------------- */

struct slow {
    struct fixture *f;
    struct run *run;
    struct cursor *cursor;
    bool reads;
    struct buf text, end; /* what it got; the last event */
};

static void slow_read(void *ctx) {
    struct slow *slow = ctx;
    struct event event = {0};
    while (slow->reads && cursor_next(slow->cursor, &event)) {
        if (event.kind == EVENT_TEXT) buf_append(&slow->text, event.text.text);
        if (!event_is_terminal(event.kind) && event.kind != EVENT_TOOL_CALL) continue;
        buf_clear(&slow->end);
        assert_true(event_encode(&event, &slow->end));
    }
}

static void slow_start_in(struct slow *slow, struct fixture *f, const char *session) {
    struct err e;
    struct run_request request = request_of("tell me all");
    request.name.session = str_from(session);
    *slow = (struct slow){.f = f};
    buf_init(&slow->text, 4 * MIB);
    buf_init(&slow->end, 4 * MIB);
    assert_true(run_start(&f->host, &request, &slow->run, &e));
    assert_true(
        cursor_open(run_journal(slow->run), 0, f->loop, slow_read, slow, &slow->cursor, &e));
    cursor_pace(slow->cursor);
    turns(f);
}

static void slow_start(struct slow *slow, struct fixture *f) {
    slow_start_in(slow, f, "s");
}

static void slow_goes_on(struct slow *slow) {
    slow->reads = true;
    slow_read(slow);
    turns(slow->f);
}

static void slow_end(struct slow *slow) {
    cursor_close(slow->cursor);
    run_unref(slow->run);
    buf_done(&slow->text);
    buf_done(&slow->end);
}

/* The model speaks, a kilobyte at a time, until it is paused; what it said is added to `said`. */
static void speak(struct fixture *f, struct provider_call *call, struct buf *said) {
    char piece[KIB];
    while (!fake_paused(call)) {
        for (size_t i = 0; i < sizeof(piece); i++)
            piece[i] = (char)('a' + (said->len + i * i) % 26);
        assert_true(fake_text(call, str_of(piece, sizeof(piece))));
        buf_append(said, str_of(piece, sizeof(piece)));
        turns(f);
    }
}

static void tick(struct fixture *f) {
    loop_advance(f->loop, KEEPER_TICK_MS + 1);
    turns(f);
}

/* Says until it is paused, and all of that goes to the store. */
static void speak_and_store(struct slow *slow, struct buf *said) {
    speak(slow->f, asked(slow->f), said);
    tick(slow->f);
    assert_int_equal(slow->run->long_reply.state, LONG_REPLY_STORED);
    assert_int_equal(conversation_reply(&slow->run->conversation).len, 0);
    assert_int_equal(run_reply_bytes(slow->run), said->len);
}

static struct event last_event(const struct slow *slow) {
    struct event event = {0};
    struct err e;
    struct str bytes = buf_str(&slow->end);
    assert_true(event_decode(&bytes, &event, &e));
    return event;
}

/* One history in which an agent's message is all that was said. */
static void assert_remembered(struct fixture *f, struct str said, const char *error) {
    struct buf history, expected;
    buf_init(&history, 4 * MIB);
    buf_init(&expected, 4 * MIB);
    write_history(f, &history);
    buf_printf(&expected, "user=tell me all%s agent/manager=" STR_FMT, error, STR_ARG(said));
    assert_true(str_equal(buf_str(&history), buf_str(&expected)));
    buf_done(&history);
    buf_done(&expected);
}

/* --- the tests ---------------------------------------------------------------------------- */

static void a_slow_callers_reply_is_not_held_and_its_end_repeats_it(void **state) {
    (void)state;
    for (size_t stops = 1; stops < 4; stops++) {
        struct fixture f;
        struct slow slow;
        struct buf said;
        buf_init(&said, MIB);
        fixture_init(&f, true);
        slow_start(&slow, &f);
        for (size_t i = 0; i < stops; i++) { /* it stops, and reads on */
            slow.reads = false;
            speak_and_store(&slow, &said);
            slow_goes_on(&slow);
            assert_false(fake_paused(asked(&f)));
        }
        assert_true(fake_text(asked(&f), STR("the end.")));
        buf_append(&said, STR("the end."));
        fake_done(asked(&f), "m-1");
        slow_goes_on(&slow);
        assert_true(str_equal(buf_str(&slow.text), buf_str(&said)));
        struct event event = last_event(&slow);
        struct event_turn turn;
        assert_int_equal(event.kind, EVENT_DONE);
        assert_true(event_turn_next(&event.done.turns, &turn));
        assert_true(str_equal(turn.text, buf_str(&said)));
        assert_int_equal(run_state(slow.run), RUN_DONE);
        slow_end(&slow);
        assert_remembered(&f, buf_str(&said), "");
        fixture_done(&f);
        buf_done(&said);
    }
}

/* The model says `bytes` to a caller that keeps up. */
static void speak_on(struct slow *slow, struct buf *said, size_t bytes) {
    slow->reads = true;
    while (said->len < bytes) {
        assert_true(fake_text(asked(slow->f), STR("0123456789abcdef")));
        buf_append(said, STR("0123456789abcdef"));
        turns(slow->f);
    }
}

/* The end repeats all of it. */
static void assert_done(struct slow *slow, struct str said) {
    struct event_turn turn;
    fake_done(asked(slow->f), "m-1");
    slow_goes_on(slow);
    struct event event = last_event(slow);
    assert_int_equal(event.kind, EVENT_DONE);
    assert_true(event_turn_next(&event.done.turns, &turn));
    assert_true(str_equal(turn.text, said));
}

/* Nothing is reported as stored after it began to lag. */
static void text_that_was_stored_before_the_caller_lagged_is_not_held(void **state) {
    (void)state;
    struct fixture f;
    struct slow slow;
    struct buf said;
    buf_init(&said, MIB);
    fixture_init(&f, true);
    slow_start(&slow, &f);
    speak_on(&slow, &said, LONG_REPLY_BYTES);
    tick(&f);
    assert_int_equal(slow.run->long_reply.state, LONG_REPLY_HELD); /* it may end any moment */
    run_pace(true, slow.run);
    assert_int_equal(slow.run->long_reply.state, LONG_REPLY_STORED);
    assert_int_equal(conversation_reply(&slow.run->conversation).len, 0);
    run_pace(false, slow.run);
    assert_done(&slow, buf_str(&said));
    slow_end(&slow);
    fixture_done(&f);
    buf_done(&said);
}

static void while_memory_is_scarce_no_stored_text_is_held(void **state) {
    (void)state;
    struct fixture f;
    struct slow slow;
    struct buf said;
    buf_init(&said, MIB);
    fixture_init(&f, true);
    slow_start(&slow, &f);
    speak_on(&slow, &said, LONG_REPLY_BYTES);
    mem_limit(mem_counted());
    tick(&f);
    mem_limit(0);
    assert_int_equal(slow.run->long_reply.state, LONG_REPLY_STORED);
    assert_int_equal(conversation_reply(&slow.run->conversation).len, 0);
    assert_done(&slow, buf_str(&said));
    slow_end(&slow);
    fixture_done(&f);
    buf_done(&said);
}

static void a_turn_that_is_ended_meanwhile_repeats_it_as_well(void **state) {
    (void)state;
    enum { LEFT, CANCELLED, LIMIT, MODEL_FAILED, CANCELLED_AS_WELL, WAYS };
    for (int way = LEFT; way < WAYS; way++) {
        struct fixture f;
        struct slow slow;
        struct buf said;
        buf_init(&said, MIB);
        fixture_init(&f, true);
        slow_start(&slow, &f);
        speak_and_store(&slow, &said);
        if (way == LEFT)
            run_leave(slow.run, (struct leaving){.how = LEAVING_CANCELS}, STR("it left"));
        if (way == CANCELLED) run_cancel(slow.run, STR("enough"));
        if (way == LIMIT) loop_advance(f.loop, f.engine.limits.turn_max_ms + 1);
        if (way == MODEL_FAILED || way == CANCELLED_AS_WELL) {
            slow_goes_on(&slow);
            assert_true(fake_text(asked(&f), STR("and")));
            buf_append(&said, STR("and"));
            fake_fail(asked(&f), ERR_UNAVAILABLE, "BROKEN");
        }
        if (way == CANCELLED_AS_WELL) run_cancel(slow.run, STR("too late"));
        slow_goes_on(&slow);
        struct event event = last_event(&slow);
        bool failed = way >= LIMIT;
        assert_int_equal(event.kind, failed ? EVENT_FAILED : EVENT_CANCELLED);
        if (way == LEFT) assert_str(event.cancelled.message, "it left");
        if (way == CANCELLED) assert_str(event.cancelled.message, "enough");
        if (way == LIMIT) assert_str(event.failed.reason, "TURN_TIMEOUT");
        if (way >= MODEL_FAILED) assert_str(event.failed.reason, "BROKEN");
        struct str repeated = failed ? event.failed.said : event.cancelled.said;
        assert_true(str_equal(repeated, buf_str(&said)));
        slow_end(&slow);
        assert_remembered(&f, buf_str(&said), "!");
        fixture_done(&f);
        buf_done(&said);
    }
}

static void text_before_a_call_is_back_before_the_call_is_recorded(void **state) {
    (void)state;
    struct fixture f;
    struct slow slow;
    struct buf said;
    buf_init(&said, MIB);
    fixture_init(&f, true);
    slow_start(&slow, &f);
    speak_and_store(&slow, &said);
    slow_goes_on(&slow);
    assert_true(fake_tool_call(asked(&f), "c1", "search", "{}"));
    fake_done(asked(&f), "m-1");
    slow_goes_on(&slow);
    struct event event = last_event(&slow);
    assert_int_equal(event.kind, EVENT_TOOL_CALL);
    assert_true(str_equal(event.tool_call.said, buf_str(&said)));
    fake_tool_answer(f.search, 0, "{}");
    turns(&f);
    const struct provider_request *request = fake_request(asked(&f));
    assert_int_equal(request->message_count, 4);
    assert_true(str_equal(request->messages[1].text, buf_str(&said)));
    /* The next reply begins anew. */
    slow.reads = false;
    buf_clear(&said);
    speak_and_store(&slow, &said);
    slow_goes_on(&slow);
    fake_done(asked(&f), "m-1");
    slow_goes_on(&slow);
    event = last_event(&slow);
    struct event_turn turn;
    assert_true(event_turn_next(&event.done.turns, &turn));
    assert_true(str_equal(turn.text, buf_str(&said)));
    slow_end(&slow);
    fixture_done(&f);
    buf_done(&said);
}

/* While it is read back: another end comes, or the store fails. */
static void what_comes_while_it_is_read_ends_the_turn_once(void **state) {
    (void)state;
    for (int refused = 0; refused < 2; refused++) {
        for (int cancelled = 0; cancelled < 2; cancelled++) {
            struct fixture f;
            struct slow slow;
            struct buf said;
            buf_init(&said, MIB);
            fixture_init(&f, true);
            slow_start(&slow, &f);
            speak_and_store(&slow, &said);
            slow_goes_on(&slow);
            fake_done(asked(&f), "m-1");
            assert_int_equal(slow.run->long_reply.state, LONG_REPLY_READING);
            assert_int_equal(fake_store_loads(f.store), 1);
            if (cancelled) run_cancel(slow.run, STR("enough"));
            if (cancelled) run_cancel(slow.run, STR("and again"));
            assert_int_equal(fake_store_loads(f.store), 1);
            if (refused) fake_store_refuse(f.store, 0, ERR_UNAVAILABLE);
            slow_goes_on(&slow);
            struct event event = last_event(&slow);
            if (cancelled) {
                assert_int_equal(event.kind, EVENT_CANCELLED);
                assert_str(event.cancelled.message, "enough");
                assert_int_equal(event.cancelled.said.len, refused ? 0 : said.len);
            } else if (refused) {
                assert_int_equal(event.kind, EVENT_FAILED);
                assert_str(event.failed.reason, "STORE_UNAVAILABLE");
            } else {
                assert_int_equal(event.kind, EVENT_DONE);
            }
            slow_end(&slow);
            fixture_done(&f);
            buf_done(&said);
        }
    }
}

static void a_flush_waits_for_the_ends_of_turns(void **state) {
    (void)state;
    struct fixture f;
    struct slow slow;
    struct buf said;
    bool kept = false;
    buf_init(&said, MIB);
    fixture_init(&f, true);
    slow_start(&slow, &f);
    speak_and_store(&slow, &said);
    run_host_cancel(&f.host, STR("the server stopped"));
    keeper_flush(f.keeper, fixture_kept, &kept);
    for (int i = 0; i < 5; i++) loop_turn(f.loop);
    assert_false(kept);
    turns(&f); /* the store answers */
    assert_true(kept);
    slow_goes_on(&slow);
    assert_int_equal(last_event(&slow).cancelled.said.len, said.len);
    slow_end(&slow);
    fixture_done(&f);
    buf_done(&said);
}

static void a_few_replies_are_read_at_a_time(void **state) {
    struct fixture *f = *state;
    enum { ALL = 3 * LONG_REPLY_READS_MAX };
    static struct slow slow[ALL];
    size_t most = 0;
    struct buf said[ALL];
    for (size_t i = 0; i < ALL; i++) {
        char session[16];
        snprintf(session, sizeof(session), "s%zu", i);
        buf_init(&said[i], MIB);
        slow_start_in(&slow[i], f, session);
        speak_and_store(&slow[i], &said[i]);
    }
    run_host_cancel(&f->host, STR("the server stopped"));
    while (fake_store_loads(f->store)) {
        if (fake_store_loads(f->store) > most) most = fake_store_loads(f->store);
        fake_store_answer(f->store, 0);
        loop_turn(f->loop);
        loop_turn(f->loop);
    }
    assert_int_equal(most, LONG_REPLY_READS_MAX);
    for (size_t i = 0; i < ALL; i++) {
        slow_goes_on(&slow[i]);
        assert_int_equal(last_event(&slow[i]).cancelled.said.len, said[i].len);
        slow_end(&slow[i]);
        buf_done(&said[i]);
    }
}

static void without_a_store_and_while_it_lags_behind_the_text_stays(void **state) {
    (void)state;
    for (int with_store = 0; with_store < 2; with_store++) {
        struct fixture f;
        struct slow slow;
        struct buf said;
        buf_init(&said, MIB);
        fixture_init(&f, with_store);
        slow_start(&slow, &f);
        if (with_store) fake_store_always_lose(f.store, ERR_UNAVAILABLE);
        speak(&f, asked(&f), &said);
        tick(&f);
        assert_int_equal(slow.run->long_reply.state, LONG_REPLY_HELD);
        assert_int_equal(conversation_reply(&slow.run->conversation).len, said.len);
        if (with_store) fake_store_always_commit(f.store);
        slow_goes_on(&slow);
        fake_done(asked(&f), "m-1");
        slow_goes_on(&slow);
        assert_int_equal(last_event(&slow).kind, EVENT_DONE);
        slow_end(&slow);
        fixture_done(&f);
        buf_done(&said);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_the_moves_of_the_table_are_allowed),
        cmocka_unit_test(a_slow_callers_reply_is_not_held_and_its_end_repeats_it),
        cmocka_unit_test(text_that_was_stored_before_the_caller_lagged_is_not_held),
        cmocka_unit_test(while_memory_is_scarce_no_stored_text_is_held),
        cmocka_unit_test(a_turn_that_is_ended_meanwhile_repeats_it_as_well),
        cmocka_unit_test(text_before_a_call_is_back_before_the_call_is_recorded),
        cmocka_unit_test(what_comes_while_it_is_read_ends_the_turn_once),
        cmocka_unit_test(a_flush_waits_for_the_ends_of_turns),
        STORED_TURN_TEST(a_few_replies_are_read_at_a_time),
        cmocka_unit_test(without_a_store_and_while_it_lags_behind_the_text_stays),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
