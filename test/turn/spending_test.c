/* The costs of a run's model calls: an event for each call, budgets before and during it,
 * limits. */
#include "turn/run.h"

#include "fake/provider_fake.h" /* named here: the build links them */
#include "fake/store_fake.h"
#include "fixture.h"

#include "base/clock.h"
#include "budget/account.h"
#include "turn/turn.h"

#define MILLION INT64_C(1000000)
#define DOLLAR INT64_C(1000000000)

/* Prompts cost nothing here, so that a test need not know how long they are; a token of output
 * costs a thousand nano-dollars. */
static const struct price output_alone[] = {
    {.model = STR_INIT("*"), .output = DOLLAR, .cached = TOKENS_UNKNOWN},
};

struct money {
    struct fixture f;
    struct budget budget;
    struct price_book *prices;
};

static void money_init(struct money *m, int64_t cost_max, int64_t tokens_max) {
    fixture_init(&m->f, true);
    m->budget = (struct budget){STR_EMPTY, STR_EMPTY, BUDGET_MONTH, cost_max, tokens_max};
    m->prices = price_book_new(output_alone, 1);
    m->f.engine.ledger = ledger_new(m->f.store, m->f.loop);
    m->f.engine.prices = m->prices;
    m->f.engine.budgets = &m->budget;
    m->f.engine.budget_count = cost_max || tokens_max ? 1 : 0;
}

static void money_done(struct money *m) {
    turns(&m->f);
    ledger_free(m->f.engine.ledger);
    price_book_free(m->prices);
    fixture_done(&m->f);
}

static int setup(void **state) {
    struct money *m = MEM_NEW(struct money);
    money_init(m, DOLLAR, 100000);
    *state = m;
    return 0;
}

static int teardown(void **state) {
    struct money *m = *state;
    money_done(m);
    free(m);
    return 0;
}

/* What the budget still has room for. */
static struct amount left(struct money *m) {
    struct amount low = {0}, high = {m->budget.cost_nano_max + 1, m->budget.tokens_max + 1};
    struct reservation reservation;
    struct err e;
    for (int i = 0; i < 130; i++) {
        bool money = i % 2;
        struct amount middle = {money ? low.cost_nano + (high.cost_nano - low.cost_nano) / 2
                                      : 0,
                                money ? 0 : low.tokens + (high.tokens - low.tokens) / 2};
        bool fits = ledger_reserve(m->f.engine.ledger, &m->budget, 1, STR("w"), STR("manager"),
                                   clock_unix_ms(), middle, &reservation, &e);
        if (fits) ledger_settle(&reservation, (struct amount){0});
        struct amount *bound = fits ? &low : &high;
        if (money) {
            bound->cost_nano = middle.cost_nano;
        } else {
            bound->tokens = middle.tokens;
        }
    }
    return low;
}

static struct amount used(struct money *m) {
    struct amount room = left(m);
    return (struct amount){m->budget.cost_nano_max - room.cost_nano,
                           m->budget.tokens_max - room.tokens};
}

static void nothing(void *ctx) {
    (void)ctx;
}

static struct cursor *reader_of(struct turn *turn) {
    struct cursor *cursor;
    struct err e;
    assert_true(
        cursor_open(run_journal(turn->run), 0, turn->f->loop, nothing, NULL, &cursor, &e));
    return cursor;
}

/* "sequence model prompt+completion=total $cost" of each usage event that it reads. */
static void assert_usages_read(struct cursor *cursor, struct fixture *f, const char *expected) {
    struct event event = {0};
    struct buf out;
    turns(f);
    buf_init(&out, 64 * KIB);
    while (cursor_next(cursor, &event)) {
        if (event.kind != EVENT_USAGE) continue;
        const struct event_usage *usage = &event.usage;
        buf_printf(&out, "%s%lld " STR_FMT " %lld+%lld=%lld $%lld", out.len ? "; " : "",
                   (long long)usage->call_sequence, STR_ARG(usage->model),
                   (long long)usage->prompt, (long long)usage->completion,
                   (long long)usage->total, (long long)usage->cost_nano);
    }
    cursor_close(cursor);
    assert_str(buf_str(&out), expected);
    buf_done(&out);
}

static void assert_usages(struct turn *turn, const char *expected) {
    assert_usages_read(reader_of(turn), turn->f, expected);
}

static bool say_bytes(struct fixture *f, size_t count) {
    static char bytes[64 * KIB];
    memset(bytes, 'x', sizeof(bytes));
    assert_true(count <= sizeof(bytes));
    return fake_text(asked(f), str_of(bytes, count));
}

/* --- one event a call --------------------------------------------------------------------- */

static void a_call_is_priced_by_what_the_provider_counted(void **state) {
    struct money *m = *state;
    struct turn turn;
    say(&turn, &m->f, "x");
    assert_true(say_bytes(&m->f, 4000));
    assert_true(fake_usage(asked(&m->f), 50, 7));
    fake_done(asked(&m->f), "fake-1");
    assert_usages(&turn, "0 fake-1 50+7=57 $7000");
    struct amount spent = used(m);
    assert_int_equal(spent.cost_nano, 7000); /* not the thousand tokens that were guessed */
    assert_int_equal(spent.tokens, 57);
    end(&turn);
}

static void words_after_the_count_cost_nothing_twice(void **state) {
    struct money *m = *state;
    struct turn turn;
    m->f.agents[0].limits.tokens_max = 1000;
    say(&turn, &m->f, "x");
    struct cursor *reader = reader_of(&turn); /* the journal's window is less than the reply */
    assert_true(fake_usage(asked(&m->f), 50, 900));
    assert_true(say_bytes(&m->f, 3600));
    fake_done(asked(&m->f), "fake-1");
    turns(&m->f);
    assert_int_equal(run_state(turn.run), RUN_DONE);
    assert_usages_read(reader, &m->f, "0 fake-1 50+900=950 $900000");
    assert_int_equal(used(m).tokens, 950);
    end(&turn);
}

static void a_call_that_was_cancelled_is_settled_by_what_was_heard(void **state) {
    struct money *m = *state;
    struct turn turn;
    say(&turn, &m->f, "x");
    assert_true(say_bytes(&m->f, 4000));
    run_cancel(turn.run, STR("he left"));
    assert_usages(&turn, "0 m-1 -1+-1=-1 $-1"); /* without counts it is unknown, not guessed */
    struct amount spent = used(m);
    assert_int_equal(spent.cost_nano, 1001 * 1000); /* the budget takes the guess */
    assert_in_range(spent.tokens, 1002, 1100);
    end(&turn);
}

static void a_call_that_was_cancelled_before_its_first_word_had_a_prompt(void **state) {
    struct money *m = *state;
    struct turn turn;
    say(&turn, &m->f, "x");
    run_cancel(turn.run, STR("he left"));
    assert_usages(&turn, "0 m-1 -1+-1=-1 $-1");
    struct amount spent = used(m);
    assert_int_equal(spent.cost_nano, 0);
    assert_in_range(spent.tokens, 1, 100);
    end(&turn);
}

static struct event_usage usage_read(struct cursor *cursor, struct fixture *f) {
    struct event event = {0};
    struct event_usage usage = USAGE_UNKNOWN;
    turns(f);
    while (cursor_next(cursor, &event)) {
        if (event.kind == EVENT_USAGE) usage = event.usage;
    }
    cursor_close(cursor);
    usage.model = STR_EMPTY;
    return usage;
}

static struct event_usage usage_of(struct turn *turn) {
    return usage_read(reader_of(turn), turn->f);
}

static int64_t prompt_of_second_turn(bool turn_only) {
    struct money m;
    struct turn turn;
    money_init(&m, DOLLAR, 100000);
    if (turn_only) fake_reads_turn_only(m.f.model);
    say(&turn, &m.f, "what is the colour of the sky?");
    reply(&m.f, "it is blue, except at night");
    end(&turn);
    say(&turn, &m.f, "and then?");
    assert_int_equal(fake_request(asked(&m.f))->message_count, turn_only ? 1 : 3);
    assert_true(fake_text(asked(&m.f), STR("black")));
    run_cancel(turn.run, STR("he left"));
    int64_t prompt = usage_of(&turn).estimate_prompt;
    end(&turn);
    money_done(&m);
    return prompt;
}

static void a_history_that_the_model_does_not_read_is_counted_as_well(void **state) {
    (void)state;
    assert_in_range(prompt_of_second_turn(true), 15, 100);
    assert_int_equal(prompt_of_second_turn(true), prompt_of_second_turn(false));
}

static void a_cut_reply_is_booked_by_estimate_and_marked(void **state) {
    struct money *m = *state;
    struct turn turn;
    say(&turn, &m->f, "x");
    struct cursor *reader = reader_of(&turn);
    assert_true(say_bytes(&m->f, 4000));
    run_cancel(turn.run, STR("enough"));
    struct event_usage usage = usage_read(reader, &m->f);
    assert_int_equal(usage.total, TOKENS_UNKNOWN);
    assert_true(usage.estimated);
    assert_in_range(usage.estimate_prompt, 1, 100);
    assert_int_equal(usage.estimate_completion, 1001);
    assert_int_equal(usage.estimate_cost_nano, 1001000);
    assert_int_equal(used(m).cost_nano, 1001000);
    assert_int_equal(used(m).tokens, usage.estimate_prompt + 1001);
    end(&turn);
}

/* What a model thinks may be counted before the rest, and not be shown. */
static void thoughts_that_were_counted_are_a_part_of_the_estimate(void **state) {
    struct money *m = *state;
    for (int shown = 0; shown < 2; shown++) {
        struct turn turn;
        say(&turn, &m->f, "x");
        struct cursor *reader = reader_of(&turn);
        if (shown) assert_true(fake_thinking(asked(&m->f), STR("which tea does he like?")));
        assert_true(fake_thoughts(asked(&m->f), 700));
        assert_true(say_bytes(&m->f, 400));
        fake_fail(asked(&m->f), ERR_UNAVAILABLE, "PROVIDER_BROKEN");
        struct event_usage usage = usage_read(reader, &m->f);
        assert_true(usage.estimated);
        assert_int_equal(usage.completion, TOKENS_UNKNOWN);
        assert_int_equal(usage.estimate_completion, 700 + 101);
        assert_int_equal(usage.estimate_cost_nano, 801 * 1000);
        assert_int_equal(used(m).cost_nano, (shown + 1) * 801 * 1000);
        end(&turn);
    }
}

/* A provider may count the prompt at the beginning and the answer at its end. */
static void of_a_call_that_broke_the_prompt_is_what_its_provider_counted(void **state) {
    struct money *m = *state;
    struct turn turn;
    say(&turn, &m->f, "x");
    assert_true(fake_usage(asked(&m->f), 500, TOKENS_UNKNOWN));
    assert_true(say_bytes(&m->f, 400));
    fake_fail(asked(&m->f), ERR_UNAVAILABLE, "PROVIDER_BROKEN");
    struct event_usage usage = usage_of(&turn);
    assert_int_equal(usage.prompt, 500);
    assert_true(usage.estimated);
    assert_int_equal(usage.estimate_prompt, 500);
    assert_int_equal(usage.estimate_completion, 101);
    assert_int_equal(used(m).tokens, 601);
    end(&turn);
}

static void a_call_that_was_counted_is_not_estimated(void **state) {
    struct money *m = *state;
    struct turn turn;
    say(&turn, &m->f, "x");
    assert_true(fake_usage(asked(&m->f), 5, 1));
    reply(&m->f, "ok");
    assert_false(usage_of(&turn).estimated);
    end(&turn);
}

static void a_call_that_failed_without_a_word_takes_nothing_from_a_budget(void **state) {
    struct money *m = *state;
    struct turn turn;
    say(&turn, &m->f, "x");
    fake_fail(asked(&m->f), ERR_UNAVAILABLE, "PROVIDER_GONE");
    assert_usages(&turn, "0 m-1 -1+-1=-1 $-1");
    assert_int_equal(used(m).tokens, 0);
    end(&turn);
    say(&turn, &m->f, "x");
    assert_true(say_bytes(&m->f, 400));
    fake_fail(asked(&m->f), ERR_UNAVAILABLE, "PROVIDER_GONE");
    assert_usages(&turn, "0 m-1 -1+-1=-1 $-1");
    assert_int_equal(used(m).cost_nano, 101 * 1000);
    end(&turn);
}

static void a_reply_that_was_too_much_at_its_end_is_settled_as_well(void **state) {
    struct money *m = *state;
    struct turn turn;
    m->f.engine.limits.reply_max_bytes = 4;
    say(&turn, &m->f, "x");
    assert_true(fake_text(asked(&m->f), STR("ab\xF0\x9F"))); /* held back, then too much */
    fake_done(asked(&m->f), "m");
    turns(&m->f);
    assert_int_equal(run_state(turn.run), RUN_FAILED);
    assert_usages(&turn, "0 m-1 -1+-1=-1 $-1");
    struct amount spent = used(m); /* nothing is held any more */
    assert_int_equal(spent.cost_nano, 2000);
    end(&turn);
}

/* U6 */
static void a_model_that_always_calls_a_tool_is_counted_each_time(void **state) {
    struct money *m = *state;
    struct turn turn;
    say(&turn, &m->f, "x");
    struct cursor *reader = reader_of(&turn);
    for (int call = 0; call < 25; call++) {
        assert_true(fake_tool_call(asked(&m->f), "", "search", "{}"));
        if (call % 2) assert_true(fake_usage(asked(&m->f), 1, 1));
        fake_done(asked(&m->f), "m-1");
        turns(&m->f);
        fake_tool_answer(m->f.search, 0, "{}");
        turns(&m->f);
    }
    assert_int_equal(fake_calls_ever(m->f.model), 25);
    assert_int_equal(run_state(turn.run), RUN_FAILED);
    struct buf expected;
    buf_init(&expected, 4 * KIB);
    for (int call = 0; call < 25; call++) {
        buf_printf(&expected, call % 2 ? "%s%d fake-1 1+1=2 $1000" : "%s%d m-1 -1+-1=-1 $-1",
                   call ? "; " : "", call);
    }
    buf_append_byte(&expected, '\0');
    assert_usages_read(reader, &m->f, expected.at);
    buf_done(&expected);
    assert_true(str_ends(buf_str(&turn.seen), STR("failed(RESOURCE_EXHAUSTED MODEL_CALLS)")));
    end(&turn);
}

static void the_call_that_condenses_a_history_is_counted(void **state) {
    struct money *m = *state;
    struct turn turn;
    say(&turn, &m->f, "tea or coffee?");
    assert_true(fake_usage(asked(&m->f), 3, 1));
    reply(&m->f, "tea");
    end(&turn);
    say(&turn, &m->f, "and now?");
    fake_fail(asked(&m->f), ERR_RESOURCE_EXHAUSTED, "MODEL_CONTEXT");
    turns(&m->f);
    assert_true(fake_usage(asked(&m->f), 40, 4)); /* the summary */
    reply(&m->f, "they like tea");
    assert_true(fake_usage(asked(&m->f), 5, 2));
    reply(&m->f, "cake");
    assert_usages(&turn, "0 m-1 -1+-1=-1 $-1; 1 fake-1 40+4=44 $4000; 2 fake-1 5+2=7 $2000");
    struct amount spent = used(m);
    assert_int_equal(spent.tokens, 4 + 44 + 7);
    assert_int_equal(spent.cost_nano, 7000);
    end(&turn);
}

/* --- budgets ------------------------------------------------------------------------------ */

static void a_budget_that_is_used_up_refuses_before_the_model_is_asked(void **state) {
    (void)state;
    struct money m;
    struct turn turn;
    money_init(&m, 300000, 0); /* 300 tokens of output: one such call, and half of another */
    say(&turn, &m.f, "x");
    assert_true(fake_usage(asked(&m.f), 1, 200));
    reply(&m.f, "ok");
    end(&turn);
    size_t before = fake_calls_ever(m.f.model);
    say(&turn, &m.f, "more");
    assert_seen(&turn, "started(more) failed(RESOURCE_EXHAUSTED BUDGET)");
    assert_int_equal(fake_calls_ever(m.f.model), before);
    end(&turn);
    money_done(&m);
}

/* The question for a summary is longer than the one that the turn asks. */
static void a_summary_for_keeping_that_a_budget_refuses_is_given_up(void **state) {
    (void)state;
    struct money m;
    struct turn turn;
    const size_t full = HISTORY_TURNS_MAX * 7 / 8;
    money_init(&m, 0, 1000 * 1000);
    m.f.agents[0].window_tokens = 128000;
    for (size_t i = 0; i < full; i++) {
        say(&turn, &m.f, "more");
        assert_true(fake_usage(asked(&m.f), 1, 1));
        reply(&m.f, "ok");
        end(&turn);
    }
    m.budget.tokens_max = (int64_t)full * 2 + 300;
    say(&turn, &m.f, "and now?");
    assert_int_equal(fake_request(asked(&m.f))->message_count, 2 * full + 1);
    reply(&m.f, "tea");
    assert_int_equal(run_state(turn.run), RUN_DONE);
    end(&turn);
    m.budget.tokens_max = 1000 * 1000;
    say(&turn, &m.f, "and now?");
    assert_int_equal(fake_request(asked(&m.f))->message_count, 1);
    reply(&m.f, "he likes tea");
    reply(&m.f, "tea");
    end(&turn);
    money_done(&m);
}

static void a_budget_stops_no_reply_that_has_begun(void **state) {
    (void)state;
    struct money m;
    struct turn turn;
    money_init(&m, 1000000, 0); /* 1,000 tokens */
    say(&turn, &m.f, "x");
    assert_true(say_bytes(&m.f, 2048));
    assert_true(say_bytes(&m.f, 4096)); /* 1,537 by now */
    fake_done(asked(&m.f), "fake-1");
    turns(&m.f);
    assert_int_equal(run_state(turn.run), RUN_DONE);
    end(&turn);
    say(&turn, &m.f, "more");
    assert_seen(&turn, "started(more) failed(RESOURCE_EXHAUSTED BUDGET)");
    end(&turn);
    money_done(&m);
}

/* What a model writes as arguments is output as well. */
static void thoughts_and_arguments_count_too(void **state) {
    (void)state;
    struct money m;
    struct turn turn;
    char args[3000] = "{\"x\":\"";
    memset(args + 6, 'y', sizeof(args) - 6);
    memcpy(args + sizeof(args) - 3, "\"}", 3);
    money_init(&m, 0, 0);
    m.f.agents[0].limits.cost_nano_max = 1000000;
    say(&turn, &m.f, "x");
    assert_true(fake_thinking(asked(&m.f), str_of(args + 6, 1500)));
    assert_false(fake_tool_call(asked(&m.f), "c", "search", args));
    turns(&m.f);
    assert_true(
        str_ends(buf_str(&turn.seen), STR("usage(0 -1) failed(RESOURCE_EXHAUSTED COST)")));
    end(&turn);
    money_done(&m);
}

static void say_elsewhere(struct turn *turn, struct fixture *f, const char *session) {
    struct run_request request = request_of("y");
    request.name.session = str_from(session);
    start(turn, f, &request);
    turns(f);
}

static void turns_of_unknown_cost_go_one_by_one(void **state) {
    (void)state;
    struct money m;
    struct turn one, two;
    money_init(&m, 600000, 0);
    say(&one, &m.f, "x");
    say_elsewhere(&two, &m.f, "other");
    assert_int_equal(fake_calls(m.f.model), 1);
    assert_int_equal(run_state(two.run), RUN_ASKING);
    assert_true(fake_usage(asked(&m.f), 1, 100));
    reply(&m.f, "ok");
    turns(&m.f);
    assert_int_equal(fake_calls(m.f.model), 1);
    reply(&m.f, "ok, too");
    turns(&m.f);
    assert_int_equal(run_state(one.run), RUN_DONE);
    assert_int_equal(run_state(two.run), RUN_DONE);
    end(&one);
    end(&two);
    money_done(&m);
}

static void with_a_longest_answer_they_run_side_by_side(void **state) {
    (void)state;
    struct money m;
    struct turn all[3];
    money_init(&m, 600000, 0);
    struct model_options options = MODEL_OPTIONS_NONE;
    options.output_tokens_max = 300;
    m.f.agents[0].options = options;
    say(&all[0], &m.f, "x");
    say_elsewhere(&all[1], &m.f, "b");
    say_elsewhere(&all[2], &m.f, "c");
    assert_int_equal(fake_calls(m.f.model), 2);
    assert_int_equal(used(&m).cost_nano, 600000);
    assert_true(fake_usage(asked(&m.f), 1, 10));
    reply(&m.f, "ok");
    turns(&m.f);
    assert_int_equal(fake_calls(m.f.model), 1); /* the third does not fit beside the second */
    reply(&m.f, "ok");
    turns(&m.f);
    assert_int_equal(fake_calls(m.f.model), 1);
    reply(&m.f, "ok");
    turns(&m.f);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(run_state(all[i].run), RUN_DONE);
        end(&all[i]);
    }
    money_done(&m);
}

static void a_turn_that_waits_for_a_budget_can_be_cancelled(void **state) {
    (void)state;
    struct money m;
    struct turn one, two, three;
    money_init(&m, 600000, 0);
    say(&one, &m.f, "x");
    say_elsewhere(&two, &m.f, "b");
    say_elsewhere(&three, &m.f, "c");
    run_cancel(two.run, STR("enough"));
    turns(&m.f);
    assert_int_equal(run_state(two.run), RUN_CANCELLED);
    assert_usages(&two, ""); /* it was never made */
    reply(&m.f, "ok");
    run_cancel(three.run, STR("just as it was let in"));
    turns(&m.f);
    assert_int_equal(fake_calls(m.f.model), 0);
    end(&one);
    end(&two);
    end(&three);
    money_done(&m);
}

static void a_turn_does_not_wait_for_a_budget_for_ever(void **state) {
    (void)state;
    struct money m;
    struct turn one, two;
    money_init(&m, 600000, 0);
    say(&one, &m.f, "x");
    say_elsewhere(&two, &m.f, "b");
    loop_advance(m.f.loop, 60 * 1000);
    turns(&m.f);
    assert_seen(&two, "started(y) failed(RESOURCE_EXHAUSTED BUDGET)");
    run_cancel(one.run, STR("enough"));
    end(&one);
    end(&two);
    money_done(&m);
}

/* It is answered, and the answer has not arrived when the time is over. */
static void an_answer_of_a_budget_that_is_on_its_way_is_not_too_late(void **state) {
    (void)state;
    struct money m;
    struct turn one, two;
    money_init(&m, 600000, 0);
    say(&one, &m.f, "x");
    say_elsewhere(&two, &m.f, "b");
    loop_advance(m.f.loop, 60 * 1000 - 1);
    turns(&m.f);
    assert_true(fake_usage(asked(&m.f), 1, 100));
    fake_done(asked(&m.f), "m-1");
    assert_int_equal(fake_calls(m.f.model), 0);
    loop_advance(m.f.loop, 1);
    turns(&m.f);
    assert_int_equal(fake_calls(m.f.model), 1);
    reply(&m.f, "ok");
    assert_int_equal(run_state(two.run), RUN_DONE);
    end(&one);
    end(&two);
    money_done(&m);
}

/* The other call holds what the question for a summary would need, and not what the turn needs. */
static void a_summary_for_keeping_waits_for_a_budget_only_so_long(void **state) {
    (void)state;
    struct money m;
    struct turn turn, other;
    const size_t full = HISTORY_TURNS_MAX * 7 / 8;
    char words[4001];
    memset(words, 'w', sizeof(words) - 1);
    words[sizeof(words) - 1] = '\0';
    money_init(&m, 0, 1000 * 1000);
    m.f.agents[0].window_tokens = 128000;
    for (size_t i = 0; i < full; i++) {
        say(&turn, &m.f, "more");
        assert_true(fake_usage(asked(&m.f), 1, 1));
        reply(&m.f, "ok");
        end(&turn);
    }
    m.budget.tokens_max = (int64_t)full * 2 + 1300;
    struct run_request long_one = request_of(words);
    long_one.name.session = STR("other");
    start(&other, &m.f, &long_one);
    assert_int_equal(fake_calls(m.f.model), 1);
    say(&turn, &m.f, "and now?");
    assert_int_equal(fake_calls(m.f.model), 1); /* the summary waits */
    loop_advance(m.f.loop, 60 * 1000);
    turns(&m.f);
    assert_int_equal(fake_calls(m.f.model), 2);
    assert_int_equal(fake_request(asked(&m.f))->message_count, 2 * full + 1);
    reply(&m.f, "tea");
    assert_int_equal(run_state(turn.run), RUN_DONE);
    end(&turn);
    run_cancel(other.run, STR("enough"));
    end(&other);
    money_done(&m);
}

static void a_model_without_a_price_is_limited_by_tokens_alone(void **state) {
    (void)state;
    struct money m;
    struct turn turn;
    money_init(&m, 1, 1000);
    price_book_free(m.prices);
    m.prices = price_book_new(NULL, 0);
    m.f.engine.prices = m.prices;
    say(&turn, &m.f, "x");
    assert_true(fake_usage(asked(&m.f), 400, 400));
    reply(&m.f, "ok");
    assert_usages(&turn, "0 fake-1 400+400=800 $-1");
    assert_int_equal(used(&m).tokens, 800);
    assert_int_equal(used(&m).cost_nano, 0);
    end(&turn);
    say(&turn, &m.f, "more");
    assert_seen(&turn, "started(more) failed(RESOURCE_EXHAUSTED BUDGET)");
    end(&turn);
    money_done(&m);
}

/* A new process: another ledger, the same store. */
static void spending_before_a_restart_limits_after_it(void **state) {
    (void)state;
    struct money m;
    struct turn turn;
    money_init(&m, 0, 1000);
    say(&turn, &m.f, "x");
    assert_true(fake_usage(asked(&m.f), 500, 480));
    reply(&m.f, "ok");
    end(&turn);
    ledger_free(m.f.engine.ledger);
    m.f.engine.ledger = ledger_new(m.f.store, m.f.loop);
    assert_int_equal(left(&m).tokens, 1000); /* until the store has answered */
    turns(&m.f);
    assert_int_equal(left(&m).tokens, 20);
    say(&turn, &m.f, "more");
    assert_seen(&turn, "started(more) failed(RESOURCE_EXHAUSTED BUDGET)");
    end(&turn);
    money_done(&m);
}

static void without_a_ledger_calls_are_priced_and_nothing_is_limited(void **state) {
    (void)state;
    struct money m;
    struct turn turn;
    money_init(&m, 0, 0);
    ledger_free(m.f.engine.ledger);
    m.f.engine.ledger = NULL;
    say(&turn, &m.f, "x");
    struct cursor *reader = reader_of(&turn); /* the journal's window is less than the reply */
    assert_true(say_bytes(&m.f, 30000));
    assert_true(fake_usage(asked(&m.f), 1, 2));
    reply(&m.f, "");
    assert_usages_read(reader, &m.f, "0 fake-1 1+2=3 $2000");
    end(&turn);
    money_done(&m);
}

/* The place for a count is one for all calls of a turn, and there is one for budgets only where
 * there are any. */
static void a_turn_holds_what_its_calls_needed_so_far(void **state) {
    (void)state;
    for (int64_t tokens_max = 0; tokens_max <= 1000 * 1000; tokens_max += 1000 * 1000) {
        struct money m;
        struct turn turn;
        money_init(&m, 0, tokens_max);
        say(&turn, &m.f, "x");
        const struct spending *spending = &turn.run->spending;
        assert_int_equal(spending->budgeted != NULL, tokens_max != 0);
        assert_null(spending->usage);
        assert_true(fake_tool_call(asked(&m.f), "c", "search", "{}"));
        assert_true(fake_usage(asked(&m.f), 1, 2));
        const struct event_usage *first = spending->usage;
        assert_non_null(first);
        fake_done(asked(&m.f), "m-1");
        turns(&m.f);
        fake_tool_answer(m.f.search, 0, "{}");
        turns(&m.f);
        assert_true(fake_usage(asked(&m.f), 3, 4));
        assert_ptr_equal(spending->usage, first);
        fake_done(asked(&m.f), "m-1");
        turns(&m.f);
        assert_usages(&turn, "0 fake-1 1+2=3 $2000; 1 fake-1 3+4=7 $4000");
        end(&turn);
        money_done(&m);
    }
}

/* --- limits of an agent ------------------------------------------------------------------- */

static void an_agent_stops_at_its_tokens_and_at_its_money(void **state) {
    (void)state;
    static const struct {
        struct agent_limits limits;
        const char *reason;
    } cases[] = {{{.tokens_max = 1000}, "failed(RESOURCE_EXHAUSTED TOKENS)"},
                 {{.cost_nano_max = 1000000}, "failed(RESOURCE_EXHAUSTED COST)"}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct money m;
        struct turn turn;
        money_init(&m, 0, 0);
        m.f.agents[0].limits = cases[i].limits;
        say(&turn, &m.f, "x");
        assert_true(say_bytes(&m.f, 2048));
        assert_false(say_bytes(&m.f, 2048)); /* in the middle of a reply */
        turns(&m.f);
        assert_true(str_ends(buf_str(&turn.seen), str_from(cases[i].reason)));
        end(&turn);
        say(&turn, &m.f, "x");
        assert_true(fake_tool_call(asked(&m.f), "c", "search", "{}"));
        assert_true(fake_usage(asked(&m.f), 1, 1000));
        fake_done(asked(&m.f), "m-1");
        turns(&m.f);
        fake_tool_answer(m.f.search, 0, "{}");
        turns(&m.f); /* and before the next one */
        assert_true(str_ends(buf_str(&turn.seen), str_from(cases[i].reason)));
        assert_usages(&turn, "0 fake-1 1+1000=1001 $1000000");
        end(&turn);
        money_done(&m);
    }
}

static void counts_that_nobody_can_add_up_stay_at_the_largest(void **state) {
    (void)state;
    struct money m;
    struct turn turn;
    money_init(&m, 0, 0);
    m.f.agents[0].limits.tokens_max = INT64_MAX;
    say(&turn, &m.f, "x");
    for (int call = 0; call < 2; call++) {
        assert_true(fake_tool_call(asked(&m.f), "", "search", "{}"));
        assert_true(fake_usage(asked(&m.f), INT64_MAX / 2, INT64_MAX / 2));
        fake_done(asked(&m.f), "m-1");
        turns(&m.f);
        fake_tool_answer(m.f.search, 0, "{}");
        turns(&m.f);
    }
    assert_true(str_ends(buf_str(&turn.seen), STR("failed(RESOURCE_EXHAUSTED TOKENS)")));
    end(&turn);
    money_done(&m);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_call_is_priced_by_what_the_provider_counted),
        TEST(words_after_the_count_cost_nothing_twice),
        TEST(a_call_that_was_cancelled_is_settled_by_what_was_heard),
        TEST(a_call_that_was_cancelled_before_its_first_word_had_a_prompt),
        cmocka_unit_test(a_history_that_the_model_does_not_read_is_counted_as_well),
        TEST(a_cut_reply_is_booked_by_estimate_and_marked),
        TEST(thoughts_that_were_counted_are_a_part_of_the_estimate),
        TEST(of_a_call_that_broke_the_prompt_is_what_its_provider_counted),
        TEST(a_call_that_was_counted_is_not_estimated),
        TEST(a_call_that_failed_without_a_word_takes_nothing_from_a_budget),
        TEST(a_reply_that_was_too_much_at_its_end_is_settled_as_well),
        TEST(a_model_that_always_calls_a_tool_is_counted_each_time),
        TEST(the_call_that_condenses_a_history_is_counted),
        cmocka_unit_test(a_budget_that_is_used_up_refuses_before_the_model_is_asked),
        cmocka_unit_test(a_summary_for_keeping_that_a_budget_refuses_is_given_up),
        cmocka_unit_test(a_budget_stops_no_reply_that_has_begun),
        cmocka_unit_test(thoughts_and_arguments_count_too),
        cmocka_unit_test(turns_of_unknown_cost_go_one_by_one),
        cmocka_unit_test(with_a_longest_answer_they_run_side_by_side),
        cmocka_unit_test(a_turn_that_waits_for_a_budget_can_be_cancelled),
        cmocka_unit_test(a_turn_does_not_wait_for_a_budget_for_ever),
        cmocka_unit_test(an_answer_of_a_budget_that_is_on_its_way_is_not_too_late),
        cmocka_unit_test(a_summary_for_keeping_waits_for_a_budget_only_so_long),
        cmocka_unit_test(a_model_without_a_price_is_limited_by_tokens_alone),
        cmocka_unit_test(spending_before_a_restart_limits_after_it),
        cmocka_unit_test(without_a_ledger_calls_are_priced_and_nothing_is_limited),
        cmocka_unit_test(a_turn_holds_what_its_calls_needed_so_far),
        cmocka_unit_test(an_agent_stops_at_its_tokens_and_at_its_money),
        cmocka_unit_test(counts_that_nobody_can_add_up_stay_at_the_largest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
