#include "daemon/team_media.h"

#include "base/mem.h"
#include "provider/media_local.h"

static struct media *this_machine(struct str name) {
    return media_local_new(&(struct media_local_options){.name = name});
}

static struct media *media_of(const struct config_connector *connector,
                              struct http_pool *pool) {
    if (!connector->enabled) return NULL;
    return connector->builtin ? this_machine(connector->id)
                              : team_media_beside(connector->provider, pool);
}

void team_make_media(struct team *team, const struct config *config, struct http_pool *pool) {
    team->media = mem_zero(config->connector_count + 1, sizeof(struct media *));
    if (!config->connector_count) team->media[team->media_count++] = this_machine(STR("local"));
    for (size_t i = 0; i < config->connector_count; i++)
        team->media[team->media_count++] = media_of(&config->connectors[i], pool);
}
