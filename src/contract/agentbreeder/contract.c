#include "contract/agentbreeder/contract.h"

#include "base/mem.h"
#include "base/same.h"
#include "contract/agentbreeder/options.h"

#include <stdlib.h>

/* --- settings ----------------------------------------------------------------------------- */

/* The contract forbids that its bearer changes at run time (K34). */
static struct runtime_settings runtime_of(const struct contract_source *from) {
    const struct config *config = from->config;
    const struct config_limits *limits = &config->limits;
    const struct agentbreeder_options *options = agentbreeder_options(config);
    return (struct runtime_settings){
        .token = agentbreeder_options(from->first)->token,
        .workspace = options->workspace,
        .agent_name = config->agent.name,
        .agent_version = config->agent.version,
        .framework = config->agent.framework,
        .body_max_bytes = limits->body_bytes,
        .body_stretch_ms = from->body_stretch_ms,
        .body_stretch_bytes = from->body_stretch_bytes,
        .rules = {.busy = config->session.busy,
                  .stall_ms = limits->server.write_stall_ms,
                  .heartbeat_ms = limits->heartbeat_ms,
                  .keys_kept_ms = limits->idempotency_ms,
                  .on_disconnect = options->on_disconnect,
                  .keyed_outlives = true},
        .brought = options->history,
        .behind_sidecar = options->sidecar,
        .card = agent_card_settings(config),
    };
}

static bool agentbreeder_read(const struct contract_source *from, void **ret, struct err *e) {
    const struct agentbreeder_options *options = agentbreeder_options(from->config);
    struct agentbreeder_settings *settings = MEM_NEW(struct agentbreeder_settings);
    (void)e;
    settings->runtime = runtime_of(from);
    settings->pages = (struct page_rules){
        .hosts = options->hosts, .origins = options->origins, .any_host = options->sidecar};
    *ret = settings;
    return true;
}

static bool agentbreeder_secured(const void *ctx) {
    const struct agentbreeder_settings *settings = ctx;
    return settings->runtime.token.len > 0;
}

/* The single token gives access to the whole workspace. */
static bool agentbreeder_identify(const void *ctx, struct str bearer,
                                  struct contract_identity *ret) {
    const struct runtime_settings *runtime =
        &((const struct agentbreeder_settings *)ctx)->runtime;
    if (runtime->token.len == 0 || !same_secret(bearer, runtime->token)) return false;
    ret->workspace = runtime->workspace;
    ret->user = STR_EMPTY;
    return true;
}

/* --- an instance -------------------------------------------------------------------------- */

static void *agentbreeder_init(const struct contract_loop *loop, const void *ctx, void *state) {
    const struct agentbreeder_settings *settings = ctx;
    struct runtime_instance *instance = MEM_NEW(struct runtime_instance);
    (void)state;
    runtime_instance_init(instance, &settings->runtime, loop->host);
    instance->callers = loop->callers;
    return instance;
}

static void agentbreeder_use(void *ctx, const void *settings) {
    runtime_instance_use(ctx, &((const struct agentbreeder_settings *)settings)->runtime);
}

static void agentbreeder_serving(void *ctx) {
    struct runtime_instance *instance = ctx;
    instance->loaded = true;
}

static void agentbreeder_stopping(void *ctx) {
    struct runtime_instance *instance = ctx;
    instance->loaded = false;
}

/* --- listeners and routes ----------------------------------------------------------------- */

static struct str http_address(const struct config *config) {
    return agentbreeder_options(config)->listen;
}

static const struct page_rules *http_pages(const void *ctx) {
    const struct agentbreeder_settings *settings = ctx;
    return &settings->pages;
}

static const struct contract_listener listeners[] = {
    {.name = "http",
     .wire = CONTRACT_HTTP,
     .address = http_address,
     .refusal = &runtime_refusal,
     .pages = http_pages,
     .sign = runtime_sign},
};

static const struct contract_routes routes[] = {{"http", runtime_table}};

const struct contract agentbreeder_contract = {
    .name = STR_INIT("agentbreeder"),
    .rows = &agentbreeder_rows,
    .listeners = listeners,
    .listener_count = ARRAY_LEN(listeners),
    .routes = routes,
    .routes_count = ARRAY_LEN(routes),
    .settings = {.read = agentbreeder_read,
                 .drop = free,
                 .secured = agentbreeder_secured,
                 .identify = agentbreeder_identify},
    .instance = {.init = agentbreeder_init,
                 .use = agentbreeder_use,
                 .serving = agentbreeder_serving,
                 .stopping = agentbreeder_stopping,
                 .cut = runtime_instance_cut,
                 .done = free},
};
