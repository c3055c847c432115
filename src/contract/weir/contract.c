#include "contract/weir/contract.h"

#include "base/mem.h"
#include "config/config.h"

#include <stdlib.h>

static bool weir_read(const struct contract_source *from, void **ret, struct err *e) {
    const struct config *config = from->config;
    struct api_settings *settings = MEM_NEW(struct api_settings);
    (void)e;
    *settings = (struct api_settings){.stall_ms = config->limits.server.write_stall_ms,
                                      .heartbeat_ms = config->limits.heartbeat_ms,
                                      .body_stretch_ms = from->body_stretch_ms,
                                      .body_stretch_bytes = from->body_stretch_bytes,
                                      .decision_words = config->limits.run.decision_words};
    *ret = settings;
    return true;
}

static void *weir_init(const struct contract_loop *loop, const void *settings, void *state) {
    struct api_instance *instance = MEM_NEW(struct api_instance);
    struct session_table *sessions = loop->host->engine->sessions;
    (void)state;
    *instance = (struct api_instance){.settings = settings,
                                      .loop = loop->loop,
                                      .sessions = sessions,
                                      .directory = session_table_directory(sessions),
                                      .store = loop->store,
                                      .callers = loop->callers};
    return instance;
}

static void weir_use(void *ctx, const void *settings) {
    struct api_instance *instance = ctx;
    instance->settings = settings;
}

static void weir_serving(void *ctx) {
    struct api_instance *instance = ctx;
    instance->loaded = true;
}

static void weir_stopping(void *ctx) {
    struct api_instance *instance = ctx;
    instance->stopping = true;
}

static void weir_routes(void *instance, struct route_table *ret) {
    api_table(instance, ret);
}

static const struct contract_routes routes[] = {{"http", weir_routes}};

const struct contract weir_contract = {
    .name = STR_INIT("weir"),
    .routes = routes,
    .routes_count = ARRAY_LEN(routes),
    .settings = {.read = weir_read, .drop = free},
    .instance = {.init = weir_init,
                 .use = weir_use,
                 .serving = weir_serving,
                 .stopping = weir_stopping,
                 .done = free},
};
