#include "provider/media_openai.h"

#include "fake/http_fake.h" /* named here: the build links it */
#include "media_fixture.h"

#include "helper/assert_str.h"
#include "helper/log_heard.h"
#include "provider/openai_media.h"

#define KEY "sk-canary-0815-4711-abcdefgh"
#define GATEWAY_KEY "gateway-secret-98765"

struct side {
    struct loop *loop;
    struct http_pool *pool;
    struct media *media;
    struct heard *heard;
};

static void begin(struct side *side) {
    static const struct http_header headers[] = {{STR_INIT("x-gate"), STR_INIT(GATEWAY_KEY)}};
    struct remote_options options = remote_defaults;
    options.name = STR("openai");
    options.dialect = &openai_dialect;
    options.settings = (struct dialect_settings){.base_url = STR("https://api.openai.com/v1"),
                                                 .model = STR("usual"),
                                                 .query = STR(""),
                                                 .key = STR(KEY),
                                                 .key_header = STR("")};
    options.headers = headers;
    options.header_count = 1;
    *side = (struct side){.loop = loop_new_fake(), .pool = http_pool_new()};
    options.pool = side->pool;
    side->media = media_openai_new(&options);
    side->heard = heard_new(side->loop, side->media);
}

static void finish(struct side *side) {
    assert_int_equal(fake_http_calls(side->pool), 0);
    media_free(side->media);
    heard_free(side->heard);
    loop_free(side->loop);
    http_pool_free(side->pool);
}

static int setup(void **state) {
    struct side *side = MEM_NEW(struct side);
    begin(side);
    *state = side;
    return 0;
}

static int teardown(void **state) {
    struct side *side = *state;
    finish(side);
    free(side);
    return 0;
}

static struct http_call *asked(const struct side *side) {
    assert_int_equal(fake_http_calls(side->pool), 1);
    return fake_http_call(side->pool, 0);
}

/* The answer comes in pieces of `piece` bytes, and is shaped in a turn of the loop. */
static void answer(struct side *side, unsigned status, const char *type, struct str body,
                   size_t piece) {
    struct http_call *call = asked(side);
    assert_true(fake_http_head(call, status, type));
    for (; body.len; body = str_skip(body, piece))
        assert_true(fake_http_body(call, str_head(body, piece)));
    fake_http_end(call);
    loop_turn(side->loop);
}

static const struct str inputs[] = {STR_INIT("one"), STR_INIT("two")};
static const struct media_request embedding = {
    .task = MEDIA_EMBEDDING, .inputs = inputs, .input_count = 2};

#define VECTORS                                                                                \
    "{\"data\":[{\"index\":1,\"embedding\":[3,4]},{\"index\":0,\"embedding\":[1,2]}],"         \
    "\"model\":\"m-2\",\"usage\":{\"prompt_tokens\":5,\"total_tokens\":5}}"

/* --- a question and its answer ------------------------------------------------------------ */

static void a_question_has_the_address_the_key_and_the_headers_of_the_provider(void **state) {
    struct side *side = *state;
    heard_start(side->heard, &embedding);
    const struct http_call *call = asked(side);
    const struct http_request *request = fake_http_request(call);
    assert_str(request->url, "https://api.openai.com/v1/embeddings");
    assert_str(request->method, "POST");
    assert_str(
        request->body,
        "{\"model\":\"usual\",\"input\":[\"one\",\"two\"],\"encoding_format\":\"float\"}");
    assert_str(fake_http_header(call, "authorization"), "Bearer " KEY);
    assert_str(fake_http_header(call, "content-type"), "application/json");
    assert_str(fake_http_header(call, "accept"), "*/*");
    assert_str(fake_http_header(call, "x-gate"), GATEWAY_KEY);
    assert_int_equal(request->body_max_bytes, openai_media_max_bytes(MEDIA_EMBEDDING));
    assert_int_equal(request->total_ms, 600000);
    answer(side, 200, "application/json", STR(VECTORS), 1000);
    assert_int_equal(side->heard->dones, 1);
    assert_int_equal(side->heard->vectors, 2);
    assert_true(side->heard->numbers[0][1] == 2 && side->heard->numbers[1][0] == 3);
    assert_int_equal(side->heard->usage.prompt, 5);
    assert_str(buf_str(&side->heard->model), "m-2");
}

static void each_task_has_its_own_road(void **state) {
    (void)state;
    static const struct {
        struct media_request request;
        const char *path, *type, *answer_type;
        struct str body;
    } cases[] = {
        {{.task = MEDIA_SPEECH, .text = STR_INIT("a"), .format = STR_INIT("mp3")},
         "/audio/speech",
         "application/json",
         "audio/mpeg",
         STR_INIT("ID3")},
        {{.task = MEDIA_IMAGE, .text = STR_INIT("a")},
         "/images/generations",
         "application/json",
         "application/json",
         STR_INIT("{\"data\":[{\"url\":\"https://x.test/\"}]}")},
        {{.task = MEDIA_TRANSCRIPT, .bytes = STR_INIT("RIFF")},
         "/audio/transcriptions",
         "multipart/form-data; boundary=weir-form-00000000",
         "application/json",
         STR_INIT("{\"text\":\"hi\"}")},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct side side;
        begin(&side);
        heard_start(side.heard, &cases[i].request);
        const struct http_call *call = asked(&side);
        assert_true(str_ends(fake_http_request(call)->url, str_from(cases[i].path)));
        assert_str(fake_http_header(call, "content-type"), cases[i].type);
        answer(&side, 200, cases[i].answer_type, cases[i].body, 2);
        assert_int_equal(side.heard->dones, 1);
        assert_int_equal(side.heard->artifacts + side.heard->texts, 1);
        assert_str(buf_str(&side.heard->model), "usual");
        finish(&side);
    }
}

static void an_answer_reads_the_same_however_it_is_cut(void **state) {
    (void)state;
    for (size_t piece = 1; piece <= sizeof(VECTORS); piece++) {
        struct side side;
        begin(&side);
        heard_start(side.heard, &embedding);
        answer(&side, 200, "application/json", STR(VECTORS), piece);
        assert_int_equal(side.heard->dones, 1);
        assert_true(side.heard->numbers[1][1] == 4);
        finish(&side);
    }
}

/* --- failures ----------------------------------------------------------------------------- */

/* Who made the question reads a sentence, and the log what the provider said. */
static void assert_told(const struct heard *heard, enum err_code code, const char *reason,
                        struct log_heard *log, const char *why) {
    assert_failed(heard, code, reason, reply_reason_sentence(str_from(reason)).at);
    if (!log_holds(log, why)) fail_msg("\"%s\" is not in the log", why);
}

static void a_refusal_says_why_and_hides_the_key(void **state) {
    (void)state;
    static const struct {
        unsigned status;
        const char *body, *reason, *why;
        enum err_code code;
    } cases[] = {
        {401, "{\"error\":{\"message\":\"Incorrect API key: " KEY "\"}}", PROVIDER_AUTH,
         "provider 'openai': OpenAI answered 401: Incorrect API key: ***; check its key: weir "
         "provider test openai",
         ERR_FAILED_PRECONDITION},
        {400, "{\"error\":{\"message\":\"no " GATEWAY_KEY "\"}}", PROVIDER_REJECTED,
         "provider 'openai': OpenAI answered 400: no ***", ERR_INVALID_ARGUMENT},
        {404, "{\"error\":{\"message\":\"no such model\",\"code\":\"model_not_found\"}}",
         PROVIDER_REJECTED, "provider 'openai': OpenAI answered 404: no such model",
         ERR_NOT_FOUND},
        {400, "{\"error\":{\"message\":\"unsafe\",\"code\":\"content_policy_violation\"}}",
         MODEL_REFUSED, "provider 'openai': OpenAI answered 400: unsafe",
         ERR_PERMISSION_DENIED},
        {200, "{}", PROVIDER_BROKEN,
         "provider 'openai': it answered with 0 vectors for 2 inputs", ERR_UNAVAILABLE},
        {204, "", PROVIDER_BROKEN, "provider 'openai': OpenAI answered 204 and did not say why",
         ERR_UNAVAILABLE},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct side side;
        struct log_heard log;
        begin(&side);
        log_begin(&log);
        heard_start(side.heard, &embedding);
        answer(&side, cases[i].status, "application/json", str_from(cases[i].body), 7);
        assert_told(side.heard, cases[i].code, cases[i].reason, &log, cases[i].why);
        assert_false(log_holds(&log, KEY) || log_holds(&log, GATEWAY_KEY));
        assert_int_equal(side.heard->vectors, 0);
        log_end(&log);
        finish(&side);
    }
}

static void a_long_refusal_is_read_in_its_beginning(void **state) {
    struct side *side = *state;
    heard_start(side->heard, &embedding);
    struct http_call *call = asked(side);
    char page[1024];
    memset(page, 'x', sizeof(page));
    assert_true(fake_http_head(call, 400, "text/html"));
    for (int i = 0; i < 1000; i++)
        assert_true(fake_http_body(call, str_of(page, sizeof(page))));
    fake_http_end(call);
    assert_int_equal(side->heard->faileds, 1);
    assert_int_equal(side->heard->why.code, ERR_INVALID_ARGUMENT);
}

static void a_busy_provider_is_asked_again(void **state) {
    struct side *side = *state;
    heard_start(side->heard, &embedding);
    struct http_call *call = asked(side);
    fake_http_head_retry(call, 429, "application/json", 2000);
    fake_http_end(call);
    assert_int_equal(fake_http_calls(side->pool), 0);
    loop_advance(side->loop, 2000);
    assert_int_equal(fake_http_calls(side->pool), 0); /* and a little that differs */
    loop_advance(side->loop, 200);
    fake_http_fail(asked(side), ERR_UNAVAILABLE, HTTP_CONNECTING);
    loop_advance(side->loop, 30000);
    assert_str(
        fake_http_request(asked(side))->body,
        "{\"model\":\"usual\",\"input\":[\"one\",\"two\"],\"encoding_format\":\"float\"}");
    answer(side, 200, "application/json", STR(VECTORS), 100);
    assert_int_equal(side->heard->dones, 1);
    assert_int_equal(fake_http_calls_ever(side->pool), 3);
}

static void a_provider_that_stays_busy_is_given_up(void **state) {
    struct side *side = *state;
    heard_start(side->heard, &embedding);
    for (int i = 0; i < 3; i++) {
        fake_http_head(asked(side), 503, "application/json");
        fake_http_end(asked(side));
        loop_advance(side->loop, 30000);
    }
    assert_failed(side->heard, ERR_UNAVAILABLE, PROVIDER_OVERLOADED,
                  "the model's provider is overloaded; try again in a moment");
}

static void an_account_without_money_is_not_asked_again(void **state) {
    struct side *side = *state;
    heard_start(side->heard, &embedding);
    answer(side, 429, "application/json",
           STR("{\"error\":{\"message\":\"no money\",\"code\":\"insufficient_quota\"}}"), 100);
    assert_int_equal(side->heard->faileds, 1);
    assert_str(buf_str(&side->heard->reason), PROVIDER_QUOTA);
}

static void an_answer_that_breaks_off_is_a_failure(void **state) {
    (void)state;
    static const struct {
        enum err_code failed, code;
        const char *reason;
    } cases[] = {
        {ERR_UNAVAILABLE, ERR_UNAVAILABLE, PROVIDER_BROKEN},
        {ERR_TOO_LARGE, ERR_TOO_LARGE, MODEL_ANSWER_TOO_LONG},
        {ERR_DEADLINE_EXCEEDED, ERR_DEADLINE_EXCEEDED, PROVIDER_TIMEOUT},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct side side;
        begin(&side);
        heard_start(side.heard, &embedding);
        fake_http_head(asked(&side), 200, "application/json");
        fake_http_body(asked(&side), STR("{\"data\":"));
        fake_http_fail(asked(&side), cases[i].failed, HTTP_READING);
        assert_int_equal(side.heard->faileds, 1);
        assert_int_equal(side.heard->why.code, cases[i].code);
        assert_str(buf_str(&side.heard->reason), cases[i].reason);
        finish(&side);
    }
}

static void an_impossible_request_is_not_sent(void **state) {
    struct side *side = *state;
    struct err e;
    struct media_request request = {.task = MEDIA_SPEECH};
    assert_false(media_check(side->media, &request, &e));
    heard_start(side->heard, &request);
    loop_turn(side->loop);
    assert_failed(side->heard, ERR_INVALID_ARGUMENT, PROVIDER_REJECTED,
                  "there is no text to speak");
    assert_int_equal(fake_http_calls_ever(side->pool), 0);
}

/* --- time, and calls that were left ------------------------------------------------------- */

static void the_callers_limit_ends_a_call_in_each_state(void **state) {
    (void)state;
    for (int waiting = 0; waiting < 2; waiting++) {
        struct side side;
        struct media_request request = embedding;
        begin(&side);
        request.total_ms = 1500;
        heard_start(side.heard, &request);
        if (waiting) {
            fake_http_head_retry(asked(&side), 429, "application/json", 5000);
            fake_http_end(asked(&side));
        }
        loop_advance(side.loop, 1499);
        assert_int_equal(heard_endings(side.heard), 0);
        loop_advance(side.loop, 1);
        assert_failed(side.heard, ERR_DEADLINE_EXCEEDED, PROVIDER_TIMEOUT,
                      "the model's provider did not answer in time; try again in a moment");
        assert_int_equal(fake_http_cancels(side.pool), waiting ? 0 : 1);
        finish(&side);
    }
}

static void a_cancelled_call_leaves_the_server(void **state) {
    (void)state;
    struct side side;
    for (int step = 0; step < 4; step++) {
        begin(&side);
        heard_start(side.heard, &embedding);
        if (step > 0) fake_http_head(asked(&side), step == 3 ? 503 : 200, "application/json");
        if (step > 1) fake_http_body(asked(&side), STR("{"));
        if (step > 1) fake_http_end(asked(&side)); /* is shaped, or waits */
        side.media->kind->cancel(side.heard->call);
        side.heard->call = NULL;
        loop_advance(side.loop, 60000);
        assert_int_equal(heard_endings(side.heard), 0);
        assert_int_equal(fake_http_cancels(side.pool), step < 2 ? 1 : 0);
        finish(&side);
    }
}

/* --- voices ------------------------------------------------------------------------------- */

static void only_openais_own_voices_are_known(void **state) {
    struct side *side = *state;
    size_t count;
    const struct media_voice *voices =
        side->media->kind->voices(side->media, STR("tts-1"), &count);
    assert_int_equal(count, 11);
    assert_str(voices[0].id, "alloy");
    media_free(side->media);
    struct remote_options options = remote_defaults;
    options.name = STR("near");
    options.dialect = &openai_dialect;
    options.settings.base_url = STR("http://127.0.0.1:8000/v1");
    options.pool = side->pool;
    side->heard->media = side->media = media_openai_new(&options);
    assert_null(side->media->kind->voices(side->media, STR("tts-1"), &count));
    assert_int_equal(count, 0);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_question_has_the_address_the_key_and_the_headers_of_the_provider),
        cmocka_unit_test(each_task_has_its_own_road),
        cmocka_unit_test(an_answer_reads_the_same_however_it_is_cut),
        cmocka_unit_test(a_refusal_says_why_and_hides_the_key),
        TEST(a_long_refusal_is_read_in_its_beginning),
        TEST(a_busy_provider_is_asked_again),
        TEST(a_provider_that_stays_busy_is_given_up),
        TEST(an_account_without_money_is_not_asked_again),
        cmocka_unit_test(an_answer_that_breaks_off_is_a_failure),
        TEST(an_impossible_request_is_not_sent),
        cmocka_unit_test(the_callers_limit_ends_a_call_in_each_state),
        cmocka_unit_test(a_cancelled_call_leaves_the_server),
        TEST(only_openais_own_voices_are_known),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
