#include "contract/nimi/asset.h"

struct str asset_id(struct str model, struct arena *arena) {
    struct str id = {arena_alloc(arena, STR("local/").len + model.len + 1), 0};
    if (!id.at) return STR_EMPTY;
    char *at = (char *)(uintptr_t)id.at;
    memcpy(at, "local/", STR("local/").len);
    if (model.len) memcpy(at + STR("local/").len, model.at, model.len);
    return str_of(id.at, STR("local/").len + model.len);
}

size_t asset_capabilities(const struct offered *const *offered, size_t count,
                          struct arena *arena, const struct str **ret) {
    struct str *names = arena_alloc(arena, (count + 1) * sizeof(*names));
    if (!names) return 0;
    for (size_t i = 0; i < count; i++) names[i] = offered[i]->name;
    *ret = names;
    return count;
}

static int asset_status_of(int trouble) {
    if (!trouble) return NIMI_LOCAL_ASSET_STATUS_ACTIVE;
    return trouble == NIMI_AI_CONNECTOR_DISABLED ? NIMI_LOCAL_ASSET_STATUS_INSTALLED
                                                 : NIMI_LOCAL_ASSET_STATUS_UNHEALTHY;
}

struct nimi_local_asset_record asset_of(const struct nimi_connector *connector,
                                        struct str model, const struct offered_health *health,
                                        struct arena *arena) {
    const struct offered *offered[OFFERED_MAX];
    size_t count = offered_by(connector, model, offered);
    int trouble = offered_trouble(connector, health);
    struct nimi_local_asset_record asset = {.asset_id = asset_id(model, arena),
                                            .status = asset_status_of(trouble),
                                            .reason_code = trouble};
    struct buf id;
    buf_init(&id, 4 * KIB);
    buf_printf(&id, STR_FMT "/" STR_FMT, STR_ARG(connector->id), STR_ARG(model));
    if (!arena_str(arena, buf_str(&id), &asset.local_asset_id)) asset.local_asset_id = model;
    buf_done(&id);
    if (count) {
        asset.kind = offered[0]->kind;
        asset.engine = offered[0]->engine;
    }
    asset.capabilities_count = asset_capabilities(offered, count, arena, &asset.capabilities);
    return asset;
}
