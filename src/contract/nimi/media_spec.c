#include "contract/nimi/media_spec.h"

#define IMAGES_MAX 16
#define SPEAKERS_MAX 32

/* --- limits ------------------------------------------------------------------------------- */

/* 0 means not set. NaN is outside every range. */
static bool is_within(double value, double low, double high) {
    return value >= low && value <= high;
}

static bool numbers_are_fine(const struct nimi_speech_synthesize_scenario_spec *spec,
                             struct fault *fault) {
    const struct {
        const char *name;
        double value, low, high;
    } limits[] = {
        {"sample_rate_hz", spec->sample_rate_hz, 0, 192000},
        {"speed", (double)spec->speed, 0, 4},
        {"pitch", (double)spec->pitch, -24, 24},
        {"volume", (double)spec->volume, 0, 4},
    };
    for (size_t i = 0; i < ARRAY_LEN(limits); i++) {
        if (is_within(limits[i].value, limits[i].low, limits[i].high)) continue;
        return fault_set(fault, NIMI_AI_MEDIA_SPEC_INVALID,
                         "%s is %g; it must be from %g to %g, and 0 leaves it to the voice",
                         limits[i].name, limits[i].value, limits[i].low, limits[i].high);
    }
    return true;
}

/* Refuse options that we cannot honour. If they were ignored, the caller would not notice. */
static bool options_are_had(const struct nimi_speech_synthesize_scenario_spec *spec,
                            struct fault *fault) {
    const struct nimi_voice_render_hints *hints = spec->voice_render_hints;
    bool hinted = hints && (hints->stability != 0 || hints->similarity_boost != 0 ||
                            hints->style != 0 || hints->speed != 0 || hints->use_speaker_boost);
    if (str_trim(spec->emotion).len)
        return fault_set(fault, NIMI_AI_MEDIA_OPTION_UNSUPPORTED,
                         "no voice here has emotions; leave emotion empty");
    if (spec->timing_mode > NIMI_SPEECH_TIMING_MODE_NONE || spec->timing_mode < 0)
        return fault_set(fault, NIMI_AI_MEDIA_OPTION_UNSUPPORTED,
                         "no voice here tells when it says what; leave timing_mode unset");
    return !hinted || fault_set(fault, NIMI_AI_MEDIA_OPTION_UNSUPPORTED,
                                "no voice here takes voice_render_hints; speed, pitch and "
                                "volume stand in the spec itself");
}

/* --- the voice ---------------------------------------------------------------------------- */

/* The kind that belongs to each arm of the reference. A kind of 0 is not set. */
static const struct {
    int kind;
    const char *name;
} arms[] = {
    [NIMI_VOICE_REFERENCE_PRESET_VOICE_ID] = {NIMI_VOICE_REFERENCE_KIND_PRESET,
                                              "preset_voice_id"},
    [NIMI_VOICE_REFERENCE_VOICE_ASSET_ID] = {NIMI_VOICE_REFERENCE_KIND_VOICE_ASSET,
                                             "voice_asset_id"},
    [NIMI_VOICE_REFERENCE_PROVIDER_VOICE_REF] = {NIMI_VOICE_REFERENCE_KIND_PROVIDER_VOICE_REF,
                                                 "provider_voice_ref"},
};

static bool is_preset(struct media *media, struct str model, struct str voice) {
    size_t count = 0;
    const struct media_voice *voices =
        media->kind->voices ? media->kind->voices(media, model, &count) : NULL;
    if (!voices || count == 0) return true; /* its voices are not known */
    for (size_t i = 0; i < count; i++) {
        if (str_equal(voices[i].id, voice)) return true;
    }
    return false;
}

static bool find_voice(const struct nimi_voice_reference *reference, struct media *media,
                       struct str model, struct str *ret, struct fault *fault) {
    *ret = STR_EMPTY;
    if (!reference || (reference->which_reference == 0 && reference->kind == 0)) return true;
    int arm = reference->which_reference;
    if (arm == 0 || (reference->kind && reference->kind != arms[arm].kind))
        return fault_set(fault, NIMI_AI_VOICE_INPUT_INVALID,
                         "the kind of voice_ref and the reference in it do not go together");
    struct str voice = str_trim(reference->preset_voice_id); /* every arm is a string */
    if (voice.len == 0)
        return fault_set(fault, NIMI_AI_VOICE_INPUT_INVALID, "the voice's %s is empty",
                         arms[arm].name);
    if (arm == NIMI_VOICE_REFERENCE_VOICE_ASSET_ID)
        return fault_set(fault, NIMI_AI_VOICE_ASSET_NOT_FOUND,
                         "there is no voice asset '" STR_FMT "': no voices are made here",
                         STR_ARG(str_head(voice, 80)));
    if (arm == NIMI_VOICE_REFERENCE_PRESET_VOICE_ID && !is_preset(media, model, voice))
        return fault_set(fault, NIMI_AI_VOICE_INPUT_INVALID,
                         "this model has no voice '" STR_FMT "'; ListPresetVoices names them",
                         STR_ARG(str_head(voice, 80)));
    *ret = voice;
    return true;
}

/* --- requests ----------------------------------------------------------------------------- */

/* The reason code for a refusal by media_check(). */
static int reason_of_check(enum err_code code) {
    switch (code) {
    case ERR_UNAVAILABLE: return NIMI_AI_LOCAL_MODEL_UNAVAILABLE; /* not installed */
    case ERR_TOO_LARGE: return NIMI_AI_INPUT_INVALID;
    default: return NIMI_AI_MEDIA_OPTION_UNSUPPORTED;
    }
}

/* Check the model first, without options: if it is not found then, it is a model of another
 * kind. */
static bool media_takes_it(struct media *media, const struct media_request *request,
                           struct fault *fault) {
    const struct media_request bare = {.task = request->task,
                                       .model = request->model,
                                       .text = request->text,
                                       .inputs = request->inputs,
                                       .input_count = request->input_count};
    struct err e;
    if (!media_check(media, &bare, &e) && e.code == ERR_NOT_FOUND)
        return fault_set(fault, NIMI_AI_MODALITY_NOT_SUPPORTED, "%s", e.text);
    return media_check(media, request, &e) ||
           fault_set(fault, reason_of_check(e.code), "%s", e.text);
}

bool media_spec_speech(const struct nimi_speech_synthesize_scenario_spec *spec,
                       struct media *media, struct str model, struct media_request *ret,
                       struct fault *fault) {
    struct str voice;
    if (!numbers_are_fine(spec, fault) || !options_are_had(spec, fault) ||
        !find_voice(spec->voice_ref, media, model, &voice, fault))
        return false;
    *ret = (struct media_request){.task = MEDIA_SPEECH,
                                  .model = model,
                                  .text = spec->text,
                                  .language = str_trim(spec->language),
                                  .voice = voice,
                                  .format = str_trim(spec->audio_format),
                                  .sample_rate_hz = spec->sample_rate_hz,
                                  .speed = (double)spec->speed,
                                  .pitch = (double)spec->pitch,
                                  .volume = (double)spec->volume};
    return media_takes_it(media, ret, fault);
}

bool media_spec_embedding(const struct nimi_text_embed_scenario_spec *spec, struct media *media,
                          struct str model, struct media_request *ret, struct fault *fault) {
    *ret = (struct media_request){.task = MEDIA_EMBEDDING,
                                  .model = model,
                                  .inputs = spec->inputs,
                                  .input_count = spec->inputs_count};
    return media_takes_it(media, ret, fault);
}

/* --- pictures ----------------------------------------------------------------------------- */

static bool unsupported(struct fault *fault, const char *why) {
    return fault_set(fault, NIMI_AI_MEDIA_OPTION_UNSUPPORTED, "%s", why);
}

static bool image_options_are_had(const struct nimi_image_generate_scenario_spec *spec,
                                  struct fault *fault) {
    if (spec->reference_images_count || spec->mask.len)
        return unsupported(fault, "no media here takes reference images or a mask");
    if (spec->seed) return unsupported(fault, "no media here takes a seed; leave it unset");
    if (str_trim(spec->aspect_ratio).len)
        return unsupported(fault, "no media here takes an aspect_ratio; ask for a size");
    return true;
}

bool media_spec_image(const struct nimi_image_generate_scenario_spec *spec, struct media *media,
                      struct str model, struct media_request *ret, struct fault *fault) {
    if (str_trim(spec->prompt).len == 0)
        return fault_set(fault, NIMI_AI_MEDIA_SPEC_INVALID, "there is no prompt to draw from");
    if (spec->n < 0 || spec->n > IMAGES_MAX)
        return fault_set(fault, NIMI_AI_MEDIA_SPEC_INVALID,
                         "n is %d; it must be from 0 to %d, and 0 is one picture", (int)spec->n,
                         IMAGES_MAX);
    if (!image_options_are_had(spec, fault)) return false;
    *ret = (struct media_request){.task = MEDIA_IMAGE,
                                  .model = model,
                                  .text = spec->prompt,
                                  .count = spec->n,
                                  .size = str_trim(spec->size),
                                  .quality = str_trim(spec->quality),
                                  .style = str_trim(spec->style),
                                  .negative = spec->negative_prompt};
    return media_takes_it(media, ret, fault);
}

/* --- transcripts -------------------------------------------------------------------------- */

static bool join_chunks(const struct nimi_audio_chunks *from, struct arena *arena,
                        struct str *ret, struct fault *fault) {
    size_t len = 0;
    for (size_t i = 0; i < from->chunks_count; i++) len += from->chunks[i].len;
    char *bytes = arena_alloc(arena, len + 1), *at = bytes;
    if (!bytes)
        return fault_set(fault, NIMI_AI_INPUT_INVALID,
                         "the sound is longer than a call may hold");
    for (size_t i = 0; i < from->chunks_count; i++) {
        if (from->chunks[i].len) memcpy(at, from->chunks[i].at, from->chunks[i].len);
        at += from->chunks[i].len;
    }
    *ret = str_of(bytes, len);
    return true;
}

/* URLs are not fetched: otherwise callers could make this machine connect to any address. */
static bool find_sound(const struct nimi_speech_transcription_audio_source *source,
                       struct arena *arena, struct str *ret, struct fault *fault) {
    *ret = STR_EMPTY;
    switch (source ? source->which_source : 0) {
    case NIMI_SPEECH_TRANSCRIPTION_AUDIO_SOURCE_AUDIO_BYTES: *ret = source->audio_bytes; break;
    case NIMI_SPEECH_TRANSCRIPTION_AUDIO_SOURCE_AUDIO_URI:
        return unsupported(fault, "no media here fetches an audio_uri; send the bytes");
    case NIMI_SPEECH_TRANSCRIPTION_AUDIO_SOURCE_AUDIO_CHUNKS:
        if (!join_chunks(source->audio_chunks, arena, ret, fault)) return false;
        break;
    default: break;
    }
    return ret->len || fault_set(fault, NIMI_AI_MEDIA_SPEC_INVALID,
                                 "there is no sound: audio_source needs bytes or chunks");
}

bool media_spec_transcript(const struct nimi_speech_transcribe_scenario_spec *spec,
                           struct media *media, struct str model, struct arena *arena,
                           struct media_request *ret, struct fault *fault) {
    struct str sound;
    if (spec->speaker_count < 0 || spec->speaker_count > SPEAKERS_MAX)
        return fault_set(fault, NIMI_AI_MEDIA_SPEC_INVALID,
                         "speaker_count is %d; it must be from 0 to %d",
                         (int)spec->speaker_count, SPEAKERS_MAX);
    if (!find_sound(spec->audio_source, arena, &sound, fault)) return false;
    if (spec->timestamps || spec->diarization)
        return unsupported(fault, "no media here tells when, or by whom, something is said");
    *ret = (struct media_request){.task = MEDIA_TRANSCRIPT,
                                  .model = model,
                                  .text = spec->prompt,
                                  .language = str_trim(spec->language),
                                  .bytes = sound,
                                  .content_type = str_trim(spec->mime_type)};
    return media_takes_it(media, ret, fault);
}

/* --- copying a request -------------------------------------------------------------------- */

static bool keep_inputs(struct media_request *request, struct arena *arena) {
    struct str *inputs = arena_alloc(arena, (request->input_count + 1) * sizeof(struct str));
    if (!inputs) return false;
    for (size_t i = 0; i < request->input_count; i++) {
        if (!arena_str(arena, request->inputs[i], &inputs[i])) return false;
    }
    request->inputs = inputs;
    return true;
}

bool media_spec_keep(struct media_request *request, struct arena *arena, struct fault *fault) {
    struct str *const texts[] = {&request->model,        &request->text,    &request->language,
                                 &request->voice,        &request->format,  &request->bytes,
                                 &request->content_type, &request->size,    &request->quality,
                                 &request->style,        &request->negative};
    bool kept = keep_inputs(request, arena);
    for (size_t i = 0; i < ARRAY_LEN(texts) && kept; i++)
        kept = arena_str(arena, *texts[i], texts[i]);
    return kept || fault_set(fault, NIMI_AI_INPUT_INVALID,
                             "the request is longer than a call may hold");
}
