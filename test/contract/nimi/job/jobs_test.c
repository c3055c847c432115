/* Jobs on a fake clock: their calls, their time limits, the ends of their event streams. */
#include "contract/nimi/job/jobs.h"

#include "base/mem.h"
#include "contract/nimi/instance_fixture.h"
#include "contract/nimi/job/job_fold.h"
#include "fake/exchange_fake.h" /* named here: the build links it */
#include "fake/media_fake.h"
#include "fake/provider_fake.h"
#include "fake/store_fake.h"
#include "helper/assert_str.h"
#include "wire/grpc.h"

#include <stdio.h>
#include <stdlib.h>

#define AI "/nimi.runtime.v1.RuntimeAiService/"
#define ALL_TASKS ((1u << MEDIA_TASKS) - 1)

static struct store *store;
static struct keeper *keeper;
static struct provider *model;
static struct media *media;
static struct nimi_connector connector;
static char id[64]; /* of the job that was submitted last */

/* Turns until calls, commits and loads have settled. */
static void settle(void) {
    for (size_t i = 0; i < 16; i++) {
        fake_settle(loop);
        while (fake_store_loads(store)) fake_store_answer(store, 0);
        loop_turn(loop);
    }
}

static int setup(void **state) {
    (void)state;
    loop = loop_new_fake();
    store = fake_store_new();
    fake_store_always_commit(store);
    keeper = keeper_new(loop, store);
    model = fake_provider_new();
    media = fake_media_new(ALL_TASKS);
    nimi_open(model, store, keeper);
    connector = (struct nimi_connector){.id = STR("local"),
                                        .provider = model,
                                        .media = media,
                                        .local = true,
                                        .enabled = true,
                                        .has_credential = true};
    settings = (struct nimi_settings){.connectors = &connector,
                                      .connector_count = 1,
                                      .version = STR("0.1.0"),
                                      .message_max_bytes = 4 * MIB,
                                      .stall_ms = 30000,
                                      .keys_kept_ms = 24 * 3600 * 1000};
    nimi_serve();
    return 0;
}

static void on_kept(void *ctx) {
    *(bool *)ctx = true;
}

static int teardown(void **state) {
    (void)state;
    bool kept = false;
    fake_store_always_commit(store);
    settle();
    nimi_instance_leave(&instance);
    keeper_flush(keeper, on_kept, &kept);
    settle();
    assert_true(kept);
    nimi_close();
    keeper_free(keeper);
    fake_store_free(store);
    provider_free(model);
    media_free(media);
    loop_free(loop);
    return 0;
}

/* --- calls -------------------------------------------------------------------------------- */

static struct exchange *ask_as(const char *path, const struct pb_message *type,
                               const void *request, bool reads) {
    struct exchange *x = fake_new(loop, "POST", path);
    struct buf body;
    if (!reads) fake_stop_reading(x);
    fake_field(x, "content-type", "application/grpc");
    fake_field(x, "x-nimi-protocol-version", "1.0.0");
    fake_field(x, "x-nimi-participant-protocol-version", "1.0.0");
    fake_field(x, "x-nimi-participant-id", "demo.app");
    fake_field(x, "x-nimi-domain", "runtime.rpc");
    fake_field(x, "x-nimi-app-id", "demo.app");
    fake_start(x, serve, site);
    buf_init(&body, 8 * MIB);
    size_t begin = grpc_begin_message(&body);
    pb_encode(type, request, &body);
    grpc_end_message(&body, begin);
    fake_body(x, buf_str(&body));
    fake_body_end(x);
    buf_done(&body);
    settle();
    return x;
}

static struct exchange *ask(const char *path, const struct pb_message *type,
                            const void *request) {
    return ask_as(path, type, request, true);
}

/* The next message of a response; false: there is none. */
static bool next_message(struct str *rest, const struct pb_message *type, struct arena *arena,
                         void *ret) {
    struct err e;
    if (rest->len < 5) return false;
    const unsigned char *at = (const unsigned char *)rest->at;
    size_t len = (size_t)at[1] << 24 | (size_t)at[2] << 16 | (size_t)at[3] << 8 | at[4];
    assert_true(pb_decode_view(type, str_head(str_skip(*rest, 5), len), arena, ret, &e));
    *rest = str_skip(*rest, 5 + len);
    return true;
}

/* Where nothing was sent before, the status stands in the head. */
static struct str field_of(const struct exchange *x, const char *name) {
    struct str value = fake_value(fake_trailers(x), name);
    return value.at ? value : fake_value(fake_head(x), name);
}

static void assert_status(const struct exchange *x, const char *expected) {
    assert_true(fake_closed(x));
    assert_str(field_of(x, "grpc-status"), expected);
}

static struct exchange *submit_spec(int type, const struct nimi_scenario_spec *spec,
                                    int32_t timeout_ms, const char *key) {
    const struct nimi_scenario_request_head head = {.app_id = STR("demo.app"),
                                                    .model_id = STR("local/m"),
                                                    .route_policy = NIMI_ROUTE_POLICY_LOCAL,
                                                    .timeout_ms = timeout_ms};
    const struct nimi_submit_scenario_job_request request = {.head = &head,
                                                             .scenario_type = type,
                                                             .execution_mode =
                                                                 NIMI_EXECUTION_MODE_ASYNC_JOB,
                                                             .spec = spec,
                                                             .idempotency_key = str_from(key)};
    return ask(AI "SubmitScenarioJob", &nimi_submit_scenario_job_request_table, &request);
}

static void take_id(struct exchange *x) {
    struct arena *arena = arena_new(MIB);
    struct nimi_submit_scenario_job_response reply;
    struct str rest = fake_sent(x);
    assert_status(x, "0");
    assert_true(next_message(&rest, &nimi_submit_scenario_job_response_table, arena, &reply));
    snprintf(id, sizeof(id), STR_FMT, STR_ARG(reply.job->job_id));
    arena_free(arena);
    fake_free(x);
}

static struct exchange *begin_text(int32_t timeout_ms, const char *key) {
    const struct nimi_chat_message words = {.role = STR("user"), .content = STR("hi")};
    const struct nimi_text_generate_scenario_spec text = {.input = &words, .input_count = 1};
    const struct nimi_scenario_spec spec = {.which_spec = NIMI_SCENARIO_SPEC_TEXT_GENERATE,
                                            .text_generate = &text};
    return submit_spec(NIMI_SCENARIO_TYPE_TEXT_GENERATE, &spec, timeout_ms, key);
}

static void submit_text(int32_t timeout_ms) {
    take_id(begin_text(timeout_ms, ""));
}

static void submit_speech(int32_t timeout_ms) {
    const struct nimi_speech_synthesize_scenario_spec speech = {.text = STR("hello")};
    const struct nimi_scenario_spec spec = {.which_spec = NIMI_SCENARIO_SPEC_SPEECH_SYNTHESIZE,
                                            .speech_synthesize = &speech};
    take_id(submit_spec(NIMI_SCENARIO_TYPE_SPEECH_SYNTHESIZE, &spec, timeout_ms, ""));
}

static void submit_images(int32_t timeout_ms) {
    const struct nimi_image_generate_scenario_spec image = {.prompt = STR("a cat"), .n = 3};
    const struct nimi_scenario_spec spec = {.which_spec = NIMI_SCENARIO_SPEC_IMAGE_GENERATE,
                                            .image_generate = &image};
    take_id(submit_spec(NIMI_SCENARIO_TYPE_IMAGE_GENERATE, &spec, timeout_ms, ""));
}

static void submit_transcript(int32_t timeout_ms) {
    static const struct str chunks[] = {STR_INIT("RI"), STR_INIT("FF")};
    const struct nimi_audio_chunks sound = {chunks, ARRAY_LEN(chunks)};
    const struct nimi_speech_transcription_audio_source source = {
        .which_source = NIMI_SPEECH_TRANSCRIPTION_AUDIO_SOURCE_AUDIO_CHUNKS,
        .audio_chunks = &sound};
    const struct nimi_speech_transcribe_scenario_spec transcript = {
        .mime_type = STR("audio/wav"), .audio_source = &source};
    const struct nimi_scenario_spec spec = {.which_spec = NIMI_SCENARIO_SPEC_SPEECH_TRANSCRIBE,
                                            .speech_transcribe = &transcript};
    take_id(submit_spec(NIMI_SCENARIO_TYPE_SPEECH_TRANSCRIBE, &spec, timeout_ms, ""));
}

#define INPUTS 1000

static void submit_vectors(int32_t timeout_ms) {
    static struct str inputs[INPUTS];
    for (size_t i = 0; i < INPUTS; i++) inputs[i] = STR("word");
    const struct nimi_text_embed_scenario_spec embed = {inputs, INPUTS};
    const struct nimi_scenario_spec spec = {.which_spec = NIMI_SCENARIO_SPEC_TEXT_EMBED,
                                            .text_embed = &embed};
    take_id(submit_spec(NIMI_SCENARIO_TYPE_TEXT_EMBED, &spec, timeout_ms, ""));
}

static struct exchange *subscribe(void) {
    const struct nimi_subscribe_scenario_job_events_request request = {.job_id = str_from(id)};
    return ask(AI "SubscribeScenarioJobEvents",
               &nimi_subscribe_scenario_job_events_request_table, &request);
}

static const char *const states[] = {"?",         "submitted", "queued",   "running",
                                     "completed", "failed",    "canceled", "timeout"};

/* Everything a subscriber heard, as words; repeats of running are counted. */
static void assert_heard(const struct exchange *x, const char *expected) {
    struct arena *arena = arena_new(64 * MIB);
    struct nimi_scenario_job_event event;
    struct str rest = fake_sent(x);
    struct buf heard;
    uint64_t sequence = 0;
    size_t repeats = 0;
    bool over = false;
    buf_init(&heard, 64 * KIB);
    while (next_message(&rest, &nimi_scenario_job_event_table, arena, &event)) {
        assert_false(over); /* none after the terminal one */
        assert_int_equal(event.sequence, ++sequence);
        assert_int_equal(event.event_type, event.job->status);
        over = event.event_type >= NIMI_SCENARIO_JOB_EVENT_COMPLETED;
        if (event.event_type == NIMI_SCENARIO_JOB_EVENT_RUNNING && repeats++) continue;
        if (over && repeats > 1) buf_printf(&heard, "x%zu ", repeats);
        buf_printf(&heard, "%s ", states[event.event_type]);
        if (event.job->reason_code > NIMI_ACTION_EXECUTED)
            buf_printf(&heard, "(%d) ", event.job->reason_code);
    }
    struct str status = field_of(x, "grpc-status");
    if (status.at) buf_printf(&heard, "=" STR_FMT, STR_ARG(status));
    assert_str(buf_str(&heard), expected);
    buf_done(&heard);
    arena_free(arena);
}

/* What a subscriber hears who comes now; and Get says the same as its last event. */
static void assert_story(const char *expected) {
    struct arena *arena = arena_new(64 * MIB);
    const struct nimi_get_scenario_job_request request = {.job_id = str_from(id)};
    struct exchange *x = subscribe();
    struct exchange *get =
        ask(AI "GetScenarioJob", &nimi_get_scenario_job_request_table, &request);
    struct nimi_scenario_job_event event;
    struct nimi_get_scenario_job_response reply;
    struct str rest = fake_sent(x), one = fake_sent(get);
    struct buf told, got;
    assert_heard(x, expected);
    while (next_message(&rest, &nimi_scenario_job_event_table, arena, &event)) continue;
    assert_true(next_message(&one, &nimi_get_scenario_job_response_table, arena, &reply));
    buf_init(&told, MIB);
    buf_init(&got, MIB);
    pb_encode(&nimi_scenario_job_table, event.job, &told);
    pb_encode(&nimi_scenario_job_table, reply.job, &got);
    assert_true(str_equal(buf_str(&told), buf_str(&got)));
    buf_done(&told);
    buf_done(&got);
    fake_leave(x);
    settle();
    fake_free(x);
    fake_free(get);
    arena_free(arena);
}

static struct exchange *cancel(const char *reason) {
    const struct nimi_cancel_scenario_job_request request = {.job_id = str_from(id),
                                                             .reason = str_from(reason)};
    return ask(AI "CancelScenarioJob", &nimi_cancel_scenario_job_request_table, &request);
}

static unsigned slots_used(void) {
    return scheduler_occupancy(runtime->scheduler, STR("demo.app")).global_used;
}

/* --- endings: row C6 ---------------------------------------------------------------------- */

static void a_text_job_completes(void **state) {
    (void)state;
    submit_text(0);
    assert_story("submitted queued running ");
    fake_text(fake_call(model, 0), STR("Hello"));
    fake_usage(fake_call(model, 0), 3, 4);
    fake_done(fake_call(model, 0), "m-1");
    settle();
    assert_story("submitted queued running completed =0");
    assert_int_equal(slots_used(), 0);
    assert_int_equal(instance.job_count, 0);
}

static void a_failure_is_reported_with_its_reason(void **state) {
    (void)state;
    submit_text(0);
    fake_fail(fake_call(model, 0), ERR_UNAUTHENTICATED, "PROVIDER_AUTH");
    settle();
    assert_story("submitted queued running failed (391) =0");
    const struct nimi_get_scenario_artifacts_request request = {.job_id = str_from(id)};
    struct exchange *x =
        ask(AI "GetScenarioArtifacts", &nimi_get_scenario_artifacts_request_table, &request);
    assert_status(x, "9"); /* K-JOB-006 */
    fake_free(x);
}

static void a_cancel_shows_its_reason_and_stops_the_model(void **state) {
    (void)state;
    submit_text(0);
    struct exchange *watcher = subscribe();
    struct exchange *x = cancel("my words");
    struct arena *arena = arena_new(MIB);
    struct nimi_cancel_scenario_job_response reply;
    struct str rest = fake_sent(x);
    assert_status(x, "0");
    assert_true(next_message(&rest, &nimi_cancel_scenario_job_response_table, arena, &reply));
    assert_int_equal(reply.job->status, NIMI_SCENARIO_JOB_STATUS_CANCELED);
    assert_int_equal(reply.job->reason_code, NIMI_ACTION_EXECUTED);
    assert_str(reply.job->reason_detail, "my words");
    arena_free(arena);
    fake_free(x);
    assert_heard(watcher, "submitted queued running canceled =0");
    fake_free(watcher);
    assert_int_equal(fake_calls(model), 0);
    assert_int_equal(slots_used(), 0);
    x = cancel("again");
    assert_status(x, "9");
    fake_free(x);
}

static void a_job_that_waits_is_cancelled_too(void **state) {
    (void)state;
    submit_text(0);
    submit_text(0);
    submit_text(0); /* two slots an app */
    assert_story("submitted queued ");
    struct exchange *x = cancel("enough");
    assert_status(x, "0");
    fake_free(x);
    assert_story("submitted queued canceled =0");
    assert_int_equal(fake_calls_ever(model), 2);
}

/* --- how long: K-DAEMON-008 --------------------------------------------------------------- */

static const struct {
    void (*submit)(int32_t timeout_ms);
    int32_t asked_ms;
    uint64_t limit_ms;
} limits[] = {
    {submit_text, 0, 120000},        {submit_vectors, 0, 120000},
    {submit_images, 0, 120000},      {submit_transcript, 0, 90000},
    {submit_speech, 0, 45000},       {submit_text, 1000, 1000},
    {submit_speech, 1000, 1000},     {submit_text, 999999, 300000},
    {submit_images, 300001, 300000},
};

static void each_type_has_its_time_from_when_it_runs(void **state) {
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(limits); i++) {
        limits[i].submit(limits[i].asked_ms);
        loop_advance(loop, limits[i].limit_ms - 1);
        settle();
        assert_story("submitted queued running ");
        loop_advance(loop, 1);
        settle();
        assert_story("submitted queued running timeout (394) =0");
        assert_int_equal(fake_calls(model), 0);
        assert_int_equal(fake_media_calls(media), 0);
        assert_int_equal(slots_used(), 0);
    }
}

static void the_wait_for_a_slot_does_not_count(void **state) {
    (void)state;
    submit_text(300000);
    submit_text(300000);
    submit_text(1000);
    loop_advance(loop, 100000);
    settle();
    assert_story("submitted queued ");
    fake_done(fake_call(model, 0), "m");
    settle();
    loop_advance(loop, 999);
    settle();
    assert_story("submitted queued running ");
    loop_advance(loop, 1);
    settle();
    assert_story("submitted queued running timeout (394) =0");
}

/* --- progress
 * --------------------------------------------------------------------------------- */

/* C6: a thousand times. */
static void progress_repeats_running_for_each_report(void **state) {
    (void)state;
    submit_vectors(0);
    struct exchange *watcher = subscribe();
    const double values[] = {0.5, -1};
    for (size_t i = 0; i < INPUTS; i++) {
        fake_media_vector(fake_media_call(media, 0), i, values, ARRAY_LEN(values));
        settle();
    }
    fake_media_done(fake_media_call(media, 0), "v-1");
    settle();
    assert_heard(watcher, "submitted queued running x1001 completed =0");
    fake_free(watcher);
    assert_int_equal(instance.job_count, 0);
}

static void changes_of_one_loop_turn_are_reported_once(void **state) {
    (void)state;
    submit_vectors(0);
    const double values[] = {0.5, -1};
    for (size_t i = 0; i < INPUTS; i++)
        fake_media_vector(fake_media_call(media, 0), i, values, ARRAY_LEN(values));
    settle();
    fake_media_done(fake_media_call(media, 0), "v-1");
    settle();
    assert_story("submitted queued running x2 completed =0");
}

/* --- what comes of it
 * -------------------------------------------------------------------------- */

struct result {
    struct exchange *x; /* its bytes are borrowed */
    struct arena *arena;
    struct nimi_get_scenario_artifacts_response reply;
};

static void get_result(struct result *ret) {
    const struct nimi_get_scenario_artifacts_request request = {.job_id = str_from(id)};
    ret->x =
        ask(AI "GetScenarioArtifacts", &nimi_get_scenario_artifacts_request_table, &request);
    struct str rest = fake_sent(ret->x);
    ret->arena = arena_new(64 * MIB);
    assert_status(ret->x, "0");
    assert_true(next_message(&rest, &nimi_get_scenario_artifacts_response_table, ret->arena,
                             &ret->reply));
}

static void end_result(struct result *result) {
    arena_free(result->arena);
    fake_free(result->x);
}

static void pictures_are_kept_in_the_order_they_came(void **state) {
    (void)state;
    struct result result;
    submit_images(0);
    struct media_call *call = fake_media_call(media, 0);
    assert_int_equal(fake_media_request(call)->count, 3);
    fake_media_artifact(call, "image/png", STR("one"));
    fake_media_artifact(call, "image/png", STR("two"));
    settle();
    assert_story("submitted queued running ");
    fake_media_artifact(call, "image/webp", STR("three"));
    fake_media_done(call, "draw-1");
    settle();
    get_result(&result);
    const struct nimi_get_scenario_artifacts_response *reply = &result.reply;
    assert_int_equal(reply->artifacts_count, 3);
    assert_str(reply->artifacts[0].bytes, "one");
    assert_str(reply->artifacts[1].bytes, "two");
    assert_str(reply->artifacts[2].bytes, "three");
    assert_str(reply->artifacts[2].mime_type, "image/webp");
    assert_int_equal(reply->artifacts[0].size_bytes, 3);
    assert_str(reply->artifacts[0].sha256,
               "7692c3ad3540bb803c020b3aee66cd8887123234ea0c6e7143c0add73ff431ed");
    assert_int_equal(reply->output->image_generate->artifacts_count, 3);
    assert_int_equal(reply->output->image_generate->artifacts[0].bytes.len, 0);
    end_result(&result);
}

static void a_transcript_is_the_output(void **state) {
    (void)state;
    struct result result;
    submit_transcript(0);
    struct media_call *call = fake_media_call(media, 0);
    assert_str(fake_media_request(call)->bytes, "RIFF");
    fake_media_text(call, "hello there");
    fake_media_usage(call, 5, 6);
    fake_media_done(call, "ear-1");
    settle();
    get_result(&result);
    assert_str(result.reply.output->speech_transcribe->text, "hello there");
    end_result(&result);
}

/* A request may be as large as a message, and a reader takes its time. */
static void a_result_that_waits_for_its_reader_holds_no_request(void **state) {
    (void)state;
    struct nimi_chat_message words = {.role = STR("user")};
    const struct nimi_text_generate_scenario_spec text = {.input = &words, .input_count = 1};
    const struct nimi_scenario_spec spec = {.which_spec = NIMI_SCENARIO_SPEC_TEXT_GENERATE,
                                            .text_generate = &text};
    char *long_words = mem_alloc(2 * MIB);
    memset(long_words, 'x', 2 * MIB);
    words.content = str_of(long_words, 2 * MIB);
    take_id(submit_spec(NIMI_SCENARIO_TYPE_TEXT_GENERATE, &spec, 0, ""));
    free(long_words);
    fake_text(fake_call(model, 0), STR("Hello"));
    fake_done(fake_call(model, 0), "m-1");
    settle();
    const struct nimi_get_scenario_artifacts_request request = {.job_id = str_from(id)};
    size_t before = mem_counted();
    struct exchange *x = ask_as(AI "GetScenarioArtifacts",
                                &nimi_get_scenario_artifacts_request_table, &request, false);
    bool waits = !fake_closed(x) && exchange_queued(x) > 0;
    size_t meanwhile = mem_counted();
    fake_read_all(x);
    settle();
    assert_status(x, "0");
    fake_free(x);
    assert_true(waits);
    assert_in_range(meanwhile, 0, before + 1 * MIB);
}

static void an_artifact_that_cannot_be_kept_fails_the_job(void **state) {
    (void)state;
    submit_speech(0);
    fake_store_ask_me(store);
    fake_media_artifact(fake_media_call(media, 0), "audio/wav", STR("sound"));
    fake_media_done(fake_media_call(media, 0), "v");
    settle();
    fake_store_fail(store, 0, ERR_UNAVAILABLE);
    fake_store_always_commit(store);
    settle();
    while (fake_store_writes(store)) fake_store_commit(store, 0);
    settle();
    assert_story("submitted queued running failed (207) =0");
}

static void a_media_that_makes_nothing_has_failed(void **state) {
    (void)state;
    submit_speech(0);
    fake_media_done(fake_media_call(media, 0), "v");
    settle();
    assert_story("submitted queued running failed (207) =0");
}

/* --- keys
 * --------------------------------------------------------------------------------------- */

static void a_second_submit_that_meets_the_first_on_its_way_waits_for_it(void **state) {
    (void)state;
    char first[64];
    fake_store_ask_me(store);
    struct exchange *one = begin_text(0, "k");
    struct exchange *two = begin_text(0, "k");
    assert_false(fake_closed(one));
    assert_false(fake_closed(two));
    fake_store_always_commit(store);
    while (fake_store_writes(store)) fake_store_commit(store, 0);
    settle();
    take_id(one);
    memcpy(first, id, sizeof(id));
    loop_advance(loop, 10);
    settle();
    take_id(two);
    assert_string_equal(first, id);
    assert_int_equal(fake_calls_ever(model), 1);
    struct exchange *other = begin_text(77, "k");
    assert_status(other, "6");
    fake_free(other);
}

/* T1 */
static void a_job_that_cannot_be_stored_is_refused_and_leaves_its_key(void **state) {
    (void)state;
    fake_store_always_lose(store, ERR_UNAVAILABLE);
    struct exchange *x = begin_text(0, "k");
    assert_status(x, "14");
    fake_free(x);
    assert_int_equal(instance.job_count, 0);
    assert_int_equal(slots_used(), 0);
    fake_store_always_commit(store);
    take_id(begin_text(0, "k"));
    assert_int_equal(fake_calls(model), 1);
}

/* --- readers
 * -------------------------------------------------------------------------------------- */

/* K20, K24: no terminal event for a peer that did not read, and no other peer waits. */
static void a_reader_that_never_reads_is_ended_without_the_end(void **state) {
    (void)state;
    const double values[] = {0.5, -1};
    submit_vectors(0);
    struct exchange *slow = subscribe();
    fake_stop_reading(slow);
    for (size_t i = 0; i < INPUTS; i++) {
        fake_media_vector(fake_media_call(media, 0), i, values, ARRAY_LEN(values));
        settle();
    }
    assert_int_equal(fake_media_calls(media), 1); /* it paces no provider */
    loop_advance(loop, 30001);
    settle();
    fake_media_done(fake_media_call(media, 0), "v-1");
    settle();
    fake_read_all(slow);
    settle();
    assert_true(fake_closed(slow));
    struct str status = fake_value(fake_trailers(slow), "grpc-status");
    assert_true(fake_aborted(slow) >= 0 || str_equal(status, STR("8")));
    struct arena *arena = arena_new(64 * MIB);
    struct nimi_scenario_job_event event;
    struct str rest = fake_sent(slow);
    while (next_message(&rest, &nimi_scenario_job_event_table, arena, &event))
        assert_true(event.event_type < NIMI_SCENARIO_JOB_EVENT_COMPLETED);
    arena_free(arena);
    fake_free(slow);
    assert_int_equal(instance.job_count, 0);
}

/* C10 */
static void stopping_cuts_subscribers_and_leaves_the_job(void **state) {
    (void)state;
    submit_text(0);
    struct exchange *x = subscribe();
    nimi_runtime_move(runtime, LIFE_STOPPING, "stopping");
    rpc_site_warn(site);
    settle();
    assert_heard(x, "submitted queued running =1");
    assert_str(fake_value(fake_trailers(x), "grpc-message"), "runtime shutting down");
    fake_free(x);
    struct exchange *late = subscribe();
    assert_heard(late, "=1");
    fake_free(late);
    assert_int_equal(instance.job_count, 1);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        T(a_text_job_completes),
        T(a_failure_is_reported_with_its_reason),
        T(a_cancel_shows_its_reason_and_stops_the_model),
        T(a_job_that_waits_is_cancelled_too),
        T(each_type_has_its_time_from_when_it_runs),
        T(the_wait_for_a_slot_does_not_count),
        T(progress_repeats_running_for_each_report),
        T(changes_of_one_loop_turn_are_reported_once),
        T(pictures_are_kept_in_the_order_they_came),
        T(a_transcript_is_the_output),
        T(a_result_that_waits_for_its_reader_holds_no_request),
        T(an_artifact_that_cannot_be_kept_fails_the_job),
        T(a_media_that_makes_nothing_has_failed),
        T(a_second_submit_that_meets_the_first_on_its_way_waits_for_it),
        T(a_job_that_cannot_be_stored_is_refused_and_leaves_its_key),
        T(a_reader_that_never_reads_is_ended_without_the_end),
        T(stopping_cuts_subscribers_and_leaves_the_job),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
