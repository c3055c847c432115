#include "contract/nimi/job_spec.h"

#include "base/utf8.h"

#define ASKED_MAX_BYTES 1024
#define IMAGES_MAX 16
#define SAMPLE_RATE_MAX_HZ 192000
#define SPEAKERS_MAX 32
#define INPUTS_MAX 4096

static bool out_of_range(struct fault *fault, const char *what, double low, double high) {
    return fault_set(fault, NIMI_AI_MEDIA_SPEC_INVALID, "%s must be from %g to %g", what, low,
                     high);
}

static bool within(struct fault *fault, const char *what, double value, double low,
                   double high) {
    return (value >= low && value <= high) || out_of_range(fault, what, low, high);
}

static bool needs(struct fault *fault, struct str text, const char *what) {
    return str_trim(text).len ||
           fault_set(fault, NIMI_AI_MEDIA_SPEC_INVALID, "the spec needs %s", what);
}

static bool too_large(struct fault *fault) {
    return fault_set(fault, NIMI_AI_MEDIA_SPEC_INVALID,
                     "the request is larger than a job may be");
}

static bool unsupported(struct fault *fault, const char *what) {
    return fault_set(fault, NIMI_AI_MEDIA_OPTION_UNSUPPORTED, "%s", what);
}

/* --- one type after the other ------------------------------------------------------------- */

/* Fill *ret from `spec`. */
typedef bool read_fn(const struct nimi_scenario_spec *spec, struct str model,
                     struct arena *arena, struct job_spec *ret, struct fault *fault);

static bool read_text(const struct nimi_scenario_spec *spec, struct str model,
                      struct arena *arena, struct job_spec *ret, struct fault *fault) {
    ret->is_text = true;
    if (!prompt_build(spec->text_generate, model, arena, &ret->prompt, fault)) return false;
    ret->asked = ret->prompt.asked;
    return true;
}

static bool read_embed(const struct nimi_scenario_spec *spec, struct str model,
                       struct arena *arena, struct job_spec *ret, struct fault *fault) {
    const struct nimi_text_embed_scenario_spec *from = spec->text_embed;
    (void)model, (void)arena;
    if (from->inputs_count == 0 || from->inputs_count > INPUTS_MAX)
        return fault_set(fault, NIMI_AI_INPUT_INVALID, "inputs must be 1 to %d texts",
                         INPUTS_MAX);
    for (size_t i = 0; i < from->inputs_count; i++) {
        if (!from->inputs[i].len)
            return fault_set(fault, NIMI_AI_INPUT_INVALID, "input %zu is empty", i);
    }
    ret->media.inputs = from->inputs;
    ret->media.input_count = from->inputs_count;
    ret->asked = from->inputs[0];
    return true;
}

static bool read_image(const struct nimi_scenario_spec *spec, struct str model,
                       struct arena *arena, struct job_spec *ret, struct fault *fault) {
    const struct nimi_image_generate_scenario_spec *from = spec->image_generate;
    (void)model, (void)arena;
    if (!needs(fault, from->prompt, "a prompt") || !within(fault, "n", from->n, 0, IMAGES_MAX))
        return false;
    if (from->reference_images_count || from->mask.len)
        return unsupported(fault, "reference images and masks are not taken here");
    ret->media.text = from->prompt;
    ret->media.count = from->n;
    ret->media.size = from->size;
    ret->media.quality = from->quality;
    ret->media.style = from->style;
    ret->media.negative = from->negative_prompt;
    ret->asked = from->prompt;
    return true;
}

static bool read_voice(const struct nimi_voice_reference *from, struct media_request *ret,
                       struct fault *fault) {
    if (!from || !from->which_reference) return true;
    if (from->which_reference == NIMI_VOICE_REFERENCE_VOICE_ASSET_ID)
        return unsupported(fault, "no voices are kept here; name a preset voice");
    ret->voice = from->which_reference == NIMI_VOICE_REFERENCE_PRESET_VOICE_ID
                     ? from->preset_voice_id
                     : from->provider_voice_ref;
    return true;
}

static bool read_speech(const struct nimi_scenario_spec *spec, struct str model,
                        struct arena *arena, struct job_spec *ret, struct fault *fault) {
    const struct nimi_speech_synthesize_scenario_spec *from = spec->speech_synthesize;
    struct media_request *media = &ret->media;
    (void)model, (void)arena;
    if (!str_trim(from->text).len)
        return fault_set(fault, NIMI_AI_INPUT_INVALID, "there is no text to say");
    if (!within(fault, "sample_rate_hz", from->sample_rate_hz, 0, SAMPLE_RATE_MAX_HZ) ||
        !within(fault, "speed", (double)from->speed, 0, 4) ||
        !within(fault, "pitch", (double)from->pitch, -24, 24) ||
        !within(fault, "volume", (double)from->volume, 0, 4) ||
        !read_voice(from->voice_ref, media, fault))
        return false;
    media->text = from->text;
    media->language = from->language;
    media->format = from->audio_format;
    media->sample_rate_hz = from->sample_rate_hz;
    media->speed = (double)from->speed;
    media->pitch = (double)from->pitch;
    media->volume = (double)from->volume;
    ret->asked = from->text;
    return true;
}

static bool join_chunks(const struct nimi_audio_chunks *from, struct arena *arena,
                        struct str *ret) {
    size_t len = 0;
    for (size_t i = 0; i < from->chunks_count; i++) len += from->chunks[i].len;
    char *bytes = arena_alloc(arena, len + 1), *at = bytes;
    if (!bytes) return false;
    for (size_t i = 0; i < from->chunks_count; i++) {
        if (from->chunks[i].len) memcpy(at, from->chunks[i].at, from->chunks[i].len);
        at += from->chunks[i].len;
    }
    *ret = str_of(bytes, len);
    return true;
}

static bool read_audio(const struct nimi_speech_transcription_audio_source *from,
                       struct arena *arena, struct str *ret, struct fault *fault) {
    int which = from ? from->which_source : 0;
    *ret = STR_EMPTY;
    if (which == NIMI_SPEECH_TRANSCRIPTION_AUDIO_SOURCE_AUDIO_URI)
        return unsupported(fault, "audio is not fetched from elsewhere; send its bytes");
    if (which == NIMI_SPEECH_TRANSCRIPTION_AUDIO_SOURCE_AUDIO_BYTES) *ret = from->audio_bytes;
    if (which == NIMI_SPEECH_TRANSCRIPTION_AUDIO_SOURCE_AUDIO_CHUNKS &&
        !join_chunks(from->audio_chunks, arena, ret))
        return too_large(fault);
    return ret->len || fault_set(fault, NIMI_AI_MEDIA_SPEC_INVALID, "there is no audio");
}

static bool read_transcript(const struct nimi_scenario_spec *spec, struct str model,
                            struct arena *arena, struct job_spec *ret, struct fault *fault) {
    const struct nimi_speech_transcribe_scenario_spec *from = spec->speech_transcribe;
    struct media_request *media = &ret->media;
    (void)model;
    if (!within(fault, "speaker_count", from->speaker_count, 0, SPEAKERS_MAX) ||
        !read_audio(from->audio_source, arena, &media->bytes, fault))
        return false;
    if (from->timestamps || from->diarization)
        return unsupported(fault, "transcripts here have neither timestamps nor speakers");
    media->content_type = from->mime_type;
    media->language = from->language;
    media->text = from->prompt;
    ret->asked = from->prompt.len ? from->prompt : STR("(audio)");
    return true;
}

/* --- all ---------------------------------------------------------------------------------- */

/* How a type is read, and how long it may take. */
static const struct {
    read_fn *read;
    enum media_task task;
    uint64_t total_ms;
} types[] = {
    [NIMI_SCENARIO_TYPE_TEXT_GENERATE] = {read_text, MEDIA_TASKS, 120000},
    [NIMI_SCENARIO_TYPE_TEXT_EMBED] = {read_embed, MEDIA_EMBEDDING, 120000},
    [NIMI_SCENARIO_TYPE_IMAGE_GENERATE] = {read_image, MEDIA_IMAGE, 120000},
    [NIMI_SCENARIO_TYPE_SPEECH_SYNTHESIZE] = {read_speech, MEDIA_SPEECH, 45000},
    [NIMI_SCENARIO_TYPE_SPEECH_TRANSCRIBE] = {read_transcript, MEDIA_TRANSCRIPT, 90000},
};

static uint64_t total_ms_of(const struct nimi_submit_scenario_job_request *request) {
    int32_t asked_ms = request->head->timeout_ms;
    if (asked_ms <= 0) return types[request->scenario_type].total_ms;
    return asked_ms < JOB_TIMEOUT_MAX_MS ? (uint64_t)asked_ms : JOB_TIMEOUT_MAX_MS;
}

bool job_spec_read(const struct nimi_submit_scenario_job_request *request, struct str model,
                   struct arena *arena, struct job_spec *ret, struct fault *fault) {
    size_t type = (size_t)request->scenario_type;
    *ret = (struct job_spec){.is_text = false};
    if (type >= ARRAY_LEN(types) || !types[type].read)
        return fault_set_code(fault, NIMI_AI_ROUTE_UNSUPPORTED, ERR_INVALID_ARGUMENT,
                              "no model here does what this scenario type asks for");
    ret->total_ms = total_ms_of(request);
    ret->media.task = types[type].task;
    ret->media.total_ms = ret->total_ms;
    if (!arena_str(arena, model, &ret->media.model)) return too_large(fault);
    if (!types[type].read(request->spec, model, arena, ret, fault)) return false;
    ret->asked = str_head(ret->asked, utf8_cut(ret->asked, ASKED_MAX_BYTES));
    return true;
}
