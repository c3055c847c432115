#include "contract/nimi/job/job_spec.h"

#include "base/utf8.h"
#include "contract/nimi/media_spec.h"

#define ASKED_MAX_BYTES 1024

/* --- readers for each type ---------------------------------------------------------------- */

/* Fill *ret from the spec. */
typedef bool read_fn(const struct nimi_scenario_spec *spec, const struct admission *admission,
                     struct arena *arena, struct job_spec *ret, struct fault *fault);

static bool job_spec_read_text(const struct nimi_scenario_spec *spec,
                               const struct admission *admission, struct arena *arena,
                               struct job_spec *ret, struct fault *fault) {
    ret->is_text = true;
    if (!prompt_build(spec->text_generate, admission->model, arena, &ret->prompt, fault))
        return false;
    ret->asked = ret->prompt.asked;
    return true;
}

static bool read_vectors(const struct nimi_scenario_spec *spec,
                         const struct admission *admission, struct arena *arena,
                         struct job_spec *ret, struct fault *fault) {
    (void)arena;
    ret->asked = spec->text_embed->inputs[0];
    return media_spec_embedding(spec->text_embed, admission->connector->media, admission->model,
                                &ret->media, fault);
}

static bool read_image(const struct nimi_scenario_spec *spec, const struct admission *admission,
                       struct arena *arena, struct job_spec *ret, struct fault *fault) {
    (void)arena;
    ret->asked = spec->image_generate->prompt;
    return media_spec_image(spec->image_generate, admission->connector->media, admission->model,
                            &ret->media, fault);
}

static bool read_speech(const struct nimi_scenario_spec *spec,
                        const struct admission *admission, struct arena *arena,
                        struct job_spec *ret, struct fault *fault) {
    (void)arena;
    ret->asked = spec->speech_synthesize->text;
    return media_spec_speech(spec->speech_synthesize, admission->connector->media,
                             admission->model, &ret->media, fault);
}

static bool read_transcript(const struct nimi_scenario_spec *spec,
                            const struct admission *admission, struct arena *arena,
                            struct job_spec *ret, struct fault *fault) {
    struct str hint = spec->speech_transcribe->prompt;
    ret->asked = hint.len ? hint : STR("(sound)");
    return media_spec_transcript(spec->speech_transcribe, admission->connector->media,
                                 admission->model, arena, &ret->media, fault);
}

/* --- the table of types ------------------------------------------------------------------- */

/* The function that reads each type, and the default time limit. */
static const struct {
    read_fn *read;
    uint64_t total_ms;
} types[] = {
    /* clang-format off */
    [NIMI_SCENARIO_TYPE_TEXT_GENERATE]     = {job_spec_read_text,       120000},
    [NIMI_SCENARIO_TYPE_TEXT_EMBED]        = {read_vectors,    120000},
    [NIMI_SCENARIO_TYPE_IMAGE_GENERATE]    = {read_image,      120000},
    [NIMI_SCENARIO_TYPE_SPEECH_SYNTHESIZE] = {read_speech,      45000},
    [NIMI_SCENARIO_TYPE_SPEECH_TRANSCRIBE] = {read_transcript,  90000},
    /* clang-format on */
};

static uint64_t total_ms_of(const struct nimi_submit_scenario_job_request *request) {
    int32_t asked_ms = request->head->timeout_ms;
    if (asked_ms <= 0) return types[request->scenario_type].total_ms;
    return asked_ms < ADMIT_TIMEOUT_MAX_MS ? (uint64_t)asked_ms : ADMIT_TIMEOUT_MAX_MS;
}

bool job_spec_read(const struct nimi_submit_scenario_job_request *request,
                   const struct admission *admission, struct arena *arena, struct job_spec *ret,
                   struct fault *fault) {
    size_t type = (size_t)request->scenario_type;
    *ret = (struct job_spec){.is_text = false};
    if (type >= ARRAY_LEN(types) || !types[type].read)
        return fault_set_code(fault, NIMI_AI_ROUTE_UNSUPPORTED, ERR_INVALID_ARGUMENT,
                              "this scenario type is not run here");
    ret->total_ms = total_ms_of(request);
    if (!types[type].read(request->spec, admission, arena, ret, fault)) return false;
    ret->media.total_ms = ret->total_ms;
    ret->asked = str_head(ret->asked, utf8_cut(ret->asked, ASKED_MAX_BYTES));
    return true;
}
