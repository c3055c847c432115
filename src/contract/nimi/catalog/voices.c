/* The voices that a model can speak with are those of the media interface of its connector. A
 * model that cannot speak has none. The headers give their number, their source and the version
 * of the list, which changes when a voice is added or removed. */
#include "contract/nimi/catalog/catalog.h"

#include "contract/nimi/admit.h"

#include <stdio.h>

/* Find the model whose voices are listed. Without a connector it is a local model. */
static bool find_model(const struct nimi_call *call,
                       const struct nimi_list_preset_voices_request *from,
                       struct admission *ret, struct fault *fault) {
    bool remote = str_trim(from->connector_id).len > 0;
    const struct nimi_scenario_request_head head = {
        .app_id = from->app_id,
        .subject_user_id = from->subject_user_id,
        .model_id = from->target_model_id.len ? from->target_model_id : from->model_id,
        .connector_id = from->connector_id,
        .route_policy = remote ? NIMI_ROUTE_POLICY_CLOUD : NIMI_ROUTE_POLICY_LOCAL};
    return admit_model(call->instance->settings, &call->envelope, &head,
                       NIMI_SCENARIO_TYPE_SPEECH_SYNTHESIZE, ret, fault);
}

static const struct media_voice *voices_of(struct media *media, struct str model,
                                           size_t *ret_count) {
    *ret_count = 0;
    if (!media_can(media, MEDIA_SPEECH) || !media->kind->voices) return NULL;
    return media->kind->voices(media, model, ret_count);
}

/* --- describing a voice ------------------------------------------------------------------- */

static struct nimi_voice_preset_descriptor voices_describe(const struct media_voice *voice,
                                                           struct arena *arena) {
    struct nimi_voice_preset_descriptor said = {
        .voice_id = voice->id,
        .name = voice->name.len ? voice->name : voice->id,
        .lang = voice->language,
        .supported_langs = &voice->language,
        .supported_langs_count = voice->language.len ? 1 : 0,
        .category = STR("preset"),
        .preview_audio_uri = STR_EMPTY};
    struct nimi_voice_preset_descriptor_labels_entry *label =
        voice->gender.len ? arena_alloc(arena, sizeof(*label)) : NULL;
    if (!label) return said;
    *label = (struct nimi_voice_preset_descriptor_labels_entry){STR("gender"), voice->gender};
    said.labels = label;
    said.labels_count = 1;
    return said;
}

/* A hash (FNV-1a) of all ids. */
static uint64_t version_of(const struct media_voice *voices, size_t count) {
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < voices[i].id.len; k++)
            hash = (hash ^ (unsigned char)voices[i].id.at[k]) * UINT64_C(0x100000001b3);
        hash = (hash ^ 0xff) * UINT64_C(0x100000001b3); /* separator, never in UTF-8 */
    }
    return hash;
}

static void say_headers(struct nimi_call *call, const struct nimi_connector *connector,
                        const struct media_voice *voices, size_t count) {
    char text[32];
    struct str source = connector->media ? str_from(connector->media->kind->name) : STR("none");
    snprintf(text, sizeof(text), "%zu", count);
    rpc_header(call->rpc, STR("x-nimi-voice-count"), str_from(text));
    rpc_header(call->rpc, STR("x-nimi-voice-catalog-source"), source);
    snprintf(text, sizeof(text), "%016llx", (unsigned long long)version_of(voices, count));
    rpc_header(call->rpc, STR("x-nimi-voice-catalog-version"), str_from(text));
}

void catalog_list_voices(struct nimi_call *call, const void *request) {
    struct admission found;
    struct fault fault;
    size_t count;
    if (!find_model(call, request, &found, &fault)) {
        nimi_refuse(call, &fault);
        return;
    }
    const struct media_voice *voices = voices_of(found.connector->media, found.model, &count);
    struct nimi_voice_preset_descriptor *said =
        arena_alloc(call->arena, (count + 1) * sizeof(*said));
    if (!said) {
        nimi_end(call, ERR_RESOURCE_EXHAUSTED, STR("these are too many voices for one reply"));
        return;
    }
    for (size_t i = 0; i < count; i++) said[i] = voices_describe(&voices[i], call->arena);
    say_headers(call, found.connector, voices, count);
    nimi_reply(call, &nimi_list_preset_voices_response_table,
               &(struct nimi_list_preset_voices_response){.voices = said,
                                                          .voices_count = count,
                                                          .model_resolved = found.model,
                                                          .trace_id = nimi_trace(call)});
}
