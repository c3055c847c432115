#include "daemon/nimi.h"

#include "base/mem.h"
#include "contract/nimi/fetch.h"
#include "daemon/daemon.h"
#include "proto/health.pb.h"
#include "proto/nimi.pb.h"
#include "provider/dialect.h"
#include "provider/media_local.h"

#include <stdio.h>
#include <stdlib.h>

#define FIRST_PACKET_MS 60000
#define IDLE_MS 30000
#define TEXT_TOTAL_MS 120000
#define SPEECH_TOTAL_MS 45000
#define EMBEDDING_TOTAL_MS 20000

/* --- a worker's share --------------------------------------------------------------------- */

static size_t reflect(struct nimi_share *share) {
    share->reflection = reflection_new();
    reflection_add(share->reflection, nimi_descriptor);
    reflection_add(share->reflection, grpc_health_descriptor);
    reflection_services(share->reflection, &share->services[NIMI_SITE_SERVICES]);
    reflection_list(share->reflection, share->services, ARRAY_LEN(share->services));
    return REFLECTION_SERVICES;
}

struct nimi_share *nimi_share_new(const struct nimi_share_options *options) {
    struct nimi_share *share = MEM_NEW(struct nimi_share);
    size_t service_count = NIMI_SITE_SERVICES;
    nimi_desk_init(&share->desk, options->settings, options->host, options->runtime);
    nimi_services(&share->desk, share->services);
    share->health = health_new();
    health_set(share->health, STR(""), HEALTH_NOT_SERVING);
    for (size_t i = 0; i < NIMI_SERVICES; i++)
        health_set(share->health, share->services[i].name, HEALTH_NOT_SERVING);
    share->services[NIMI_SITE_HEALTH] = health_service(share->health);
    if (options->reflection) service_count += reflect(share);
    share->grpc = rpc_site_new(options->loop, share->services, service_count);
    nimi_site(&share->desk, share->grpc);
    rpc_site_stall_limit(share->grpc, options->settings->stall_ms);
    nimi_health_table(&share->desk, &share->table);
    share->tables[0] = &share->table;
    share->http = route_site_new(options->loop, share->tables, ARRAY_LEN(share->tables));
    return share;
}

void nimi_share_free(struct nimi_share *share) {
    if (!share) return;
    route_site_free(share->http);
    rpc_site_free(share->grpc);
    reflection_free(share->reflection);
    health_free(share->health);
    nimi_desk_done(&share->desk);
    free(share);
}

void nimi_share_use(struct nimi_share *share, const struct nimi_settings *settings) {
    share->desk.settings = settings;
}

void nimi_share_serving(struct nimi_share *share) {
    nimi_desk_serving(&share->desk);
    nimi_share_health(share);
}

void nimi_share_health(struct nimi_share *share) {
    bool ready = nimi_runtime_state(share->desk.runtime) == LIFE_READY;
    health_set_all(share->health, ready ? HEALTH_SERVING : HEALTH_NOT_SERVING);
}

/* What only reads is still let in: the lifecycle interceptor decides. */
void nimi_share_stopping(struct nimi_share *share) {
    health_set_all(share->health, HEALTH_NOT_SERVING);
    nimi_desk_stopping(&share->desk);
    rpc_site_warn(share->grpc);
    route_site_stop(share->http);
}

void nimi_share_cut(struct nimi_share *share) {
    rpc_site_cut(share->grpc);
    route_site_cut(share->http);
}

void nimi_share_leave(struct nimi_share *share) {
    nimi_desk_leave(&share->desk);
}

/* --- where artifacts are fetched ---------------------------------------------------------- */

/* With TLS the host is what certificates name, which is how the caller came; and an address
 * that means every interface is nobody's to go to. */
static bool has_host(struct str host, bool tls) {
    return !tls && host.len && !str_equal(host, STR("0.0.0.0")) &&
           !str_equal(host, STR("[::]"));
}

void nimi_share_files(struct nimi_runtime *runtime, const struct config *config, int port) {
    struct nimi_files files = {.port = port, .tls = config->tls.cert.len > 0};
    struct str host = fetch_host(config->listen.nimi_http);
    if (port <= 0) files.port = 0;
    if (has_host(host, files.tls))
        snprintf(files.host, sizeof(files.host), STR_FMT, STR_ARG(host));
    nimi_runtime_set_files(runtime, &files);
}

/* --- settings ----------------------------------------------------------------------------- */

static bool has_credential(const struct config_provider *provider) {
    return provider->key.len || provider->key_source.len || !provider->key_name.len;
}

/* Where it is reached; empty for one that is no server. */
static struct str address_of(const struct config_provider *provider) {
    const struct dialect *dialect = dialect_find(provider->kind);
    if (provider->base_url.len || !dialect || !dialect->base_url) return provider->base_url;
    return str_from(dialect->base_url);
}

static struct media *media_at(const struct team *team, size_t i) {
    return i < team->media_count ? team->media[i] : NULL; /* of a team that is only looked at */
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
    if (from->builtin) return connector;
    connector.provider = team->providers[from->provider - config->providers];
    connector.endpoint = from->provider->base_url;
    connector.probe_url = address_of(from->provider);
    connector.has_credential = has_credential(from->provider);
    return connector;
}

/* A script plays any model; anybody else the one that the agent has. */
static struct nimi_connector first_agents(const struct team *team) {
    const struct agent *agent = &team->agents[0];
    bool scripted = str_equal(str_from(agent->provider->kind->name), STR("scripted"));
    return (struct nimi_connector){.id = STR("local"),
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
                                   .media = media_at(team, 0),
                                   .local = true,
                                   .enabled = true,
                                   .has_credential = true,
                                   .models = models,
                                   .model_count = ARRAY_LEN(models)};
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
    *ret = (struct nimi_settings){.connectors = connectors,
                                  .connector_count = count,
                                  .allow_loopback = config->nimi.allow_loopback,
                                  .version = STR(WEIR_VERSION),
                                  .message_max_bytes = config->limits.message_bytes,
                                  .stall_ms = config->limits.server.write_stall_ms,
                                  .probe_ms = config->nimi.probe_ms,
                                  .keys_kept_ms = config->limits.idempotency_ms,
                                  .text = {FIRST_PACKET_MS, IDLE_MS, TEXT_TOTAL_MS},
                                  .speech = {FIRST_PACKET_MS, IDLE_MS, SPEECH_TOTAL_MS},
                                  .embedding = {FIRST_PACKET_MS, IDLE_MS, EMBEDDING_TOTAL_MS}};
}

void nimi_settings_done(struct nimi_settings *settings) {
    free((void *)(uintptr_t)settings->connectors); /* ours */
}
