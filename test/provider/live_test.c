/* A conversation with a live model, over a WebSocket that the test holds. */
#include "provider/live.h"

#include "base/mem.h"
#include "fake/websocket_call_fake.h"
#include "helper/assert_str.h"
#include "helper/moves.h"

#include <stdlib.h>

static void a_conversation_moves_as_drawn(void **state) {
    (void)state;
    static const char *const drawn[] = {
        "opening setting",    "opening over",   "setting ready",  "setting over",
        "ready asked",        "ready stopping", "ready over",     "asked answering",
        "asked stopping",     "asked ready",    "asked over",     "answering ready",
        "answering stopping", "answering over", "stopping ready", "stopping over",
    };
    assert_moves(live_states, LIVE_STATE_COUNT, drawn, ARRAY_LEN(drawn));
}

/* --- a conversation ----------------------------------------------------------------------- */

static struct loop *loop;
static struct live_model *model;
static struct live *live;
static struct provider_call *call;
static struct buf heard; /* what the call and the owner heard, in words */
static bool lost, pauses, cancels, frees;

static void on_ready(void *ctx) {
    (void)ctx;
    buf_append(&heard, STR("ready;"));
}

static void on_over(const struct reply_failure *failure, bool sound_lost, void *ctx) {
    (void)ctx;
    lost = sound_lost;
    buf_printf(&heard, "over %s;", failure->reason);
    if (!frees) return;
    live_free(live);
    live = NULL;
}

static void on_room(void *ctx) {
    (void)ctx;
    buf_append(&heard, STR("room;"));
}

static const struct live_events events = {on_ready, on_over, on_room};

static void on_reply(const struct reply_event *event, void *ctx) {
    (void)ctx;
    switch (event->kind) {
    case REPLY_TEXT: buf_printf(&heard, "text " STR_FMT ";", STR_ARG(event->text)); break;
    case REPLY_ARTIFACT:
        buf_printf(&heard, STR_FMT " %zu;", STR_ARG(event->artifact->content_type),
                   event->artifact->bytes.len);
        break;
    case REPLY_USAGE: buf_printf(&heard, "usage %d;", (int)event->usage->prompt); break;
    case REPLY_TOOL_CALL: buf_printf(&heard, "call " STR_FMT ";", STR_ARG(event->tool)); break;
    case REPLY_NOTE: buf_append(&heard, STR("note;")); break;
    case REPLY_DONE: buf_append(&heard, STR("done;")); break;
    case REPLY_FAILED: buf_printf(&heard, "failed " STR_FMT ";", STR_ARG(event->reason)); break;
    default: buf_append(&heard, STR("?;"));
    }
    if (reply_event_ends(event)) {
        call = NULL;
    } else if (cancels) {
        live_provider(live)->kind->cancel(call);
        call = NULL;
    } else if (pauses) {
        live_provider(live)->kind->pause(call);
    }
}

static int setup(void **state) {
    (void)state;
    struct remote_options options = remote_defaults;
    options.name = STR("house");
    options.dialect = dialect_find(STR("openai"));
    options.pool = (struct http_pool *)(uintptr_t)8; /* it is never looked at */
    options.settings.base_url = STR("https://h.test/v1");
    options.settings.key = STR("sk-secret-0123456789");
    loop = loop_new_fake();
    model = live_model_new(&(struct live_model_options){.remote = &options});
    live = live_new(model, &(struct live_options){.loop = loop,
                                                  .model = STR("gpt realtime"),
                                                  .instructions = STR("Be brief."),
                                                  .in = LIVE_SOUND_PCM,
                                                  .out = LIVE_SOUND_PCM,
                                                  .events = &events});
    buf_init(&heard, 64 * KIB);
    call = NULL;
    lost = pauses = cancels = frees = false;
    return 0;
}

static int teardown(void **state) {
    (void)state;
    if (call) live_provider(live)->kind->cancel(call);
    live_free(live);
    live_model_free(model);
    loop_turn(loop);
    loop_free(loop);
    buf_done(&heard);
    fake_websocket_done();
    assert_null(fake_websocket());
    return 0;
}

static void assert_heard(const char *words) {
    assert_str(buf_str(&heard), words);
    buf_clear(&heard);
}

static void assert_sent(const char *const *parts, size_t count) {
    struct str sent = fake_websocket_sent();
    for (size_t i = 0; i < count; i++) {
        struct str line = str_split(sent, '\n', &sent);
        if (str_find(line, str_from(parts[i])) == line.len)
            fail_msg("'%s' is not in '" STR_FMT "'", parts[i], STR_ARG(line));
    }
    assert_str(sent, "");
}

#define SENT(...)                                                                              \
    do {                                                                                       \
        const char *const parts[] = {__VA_ARGS__};                                             \
        assert_sent(parts, ARRAY_LEN(parts));                                                  \
    } while (0)
#define SENT_NOTHING() assert_sent(NULL, 0)

static void get_ready(void) {
    fake_websocket_open();
    SENT_NOTHING();
    fake_websocket_say("{\"type\":\"session.created\",\"session\":{\"type\":\"realtime\"}}");
    SENT("\"session.update\"");
    fake_websocket_say("{\"type\":\"session.updated\"}");
    assert_heard("ready;");
}

static const struct message hello = {.role = MESSAGE_USER, .text = STR_INIT("hello")};
static const struct provider_request request = {.messages = &hello, .message_count = 1};
static const struct provider_request spoken = {.message_count = 0};

static void ask_for(const struct provider_request *what) {
    call = live_provider(live)->kind->start(live_provider(live), loop, what, on_reply, NULL);
    loop_turn(loop);
}

static void ask(void) {
    ask_for(&request);
    SENT("hello", "response.create");
}

static void begin(const char *id) {
    char text[128];
    snprintf(text, sizeof(text), "{\"type\":\"response.created\",\"response\":{\"id\":\"%s\"}}",
             id);
    fake_websocket_say(text);
}

static void say(const char *id, const char *words) {
    char text[256];
    snprintf(
        text, sizeof(text),
        "{\"type\":\"response.output_text.delta\",\"response_id\":\"%s\",\"delta\":\"%s\"}", id,
        words);
    fake_websocket_say(text);
}

static void finish(const char *id, const char *status) {
    char text[256];
    snprintf(
        text, sizeof(text),
        "{\"type\":\"response.done\",\"response\":{\"id\":\"%s\",\"status\":\"%s\",\"usage\":"
        "{\"input_tokens\":5}}}",
        id, status);
    fake_websocket_say(text);
}

/* --- tests -------------------------------------------------------------------------------- */

static void an_answer_is_text_sound_and_usage(void **state) {
    (void)state;
    assert_str(fake_websocket_url(), "https://h.test/v1/realtime?model=gpt%20realtime");
    get_ready();
    ask();
    begin("r1");
    say("r1", "Hi");
    fake_websocket_say(
        "{\"type\":\"response.output_audio.delta\",\"response_id\":\"r1\",\"delta\":"
        "\"AAECAw==\"}");
    finish("r1", "completed");
    assert_heard("text Hi;audio/pcm 4;usage 5;done;");
    ask();
    begin("r2");
    finish("r2", "incomplete");
    assert_heard("usage 5;note;done;");
}

static void a_question_waits_until_the_connection_is_ready(void **state) {
    (void)state;
    ask_for(&request);
    SENT_NOTHING();
    fake_websocket_say("{\"type\":\"session.created\",\"session\":{\"modalities\":[]}}");
    SENT("\"modalities\":[\"text\",\"audio\"]");
    fake_websocket_say("{\"type\":\"session.updated\"}");
    SENT("hello", "response.create");
    assert_heard("ready;");
}

static void sound_is_heard_and_ends_a_turn(void **state) {
    (void)state;
    assert_false(live_hear(live, STR("early")));
    get_ready();
    assert_true(live_hear(live, STR("abc")));
    SENT("\"YWJj\"");
    live_next(live, &(struct live_more){.sound = STR("def"), .commit = true});
    ask_for(&spoken);
    SENT("\"ZGVm\"", "input_audio_buffer.commit", "response.create");
}

static void a_new_connection_is_told_what_was_said(void **state) {
    (void)state;
    static const struct message past[] = {
        {.role = MESSAGE_USER, .text = STR_INIT("my name is Ada")},
        {.role = MESSAGE_AGENT, .text = STR_INIT("Hi Ada")},
        {.role = MESSAGE_TOOL_CALL, .text = STR_INIT("{}")},
    };
    get_ready();
    live_next(live, &(struct live_more){.past = past, .past_count = 3});
    ask_for(&request);
    SENT("my name is Ada", "\"output_text\",\"text\":\"Hi Ada\"", "hello", "response.create");
}

static void hearing_stops_while_much_waits(void **state) {
    (void)state;
    get_ready();
    fake_websocket_waits(MIB);
    assert_false(live_hear(live, STR("abc")));
    SENT_NOTHING();
    fake_websocket_waits(0);
    assert_heard("room;");
    assert_true(live_hear(live, STR("abc")));
    SENT("YWJj");
}

static void an_interrupted_answer_says_no_more_and_is_done(void **state) {
    (void)state;
    get_ready();
    ask();
    begin("r1");
    say("r1", "one");
    live_interrupt(live);
    live_interrupt(live);
    SENT("response.cancel");
    say("r1", "two");
    finish("r1", "cancelled");
    assert_heard("text one;usage 5;done;");
}

static void the_rest_of_a_cancelled_answer_reaches_nobody(void **state) {
    (void)state;
    get_ready();
    ask();
    begin("r1");
    live_provider(live)->kind->cancel(call);
    SENT("response.cancel");
    ask_for(&request);
    SENT_NOTHING(); /* the server allows one answer at a time */
    say("r1", "old words");
    finish("r1", "cancelled");
    SENT("hello", "response.create");
    begin("r2");
    say("r1", "old words");
    say("r2", "new words");
    finish("r2", "completed");
    assert_heard("text new words;usage 5;done;");
}

static void one_cancelled_before_it_began_is_stopped_when_it_begins(void **state) {
    (void)state;
    get_ready();
    ask();
    live_provider(live)->kind->cancel(call);
    call = NULL;
    begin("r1");
    SENT("response.cancel");
    finish("r1", "cancelled");
    assert_heard("");
    ask();
}

static void the_answer_to_a_cancelled_question_is_not_that_to_the_next(void **state) {
    static const char *const ends[] = {"cancelled", "completed"};
    (void)state;
    get_ready();
    for (size_t i = 0; i < ARRAY_LEN(ends);
         i++) { /* also one that comes without its beginning */
        ask();
        live_provider(live)->kind->cancel(call);
        ask_for(&request);
        SENT_NOTHING();
        if (i == 0) {
            begin("r1");
            SENT("response.cancel");
            say("r1", "old words");
        }
        finish("r1", ends[i]);
        assert_heard("");
        SENT("hello", "response.create");
        begin("r2");
        say("r2", "new words");
        finish("r2", "completed");
        assert_heard("text new words;usage 5;done;");
    }
}

static void an_answer_that_nobody_asked_for_is_stopped(void **state) {
    (void)state;
    get_ready();
    begin("r1");
    SENT("response.cancel");
    say("r1", "unasked");
    finish("r1", "cancelled");
    assert_heard("");
    ask();
}

static void an_error_about_the_question_fails_it(void **state) {
    (void)state;
    get_ready();
    ask();
    fake_websocket_say("{\"type\":\"error\",\"error\":{\"event_id\":\"turn_1_create\",\"code\":"
                       "\"rate_limit_exceeded\",\"message\":\"m\"}}");
    assert_heard("failed PROVIDER_RATE_LIMITED;");
    ask();
    fake_websocket_say("{\"type\":\"error\",\"error\":{\"event_id\":\"turn_1_commit\"}}");
    assert_heard(""); /* of the turn before */
    begin("r2");
    fake_websocket_say("{\"type\":\"error\",\"error\":{\"message\":\"broken\"}}");
    SENT("response.cancel");
    assert_heard("failed PROVIDER_ERROR;");
    fake_websocket_say("{\"type\":\"error\",\"error\":{\"event_id\":\"turn_2_cancel\"}}");
    ask(); /* there was nothing to cancel */
}

static void a_pause_keeps_what_had_come(void **state) {
    (void)state;
    get_ready();
    ask();
    begin("r1");
    pauses = true;
    say("r1", "one");
    assert_true(fake_websocket_paused());
    say("r1", "two");
    finish("r1", "completed");
    fake_websocket_end(&(struct websocket_end){.opened = true, .why = {.code = ERR_NONE}});
    assert_heard("text one;");
    pauses = false;
    live_provider(live)->kind->resume(call);
    loop_turn(loop);
    assert_heard("text two;usage 5;done;over PROVIDER_BROKEN;");
    assert_false(lost);
}

static void a_pause_keeps_the_end_of_the_connection_too(void **state) {
    (void)state;
    get_ready();
    ask();
    begin("r1");
    pauses = true;
    say("r1", "one");
    fake_websocket_end(&(struct websocket_end){.opened = true, .why = {.code = ERR_NONE}});
    loop_turn(loop);
    assert_heard("text one;");
    pauses = false;
    live_provider(live)->kind->resume(call);
    loop_turn(loop);
    assert_heard("failed PROVIDER_BROKEN;over PROVIDER_BROKEN;");
}

static void a_call_may_be_cancelled_in_its_callback(void **state) {
    (void)state;
    get_ready();
    ask();
    begin("r1");
    cancels = true;
    say("r1", "one");
    SENT("response.cancel");
    assert_heard("text one;");
}

#define SHORT_SOUND "{\"type\":\"input_audio_buffer.append\",\"audio\":\"YWJj\"}\n"

static void it_may_be_freed_when_a_cancel_finds_no_room(void **state) {
    (void)state;
    get_ready();
    ask();
    begin("r1");
    for (size_t i = 0; i < MIB / strlen(SHORT_SOUND); i++) /* the fake's room */
        assert_true(live_hear(live, STR("abc")));
    assert_false(live_is_over(live));
    frees = true;
    live_provider(live)->kind->cancel(call);
    call = NULL;
    assert_heard("over PROVIDER_BROKEN;");
    assert_null(live);
}

static void a_lost_connection_fails_the_turn_once(void **state) {
    (void)state;
    struct websocket_end end = {.opened = true};
    get_ready();
    ask();
    begin("r1");
    say("r1", "one");
    err_set(&end.why, ERR_UNAVAILABLE, "gone");
    fake_websocket_end(&end);
    assert_heard("text one;failed PROVIDER_BROKEN;over PROVIDER_BROKEN;");
    assert_true(live_is_over(live));
    assert_int_equal(fake_websockets_ever() > 0, 1);
}

static void lost_sound_is_reported(void **state) {
    (void)state;
    struct websocket_end end = {.opened = true};
    get_ready();
    assert_true(live_hear(live, STR("abc")));
    err_set(&end.why, ERR_UNAVAILABLE, "gone");
    fake_websocket_end(&end);
    assert_true(lost);
}

static void why_there_is_no_connection_is_said(void **state) {
    (void)state;
    struct websocket_end end = {.status = 401,
                                .body = STR("{\"error\":{\"message\":\"key\"}}")};
    err_set(&end.why, ERR_UNAVAILABLE, "401");
    fake_websocket_end(&end);
    assert_heard("over PROVIDER_AUTH;");
}

static void nonsense_ends_the_connection(void **state) {
    (void)state;
    get_ready();
    ask();
    fake_websocket_say("no JSON");
    assert_heard("failed PROVIDER_BROKEN;over PROVIDER_BROKEN;");
    assert_null(fake_websocket());
}

static void which_models_are_talked_to_live(void **state) {
    (void)state;
    assert_true(live_model_speaks(model, STR("gpt-4o-mini-realtime-preview")));
    assert_false(live_model_speaks(model, STR("gpt-5-mini")));
    assert_false(live_model_speaks(NULL, STR("gpt-realtime")));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_conversation_moves_as_drawn),
        TEST(an_answer_is_text_sound_and_usage),
        TEST(a_question_waits_until_the_connection_is_ready),
        TEST(sound_is_heard_and_ends_a_turn),
        TEST(a_new_connection_is_told_what_was_said),
        TEST(hearing_stops_while_much_waits),
        TEST(an_interrupted_answer_says_no_more_and_is_done),
        TEST(the_rest_of_a_cancelled_answer_reaches_nobody),
        TEST(one_cancelled_before_it_began_is_stopped_when_it_begins),
        TEST(the_answer_to_a_cancelled_question_is_not_that_to_the_next),
        TEST(an_answer_that_nobody_asked_for_is_stopped),
        TEST(an_error_about_the_question_fails_it),
        TEST(a_pause_keeps_what_had_come),
        TEST(a_pause_keeps_the_end_of_the_connection_too),
        TEST(a_call_may_be_cancelled_in_its_callback),
        TEST(it_may_be_freed_when_a_cancel_finds_no_room),
        TEST(a_lost_connection_fails_the_turn_once),
        TEST(lost_sound_is_reported),
        TEST(why_there_is_no_connection_is_said),
        TEST(nonsense_ends_the_connection),
        TEST(which_models_are_talked_to_live),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
