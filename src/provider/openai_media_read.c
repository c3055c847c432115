/* openai_media: reads the answers. */
#include "base/utf8.h"
#include "provider/openai_media.h"
#include "wire/base64.h"
#include "wire/wave.h"

#include <math.h>
#include <stdio.h>

#define VECTOR_MAX 65536 /* numbers in one vector; the largest models have a tenth of it */
#define URL_MAX_BYTES (8 * KIB)
#define RATE_MAX_HZ 192000
#define SHOWN_BYTES 120

/* The input and output of reading one answer. */
struct reading {
    const struct media_request *request;
    struct str type, body;
    struct arena *arena;
    struct media_made *made;
    struct reply_failure *failure;
};

PRINTF_LIKE(2, 3) static bool broken(struct reading *at, const char *format, ...) {
    char text[ERR_TEXT_BYTES + 4]; /* err_set() cuts it between characters */
    va_list values;
    va_start(values, format);
    vsnprintf(text, sizeof(text), format, values);
    va_end(values);
    at->failure->reason = PROVIDER_BROKEN;
    return err_set(&at->failure->why, ERR_UNAVAILABLE, "%s", text);
}

static bool openai_media_read_too_large(struct reading *at) {
    at->failure->reason = MODEL_ANSWER_TOO_LONG;
    return err_set(&at->failure->why, ERR_TOO_LARGE, "its answer is larger than can be kept");
}

/* --- sound -------------------------------------------------------------------------------- */

static bool openai_media_read_is_text(struct str type) {
    return str_starts(type, STR("text/")) || str_starts(type, STR("application/json"));
}

/* The content type of each format, for servers that do not send it. */
static const struct {
    struct str format, type;
} sounds[] = {
    {STR_INIT("pcm"), STR_INIT("audio/pcm")},   {STR_INIT("mp3"), STR_INIT("audio/mpeg")},
    {STR_INIT("opus"), STR_INIT("audio/ogg")},  {STR_INIT("aac"), STR_INIT("audio/aac")},
    {STR_INIT("flac"), STR_INIT("audio/flac")},
};

static struct str type_of_sound(const struct reading *at) {
    struct str format = str_trim(at->request->format);
    bool some = at->type.len && utf8_valid(at->type); /* messages carry it as text */
    if (some && !str_starts(at->type, STR("application/octet-stream"))) return at->type;
    for (size_t i = 0; i < ARRAY_LEN(sounds); i++) {
        if (str_equal_nocase(sounds[i].format, format)) return sounds[i].type;
    }
    return STR("audio/wav");
}

/* The rate in "audio/pcm;rate=16000", or the default. */
static uint32_t rate_of(struct str type) {
    struct str rest, rate = str_skip(type, str_find_nocase(type, STR("rate=")) + 5);
    uint64_t number;
    rate = str_trim(str_split(rate, ';', &rest));
    return str_to_u64(rate, &number) && number && number <= RATE_MAX_HZ ? (uint32_t)number
                                                                        : OPENAI_PCM_RATE_HZ;
}

/* Find the samples of uncompressed sound. False: it is not uncompressed. */
static bool find_samples(const struct reading *at, struct str type, struct wave *ret) {
    struct err e;
    if (!str_starts(type, STR("audio/pcm"))) return wave_read(at->body, ret, &e);
    *ret = (struct wave){rate_of(type), 1, at->body};
    ret->samples.len -= ret->samples.len % WAVE_SAMPLE_BYTES;
    return true;
}

static bool set_rate(struct reading *at, struct wave *wave, struct media_artifact *made) {
    bool wav = !str_starts(made->content_type, STR("audio/pcm"));
    struct buf samples, file;
    if (wave->channels != 1)
        return broken(at, "it spoke on %u channels, which cannot be resampled", wave->channels);
    buf_init(&samples, MEDIA_ARTIFACT_MAX_BYTES);
    buf_init(&file, MEDIA_ARTIFACT_MAX_BYTES);
    wave_resample(wave, (uint32_t)at->request->sample_rate_hz, &samples);
    wave->sample_rate_hz = (uint32_t)at->request->sample_rate_hz;
    wave->samples = buf_str(&samples);
    if (wav) wave_append_head(&file, wave);
    buf_append(&file, wave->samples);
    bool fits =
        buf_ok(&samples) && buf_ok(&file) && arena_str(at->arena, buf_str(&file), &made->bytes);
    made->duration_ms = wave_duration_ms(wave);
    wave->samples = STR_EMPTY;
    buf_done(&samples);
    buf_done(&file);
    if (!fits) return openai_media_read_too_large(at);
    return made->bytes.len || broken(at, "its sound is empty");
}

static bool read_sound(struct reading *at) {
    struct media_artifact *made = ARENA_NEW(at->arena, struct media_artifact);
    struct wave wave;
    int64_t rate_hz = at->request->sample_rate_hz;
    if (at->body.len == 0 || openai_media_read_is_text(at->type)) {
        struct buf shown;
        buf_init(&shown, ERR_TEXT_BYTES);
        reply_append_safe(&shown, at->body, SHOWN_BYTES);
        broken(at, "it answered with no sound (" STR_FMT "); check its base URL",
               STR_ARG(buf_str(&shown)));
        buf_done(&shown);
        return false;
    }
    if (!made || !arena_str(at->arena, type_of_sound(at), &made->content_type))
        return openai_media_read_too_large(at);
    made->bytes = at->body;
    made->uri = STR_EMPTY;
    at->made->artifacts = made;
    at->made->artifact_count = 1;
    if (!find_samples(at, made->content_type, &wave))
        return rate_hz == 0 || broken(at, "its sound cannot be read to change its sample rate");
    made->duration_ms = wave_duration_ms(&wave);
    if (rate_hz && rate_hz != wave.sample_rate_hz && !set_rate(at, &wave, made)) return false;
    made->sample_rate_hz = wave.sample_rate_hz;
    made->channels = wave.channels;
    return true;
}

/* --- JSON --------------------------------------------------------------------------------- */

static bool read_json(struct reading *at, struct json *ret) {
    struct err e;
    if (!json_read(at->body, ret, &e))
        return broken(at, "it did not answer with JSON: %s", e.text);
    struct json error = json_find(*ret, STR("error"));
    if (error.kind > JSON_NONE && error.kind != JSON_NULL) {
        reply_failure_of("OpenAI", 0, *ret, at->failure);
        return false;
    }
    return ret->kind == JSON_OBJECT ||
           broken(at, "it answered with %s in place of an object", json_kind_name(ret->kind));
}

/* The first of the two members that is present; missing or negative counts are unknown. */
static int64_t openai_media_read_count_of(struct json usage, struct str key, struct str other) {
    int64_t count;
    if (json_i64(json_find(usage, key), &count) && count >= 0) return count;
    if (json_i64(json_find(usage, other), &count) && count >= 0) return count;
    return TOKENS_UNKNOWN;
}

/* Embeddings count prompt and completion tokens, the other tasks input and output tokens. */
static void openai_media_read_read_usage(struct reading *at, struct json body) {
    struct json said = json_find(body, STR("usage"));
    struct event_usage usage = USAGE_UNKNOWN;
    usage.prompt = openai_media_read_count_of(said, STR("prompt_tokens"), STR("input_tokens"));
    usage.completion =
        openai_media_read_count_of(said, STR("completion_tokens"), STR("output_tokens"));
    usage.total = openai_media_read_count_of(said, STR("total_tokens"), STR("total_tokens"));
    if (at->request->task == MEDIA_EMBEDDING && usage.completion == TOKENS_UNKNOWN)
        usage.completion = 0; /* a vector has no tokens */
    bool counted = usage.prompt != TOKENS_UNKNOWN || usage.total != TOKENS_UNKNOWN;
    if (said.kind != JSON_OBJECT || !counted) return;
    usage.model = at->made->model.len ? at->made->model : at->request->model;
    at->made->usage = usage;
    at->made->has_usage = true;
}

static void read_model(struct reading *at, struct json body) {
    struct str model;
    if (json_str(json_find(body, STR("model")), at->arena, &model) && model.len)
        at->made->model = model;
}

/* --- vectors ------------------------------------------------------------------------------ */

static bool read_numbers(struct reading *at, size_t index, struct json numbers) {
    struct media_vector *vector = &at->made->vectors[index];
    size_t count = json_count(numbers), filled = 0;
    if (numbers.kind != JSON_ARRAY || count == 0 || count > VECTOR_MAX)
        return broken(at, "the vector of input %zu is %s", index,
                      numbers.kind == JSON_ARRAY ? "empty, or too long"
                                                 : json_kind_name(numbers.kind));
    double *values = arena_alloc(at->arena, count * sizeof(*values));
    if (!values) return openai_media_read_too_large(at);
    struct json_reader reader = json_enter(numbers);
    for (struct json number; json_next_item(&reader, &number); filled++) {
        if (!json_double(number, &values[filled]) || !isfinite(values[filled]))
            return broken(at, "number %zu in the vector of input %zu is not a number", filled,
                          index);
    }
    *vector = (struct media_vector){values, count};
    return true;
}

static bool read_vector(struct reading *at, size_t place, struct json item) {
    int64_t index = (int64_t)place;
    size_t wanted = at->request->input_count;
    struct json said = json_find(item, STR("index"));
    if (said.kind != JSON_NONE && !json_i64(said, &index)) index = -1;
    if (index < 0 || (uint64_t)index >= wanted)
        return broken(at, "it answered for an input that was not asked (%zu were)", wanted);
    if (at->made->vectors[index].values)
        return broken(at, "it answered twice for input %lld", (long long)index);
    return read_numbers(at, (size_t)index, json_find(item, STR("embedding")));
}

static bool read_vectors(struct reading *at) {
    struct json body;
    size_t wanted = at->request->input_count, place = 0;
    if (!read_json(at, &body)) return false;
    struct json data = json_find(body, STR("data"));
    if (json_count(data) != wanted || data.kind != JSON_ARRAY)
        return broken(at, "it answered with %zu vectors for %zu inputs",
                      data.kind == JSON_ARRAY ? json_count(data) : 0, wanted);
    at->made->vectors = arena_alloc(at->arena, wanted * sizeof(struct media_vector));
    if (!at->made->vectors) return openai_media_read_too_large(at);
    struct json_reader reader = json_enter(data);
    for (struct json item; json_next_item(&reader, &item); place++) {
        if (!read_vector(at, place, item)) return false;
    }
    for (size_t i = 1; i < wanted; i++) {
        if (at->made->vectors[i].count != at->made->vectors[0].count)
            return broken(at, "its vectors have different lengths");
    }
    at->made->vector_count = wanted;
    read_model(at, body);
    openai_media_read_read_usage(at, body);
    return true;
}

/* --- images ------------------------------------------------------------------------------- */

static const struct {
    struct str magic, type;
} kinds[] = {
    {STR_INIT("\x89PNG\r\n\x1a\n"), STR_INIT("image/png")},
    {STR_INIT("\xff\xd8\xff"), STR_INIT("image/jpeg")},
    {STR_INIT("GIF8"), STR_INIT("image/gif")},
    {STR_INIT("RIFF"), STR_INIT("image/webp")},
};

static struct str openai_media_read_type_of(struct str bytes, struct str otherwise) {
    for (size_t i = 0; i < ARRAY_LEN(kinds); i++) {
        if (str_starts(bytes, kinds[i].magic)) return kinds[i].type;
    }
    return otherwise;
}

/* The requested type, for bytes whose type cannot be recognised. png is the default. */
static struct str type_asked(const struct media_request *request) {
    struct str format = str_trim(request->format);
    if (str_equal_nocase(format, STR("jpeg"))) return STR("image/jpeg");
    if (str_equal_nocase(format, STR("webp"))) return STR("image/webp");
    return STR("image/png");
}

/* Parse "1024x768". */
static void set_size(struct str size, struct media_artifact *ret) {
    uint64_t width, height;
    struct str rest, first = str_split(size, 'x', &rest);
    if (!str_to_u64(first, &width) || !str_to_u64(rest, &height) || width > UINT16_MAX ||
        height > UINT16_MAX)
        return;
    ret->width = (int64_t)width;
    ret->height = (int64_t)height;
}

static bool read_base64(struct reading *at, struct json text, struct media_artifact *ret) {
    struct str encoded;
    size_t len;
    if (!json_str(text, at->arena, &encoded)) return openai_media_read_too_large(at);
    size_t max = base64_decoded_len(encoded.len);
    if (max > MEDIA_ARTIFACT_MAX_BYTES) return openai_media_read_too_large(at);
    char *room = arena_alloc(at->arena, max + 1);
    if (!room) return openai_media_read_too_large(at);
    if (!base64_decode(encoded, BASE64_STANDARD, BASE64_EITHER, room, &len) || len == 0)
        return broken(at, "an image of its answer is not base64");
    ret->bytes = str_of(room, len);
    ret->content_type = openai_media_read_type_of(ret->bytes, type_asked(at->request));
    return true;
}

static bool openai_media_read_read_url(struct reading *at, struct json text,
                                       struct media_artifact *ret) {
    struct str url;
    if (!json_str(text, at->arena, &url)) return openai_media_read_too_large(at);
    bool good = url.len <= URL_MAX_BYTES &&
                (str_starts(url, STR("https://")) || str_starts(url, STR("http://")));
    for (size_t i = 0; good && i < url.len; i++)
        good = (unsigned char)url.at[i] > ' ' && url.at[i] != 0x7f;
    if (!good) return broken(at, "an image of its answer has no address that can be asked");
    ret->uri = url;
    ret->content_type = type_asked(at->request);
    return true;
}

static bool read_image(struct reading *at, struct json item, struct media_artifact *ret) {
    struct json encoded = json_find(item, STR("b64_json")), url = json_find(item, STR("url"));
    *ret = (struct media_artifact){
        .content_type = STR_EMPTY, .bytes = STR_EMPTY, .uri = STR_EMPTY};
    set_size(str_trim(at->request->size), ret);
    if (encoded.kind == JSON_STRING) return read_base64(at, encoded, ret);
    if (url.kind == JSON_STRING) return openai_media_read_read_url(at, url, ret);
    return broken(at, "an image of its answer has neither bytes nor an address");
}

static bool read_images(struct reading *at) {
    struct json body;
    size_t filled = 0;
    size_t wanted = at->request->count > 0 ? (size_t)at->request->count : 1;
    if (!read_json(at, &body)) return false;
    struct json data = json_find(body, STR("data"));
    size_t count = data.kind == JSON_ARRAY ? json_count(data) : 0;
    if (count == 0 || count > wanted)
        return broken(at, "it answered with %zu images; %zu were asked for", count, wanted);
    at->made->artifacts = arena_alloc(at->arena, count * sizeof(struct media_artifact));
    if (!at->made->artifacts) return openai_media_read_too_large(at);
    struct json_reader reader = json_enter(data);
    for (struct json item; json_next_item(&reader, &item); filled++) {
        if (!read_image(at, item, &at->made->artifacts[filled])) return false;
    }
    at->made->artifact_count = count;
    read_model(at, body);
    openai_media_read_read_usage(at, body);
    return true;
}

/* --- transcripts -------------------------------------------------------------------------- */

static bool read_transcript(struct reading *at) {
    struct json body;
    if (!read_json(at, &body)) return false;
    struct json text = json_find(body, STR("text"));
    if (text.kind != JSON_STRING) return broken(at, "its answer holds no text");
    if (!json_str(text, at->arena, &at->made->text)) return openai_media_read_too_large(at);
    openai_media_read_read_usage(at, body);
    return true;
}

bool openai_media_read(const struct media_request *request, struct str type, struct str body,
                       struct arena *arena, struct media_made *ret,
                       struct reply_failure *ret_failure) {
    struct reading at = {request, type, body, arena, ret, ret_failure};
    switch (request->task) {
    case MEDIA_SPEECH: return read_sound(&at);
    case MEDIA_EMBEDDING: return read_vectors(&at);
    case MEDIA_IMAGE: return read_images(&at);
    default: return read_transcript(&at);
    }
}
