/* Realtime sessions as calls: what comes out of them, in order, and what bounds them. */
#include "contract/nimi/realtime/realtime.h"

#include "contract/nimi/fixture.h"
#include "contract/nimi/realtime/session.h"
#include "fake/exchange_fake.h"
#include "fake/media_fake.h"
#include "fake/provider_fake.h"

#define SERVICE "/nimi.runtime.v1.RuntimeAiRealtimeService/"

/* Events go from loop to loop by mail, and readers take turns. */
static void calm(void) {
    for (int i = 0; i < 8; i++) {
        fake_settle(loop);
        loop_advance(loop, 1);
    }
}

static struct exchange *ask_as(const char *app, const char *method,
                               const struct pb_message *type, const void *message) {
    char path[128];
    snprintf(path, sizeof(path), SERVICE "%s", method);
    struct exchange *x = fake_new(loop, "POST", path);
    fake_field(x, "content-type", "application/grpc");
    fake_field(x, "x-nimi-protocol-version", "1.0.0");
    fake_field(x, "x-nimi-participant-protocol-version", "1.0.0");
    fake_field(x, "x-nimi-participant-id", app);
    fake_field(x, "x-nimi-app-id", app);
    fake_field(x, "x-nimi-domain", "runtime.rpc");
    fake_start(x, serve, site);
    send_message(x, type, message);
    return x;
}

/* --- opening ------------------------------------------------------------------------------ */

static struct exchange *open_with(const char *app, const char *format) {
    const struct nimi_scenario_request_head head = {.app_id = str_from(app),
                                                    .model_id = STR("local/m"),
                                                    .route_policy = NIMI_ROUTE_POLICY_LOCAL};
    return ask_as(
        app, "OpenRealtimeSession", &nimi_open_realtime_session_request_table,
        &(struct nimi_open_realtime_session_request){.head = &head,
                                                     .system_prompt = STR("Be brief."),
                                                     .output_audio_format = str_from(format)});
}

static char id[REALTIME_ID_LEN + 1];

static void open_session(const char *format) {
    struct exchange *x = open_with("demo.app", format);
    struct str rest = fake_sent(x), message;
    struct arena *arena = arena_new(MIB);
    struct nimi_open_realtime_session_response said;
    struct err e;
    assert_true(next_message(&rest, &message));
    assert_true(
        pb_decode_view(&nimi_open_realtime_session_response_table, message, arena, &said, &e));
    assert_int_equal(said.session_id.len, REALTIME_ID_LEN);
    assert_true(str_starts(said.session_id, STR("rt_")));
    assert_str(said.model_resolved, "m");
    assert_int_equal(said.route_decision, NIMI_ROUTE_POLICY_LOCAL);
    snprintf(id, sizeof(id), STR_FMT, STR_ARG(said.session_id));
    arena_free(arena);
    fake_free(x);
}

static struct realtime_session *session(void) {
    struct realtime_session *found = realtime_table_find(runtime->realtime, str_from(id));
    realtime_unref(found); /* the table has one */
    return found;
}

/* --- appending, reading, closing ---------------------------------------------------------- */

static struct exchange *append_as(const char *app, const char *role, const char *text) {
    const struct nimi_chat_message message = {.role = str_from(role),
                                              .content = str_from(text)};
    const struct nimi_realtime_input_item item = {
        .which_item = NIMI_REALTIME_INPUT_ITEM_MESSAGE, .message = &message};
    return ask_as(app, "AppendRealtimeInput", &nimi_append_realtime_input_request_table,
                  &(struct nimi_append_realtime_input_request){
                      .session_id = str_from(id), .items = &item, .items_count = 1});
}

static void assert_status(struct exchange *x, const char *status, const char *reason) {
    calm();
    assert_str(fake_value(fake_trailers(x), "grpc-status"), status);
    struct str text = fake_value(fake_trailers(x), "grpc-message");
    if (reason && str_find(text, str_from(reason)) == text.len)
        fail_msg("%s is not in " STR_FMT, reason, STR_ARG(text));
    fake_free(x);
}

static void append(const char *text) {
    assert_status(append_as("demo.app", "user", text), "0", NULL);
}

static struct exchange *read_from(uint64_t after) {
    return ask_as("demo.app", "ReadRealtimeEvents", &nimi_read_realtime_events_request_table,
                  &(struct nimi_read_realtime_events_request){.session_id = str_from(id),
                                                              .after_sequence = after});
}

static struct exchange *close_as(const char *app) {
    return ask_as(app, "CloseRealtimeSession", &nimi_close_realtime_session_request_table,
                  &(struct nimi_close_realtime_session_request){.session_id = str_from(id)});
}

static void close_session(void) {
    assert_status(close_as("demo.app"), "0", NULL);
    calm();
}

static void put_word(struct buf *out, const struct nimi_realtime_event *event) {
    switch (event->which_payload) {
    case NIMI_REALTIME_EVENT_OPENED_CASE:
        assert_int_equal(event->event_type, NIMI_REALTIME_EVENT_OPENED);
        assert_str(event->opened->session_id, id);
        buf_printf(out, "opened ");
        break;
    case NIMI_REALTIME_EVENT_TEXT_DELTA_CASE:
        assert_int_equal(event->event_type, NIMI_REALTIME_EVENT_TEXT_DELTA);
        buf_printf(out, "text(" STR_FMT ") ", STR_ARG(event->text_delta->text));
        break;
    case NIMI_REALTIME_EVENT_AUDIO_CHUNK_CASE:
        assert_int_equal(event->event_type, NIMI_REALTIME_EVENT_AUDIO_CHUNK);
        buf_printf(out, "audio(" STR_FMT " %zu%s) ", STR_ARG(event->audio_chunk->mime_type),
                   event->audio_chunk->chunk.len, event->audio_chunk->eof ? " eof" : "");
        break;
    case NIMI_REALTIME_EVENT_COMPLETED_CASE:
        assert_int_equal(event->event_type, NIMI_REALTIME_EVENT_COMPLETED);
        if (event->completed->usage)
            buf_printf(out, "completed(%lld/%lld) ",
                       (long long)event->completed->usage->input_tokens,
                       (long long)event->completed->usage->output_tokens);
        else
            buf_printf(out, "closed ");
        break;
    default:
        assert_int_equal(event->event_type, NIMI_REALTIME_EVENT_FAILED);
        assert_true(event->failed->action_hint.len > 0);
        buf_printf(out, "failed(%d) ", event->failed->reason_code);
    }
}

/* Events as words, from `after` on without a gap, and the status if there is one. */
static void assert_events(const struct exchange *x, uint64_t after, const char *expected) {
    struct buf heard;
    struct str rest = fake_sent(x), message;
    buf_init(&heard, MIB);
    while (next_message(&rest, &message)) {
        struct arena *arena = arena_new(MIB);
        struct nimi_realtime_event event;
        struct err e;
        assert_true(pb_decode_view(&nimi_realtime_event_table, message, arena, &event, &e));
        assert_int_equal(event.sequence, ++after);
        assert_int_equal(event.trace_id.len, ULID_LEN);
        assert_true(event.timestamp->seconds > 0);
        put_word(&heard, &event);
        arena_free(arena);
    }
    struct str status = fake_value(fake_trailers(x), "grpc-status");
    if (status.at) buf_printf(&heard, "=" STR_FMT, STR_ARG(status));
    assert_str(buf_str(&heard), expected);
    buf_done(&heard);
}

static struct provider_call *asked(void) {
    calm();
    assert_int_equal(fake_calls(model), 1);
    return fake_call(model, 0);
}

static void answer(const char *text) {
    struct provider_call *call = asked();
    assert_true(fake_text(call, str_from(text)));
    assert_true(fake_usage(call, 3, 2));
    fake_done(call, "m");
    calm();
}

/* --- tests -------------------------------------------------------------------------------- */

static void a_turn_is_text_then_completed_with_usage(void **state) {
    (void)state;
    open_session("");
    struct exchange *x = read_from(0);
    calm();
    assert_events(x, 0, "opened ");
    append("hello");
    answer("hi there");
    assert_events(x, 0, "opened text(hi there) completed(3/2) ");
    close_session();
    assert_events(x, 0, "opened text(hi there) completed(3/2) closed =0");
    assert_int_equal(list_empty(&instance.realtime), 1);
    fake_free(x);
}

static void the_model_is_shown_the_conversation(void **state) {
    (void)state;
    open_session("");
    append("my name is Ada");
    answer("hello Ada");
    append("what is it");
    const struct provider_request *request = fake_request(asked());
    assert_str(request->system, "Be brief.");
    assert_int_equal(request->message_count, 3);
    assert_int_equal(request->messages[0].role, MESSAGE_USER);
    assert_str(request->messages[0].text, "my name is Ada");
    assert_int_equal(request->messages[1].role, MESSAGE_AGENT);
    assert_str(request->messages[1].text, "hello Ada");
    assert_str(request->messages[2].text, "what is it");
    assert_int_equal(request->turn_start, 2);
    answer("Ada");
    close_session();
}

static void what_is_appended_during_a_turn_makes_the_next(void **state) {
    (void)state;
    open_session("");
    append("one");
    append("two");
    append("three");
    answer("1");
    assert_str(fake_request(asked())->messages[2].text, "two");
    answer("2");
    answer("3");
    struct exchange *x = read_from(1);
    calm();
    assert_events(x, 1,
                  "text(1) completed(3/2) text(2) completed(3/2) text(3) completed(3/2) ");
    close_session();
    fake_free(x);
}

/* It is no part of the conversation, and the session goes on. */
static void a_turn_that_fails_is_an_event(void **state) {
    (void)state;
    open_session("");
    append("hello");
    struct provider_call *call = asked();
    assert_true(fake_text(call, STR("half")));
    fake_fail(call, ERR_UNAVAILABLE, "PROVIDER_UNAVAILABLE");
    calm();
    append("again");
    assert_int_equal(fake_request(asked())->message_count, 1);
    answer("fine");
    struct exchange *x = read_from(1);
    calm();
    assert_events(x, 1, "text(half) failed(202) text(fine) completed(3/2) ");
    close_session();
    fake_free(x);
}

static void answers_are_spoken_in_pieces(void **state) {
    (void)state;
    static char sound[60 * KIB];
    open_session("wav");
    append("hello");
    answer("hi");
    assert_int_equal(fake_media_calls(media), 1);
    struct media_call *call = fake_media_call(media, 0);
    assert_str(fake_media_request(call)->text, "hi");
    assert_str(fake_media_request(call)->format, "wav");
    assert_true(fake_media_artifact(call, "audio/wav", str_of(sound, sizeof(sound))));
    fake_media_done(call, "voice");
    calm();
    struct exchange *x = read_from(1);
    fake_read_all(x);
    calm();
    assert_events(x, 1,
                  "text(hi) audio(audio/wav 24576) audio(audio/wav 24576) "
                  "audio(audio/wav 12288 eof) completed(3/2) ");
    close_session();
    fake_free(x);
}

static void speech_that_fails_fails_the_turn_only(void **state) {
    (void)state;
    open_session("wav");
    append("hello");
    answer("hi");
    fake_media_fail(fake_media_call(media, 0), ERR_UNAVAILABLE, "PROVIDER_UNAVAILABLE");
    calm();
    append("again");
    assert_int_equal(fake_request(asked())->message_count, 3); /* its text was heard */
    close_session();
    assert_int_equal(fake_calls(model), 0);
}

static void a_format_that_nothing_speaks_is_refused(void **state) {
    (void)state;
    fake_media_lacks(media, "ogg");
    assert_status(open_with("demo.app", "ogg"), "3", "AI_MEDIA_OPTION_UNSUPPORTED");
    connector.media = NULL;
    assert_status(open_with("demo.app", "wav"), "9", "AI_MODALITY_NOT_SUPPORTED");
}

static void a_session_has_one_reader(void **state) {
    (void)state;
    open_session("");
    struct exchange *x = read_from(0);
    assert_status(read_from(0), "9", "AI_REALTIME_SESSION_CLOSED");
    fake_leave(x);
    calm();
    fake_free(x);
    struct exchange *next = read_from(0);
    calm();
    assert_events(next, 0, "opened ");
    assert_status(read_from(0), "9", "AI_REALTIME_SESSION_CLOSED");
    close_session();
    assert_events(next, 0, "opened closed =0");
    fake_free(next);
}

static void a_reader_comes_back_after_what_it_has(void **state) {
    (void)state;
    open_session("");
    append("one");
    answer("first");
    struct exchange *x = read_from(2);
    calm();
    assert_events(x, 2, "completed(3/2) ");
    fake_leave(x);
    calm();
    fake_free(x);
    assert_status(read_from(4), "3", "after_sequence is 4");
    close_session();
}

/* What falls out of the backlog is gone; the numbers show it. */
static void the_backlog_is_bounded(void **state) {
    (void)state;
    open_session("");
    for (size_t i = 0; i < REALTIME_BACKLOG; i++) {
        append("x");
        answer("y"); /* two events */
    }
    assert_true(session()->counted > 0 && session()->counted <= REALTIME_BACKLOG_BYTES);
    struct exchange *x = read_from(0);
    fake_read_all(x);
    for (int i = 0; i < 25; i++) calm();
    struct str rest = fake_sent(x), message;
    size_t count = 0;
    while (next_message(&rest, &message)) count++;
    assert_int_equal(count, REALTIME_BACKLOG);
    close_session();
    fake_free(x);
}

/* The reader paces the model: nothing is lost, however long the answer is. */
static void a_slow_reader_pauses_the_model(void **state) {
    (void)state;
    static char words[64 * KIB];
    memset(words, 'w', sizeof(words));
    open_session("");
    struct exchange *x = read_from(0);
    calm();
    fake_stop_reading(x);
    append("tell me much");
    struct provider_call *call = asked();
    size_t given = 0;
    while (!fake_paused(call) && given < 4 * MIB) {
        assert_true(fake_text(call, str_of(words, sizeof(words))));
        given += sizeof(words);
        calm();
    }
    assert_true(fake_paused(call));
    assert_true(session()->counted < REALTIME_LAG_BYTES + 128 * KIB);
    fake_read_all(x);
    for (int i = 0; i < 50 && fake_paused(call); i++) calm();
    assert_false(fake_paused(call));
    fake_done(call, "m");
    for (int i = 0; i < 50; i++) calm();
    struct str rest = fake_sent(x), message;
    size_t heard = 0;
    uint64_t sequence = 0;
    while (next_message(&rest, &message)) {
        struct arena *arena = arena_new(MIB);
        struct nimi_realtime_event event;
        struct err e;
        assert_true(pb_decode_view(&nimi_realtime_event_table, message, arena, &event, &e));
        assert_int_equal(event.sequence, ++sequence);
        if (event.which_payload == NIMI_REALTIME_EVENT_TEXT_DELTA_CASE)
            heard += event.text_delta->text.len;
        arena_free(arena);
    }
    assert_int_equal(heard, given);
    close_session();
    fake_free(x);
}

/* A reader that leaves no longer paces. */
static void a_reader_that_leaves_releases_the_model(void **state) {
    (void)state;
    static char words[64 * KIB];
    memset(words, 'w', sizeof(words));
    open_session("");
    struct exchange *x = read_from(0);
    calm();
    fake_stop_reading(x);
    append("tell me much");
    struct provider_call *call = asked();
    while (!fake_paused(call)) {
        assert_true(fake_text(call, str_of(words, sizeof(words))));
        calm();
    }
    fake_leave(x);
    calm();
    fake_free(x);
    for (int i = 0; i < 50 && fake_paused(call); i++) calm();
    assert_false(fake_paused(call));
    fake_done(call, "m");
    close_session();
}

/* As one that never was (M4). */
static void another_apps_session_is_unknown(void **state) {
    (void)state;
    open_session("");
    assert_status(append_as("other.app", "user", "hi"), "5", "AI_REALTIME_SESSION_NOT_FOUND");
    assert_status(close_as("other.app"), "5", "AI_REALTIME_SESSION_NOT_FOUND");
    struct exchange *x =
        ask_as("other.app", "ReadRealtimeEvents", &nimi_read_realtime_events_request_table,
               &(struct nimi_read_realtime_events_request){.session_id = str_from(id)});
    assert_status(x, "5", "AI_REALTIME_SESSION_NOT_FOUND");
    assert_int_equal(fake_calls(model), 0);
    close_session();
}

static void a_closed_session_is_unknown(void **state) {
    (void)state;
    open_session("");
    append("hello");
    assert_int_equal(fake_calls(model) + 0, 1);
    close_session();
    assert_int_equal(fake_calls(model), 0); /* its turn was cancelled */
    assert_status(append_as("demo.app", "user", "hi"), "5", "AI_REALTIME_SESSION_NOT_FOUND");
    assert_status(read_from(0), "5", "AI_REALTIME_SESSION_NOT_FOUND");
    assert_status(close_as("demo.app"), "5", "AI_REALTIME_SESSION_NOT_FOUND");
}

static void input_that_a_model_cannot_answer_is_refused(void **state) {
    (void)state;
    open_session("");
    assert_status(append_as("demo.app", "wizard", "hi"), "3", "input[0]: no role");
    assert_status(append_as("demo.app", "user", ""), "3", "AI_INPUT_INVALID");
    const struct nimi_realtime_audio_input audio = {
        .which_source = NIMI_REALTIME_AUDIO_INPUT_AUDIO_BYTES, .audio_bytes = STR("noise")};
    const struct nimi_realtime_input_item items[] = {
        {.which_item = NIMI_REALTIME_INPUT_ITEM_AUDIO, .audio = &audio}, {.which_item = 0}};
    for (size_t i = 0; i < 2; i++) {
        struct exchange *x =
            ask_as("demo.app", "AppendRealtimeInput", &nimi_append_realtime_input_request_table,
                   &(struct nimi_append_realtime_input_request){
                       .session_id = str_from(id), .items = &items[i], .items_count = 1});
        assert_status(x, i ? "3" : "9", i ? "AI_INPUT_INVALID" : "AI_MODALITY_NOT_SUPPORTED");
    }
    struct exchange *none =
        ask_as("demo.app", "AppendRealtimeInput", &nimi_append_realtime_input_request_table,
               &(struct nimi_append_realtime_input_request){.session_id = str_from(id)});
    assert_status(none, "3", "nothing to append");
    close_session();
}

static void waiting_input_is_bounded(void **state) {
    (void)state;
    open_session("");
    append("first");
    (void)asked(); /* it runs; the others wait */
    for (int i = 0; i < REALTIME_INPUTS_MAX; i++) append("more");
    assert_status(append_as("demo.app", "user", "one too many"), "8",
                  "AI_PROVIDER_RATE_LIMITED");
    char *long_text = mem_zero(1, REALTIME_INPUT_BYTES + 1);
    memset(long_text, 'x', REALTIME_INPUT_BYTES);
    assert_status(append_as("demo.app", "user", long_text), "3", "AI_INPUT_INVALID");
    free(long_text);
    close_session();
}

static void an_app_has_a_bounded_number_of_sessions(void **state) {
    (void)state;
    for (int i = 0; i < REALTIME_SESSIONS_PER_APP; i++)
        assert_status(open_with("demo.app", ""), "0", NULL);
    assert_status(open_with("demo.app", ""), "8", "AI_PROVIDER_RATE_LIMITED");
    assert_status(open_with("other.app", ""), "0", NULL);
    nimi_instance_stopping(&instance);
    assert_true(list_empty(&instance.realtime));
}

/* Idle means without a turn; then its reader is told, and later calls find nothing. */
static void an_idle_session_ends(void **state) {
    (void)state;
    settings.realtime_idle_ms = 1000;
    open_session("");
    struct exchange *x = read_from(0);
    calm();
    loop_advance(loop, 900);
    append("hello");
    (void)asked();
    loop_advance(loop, 5000); /* a turn is no idleness */
    answer("hi");
    loop_advance(loop, 900);
    assert_non_null(session());
    loop_advance(loop, 200);
    calm();
    assert_events(x, 0, "opened text(hi) completed(3/2) =1");
    assert_str(fake_value(fake_trailers(x), "grpc-message"),
               "the realtime session was idle for too long");
    assert_null(session());
    assert_status(read_from(0), "5", "AI_REALTIME_SESSION_NOT_FOUND");
    fake_free(x);
}

static void a_stop_cancels_the_reader_and_invents_nothing(void **state) {
    (void)state;
    open_session("");
    struct exchange *x = read_from(0);
    append("hello");
    assert_true(fake_text(asked(), STR("unfinished")));
    calm();
    rpc_site_warn(site);
    nimi_instance_stopping(&instance);
    calm();
    assert_events(x, 0, "opened =1");
    assert_str(fake_value(fake_trailers(x), "grpc-message"), "runtime shutting down");
    assert_int_equal(fake_calls(model), 0);
    fake_free(x);
}

/* A change of the settings counts from the next turn on. */
static void a_connector_that_is_gone_fails_the_next_turn(void **state) {
    (void)state;
    open_session("");
    connector.enabled = false;
    append("hello");
    struct exchange *x = read_from(1);
    calm();
    assert_events(x, 1, "failed(352) ");
    close_session();
    fake_free(x);
}

int main(void) {
    const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
        TEST(a_turn_is_text_then_completed_with_usage),
        TEST(the_model_is_shown_the_conversation),
        TEST(what_is_appended_during_a_turn_makes_the_next),
        TEST(a_turn_that_fails_is_an_event),
        TEST(answers_are_spoken_in_pieces),
        TEST(speech_that_fails_fails_the_turn_only),
        TEST(a_format_that_nothing_speaks_is_refused),
        TEST(a_session_has_one_reader),
        TEST(a_reader_comes_back_after_what_it_has),
        TEST(the_backlog_is_bounded),
        TEST(a_slow_reader_pauses_the_model),
        TEST(a_reader_that_leaves_releases_the_model),
        TEST(another_apps_session_is_unknown),
        TEST(a_closed_session_is_unknown),
        TEST(input_that_a_model_cannot_answer_is_refused),
        TEST(waiting_input_is_bounded),
        TEST(an_app_has_a_bounded_number_of_sessions),
        TEST(an_idle_session_ends),
        TEST(a_stop_cancels_the_reader_and_invents_nothing),
        TEST(a_connector_that_is_gone_fails_the_next_turn),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
