/* What the server of a live model says, in the names of the beta and of the GA. */
#include "provider/live_event.h"

#include "base/units.h"
#include "helper/assert_str.h"

#include <stdio.h>

static struct buf room;
static struct live_event event;

static int setup(void **state) {
    (void)state;
    buf_init(&room, MIB);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    buf_done(&room);
    return 0;
}

static enum live_event_kind read_it(const char *text) {
    struct err e;
    if (!live_event_read(str_from(text), &room, &event, &e)) fail_msg("%s", e.text);
    return event.kind;
}

static void refuse(const char *text, enum err_code code) {
    struct err e;
    assert_false(live_event_read(str_from(text), &room, &event, &e));
    assert_int_equal(e.code, code);
}

static void texts_have_four_names(void **state) {
    (void)state;
    static const char *const names[] = {"text", "output_text", "audio_transcript",
                                        "output_audio_transcript"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        char text[200];
        snprintf(
            text, sizeof(text),
            "{\"type\":\"response.%s.delta\",\"response_id\":\"r1\",\"delta\":\"a\\n\\u00e9\"}",
            names[i]);
        assert_int_equal(read_it(text), LIVE_EVENT_TEXT);
        assert_str(event.response, "r1");
        assert_str(event.text, "a\n\xc3\xa9");
    }
}

static void sound_is_decoded(void **state) {
    (void)state;
    static const char *const texts[] = {
        "{\"type\":\"response.audio.delta\",\"response_id\":\"r\",\"delta\":\"AAECAw==\"}",
        "{\"delta\":\"AAECAw\",\"type\":\"response.output_audio.delta\",\"response_id\":"
        "\"r\"}"};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        assert_int_equal(read_it(texts[i]), LIVE_EVENT_SOUND);
        assert_int_equal(event.text.len, 4);
        assert_memory_equal(event.text.at, "\0\1\2\3", 4);
    }
    refuse("{\"type\":\"response.audio.delta\",\"delta\":\"A*\"}", ERR_MALFORMED);
}

static void a_session_shows_which_form_it_has(void **state) {
    (void)state;
    assert_int_equal(read_it("{\"type\":\"session.created\",\"session\":{\"type\":\"realtime\","
                             "\"output_modalities\":[\"audio\"]}}"),
                     LIVE_EVENT_SESSION_CREATED);
    assert_false(event.beta);
    read_it("{\"type\":\"session.created\",\"session\":{\"modalities\":[\"text\"]}}");
    assert_true(event.beta);
    read_it("{\"type\":\"session.created\"}");
    assert_false(event.beta);
}

static void the_end_has_a_status_and_usage(void **state) {
    (void)state;
    read_it(
        "{\"type\":\"response.done\",\"response\":{\"id\":\"r9\",\"status\":\"completed\","
        "\"output\":[{\"type\":\"message\",\"content\":[{\"type\":\"output_text\",\"text\":"
        "\"one \"},{\"type\":\"audio\",\"transcript\":\"two\"}]},{\"type\":\"function_call\","
        "\"name\":\"x\"}],\"usage\":{\"total_tokens\":9,\"input_tokens\":5,\"output_tokens\":4,"
        "\"input_token_details\":{\"cached_tokens\":2}}}}");
    assert_int_equal(event.kind, LIVE_EVENT_RESPONSE_DONE);
    assert_int_equal(event.status, LIVE_STATUS_COMPLETED);
    assert_str(event.response, "r9");
    assert_str(event.text, "one two");
    assert_int_equal(event.usage.prompt, 5);
    assert_int_equal(event.usage.completion, 4);
    assert_int_equal(event.usage.total, 9);
    assert_int_equal(event.usage.cached, 2);
}

static void every_status_is_known(void **state) {
    (void)state;
    static const struct {
        const char *response;
        enum live_status status;
    } rows[] = {
        {"{}", LIVE_STATUS_COMPLETED},
        {"{\"status\":\"cancelled\",\"status_details\":{\"reason\":\"turn_detected\"}}",
         LIVE_STATUS_CANCELLED},
        {"{\"status\":\"incomplete\",\"status_details\":{\"reason\":\"max_output_tokens\"}}",
         LIVE_STATUS_CUT},
        {"{\"status\":\"incomplete\",\"status_details\":{\"reason\":\"content_filter\"}}",
         LIVE_STATUS_FILTERED},
        {"{\"status\":\"failed\",\"status_details\":{\"error\":{\"code\":\"x\"}}}",
         LIVE_STATUS_FAILED},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        char text[300];
        snprintf(text, sizeof(text), "{\"type\":\"response.done\",\"response\":%s}",
                 rows[i].response);
        assert_int_equal(read_it(text), LIVE_EVENT_RESPONSE_DONE);
        assert_int_equal(event.status, rows[i].status);
        assert_int_equal(event.usage.prompt, TOKENS_UNKNOWN);
    }
}

static void a_call_and_an_error_are_read(void **state) {
    (void)state;
    read_it(
        "{\"type\":\"response.function_call_arguments.done\",\"response_id\":\"r\",\"call_id\":"
        "\"c\",\"name\":\"look\",\"arguments\":\"{}\"}");
    assert_int_equal(event.kind, LIVE_EVENT_CALL);
    assert_str(event.call_id, "c");
    assert_str(event.tool, "look");
    assert_str(event.text, "{}");
    read_it(
        "{\"type\":\"error\",\"event_id\":\"theirs\",\"error\":{\"event_id\":\"turn_3_create\","
        "\"message\":\"no\"}}");
    assert_int_equal(event.kind, LIVE_EVENT_ERROR);
    assert_str(event.event_id, "turn_3_create");
    assert_int_equal(event.error.kind, JSON_OBJECT);
}

static void what_is_not_known_is_passed_over(void **state) {
    (void)state;
    assert_int_equal(read_it("{\"type\":\"conversation.item.added\"}"), LIVE_EVENT_OTHER);
    assert_int_equal(read_it("{\"type\":\"response.text.delta\"}"), LIVE_EVENT_OTHER);
    assert_int_equal(read_it("{\"type\":\"response.text.delta\",\"delta\":7}"),
                     LIVE_EVENT_OTHER);
    assert_int_equal(read_it("{\"type\":\"rate_limits.updated\"}"), LIVE_EVENT_RATE_LIMITS);
    assert_int_equal(read_it("{\"type\":\"input_audio_buffer.speech_started\"}"),
                     LIVE_EVENT_SPEECH_STARTED);
    refuse("{\"type\":7}", ERR_MALFORMED);
    refuse("[]", ERR_MALFORMED);
    refuse("", ERR_MALFORMED);
}

static void every_truncation_is_refused(void **state) {
    (void)state;
    struct str whole = STR("{\"type\":\"response.audio.delta\",\"response_id\":\"r\",\"delta\":"
                           "\"AAECAw==\"}");
    struct err e;
    for (size_t len = 0; len < whole.len; len++)
        assert_false(live_event_read(str_head(whole, len), &room, &event, &e));
    assert_true(live_event_read(whole, &room, &event, &e));
}

static void a_room_that_is_too_small_is_an_error(void **state) {
    (void)state;
    struct buf small;
    struct err e;
    buf_init(&small, 16);
    assert_false(live_event_read(STR("{\"type\":\"response.text.delta\",\"delta\":\"word\"}"),
                                 &small, &event, &e));
    assert_int_equal(e.code, ERR_TOO_LARGE);
    buf_done(&small);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(texts_have_four_names),
        TEST(sound_is_decoded),
        TEST(a_session_shows_which_form_it_has),
        TEST(the_end_has_a_status_and_usage),
        TEST(every_status_is_known),
        TEST(a_call_and_an_error_are_read),
        TEST(what_is_not_known_is_passed_over),
        TEST(every_truncation_is_refused),
        TEST(a_room_that_is_too_small_is_an_error),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
