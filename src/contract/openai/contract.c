#include "contract/openai/contract.h"

#include "base/clock.h"
#include "base/mem.h"
#include "config/config.h"
#include "contract/openai/openai.h"
#include "contract/openai/options.h"

#include <stdlib.h>

/* --- settings ----------------------------------------------------------------------------- */

static bool openai_wanted(const struct config *config) {
    return openai_options(config)->guest.enabled;
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
        .guest = guest_settings_of(from, &options->guest),
        .config = config,
        .team = options->media ? from->team : NULL,
    };
    *ret = settings;
    return true;
}

/* --- an instance -------------------------------------------------------------------------- */

static void *openai_init(const struct contract_loop *loop, const void *settings, void *state) {
    struct openai_instance *instance = MEM_NEW(struct openai_instance);
    (void)state;
    guest_init(&instance->guest, loop, settings);
    instance->started_unix_s = clock_unix_ms() / 1000;
    return instance;
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
                 .use = guest_use,
                 .serving = guest_serving,
                 .stopping = guest_stopping,
                 .cut = guest_cut,
                 .done = free},
};
