/* A call of a media provider: its clocks, its cost, its record, and its one ending. */
#include "job/media_run.h"

#include "fake/media_fake.h" /* named here: the build links them */
#include "fake/provider_fake.h"
#include "fake/store_fake.h"
#include "helper/reply_heard.h"
#include "turn/fixture.h"

#include "session/directory.h"

/* A making, what its caller heard, and its record. */
struct made {
    struct fixture f;
    struct media *media;
    struct media_run *media_run;
    struct media_request request;
    struct str inputs[2];
    struct buf heard;
    struct journal *record;
    enum media_run_record how;
    bool cancels; /* from inside its next callback */
};

static const char *const forms[REPLY_KIND_COUNT] = {
    [REPLY_USAGE] = "usage($p $c) ", [REPLY_FAILED] = "failed($e $n) "};

static void on_reply(const struct reply_event *event, void *ctx) {
    struct made *m = ctx;
    reply_heard(&m->heard, forms, event);
    if (!m->cancels) return;
    m->cancels = false;
    media_run_cancel(m->media_run, STR("enough"));
}

static void made_init(struct made *m, bool with_store) {
    *m = (struct made){.media = fake_media_new(~0u),
                       .inputs = {STR("one"), STR("two")},
                       .how = MEDIA_RUN_RECORDED};
    fixture_init(&m->f, with_store);
    m->request = (struct media_request){
        .task = MEDIA_SPEECH, .model = STR("voice-1"), .text = STR("Good morning")};
    buf_init(&m->heard, 4 * KIB);
}

static bool begin(struct made *m, struct err *e) {
    struct media_run_options options = {.host = &m->f.host,
                                        .engine = &m->f.engine,
                                        .media = m->media,
                                        .request = &m->request,
                                        .record = m->how,
                                        .workspace = STR("w"),
                                        .user = STR("u"),
                                        .text = m->request.text,
                                        .contract = STR("test"),
                                        .asked_ms = loop_now_ms(m->f.loop),
                                        .clocks = {60000, 30000, 45000},
                                        .on_reply = on_reply,
                                        .ctx = m};
    return media_run_start(&options, &m->media_run, e);
}

static void ask(struct made *m) {
    struct session_runs runs;
    struct live_view view;
    struct err e;
    if (!begin(m, &e)) fail_msg("%s", e.text);
    struct directory *directory = session_table_directory(m->f.engine.sessions);
    directory_of_session(directory, STR("w"), STR("u"), STR(""), &runs);
    assert_int_equal(runs.count, m->how == MEDIA_RUN_RECORDED ? 1 : 0);
    if (runs.count == 0) return;
    assert_true(directory_find(directory, runs.runs[0], &view));
    m->record = journal_ref(view.journal);
    live_view_done(&view);
}

static struct media_call *call(struct made *m) {
    return fake_media_call(m->media, 0);
}

static void assert_heard(struct made *m, const char *expected) {
    turns(&m->f);
    assert_str(str_trim(buf_str(&m->heard)), expected);
}

static void assert_record(struct made *m, const char *expected) {
    struct cursor *cursor;
    struct event event = {0};
    struct buf seen;
    struct err e;
    turns(&m->f);
    buf_init(&seen, 4 * KIB);
    assert_true(cursor_open(m->record, 0, m->f.loop, NULL, NULL, &cursor, &e));
    while (cursor_next(cursor, &event)) write_event(&seen, &event);
    cursor_close(cursor);
    assert_str(buf_str(&seen), expected);
    buf_done(&seen);
}

static void made_done(struct made *m) {
    turns(&m->f);
    assert_int_equal(fake_media_calls(m->media), 0);
    journal_unref(m->record);
    buf_done(&m->heard);
    media_free(m->media);
    fixture_done(&m->f);
}

static int setup(void **state) {
    struct made *m = MEM_NEW(struct made);
    made_init(m, false);
    *state = m;
    return 0;
}

static int setup_stored(void **state) {
    struct made *m = MEM_NEW(struct made);
    made_init(m, true);
    *state = m;
    return 0;
}

static int teardown(void **state) {
    struct made *m = *state;
    made_done(m);
    free(m);
    return 0;
}

/* --- endings ------------------------------------------------------------------------------ */

static void what_is_made_goes_to_the_caller_and_its_cost_into_the_record(void **state) {
    struct made *m = *state;
    ask(m);
    fake_media_artifact(call(m), "audio/wav", STR("RIFF"));
    fake_media_usage(call(m), 3, 4);
    fake_media_done(call(m), "voice-1.2");
    assert_heard(m, "artifact(audio/wav 4) usage(3 4) done(voice-1.2)");
    assert_record(m, "started(Good morning) usage(0 3) done(voice-1.2)");
}

static void uncounted_usage_is_reported_as_unknown(void **state) {
    struct made *m = *state;
    ask(m);
    fake_media_artifact(call(m), "audio/wav", STR("RIFF"));
    fake_media_done(call(m), "");
    assert_heard(m, "artifact(audio/wav 4) usage(-1 -1) done(voice-1)");
    assert_record(m, "started(Good morning) usage(0 -1) done(voice-1)");
}

static void the_ending_waits_for_the_disk(void **state) {
    struct made *m = *state;
    fake_store_ask_me(m->f.store);
    ask(m);
    fake_media_artifact(call(m), "audio/wav", STR("RIFF"));
    fake_media_done(call(m), "v");
    assert_heard(m, "artifact(audio/wav 4)");
    while (fake_store_writes(m->f.store)) fake_store_commit(m->f.store, 0);
    assert_heard(m, "artifact(audio/wav 4) usage(-1 -1) done(v)");
}

static void an_artifact_that_cannot_be_recorded_fails_the_run(void **state) {
    struct made *m = *state;
    ask(m);
    fake_media_artifact(call(m), "audio/wav", STR("RIFF"));
    turns(&m->f);
    fake_store_always_lose(m->f.store, ERR_UNAVAILABLE);
    fake_media_done(call(m), "v");
    assert_heard(m, "artifact(audio/wav 4) failed(UNAVAILABLE STORE_UNAVAILABLE)");
}

static void a_failure_is_reported_in_its_providers_words(void **state) {
    struct made *m = *state;
    ask(m);
    fake_media_fail(call(m), ERR_RESOURCE_EXHAUSTED, "PROVIDER_RATE_LIMITED");
    assert_heard(m, "failed(RESOURCE_EXHAUSTED PROVIDER_RATE_LIMITED)");
    assert_record(m, "started(Good morning) failed(RESOURCE_EXHAUSTED PROVIDER_RATE_LIMITED)");
}

static void an_unrecorded_one_ends_the_same_without_a_run(void **state) {
    struct made *m = *state;
    m->how = MEDIA_RUN_UNRECORDED;
    ask(m);
    fake_media_artifact(call(m), "audio/pcm", STR("1234"));
    fake_media_done(call(m), "v");
    assert_heard(m, "artifact(audio/pcm 4) usage(-1 -1) done(v)");
}

/* --- what is not an answer -------------------------------------------------------------------- */

static void a_provider_that_made_nothing_has_failed(void **state) {
    struct made *m = *state;
    ask(m);
    fake_media_artifact(call(m), "audio/wav", STR(""));
    fake_media_done(call(m), "v");
    assert_heard(m, "failed(INTERNAL OUTPUT_INVALID)");
}

static void an_input_without_a_vector_has_failed_them_all(void **state) {
    struct made *m = *state;
    static const double one[] = {0.5, 0.25};
    m->request = (struct media_request){
        .task = MEDIA_EMBEDDING, .model = STR("e"), .inputs = m->inputs, .input_count = 2};
    ask(m);
    fake_media_vector(call(m), 1, one, 2);
    fake_media_done(call(m), "e");
    assert_heard(m, "vector(1 2 0.5) failed(INTERNAL OUTPUT_INVALID)");
}

static void a_vector_that_was_not_asked_for_is_a_failure(void **state) {
    struct made *m = *state;
    static const double one[] = {0.5};
    m->request = (struct media_request){
        .task = MEDIA_EMBEDDING, .model = STR("e"), .inputs = m->inputs, .input_count = 2};
    ask(m);
    assert_false(fake_media_vector(call(m), 2, one, 1));
    assert_heard(m, "failed(INTERNAL OUTPUT_INVALID)");
}

/* --- clocks ------------------------------------------------------------------------------- */

/* Of the whole here: it is shorter than the first word's. */
static void it_has_as_long_as_its_clocks_say_from_the_request_on(void **state) {
    struct made *m = *state;
    ask(m);
    loop_advance(m->f.loop, 44999);
    assert_heard(m, "");
    loop_advance(m->f.loop, 1);
    assert_heard(m, "failed(DEADLINE_EXCEEDED PROVIDER_TIMEOUT)");
    assert_int_equal(fake_media_calls(m->media), 0);
}

static void silence_after_something_came_has_thirty_seconds(void **state) {
    struct made *m = *state;
    ask(m);
    loop_advance(m->f.loop, 10000);
    fake_media_artifact(call(m), "audio/wav", STR("RIFF"));
    loop_advance(m->f.loop, 29999);
    assert_heard(m, "artifact(audio/wav 4)");
    loop_advance(m->f.loop, 1);
    assert_heard(m, "artifact(audio/wav 4) failed(DEADLINE_EXCEEDED PROVIDER_TIMEOUT)");
}

/* --- who ends it -------------------------------------------------------------------------- */

static void a_cancelled_one_says_nothing_and_is_recorded(void **state) {
    struct made *m = *state;
    ask(m);
    media_run_cancel(m->media_run, STR("the caller left"));
    assert_int_equal(fake_media_calls(m->media), 0);
    assert_heard(m, "");
    assert_record(m, "started(Good morning) cancelled(the caller left)");
}

static void a_caller_may_cancel_from_inside_a_callback(void **state) {
    struct made *m = *state;
    ask(m);
    m->cancels = true;
    assert_false(fake_media_artifact(call(m), "audio/wav", STR("RIFF")));
    assert_heard(m, "artifact(audio/wav 4)");
    assert_record(m, "started(Good morning) usage(0 -1) cancelled(enough)");
}

static void one_that_waits_for_the_disk_can_still_be_cancelled(void **state) {
    struct made *m = *state;
    fake_store_ask_me(m->f.store);
    ask(m);
    fake_media_artifact(call(m), "audio/wav", STR("RIFF"));
    fake_media_done(call(m), "v");
    turns(&m->f);
    media_run_cancel(m->media_run, STR("enough"));
    while (fake_store_writes(m->f.store)) fake_store_commit(m->f.store, 0);
    assert_heard(m, "artifact(audio/wav 4)");
}

static void another_call_may_cancel_it_by_its_run(void **state) {
    struct made *m = *state;
    ask(m);
    assert_true(directory_cancel(session_table_directory(m->f.engine.sessions),
                                 journal_run(m->record), STR("an operator stopped it")));
    assert_heard(m, "failed(CANCELLED )");
    assert_record(m, "started(Good morning) cancelled(an operator stopped it)");
}

/* --- money -------------------------------------------------------------------------------- */

static void a_budget_that_is_used_up_is_asked_before_the_media(void **state) {
    struct made *m = *state;
    static const struct budget budget = {STR_INIT(""), STR_INIT(""), BUDGET_DAY, 0, 2};
    struct err e;
    m->f.engine.ledger = ledger_new(NULL, m->f.loop);
    m->f.engine.budgets = &budget;
    m->f.engine.budget_count = 1;
    assert_false(begin(m, &e));
    assert_int_equal(e.code, ERR_RESOURCE_EXHAUSTED);
    assert_int_equal(fake_media_calls_ever(m->media), 0);
    ledger_free(m->f.engine.ledger);
}

static void what_was_counted_is_what_the_budget_loses(void **state) {
    struct made *m = *state;
    static const struct budget budget = {STR_INIT(""), STR_INIT(""), BUDGET_DAY, 0, 10};
    struct err e;
    m->f.engine.ledger = ledger_new(NULL, m->f.loop);
    m->f.engine.budgets = &budget;
    m->f.engine.budget_count = 1;
    ask(m);
    fake_media_artifact(call(m), "audio/wav", STR("RIFF"));
    fake_media_usage(call(m), 6, 2);
    fake_media_done(call(m), "v");
    turns(&m->f);
    assert_false(begin(m, &e)); /* four tokens of text, and two are left */
    assert_int_equal(e.code, ERR_RESOURCE_EXHAUSTED);
    ledger_free(m->f.engine.ledger);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
#define STORED(name) cmocka_unit_test_setup_teardown(name, setup_stored, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        STORED(what_is_made_goes_to_the_caller_and_its_cost_into_the_record),
        TEST(uncounted_usage_is_reported_as_unknown),
        STORED(the_ending_waits_for_the_disk),
        STORED(an_artifact_that_cannot_be_recorded_fails_the_run),
        TEST(a_failure_is_reported_in_its_providers_words),
        STORED(an_unrecorded_one_ends_the_same_without_a_run),
        TEST(a_provider_that_made_nothing_has_failed),
        TEST(an_input_without_a_vector_has_failed_them_all),
        TEST(a_vector_that_was_not_asked_for_is_a_failure),
        TEST(it_has_as_long_as_its_clocks_say_from_the_request_on),
        TEST(silence_after_something_came_has_thirty_seconds),
        STORED(a_cancelled_one_says_nothing_and_is_recorded),
        STORED(a_caller_may_cancel_from_inside_a_callback),
        STORED(one_that_waits_for_the_disk_can_still_be_cancelled),
        TEST(another_call_may_cancel_it_by_its_run),
        TEST(a_budget_that_is_used_up_is_asked_before_the_media),
        TEST(what_was_counted_is_what_the_budget_loses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
