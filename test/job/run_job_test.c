/* A job's journal: its states, what is on disk when, and the effects of a lost disk and of a
 * restart. */
#include "job/run_job.h"

#include "fake/provider_fake.h"
#include "fake/store_fake.h"
#include "helper/moves.h"
#include "session/directory.h"
#include "session/idempotency_claims.h"
#include "spans/spans.h"
#include "turn/fixture.h"
#include "turn/recover.h"

/* Every pair of states, against the drawing in the header. */
static void only_the_drawn_moves_are_legal(void **state) {
    (void)state;
    static const char *const drawn[] = {
        "submitted queued", "submitted failed",  "submitted cancelled", "submitted timed_out",
        "queued queued",    "queued running",    "queued failed",       "queued cancelled",
        "queued timed_out", "running queued",    "running running",     "running completed",
        "running failed",   "running cancelled", "running timed_out",
    };
    assert_moves(run_job_states, RUN_JOB_STATE_COUNT, drawn, ARRAY_LEN(drawn));
    for (enum run_job_state from = 0; from < RUN_JOB_STATE_COUNT; from++)
        assert_int_equal(run_job_is_over(from), from >= RUN_JOB_COMPLETED);
}

/* --- an owner that writes down its callbacks ---------------------------------------------- */

struct owner {
    struct fixture f;
    struct run_job *job;
    struct turn reader; /* only its cursor and what it has seen */
    struct buf reported;
};

static void on_kept(void *ctx) {
    buf_append(&((struct owner *)ctx)->reported, STR("kept "));
}

static void on_running(void *ctx) {
    buf_append(&((struct owner *)ctx)->reported, STR("running "));
}

static void on_cancel(struct str why, void *ctx) {
    struct owner *owner = ctx;
    buf_printf(&owner->reported, "cancel(" STR_FMT ") ", STR_ARG(why));
    run_job_cancel(owner->job, why);
}

static void on_over(void *ctx) {
    struct owner *owner = ctx;
    buf_append(&owner->reported, STR("over "));
    run_job_free(owner->job);
    owner->job = NULL;
}

static const struct run_job_owner callbacks = {on_kept, on_running, on_cancel, on_over};

static struct run_job_options options_of(struct owner *owner) {
    return (struct run_job_options){.host = &owner->f.host,
                                    .engine = &owner->f.engine,
                                    .workspace = STR("app"),
                                    .user = STR("anna"),
                                    .text = STR("please"),
                                    .contract = STR("test-job"),
                                    .request = STR("the request"),
                                    .key = STR_EMPTY,
                                    .print = STR_EMPTY,
                                    .owner = &callbacks,
                                    .ctx = owner};
}

enum where { IN_MEMORY, ON_DISK };

static void owner_start(struct owner *owner, enum where where) {
    struct err e;
    *owner = (struct owner){.job = NULL};
    fixture_init(&owner->f, where == ON_DISK);
    buf_init(&owner->reported, KIB);
    struct run_job_options options = options_of(owner);
    assert_true(run_job_start(&options, &owner->job, &e));
    owner->reader.f = &owner->f;
    follow(&owner->reader, run_job_journal(owner->job), 0);
    run_job_submit(owner->job);
}

static void owner_end(struct owner *owner) {
    cursor_close(owner->reader.cursor);
    buf_done(&owner->reader.seen);
    buf_done(&owner->reported);
    run_job_free(owner->job);
    fixture_done(&owner->f);
}

static int setup(void **state) {
    struct owner *owner = MEM_NEW(struct owner);
    owner_start(owner, ON_DISK);
    *state = owner;
    return 0;
}

static int teardown(void **state) {
    struct owner *owner = *state;
    owner_end(owner);
    free(owner);
    return 0;
}

static void assert_reported(struct owner *owner, const char *expected) {
    turns(&owner->f);
    assert_str(buf_str(&owner->reported), expected);
}

#define SUBMITTED                                                                              \
    "started(please) item(application/vnd.weir.job.request) "                                  \
    "item(application/vnd.weir.job.state+json)"
#define STATE " item(application/vnd.weir.job.state+json)"

static void a_state_is_not_shown_before_it_is_on_disk(void **state) {
    struct owner *owner = *state;
    fake_store_ask_me(owner->f.store);
    assert_reported(owner, "");
    assert_str(buf_str(&owner->reader.seen),
               "started(please) item(application/vnd.weir.job.request)");
    fake_store_commit(owner->f.store, 0);
    assert_reported(owner, "kept ");
    assert_str(buf_str(&owner->reader.seen), SUBMITTED);
    run_job_queue(owner->job);
    run_job_run(owner->job);
    assert_reported(owner, "kept ");
    assert_str(buf_str(&owner->reader.seen), SUBMITTED);
    fake_store_commit(owner->f.store, 0);
    assert_reported(owner, "kept running ");
    assert_str(buf_str(&owner->reader.seen), SUBMITTED STATE STATE);
    run_job_done(owner->job, STR("m"));
    assert_reported(owner, "kept running ");
    fake_store_commit(owner->f.store, 0);
    assert_reported(owner, "kept running over ");
    assert_str(buf_str(&owner->reader.seen), SUBMITTED STATE STATE " done(m)");
}

static void a_write_in_flight_does_not_free_later_events(void **state) {
    struct owner *owner = *state;
    assert_reported(owner, "kept ");
    fake_store_ask_me(owner->f.store);
    run_job_queue(owner->job);
    turns(&owner->f);
    run_job_run(owner->job); /* after the write of `queued` */
    turns(&owner->f);
    fake_store_commit(owner->f.store, 0);
    assert_reported(owner, "kept ");
    assert_str(buf_str(&owner->reader.seen), SUBMITTED STATE);
    fake_store_commit(owner->f.store, 0);
    assert_reported(owner, "kept running ");
    assert_str(buf_str(&owner->reader.seen), SUBMITTED STATE STATE);
    fake_store_always_commit(owner->f.store);
    run_job_cancel(owner->job, STR("enough"));
    run_job_cancel(owner->job, STR("again"));
    assert_reported(owner, "kept running over ");
}

static void one_that_cannot_be_written_never_was(void **state) {
    struct owner *owner = *state;
    fake_store_always_lose(owner->f.store, ERR_UNAVAILABLE);
    assert_reported(owner, "cancel(the store is gone) over ");
}

/* For half an hour a caller hears how it ended; the store still has it as unfinished. */
static void one_whose_end_cannot_be_written_stays_for_a_while(void **state) {
    struct owner *owner = *state;
    struct live_view view;
    assert_reported(owner, "kept ");
    uint64_t run = run_job_id(owner->job);
    run_job_queue(owner->job);
    run_job_run(owner->job);
    assert_reported(owner, "kept running ");
    fake_store_always_lose(owner->f.store, ERR_UNAVAILABLE);
    run_job_done(owner->job, STR("m"));
    assert_reported(owner, "kept running ");
    assert_str(buf_str(&owner->reader.seen),
               SUBMITTED STATE STATE " failed(UNAVAILABLE STORE_UNAVAILABLE)");
    loop_advance(owner->f.loop, RUN_JOB_LINGER_MS - 1);
    assert_true(directory_find(session_table_directory(owner->f.engine.sessions), run, &view));
    assert_int_equal(view.state, RUN_FAILED); /* and not done, as it was about to be */
    live_view_done(&view);
    loop_advance(owner->f.loop, 1);
    assert_reported(owner, "kept running over ");
}

static void in_memory_the_outcome_is_reported_all_the_same(void **state) {
    (void)state;
    struct owner owner;
    owner_start(&owner, IN_MEMORY);
    assert_reported(&owner, "kept ");
    run_job_queue(owner.job);
    run_job_run(owner.job);
    assert_reported(&owner, "kept running ");
    run_job_fail(owner.job, ERR_DEADLINE_EXCEEDED, STR("PROVIDER_TIMEOUT"), STR("slow"));
    assert_reported(&owner, "kept running ");
    loop_advance(owner.f.loop, RUN_JOB_LINGER_MS);
    assert_reported(&owner, "kept running over ");
    owner_end(&owner);
}

static void a_cancel_from_anywhere_reaches_its_owner_in_the_callers_words(void **state) {
    struct owner *owner = *state;
    char why[] = "my own words";
    assert_reported(owner, "kept ");
    assert_true(directory_leave(session_table_directory(owner->f.engine.sessions),
                                run_job_id(owner->job), (struct leaving){.how = LEAVING_NONE},
                                str_from(why)));
    memset(why, 'x', sizeof(why) - 1);
    assert_reported(owner, "kept cancel(my own words) over ");
}

static void of_two_with_one_key_only_one_begins(void **state) {
    (void)state;
    struct owner owner;
    struct claim_view view;
    struct run_job *second;
    struct err e;
    fixture_init(&owner.f, true);
    buf_init(&owner.reported, KIB);
    const struct claim_name name = {STR("app"), STR("anna"), STR("k")};
    idempotency_claims_look(session_table_claims(owner.f.engine.sessions), &name, &view);
    struct run_job_options options = options_of(&owner);
    options.key = STR("k");
    options.print = STR("print");
    options.key_mark = view.mark;
    assert_true(run_job_start(&options, &owner.job, &e));
    assert_false(run_job_start(&options, &second, &e));
    assert_int_equal(e.code, ERR_ALREADY_EXISTS);
    run_job_submit(owner.job);
    run_job_cancel(owner.job, STR("enough"));
    assert_reported(&owner, "over ");
    run_job_free(owner.job);
    buf_done(&owner.reported);
    fixture_done(&owner.f);
}

/* --- what events say ---------------------------------------------------------------------- */

static void progress_is_read_back_as_it_was_written(void **state) {
    struct owner *owner = *state;
    struct run_job_note note;
    struct event event = {0};
    struct cursor *cursor;
    struct err e;
    turns(&owner->f);
    run_job_queue(owner->job);
    run_job_run(owner->job);
    turns(&owner->f);
    run_job_report(owner->job, &(struct run_job_progress){40, 2, 5});
    turns(&owner->f);
    assert_true(
        cursor_open(run_job_journal(owner->job), 5, owner->f.loop, NULL, NULL, &cursor, &e));
    assert_true(cursor_next(cursor, &event));
    assert_true(run_job_read(&event, &note));
    assert_int_equal(note.state, RUN_JOB_RUNNING);
    assert_int_equal(note.attempt, 1);
    assert_int_equal(note.progress.percent, 40);
    assert_int_equal(note.progress.step, 2);
    assert_int_equal(note.progress.steps, 5);
    cursor_close(cursor);
    run_job_cancel(owner->job, STR("enough"));
    turns(&owner->f);
}

static void bytes_that_are_no_state_say_nothing(void **state) {
    (void)state;
    static const char *const texts[] = {
        "", "{", "[]", "{\"state\":5}", "{\"state\":\"done\"}", "{\"state\":\"completed\"}"};
    struct run_job_note note;
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        struct event event = {.kind = EVENT_ITEM,
                              .item = {STR(RUN_JOB_STATE), str_from(texts[i])}};
        assert_false(run_job_read(&event, &note));
    }
    struct event negative = {
        .kind = EVENT_ITEM,
        .item = {STR(RUN_JOB_STATE), STR("{\"state\":\"running\",\"attempt\":-1}")}};
    assert_true(run_job_read(&negative, &note));
    assert_int_equal(note.attempt, 0);
}

/* --- the next process --------------------------------------------------------------------- */

struct taken {
    size_t times;
    uint64_t run;
    bool is_job;
    struct recovered found;
};

static bool take(uint64_t run, const struct store_section *sections, size_t count, bool whole,
                 void *ctx) {
    struct taken *taken = ctx;
    taken->times++;
    taken->run = run;
    taken->is_job = whole && run_job_is(sections, count);
    return true;
}

static void on_recovered(const struct recovered *found, const struct err *failed, void *ctx) {
    struct taken *taken = ctx;
    assert_null(failed);
    taken->found = *found;
}

static void encode(const struct event *event, struct buf *out) {
    buf_init(out, KIB);
    assert_true(event_encode(event, out));
}

/* A large request is in a section of its own. */
static void a_job_is_known_however_its_first_events_are_cut(void **state) {
    (void)state;
    struct buf started, request;
    encode(&(struct event){.kind = EVENT_STARTED}, &started);
    encode(&(struct event){.kind = EVENT_ITEM, .item = {STR(RUN_JOB_REQUEST), STR("x")}},
           &request);
    const struct store_section sections[] = {
        {.run = 1, .first_seq = 1, .events = buf_str(&started)},
        {.run = 1, .first_seq = 2, .events = buf_str(&request)}};
    assert_true(run_job_is(sections, 2));
    assert_false(run_job_is(sections, 1));
    assert_false(run_job_is(&sections[1], 1));
    buf_done(&started);
    buf_done(&request);
}

/* it is neither interrupted nor lost; and without anybody who serves it, it waits. */
static void an_unfinished_job_is_handed_to_the_contract_that_serves_jobs(void **state) {
    struct owner *owner = *state;
    struct taken taken = {0};
    turns(&owner->f);
    run_job_queue(owner->job);
    run_job_run(owner->job);
    assert_reported(owner, "kept running ");
    uint64_t run = run_job_id(owner->job);
    run_job_free(owner->job); /* the process ends */
    owner->job = NULL;
    turns(&owner->f);
    recover_start(owner->f.store, &owner->f.host, NULL, on_recovered, &taken);
    turns(&owner->f);
    assert_int_equal(taken.found.jobs_left, 1);
    assert_int_equal(taken.found.interrupted, 0);
    const struct recover_helpers helpers = {.jobs = {take, &taken}};
    recover_start(owner->f.store, &owner->f.host, &helpers, on_recovered, &taken);
    turns(&owner->f);
    assert_int_equal(taken.found.jobs, 1);
    assert_int_equal(taken.times, 1);
    assert_int_equal(taken.run, run);
    assert_true(taken.is_job);

    struct run_job_options options = options_of(owner);
    const struct run_job_left left = {
        .run = run, .last_seq = 5, .note = {.state = RUN_JOB_RUNNING, .attempt = 1}};
    owner->job = run_job_resume(&options, &left);
    run_job_queue(owner->job);
    run_job_run(owner->job);
    assert_reported(owner, "kept running running ");
    run_job_done(owner->job, STR("m"));
    assert_reported(owner, "kept running running over ");
    recover_start(owner->f.store, &owner->f.host, NULL, on_recovered, &taken);
    turns(&owner->f);
    assert_int_equal(taken.found.jobs_left, 0);
}

/* --- its trace ---------------------------------------------------------------------------- */

#define PARENT "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-"

static void assert_trace(const struct run_job *job, const char *expected) {
    const struct trace_context *trace = run_job_trace(job);
    struct buf text;
    buf_init(&text, KIB);
    if (trace) trace_context_put(trace, &text);
    assert_str(buf_str(&text), expected);
    buf_done(&text);
}

/* A job of `owner` in its first attempt, or in its second one. */
static void run_traced(struct owner *owner, const char *parent, bool resumed) {
    struct trace_context trace;
    struct err e;
    *owner = (struct owner){.job = NULL};
    fixture_init(&owner->f, false);
    buf_init(&owner->reported, KIB);
    struct run_job_options options = options_of(owner);
    assert_true(trace_context_take(str_from(parent), &trace));
    options.trace = &trace;
    if (resumed) {
        const struct run_job_left left = {.run = 7,
                                          .last_seq = 5,
                                          .trace = str_from(parent),
                                          .note = {.state = RUN_JOB_RUNNING, .attempt = 1}};
        owner->job = run_job_resume(&options, &left);
    } else {
        assert_true(run_job_start(&options, &owner->job, &e));
        run_job_submit(owner->job);
    }
    turns(&owner->f);
    run_job_queue(owner->job);
    run_job_run(owner->job);
    turns(&owner->f);
}

static void end_traced(struct owner *owner) {
    run_job_done(owner->job, STR("m"));
    turns(&owner->f);
    run_job_free(owner->job); /* one in memory lingers */
    buf_done(&owner->reported);
    fixture_done(&owner->f);
}

static size_t spans_now(void) {
    uint64_t dropped;
    struct spans_chunk *chunk = spans_take(SPANS_ANY, &dropped);
    size_t count = chunk ? spans_chunk_part(chunk, 0, SIZE_MAX).count : 0;
    spans_chunk_free(chunk);
    return count;
}

static void on_chunk(void *ctx) {
    (void)ctx;
}

static void without_spans_the_submitters_trace_is_passed_on(void **state) {
    (void)state;
    struct owner owner;
    for (unsigned resumed = 0; resumed < 2; resumed++) {
        run_traced(&owner, PARENT "01 a=1", resumed);
        assert_trace(owner.job, PARENT "01 a=1");
        end_traced(&owner);
    }
}

static void with_spans_an_attempt_is_one_in_the_submitters_trace(void **state) {
    (void)state;
    struct owner owner;
    spans_start(on_chunk, NULL);
    for (unsigned resumed = 0; resumed < 2; resumed++) {
        run_traced(&owner, PARENT "01 a=1", resumed);
        const struct trace_context *trace = run_job_trace(owner.job);
        char id[TRACE_ID_DIGITS + 1], span[TRACE_SPAN_DIGITS + 1];
        trace_id_write(trace->id, TRACE_ID_DIGITS, id);
        trace_id_write(trace->span, TRACE_SPAN_DIGITS, span);
        assert_string_equal(id, "0af7651916cd43dd8448eb211c80319c");
        assert_string_not_equal(span, "b7ad6b7169203331");
        assert_str(trace->state, "a=1");
        assert_int_equal(spans_now(), 0);
        end_traced(&owner);
        assert_int_equal(spans_now(), 1);
        run_traced(&owner, PARENT "00", resumed); /* not sampled */
        assert_trace(owner.job, PARENT "00");
        end_traced(&owner);
        assert_int_equal(spans_now(), 0);
    }
    spans_stop();
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(only_the_drawn_moves_are_legal),
        TEST(a_state_is_not_shown_before_it_is_on_disk),
        TEST(a_write_in_flight_does_not_free_later_events),
        TEST(one_that_cannot_be_written_never_was),
        TEST(one_whose_end_cannot_be_written_stays_for_a_while),
        cmocka_unit_test(in_memory_the_outcome_is_reported_all_the_same),
        TEST(a_cancel_from_anywhere_reaches_its_owner_in_the_callers_words),
        cmocka_unit_test(of_two_with_one_key_only_one_begins),
        TEST(progress_is_read_back_as_it_was_written),
        cmocka_unit_test(bytes_that_are_no_state_say_nothing),
        cmocka_unit_test(a_job_is_known_however_its_first_events_are_cut),
        TEST(an_unfinished_job_is_handed_to_the_contract_that_serves_jobs),
        cmocka_unit_test(without_spans_the_submitters_trace_is_passed_on),
        cmocka_unit_test(with_spans_an_attempt_is_one_in_the_submitters_trace),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
