#include "provider/media_local.h"

#include "media_fixture.h"

#include "helper/assert_str.h"
#include "provider/dialect.h"
#include "provider/hashing.h"
#include "provider/speaker.h"
#include "wire/wave.h"

#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* --- a program that stands in for espeak-ng ----------------------------------------------- */

struct stage {
    char folder[64];
    struct loop *loop;
    struct media *media;
    struct heard *heard;
};

static void path_in(const struct stage *stage, const char *name, char room[128]) {
    snprintf(room, 128, "%s/%s", stage->folder, name);
}

static void put_file(const struct stage *stage, const char *name, struct str text,
                     mode_t mode) {
    char path[128];
    path_in(stage, name, path);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);
    assert_true(fd >= 0);
    assert_int_equal(write(fd, text.at, text.len), text.len);
    close(fd);
}

static void assert_file(const struct stage *stage, const char *name, const char *expected) {
    char path[128], room[4096];
    path_in(stage, name, path);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    ssize_t len = read(fd, room, sizeof(room) - 1);
    assert_true(len >= 0);
    room[len] = '\0';
    close(fd);
    assert_string_equal(room, expected);
}

#define VOICES                                                                                 \
    "Pty Language       Age/Gender VoiceName          File                 Other Languages\n"  \
    " 5  de              --/F      German             gmw/de               \n"                 \
    " 2  en-gb           --/M      English_(Great_Britain) gmw/en               (en 2)\n"      \
    " 2  en-us           --/M      English_(America)  gmw/en-US            (en 3)\n"

/* Two samples at 22050 Hz, as espeak-ng streams them. */
#define SOUND                                                                                  \
    "RIFF\x24\xf0\xff\x7f"                                                                     \
    "WAVEfmt \x10\0\0\0\1\0\1\0\x22\x56\0\0\x44\xac\0\0\2\0\x10\0"                             \
    "data\0\xf0\xff\x7f"                                                                       \
    "\x10\0\x20\0"

/* `speaks` is what the program does when it is not asked for its voices. */
static void begin_as(struct stage *stage, const char *lists, const char *speaks) {
    char script[1024], program[128];
    *stage = (struct stage){.folder = "/tmp/weir-media-XXXXXX"};
    assert_non_null(mkdtemp(stage->folder));
    int len = snprintf(script, sizeof(script),
                       "#!/bin/sh\ncd '%s' || exit 9\nif [ \"$1\" = --voices ]; then\n%s\n"
                       "exit\nfi\n%s\n",
                       stage->folder, lists, speaks);
    put_file(stage, "espeak-ng", str_of(script, (size_t)len), 0700);
    put_file(stage, "voices", STR(VOICES), 0600);
    put_file(stage, "sound", STR(SOUND), 0600);
    path_in(stage, "espeak-ng", program);
    stage->loop = loop_new();
    struct media_local_options options = {.name = STR("local"), .program = str_from(program)};
    stage->media = media_local_new(&options);
    stage->heard = heard_new(stage->loop, stage->media);
}

#define LISTS "cat voices"
#define SPEAKS "echo \"$@\" >args; cat >text; cat sound"

static void begin(struct stage *stage) {
    begin_as(stage, LISTS, SPEAKS);
}

static void finish(struct stage *stage) {
    static const char *const files[] = {"espeak-ng", "voices", "sound", "args", "text"};
    media_free(stage->media);
    loop_free(stage->loop);
    heard_free(stage->heard);
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        char path[128];
        path_in(stage, files[i], path);
        (void)unlink(path);
    }
    assert_int_equal(rmdir(stage->folder), 0);
    /* Neither a child nor a zombie is left. */
    assert_int_equal(waitpid(-1, NULL, WNOHANG), -1);
    assert_int_equal(errno, ECHILD);
}

static int setup(void **state) {
    struct stage *stage = MEM_NEW(struct stage);
    begin(stage);
    *state = stage;
    return 0;
}

static int teardown(void **state) {
    struct stage *stage = *state;
    finish(stage);
    free(stage);
    return 0;
}

static void ask(struct stage *stage, const struct media_request *request) {
    heard_start(stage->heard, request);
    loop_run(stage->loop);
}

static struct media_request saying(const char *text) {
    return (struct media_request){.task = MEDIA_SPEECH, .text = str_from(text)};
}

/* --- speech ------------------------------------------------------------------------------- */

static void speech_comes_as_a_file_with_right_lengths(void **state) {
    struct stage *stage = *state;
    struct err e;
    struct wave wave;
    struct media_request request = saying("hello");
    assert_true(media_check(stage->media, &request, &e));
    ask(stage, &request);
    assert_int_equal(stage->heard->dones, 1);
    assert_int_equal(stage->heard->artifacts, 1);
    assert_str(buf_str(&stage->heard->type), "audio/wav");
    assert_str(buf_str(&stage->heard->model), "espeak-ng");
    assert_int_equal(stage->heard->artifact.sample_rate_hz, 22050);
    assert_int_equal(stage->heard->artifact.channels, 1);
    struct str file = buf_str(&stage->heard->bytes);
    assert_int_equal(file.len, WAVE_HEAD_BYTES + 4);
    assert_memory_equal(file.at + 4, "\x28\0\0\0", 4);
    assert_memory_equal(file.at + 40, "\4\0\0\0", 4);
    assert_true(wave_read(file, &wave, &e));
    assert_true(str_equal(wave.samples, STR("\x10\0\x20\0")));
    assert_file(stage, "text", "hello");
    assert_file(stage, "args", "--stdin --stdout -b 1 -v gmw/en -s 175 -p 50 -a 100\n");
}

static void pcm_is_the_samples_alone(void **state) {
    struct stage *stage = *state;
    struct media_request request = saying("hello");
    request.format = STR("PCM");
    ask(stage, &request);
    assert_str(buf_str(&stage->heard->type), "audio/pcm");
    assert_true(str_equal(buf_str(&stage->heard->bytes), STR("\x10\0\x20\0")));
    assert_int_equal(stage->heard->artifact.sample_rate_hz, 22050);
}

static void another_rate_is_resampled(void **state) {
    struct stage *stage = *state;
    struct media_request request = saying("hello");
    request.format = STR("pcm");
    request.sample_rate_hz = 44100;
    ask(stage, &request);
    assert_true(str_equal(buf_str(&stage->heard->bytes), STR("\x10\0\x18\0\x20\0\x20\0")));
    assert_int_equal(stage->heard->artifact.sample_rate_hz, 44100);
}

/* Whatever a text looks like, it is said and not obeyed. */
static void a_text_is_no_option_and_no_command(void **state) {
    struct stage *stage = *state;
    struct media_request request = saying("-v de <speak>`id`</speak> \001"
                                          "80S [[h@l]] \x7f$HOME\n");
    ask(stage, &request);
    assert_int_equal(stage->heard->dones, 1);
    assert_file(stage, "text", "-v de <speak>`id`</speak>  80S [ [h@l]]  $HOME\n");
    assert_file(stage, "args", "--stdin --stdout -b 1 -v gmw/en -s 175 -p 50 -a 100\n");
}

static void speed_pitch_and_volume_are_those_of_the_program(void **state) {
    struct stage *stage = *state;
    static const struct {
        double speed, pitch, volume;
        const char *args;
    } cases[] = {
        {1, 0, 1, "-s 175 -p 50 -a 100\n"},       {2, 12, 1.5, "-s 350 -p 99 -a 150\n"},
        {0.5, -6, 0.25, "-s 88 -p 25 -a 25\n"},   {4, 24, 4, "-s 450 -p 99 -a 200\n"},
        {0.001, -24, 0.001, "-s 80 -p 0 -a 0\n"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char expected[128];
        struct media_request request = saying("hello");
        request.speed = cases[i].speed;
        request.pitch = cases[i].pitch;
        request.volume = cases[i].volume;
        ask(stage, &request);
        snprintf(expected, sizeof(expected), "--stdin --stdout -b 1 -v gmw/en %s",
                 cases[i].args);
        assert_file(stage, "args", expected);
    }
}

static void a_voice_is_found_by_its_name_or_its_language(void **state) {
    struct stage *stage = *state;
    static const struct {
        const char *voice, *language, *args;
    } cases[] = {
        {"en-us", "", "gmw/en-US"},
        {"German", "", "gmw/de"},
        {"", "de-AT", "gmw/de"},
        {"en", "de", "gmw/en"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char expected[128];
        struct media_request request = saying("hello");
        request.voice = str_from(cases[i].voice);
        request.language = str_from(cases[i].language);
        ask(stage, &request);
        snprintf(expected, sizeof(expected),
                 "--stdin --stdout -b 1 -v %s -s 175 -p 50 -a 100\n", cases[i].args);
        assert_file(stage, "args", expected);
    }
}

/* --- what cannot be had ------------------------------------------------------------------- */

static void impossible_speech_is_refused_with_the_choices(void **state) {
    struct stage *stage = *state;
    static const struct {
        struct media_request request;
        enum err_code code;
        const char *why;
    } cases[] = {
        {{.text = STR_INIT(" \n")}, ERR_INVALID_ARGUMENT, "there is no text to speak"},
        {{.text = STR_INIT("a"), .format = STR_INIT("mp3")},
         ERR_INVALID_ARGUMENT,
         "local speech is not written as 'mp3'; ask for wav or pcm"},
        {{.text = STR_INIT("a"), .sample_rate_hz = 192001},
         ERR_INVALID_ARGUMENT,
         "sample_rate_hz is 192001; it may be 4000 to 192000"},
        {{.text = STR_INIT("a"), .sample_rate_hz = -1},
         ERR_INVALID_ARGUMENT,
         "sample_rate_hz is -1; it may be 4000 to 192000"},
        {{.text = STR_INIT("a"), .speed = 4.5},
         ERR_INVALID_ARGUMENT,
         "speed is 4.5; it may be 0 to 4"},
        {{.text = STR_INIT("a"), .speed = -0.5},
         ERR_INVALID_ARGUMENT,
         "speed is -0.5; it may be 0 to 4"},
        {{.text = STR_INIT("a"), .pitch = 25},
         ERR_INVALID_ARGUMENT,
         "pitch is 25; it may be -24 to 24"},
        {{.text = STR_INIT("a"), .volume = NAN},
         ERR_INVALID_ARGUMENT,
         "volume is nan; it may be 0 to 4"},
        {{.text = STR_INIT("a"), .voice = STR_INIT("Germann")},
         ERR_NOT_FOUND,
         "espeak-ng has no voice 'Germann'; did you mean 'German'?"},
        {{.text = STR_INIT("a"), .language = STR_INIT("tlh")},
         ERR_NOT_FOUND,
         "espeak-ng has no voice for the language 'tlh'"},
        {{.text = STR_INIT("a"), .model = STR_INIT("tts-1")},
         ERR_NOT_FOUND,
         "there is no local model 'tts-1' for this; ask for espeak-ng"},
        {{.task = MEDIA_IMAGE, .text = STR_INIT("a")},
         ERR_INVALID_ARGUMENT,
         "this machine's own models speak (espeak-ng) and make vectors (hash-256), nothing "
         "else"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct err e;
        assert_false(media_check(stage->media, &cases[i].request, &e));
        assert_string_equal(e.text, cases[i].why);
        stage->heard->faileds = 0;
        ask(stage, &cases[i].request);
        assert_failed(stage->heard, cases[i].code, PROVIDER_REJECTED, cases[i].why);
    }
}

static void a_program_that_is_not_installed_is_unavailable(void **state) {
    struct stage *stage = *state;
    size_t count = 1;
    media_free(stage->media);
    struct media_local_options options = {.name = STR("local"), .path = STR("/nowhere")};
    stage->heard->media = stage->media = media_local_new(&options);
    struct media_request request = saying("hello");
    ask(stage, &request);
    assert_failed(stage->heard, ERR_UNAVAILABLE, PROVIDER_UNREACHABLE,
                  "speech needs the program 'espeak-ng', which is not installed: apt-get "
                  "install espeak-ng");
    assert_null(stage->media->kind->voices(stage->media, STR(""), &count));
    assert_int_equal(count, 0);
}

static void a_program_that_is_installed_later_is_found(void **state) {
    struct stage *stage = *state;
    struct err e;
    media_free(stage->media);
    char later[128];
    path_in(stage, "later", later);
    assert_int_equal(mkdir(later, 0700), 0);
    struct media_local_options options = {.name = STR("local"), .path = str_from(later)};
    stage->heard->media = stage->media = media_local_new(&options);
    struct media_request request = saying("hello");
    assert_false(media_check(stage->media, &request, &e));
    assert_int_equal(e.code, ERR_UNAVAILABLE);
    char from[128], to[160];
    path_in(stage, "espeak-ng", from);
    snprintf(to, sizeof(to), "%s/espeak-ng", later);
    assert_int_equal(link(from, to), 0);
    assert_true(media_check(stage->media, &request, &e));
    ask(stage, &request);
    assert_int_equal(stage->heard->dones, 1);
    assert_int_equal(unlink(to), 0);
    assert_int_equal(rmdir(later), 0);
}

static void a_program_without_voices_is_unavailable(void **state) {
    (void)state;
    static const struct {
        const char *lists, *why;
    } cases[] = {
        {"exit 3", "espeak-ng --voices failed with 3"},
        {"echo nothing", "espeak-ng --voices named no voice; is its data installed?"},
        {"yes", "espeak-ng --voices does not end"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct stage stage;
        begin_as(&stage, cases[i].lists, SPEAKS);
        struct media_request request = saying("hello");
        ask(&stage, &request);
        assert_failed(stage.heard, ERR_UNAVAILABLE, PROVIDER_UNREACHABLE, cases[i].why);
        finish(&stage);
    }
}

/* Its voices are not waited for either: this ends long before the program would. */
static void a_media_may_go_while_its_voices_are_listed(void **state) {
    (void)state;
    struct stage stage;
    begin_as(&stage, "sleep 1000", SPEAKS);
    finish(&stage);
}

static void a_program_that_fails_is_quoted(void **state) {
    (void)state;
    static const struct {
        const char *speaks, *reason, *why;
        enum err_code code;
    } cases[] = {
        {"echo 'no data' >&2; exit 2", PROVIDER_ERROR, "espeak-ng failed (status 2): no data",
         ERR_INTERNAL},
        {"exit 1", PROVIDER_ERROR, "espeak-ng failed (status 1)", ERR_INTERNAL},
        {"kill -SEGV $$", PROVIDER_ERROR, "espeak-ng failed (signal 11)", ERR_INTERNAL},
        {"echo no sound", PROVIDER_BROKEN, "espeak-ng: this is no RIFF file", ERR_INTERNAL},
        {"head -c 44 sound", PROVIDER_REJECTED,
         "there is nothing in this text that can be said", ERR_INVALID_ARGUMENT},
        {"head -c 20 sound", PROVIDER_BROKEN, "espeak-ng: the sound ends inside its WAVE head",
         ERR_INTERNAL},
        {"cat sound; yes", PROVIDER_REJECTED,
         "this text is longer than 16 MiB of audio; send less text", ERR_TOO_LARGE},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct stage stage;
        begin_as(&stage, LISTS, cases[i].speaks);
        struct media_request request = saying("hello");
        ask(&stage, &request);
        assert_failed(stage.heard, cases[i].code, cases[i].reason, cases[i].why);
        assert_int_equal(stage.heard->artifacts, 0);
        finish(&stage);
    }
}

static void sound_that_grows_too_large_by_its_rate_is_refused(void **state) {
    (void)state;
    struct stage stage;
    begin_as(&stage, LISTS, "cat sound; head -c 3000000 /dev/zero");
    struct media_request request = saying("hello");
    request.sample_rate_hz = 192000;
    ask(&stage, &request);
    assert_failed(stage.heard, ERR_TOO_LARGE, PROVIDER_REJECTED,
                  "at this sample rate the sound is larger than 16 MiB; ask for a lower one, "
                  "or send less text");
    finish(&stage);
}

/* Refused by its letters alone, before a program is started; what may fit is let pass. */
static void a_text_that_surely_lasts_too_long_is_refused_before_it_is_said(void **state) {
    (void)state;
    static const struct {
        const char *word;
        size_t times;
        double speed;
        int64_t rate_hz;
        bool passes;
    } cases[] = {
        {"the ", 1500, 0, 0, true},      /* 4,500 letters: three minutes */
        {"the ", 4400, 0, 0, true},      /* 13,200 at 35 a second: just may fit */
        {"the ", 4500, 0, 0, false},     /* 13,500 */
        {"the ", 4500, 2, 0, true},      /* twice as fast */
        {"the ", 2500, 0.4, 0, false},   /* 80 words a minute */
        {"the ", 600, 0, 192000, false}, /* 43 s have room at this rate */
        {"the ", 400, 0, 192000, true},
        {"a, ", 20000, 0, 0, false},
        {"\xd0\xb0 ", 20000, 0, 0, true}, /* not ASCII: half a letter each */
        {"\xd0\xb0 ", 30000, 0, 0, false},
        {"- ", 200000, 0, 0, true}, /* nothing to say */
        {"aaaaaaaa", 10000, 0, 0, true} /* no word, and hurried through */,
    };
    struct stage stage;
    begin_as(&stage, LISTS, "exit 1");
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct buf text;
        struct err e;
        buf_init(&text, MIB);
        for (size_t n = 0; n < cases[i].times; n++) buf_append(&text, str_from(cases[i].word));
        struct media_request request = saying("");
        request.text = buf_str(&text);
        request.speed = cases[i].speed;
        request.sample_rate_hz = cases[i].rate_hz;
        if (media_check(stage.media, &request, &e) != cases[i].passes) fail_msg("case %zu", i);
        if (!cases[i].passes) assert_int_equal(e.code, ERR_TOO_LARGE);
        buf_done(&text);
    }
    finish(&stage);
}

/* --- time, and calls that were left ------------------------------------------------------- */

static void a_program_that_does_not_end_is_ended(void **state) {
    (void)state;
    struct stage stage;
    begin_as(&stage, LISTS, "cat sound; sleep 1000");
    struct media_request request = saying("hello");
    request.total_ms = 20;
    ask(&stage, &request);
    assert_failed(stage.heard, ERR_DEADLINE_EXCEEDED, PROVIDER_TIMEOUT,
                  "espeak-ng was not done after 20ms");
    finish(&stage);
}

static void a_call_may_be_cancelled_at_any_moment(void **state) {
    (void)state;
    struct stage stage;
    /* before its failure was reported */
    begin(&stage);
    struct media_request request = saying("");
    heard_start(stage.heard, &request);
    stage.media->kind->cancel(stage.heard->call);
    stage.heard->call = NULL;
    finish(&stage);
    /* while it speaks */
    begin_as(&stage, LISTS, "sleep 1000");
    request = saying("hello");
    heard_start(stage.heard, &request);
    stage.media->kind->cancel(stage.heard->call);
    stage.heard->call = NULL;
    finish(&stage);
    /* while a vector is made: whether or not the thread has begun */
    static const struct str input = STR_INIT("a");
    begin(&stage);
    request =
        (struct media_request){.task = MEDIA_EMBEDDING, .inputs = &input, .input_count = 1};
    for (int i = 0; i < 50; i++) {
        heard_start(stage.heard, &request);
        stage.media->kind->cancel(stage.heard->call);
        stage.heard->call = NULL;
    }
    finish(&stage);
    /* by what it heard */
    begin(&stage);
    request = saying("hello");
    stage.heard->cancels = true;
    ask(&stage, &request);
    assert_int_equal(stage.heard->artifacts, 1);
    assert_int_equal(heard_endings(stage.heard), 0);
    finish(&stage);
}

/* --- vectors ------------------------------------------------------------------------------ */

static void each_input_becomes_a_vector_in_its_order(void **state) {
    struct stage *stage = *state;
    static const struct str inputs[] = {STR_INIT("the sluice gate"), STR_INIT("a sluice")};
    double expected[HASHING_DIMENSIONS];
    struct media_request request = {.task = MEDIA_EMBEDDING,
                                    .model = STR("local/hash-256"),
                                    .inputs = inputs,
                                    .input_count = ARRAY_LEN(inputs)};
    ask(stage, &request);
    assert_int_equal(stage->heard->dones, 1);
    assert_int_equal(stage->heard->vectors, 2);
    assert_str(buf_str(&stage->heard->model), "hash-256");
    for (size_t i = 0; i < ARRAY_LEN(inputs); i++) {
        assert_int_equal(stage->heard->number_count[i], HASHING_DIMENSIONS);
        assert_true(hashing_embed(inputs[i], expected));
        assert_memory_equal(stage->heard->numbers[i], expected, sizeof(expected));
    }
}

static void empty_inputs_have_no_vector(void **state) {
    struct stage *stage = *state;
    static const struct str inputs[] = {STR_INIT("a"), STR_INIT(" \n")};
    struct media_request request = {.task = MEDIA_EMBEDDING};
    ask(stage, &request);
    assert_failed(stage->heard, ERR_INVALID_ARGUMENT, PROVIDER_REJECTED,
                  "there is no input to make a vector of");
    request.inputs = inputs;
    request.input_count = 2;
    stage->heard->faileds = 0;
    ask(stage, &request);
    assert_failed(stage->heard, ERR_INVALID_ARGUMENT, PROVIDER_REJECTED,
                  "input 1 (counted from 0) is empty; nothing can be made of it");
}

/* --- the real one ------------------------------------------------------------------------- */

static void espeak_itself_speaks(void **state) {
    struct stage *stage = *state;
    static const int64_t rates[] = {0, 8000, 48000};
    struct buf found;
    buf_init(&found, 4096);
    bool installed = media_local_find(&found);
    buf_done(&found);
    if (!installed) skip();
    media_free(stage->media);
    struct media_local_options options = {.name = STR("local")};
    stage->heard->media = stage->media = media_local_new(&options);
    size_t count;
    assert_non_null(stage->media->kind->voices(stage->media, STR("espeak-ng"), &count));
    assert_in_range(count, 50, VOICES_MAX);
    for (size_t i = 0; i < ARRAY_LEN(rates); i++) {
        struct err e;
        struct wave wave;
        struct media_request request = saying("A weir stands across a stream.");
        request.sample_rate_hz = rates[i];
        request.voice = STR("en-us");
        ask(stage, &request);
        assert_int_equal(stage->heard->dones, i + 1);
        assert_true(wave_read(buf_str(&stage->heard->bytes), &wave, &e));
        assert_int_equal(wave.sample_rate_hz, rates[i] ? rates[i] : 22050);
        assert_in_range(stage->heard->artifact.duration_ms, 800, 6000);
        assert_int_equal(wave_duration_ms(&wave), stage->heard->artifact.duration_ms);
    }
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(speech_comes_as_a_file_with_right_lengths),
        TEST(pcm_is_the_samples_alone),
        TEST(another_rate_is_resampled),
        TEST(a_text_is_no_option_and_no_command),
        TEST(speed_pitch_and_volume_are_those_of_the_program),
        TEST(a_voice_is_found_by_its_name_or_its_language),
        TEST(impossible_speech_is_refused_with_the_choices),
        TEST(a_program_that_is_not_installed_is_unavailable),
        TEST(a_program_that_is_installed_later_is_found),
        cmocka_unit_test(a_program_without_voices_is_unavailable),
        cmocka_unit_test(a_media_may_go_while_its_voices_are_listed),
        cmocka_unit_test(a_program_that_fails_is_quoted),
        cmocka_unit_test(sound_that_grows_too_large_by_its_rate_is_refused),
        cmocka_unit_test(a_text_that_surely_lasts_too_long_is_refused_before_it_is_said),
        cmocka_unit_test(a_program_that_does_not_end_is_ended),
        cmocka_unit_test(a_call_may_be_cancelled_at_any_moment),
        TEST(each_input_becomes_a_vector_in_its_order),
        TEST(empty_inputs_have_no_vector),
        TEST(espeak_itself_speaks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
