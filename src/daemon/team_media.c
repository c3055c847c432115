#include "daemon/team_media.h"

#include "base/log.h"
#include "base/mem.h"
#include "provider/live.h"
#include "provider/media_local.h"
#include "wire/websocket.h"

static struct media *this_machine(struct str name) {
    return media_local_new(&(struct media_local_options){.name = name});
}

static struct media *media_of(const struct config_connector *connector,
                              struct http_pool *pool) {
    if (!connector->enabled) return NULL;
    return connector->builtin ? this_machine(connector->id)
                              : team_media_beside(connector->provider, pool);
}

static struct live_model *live_of(const struct config_connector *connector,
                                  struct http_pool *pool) {
    bool there = connector->enabled && !connector->builtin;
    return there ? team_live_beside(connector->provider, pool) : NULL;
}

/* The library is small, and loaded here because that is off the loops. */
static void load_websocket(const struct team *team) {
    struct err e;
    for (size_t i = 0; i < team->media_count; i++) {
        if (!team->live[i]) continue;
        if (!websocket_load(&e)) log_warning("realtime models cannot be asked: %s", e.text);
        return;
    }
}

void team_make_media(struct team *team, const struct config *config, struct http_pool *pool) {
    team->media = mem_zero(config->connector_count + 1, sizeof(struct media *));
    if (!config->connector_count) team->media[team->media_count++] = this_machine(STR("local"));
    for (size_t i = 0; i < config->connector_count; i++)
        team->media[team->media_count++] = media_of(&config->connectors[i], pool);
    team->live = mem_zero(team->media_count + 1, sizeof(struct live_model *));
    for (size_t i = 0; i < config->connector_count; i++)
        team->live[i] = live_of(&config->connectors[i], pool);
    load_websocket(team);
}
