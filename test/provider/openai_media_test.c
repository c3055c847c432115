#include "provider/openai_media.h"

#include "helper/assert_str.h"
#include "wire/wave.h"

/* --- questions ---------------------------------------------------------------------------- */

static void asked(const struct media_request *request, const char *type, const char *body) {
    struct err e = {.text = ""};
    struct buf seen_type, seen;
    buf_init(&seen_type, 256);
    buf_init(&seen, 4096);
    if (!openai_media_body(request, &seen_type, &seen, &e)) fail_msg("%s", e.text);
    assert_str(buf_str(&seen), body);
    assert_str(buf_str(&seen_type), type);
    buf_done(&seen_type);
    buf_done(&seen);
}

static void each_question_is_written_as_the_api_reads_it(void **state) {
    (void)state;
    static const struct str inputs[] = {STR_INIT("a \"b\""), STR_INIT("c")};
    asked(&(struct media_request){.task = MEDIA_SPEECH,
                                  .model = STR("tts-1"),
                                  .text = STR("hi\n"),
                                  .voice = STR("nova"),
                                  .format = STR("mp3"),
                                  .speed = 1.5},
          "application/json",
          "{\"model\":\"tts-1\",\"input\":\"hi\\n\",\"voice\":\"nova\",\"response_format\":"
          "\"mp3\",\"speed\":1.5}");
    asked(&(struct media_request){.task = MEDIA_SPEECH, .text = STR("hi"), .volume = 1},
          "application/json",
          "{\"input\":\"hi\",\"voice\":\"alloy\",\"response_format\":\"wav\"}");
    asked(
        &(struct media_request){
            .task = MEDIA_EMBEDDING, .model = STR("m"), .inputs = inputs, .input_count = 2},
        "application/json",
        "{\"model\":\"m\",\"input\":[\"a \\\"b\\\"\",\"c\"],\"encoding_format\":\"float\"}");
    asked(&(struct media_request){.task = MEDIA_IMAGE,
                                  .model = STR("m"),
                                  .text = STR("a weir"),
                                  .count = 2,
                                  .size = STR("1024x1024"),
                                  .quality = STR("high"),
                                  .style = STR("vivid"),
                                  .format = STR("webp")},
          "application/json",
          "{\"model\":\"m\",\"prompt\":\"a weir\",\"n\":2,\"size\":\"1024x1024\",\"quality\":"
          "\"high\",\"style\":\"vivid\",\"output_format\":\"webp\"}");
    asked(&(struct media_request){.task = MEDIA_TRANSCRIPT,
                                  .model = STR("w"),
                                  .language = STR("de-AT"),
                                  .text = STR("names"),
                                  .bytes = STR("ID3"),
                                  .content_type = STR("Audio/MPEG; x=y")},
          "multipart/form-data; boundary=weir-form-00000000",
          "--weir-form-00000000\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nw\r\n"
          "--weir-form-00000000\r\nContent-Disposition: form-data; "
          "name=\"response_format\"\r\n\r\njson\r\n"
          "--weir-form-00000000\r\nContent-Disposition: form-data; "
          "name=\"language\"\r\n\r\nde\r\n"
          "--weir-form-00000000\r\nContent-Disposition: form-data; "
          "name=\"prompt\"\r\n\r\nnames\r\n"
          "--weir-form-00000000\r\nContent-Disposition: form-data; name=\"file\"; "
          "filename=\"sound.mp3\"\r\nContent-Type: audio/mpeg\r\n\r\nID3\r\n"
          "--weir-form-00000000--\r\n");
}

static void only_models_that_can_shorten_vectors_are_asked_to(void **state) {
    (void)state;
    static const struct str input = STR_INIT("a");
    struct media_request request = {.task = MEDIA_EMBEDDING,
                                    .model = STR("text-embedding-3-small"),
                                    .inputs = &input,
                                    .input_count = 1,
                                    .dimensions = 256};
    struct err e;
    struct buf type, out;
    buf_init(&type, 256);
    buf_init(&out, 4096);
    assert_true(openai_media_body(&request, &type, &out, &e));
    assert_str(buf_str(&out), "{\"model\":\"text-embedding-3-small\",\"input\":[\"a\"],"
                              "\"encoding_format\":\"float\",\"dimensions\":256}");
    buf_clear(&out);
    request.model = STR("nomic");
    assert_true(openai_media_body(&request, &type, &out, &e));
    assert_str(buf_str(&out),
               "{\"model\":\"nomic\",\"input\":[\"a\"],\"encoding_format\":\"float\"}");
    buf_done(&type);
    buf_done(&out);
}

static void a_type_that_breaks_its_line_is_not_sent(void **state) {
    (void)state;
    struct media_request request = {
        .task = MEDIA_TRANSCRIPT, .bytes = STR("x"), .content_type = STR("audio/wav\r\nX: y")};
    struct err e;
    struct buf type, out;
    buf_init(&type, 256);
    buf_init(&out, 4096);
    assert_true(openai_media_body(&request, &type, &out, &e));
    assert_int_equal(str_find(buf_str(&out), STR("X: y")), out.len);
    assert_true(str_find(buf_str(&out), STR("application/octet-stream")) < out.len);
    buf_done(&type);
    buf_done(&out);
}

static void an_impossible_request_is_refused_with_the_choices(void **state) {
    (void)state;
    static const struct str blank = STR_INIT(" ");
    static const struct {
        struct media_request request;
        const char *why;
    } cases[] = {
        {{.text = STR_INIT("")}, "there is no text to speak"},
        {{.text = STR_INIT("a"), .format = STR_INIT("midi")},
         "speech is not written as 'midi'; ask for wav, pcm, mp3, opus, aac or flac"},
        {{.text = STR_INIT("a"), .speed = 0.1},
         "speed is 0.1; this provider speaks at 0.25 to 4"},
        {{.text = STR_INIT("a"), .pitch = 1},
         "this provider's voices have no other pitch and no other volume; leave them out"},
        {{.text = STR_INIT("a"), .format = STR_INIT("mp3"), .sample_rate_hz = 8000},
         "this provider chooses the sample rate of 'mp3' itself; ask for wav or pcm, or leave "
         "sample_rate_hz out"},
        {{.text = STR_INIT("a"), .sample_rate_hz = 1},
         "sample_rate_hz is 1; it may be 4000 to 192000"},
        {{.task = MEDIA_EMBEDDING}, "there is no input to make a vector of"},
        {{.task = MEDIA_EMBEDDING, .inputs = &blank, .input_count = 1},
         "input 0 (counted from 0) is empty; nothing can be made of it"},
        {{.task = MEDIA_IMAGE}, "the prompt says nothing to draw"},
        {{.task = MEDIA_IMAGE, .text = STR_INIT("a"), .count = 17},
         "17 images are asked for; it may be 0 to 16"},
        {{.task = MEDIA_IMAGE, .text = STR_INIT("a"), .format = STR_INIT("bmp")},
         "images are not written as 'bmp'; ask for png, jpeg or webp"},
        {{.task = MEDIA_IMAGE, .text = STR_INIT("a"), .negative = STR_INIT("b")},
         "this provider does not accept a negative prompt; say in the prompt what not to draw"},
        {{.task = MEDIA_TRANSCRIPT}, "there is no audio to transcribe"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct err e;
        struct buf type, out;
        buf_init(&type, 256);
        buf_init(&out, 4096);
        assert_false(openai_media_body(&cases[i].request, &type, &out, &e));
        assert_int_equal(e.code, ERR_INVALID_ARGUMENT);
        assert_string_equal(e.text, cases[i].why);
        buf_done(&type);
        buf_done(&out);
    }
}

/* --- answers ------------------------------------------------------------------------------ */

struct answer {
    struct arena *arena;
    struct media_made made;
    struct reply_failure failure;
};

static bool answered(const struct media_request *request, const char *type, struct str body,
                     struct answer *ret) {
    *ret = (struct answer){.arena = arena_new(MEDIA_WORK_MAX_BYTES)};
    bool read =
        openai_media_read(request, str_from(type), body, ret->arena, &ret->made, &ret->failure);
    assert_true(read || ret->failure.reason);
    return read;
}

#define VECTORS                                                                                \
    "{\"object\":\"list\",\"data\":[{\"index\":1,\"embedding\":[3,-4.5e-1]},"                  \
    "{\"index\":0,\"embedding\":[1,2]}],\"model\":\"m-2\","                                    \
    "\"usage\":{\"prompt_tokens\":5,\"total_tokens\":5}}"

static const struct str two[] = {STR_INIT("a"), STR_INIT("b")};
static const struct media_request embedding = {
    .task = MEDIA_EMBEDDING, .inputs = two, .input_count = 2};

static void vectors_are_put_in_the_order_of_their_inputs(void **state) {
    (void)state;
    struct answer answer;
    assert_true(answered(&embedding, "application/json", STR(VECTORS), &answer));
    assert_int_equal(answer.made.vector_count, 2);
    assert_int_equal(answer.made.vectors[1].count, 2);
    assert_true(answer.made.vectors[0].values[1] == 2);
    assert_true(answer.made.vectors[1].values[0] == 3);
    assert_true(answer.made.vectors[1].values[1] == -0.45);
    assert_str(answer.made.model, "m-2");
    assert_true(answer.made.has_usage);
    assert_str(answer.made.usage.model, "m-2");
    assert_int_equal(answer.made.usage.prompt, 5);
    assert_int_equal(answer.made.usage.completion, 0);
    assert_int_equal(answer.made.usage.total, 5);
    arena_free(answer.arena);
}

static void an_image_comes_as_bytes_or_as_an_address(void **state) {
    (void)state;
    struct media_request request = {
        .task = MEDIA_IMAGE, .count = 3, .size = STR("640x480"), .format = STR("webp")};
    struct answer answer;
    assert_true(answered(&request, "application/json",
                         STR("{\"created\":1,\"data\":[{\"b64_json\":\"iVBORw0KGgoA\"},"
                             "{\"b64_json\":\"/9j/\"},{\"url\":\"https://x.test/a.png?s=1\"}],"
                             "\"usage\":{\"input_tokens\":3,\"output_tokens\":9,"
                             "\"total_tokens\":12}}"),
                         &answer));
    assert_int_equal(answer.made.artifact_count, 3);
    assert_str(answer.made.artifacts[0].content_type, "image/png");
    assert_true(str_equal(answer.made.artifacts[0].bytes, STR("\x89PNG\r\n\x1a\n\0")));
    assert_str(answer.made.artifacts[1].content_type, "image/jpeg");
    assert_str(answer.made.artifacts[2].uri, "https://x.test/a.png?s=1");
    assert_str(answer.made.artifacts[2].content_type, "image/webp");
    assert_int_equal(answer.made.artifacts[2].width, 640);
    assert_int_equal(answer.made.artifacts[2].height, 480);
    assert_int_equal(answer.made.usage.completion, 9);
    arena_free(answer.arena);
}

static void a_transcript_is_its_text(void **state) {
    (void)state;
    struct media_request request = {.task = MEDIA_TRANSCRIPT, .model = STR("w")};
    struct answer answer;
    assert_true(answered(&request, "application/json",
                         STR("{\"text\":\"Gr\\u00fc\\u00dfe\",\"usage\":{\"type\":\"duration\","
                             "\"seconds\":2}}"),
                         &answer));
    assert_str(answer.made.text, "Grüße");
    assert_false(answer.made.has_usage);
    arena_free(answer.arena);
    assert_true(answered(&request, "application/json", STR("{\"text\":\"\"}"), &answer));
    assert_non_null(answer.made.text.at); /* silence is a text too */
    arena_free(answer.arena);
}

static void sound_stays_as_it_is(void **state) {
    (void)state;
    static const struct {
        const char *format, *type, *told;
        int64_t rate_hz;
    } cases[] = {
        {"mp3", "audio/mpeg", "audio/mpeg", 0},
        {"mp3", "", "audio/mpeg", 0},
        {"mp3", "audio/\xff\xfe", "audio/mpeg", 0},
        {"opus", "application/octet-stream", "audio/ogg", 0},
        {"pcm", "audio/pcm", "audio/pcm", 24000},
        {"pcm", "audio/pcm;rate=16000", "audio/pcm;rate=16000", 16000},
        {"pcm", "audio/pcm; rate=x", "audio/pcm; rate=x", 24000},
        {"pcm", "audio/mpeg", "audio/mpeg", 0}, /* not what was asked for */
        {"", "audio/wav", "audio/wav", 0},      /* no WAVE file, says its content */
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct media_request request = {.task = MEDIA_SPEECH,
                                        .format = str_from(cases[i].format)};
        struct answer answer;
        assert_true(answered(&request, cases[i].type, STR("\1\2\3\4"), &answer));
        assert_int_equal(answer.made.artifact_count, 1);
        assert_str(answer.made.artifacts->bytes, "\1\2\3\4");
        assert_str(answer.made.artifacts->content_type, cases[i].told);
        assert_int_equal(answer.made.artifacts->sample_rate_hz, cases[i].rate_hz);
        arena_free(answer.arena);
    }
}

static void wav_and_pcm_are_resampled_where_another_rate_is_wanted(void **state) {
    (void)state;
    struct err e;
    struct wave wave = {24000, 1, STR("\x10\0\x20\0")}, again;
    struct buf file;
    struct answer answer;
    buf_init(&file, 256);
    wave_append_head(&file, &wave);
    buf_append(&file, wave.samples);
    struct media_request request = {.task = MEDIA_SPEECH, .sample_rate_hz = 48000};
    assert_true(answered(&request, "audio/wav", buf_str(&file), &answer));
    assert_true(wave_read(answer.made.artifacts->bytes, &again, &e));
    assert_int_equal(again.sample_rate_hz, 48000);
    assert_true(str_equal(again.samples, STR("\x10\0\x18\0\x20\0\x20\0")));
    assert_int_equal(answer.made.artifacts->sample_rate_hz, 48000);
    arena_free(answer.arena);
    request.format = STR("pcm");
    assert_true(answered(&request, "audio/pcm", wave.samples, &answer));
    assert_true(str_equal(answer.made.artifacts->bytes, STR("\x10\0\x18\0\x20\0\x20\0")));
    arena_free(answer.arena);
    request.format = STR("wav");
    assert_false(answered(&request, "audio/mpeg", STR("ID3"), &answer));
    assert_string_equal(answer.failure.why.text,
                        "its sound cannot be read to change its sample rate");
    arena_free(answer.arena);
    buf_done(&file);
}

static void an_answer_that_does_not_fit_the_question_is_broken(void **state) {
    (void)state;
    static const struct {
        enum media_task task;
        const char *type, *body, *why;
    } cases[] = {
        {MEDIA_SPEECH, "audio/wav", "", "it answered with no sound (); check its base URL"},
        {MEDIA_SPEECH, "text/html", "<p>sk-abcdefghijklmnopqrstuvwx",
         "it answered with no sound (<p>***); check its base URL"},
        {MEDIA_EMBEDDING, "", "x",
         "it did not answer with JSON: JSON 1:1 (byte 0): expected a value but found 'x'"},
        {MEDIA_EMBEDDING, "", "[]", "it answered with an array in place of an object"},
        {MEDIA_EMBEDDING, "", "{\"error\":{\"message\":\"no\"}}", "OpenAI sent an error: no"},
        {MEDIA_EMBEDDING, "", "{}", "it answered with 0 vectors for 2 inputs"},
        {MEDIA_EMBEDDING, "", "{\"data\":[{\"index\":0,\"embedding\":[1]}]}",
         "it answered with 1 vectors for 2 inputs"},
        {MEDIA_EMBEDDING, "",
         "{\"data\":[{\"index\":0,\"embedding\":[1]},{\"index\":0,\"embedding\":[1]}]}",
         "it answered twice for input 0"},
        {MEDIA_EMBEDDING, "",
         "{\"data\":[{\"index\":0,\"embedding\":[1]},{\"index\":2,\"embedding\":[1]}]}",
         "it answered for an input that was not asked (2 were)"},
        {MEDIA_EMBEDDING, "",
         "{\"data\":[{\"index\":0,\"embedding\":[1]},{\"index\":1.5,\"embedding\":[1]}]}",
         "it answered for an input that was not asked (2 were)"},
        {MEDIA_EMBEDDING, "", "{\"data\":[{\"embedding\":[1]},{\"embedding\":[1,2]}]}",
         "its vectors have different lengths"},
        {MEDIA_EMBEDDING, "", "{\"data\":[{\"embedding\":[1,null]},{\"embedding\":[1]}]}",
         "number 1 in the vector of input 0 is not a number"},
        {MEDIA_EMBEDDING, "", "{\"data\":[{\"embedding\":[1e999]},{\"embedding\":[1]}]}",
         "number 0 in the vector of input 0 is not a number"},
        {MEDIA_EMBEDDING, "", "{\"data\":[{\"embedding\":\"AAAA\"},{\"embedding\":[1]}]}",
         "the vector of input 0 is a string"},
        {MEDIA_EMBEDDING, "", "{\"data\":[{\"embedding\":[]},{\"embedding\":[]}]}",
         "the vector of input 0 is empty, or too long"},
        {MEDIA_IMAGE, "", "{\"data\":[]}", "it answered with 0 images; 1 were asked for"},
        {MEDIA_IMAGE, "", "{\"data\":[{},{}]}", "it answered with 2 images; 1 were asked for"},
        {MEDIA_IMAGE, "", "{\"data\":[{}]}",
         "an image of its answer has neither bytes nor an address"},
        {MEDIA_IMAGE, "", "{\"data\":[{\"b64_json\":\"!\"}]}",
         "an image of its answer is not base64"},
        {MEDIA_IMAGE, "", "{\"data\":[{\"b64_json\":\"\"}]}",
         "an image of its answer is not base64"},
        {MEDIA_IMAGE, "", "{\"data\":[{\"url\":\"file:///etc/passwd\"}]}",
         "an image of its answer has no address that can be asked"},
        {MEDIA_IMAGE, "", "{\"data\":[{\"url\":\"https://a\\nb\"}]}",
         "an image of its answer has no address that can be asked"},
        {MEDIA_TRANSCRIPT, "", "{\"text\":7}", "its answer holds no text"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct media_request request = embedding;
        struct answer answer;
        request.task = cases[i].task;
        assert_false(answered(&request, cases[i].type, str_from(cases[i].body), &answer));
        assert_string_equal(answer.failure.why.text, cases[i].why);
        arena_free(answer.arena);
    }
}

/* Nothing of JSON is an answer before its last byte. */
static void every_truncation_of_an_answer_is_refused(void **state) {
    (void)state;
    struct str whole = STR(VECTORS);
    for (size_t len = 0; len < whole.len; len++) {
        struct answer answer;
        struct str part = exact_copy(str_head(whole, len));
        assert_false(answered(&embedding, "application/json", part, &answer));
        assert_string_equal(answer.failure.reason, PROVIDER_BROKEN);
        arena_free(answer.arena);
        free((void *)(uintptr_t)part.at);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_question_is_written_as_the_api_reads_it),
        cmocka_unit_test(only_models_that_can_shorten_vectors_are_asked_to),
        cmocka_unit_test(a_type_that_breaks_its_line_is_not_sent),
        cmocka_unit_test(an_impossible_request_is_refused_with_the_choices),
        cmocka_unit_test(vectors_are_put_in_the_order_of_their_inputs),
        cmocka_unit_test(an_image_comes_as_bytes_or_as_an_address),
        cmocka_unit_test(a_transcript_is_its_text),
        cmocka_unit_test(sound_stays_as_it_is),
        cmocka_unit_test(wav_and_pcm_are_resampled_where_another_rate_is_wanted),
        cmocka_unit_test(an_answer_that_does_not_fit_the_question_is_broken),
        cmocka_unit_test(every_truncation_of_an_answer_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
