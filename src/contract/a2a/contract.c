#include "contract/a2a/contract.h"

#include "base/mem.h"
#include "config/config.h"
#include "contract/a2a/door.h"
#include "contract/a2a/options.h"

#include <stdlib.h>

/* --- settings ----------------------------------------------------------------------------- */

static bool a2a_wanted(const struct config *config) {
    return config->agent.a2a;
}

static bool a2a_read(const struct contract_source *from, void **ret, struct err *e) {
    const struct config *config = from->config;
    struct a2a_settings *settings = MEM_NEW(struct a2a_settings);
    (void)e;
    *settings = (struct a2a_settings){
        .workspace = a2a_options(config)->workspace,
        .body_max_bytes = config->limits.body_bytes,
        .body_stretch_ms = from->body_stretch_ms,
        .body_stretch_bytes = from->body_stretch_bytes,
        .rules = {.busy = config->session.busy,
                  .stall_ms = config->limits.server.write_stall_ms,
                  .heartbeat_ms = config->limits.heartbeat_ms,
                  .keys_kept_ms = config->limits.idempotency_ms,
                  .on_disconnect = a2a_options(config)->on_disconnect,
                  .keyed_outlives = true},
        .card = agent_card_settings(config),
    };
    *ret = settings;
    return true;
}

/* --- an instance -------------------------------------------------------------------------- */

static void a2a_use(void *ctx, const void *settings) {
    struct a2a_instance *instance = ctx;
    instance->settings = settings;
    instance->site.rules = instance->settings->rules;
}

static void *a2a_init(const struct contract_loop *loop, const void *settings, void *state) {
    struct a2a_instance *instance = MEM_NEW(struct a2a_instance);
    (void)state;
    instance->store = loop->store;
    instance->callers = loop->callers;
    http_turn_site_init(&instance->site, loop->host);
    a2a_use(instance, settings);
    return instance;
}

static void a2a_serving(void *ctx) {
    ((struct a2a_instance *)ctx)->loaded = true;
}

static void a2a_stopping(void *ctx) {
    ((struct a2a_instance *)ctx)->stopping = true;
}

static void a2a_cut(void *ctx) {
    http_turn_site_cut(&((struct a2a_instance *)ctx)->site);
}

/* --- the row ------------------------------------------------------------------------------ */

static void a2a_routes(void *instance, struct route_table *ret) {
    a2a_table(instance, ret);
}

static const struct contract_routes routes[] = {{"http", a2a_routes}};

const struct contract a2a_contract = {
    .name = STR_INIT("a2a"),
    .rows = &a2a_rows,
    .wanted = a2a_wanted,
    .routes = routes,
    .routes_count = ARRAY_LEN(routes),
    .settings = {.read = a2a_read, .drop = free},
    .instance = {.init = a2a_init,
                 .use = a2a_use,
                 .serving = a2a_serving,
                 .stopping = a2a_stopping,
                 .cut = a2a_cut,
                 .done = free},
};
