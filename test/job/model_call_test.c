/* A call of a model outside a turn: its clocks, its pace, its cost, its ending. */
#include "job/model_call.h"

#include "fake/provider_fake.h" /* named here: the build links them */
#include "fake/store_fake.h"
#include "turn/fixture.h"

#include "provider/dialect.h"
#include "session/directory.h"

struct asked_model {
    struct fixture f;
    struct model_call *call;
    struct message words;
    struct provider_request request;
    struct model_call_clocks clocks;
    uint64_t asked_ms;
    struct cursor *cursor;
    struct buf seen;
    bool reads;
};

static void m_init(struct asked_model *m, bool with_store) {
    *m = (struct asked_model){.words = {.role = MESSAGE_USER, .text = STR("hi")}, /* */
                              .clocks = {60000, 30000, 120000},
                              .reads = true};
    fixture_init(&m->f, with_store);
    m->request = (struct provider_request){.agent = STR("manager"),
                                           .model = STR("m-1"),
                                           .system = STR_EMPTY,
                                           .messages = &m->words,
                                           .message_count = 1,
                                           .schema = STR_EMPTY};
    buf_init(&m->seen, MIB);
}

static void read_on(void *ctx) {
    struct asked_model *m = ctx;
    struct event event = {0};
    while (m->reads && cursor_next(m->cursor, &event)) write_event(&m->seen, &event);
}

static bool begin(struct asked_model *m, struct err *e) {
    struct model_call_options options = {.host = &m->f.host,
                                         .engine = &m->f.engine,
                                         .provider = m->f.model,
                                         .request = &m->request,
                                         .workspace = STR("w"),
                                         .user = STR("u"),
                                         .text = STR("hi"),
                                         .contract = STR("test"),
                                         .asked_ms = m->asked_ms,
                                         .clocks = m->clocks};
    return model_call_start(&options, &m->call, e);
}

/* Its reader paces it. */
static void ask(struct asked_model *m) {
    struct err e;
    if (!begin(m, &e)) fail_msg("%s", e.text);
    assert_true(
        cursor_open(model_call_journal(m->call), 0, m->f.loop, read_on, m, &m->cursor, &e));
    cursor_pace(m->cursor);
}

static struct provider_call *out(struct asked_model *m) {
    return fake_call(m->f.model, 0);
}

static void assert_said(struct asked_model *m, const char *expected) {
    turns(&m->f);
    assert_str(buf_str(&m->seen), expected);
}

/* It is over, in the directory too. */
static void m_done(struct asked_model *m) {
    struct session_runs runs;
    turns(&m->f);
    assert_int_equal(fake_calls(m->f.model), 0);
    directory_of_session(session_table_directory(m->f.engine.sessions), STR("w"), STR("u"),
                         STR(""), &runs);
    assert_int_equal(runs.count, 0);
    cursor_close(m->cursor);
    model_call_unref(m->call);
    buf_done(&m->seen);
    fixture_done(&m->f);
}

static int setup(void **state) {
    struct asked_model *m = MEM_NEW(struct asked_model);
    m_init(m, false);
    *state = m;
    return 0;
}

static int setup_stored(void **state) {
    struct asked_model *m = MEM_NEW(struct asked_model);
    m_init(m, true);
    *state = m;
    return 0;
}

static int teardown(void **state) {
    struct asked_model *m = *state;
    m_done(m);
    free(m);
    return 0;
}

/* --- the reply ---------------------------------------------------------------------------- */

static void a_reply_is_text_usage_and_done(void **state) {
    struct asked_model *m = *state;
    ask(m);
    fake_thinking(out(m), STR("hm"));
    fake_text(out(m), STR("Hello"));
    fake_usage(out(m), 3, 4);
    fake_done(out(m), "m-1.2");
    assert_said(m, "started(hi) thinking(hm) text(Hello) usage(0 3) done(m-1.2)");
}

static void the_request_is_its_own_copy(void **state) {
    struct asked_model *m = *state;
    char text[] = "what?", model[] = "m-9";
    m->words.text = str_from(text);
    m->request.model = str_from(model);
    ask(m);
    memset(text, 'x', sizeof(text) - 1);
    memset(model, 'x', sizeof(model) - 1);
    assert_str(fake_request(out(m))->messages[0].text, "what?");
    assert_str(fake_request(out(m))->model, "m-9");
    fake_done(out(m), "m");
}

static void a_character_that_is_cut_waits_for_its_rest(void **state) {
    struct asked_model *m = *state;
    ask(m);
    fake_text(out(m), STR("Gr\xC3"));
    fake_text(out(m), STR("\xBC\xC3\x9F"
                          "e\xC3"));
    fake_done(out(m), "m");
    assert_said(m, "started(hi) text(Gr) text(\xC3\xBC\xC3\x9F"
                   "e) text(\xEF\xBF\xBD) usage(0 -1) done(m)");
}

static void how_a_reply_ended_stands_before_its_end(void **state) {
    (void)state;
    static const struct {
        const char *note, *tool, *item;
    } rows[] = {
        {NULL, NULL, ""},
        {"somebody else was asked", NULL, ""},
        {NULL, "search", " item=tool_call"},
        {PROVIDER_CUT_NOTE, NULL, " item=length"},
        {PROVIDER_CUT_NOTE, "search", " item=length"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct asked_model m;
        struct cursor *glance;
        struct event event = {0};
        struct buf seen;
        struct err e;
        m_init(&m, false);
        ask(&m);
        fake_text(out(&m), STR("a"));
        if (rows[i].note) fake_note(out(&m), rows[i].note);
        if (rows[i].tool) fake_tool_call(out(&m), "c1", rows[i].tool, "{}");
        fake_done(out(&m), "m");
        turns(&m.f);
        buf_init(&seen, KIB);
        assert_true(
            cursor_open(model_call_journal(m.call), 0, m.f.loop, NULL, NULL, &glance, &e));
        while (cursor_next(glance, &event)) {
            if (event.kind != EVENT_ITEM) continue;
            assert_str(event.item.type, MODEL_CALL_FINISH);
            buf_printf(&seen, " item=" STR_FMT, STR_ARG(event.item.bytes));
        }
        assert_int_equal(event.kind, EVENT_DONE);
        cursor_close(glance);
        assert_str(buf_str(&seen), rows[i].item);
        buf_done(&seen);
        m_done(&m);
    }
}

/* --- failures ----------------------------------------------------------------------------- */

static void a_failure_keeps_its_code_and_its_reason(void **state) {
    struct asked_model *m = *state;
    ask(m);
    fake_fail(out(m), ERR_RESOURCE_EXHAUSTED, PROVIDER_RATE_LIMITED);
    assert_said(m, "started(hi) failed(RESOURCE_EXHAUSTED PROVIDER_RATE_LIMITED)");
}

static void what_was_said_before_a_failure_is_counted(void **state) {
    struct asked_model *m = *state;
    ask(m);
    fake_text(out(m), STR("Let me"));
    fake_fail(out(m), ERR_UNAVAILABLE, PROVIDER_ERROR);
    assert_said(m, "started(hi) text(Let me) usage(0 -1) failed(UNAVAILABLE PROVIDER_ERROR)");
}

static void a_filter_fails_what_has_not_begun_and_ends_what_has(void **state) {
    (void)state;
    struct asked_model m;
    m_init(&m, false);
    ask(&m);
    fake_fail(out(&m), ERR_PERMISSION_DENIED, MODEL_REFUSED);
    assert_said(&m, "started(hi) failed(PERMISSION_DENIED MODEL_REFUSED)");
    m_done(&m);
    m_init(&m, false);
    ask(&m);
    fake_text(out(&m), STR("First,"));
    fake_fail(out(&m), ERR_PERMISSION_DENIED, MODEL_REFUSED);
    assert_said(&m, "started(hi) text(First,) usage(0 -1) item(" MODEL_CALL_FINISH ") done()");
    m_done(&m);
}

static void a_reply_that_cannot_be_stored_fails(void **state) {
    struct asked_model *m = *state;
    ask(m);
    fake_text(out(m), STR("yes"));
    turns(&m->f);
    fake_store_always_lose(m->f.store, ERR_UNAVAILABLE);
    fake_done(out(m), "m");
    assert_said(m, "started(hi) text(yes) usage(0 -1) failed(UNAVAILABLE STORE_UNAVAILABLE)");
}

/* A store that is flushed gives up what it cannot write, also of a reply that still comes. */
static void one_that_is_lost_on_its_way_asks_no_further(void **state) {
    struct asked_model *m = *state;
    bool flushed = false;
    ask(m);
    turns(&m->f);
    fake_text(out(m), STR("Hello"));
    fake_store_always_lose(m->f.store, ERR_UNAVAILABLE);
    keeper_flush(m->f.keeper, fixture_kept, &flushed);
    turns(&m->f);
    assert_true(flushed);
    assert_int_equal(fake_calls(m->f.model), 0);
    assert_said(m, "started(hi) text(Hello) failed(UNAVAILABLE STORE_UNAVAILABLE)");
}

/* --- clocks: C5 --------------------------------------------------------------------------- */

#define TIMED_OUT "failed(DEADLINE_EXCEEDED PROVIDER_TIMEOUT)"

static void the_first_word_has_its_time(void **state) {
    struct asked_model *m = *state;
    ask(m);
    loop_advance(m->f.loop, 59999);
    assert_said(m, "started(hi)");
    loop_advance(m->f.loop, 1);
    assert_said(m, "started(hi) " TIMED_OUT);
}

static void time_that_was_waited_before_it_is_gone(void **state) {
    struct asked_model *m = *state;
    loop_advance(m->f.loop, 20000); /* for a slot, since the request at 0 */
    ask(m);
    loop_advance(m->f.loop, 39999);
    assert_said(m, "started(hi)");
    loop_advance(m->f.loop, 1);
    assert_said(m, "started(hi) " TIMED_OUT);
}

static void a_request_that_waited_too_long_fails_at_once(void **state) {
    struct asked_model *m = *state;
    loop_advance(m->f.loop, 130000);
    ask(m);
    assert_int_equal(fake_calls(m->f.model), 1);
    loop_advance(m->f.loop, 0);
    assert_said(m, "started(hi) " TIMED_OUT);
}

static void silence_between_two_words_has_its_time(void **state) {
    struct asked_model *m = *state;
    ask(m);
    loop_advance(m->f.loop, 50000);
    fake_thinking(out(m), STR("hm"));
    loop_advance(m->f.loop, 29999);
    fake_text(out(m), STR("a"));
    loop_advance(m->f.loop, 29999);
    assert_said(m, "started(hi) thinking(hm) text(a)");
    loop_advance(m->f.loop, 1);
    assert_said(m, "started(hi) thinking(hm) text(a) usage(0 -1) " TIMED_OUT);
}

static void the_whole_is_not_made_longer_by_words(void **state) {
    struct asked_model *m = *state;
    ask(m);
    for (size_t i = 0; i < 5; i++) {
        loop_advance(m->f.loop, 20000);
        fake_text(out(m), STR("."));
    }
    loop_advance(m->f.loop, 19999);
    assert_int_equal(fake_calls(m->f.model), 1);
    loop_advance(m->f.loop, 1);
    turns(&m->f);
    assert_true(str_find(buf_str(&m->seen), STR(TIMED_OUT)) < m->seen.len);
}

static void a_clock_of_zero_does_not_run(void **state) {
    struct asked_model *m = *state;
    m->clocks = (struct model_call_clocks){0, 0, 0};
    ask(m);
    loop_advance(m->f.loop, 10000000);
    fake_text(out(m), STR("a"));
    loop_advance(m->f.loop, 10000000);
    fake_done(out(m), "m");
    assert_said(m, "started(hi) text(a) usage(0 -1) done(m)");
}

/* --- pace: B1 ----------------------------------------------------------------------------- */

static void flood(struct asked_model *m) {
    static char words[16 * KIB];
    memset(words, 'x', sizeof(words));
    for (size_t i = 0; i < 64 && !fake_paused(out(m)); i++) {
        fake_text(out(m), str_of(words, sizeof(words)));
        loop_turn(m->f.loop);
    }
}

static void a_reader_that_lags_pauses_the_model_and_its_silence(void **state) {
    struct asked_model *m = *state;
    buf_done(&m->seen);
    buf_init(&m->seen, 4 * MIB);
    ask(m);
    turns(&m->f);
    m->reads = false;
    flood(m);
    assert_true(fake_paused(out(m)));
    uint64_t ahead = journal_appended(model_call_journal(m->call));
    assert_in_range(ahead, 2, 4);   /* 32 KiB, in pieces of 16 */
    loop_advance(m->f.loop, 60000); /* twice the silence that it may have */
    assert_int_equal(fake_calls(m->f.model), 1);
    m->reads = true;
    read_on(m);
    turns(&m->f);
    assert_false(fake_paused(out(m)));
    loop_advance(m->f.loop, 29999);
    assert_int_equal(fake_calls(m->f.model), 1);
    loop_advance(m->f.loop, 1);
    turns(&m->f);
    assert_int_equal(fake_calls(m->f.model), 0);
    assert_true(str_find(buf_str(&m->seen), STR(TIMED_OUT)) < m->seen.len);
}

/* Two may hold it: the caller and a reader that lags. It goes on when neither does. */
static void a_caller_that_holds_pauses_the_model_and_its_silence(void **state) {
    struct asked_model *m = *state;
    ask(m);
    fake_text(out(m), STR("a"));
    turns(&m->f);
    model_call_hold(m->call, true);
    model_call_hold(m->call, true);
    assert_true(fake_paused(out(m)));
    loop_advance(m->f.loop, 60000);
    assert_int_equal(fake_calls(m->f.model), 1);
    model_call_hold(m->call, false);
    assert_false(fake_paused(out(m)));
    m->reads = false;
    flood(m);
    assert_true(fake_paused(out(m)));
    model_call_hold(m->call, true);
    model_call_hold(m->call, false);
    assert_true(fake_paused(out(m)));
    loop_advance(m->f.loop, 60000);
    turns(&m->f);
    model_call_hold(m->call, true); /* it is over */
}

static void the_whole_runs_out_also_while_it_is_paused(void **state) {
    struct asked_model *m = *state;
    ask(m);
    turns(&m->f);
    m->reads = false;
    flood(m);
    loop_advance(m->f.loop, 120000);
    turns(&m->f);
    assert_int_equal(fake_calls(m->f.model), 0);
}

static void a_reader_that_goes_lets_a_paused_model_go_on(void **state) {
    struct asked_model *m = *state;
    ask(m);
    turns(&m->f);
    m->reads = false;
    flood(m);
    cursor_close(m->cursor);
    m->cursor = NULL;
    turns(&m->f);
    assert_false(fake_paused(out(m)));
    fake_done(out(m), "m");
}

/* --- who ends it -------------------------------------------------------------------------- */

static void a_cancelled_call_asks_no_provider_any_more(void **state) {
    struct asked_model *m = *state;
    ask(m);
    fake_text(out(m), STR("a"));
    model_call_cancel(m->call, STR("the caller left"));
    assert_int_equal(fake_calls(m->f.model), 0);
    assert_said(m, "started(hi) text(a) usage(0 -1) cancelled(the caller left)");
    model_call_cancel(m->call, STR("again")); /* harmless */
    loop_advance(m->f.loop, 200000);          /* no clock is left */
    assert_said(m, "started(hi) text(a) usage(0 -1) cancelled(the caller left)");
}

static void another_call_may_cancel_it_by_its_run(void **state) {
    struct asked_model *m = *state;
    ask(m);
    assert_true(directory_cancel(session_table_directory(m->f.engine.sessions),
                                 journal_run(model_call_journal(m->call)),
                                 STR("an operator stopped it")));
    assert_said(m, "started(hi) cancelled(an operator stopped it)");
}

/* --- money -------------------------------------------------------------------------------- */

static void set_budget(struct asked_model *m, const struct budget *budget) {
    m->f.engine.ledger = ledger_new(NULL, m->f.loop);
    m->f.engine.budgets = budget;
    m->f.engine.budget_count = 1;
}

static void a_budget_without_room_refuses_it_before_the_model_is_asked(void **state) {
    (void)state;
    static const struct budget budget = {STR_INIT(""), STR_INIT(""), BUDGET_DAY, 0, 100};
    struct asked_model m;
    struct err e;
    m_init(&m, false);
    set_budget(&m, &budget);
    assert_false(begin(&m, &e)); /* 256 tokens of a reply are reserved */
    assert_int_equal(e.code, ERR_RESOURCE_EXHAUSTED);
    assert_int_equal(fake_calls_ever(m.f.model), 0);
    ledger_free(m.f.engine.ledger);
    buf_done(&m.seen);
    fixture_done(&m.f);
}

static void a_reply_that_outgrows_its_budget_goes_on(void **state) {
    struct asked_model *m = *state;
    static const struct budget budget = {STR_INIT(""), STR_INIT(""), BUDGET_DAY, 0, 300};
    static char words[2 * KIB];
    struct err e;
    set_budget(m, &budget);
    memset(words, 'x', sizeof(words));
    ask(m);
    assert_true(fake_text(out(m), str_of(words, sizeof(words))));
    struct model_call *first = m->call;
    assert_false(begin(m, &e)); /* it holds all there is, and more */
    m->call = first;
    fake_done(out(m), "m");
    turns(&m->f);
    assert_true(str_ends(buf_str(&m->seen), STR("usage(0 -1) done(m)")));
    ledger_free(m->f.engine.ledger);
    m->f.engine.ledger = NULL;
}

static void what_was_counted_is_what_the_budget_loses(void **state) {
    struct asked_model *m = *state;
    static const struct budget budget = {STR_INIT(""), STR_INIT(""), BUDGET_DAY, 0, 300};
    struct err e;
    set_budget(m, &budget);
    ask(m);
    fake_text(out(m), STR("yes"));
    fake_usage(out(m), 50, 1);
    fake_done(out(m), "m");
    turns(&m->f);
    struct model_call *first = m->call;
    assert_false(begin(m, &e));
    assert_int_equal(e.code, ERR_RESOURCE_EXHAUSTED);
    m->call = first;
    ledger_free(m->f.engine.ledger);
    m->f.engine.ledger = NULL;
}

static void a_request_that_is_too_large_is_refused(void **state) {
    (void)state;
    struct asked_model m;
    struct err e;
    m_init(&m, false);
    m.f.engine.limits.memory_max_bytes = 1;
    m.words.text = STR("a few words more than that");
    assert_false(begin(&m, &e));
    assert_int_equal(e.code, ERR_RESOURCE_EXHAUSTED);
    m.f.engine.limits = run_limits_default;
    buf_done(&m.seen);
    fixture_done(&m.f);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
#define STORED(name) cmocka_unit_test_setup_teardown(name, setup_stored, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        STORED(a_reply_is_text_usage_and_done),
        TEST(the_request_is_its_own_copy),
        TEST(a_character_that_is_cut_waits_for_its_rest),
        cmocka_unit_test(how_a_reply_ended_stands_before_its_end),
        STORED(a_failure_keeps_its_code_and_its_reason),
        TEST(what_was_said_before_a_failure_is_counted),
        cmocka_unit_test(a_filter_fails_what_has_not_begun_and_ends_what_has),
        STORED(a_reply_that_cannot_be_stored_fails),
        STORED(one_that_is_lost_on_its_way_asks_no_further),
        TEST(the_first_word_has_its_time),
        TEST(time_that_was_waited_before_it_is_gone),
        TEST(a_request_that_waited_too_long_fails_at_once),
        TEST(silence_between_two_words_has_its_time),
        TEST(the_whole_is_not_made_longer_by_words),
        TEST(a_clock_of_zero_does_not_run),
        TEST(a_reader_that_lags_pauses_the_model_and_its_silence),
        TEST(a_caller_that_holds_pauses_the_model_and_its_silence),
        TEST(the_whole_runs_out_also_while_it_is_paused),
        TEST(a_reader_that_goes_lets_a_paused_model_go_on),
        STORED(a_cancelled_call_asks_no_provider_any_more),
        TEST(another_call_may_cancel_it_by_its_run),
        cmocka_unit_test(a_budget_without_room_refuses_it_before_the_model_is_asked),
        TEST(a_reply_that_outgrows_its_budget_goes_on),
        TEST(what_was_counted_is_what_the_budget_loses),
        cmocka_unit_test(a_request_that_is_too_large_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
