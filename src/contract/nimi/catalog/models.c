/* The models of local connectors: as assets of this machine, and as models. */
#include "contract/nimi/catalog/catalog.h"

#include "contract/nimi/admit.h"
#include "contract/nimi/asset.h"
#include "contract/nimi/offered.h"
#include "contract/nimi/page.h"

#include <stdio.h>

/* --- assets ------------------------------------------------------------------------------- */

static bool asset_is_wanted(const struct nimi_local_asset_record *asset,
                            const struct nimi_list_local_assets_request *from) {
    return (!from->status_filter || from->status_filter == asset->status) &&
           (!from->kind_filter || from->kind_filter == asset->kind) &&
           (!from->engine_filter.len || str_equal(from->engine_filter, asset->engine));
}

void catalog_list_assets(struct nimi_call *call, const void *request) {
    const struct nimi_list_local_assets_request *from = request;
    struct nimi_local_asset_record assets[PAGE_SIZE_MAX];
    struct nimi_list_local_assets_response said = {.assets = assets};
    struct offered_health health;
    struct offered_walk walk = {0, 0};
    const struct nimi_connector *connector;
    struct str model;
    char filters[32], token[PAGE_TOKEN_MAX_BYTES];
    struct buf next = {.at = token, .room = sizeof(token), .max_bytes = sizeof(token)};
    struct page page;
    struct fault fault;
    size_t first, index = 0;
    snprintf(filters, sizeof(filters), "%d %d", from->status_filter, from->kind_filter);
    const struct str filter[] = {call->row->path, str_from(filters), from->engine_filter};
    if (!page_begin(from->page_size, from->page_token, filter, ARRAY_LEN(filter), &page,
                    &fault) ||
        !page_index(&page, &first, &fault)) {
        nimi_refuse(call, &fault);
        return;
    }
    offered_look(call, &health);
    while (offered_next_local(call->instance->settings, &walk, &connector, &model)) {
        struct nimi_local_asset_record asset = asset_of(connector, model, &health, call->arena);
        if (!asset_is_wanted(&asset, from) || index++ < first) continue;
        if (said.assets_count == page.size) {
            page_next_index(&page, first + page.size, &next);
            break;
        }
        assets[said.assets_count++] = asset;
    }
    said.next_page_token = buf_str(&next);
    nimi_reply(call, &nimi_list_local_assets_response_table, &said);
}

/* --- models ------------------------------------------------------------------------------- */

static struct nimi_model_capability_profile *profile_of(const struct offered *const *offered,
                                                        size_t count, struct arena *arena) {
    struct nimi_model_capability_profile *profile = ARENA_NEW(arena, __typeof__(*profile));
    for (size_t i = 0; profile && i < count; i++) {
        switch (offered[i]->kind) {
        case NIMI_LOCAL_ASSET_KIND_CHAT:
            profile->supports_text_generate = profile->supports_text_stream = true;
            profile->supports_streaming = true;
            break;
        case NIMI_LOCAL_ASSET_KIND_EMBEDDING: profile->supports_embedding = true; break;
        case NIMI_LOCAL_ASSET_KIND_IMAGE:
            profile->supports_image_generation = profile->supports_async_media_job = true;
            break;
        case NIMI_LOCAL_ASSET_KIND_TTS:
            profile->supports_speech_synthesis = profile->supports_async_media_job = true;
            profile->supports_streaming = true;
            break;
        case NIMI_LOCAL_ASSET_KIND_STT:
            profile->supports_speech_transcription = profile->supports_async_media_job = true;
            break;
        default: break;
        }
    }
    return profile;
}

static size_t count_local(const struct nimi_settings *settings) {
    struct offered_walk walk = {0, 0};
    const struct nimi_connector *connector;
    struct str model;
    size_t count = 0;
    while (offered_next_local(settings, &walk, &connector, &model)) count++;
    return count;
}

void catalog_list_models(struct nimi_call *call, const void *request) {
    const struct nimi_settings *settings = call->instance->settings;
    struct offered_walk walk = {0, 0};
    const struct nimi_connector *connector;
    struct str model;
    size_t room = count_local(settings), count = 0;
    struct nimi_model_descriptor *models =
        arena_alloc(call->arena, (room + 1) * sizeof(*models));
    (void)request;
    if (!models) {
        nimi_end(call, ERR_RESOURCE_EXHAUSTED, STR("these are too many models for one reply"));
        return;
    }
    while (offered_next_local(settings, &walk, &connector, &model)) {
        const struct offered *offered[OFFERED_MAX];
        size_t offered_count = offered_by(connector, model, offered);
        models[count] = (struct nimi_model_descriptor){
            .model_id = asset_id(model, call->arena),
            .status = NIMI_MODEL_STATUS_INSTALLED,
            .capability_profile = profile_of(offered, offered_count, call->arena)};
        models[count].capabilities_count = asset_capabilities(
            offered, offered_count, call->arena, &models[count].capabilities);
        count++;
    }
    nimi_reply(call, &nimi_list_models_response_table,
               &(struct nimi_list_models_response){.models = models, .models_count = count});
}

/* A model counts under its own name and as "local/NAME". */
void catalog_check_model(struct nimi_call *call, const void *request) {
    const struct nimi_check_model_health_request *from = request;
    struct nimi_check_model_health_response said = {
        .reason_code = NIMI_AI_MODEL_NOT_FOUND,
        .action_hint = STR("ListModels says which models there are")};
    struct offered_walk walk = {0, 0};
    const struct nimi_connector *connector;
    struct offered_health health;
    struct str name = str_trim(from->model_id), model;
    if (str_starts(name, STR("local/"))) name = str_skip(name, STR("local/").len);
    offered_look(call, &health);
    while (offered_next_local(call->instance->settings, &walk, &connector, &model)) {
        if (!str_equal(model, name)) continue;
        int trouble = offered_trouble(connector, &health);
        said = (struct nimi_check_model_health_response){
            .healthy = !trouble,
            .reason_code = trouble ? trouble : NIMI_ACTION_EXECUTED,
            .action_hint =
                trouble ? STR("see ListAIProviderHealth, or ask the operator") : STR_EMPTY};
        if (said.healthy) break;
    }
    nimi_reply(call, &nimi_check_model_health_response_table, &said);
}
