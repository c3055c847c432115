#include "contract/nimi/settings.h"

#include "base/mem.h"
#include "contract/nimi/options.h"
#include "daemon/daemon.h"
#include "daemon/team.h"
#include "provider/dialect.h"
#include "provider/media_local.h"

#include <stdlib.h>

#define FIRST_PACKET_MS 60000
#define IDLE_MS 30000
#define TEXT_TOTAL_MS 120000
#define SPEECH_TOTAL_MS 45000
#define EMBEDDING_TOTAL_MS 20000

static bool has_credential(const struct config_provider *provider) {
    return provider->key.len || provider->key_source.len || !provider->key_name.len;
}

/* The base URL of a provider; empty when it is not a server. */
static struct str address_of(const struct config_provider *provider) {
    const struct dialect *dialect = dialect_find(provider->kind);
    if (provider->base_url.len || !dialect || !dialect->base_url) return provider->base_url;
    return str_from(dialect->base_url);
}

static struct media *media_at(const struct team *team, size_t i) {
    return i < team->media_count ? team->media[i] : NULL; /* NULL: not started */
}

static struct nimi_connector connector_of(const struct config *config, size_t i,
                                          const struct team *team) {
    const struct config_connector *from = &config->connectors[i];
    struct nimi_connector connector = {.id = from->id,
                                       .media = media_at(team, i),
                                       .owner = from->owner,
                                       .endpoint = STR_EMPTY,
                                       .probe_url = STR_EMPTY,
                                       .local = from->local,
                                       .enabled = from->enabled,
                                       .has_credential = true,
                                       .models = from->models,
                                       .model_count = from->model_count};
    connector.vendor = STR("local");
    if (from->builtin) return connector;
    connector.vendor = from->provider->kind;
    connector.provider = team->providers[from->provider - config->providers];
    connector.live = team->live && i < team->media_count ? team->live[i] : NULL;
    connector.endpoint = from->provider->base_url;
    connector.probe_url = address_of(from->provider);
    connector.has_credential = has_credential(from->provider);
    return connector;
}

/* A connector for the first agent's provider. A script answers for any model name, other
 * providers only for the agent's model. */
static struct nimi_connector first_agents(const struct team *team) {
    const struct agent *agent = &team->agents[0];
    bool scripted = str_equal(str_from(agent->provider->kind->name), STR("scripted"));
    return (struct nimi_connector){.id = STR("local"),
                                   .vendor = str_from(agent->provider->kind->name),
                                   .provider = agent->provider,
                                   .local = true,
                                   .enabled = true,
                                   .has_credential = true,
                                   .models = &agent->model,
                                   .model_count = scripted ? 0 : 1};
}

static struct nimi_connector this_machines(const struct team *team) {
    static const struct str models[] = {STR_INIT(LOCAL_SPEECH_MODEL),
                                        STR_INIT(LOCAL_EMBEDDING_MODEL)};
    return (struct nimi_connector){.id = STR("builtin"),
                                   .vendor = STR("local"),
                                   .media = media_at(team, 0),
                                   .local = true,
                                   .enabled = true,
                                   .has_credential = true,
                                   .models = models,
                                   .model_count = ARRAY_LEN(models)};
}

/* --- what callers see --------------------------------------------------------------------- */

static bool is_among(struct str name, const struct str *names, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (str_equal(names[i], name)) return true;
    }
    return false;
}

/* A connector that lists no models has the ones that agents use of its provider. */
static void offer(struct nimi_connector *connector, const struct team *team,
                  struct arena *arena) {
    connector->offered = connector->models;
    connector->offered_count = connector->model_count;
    if (connector->model_count || !connector->provider) return;
    struct str *names = arena_alloc(arena, team->agent_count * sizeof(*names));
    size_t count = 0;
    for (size_t i = 0; names && i < team->agent_count; i++) {
        const struct agent *agent = &team->agents[i];
        if (agent->provider == connector->provider && agent->model.len &&
            !is_among(agent->model, names, count))
            names[count++] = agent->model;
    }
    connector->offered = names;
    connector->offered_count = count;
}

void nimi_settings_init(struct nimi_settings *ret, const struct config *config,
                        const struct team *team) {
    size_t count = config->connector_count;
    struct nimi_connector *connectors = mem_zero(count + 2, sizeof(struct nimi_connector));
    for (size_t i = 0; i < count; i++) connectors[i] = connector_of(config, i, team);
    if (!config->connector_count) {
        connectors[count++] = first_agents(team);
        connectors[count++] = this_machines(team);
    }
    struct arena *arena = arena_new(MIB);
    for (size_t i = 0; i < count; i++) offer(&connectors[i], team, arena);
    *ret =
        (struct nimi_settings){.connectors = connectors,
                               .connector_count = count,
                               .arena = arena,
                               .allow_loopback = nimi_options(config)->allow_loopback,
                               .version = STR(WEIR_VERSION),
                               .message_max_bytes = config->limits.message_bytes,
                               .stall_ms = config->limits.server.write_stall_ms,
                               .shutdown_ms = config->limits.shutdown_ms,
                               .probe_ms = nimi_options(config)->probe_ms,
                               .transfer_silence_ms = nimi_options(config)->transfer_silence_ms,
                               .realtime_idle_ms = nimi_options(config)->realtime_idle_ms,
                               .keys_kept_ms = config->limits.idempotency_ms,
                               .text = {FIRST_PACKET_MS, IDLE_MS, TEXT_TOTAL_MS},
                               .speech = {FIRST_PACKET_MS, IDLE_MS, SPEECH_TOTAL_MS},
                               .embedding = {FIRST_PACKET_MS, IDLE_MS, EMBEDDING_TOTAL_MS}};
}

bool nimi_settings_trust(struct nimi_settings *settings, const struct config *config,
                         struct err *e) {
    const struct nimi_options *options = nimi_options(config);
    struct issuer_from from[ISSUERS_MAX];
    size_t count = config->issuer_count < ISSUERS_MAX ? config->issuer_count : ISSUERS_MAX;
    settings->require_token = options->require_token;
    if (count == 0) return true;
    for (size_t i = 0; i < count; i++) {
        const struct config_issuer *issuer = &config->issuers[i];
        from[i] =
            (struct issuer_from){issuer->name, issuer->audience, issuer->url, issuer->keys};
    }
    return issuers_new(
        &(struct issuers_options){.issuers = from,
                                  .count = count,
                                  .skew_s = (int64_t)options->token_skew_ms / 1000,
                                  .refresh_ms = options->keys_refresh_ms,
                                  .pause_ms = options->keys_pause_ms},
        &settings->issuers, e);
}

void nimi_settings_done(struct nimi_settings *settings) {
    issuers_unref(settings->issuers);
    arena_free(settings->arena);
    free(settings->connectors);
}
