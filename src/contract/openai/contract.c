#include "contract/openai/contract.h"

#include "base/clock.h"
#include "base/mem.h"
#include "config/config.h"
#include "contract/openai/api_error.h"
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

/* --- who may enter ------------------------------------------------------------------------ */

/* A wrong token is 401 here, for which the official libraries have AuthenticationError. */
static void openai_refused(const struct guest *guest, struct route_failure *failure) {
    const struct contract_callers *callers = &guest->callers;
    if (failure->status == 403 && callers->secured(callers->ctx)) failure->status = 401;
    if (failure->status == 401) failure->code = STR("invalid_api_key");
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

static const struct route rows[] = {
    /* clang-format off */
    {STR_INIT("GET"),    STR_INIT("/v1/models"),                openai_list_models,     ROUTE_GUARDED, ROUTE_HEAD},
    {STR_INIT("GET"),    STR_INIT("/v1/models/{model}"),        openai_get_model,       ROUTE_GUARDED, ROUTE_HEAD},
    {STR_INIT("POST"),   STR_INIT("/v1/chat/completions"),      openai_chat,            ROUTE_GUARDED, ROUTE_JSON},
    {STR_INIT("POST"),   STR_INIT("/v1/responses"),             openai_create_response, ROUTE_GUARDED, ROUTE_JSON},
    {STR_INIT("GET"),    STR_INIT("/v1/responses/{id}"),        openai_get_response,    ROUTE_GUARDED, ROUTE_PLAIN},
    {STR_INIT("DELETE"), STR_INIT("/v1/responses/{id}"),        openai_delete_response, ROUTE_GUARDED, ROUTE_PLAIN},
    {STR_INIT("POST"),   STR_INIT("/v1/responses/{id}/cancel"), openai_cancel_response, ROUTE_GUARDED, ROUTE_PLAIN},
    {STR_INIT("GET"),    STR_INIT("/v1/responses/{id}/input_items"), openai_list_input, ROUTE_GUARDED, ROUTE_PLAIN},
    {STR_INIT("POST"),   STR_INIT("/v1/embeddings"),            openai_embed,           ROUTE_GUARDED, ROUTE_JSON},
    {STR_INIT("POST"),   STR_INIT("/v1/audio/speech"),          openai_speak,           ROUTE_GUARDED, ROUTE_JSON},
    /* clang-format on */
};

void openai_table(void *ctx, struct route_table *ret) {
    struct openai_instance *instance = ctx;
    instance->guest.refused = openai_refused;
    guest_table(&instance->guest, rows, ARRAY_LEN(rows), api_error_failure_body, ret);
    ret->rated = api_error_rated;
}

static const struct contract_routes routes[] = {{"http", openai_table}};

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
