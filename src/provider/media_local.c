#include "provider/media_local.h"

#include "base/mem.h"
#include "provider/hashing.h"
#include "provider/media_work.h"
#include "provider/speaker.h"
#include "wire/wave.h"

#include <stdlib.h>

/* Limit for one text after speaker_append_text(). */
#define TEXT_MAX_BYTES (16 * MIB)
#define COMPLAINT_SHOWN_BYTES 200

struct local {
    struct media base;
    char *name;
    struct speaker *speaker;
};

struct local_call {
    struct media_call base;
    struct child *child; /* NULL: not running */
    struct buf sound;    /* its output, a WAVE file */
};

static struct local_call *local_of(struct media_call *call) {
    return CONTAINER_OF(call, struct local_call, base);
}

/* --- what can be asked -------------------------------------------------------------------- */

static const struct {
    struct str name, content_type;
} formats[] = {{STR_INIT("wav"), STR_INIT("audio/wav")},
               {STR_INIT("pcm"), STR_INIT("audio/pcm")}};

/* ARRAY_LEN(formats): unknown format. */
static size_t format_of(struct str asked) {
    size_t i = 0;
    struct str format = str_trim(asked);
    if (format.len == 0) return 0;
    while (i < ARRAY_LEN(formats) && !str_equal_nocase(formats[i].name, format) &&
           !str_equal_nocase(formats[i].content_type, format))
        i++;
    return i;
}

/* The model names, with the prefix that the route of local models adds. */
static const struct {
    enum media_task task;
    struct str name, long_name;
} models[] = {
    {MEDIA_SPEECH, STR_INIT(LOCAL_SPEECH_MODEL), STR_INIT("speech/" LOCAL_SPEECH_MODEL)},
    {MEDIA_EMBEDDING, STR_INIT(LOCAL_EMBEDDING_MODEL),
     STR_INIT("local/" LOCAL_EMBEDDING_MODEL)},
};

static bool find_model(const struct media_request *request, struct str *ret, struct err *e) {
    struct str model = str_trim(request->model);
    for (size_t i = 0; i < ARRAY_LEN(models); i++) {
        if (models[i].task != request->task) continue;
        *ret = models[i].name;
        if (model.len == 0 || str_equal(model, models[i].name) ||
            str_equal(model, models[i].long_name))
            return true;
        return err_set(e, ERR_NOT_FOUND,
                       "there is no local model '" STR_FMT "' for this; ask for " STR_FMT,
                       STR_ARG(str_head(model, 80)), STR_ARG(models[i].name));
    }
    return err_set(e, ERR_INVALID_ARGUMENT,
                   "this machine's own models speak (" LOCAL_SPEECH_MODEL
                   ") and make vectors (" LOCAL_EMBEDDING_MODEL "), nothing else");
}

/* Refuse a text that is certainly too long before the caller is promised an answer. on_output()
 * finds the others while they are spoken. */
static bool fits_an_artifact(const struct media_request *request, struct err *e) {
    uint64_t rate_hz = SPEAKER_RATE_HZ;
    if (request->sample_rate_hz > SPEAKER_RATE_HZ) rate_hz = (uint64_t)request->sample_rate_hz;
    uint64_t seconds = MEDIA_ARTIFACT_MAX_BYTES / (2 * rate_hz);
    if (!speaker_outlasts(request, seconds)) return true;
    return err_set(
        e, ERR_TOO_LARGE,
        "this text lasts longer than %zu MiB of sound, which are %llu s; say less at "
        "once",
        MEDIA_ARTIFACT_MAX_BYTES / MIB, (unsigned long long)seconds);
}

static bool check_speech(struct local *local, const struct media_request *request,
                         struct speaker_order *ret, struct err *e) {
    if (str_trim(request->text).len == 0)
        return err_set(e, ERR_INVALID_ARGUMENT, "there is no text to speak");
    if (format_of(request->format) == ARRAY_LEN(formats))
        return err_set(e, ERR_INVALID_ARGUMENT,
                       "local speech is not written as '" STR_FMT "'; ask for wav or pcm",
                       STR_ARG(str_head(str_trim(request->format), 40)));
    return speaker_order(local->speaker, request, ret, e) && fits_an_artifact(request, e);
}

static bool media_local_check(struct local *local, const struct media_request *request,
                              struct speaker_order *ret, struct err *e) {
    struct str model;
    if (!find_model(request, &model, e)) return false;
    return request->task == MEDIA_SPEECH ? check_speech(local, request, ret, e)
                                         : media_work_check_inputs(request, e);
}

static bool local_check(struct media *media, const struct media_request *request,
                        struct err *e) {
    struct speaker_order order;
    return media_local_check(CONTAINER_OF(media, struct local, base), request, &order, e);
}

/* --- speaking ----------------------------------------------------------------------------- */

static void on_output(struct str bytes, void *ctx) {
    struct media_call *call = ctx;
    if (buf_append(&local_of(call)->sound, bytes)) return;
    media_work_set(call, ERR_TOO_LARGE, PROVIDER_REJECTED,
                   "this text is longer than %zu MiB of audio; send less text",
                   MEDIA_ARTIFACT_MAX_BYTES / MIB);
    media_work_fail(call);
}

static void set_broken(struct media_call *call, const struct child_end *end) {
    struct buf complaint;
    buf_init(&complaint, ERR_TEXT_BYTES);
    reply_append_safe(&complaint, str_trim(end->complaint), COMPLAINT_SHOWN_BYTES);
    media_work_set(call, ERR_INTERNAL, PROVIDER_ERROR, "espeak-ng failed (%s %d)%s" STR_FMT,
                   end->signal ? "signal" : "status",
                   end->signal ? end->signal : end->exit_code, complaint.len ? ": " : "",
                   STR_ARG(buf_str(&complaint)));
    buf_done(&complaint);
}

static void media_local_on_end(const struct child_end *end, void *ctx) {
    struct media_call *call = ctx;
    local_of(call)->child = NULL;
    if (end->exit_code == 0) {
        media_work_shape(call);
        return;
    }
    set_broken(call, end);
    media_work_fail(call);
}

static bool speak(struct local *local, struct media_call *call,
                  const struct speaker_order *order, struct err *e) {
    static const struct child_sink sink = {.on_output = on_output,
                                           .on_end = media_local_on_end};
    struct buf text;
    buf_init(&text, TEXT_MAX_BYTES);
    speaker_append_text(call->request.text, &text);
    bool started =
        buf_ok(&text)
            ? speaker_start(local->speaker, call->loop, order, buf_str(&text), &sink, call,
                            &local_of(call)->child, e)
            : err_set(e, ERR_TOO_LARGE, "the text is too long to speak in one request");
    buf_done(&text);
    return started;
}

/* --- what came, as it was asked for ------------------------------------------------------- */

static bool made_too_large(struct media_call *call) {
    return media_work_set(call, ERR_TOO_LARGE, PROVIDER_REJECTED,
                          "at this sample rate the sound is larger than %zu MiB; ask for a "
                          "lower one, or send less text",
                          MEDIA_ARTIFACT_MAX_BYTES / MIB);
}

static bool keep_sound(struct media_call *call, const struct wave *wave) {
    size_t format = format_of(call->request.format);
    struct media_artifact *made = ARENA_NEW(call->arena, struct media_artifact);
    struct buf file;
    buf_init(&file, MEDIA_ARTIFACT_MAX_BYTES);
    if (format == 0) wave_append_head(&file, wave);
    buf_append(&file, wave->samples);
    bool fits = made && buf_ok(&file);
    if (fits) {
        *made = (struct media_artifact){.content_type = formats[format].content_type,
                                        .uri = STR_EMPTY,
                                        .sample_rate_hz = wave->sample_rate_hz,
                                        .channels = wave->channels,
                                        .duration_ms = wave_duration_ms(wave)};
        fits = arena_str(call->arena, buf_str(&file), &made->bytes);
    }
    buf_done(&file);
    call->made.artifacts = made;
    call->made.artifact_count = 1;
    return fits || made_too_large(call);
}

static bool shape_speech(struct media_call *call) {
    struct err e;
    struct wave wave;
    struct buf resampled;
    if (!wave_read(buf_str(&local_of(call)->sound), &wave, &e))
        return media_work_set(call, ERR_INTERNAL, PROVIDER_BROKEN, "espeak-ng: %s", e.text);
    if (wave.channels != 1)
        return media_work_set(call, ERR_INTERNAL, PROVIDER_BROKEN,
                              "espeak-ng speaks on %u channels; one was expected",
                              wave.channels);
    if (wave.samples.len == 0)
        return media_work_set(call, ERR_INVALID_ARGUMENT, PROVIDER_REJECTED,
                              "there is nothing in this text that can be said");
    uint32_t rate_hz = (uint32_t)call->request.sample_rate_hz;
    buf_init(&resampled, MEDIA_ARTIFACT_MAX_BYTES);
    if (rate_hz && rate_hz != wave.sample_rate_hz) {
        wave_resample(&wave, rate_hz, &resampled);
        wave.sample_rate_hz = rate_hz;
        wave.samples = buf_str(&resampled);
    }
    bool fits = buf_ok(&resampled) ? keep_sound(call, &wave) : made_too_large(call);
    buf_done(&resampled);
    return fits;
}

static bool shape_vectors(struct media_call *call) {
    const struct media_request *request = &call->request;
    size_t count = request->input_count;
    struct media_vector *vectors = arena_alloc(call->arena, count * sizeof(*vectors));
    double *values = arena_alloc(call->arena, count * HASHING_DIMENSIONS * sizeof(*values));
    if (!vectors || !values)
        return media_work_set(call, ERR_TOO_LARGE, PROVIDER_REJECTED,
                              "there are too many inputs in one request");
    for (size_t i = 0; i < count; i++) {
        vectors[i] = (struct media_vector){values + i * HASHING_DIMENSIONS, HASHING_DIMENSIONS};
        if (!hashing_embed(request->inputs[i], values + i * HASHING_DIMENSIONS))
            return media_work_set(call, ERR_INVALID_ARGUMENT, PROVIDER_REJECTED,
                                  "input %zu (counted from 0) is empty", i);
    }
    call->made.vectors = vectors;
    call->made.vector_count = count;
    return true;
}

/* --- a call ------------------------------------------------------------------------------- */

static bool local_shape(struct media_call *call) {
    return call->request.task == MEDIA_SPEECH ? shape_speech(call) : shape_vectors(call);
}

static void local_stop(struct media_call *call) {
    struct child *child = local_of(call)->child;
    local_of(call)->child = NULL;
    if (child) child_kill(child);
}

static void local_late(struct media_call *call) {
    media_work_set_late(call, "espeak-ng");
}

static void local_call_free(struct media_call *call) {
    struct local_call *own = local_of(call);
    buf_done(&own->sound);
    free(own);
}

static const struct media_work_kind work = {local_shape, local_stop, local_late,
                                            local_call_free};

/* The reason for the caller's mistakes, for what is missing here, and for failures. */
static const char *reason_of(enum err_code code) {
    switch (code) {
    case ERR_UNAVAILABLE: return PROVIDER_UNREACHABLE;
    case ERR_RESOURCE_EXHAUSTED: return PROVIDER_OVERLOADED;
    default: return PROVIDER_REJECTED;
    }
}

static bool media_local_begin(struct local *local, struct media_call *call, struct err *e) {
    struct speaker_order order;
    if (!media_local_check(local, &call->request, &order, e) ||
        !find_model(&call->request, &call->made.model, e))
        return false;
    if (call->request.task == MEDIA_SPEECH) return speak(local, call, &order, e);
    media_work_shape(call);
    return true;
}

static struct media_call *local_start(struct media *media, struct loop *loop,
                                      const struct media_request *request,
                                      reply_event_fn *on_reply, void *ctx) {
    struct local *local = CONTAINER_OF(media, struct local, base);
    struct local_call *own = MEM_NEW(struct local_call);
    struct err e;
    buf_init(&own->sound, WAVE_HEAD_BYTES + MEDIA_ARTIFACT_MAX_BYTES);
    if (!media_work_init(&own->base, &work, media, loop, request, on_reply, ctx)) {
        media_work_fail_later(&own->base);
    } else if (!media_local_begin(local, &own->base, &e)) {
        own->base.failure = (struct reply_failure){.why = e, .reason = reason_of(e.code)};
        media_work_fail_later(&own->base);
    }
    return &own->base;
}

/* --- the media ---------------------------------------------------------------------------- */

static const struct media_voice *local_voices(struct media *media, struct str model,
                                              size_t *ret_count) {
    struct local *local = CONTAINER_OF(media, struct local, base);
    const struct media_request asked = {.task = MEDIA_SPEECH, .model = model};
    const struct voices *voices;
    struct str name;
    struct err e;
    *ret_count = 0;
    if (!find_model(&asked, &name, &e) || !speaker_voices(local->speaker, &voices, &e))
        return NULL;
    return voices_all(voices, ret_count);
}

static void local_free(struct media *media) {
    struct local *local = CONTAINER_OF(media, struct local, base);
    speaker_free(local->speaker);
    free(local->name);
    free(local);
}

static const struct media_kind local_kind = {
    .name = "local",
    .tasks = 1u << MEDIA_SPEECH | 1u << MEDIA_EMBEDDING,
    .start = local_start,
    .cancel = media_work_cancel,
    .voices = local_voices,
    .free = local_free,
    .check = local_check,
};

struct media *media_local_new(const struct media_local_options *options) {
    struct local *local = MEM_NEW(struct local);
    local->base.kind = &local_kind;
    local->name = str_dup(options->name);
    local->base.name = str_from(local->name);
    local->speaker = speaker_new(options->program, options->path);
    return &local->base;
}
