/* openai_media: writes the requests. */
#include "provider/openai_media.h"

#include "wire/multipart.h"

#include <math.h>

#define IMAGES_MAX 16
#define SPEED_MIN 0.25
#define SPEED_MAX 4.0
#define RATE_MIN_HZ 4000
#define RATE_MAX_HZ 192000
#define USUAL_VOICE "alloy"

static const struct {
    const char *path;
    size_t max_bytes;
} tasks[MEDIA_TASKS] = {
    [MEDIA_SPEECH] = {"/audio/speech", MEDIA_ARTIFACT_MAX_BYTES},
    [MEDIA_EMBEDDING] = {"/embeddings", 64 * MIB},
    [MEDIA_IMAGE] = {"/images/generations", 96 * MIB},
    [MEDIA_TRANSCRIPT] = {"/audio/transcriptions", 4 * MIB},
};

const char *openai_media_path(enum media_task task) {
    return tasks[task].path;
}

size_t openai_media_max_bytes(enum media_task task) {
    return tasks[task].max_bytes;
}

/* --- checks ------------------------------------------------------------------------------- */

static bool openai_media_is_one_of(struct str text, const char *const *names) {
    for (; *names; names++) {
        if (str_equal_nocase(text, str_from(*names))) return true;
    }
    return false;
}

static const char *const sound_formats[] = {"wav", "pcm", "mp3", "opus", "aac", "flac", NULL};
static const char *const image_formats[] = {"png", "jpeg", "webp", NULL};

static bool check_rate(const struct media_request *request, struct err *e) {
    static const char *const ours[] = {"", "wav", "pcm", NULL};
    int64_t rate_hz = request->sample_rate_hz;
    if (rate_hz == 0) return true;
    if (!openai_media_is_one_of(str_trim(request->format), ours))
        return err_set(e, ERR_INVALID_ARGUMENT,
                       "this provider chooses the sample rate of '" STR_FMT
                       "' itself; ask for wav or pcm, or leave sample_rate_hz out",
                       STR_ARG(str_head(str_trim(request->format), 40)));
    return (rate_hz >= RATE_MIN_HZ && rate_hz <= RATE_MAX_HZ) ||
           err_set(e, ERR_INVALID_ARGUMENT, "sample_rate_hz is %lld; it may be %d to %d",
                   (long long)rate_hz, RATE_MIN_HZ, RATE_MAX_HZ);
}

static bool check_speech(const struct media_request *request, struct err *e) {
    struct str format = str_trim(request->format);
    double speed = request->speed;
    if (str_trim(request->text).len == 0)
        return err_set(e, ERR_INVALID_ARGUMENT, "there is no text to speak");
    if (format.len && !openai_media_is_one_of(format, sound_formats))
        return err_set(e, ERR_INVALID_ARGUMENT,
                       "speech is not written as '" STR_FMT
                       "'; ask for wav, pcm, mp3, opus, aac or flac",
                       STR_ARG(str_head(format, 40)));
    if (speed != 0 && !(isfinite(speed) && speed >= SPEED_MIN && speed <= SPEED_MAX))
        return err_set(e, ERR_INVALID_ARGUMENT, "speed is %g; this provider speaks at %g to %g",
                       speed, SPEED_MIN, SPEED_MAX);
    if (request->pitch != 0 || (request->volume != 0 && request->volume != 1))
        return err_set(e, ERR_INVALID_ARGUMENT,
                       "this provider's voices have no other pitch and no other volume; leave "
                       "them out");
    return check_rate(request, e);
}

static bool check_image(const struct media_request *request, struct err *e) {
    struct str format = str_trim(request->format);
    if (str_trim(request->text).len == 0)
        return err_set(e, ERR_INVALID_ARGUMENT, "the prompt says nothing to draw");
    if (request->count < 0 || request->count > IMAGES_MAX)
        return err_set(e, ERR_INVALID_ARGUMENT, "%lld images are asked for; it may be 0 to %d",
                       (long long)request->count, IMAGES_MAX);
    if (format.len && !openai_media_is_one_of(format, image_formats))
        return err_set(e, ERR_INVALID_ARGUMENT,
                       "images are not written as '" STR_FMT "'; ask for png, jpeg or webp",
                       STR_ARG(str_head(format, 40)));
    return str_trim(request->negative).len == 0 ||
           err_set(e, ERR_INVALID_ARGUMENT,
                   "this provider does not accept a negative prompt; say in the prompt what "
                   "not to draw");
}

static bool check_transcript(const struct media_request *request, struct err *e) {
    return request->bytes.len ||
           err_set(e, ERR_INVALID_ARGUMENT, "there is no audio to transcribe");
}

typedef bool check_fn(const struct media_request *request, struct err *e);

bool openai_media_check(const struct media_request *request, struct err *e) {
    static check_fn *const checks[MEDIA_TASKS] = {[MEDIA_SPEECH] = check_speech,
                                                  [MEDIA_EMBEDDING] = media_work_check_inputs,
                                                  [MEDIA_IMAGE] = check_image,
                                                  [MEDIA_TRANSCRIPT] = check_transcript};
    return checks[request->task](request, e);
}

/* --- JSON --------------------------------------------------------------------------------- */

static void member_unless_empty(struct json_writer *w, const char *key, struct str text) {
    text = str_trim(text);
    if (text.len) json_member_str(w, key, text);
}

static void write_speech(struct json_writer *w, const struct media_request *request) {
    struct str voice = str_trim(request->voice), format = str_trim(request->format);
    json_member_str(w, "input", request->text);
    json_member_str(w, "voice", voice.len ? voice : STR(USUAL_VOICE));
    json_member_str(w, "response_format", format.len ? format : STR("wav"));
    if (request->speed == 0) return;
    json_key(w, STR("speed"));
    json_write_double(w, request->speed);
}

/* The models that take `dimensions`; others refuse the request or ignore it. */
static bool can_shorten(struct str model) {
    return str_starts(model, STR("text-embedding-3"));
}

static void openai_media_write_inputs(struct json_writer *w,
                                      const struct media_request *request) {
    json_member_array(w, "input");
    for (size_t i = 0; i < request->input_count; i++) json_write_str(w, request->inputs[i]);
    json_close(w);
    json_member_str(w, "encoding_format", STR("float"));
    if (request->dimensions && can_shorten(request->model))
        json_member_i64(w, "dimensions", request->dimensions);
}

/* response_format is left out: newer models refuse it. Without it, older ones answer with URLs,
 * which we accept too. */
static void write_image(struct json_writer *w, const struct media_request *request) {
    json_member_str(w, "prompt", request->text);
    if (request->count) json_member_i64(w, "n", request->count);
    member_unless_empty(w, "size", request->size);
    member_unless_empty(w, "quality", request->quality);
    member_unless_empty(w, "style", request->style);
    member_unless_empty(w, "output_format", request->format);
}

static bool write_json(const struct media_request *request, struct buf *type, struct buf *out,
                       struct err *e) {
    struct json_writer w = json_writer(out);
    buf_append(type, STR("application/json"));
    json_open_object(&w);
    member_unless_empty(&w, "model", request->model);
    switch (request->task) {
    case MEDIA_SPEECH: write_speech(&w, request); break;
    case MEDIA_EMBEDDING: openai_media_write_inputs(&w, request); break;
    default: write_image(&w, request); break;
    }
    json_close(&w);
    return buf_ok(out) || err_set(e, ERR_TOO_LARGE, "the request is too long to send");
}

/* --- the form of a transcript ------------------------------------------------------------- */

/* The server recognises a file by its extension. */
static const struct {
    struct str type, file;
} sounds[] = {
    {STR_INIT("audio/wav"), STR_INIT("sound.wav")},
    {STR_INIT("audio/x-wav"), STR_INIT("sound.wav")},
    {STR_INIT("audio/wave"), STR_INIT("sound.wav")},
    {STR_INIT("audio/mpeg"), STR_INIT("sound.mp3")},
    {STR_INIT("audio/mp3"), STR_INIT("sound.mp3")},
    {STR_INIT("audio/mp4"), STR_INIT("sound.m4a")},
    {STR_INIT("audio/m4a"), STR_INIT("sound.m4a")},
    {STR_INIT("audio/x-m4a"), STR_INIT("sound.m4a")},
    {STR_INIT("video/mp4"), STR_INIT("sound.mp4")},
    {STR_INIT("audio/webm"), STR_INIT("sound.webm")},
    {STR_INIT("video/webm"), STR_INIT("sound.webm")},
    {STR_INIT("audio/ogg"), STR_INIT("sound.ogg")},
    {STR_INIT("audio/opus"), STR_INIT("sound.ogg")},
    {STR_INIT("audio/flac"), STR_INIT("sound.flac")},
    {STR_INIT("audio/x-flac"), STR_INIT("sound.flac")},
};

/* An unknown type is not passed on; it could be any text. */
static struct multipart_part file_of(const struct media_request *request) {
    struct str rest, type = str_trim(str_split(request->content_type, ';', &rest));
    for (size_t i = 0; i < ARRAY_LEN(sounds); i++) {
        if (str_equal_nocase(sounds[i].type, type))
            return (struct multipart_part){STR("file"), sounds[i].file, sounds[i].type,
                                           request->bytes};
    }
    return (struct multipart_part){STR("file"), STR("sound.wav"),
                                   STR("application/octet-stream"), request->bytes};
}

/* The API takes "de" and not "de-AT". */
static struct str language_of(struct str language) {
    language = str_trim(language);
    size_t len = 0;
    while (len < language.len && language.at[len] != '-' && language.at[len] != '_') len++;
    return str_head(language, len);
}

static bool write_form(const struct media_request *request, struct buf *type, struct buf *out,
                       struct err *e) {
    struct multipart_part parts[5];
    size_t count = 0;
    parts[count++] = (struct multipart_part){.name = STR("model"), .content = request->model};
    parts[count++] =
        (struct multipart_part){.name = STR("response_format"), .content = STR("json")};
    struct str language = language_of(request->language);
    if (language.len)
        parts[count++] = (struct multipart_part){.name = STR("language"), .content = language};
    if (request->text.len)
        parts[count++] =
            (struct multipart_part){.name = STR("prompt"), .content = request->text};
    parts[count++] = file_of(request);
    return multipart_write(parts, count, type, out, e);
}

bool openai_media_body(const struct media_request *request, struct buf *type, struct buf *out,
                       struct err *e) {
    if (!openai_media_check(request, e)) return false;
    return request->task == MEDIA_TRANSCRIPT ? write_form(request, type, out, e)
                                             : write_json(request, type, out, e);
}
