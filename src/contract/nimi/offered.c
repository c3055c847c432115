#include "contract/nimi/offered.h"

#include "proto/nimi.pb.h"
#include "provider/media_local.h"

static const struct offered text = {STR_INIT("text.generate"), STR_INIT("llama"),
                                    NIMI_LOCAL_ASSET_KIND_CHAT};

static const struct offered tasks[MEDIA_TASKS] = {
    /* clang-format off */
    [MEDIA_SPEECH]     = {STR_INIT("audio.synthesize"), STR_INIT("speech"), NIMI_LOCAL_ASSET_KIND_TTS},
    [MEDIA_EMBEDDING]  = {STR_INIT("text.embed"),       STR_INIT("llama"),  NIMI_LOCAL_ASSET_KIND_EMBEDDING},
    [MEDIA_IMAGE]      = {STR_INIT("image.generate"),   STR_INIT("media"),  NIMI_LOCAL_ASSET_KIND_IMAGE},
    [MEDIA_TRANSCRIPT] = {STR_INIT("audio.transcribe"), STR_INIT("speech"), NIMI_LOCAL_ASSET_KIND_STT},
    /* clang-format on */
};

/* This machine's own models do one task each; what a server's models do is not known, so each
 * of them is said to do all that the connector can. */
static bool does(const struct nimi_connector *connector, struct str model,
                 enum media_task task) {
    if (!media_can(connector->media, task)) return false;
    if (connector->provider) return true;
    if (str_equal(model, STR(LOCAL_SPEECH_MODEL))) return task == MEDIA_SPEECH;
    if (str_equal(model, STR(LOCAL_EMBEDDING_MODEL))) return task == MEDIA_EMBEDDING;
    return true;
}

size_t offered_by(const struct nimi_connector *connector, struct str model,
                  const struct offered *ret[OFFERED_MAX]) {
    size_t count = 0;
    if (connector->provider) ret[count++] = &text;
    for (int task = 0; task < MEDIA_TASKS; task++) {
        if (does(connector, model, (enum media_task)task)) ret[count++] = &tasks[task];
    }
    return count;
}

void offered_look(const struct nimi_call *call, struct offered_health *ret) {
    ret->count = nimi_runtime_providers(call->instance->runtime, ret->probed);
}

int offered_trouble(const struct nimi_connector *connector,
                    const struct offered_health *health) {
    if (!connector->enabled) return NIMI_AI_CONNECTOR_DISABLED;
    if (!connector->has_credential) return NIMI_AI_CONNECTOR_CREDENTIAL_MISSING;
    struct str name = connector->provider ? connector->provider->name : STR_EMPTY;
    for (size_t i = 0; i < health->count; i++) {
        if (health->probed[i].state == NIMI_PROBE_UNHEALTHY && name.len &&
            str_equal(str_from(health->probed[i].name),
                      str_head(name, NIMI_PROBED_NAME_BYTES - 1)))
            return NIMI_AI_PROVIDER_UNAVAILABLE;
    }
    return 0;
}

const struct nimi_connector *offered_find(const struct nimi_settings *settings, struct str id) {
    for (size_t i = 0; i < settings->connector_count; i++) {
        if (str_equal(settings->connectors[i].id, id)) return &settings->connectors[i];
    }
    return NULL;
}

bool offered_lists(const struct nimi_connector *connector, struct str model) {
    for (size_t i = 0; i < connector->model_count; i++) {
        if (str_equal(connector->models[i], model)) return true;
    }
    return false;
}

bool offered_next_local(const struct nimi_settings *settings, struct offered_walk *walk,
                        const struct nimi_connector **ret_connector, struct str *ret_model) {
    for (; walk->connector < settings->connector_count; walk->connector++, walk->model = 0) {
        const struct nimi_connector *connector = &settings->connectors[walk->connector];
        if (!connector->local || connector->owner.len ||
            walk->model >= connector->offered_count)
            continue;
        *ret_connector = connector;
        *ret_model = connector->offered[walk->model++];
        return true;
    }
    return false;
}
