#include "contract/openai/openai.h"

#include "contract/openai/api_error.h"

#include <time.h>

/* --- an instance -------------------------------------------------------------------------- */

void openai_instance_init(struct openai_instance *instance,
                          const struct openai_settings *settings, struct run_host *host,
                          const struct contract_callers *callers) {
    *instance =
        (struct openai_instance){.callers = *callers, .started_unix_s = (int64_t)time(NULL)};
    http_turn_site_init(&instance->site, host);
    openai_instance_use(instance, settings);
}

void openai_instance_use(struct openai_instance *instance,
                         const struct openai_settings *settings) {
    instance->settings = settings;
    instance->site.rules = settings->rules;
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

void openai_table(struct openai_instance *instance, struct route_table *ret) {
    *ret = (struct route_table){.rows = rows,
                                .row_count = ARRAY_LEN(rows),
                                .body_max_bytes = instance->settings->body_max_bytes,
                                .body_stretch_ms = instance->settings->body_stretch_ms,
                                .body_stretch_bytes = instance->settings->body_stretch_bytes,
                                .guard = openai_guard,
                                .failure_body = api_error_failure_body,
                                .ctx = instance};
}
