#include "contract/agentbreeder/contract.h"

#include "base/mem.h"
#include "base/same.h"
#include "contract/agentbreeder/options.h"

#include <stdlib.h>

/* --- settings ----------------------------------------------------------------------------- */

/* The contract forbids that its bearer changes at run time (K34). */
static struct runtime_settings runtime_of(const struct contract_source *from) {
    const struct config *config = from->config;
    const struct agentbreeder_options *options = agentbreeder_options(config);
    const struct guest_options guest = {.workspace = options->workspace,
                                        .on_disconnect = options->on_disconnect};
    return (struct runtime_settings){
        .guest = guest_settings_of(from, &guest),
        .token = agentbreeder_options(from->first)->token,
        .agent_name = config->agent.name,
        .agent_version = config->agent.version,
        .framework = config->agent.framework,
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
    ret->workspace = runtime->guest.workspace;
    ret->user = STR_EMPTY;
    return true;
}

/* --- an instance -------------------------------------------------------------------------- */

static void *agentbreeder_init(const struct contract_loop *loop, const void *settings,
                               void *state) {
    struct runtime_instance *instance = MEM_NEW(struct runtime_instance);
    (void)state;
    guest_init(&instance->guest, loop, settings);
    return instance;
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
                 .use = guest_use,
                 .serving = guest_serving,
                 .stopping = guest_stopping,
                 .cut = guest_cut,
                 .done = free},
};
