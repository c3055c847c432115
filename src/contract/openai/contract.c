#include "contract/openai/contract.h"

#include "base/mem.h"
#include "config/config.h"
#include "contract/openai/api_error.h"
#include "contract/openai/openai.h"
#include "contract/openai/options.h"

#include <stdlib.h>
#include <time.h>

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
    struct openai_instance *instance = ctx;
    instance->settings = settings;
    instance->site.rules = instance->settings->rules;
}

static void *openai_init(const struct contract_loop *loop, const void *settings, void *state) {
    struct openai_instance *instance = MEM_NEW(struct openai_instance);
    (void)state;
    *instance = (struct openai_instance){.callers = loop->callers,
                                         .started_unix_s = (int64_t)time(NULL)};
    http_turn_site_init(&instance->site, loop->host);
    openai_use(instance, settings);
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

/* --- who may enter ------------------------------------------------------------------------ */

static bool contract_is_shut(struct route_call *call, const struct openai_instance *instance,
                             struct route_failure *ret) {
    if (instance->loaded && !instance->stopping) return false;
    route_field(call, STR("retry-after"), STR("1"));
    *ret =
        (struct route_failure){503, STR("unavailable"),
                               instance->stopping ? STR("the server is stopping; try again")
                                                  : STR("the store is being opened; try again"),
                               STR_EMPTY};
    return true;
}

/* A wrong key is 401 here: the libraries' AuthenticationError. */
static bool openai_find(struct route_call *call, const struct openai_instance *instance,
                        struct contract_caller *ret, struct route_failure *ret_failure) {
    if (contract_is_shut(call, instance, ret_failure)) return false;
    if (contract_caller_find(call, &instance->callers, ret, ret_failure)) return true;
    if (instance->callers.secured(instance->callers.ctx)) {
        ret_failure->status = 401;
        ret_failure->code = STR("invalid_api_key");
    }
    return false;
}

static enum route_entry openai_guard(struct route_call *call, const struct route *row,
                                     void *ctx, struct route_failure *ret) {
    struct contract_caller caller;
    (void)row;
    if (!openai_find(call, ctx, &caller, ret)) return ENTRY_REFUSED;
    return caller.proved ? ENTRY_PROVED : ENTRY_TRUSTED;
}

bool openai_enter(struct route_call *call, const struct openai_instance *instance,
                  struct contract_caller *ret) {
    struct route_failure failure;
    if (openai_find(call, instance, ret, &failure)) return true;
    route_fail(call, &failure);
    return false;
}

struct str openai_workspace(const struct openai_instance *instance,
                            const struct contract_caller *caller) {
    return caller->proved ? caller->identity.workspace : instance->settings->workspace;
}

/* --- routes ------------------------------------------------------------------------------- */

static const struct route rows[] = {
    /* clang-format off */
    {STR_INIT("GET"),    STR_INIT("/v1/models"),                openai_list_models,     ROUTE_GUARDED, ROUTE_HEAD},
    {STR_INIT("GET"),    STR_INIT("/v1/models/{model}"),        openai_get_model,       ROUTE_GUARDED, ROUTE_HEAD},
    {STR_INIT("POST"),   STR_INIT("/v1/chat/completions"),      openai_chat,            ROUTE_GUARDED, ROUTE_JSON},
    {STR_INIT("POST"),   STR_INIT("/v1/responses"),             openai_create_response, ROUTE_GUARDED, ROUTE_JSON},
    {STR_INIT("GET"),    STR_INIT("/v1/responses/{id}"),        openai_get_response,    ROUTE_GUARDED, ROUTE_PLAIN},
    {STR_INIT("DELETE"), STR_INIT("/v1/responses/{id}"),        openai_delete_response, ROUTE_GUARDED, ROUTE_PLAIN},
    {STR_INIT("POST"),   STR_INIT("/v1/responses/{id}/cancel"), openai_cancel_response, ROUTE_GUARDED, ROUTE_PLAIN},
    {STR_INIT("POST"),   STR_INIT("/v1/embeddings"),            openai_embed,           ROUTE_GUARDED, ROUTE_JSON},
    {STR_INIT("POST"),   STR_INIT("/v1/audio/speech"),          openai_speak,           ROUTE_GUARDED, ROUTE_JSON},
    /* clang-format on */
};

static void openai_routes(void *ctx, struct route_table *ret) {
    struct openai_instance *instance = ctx;
    *ret = (struct route_table){.rows = rows,
                                .row_count = ARRAY_LEN(rows),
                                .body_max_bytes = instance->settings->body_max_bytes,
                                .body_stretch_ms = instance->settings->body_stretch_ms,
                                .body_stretch_bytes = instance->settings->body_stretch_bytes,
                                .guard = openai_guard,
                                .failure_body = api_error_failure_body,
                                .ctx = instance};
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
