/* Speech by StreamScenario and vectors by ExecuteScenario, on a fake clock. */
#include "fixture.h"

#include "fake/exchange_fake.h" /* named here: the build links them */
#include "fake/media_fake.h"
#include "fake/provider_fake.h"

#include <math.h>

#define ROOM_BYTES (512 * KIB) /* a real queue holds more than a fake one */

static const struct nimi_scenario_request_head head = {.app_id = STR_INIT("demo.app"),
                                                       .model_id = STR_INIT("speech/v"),
                                                       .route_policy = NIMI_ROUTE_POLICY_LOCAL};

/* --- speech ------------------------------------------------------------------------------- */

static struct exchange *speak_as(const struct nimi_speech_synthesize_scenario_spec *speech,
                                 const struct nimi_scenario_request_head *with) {
    const struct nimi_scenario_spec spec = {.which_spec = NIMI_SCENARIO_SPEC_SPEECH_SYNTHESIZE,
                                            .speech_synthesize = speech};
    const struct nimi_stream_scenario_request request = {
        .head = with, .scenario_type = NIMI_SCENARIO_TYPE_SPEECH_SYNTHESIZE, .spec = &spec};
    struct exchange *x = open_call("StreamScenario");
    fake_room(x, ROOM_BYTES);
    fake_start(x, serve, site);
    send_message(x, &nimi_stream_scenario_request_table, &request);
    return x;
}

static struct exchange *speak(void) {
    return speak_as(&(struct nimi_speech_synthesize_scenario_spec){.text = STR("Good day")},
                    &head);
}

static struct media_call *call(void) {
    return fake_media_call(media, 0);
}

static struct str sound(size_t len) {
    static char bytes[16 * MIB];
    for (size_t i = 0; i < len; i++) bytes[i] = (char)(i * 7 + i / 251);
    return str_of(bytes, len);
}

/* C4, acceptance line 6 */
static void sound_comes_in_pieces_that_each_name_their_type(void **state) {
    (void)state;
    struct exchange *x = speak();
    assert_heard(x, "started(v) ");
    assert_str(fake_media_request(call())->text, "Good day");
    fake_media_artifact(call(), "audio/wav", sound(70000));
    fake_media_usage(call(), 3, 4);
    fake_media_done(call(), "v-1");
    finish(x, "started(v) audio(audio/wav 32768) audio(audio/wav 32768) audio(audio/wav 4464) "
              "usage(3/4) completed(0 3/4) =0");
}

static void uncounted_usage_is_minus_one_everywhere(void **state) {
    (void)state;
    struct exchange *x = speak();
    fake_media_artifact(call(), "audio/wav", STR("RIFF"));
    fake_media_done(call(), "v");
    finish(x, "started(v) audio(audio/wav 4) usage(-1/-1) completed(0 -1/-1) =0");
}

/* C4 */
static void a_failure_is_a_frame_without_sound_and_ok(void **state) {
    (void)state;
    struct exchange *x = speak();
    fake_media_fail(call(), ERR_UNAVAILABLE, "PROVIDER_OVERLOADED");
    finish(x, "started(v) failed(202 -1/-1) =0");
}

static void a_provider_that_made_no_sound_has_failed(void **state) {
    (void)state;
    struct exchange *x = speak();
    fake_media_done(call(), "v");
    finish(x, "started(v) failed(207 -1/-1) =0");
}

/* C5: 45 s in all, and the first 60 s cannot be longer. */
static void speech_has_forty_five_seconds(void **state) {
    (void)state;
    struct exchange *x = speak();
    loop_advance(loop, 44999);
    fake_settle(loop);
    assert_heard(x, "started(v) ");
    loop_advance(loop, 1);
    finish(x, "started(v) failed(394 -1/-1) =0");
    assert_int_equal(fake_media_calls(media), 0);
}

static void a_request_may_ask_for_more_time_up_to_five_minutes(void **state) {
    (void)state;
    struct nimi_scenario_request_head patient = head;
    patient.timeout_ms = 3600000;
    struct exchange *x = speak_as(
        &(struct nimi_speech_synthesize_scenario_spec){.text = STR("Good day")}, &patient);
    loop_advance(loop, 59999);
    fake_media_artifact(call(), "audio/wav", STR("RIFF"));
    fake_settle(loop);
    for (size_t i = 0; i < 12; i++) {
        loop_advance(loop, 20000);
        if (fake_media_calls(media)) fake_media_artifact(call(), "audio/wav", STR("RI"));
    }
    assert_int_equal(fake_media_calls(media), 1);
    loop_advance(loop, 1);
    fake_settle(loop);
    assert_int_equal(fake_media_calls(media), 0);
    fake_settle(loop);
    assert_str(fake_value(fake_trailers(x), "grpc-status"), "0");
    fake_free(x);
}

/* C10 */
static void stopping_cuts_speech_cancelled_and_forges_nothing(void **state) {
    (void)state;
    struct exchange *x = speak();
    fake_media_artifact(call(), "audio/wav", STR("RIFF"));
    fake_settle(loop);
    nimi_runtime_move(runtime, LIFE_STOPPING, "stopping");
    rpc_site_warn(site);
    fake_settle(loop);
    assert_str(fake_value(fake_trailers(x), "grpc-message"), "runtime shutting down");
    finish(x, "started(v) audio(audio/wav 4) =1");
    assert_int_equal(fake_media_calls(media), 0);
}

static void a_caller_who_leaves_ends_the_speech(void **state) {
    (void)state;
    struct exchange *x = speak();
    fake_leave(x);
    fake_settle(loop);
    assert_int_equal(fake_media_calls(media), 0);
    assert_int_equal(scheduler_occupancy(runtime->scheduler, STR("")).global_used, 0);
    fake_free(x);
}

/* B1 with sixteen mebibytes: the reader's pace is the feed's, and nothing is lost. */
static void the_longest_sound_waits_for_its_reader(void **state) {
    (void)state;
    struct exchange *x = speak();
    fake_stop_reading(x);
    fake_media_artifact(call(), "audio/pcm", sound(16 * MIB));
    fake_media_done(call(), "v");
    fake_settle(loop);
    /* Others may have its slot while it is read. */
    assert_int_equal(scheduler_occupancy(runtime->scheduler, STR("")).global_used, 0);
    for (size_t i = 0; i < 40 * 1024 && !fake_ended(x); i++) {
        fake_read(x, 64 * KIB);
        fake_settle(loop);
        loop_advance(loop, 10);
    }
    fake_read_all(x);
    fake_settle(loop);
    assert_true(fake_closed(x));
    struct str rest = fake_sent(x), message;
    size_t bytes = 0;
    while (next_message(&rest, &message)) {
        struct arena *arena = arena_new(MIB);
        struct nimi_stream_scenario_event event;
        struct err e;
        assert_true(
            pb_decode_view(&nimi_stream_scenario_event_table, message, arena, &event, &e));
        if (event.which_payload == NIMI_STREAM_SCENARIO_EVENT_DELTA) {
            struct str chunk = event.delta->artifact->chunk;
            assert_true(
                str_equal(chunk, str_head(str_skip(sound(16 * MIB), bytes), chunk.len)));
            bytes += chunk.len;
        }
        arena_free(arena);
    }
    assert_int_equal(bytes, 16 * MIB);
    assert_str(fake_value(fake_trailers(x), "grpc-status"), "0");
    fake_free(x);
}

/* K20 */
static void a_reader_that_never_reads_is_ended_alone(void **state) {
    (void)state;
    struct exchange *x = speak();
    fake_stop_reading(x);
    fake_media_artifact(call(), "audio/pcm", sound(4 * MIB));
    fake_media_done(call(), "v");
    fake_settle(loop);
    loop_advance(loop, 31000);
    fake_settle(loop);
    fake_read_all(x);
    fake_settle(loop);
    assert_true(fake_closed(x));
    struct str status = fake_value(fake_trailers(x), "grpc-status");
    assert_true(fake_aborted(x) >= 0 || str_equal(status, STR("8")));
    fake_free(x);
}

/* --- before anything is promised ---------------------------------------------------------- */

#define SPEC(...)                                                                              \
    { .text = STR_INIT("hi"), __VA_ARGS__ }

static void what_no_voice_can_is_refused_before_it_is_asked(void **state) {
    (void)state;
    static const struct media_voice voices[] = {{.id = STR_INIT("anna")}};
    static const struct nimi_voice_reference nobody = {NIMI_VOICE_REFERENCE_KIND_PRESET,
                                                       NIMI_VOICE_REFERENCE_PRESET_VOICE_ID,
                                                       {.preset_voice_id = STR_INIT("bob")}},
                                             asset = {NIMI_VOICE_REFERENCE_KIND_VOICE_ASSET,
                                                      NIMI_VOICE_REFERENCE_VOICE_ASSET_ID,
                                                      {.voice_asset_id = STR_INIT("v-1")}},
                                             mixed = {NIMI_VOICE_REFERENCE_KIND_VOICE_ASSET,
                                                      NIMI_VOICE_REFERENCE_PRESET_VOICE_ID,
                                                      {.preset_voice_id = STR_INIT("anna")}},
                                             hollow = {NIMI_VOICE_REFERENCE_KIND_PRESET,
                                                       NIMI_VOICE_REFERENCE_PRESET_VOICE_ID,
                                                       {.preset_voice_id = STR_INIT(" ")}},
                                             bare = {.kind = NIMI_VOICE_REFERENCE_KIND_PRESET};
    static const struct nimi_voice_render_hints hints = {.stability = 0.5f};
    const struct {
        struct nimi_speech_synthesize_scenario_spec spec;
        const char *status, *reason;
    } rows[] = {
        {{.text = STR(" \n")}, "3", "AI_INPUT_INVALID"},
        {SPEC(.sample_rate_hz = 192001), "3", "AI_MEDIA_SPEC_INVALID"},
        {SPEC(.sample_rate_hz = -1), "3", "AI_MEDIA_SPEC_INVALID"},
        {SPEC(.speed = 4.5f), "3", "AI_MEDIA_SPEC_INVALID"},
        {SPEC(.speed = -1), "3", "AI_MEDIA_SPEC_INVALID"},
        {SPEC(.speed = NAN), "3", "AI_MEDIA_SPEC_INVALID"},
        {SPEC(.pitch = 25), "3", "AI_MEDIA_SPEC_INVALID"},
        {SPEC(.pitch = -25), "3", "AI_MEDIA_SPEC_INVALID"},
        {SPEC(.volume = 4.1f), "3", "AI_MEDIA_SPEC_INVALID"},
        {SPEC(.emotion = STR_INIT("glad")), "3", "AI_MEDIA_OPTION_UNSUPPORTED"},
        {SPEC(.timing_mode = NIMI_SPEECH_TIMING_MODE_WORD), "3", "AI_MEDIA_OPTION_UNSUPPORTED"},
        {SPEC(.voice_render_hints = &hints), "3", "AI_MEDIA_OPTION_UNSUPPORTED"},
        {SPEC(.audio_format = STR_INIT("mp3")), "3", "AI_MEDIA_OPTION_UNSUPPORTED"},
        {SPEC(.voice_ref = &nobody), "3", "AI_VOICE_INPUT_INVALID"},
        {SPEC(.voice_ref = &mixed), "3", "AI_VOICE_INPUT_INVALID"},
        {SPEC(.voice_ref = &hollow), "3", "AI_VOICE_INPUT_INVALID"},
        {SPEC(.voice_ref = &bare), "3", "AI_VOICE_INPUT_INVALID"},
        {SPEC(.voice_ref = &asset), "5", "AI_VOICE_ASSET_NOT_FOUND"},
    };
    fake_media_voices(media, voices, ARRAY_LEN(voices));
    fake_media_lacks(media, "mp3");
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        refused(speak_as(&rows[i].spec, &head), rows[i].status, rows[i].reason);
    assert_int_equal(fake_media_calls_ever(media), 0);
}

static void a_refusal_of_a_media_provider_is_a_status_too(void **state) {
    (void)state;
    const struct nimi_speech_synthesize_scenario_spec spec = {.text = STR("hi")};
    fake_media_only(media, "other");
    refused(speak_as(&spec, &head), "9", "AI_MODALITY_NOT_SUPPORTED");
    fake_media_only(media, NULL);
    fake_media_refuses(media, ERR_UNAVAILABLE);
    refused(speak_as(&spec, &head), "9", "AI_LOCAL_MODEL_UNAVAILABLE");
    fake_media_refuses(media, ERR_TOO_LARGE);
    refused(speak_as(&spec, &head), "3", "AI_INPUT_INVALID");
    fake_media_refuses(media, ERR_INVALID_ARGUMENT);
    refused(speak_as(&spec, &head), "3", "AI_MEDIA_OPTION_UNSUPPORTED");
    assert_int_equal(fake_media_calls_ever(media), 0);
}

static void what_the_voice_can_reaches_it(void **state) {
    (void)state;
    static const struct media_voice voices[] = {{.id = STR_INIT("anna")}};
    static const struct nimi_voice_reference anna = {NIMI_VOICE_REFERENCE_KIND_PRESET,
                                                     NIMI_VOICE_REFERENCE_PRESET_VOICE_ID,
                                                     {.preset_voice_id = STR_INIT("anna")}};
    const struct nimi_speech_synthesize_scenario_spec spec = {.text = STR("hi"),
                                                              .language = STR("de-AT"),
                                                              .audio_format = STR("pcm"),
                                                              .sample_rate_hz = 24000,
                                                              .speed = 1.5f,
                                                              .pitch = -24,
                                                              .volume = 4,
                                                              .voice_ref = &anna,
                                                              .timing_mode =
                                                                  NIMI_SPEECH_TIMING_MODE_NONE};
    fake_media_voices(media, voices, ARRAY_LEN(voices));
    struct exchange *x = speak_as(&spec, &head);
    const struct media_request *request = fake_media_request(call());
    assert_str(request->model, "v");
    assert_str(request->language, "de-AT");
    assert_str(request->voice, "anna");
    assert_str(request->format, "pcm");
    assert_int_equal(request->sample_rate_hz, 24000);
    assert_true(request->speed == 1.5 && request->pitch == -24 && request->volume == 4);
    fake_media_fail(call(), ERR_INTERNAL, "PROVIDER_ERROR");
    finish(x, "started(v) failed(392 -1/-1) =0");
}

/* One that does not tell its voices takes any; what only it knows by name passes as it is. */
static void a_provider_may_know_voices_that_it_does_not_list(void **state) {
    (void)state;
    static const struct nimi_voice_reference theirs = {
        NIMI_VOICE_REFERENCE_KIND_PROVIDER_VOICE_REF,
        NIMI_VOICE_REFERENCE_PROVIDER_VOICE_REF,
        {.provider_voice_ref = STR_INIT("x-17")}};
    const struct nimi_speech_synthesize_scenario_spec spec = SPEC(.voice_ref = &theirs);
    struct exchange *x = speak_as(&spec, &head);
    assert_str(fake_media_request(call())->voice, "x-17");
    fake_leave(x);
    fake_settle(loop);
    fake_free(x);
}

static void a_budget_that_is_used_up_is_a_status(void **state) {
    (void)state;
    static const struct budget budget = {STR_INIT(""), STR_INIT(""), BUDGET_DAY, 0, 1};
    engine.ledger = ledger_new(NULL, loop);
    engine.budgets = &budget;
    engine.budget_count = 1;
    refused(speak(), "8", "AI_PROVIDER_RATE_LIMITED");
    fake_settle(loop);
    ledger_free(engine.ledger);
    engine.ledger = NULL;
    assert_int_equal(fake_media_calls_ever(media), 0);
}

/* --- vectors ------------------------------------------------------------------------------ */

static struct exchange *embed(size_t count) {
    static const struct str inputs[] = {STR_INIT("one"), STR_INIT("two"), STR_INIT("three")};
    const struct nimi_text_embed_scenario_spec texts = {inputs, count};
    const struct nimi_scenario_spec spec = {.which_spec = NIMI_SCENARIO_SPEC_TEXT_EMBED,
                                            .text_embed = &texts};
    struct nimi_scenario_request_head local = head;
    local.model_id = STR("e");
    const struct nimi_execute_scenario_request request = {
        .head = &local, .scenario_type = NIMI_SCENARIO_TYPE_TEXT_EMBED, .spec = &spec};
    struct exchange *x = open_call("ExecuteScenario");
    fake_start(x, serve, site);
    send_message(x, &nimi_execute_scenario_request_table, &request);
    return x;
}

static void put_vectors(struct buf *out, const struct nimi_text_embed_output *output) {
    for (size_t i = 0; i < output->vectors_count; i++) {
        buf_append(out, STR("("));
        for (size_t v = 0; v < output->vectors[i].values_count; v++)
            buf_printf(out, "%s%g", v ? " " : "", output->vectors[i].values[v]);
        buf_append(out, STR(") "));
    }
}

static void vectors_stand_in_the_order_of_their_inputs(void **state) {
    (void)state;
    static const double values[] = {1, 0.5, -2};
    struct exchange *x = embed(3);
    assert_int_equal(fake_media_request(call())->input_count, 3);
    fake_media_vector(call(), 2, values, 1);
    fake_media_vector(call(), 0, values, 3);
    fake_media_vector(call(), 1, values + 1, 2);
    fake_media_usage(call(), 5, 0);
    fake_media_done(call(), "e-1");
    fake_settle(loop);
    struct str rest = fake_sent(x), message;
    struct nimi_execute_scenario_response reply;
    struct arena *arena = arena_new(MIB);
    struct buf seen;
    struct err e;
    assert_true(next_message(&rest, &message));
    assert_true(
        pb_decode_view(&nimi_execute_scenario_response_table, message, arena, &reply, &e));
    buf_init(&seen, KIB);
    assert_int_equal(reply.output->which_output, NIMI_SCENARIO_OUTPUT_TEXT_EMBED);
    put_vectors(&seen, reply.output->text_embed);
    assert_str(buf_str(&seen), "(1 0.5 -2) (0.5 -2) (1) ");
    assert_int_equal(reply.usage->input_tokens, 5);
    assert_int_equal(reply.usage->compute_ms, -1);
    assert_int_equal(reply.finish_reason, NIMI_FINISH_REASON_STOP);
    assert_str(reply.model_resolved, "e-1");
    assert_str(fake_value(fake_trailers(x), "grpc-status"), "0");
    buf_done(&seen);
    arena_free(arena);
    fake_free(x);
}

static void an_embedding_has_twenty_seconds_and_is_a_status(void **state) {
    (void)state;
    struct exchange *x = embed(1);
    loop_advance(loop, 19999);
    assert_int_equal(fake_media_calls(media), 1);
    loop_advance(loop, 1);
    refused(x, "4", "AI_PROVIDER_TIMEOUT");
}

static void a_failed_embedding_is_a_status_with_its_reason(void **state) {
    (void)state;
    struct exchange *x = embed(1);
    fake_media_fail(call(), ERR_UNAUTHENTICATED, "PROVIDER_AUTH");
    refused(x, "9", "AI_PROVIDER_AUTH_FAILED");
    refused(embed(0), "3", "AI_INPUT_INVALID");
}

static void an_input_without_its_vector_fails_them_all(void **state) {
    (void)state;
    static const double values[] = {1};
    struct exchange *x = embed(2);
    fake_media_vector(call(), 1, values, 1);
    fake_media_done(call(), "e");
    refused(x, "13", "AI_OUTPUT_INVALID");
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        T(sound_comes_in_pieces_that_each_name_their_type),
        T(uncounted_usage_is_minus_one_everywhere),
        T(a_failure_is_a_frame_without_sound_and_ok),
        T(a_provider_that_made_no_sound_has_failed),
        T(speech_has_forty_five_seconds),
        T(a_request_may_ask_for_more_time_up_to_five_minutes),
        T(stopping_cuts_speech_cancelled_and_forges_nothing),
        T(a_caller_who_leaves_ends_the_speech),
        T(the_longest_sound_waits_for_its_reader),
        T(a_reader_that_never_reads_is_ended_alone),
        T(what_no_voice_can_is_refused_before_it_is_asked),
        T(a_refusal_of_a_media_provider_is_a_status_too),
        T(what_the_voice_can_reaches_it),
        T(a_provider_may_know_voices_that_it_does_not_list),
        T(a_budget_that_is_used_up_is_a_status),
        T(vectors_stand_in_the_order_of_their_inputs),
        T(an_embedding_has_twenty_seconds_and_is_a_status),
        T(a_failed_embedding_is_a_status_with_its_reason),
        T(an_input_without_its_vector_fails_them_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
