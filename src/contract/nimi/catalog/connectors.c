/* The connectors, and the models of one. */
#include "contract/nimi/catalog/catalog.h"

#include "contract/nimi/asset.h"
#include "contract/nimi/endpoint.h"
#include "contract/nimi/offered.h"
#include "contract/nimi/page.h"
#include "proto/nimi_connector.pb.h"

#include <stdio.h>

/* --- one connector ------------------------------------------------------------------------ */

static int category_of(const struct nimi_connector *from) {
    if (!from->local) return NIMI_WIRE_LOCAL_CONNECTOR_CATEGORY_UNSPECIFIED;
    if (from->provider) return NIMI_WIRE_LOCAL_CONNECTOR_CATEGORY_LLM;
    return media_can(from->media, MEDIA_SPEECH) ? NIMI_WIRE_LOCAL_CONNECTOR_CATEGORY_TTS
                                                : NIMI_WIRE_LOCAL_CONNECTOR_CATEGORY_CUSTOM;
}

/* The settings do not say when a connector was made, so both times are 0. */
static struct nimi_wire_connector connectors_describe(const struct nimi_connector *from) {
    return (struct nimi_wire_connector){
        .connector_id = from->id,
        .kind = from->local ? NIMI_WIRE_CONNECTOR_KIND_LOCAL_MODEL
                            : NIMI_WIRE_CONNECTOR_KIND_REMOTE_MANAGED,
        .owner_type = from->owner.len ? NIMI_WIRE_CONNECTOR_OWNER_TYPE_REALM_USER
                                      : NIMI_WIRE_CONNECTOR_OWNER_TYPE_SYSTEM,
        .owner_id = from->owner,
        .provider = from->vendor,
        .endpoint = endpoint_shown(from->endpoint),
        .label = from->id,
        .status = from->enabled ? NIMI_WIRE_CONNECTOR_STATUS_ACTIVE
                                : NIMI_WIRE_CONNECTOR_STATUS_DISABLED,
        .local_category = category_of(from),
        .has_credential = from->has_credential};
}

/* Another owner's connector looks absent. Sends the refusal itself. */
static const struct nimi_connector *find_or_refuse(struct nimi_call *call, struct str id,
                                                   struct str subject) {
    const struct nimi_connector *connector =
        offered_find(call->instance->settings, str_trim(id));
    if (connector && offered_to(connector, subject)) return connector;
    if (str_trim(id).len) {
        nimi_refuse_for(call, NIMI_AI_CONNECTOR_NOT_FOUND,
                        "there is no connector '" STR_FMT "'", STR_ARG(str_head(id, 80)));
    } else {
        nimi_refuse_for(call, NIMI_AI_CONNECTOR_ID_REQUIRED,
                        "the request needs a connector_id");
    }
    return NULL;
}

void catalog_get_connector(struct nimi_call *call, const void *request) {
    const struct nimi_wire_get_connector_request *from = request;
    const struct nimi_connector *found =
        find_or_refuse(call, from->connector_id, from->owner_id);
    if (!found) return;
    const struct nimi_wire_connector connector = connectors_describe(found);
    nimi_reply(call, &nimi_wire_get_connector_response_table,
               &(struct nimi_wire_get_connector_response){.connector = &connector});
}

/* --- all of them -------------------------------------------------------------------------- */

static bool connectors_is_wanted(const struct nimi_wire_connector *connector,
                                 const struct nimi_wire_list_connectors_request *from) {
    return (!from->kind_filter || from->kind_filter == connector->kind) &&
           (!from->status_filter || from->status_filter == connector->status) &&
           (!from->provider_filter.len ||
            str_equal(from->provider_filter, connector->provider));
}

void catalog_list_connectors(struct nimi_call *call, const void *request) {
    const struct nimi_wire_list_connectors_request *from = request;
    const struct nimi_settings *settings = call->instance->settings;
    struct nimi_wire_connector connectors[PAGE_SIZE_MAX];
    struct nimi_wire_list_connectors_response said = {.connectors = connectors};
    char kinds[32], token[PAGE_TOKEN_MAX_BYTES];
    struct buf next = {.at = token, .room = sizeof(token), .max_bytes = sizeof(token)};
    struct page page;
    struct fault fault;
    size_t first;
    snprintf(kinds, sizeof(kinds), "%d %d", from->kind_filter, from->status_filter);
    const struct str filter[] = {call->row->path, from->owner_id, str_from(kinds),
                                 from->provider_filter};
    if (!page_begin(from->page_size, from->page_token, filter, ARRAY_LEN(filter), &page,
                    &fault) ||
        !page_index(&page, &first, &fault)) {
        nimi_refuse(call, &fault);
        return;
    }
    for (size_t i = first; i < settings->connector_count; i++) {
        const struct nimi_wire_connector connector =
            connectors_describe(&settings->connectors[i]);
        if (!offered_to(&settings->connectors[i], from->owner_id) ||
            !connectors_is_wanted(&connector, from))
            continue;
        if (said.connectors_count == page.size) {
            page_next_index(&page, i, &next);
            break;
        }
        connectors[said.connectors_count++] = connector;
    }
    said.next_page_token = buf_str(&next);
    nimi_reply(call, &nimi_wire_list_connectors_response_table, &said);
}

/* --- its models --------------------------------------------------------------------------- */

void catalog_list_connector_models(struct nimi_call *call, const void *request) {
    const struct nimi_wire_list_connector_models_request *from = request;
    const struct nimi_connector *connector =
        find_or_refuse(call, from->connector_id, from->owner_id);
    struct offered_health health;
    if (!connector) return;
    size_t count = connector->offered_count;
    struct nimi_wire_connector_model_descriptor *models =
        arena_alloc(call->arena, (count + 1) * sizeof(*models));
    if (!models) {
        nimi_end(call, ERR_RESOURCE_EXHAUSTED, STR("these are too many models for one reply"));
        return;
    }
    offered_look(call, &health);
    for (size_t i = 0; i < count; i++) {
        const struct offered *offered[OFFERED_MAX];
        struct str model = connector->offered[i];
        size_t can = offered_by(connector, model, offered);
        models[i] = (struct nimi_wire_connector_model_descriptor){
            .model_id = model,
            .model_label = model,
            .available = !offered_trouble(connector, &health)};
        models[i].capabilities_count =
            asset_capabilities(offered, can, call->arena, &models[i].capabilities);
    }
    nimi_reply(call, &nimi_wire_list_connector_models_response_table,
               &(struct nimi_wire_list_connector_models_response){.models = models,
                                                                  .models_count = count});
}
