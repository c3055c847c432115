#include "contract/openai/contract.h"

#include "base/mem.h"
#include "config/config.h"
#include "contract/openai/openai.h"
#include "contract/openai/options.h"

#include <stdlib.h>

/* --- settings ----------------------------------------------------------------------------- */

static bool openai_wanted(const struct config *config) {
    return openai_options(config)->enabled;
}

static bool openai_asks_media(const struct config *config) {
    return openai_options(config)->media;
}

static bool openai_read(const struct contract_source *from, void **ret, struct err *e) {
    const struct config *config = from->config;
    const struct openai_options *options = openai_options(config);
    struct openai_settings *settings = MEM_NEW(struct openai_settings);
    (void)e;
    *settings = (struct openai_settings){
        .workspace = options->workspace,
        .config = config,
        .team = options->media ? from->team : NULL,
        .rules = {.busy = config->session.busy,
                  .stall_ms = config->limits.server.write_stall_ms,
                  .heartbeat_ms = config->limits.heartbeat_ms,
                  .keys_kept_ms = config->limits.idempotency_ms,
                  .on_disconnect = options->on_disconnect,
                  .keyed_outlives = true},
        .body_max_bytes = config->limits.body_bytes,
        .body_stretch_ms = from->body_stretch_ms,
        .body_stretch_bytes = from->body_stretch_bytes,
    };
    *ret = settings;
    return true;
}

/* --- an instance -------------------------------------------------------------------------- */

static void openai_use(void *ctx, const void *settings) {
    openai_instance_use(ctx, settings);
}

static void *openai_init(const struct contract_loop *loop, const void *settings, void *state) {
    struct openai_instance *instance = MEM_NEW(struct openai_instance);
    (void)state;
    openai_instance_init(instance, settings, loop->host, &loop->callers);
    return instance;
}

static void openai_serving(void *ctx) {
    ((struct openai_instance *)ctx)->loaded = true;
}

static void openai_stopping(void *ctx) {
    ((struct openai_instance *)ctx)->stopping = true;
}

static void openai_cut(void *ctx) {
    http_turn_site_cut(&((struct openai_instance *)ctx)->site);
}

/* --- routes ------------------------------------------------------------------------------- */

static void openai_routes(void *ctx, struct route_table *ret) {
    openai_table(ctx, ret);
}

static const struct contract_routes routes[] = {{"http", openai_routes}};

const struct contract openai_contract = {
    .name = STR_INIT(OPENAI_CONTRACT),
    .rows = &openai_rows,
    .wanted = openai_wanted,
    .asks_media = openai_asks_media,
    .routes = routes,
    .routes_count = ARRAY_LEN(routes),
    .settings = {.read = openai_read, .drop = free},
    .instance = {.init = openai_init,
                 .use = openai_use,
                 .serving = openai_serving,
                 .stopping = openai_stopping,
                 .cut = openai_cut,
                 .done = free},
};
