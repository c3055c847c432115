#include "session/waiting.h"
#include "turn/restore_run.h"

#include "fake/provider_fake.h" /* named here: the build links them */
#include "fake/store_fake.h"
#include "fixture.h"
#include "record/record.h"
#include "session/directory.h"
#include "turn/await_tools.h"
#include "turn/dormant_wake.h"
#include "turn/lost_calls.h"
#include "turn/recover.h"
#include "turn/request_item.h"

/* --- a process that ends and begins again ------------------------------------------------- */

/* Ask a human whether he may. */
static void ask_human(struct fixture *f, const char *id, const char *words) {
    if (*words) assert_true(fake_text(asked(f), str_from(words)));
    assert_true(fake_approval(asked(f), id, "May I?"));
    fake_done(asked(f), "m");
    loop_advance(f->loop, 1000);
    turns(f);
}

/* All is on disk; what waits for a human stays as it is, and all memory of it goes. */
static void restart(struct fixture *f) {
    bool kept = false;
    run_host_cancel(&f->host, STR("the server stops"));
    keeper_flush(f->keeper, fixture_kept, &kept);
    turns(f);
    assert_true(kept);
    assert_int_equal(f->host.run_count, 0);
    run_host_done(&f->host);
    session_table_free(f->engine.sessions);
    f->engine.sessions = session_table_new(f->store);
    run_host_init(&f->host, &f->engine, f->loop, f->keeper);
}

struct recovery_seen {
    struct fixture *f; /* NULL: the process ends before anything is back */
    size_t times;
    struct recovered found;
    bool failed;
};

static void on_recovered(const struct recovered *found, const struct err *failed, void *ctx) {
    struct recovery_seen *seen = ctx;
    seen->times++;
    seen->found = *found;
    seen->failed = failed != NULL;
    const struct session_name name = {STR("w"), STR("u"), STR("s")};
    if (!seen->f) return;
    assert_int_equal(session_has_pending(seen->f->engine.sessions, &name), found->waiting > 0);
}

static void recover(struct fixture *f, size_t waiting, size_t interrupted) {
    struct recovery_seen seen = {.f = f};
    recover_start(f->store, &f->host, NULL, on_recovered, &seen);
    turns(f);
    assert_int_equal(seen.times, 1);
    assert_false(seen.failed);
    assert_int_equal(seen.found.waiting, waiting);
    assert_int_equal(seen.found.interrupted, interrupted);
    assert_int_equal(f->host.run_count, waiting);
}

/* The last process worked by a clock that was an hour ahead. */
static void a_clock_that_was_set_back_gives_no_id_twice(void **state) {
    struct fixture *f = *state;
    struct event begun = {.kind = EVENT_STARTED,
                          .agent = STR("manager"),
                          .started = {.workspace = STR("w"),
                                      .user = STR("u"),
                                      .session = STR("s"),
                                      .text = STR("x"),
                                      .contract = STR("test")}};
    struct event done = {.kind = EVENT_DONE, .done = {.model = STR_INIT("m-1")}};
    uint64_t ahead = record_new_id(&f->engine) + ((uint64_t)3600000 << 20);
    struct turn turn;
    struct buf events;
    buf_init(&events, KIB);
    assert_true(event_encode(&begun, &events) && event_encode(&done, &events));
    fake_store_put(f->store, ahead, 1, buf_str(&events));
    buf_done(&events);
    restart(f);
    recover(f, 0, 0);
    fake_store_always_commit(f->store);
    for (uint64_t i = 1; i <= 3; i++) {
        say(&turn, f, "x");
        assert_int_equal(run_id(turn.run), ahead + i);
        reply(f, "an answer");
        end(&turn);
    }
}

static void restart_and_recover(struct fixture *f) {
    restart(f);
    recover(f, 1, 0);
}

/* --- a run that leaves memory ------------------------------------------------------------- */

static struct dormant_runs *dormant_of(struct fixture *f) {
    return directory_dormant(session_table_directory(f->engine.sessions));
}

/* One look comes in that time after it waited long enough, whenever that was. */
static void fall_asleep(struct fixture *f, size_t count) {
    loop_advance(f->loop, 2 * f->engine.limits.approval_doze_ms);
    assert_int_equal(dormant_runs_count(dormant_of(f)), count);
}

static void on_awake(const struct err *failed, void *ctx) {
    assert_null(failed);
    (*(size_t *)ctx)++;
}

static void wake_all(struct fixture *f) {
    const struct dormant_filter all = {.run = 0};
    size_t times = 0;
    struct directory *directory = session_table_directory(f->engine.sessions);
    struct dormant_wake *wake =
        dormant_wake_start(directory, &all, DORMANT_WAKE_MAX, f->loop, on_awake, &times);
    assert_non_null(wake);
    assert_int_equal(times, 0);
    turns(f);
    assert_int_equal(times, 1);
    assert_int_equal(dormant_runs_count(dormant_of(f)), 0);
}

static void sleep_and_wake(struct fixture *f) {
    const struct session_name name = {STR("w"), STR("u"), STR("s")};
    fall_asleep(f, 1);
    assert_int_equal(f->host.run_count, 0);
    assert_true(session_has_pending(f->engine.sessions, &name));
    wake_all(f);
    assert_int_equal(f->host.run_count, 1);
    assert_true(session_has_pending(f->engine.sessions, &name));
}

/* --- a script, played again: with a restart at the question, and after it left memory ----- */

enum telling { STAYS, RESTARTS, SLEEPS, SLEEPS_TWICE, TELLINGS };

typedef void script_fn(struct fixture *f);

#define TO_WALLY "{\"agent_name\":\"wally\"}"

static void write_asked(struct fixture *f, struct buf *out) {
    const struct provider_request *request = fake_request(asked(f));
    buf_printf(out, "[" STR_FMT "] %zu:", STR_ARG(request->agent), request->turn_start);
    for (size_t i = 0; i < request->message_count; i++) {
        write_message(out, &request->messages[i]);
    }
}

/* What the model is asked after the answer, what is seen, and what is remembered. */
static void play(script_fn *script, enum telling how, bool meanwhile, struct buf *ret) {
    struct fixture f;
    struct turn turn, later;
    fixture_init(&f, true);
    say(&turn, &f, "before");
    reply(&f, "long ago");
    end(&turn);
    say(&turn, &f, "x");
    script(&f);
    end(&turn);
    if (meanwhile) { /* a turn that began later, and is no part of what this one is asked */
        say(&turn, &f, "else");
        reply(&f, "meanwhile");
        end(&turn);
    }
    if (how == RESTARTS) restart_and_recover(&f);
    if (how >= SLEEPS) sleep_and_wake(&f);
    if (how == SLEEPS_TWICE) sleep_and_wake(&f);
    answer_as_human(&later, &f, "yes");
    buf_init(ret, MIB);
    write_asked(&f, ret);
    reply(&f, "fine");
    turns(&f);
    buf_append(ret, buf_str(&later.seen));
    end(&later);
    say(&turn, &f, "?");
    write_asked(&f, ret);
    run_cancel(turn.run, STR("enough"));
    end(&turn);
    fixture_done(&f);
}

static void assert_same(script_fn *script, const char *begins) {
    for (int meanwhile = 0; meanwhile < 2; meanwhile++) {
        struct buf once, again;
        play(script, STAYS, meanwhile, &once);
        buf_append_byte(&once, '\0');
        once.len--;
        for (enum telling how = RESTARTS; how < TELLINGS; how++) {
            play(script, how, meanwhile, &again);
            assert_str(buf_str(&again), once.at);
            buf_done(&again);
        }
        assert_str(str_head(buf_str(&once), strlen(begins)), begins);
        buf_done(&once);
    }
}

static void only_asks(struct fixture *f) {
    ask_human(f, "a1", "");
}

static void says_and_asks(struct fixture *f) {
    ask_human(f, "a1", "I must ask");
}

static void hand_to(struct fixture *f, const char *id, const char *to, const char *words) {
    char args[80];
    snprintf(args, sizeof(args), "{\"agent_name\":\"%s\"}", to);
    if (*words) assert_true(fake_text(asked(f), str_from(words)));
    assert_true(fake_tool_call(asked(f), id, "transfer_to_agent", args));
    fake_done(asked(f), "m");
    loop_advance(f->loop, 1000);
    turns(f);
}

static void use_search(struct fixture *f, const char *id, const char *words) {
    if (*words) assert_true(fake_text(asked(f), str_from(words)));
    assert_true(fake_tool_call(asked(f), id, "search", "{}"));
    fake_done(asked(f), "m");
    loop_advance(f->loop, 1000);
    turns(f);
    fake_tool_answer(f->search, fake_tool_calls(f->search) - 1, "{\"r\":1}");
    loop_advance(f->loop, 1000);
    turns(f);
}

static void asks_after_a_transfer(struct fixture *f) {
    hand_to(f, "t1", "wally", "wally?");
    ask_human(f, "a1", "hm");
}

static void asks_after_a_transfer_without_a_word(struct fixture *f) {
    hand_to(f, "t1", "wally", " ");
    ask_human(f, "a1", "");
}

static void asks_after_a_transfer_to_nobody(struct fixture *f) {
    hand_to(f, "t1", "nobody", "nobody?");
    ask_human(f, "a1", "");
}

static void asks_after_tools(struct fixture *f) {
    use_search(f, "c1", "let me see");
    use_search(f, "c2", "");
    ask_human(f, "a1", "seen");
}

/* One part of several replies: one Turn, and one memory. */
static void asks_after_tools_and_a_transfer(struct fixture *f) {
    use_search(f, "c1", "let me see, ");
    hand_to(f, "t1", "wally", "wally?");
    use_search(f, "c2", "and I ");
    hand_to(f, "t2", "manager", "say yes");
    ask_human(f, "a1", "so?");
}

/* A transfer beside a tool does not end a part. */
static void asks_after_a_transfer_beside_a_tool(struct fixture *f) {
    assert_true(fake_text(asked(f), STR("both ")));
    assert_true(
        fake_tool_call(asked(f), "t1", "transfer_to_agent", "{\"agent_name\":\"wally\"}"));
    assert_true(fake_tool_call(asked(f), "c1", "search", "{}"));
    fake_done(asked(f), "m");
    loop_advance(f->loop, 1000);
    turns(f);
    if (fake_tool_calls(f->search)) fake_tool_answer(f->search, 0, "{\"r\":1}");
    loop_advance(f->loop, 1000);
    turns(f);
    hand_to(f, "t2", "manager", "done");
    ask_human(f, "a1", "so?");
}

/* Some models count before they have said everything. */
static void counts_before_it_has_spoken(struct fixture *f) {
    assert_true(fake_text(asked(f), STR("I ")));
    assert_true(fake_usage(asked(f), 3, 4));
    ask_human(f, "a1", "must ask");
}

static void asks_again(struct fixture *f) {
    struct turn later;
    ask_human(f, "a1", "first");
    answer_as_human(&later, f, "no \"you\"");
    hand_to(f, "t1", "wally", "he says no");
    ask_human(f, "a2", "second");
    end(&later);
}

static void it_goes_on_after_a_restart_as_it_would_have_without_one(void **state) {
    (void)state;
    assert_same(only_asks, "[manager] 2: user=before agent/manager=long ago user=x "
                           "call/request_approval={} result={\"answer\":\"yes\"} user=yes");
    assert_same(says_and_asks,
                "[manager] 2: user=before agent/manager=long ago user=x agent/manager=I must "
                "ask call/request_approval={}");
}

static void it_goes_on_with_the_agent_that_asked(void **state) {
    (void)state;
    assert_same(asks_after_a_transfer, "[wally] 2:");
    assert_same(asks_after_a_transfer_without_a_word, "[wally] 2:");
    assert_same(asks_after_a_transfer_to_nobody, "[manager] 2:");
}

static void its_parts_are_what_they_were(void **state) {
    (void)state;
    assert_same(asks_after_tools, "[manager] 2:");
    assert_same(asks_after_tools_and_a_transfer, "[manager] 2:");
    assert_same(asks_after_a_transfer_beside_a_tool, "");
    assert_same(counts_before_it_has_spoken, "[manager] 2:");
}

static void an_answer_before_stays_answered(void **state) {
    (void)state;
    assert_same(asks_again, "[wally] 2:");
}

static void it_is_done_with_the_reply_that_ends_it(void **state) {
    struct fixture *f = *state;
    struct turn turn, later;
    say(&turn, f, "x");
    asks_after_tools_and_a_transfer(f);
    end(&turn);
    restart_and_recover(f);
    answer_as_human(&later, f, "yes");
    reply(f, "fine");
    loop_advance(f->loop, 1000);
    assert_seen(&later, "result(a1 {\"answer\":\"yes\"}) text(fine) usage(5 -1) done(m-1 "
                        "manager=fine)");
    end(&later);
}

/* --- out of memory, and back -------------------------------------------------------------- */

static void a_run_with_a_reader_stays_in_memory(void **state) {
    struct fixture *f = *state;
    struct turn turn;
    say(&turn, f, "x");
    ask_human(f, "a1", "");
    run_unref(turn.run);
    turn.run = NULL;
    fall_asleep(f, 0); /* its journal is read */
    fall_asleep(f, 0);
    cursor_close(turn.cursor);
    turn.cursor = NULL;
    buf_done(&turn.seen);
    fall_asleep(f, 1);
    assert_int_equal(f->host.run_count, 0);
}

/* Only a summary that replaced the history is missing from a run that is read back by itself. */
static void a_run_whose_summary_was_given_up_leaves_memory(void **state) {
    struct fixture *f = *state;
    struct turn turn;
    for (size_t i = 0; i < HISTORY_TURNS_MAX; i++) {
        say(&turn, f, "more");
        reply(f, "ok");
        end(&turn);
    }
    f->agents[0].window_tokens = 128000;
    say(&turn, f, "x");
    assert_int_equal(fake_request(asked(f))->message_count, 1);
    reply(f, " "); /* no summary */
    ask_human(f, "a1", "");
    end(&turn);
    fall_asleep(f, 1);
}

static void several_wait_in_the_order_in_which_they_did(void **state) {
    struct fixture *f = *state;
    struct turn turn;
    char id[8];
    for (int i = 0; i < 3; i++) {
        say(&turn, f, "x");
        snprintf(id, sizeof(id), "a%d", i);
        ask_human(f, id, "");
        end(&turn);
    }
    fall_asleep(f, 3);
    wake_all(f);
    uint64_t last = 0;
    for (int i = 0; i < 3; i++) {
        const struct session_name name = {STR("w"), STR("u"), STR("s")};
        struct journal *journal;
        uint64_t seq;
        struct err e;
        assert_int_equal(
            session_answer_pending(f->engine.sessions, &name, STR("yes"), &journal, &seq, &e),
            PENDING_TAKEN);
        assert_true(journal_run(journal) > last);
        last = journal_run(journal);
        journal_unref(journal);
    }
    turns(f);
    run_host_cancel(&f->host, STR("over"));
    turns(f);
}

/* Two ask for it at once, one of them leaves: the other one hears of it. */
static void it_is_brought_back_once_for_all_callers(void **state) {
    struct fixture *f = *state;
    struct turn turn;
    size_t times = 0;
    const struct dormant_filter all = {.run = 0};
    say(&turn, f, "x");
    ask_human(f, "a1", "");
    end(&turn);
    fall_asleep(f, 1);
    struct directory *directory = session_table_directory(f->engine.sessions);
    struct dormant_wake *wakes[3];
    for (size_t i = 0; i < 3; i++)
        wakes[i] =
            dormant_wake_start(directory, &all, DORMANT_WAKE_MAX, f->loop, on_awake, &times);
    loop_turn(f->loop);
    assert_int_equal(fake_store_loads(f->store), 1);
    dormant_wake_cancel(wakes[0]);
    turns(f);
    assert_int_equal(times, 2);
    assert_int_equal(f->host.run_count, 1);
    assert_null(
        dormant_wake_start(directory, &all, DORMANT_WAKE_MAX, f->loop, on_awake, &times));
    run_host_cancel(&f->host, STR("over"));
    turns(f);
}

/* An answer to a dormant run is refused with the hint to wake it, and is not lost. */
static void an_answer_finds_that_it_sleeps(void **state) {
    struct fixture *f = *state;
    struct turn turn, later;
    say(&turn, f, "x");
    ask_human(f, "a1", "");
    end(&turn);
    fall_asleep(f, 1);
    struct pending_answered answered;
    struct pending_answer answer = {.name = {STR("w"), STR("u"), STR("s")}, .text = STR("yes")};
    struct err e;
    assert_int_equal(session_settle(f->engine.sessions, &answer, &answered, &e),
                     PENDING_ASLEEP);
    answer.name.user = ANY_USER;
    assert_int_equal(session_settle(f->engine.sessions, &answer, &answered, &e),
                     PENDING_ASLEEP);
    answer.name.session = STR("t");
    assert_int_equal(session_settle(f->engine.sessions, &answer, &answered, &e), PENDING_NONE);
    wake_all(f);
    answer_as_human(&later, f, "yes");
    reply(f, "fine");
    loop_advance(f->loop, 1000);
    end(&later);
}

static void a_deadline_wakes_it(void **state) {
    struct fixture *f = *state;
    struct turn turn;
    f->engine.limits.approval_max_ms = 60 * 60 * 1000;
    say(&turn, f, "x");
    ask_human(f, "a1", "");
    end(&turn);
    fall_asleep(f, 1);
    assert_true(timer_waits(&f->host.doze));
    run_host_cancel(&f->host, STR("over"));
    assert_false(timer_waits(&f->host.doze));
    assert_int_equal(dormant_runs_count(dormant_of(f)), 0);
}

/* --- the runs of another replica ---------------------------------------------------------- */

/* Whether they are this one's now is not known. It must end, so that another one takes them. */
static void a_takeover_that_failed_says_whether_they_may_be_ours(void **state) {
    struct fixture *f = *state;
    static const enum err_code codes[] = {ERR_UNAVAILABLE, ERR_OUTCOME_UNKNOWN};
    fake_store_share(f->store);
    for (size_t i = 0; i < ARRAY_LEN(codes); i++) {
        struct recovery_seen seen = {0};
        fake_store_ask_me(f->store);
        recover_start(f->store, &f->host, NULL, on_recovered, &seen);
        fake_store_run(f->store, 0); /* it fences the dead */
        loop_turn(f->loop);
        fake_store_fail(f->store, 0, codes[i]);
        loop_turn(f->loop);
        assert_int_equal(seen.times, 1);
        assert_true(seen.failed);
        assert_int_equal(seen.found.inherited, codes[i] == ERR_OUTCOME_UNKNOWN);
    }
    fake_store_always_commit(f->store);
}

/* --- how often, and when not -------------------------------------------------------------- */

static void it_waits_through_any_number_of_restarts(void **state) {
    struct fixture *f = *state;
    struct turn turn, later;
    say(&turn, f, "x");
    ask_human(f, "a1", "I must ask");
    end(&turn);
    size_t sent = fake_store_sent(f->store);
    for (size_t i = 0; i < 5; i++) restart_and_recover(f);
    assert_int_equal(fake_store_sent(f->store), sent); /* and leaves no trace */
    answer_as_human(&later, f, "yes");
    reply(f, "fine");
    loop_advance(f->loop, 1000);
    end(&later);
    restart(f);
    recover(f, 0, 0);
}

/* It needs its session only once it is answered. */
static void it_waits_again_before_its_session_is_read(void **state) {
    struct fixture *f = *state;
    struct turn turn;
    struct recovery_seen seen = {0};
    say(&turn, f, "x");
    ask_human(f, "a1", "");
    end(&turn);
    restart(f);
    recover_start(f->store, &f->host, NULL, on_recovered, &seen);
    for (size_t i = 0; i < 2; i++) { /* what was not over, and that run */
        assert_int_equal(fake_store_loads(f->store), 1);
        fake_store_answer(f->store, 0);
        loop_turn(f->loop);
    }
    assert_int_equal(fake_store_loads(f->store), 0);
    assert_int_equal(seen.times, 1);
    assert_int_equal(seen.found.waiting, 1);
    assert_true(session_has_pending(f->engine.sessions,
                                    &(struct session_name){STR("w"), STR("u"), STR("s")}));
    restart_and_recover(f);
    restart(f);
}

/* Begin to recover, up to the question for the events of the only run that is not over. */
static void recover_to_the_run(struct fixture *f, struct recovery_seen *seen) {
    recover_start(f->store, &f->host, NULL, on_recovered, seen);
    fake_store_answer(f->store, 0);
    loop_turn(f->loop);
    assert_int_equal(fake_store_loads(f->store), 1);
}

/* It did not end, and waits in the next process. */
static void a_store_that_is_away_ends_no_run(void **state) {
    struct fixture *f = *state;
    struct turn turn;
    struct recovery_seen seen = {0};
    say(&turn, f, "x");
    ask_human(f, "a1", "");
    end(&turn);
    restart(f);
    size_t sent = fake_store_sent(f->store);
    recover_to_the_run(f, &seen);
    fake_store_refuse(f->store, 0, ERR_UNAVAILABLE);
    turns(f);
    assert_int_equal(seen.times, 1);
    assert_true(seen.failed);
    assert_int_equal(seen.found.interrupted, 0);
    assert_int_equal(fake_store_sent(f->store), sent);
    restart_and_recover(f);
    restart(f);
}

static struct event last_event_of(const struct store_write *write) {
    struct str rest = buf_str(&write->rows[0].bytes);
    struct store_section section;
    struct event event = {0};
    struct err e;
    bool bad = false;
    assert_true(store_section_next(&rest, &section, &bad));
    while (section.events.len) assert_true(event_decode(&section.events, &event, &e));
    return event;
}

/* What it did is not known, so its key must not begin it again. */
static void one_whose_events_are_damaged_may_have_acted(void **state) {
    struct fixture *f = *state;
    struct turn turn;
    struct recovery_seen seen = {0};
    say(&turn, f, "x");
    ask_human(f, "a1", "");
    end(&turn);
    restart(f);
    fake_store_ask_me(f->store);
    recover_to_the_run(f, &seen);
    fake_store_refuse(f->store, 0, ERR_DATA_LOSS);
    turns(f);
    assert_int_equal(fake_store_writes(f->store), 1);
    struct event event = last_event_of(fake_store_write(f->store, 0));
    assert_int_equal(event.kind, EVENT_FAILED);
    assert_true(event.failed.acted);
    fake_store_commit(f->store, 0);
    turns(f);
    assert_int_equal(seen.times, 1);
    assert_false(seen.failed);
    assert_int_equal(seen.found.interrupted, 1);
    fake_store_always_commit(f->store);
}

/* --- what the caller asked for ------------------------------------------------------------ */

static const struct tool_offer brought_tools[] = {
    {STR_INIT("weather"), STR_INIT("\"now\""), STR_INIT("{\"type\":\"object\"}")},
};

static struct run_request shaped_request(void) {
    struct run_request request = request_of("x");
    request.schema = STR(" {\"type\": \"object\",\n\"required\": [\"a\"]}");
    request.schema_loose = true;
    request.tools = brought_tools;
    request.tool_count = 1;
    request.tool_choice = STR("weather");
    request.args_as_text = true;
    return request;
}

static void assert_as_asked_for(struct fixture *f, const struct str *choice) {
    const struct provider_request *request = fake_request(asked(f));
    assert_true(str_equal(str_trim(request->schema), str_trim(shaped_request().schema)));
    assert_true(request->schema_loose);
    assert_true(str_equal(request->tool_choice, choice ? *choice : STR_EMPTY));
    const struct tool_offer *last = &request->tools[request->tool_count - 1];
    assert_str(last->name, "weather");
    assert_str(last->description, "\"now\"");
    assert_str(last->parameters, "{\"type\":\"object\"}");
}

static bool has_seen(struct turn *turn, const char *words) {
    turns(turn->f);
    struct str seen = buf_str(&turn->seen);
    return str_find(seen, str_from(words)) < seen.len;
}

/* The second question adds no second copy. */
static void what_the_caller_asked_for_holds_after_a_restart(void **state) {
    (void)state;
    for (enum telling how = STAYS; how < TELLINGS; how++) {
        struct fixture f;
        struct turn turn, first, second;
        struct run_request request = shaped_request();
        fixture_init(&f, true);
        start(&turn, &f, &request);
        assert_as_asked_for(&f, &request.tool_choice);
        ask_human(&f, "a1", "");
        assert_true(has_seen(&turn, "item(" REQUEST_ITEM ")"));
        end(&turn);
        if (how == RESTARTS) restart_and_recover(&f);
        if (how >= SLEEPS) sleep_and_wake(&f);
        answer_as_human(&first, &f, "yes");
        assert_as_asked_for(&f, NULL);
        ask_human(&f, "a2", "");
        assert_false(has_seen(&first, "item("));
        end(&first);
        if (how == RESTARTS) restart_and_recover(&f);
        if (how >= SLEEPS) sleep_and_wake(&f);
        answer_as_human(&second, &f, "yes");
        assert_as_asked_for(&f, NULL);
        assert_true(fake_tool_call(asked(&f), "c1", "weather", "{\"in\": "));
        fake_done(asked(&f), "m");
        loop_advance(f.loop, 1000);
        turns(&f);
        assert_true(has_seen(&second, "call(c1 weather {\"in\": )"));
        assert_true(has_seen(&second, "done("));
        end(&second);
        fixture_done(&f);
    }
}

/* Most of its memory is the caller's tools, which are read back once. */
static void large_tools_of_a_caller_fit_in_its_memory_again(void **state) {
    (void)state;
    char parameters[24 * KIB] = "{\"type\":\"object\",\"description\":\"";
    size_t begun = strlen(parameters), left = sizeof(parameters) - begun;
    memset(parameters + begun, 'x', left);
    memcpy(parameters + sizeof(parameters) - 2, "\"}", 2);
    const struct tool_offer tool = {STR("weather"), STR("now"),
                                    str_of(parameters, sizeof(parameters))};
    for (enum telling how = STAYS; how < TELLINGS; how++) {
        struct fixture f;
        struct turn turn, answered;
        struct run_request request = request_of("x");
        request.tools = &tool;
        request.tool_count = 1;
        fixture_init(&f, true);
        f.engine.limits.memory_max_bytes = 40 * KIB;
        start(&turn, &f, &request);
        ask_human(&f, "a1", "");
        end(&turn);
        if (how == RESTARTS) restart_and_recover(&f);
        if (how >= SLEEPS) sleep_and_wake(&f);
        answer_as_human(&answered, &f, "yes");
        const struct provider_request *asked_for = fake_request(asked(&f));
        const struct tool_offer *last = &asked_for->tools[asked_for->tool_count - 1];
        assert_true(str_equal(last->parameters, tool.parameters));
        reply(&f, "fine");
        end(&answered);
        fixture_done(&f);
    }
}

/* What is asked for in a plain turn needs no copy, and neither does a plain question. */
static void only_a_question_has_it_written(void **state) {
    struct fixture *f = *state;
    struct turn turn;
    struct run_request request = shaped_request();
    start(&turn, f, &request);
    reply(f, "{\"a\":1}");
    assert_false(has_seen(&turn, "item("));
    end(&turn);
    say(&turn, f, "x");
    ask_human(f, "a1", "");
    assert_false(has_seen(&turn, "item("));
    run_cancel(turn.run, STR("enough"));
    end(&turn);
}

static void a_copy_that_is_none_of_ours_is_refused(void **state) {
    struct fixture *f = *state;
    static const char *const wrong[] = {
        "",
        "{",
        "{\"schema\":{}}",
        "{\"schema\":{\"type\":5},\"schema_loose\":false}",
        "{\"tools\":[]}",
        "{\"args_as_text\":true,\"tools\":[5]}",
        "{\"args_as_text\":true,\"tools\":[{\"name\":\"n\",\"description\":\"\"}]}",
        ("{\"args_as_text\":true,\"tools\":[{\"name\":\"n\",\"description\":\"\","
         "\"parameters\":[]}]}"),
    };
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        struct turn turn;
        say(&turn, f, "x");
        if (run_restore_request(turn.run, str_from(wrong[i]))) fail_msg("%s", wrong[i]);
        run_cancel(turn.run, STR("enough"));
        end(&turn);
        turns(f);
    }
}

static void without_its_agent_it_was_interrupted(void **state) {
    struct fixture *f = *state;
    struct turn turn;
    say(&turn, f, "x");
    asks_after_a_transfer(f);
    end(&turn);
    restart(f);
    f->engine.agent_count = 1; /* wally has left */
    recover(f, 0, 1);
    restart(f);
    recover(f, 0, 0); /* reported once */
}

/* What it is read back from holds its text twice, and it itself held it once. */
static void one_that_does_not_fit_in_its_memory_was_interrupted(void **state) {
    struct fixture *f = *state;
    struct turn turn;
    char text[4 * KIB];
    memset(text, 'x', sizeof(text) - 1);
    text[sizeof(text) - 1] = '\0';
    f->engine.limits.memory_max_bytes = 6 * KIB;
    say(&turn, f, text);
    ask_human(f, "a1", "");
    end(&turn);
    restart(f);
    recover(f, 0, 1);
    restart(f);
    recover(f, 0, 0); /* reported once */
}

/* --- agents that have to be fetched ------------------------------------------------------- */

struct finder {
    struct engine *engine;
    recover_engine_fn *answer;
    void *ctx;
    size_t asked, left;
};

static struct engine *find_later(struct str contract, const struct session_name *name,
                                 recover_engine_fn *answer, void *answer_ctx, void **ret_ask,
                                 void *ctx) {
    struct finder *finder = ctx;
    assert_str(contract, "test");
    assert_str(name->workspace, "w");
    assert_str(name->user, "u");
    assert_str(name->session, "s");
    finder->asked++;
    finder->answer = answer;
    finder->ctx = answer_ctx;
    *ret_ask = finder;
    return NULL;
}

static struct engine *find_at_once(struct str contract, const struct session_name *name,
                                   recover_engine_fn *answer, void *answer_ctx, void **ret_ask,
                                   void *ctx) {
    find_later(contract, name, answer, answer_ctx, ret_ask, ctx);
    *ret_ask = NULL;
    return ((struct finder *)ctx)->engine;
}

static void leave(void *ask) {
    ((struct finder *)ask)->left++;
}

/* wally asks a human, and the settings do not know him. */
static void leave_with_wally(struct fixture *f) {
    struct turn turn;
    fixture_init(f, true);
    say(&turn, f, "x");
    asks_after_a_transfer(f);
    end(&turn);
    restart(f);
    f->engine.agent_count = 1;
}

static void an_agent_from_elsewhere_is_asked_for_and_waits_on(void **state) {
    (void)state;
    for (int later = 0; later < 2; later++) {
        struct fixture f;
        struct turn turn;
        struct engine other;
        leave_with_wally(&f);
        engine_derive(&f.engine, &other);
        other.agent_count = 2;
        struct finder finder = {.engine = &other};
        struct recovery_seen seen = {.f = &f};
        const struct recover_helpers helpers = {
            .agents = {later ? find_later : find_at_once, leave, &finder}};
        recover_start(f.store, &f.host, &helpers, on_recovered, &seen);
        turns(&f);
        assert_int_equal(finder.asked, 1);
        if (later) {
            assert_int_equal(seen.times, 0);
            assert_int_equal(f.host.run_count, 0);
            finder.answer(&other, finder.ctx);
            turns(&f);
        }
        assert_int_equal(seen.times, 1);
        assert_int_equal(seen.found.waiting, 1);
        assert_int_equal(seen.found.interrupted, 0);
        answer_as_human(&turn, &f, "yes");
        assert_str(fake_request(asked(&f))->agent, "wally");
        reply(&f, "fine");
        turns(&f);
        end(&turn);
        assert_int_equal(finder.left, 0);
        assert_int_equal(other.refs, 0);
        fixture_done(&f);
    }
}

static void a_run_whose_agents_are_unknown_was_interrupted(void **state) {
    (void)state;
    struct fixture f;
    leave_with_wally(&f);
    struct finder finder = {0};
    struct recovery_seen seen = {.f = &f};
    const struct recover_helpers helpers = {.agents = {find_later, leave, &finder}};
    recover_start(f.store, &f.host, &helpers, on_recovered, &seen);
    turns(&f);
    finder.answer(&f.engine, finder.ctx);
    turns(&f);
    assert_int_equal(seen.times, 1);
    assert_int_equal(seen.found.interrupted, 1);
    fixture_done(&f);
}

static void a_stop_leaves_it_for_the_next_process(void **state) {
    (void)state;
    struct fixture f;
    leave_with_wally(&f);
    struct finder finder = {0};
    struct recovery_seen seen = {.f = &f};
    const struct recover_helpers helpers = {.agents = {find_later, leave, &finder}};
    struct recovery *recovery = recover_start(f.store, &f.host, &helpers, on_recovered, &seen);
    turns(&f);
    recover_stop(recovery);
    assert_int_equal(finder.left, 1);
    for (size_t answered = 0; answered < 2; answered++) { /* while the store is asked */
        recovery = recover_start(f.store, &f.host, &helpers, on_recovered, &seen);
        for (size_t i = 0; i < answered; i++) {
            fake_store_answer(f.store, 0);
            loop_turn(f.loop);
        }
        recover_stop(recovery);
        turns(&f);
    }
    recover_stop(NULL);
    assert_int_equal(seen.times, 0);
    f.engine.agent_count = 2;
    recover(&f, 1, 0);
    restart(&f);
    fixture_done(&f);
}

/* An agent that left but does not ask is not needed. */
static void without_an_agent_that_spoke_before_it_goes_on(void **state) {
    struct fixture *f = *state;
    struct turn turn;
    say(&turn, f, "x");
    asks_after_tools_and_a_transfer(f);
    end(&turn);
    restart(f);
    f->engine.agent_count = 1;
    recover(f, 1, 0);
    restart(f);
}

static void a_run_that_is_cancelled_stays_cancelled(void **state) {
    struct fixture *f = *state;
    struct turn turn;
    struct live_view view;
    say(&turn, f, "x");
    ask_human(f, "a1", "");
    uint64_t run = run_id(turn.run);
    end(&turn);
    restart_and_recover(f);
    struct directory *directory = session_table_directory(f->engine.sessions);
    assert_true(directory_find(directory, run, &view));
    assert_int_equal(view.state, RUN_WAITING);
    assert_str(view.session, "s");
    live_view_done(&view);
    assert_true(directory_cancel(directory, run, STR("enough")));
    loop_advance(f->loop, 1000);
    turns(f);
    assert_int_equal(f->host.run_count, 0);
    assert_false(directory_find(directory, run, &view));
    restart(f);
    recover(f, 0, 0);
}

/* --- calls that a human allows, and calls that were out ----------------------------------- */

static const struct agent_tool writing_asks[] = {{STR_INIT("write"), TOOL_ASK}};

static void want_to_write(struct fixture *f) {
    f->agents[0].tools = writing_asks;
    f->agents[0].tool_count = 1;
    assert_true(fake_text(asked(f), STR("now")));
    assert_true(fake_opaque(asked(f), "odd", "[signed]"));
    assert_true(fake_tool_call(asked(f), "c1", "write", "{\"k\":1}"));
    assert_true(fake_tool_call(asked(f), "c2", "search", "{}"));
    assert_true(fake_tool_call(asked(f), "c3", "write", "{\"k\":3}"));
    fake_done(asked(f), "m");
    turns(f);
    fake_tool_answer(f->search, 0, "{\"hit\":1}");
    loop_advance(f->loop, 1000);
    turns(f);
}

static void a_call_that_waits_for_a_human_waits_on_after_a_restart(void **state) {
    struct fixture *f = *state;
    struct turn turn, first, second;
    say(&turn, f, "x");
    want_to_write(f);
    end(&turn);
    restart_and_recover(f);
    answer_as_human(&first, f, "{\"decision\":\"edit\",\"args\":{\"k\":2}}");
    assert_str(fake_tool_args(f->write, 0), "{\"k\":2}");
    fake_tool_answer(f->write, 0, "{}");
    loop_advance(f->loop, 1000);
    turns(f);
    end(&first);
    restart_and_recover(f);
    answer_as_human(&second, f, "no");
    assert_asked(f, "user=x opaque=[signed] agent/manager=now call/write={\"k\":2} "
                    "call/search={} call/write={\"k\":3} result={\"hit\":1} result={} "
                    "result={\"error\":\"a human refused this call\"}!");
    reply(f, "well");
    end(&second);
    restart(f);
    assert_history(f, "user=x opaque=[signed] agent/manager=now call/write={\"k\":2} "
                      "call/search={} call/write={\"k\":3} result={\"hit\":1} result={} "
                      "result={\"error\":\"a human refused this call\"}! "
                      "agent/manager=well");
}

/* What is asked about a call of the manager's, in a reply that also hands the turn to wally, who has
 * no such tool. */
static const struct agent_tool searching[] = {{STR_INIT("search"), TOOL_ALLOW}};

static void asks_to_write_beside_a_transfer(struct fixture *f) {
    f->agents[0].picks_tools = f->agents[1].picks_tools = true;
    f->agents[0].tools = writing_asks;
    f->agents[1].tools = searching;
    f->agents[0].tool_count = f->agents[1].tool_count = 1;
    assert_true(fake_tool_call(asked(f), "t1", "transfer_to_agent", TO_WALLY));
    assert_true(fake_tool_call(asked(f), "c1", "write", "{\"k\":1}"));
    fake_done(asked(f), "m");
    loop_advance(f->loop, 1000);
    turns(f);
}

static void assert_asks(const struct turn *turn, const char *question) {
    assert_true(str_ends(buf_str(&turn->seen), str_from(question)));
}

static void a_transfer_waits_until_a_human_has_answered_about_its_reply(void **state) {
    (void)state;
    for (int restarts = 0; restarts < 2; restarts++) {
        struct fixture f;
        struct turn turn, answered;
        fixture_init(&f, true);
        say(&turn, &f, "x");
        asks_to_write_beside_a_transfer(&f);
        assert_asks(&turn, "May 'manager' use the tool 'write' with {\"k\":1}? (yes or no))");
        end(&turn);
        if (restarts) restart_and_recover(&f);
        answer_as_human(&answered, &f, "yes");
        assert_int_equal(fake_tool_calls(f.write), 1);
        assert_str(fake_tool_args(f.write, 0), "{\"k\":1}");
        fake_tool_answer(f.write, 0, "{\"w\":1}");
        loop_advance(f.loop, 1000);
        turns(&f);
        assert_str(fake_request(asked(&f))->agent, "wally");
        assert_asked(&f, "user=x call/transfer_to_agent=" TO_WALLY " call/write={\"k\":1} "
                         "result={\"w\":1} result={}");
        reply(&f, "ok");
        end(&answered);
        fixture_done(&f);
    }
}

/* It was recorded as one that may be repeated, and is none any more. */
static void a_call_of_a_tool_that_has_changed_is_not_made(void **state) {
    struct fixture *f = *state;
    struct turn turn;
    f->write->idempotent = true;
    say(&turn, f, "x");
    asks_to_write_beside_a_transfer(f);
    end(&turn);
    restart_and_recover(f);
    f->write->idempotent = false;
    answer_as_human(&turn, f, "yes");
    loop_advance(f->loop, 1000);
    turns(f);
    assert_int_equal(fake_tool_calls(f->write), 0);
    assert_asked(f, "user=x call/transfer_to_agent=" TO_WALLY " call/write={\"k\":1} "
                    "result={\"error\":\"tool 'write' was not called: it has changed since; "
                    "call it again\"}! result={}");
    reply(f, "ok");
    end(&turn);
}

static void hear_aside(struct fixture *f, const char *key) {
    struct arena *arena = arena_new(MIB);
    struct pending_answered answered;
    struct err e;
    const struct pending_answer answer = {.name = request_of("").name,
                                          .text = STR("why?"),
                                          .key = str_from(key),
                                          .key_user = STR("u"),
                                          .print = STR("p"),
                                          .asks_again = true,
                                          .arena = arena};
    assert_int_equal(session_settle(f->engine.sessions, &answer, &answered, &e),
                     PENDING_UNDECIDED);
    arena_free(arena);
    turns(f);
}

static void words_that_come_again_after_a_restart_are_kept_once(void **state) {
    struct fixture *f = *state;
    struct turn turn;
    say(&turn, f, "x");
    want_to_write(f);
    end(&turn);
    for (size_t i = 0; i < 3; i++) {
        hear_aside(f, "k1");
        restart_and_recover(f);
    }
    hear_aside(f, "k2");
    answer_as_human(&turn, f, "no");
    end(&turn);
    answer_as_human(&turn, f, "no");
    assert_asked(f, "user=x opaque=[signed] agent/manager=now call/write={\"k\":1} "
                    "call/search={} call/write={\"k\":3} result={\"hit\":1} "
                    "result={\"error\":\"a human refused this call\"}! "
                    "result={\"error\":\"a human refused this call\"}! user=why? user=why?");
    reply(f, "ok");
    end(&turn);
}

#define UNKNOWN                                                                                \
    "{\"effect\":\"unknown\",\"error\":\"the server stopped while this call was out: it may "  \
    "or "                                                                                      \
    "may not have had its effect. Find out before you call it again\"}"

/* The process dies: what it would still write never reaches the disk. */
static void die(struct fixture *f) {
    fake_store_always_lose(f->store, ERR_UNAVAILABLE);
    restart(f);
    fake_store_always_commit(f->store);
}

static void a_call_that_was_out_is_not_made_again_and_the_next_turn_knows(void **state) {
    struct fixture *f = *state;
    struct turn turn;
    say(&turn, f, "x");
    assert_true(fake_tool_call(asked(f), "c1", "write", "{}"));
    assert_true(fake_tool_call(asked(f), "c2", "search", "{}"));
    fake_done(asked(f), "m");
    turns(f);
    assert_int_equal(fake_tool_calls(f->write), 1);
    fake_tool_answer(f->search, 0, "{\"hit\":1}");
    loop_advance(f->loop, 1000); /* that is on disk */
    turns(f);
    end(&turn);
    die(f);
    recover(f, 0, 1);
    assert_int_equal(fake_tool_calls(f->write), 0);
    assert_history(f, "user=x! call/write={} call/search={} result={\"hit\":1} "
                      "result=" UNKNOWN "!");
    restart(f);
    recover(f, 0, 0); /* reported once */
}

/* One result, and the end of the run. */
static void assert_ended(struct str events, const char *call_id, bool acted) {
    struct event result = {0}, end = {0};
    struct err e;
    assert_true(event_decode(&events, &result, &e) && event_decode(&events, &end, &e));
    assert_int_equal(result.kind, EVENT_TOOL_RESULT);
    assert_str(result.tool_result.call_id, call_id);
    assert_true(result.tool_result.error);
    assert_int_equal(end.kind, EVENT_FAILED);
    assert_int_equal(end.failed.acted, acted);
    assert_int_equal(events.len, 0);
}

static void a_call_without_approval_was_never_made(void **state) {
    (void)state;
    struct lost_calls calls;
    size_t unknown;
    struct buf events;
    struct event event = {
        .kind = EVENT_TOOL_CALL,
        .agent = STR("manager"),
        .tool_call = {STR_INIT("c1"), STR_INIT("write"), STR_INIT("{}"), .held = true}};
    static const struct {
        const char *decision;
        size_t unknown;
    } cases[] = {{"", 0},
                 {"{\"decision\":\"refuse\"}", 0},
                 {"{\"decision\":\"approve\"}", 1},
                 {"{\"decision\":\"edit\",\"args\":{}}", 1}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        buf_init(&events, KIB);
        assert_true(event_encode(&event, &events));
        struct event decided = {.kind = EVENT_TOOL_RESULT,
                                .agent = STR("manager"),
                                .tool_result = {STR_INIT("approve-c1"),
                                                str_from(cases[i].decision), false, STR_EMPTY}};
        if (*cases[i].decision) assert_true(event_encode(&decided, &events));
        lost_calls_init(&calls);
        assert_true(lost_calls_read(&calls, buf_str(&events)));
        buf_clear(&events);
        assert_true(lost_calls_end(&calls, true, &lost_by_stop, &events, &unknown));
        assert_int_equal(unknown, cases[i].unknown);
        assert_int_equal(lost_calls_acted(&calls), cases[i].unknown);
        assert_ended(buf_str(&events), "c1", cases[i].unknown);
        lost_calls_done(&calls);
        buf_done(&events);
    }
}

/* Agents whose servers have answered, or not yet. */
static void know_tools(struct fixture *f, struct engine *next, struct agent agents[3],
                       bool awaits) {
    memcpy(agents, f->agents, sizeof(f->agents));
    for (size_t i = 0; i < 3; i++) agents[i].awaits_tools = awaits;
    *next = f->engine;
    next->agents = agents;
    next->refs = 1;
}

/* The servers of the process after are still starting when the human answers. */
static void an_answered_turn_waits_for_tools_as_a_fresh_one_does(void **state) {
    (void)state;
    enum { COME, LATE, CANCELLED, ENDS };
    for (int how = COME; how < ENDS; how++) {
        struct fixture f;
        struct turn turn, later;
        struct engine next;
        struct agent agents[3];
        fixture_init(&f, true);
        say(&turn, &f, "x");
        ask_human(&f, "a1", "");
        end(&turn);
        for (size_t i = 0; i < 3; i++) f.agents[i].awaits_tools = true;
        restart_and_recover(&f);
        know_tools(&f, &next, agents, false);
        size_t before = fake_calls(f.model);
        answer_as_human(&later, &f, "yes");
        turns(&f);
        assert_int_equal(fake_calls(f.model), before);
        if (how == COME) run_host_use(&f.host, &next);
        if (how == LATE) loop_advance(f.loop, AWAIT_TOOLS_MS);
        if (how == CANCELLED) run_host_cancel(&f.host, STR("the server stops"));
        turns(&f);
        assert_int_equal(fake_calls(f.model), before + (how != CANCELLED));
        if (how != CANCELLED) reply(&f, "fine");
        turns(&f);
        assert_int_equal(f.host.run_count, 0);
        end(&later);
        run_host_use(&f.host, &f.engine);
        assert_int_equal(next.refs, 1); /* no run keeps it */
        fixture_done(&f);
    }
}

static void only_a_question_at_the_very_end_waits(void **state) {
    (void)state;
    struct buf events;
    buf_init(&events, KIB);
    struct event event = {.kind = EVENT_APPROVAL, .agent = STR("manager")};
    assert_true(event_encode(&event, &events));
    struct store_section sections[] = {{.run = 1, .first_seq = 1, .events = buf_str(&events)},
                                       {.run = 1, .first_seq = 2, .events = STR_EMPTY}};
    assert_true(restore_run_waits(sections, 2));
    event = (struct event){.kind = EVENT_TOOL_RESULT, .agent = STR("manager")};
    assert_true(event_encode(&event, &events));
    sections[0].events = buf_str(&events);
    assert_false(restore_run_waits(sections, 2));
    assert_false(restore_run_waits(sections, 0));
    size_t whole = events.len; /* a question, cut short after another */
    assert_true(event_encode(&(struct event){.kind = EVENT_APPROVAL}, &events));
    for (size_t len = whole + 1; len <= events.len; len++) {
        struct str bytes = exact_copy(str_head(buf_str(&events), len));
        sections[0].events = bytes;
        assert_int_equal(restore_run_waits(sections, 1), len == events.len);
        free((char *)(uintptr_t)bytes.at);
    }
    buf_done(&events);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_goes_on_after_a_restart_as_it_would_have_without_one),
        cmocka_unit_test(it_goes_on_with_the_agent_that_asked),
        cmocka_unit_test(its_parts_are_what_they_were),
        cmocka_unit_test(an_answer_before_stays_answered),
        STORED_TURN_TEST(a_clock_that_was_set_back_gives_no_id_twice),
        STORED_TURN_TEST(it_is_done_with_the_reply_that_ends_it),
        STORED_TURN_TEST(a_run_with_a_reader_stays_in_memory),
        STORED_TURN_TEST(a_run_whose_summary_was_given_up_leaves_memory),
        STORED_TURN_TEST(several_wait_in_the_order_in_which_they_did),
        STORED_TURN_TEST(it_is_brought_back_once_for_all_callers),
        STORED_TURN_TEST(an_answer_finds_that_it_sleeps),
        STORED_TURN_TEST(a_deadline_wakes_it),
        STORED_TURN_TEST(a_takeover_that_failed_says_whether_they_may_be_ours),
        STORED_TURN_TEST(it_waits_through_any_number_of_restarts),
        STORED_TURN_TEST(words_that_come_again_after_a_restart_are_kept_once),
        STORED_TURN_TEST(it_waits_again_before_its_session_is_read),
        STORED_TURN_TEST(a_store_that_is_away_ends_no_run),
        STORED_TURN_TEST(one_whose_events_are_damaged_may_have_acted),
        cmocka_unit_test(what_the_caller_asked_for_holds_after_a_restart),
        cmocka_unit_test(large_tools_of_a_caller_fit_in_its_memory_again),
        STORED_TURN_TEST(only_a_question_has_it_written),
        STORED_TURN_TEST(a_copy_that_is_none_of_ours_is_refused),
        STORED_TURN_TEST(without_its_agent_it_was_interrupted),
        STORED_TURN_TEST(one_that_does_not_fit_in_its_memory_was_interrupted),
        cmocka_unit_test(an_agent_from_elsewhere_is_asked_for_and_waits_on),
        cmocka_unit_test(a_run_whose_agents_are_unknown_was_interrupted),
        cmocka_unit_test(a_stop_leaves_it_for_the_next_process),
        STORED_TURN_TEST(without_an_agent_that_spoke_before_it_goes_on),
        STORED_TURN_TEST(a_run_that_is_cancelled_stays_cancelled),
        STORED_TURN_TEST(a_call_that_waits_for_a_human_waits_on_after_a_restart),
        cmocka_unit_test(a_transfer_waits_until_a_human_has_answered_about_its_reply),
        STORED_TURN_TEST(a_call_of_a_tool_that_has_changed_is_not_made),
        STORED_TURN_TEST(a_call_that_was_out_is_not_made_again_and_the_next_turn_knows),
        cmocka_unit_test(a_call_without_approval_was_never_made),
        cmocka_unit_test(an_answered_turn_waits_for_tools_as_a_fresh_one_does),
        cmocka_unit_test(only_a_question_at_the_very_end_waits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
