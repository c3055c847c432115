#include "contract/a2a/contract.h"

#include "base/mem.h"
#include "config/config.h"
#include "contract/a2a/door.h"

#include <stdlib.h>

/* --- settings ----------------------------------------------------------------------------- */

static bool a2a_wanted(const struct config *config) {
    return config->agent.a2a;
}

static enum http_reach reach_of(const struct config *config) {
    return config->agent.webhooks == CONFIG_WEBHOOKS_ANY ? HTTP_ANYWHERE : HTTP_PUBLIC_ONLY;
}

static bool a2a_read(const struct contract_source *from, void **ret, struct err *e) {
    const struct config *config = from->config;
    struct agent_card_settings card = agent_card_settings(config);
    if (card.webhooks && from->pool && !http_pool_need(from->pool, e))
        return err_add(e, "a2a.webhooks");
    struct a2a_settings *settings = MEM_NEW(struct a2a_settings);
    *settings = (struct a2a_settings){
        .guest = guest_settings_of(from, guest_options(config, &a2a_rows)),
        .card = card,
        .webhook_reach = reach_of(config),
    };
    *ret = settings;
    return true;
}

/* --- the process -------------------------------------------------------------------------- */

struct a2a_process {
    struct webhooks *webhooks;
    struct shared_webhooks *shared;
};

static void *a2a_open(const struct contract_process *process) {
    struct a2a_process *ours = MEM_NEW(struct a2a_process);
    (void)process;
    ours->webhooks = webhooks_new();
    ours->shared = shared_webhooks_new();
    return ours;
}

static void a2a_close(void *state) {
    struct a2a_process *ours = state;
    webhooks_free(ours->webhooks);
    shared_webhooks_free(ours->shared);
    free(ours);
}

/* --- an instance -------------------------------------------------------------------------- */

static void a2a_use(void *ctx, const void *settings) {
    struct a2a_instance *instance = ctx;
    guest_use(&instance->guest, settings);
    instance->place.reach = a2a_settings(instance)->webhook_reach;
}

static void *a2a_init(const struct contract_loop *loop, const void *settings, void *state) {
    struct a2a_instance *instance = MEM_NEW(struct a2a_instance);
    const struct a2a_process *ours = state;
    instance->store = loop->store;
    instance->webhooks = ours->webhooks;
    instance->shared = loop->store && store_is_shared(loop->store) ? ours->shared : NULL;
    instance->place = (struct push_place){
        .loop = loop->loop, .pool = loop->pool, .store = loop->store, .host = loop->host};
    guest_init(&instance->guest, loop, settings);
    a2a_use(instance, settings);
    return instance;
}

static void a2a_serving(void *ctx) {
    struct a2a_instance *instance = ctx;
    guest_serving(&instance->guest);
    if (!a2a_settings(instance)->card.webhooks) return;
    if (instance->shared)
        shared_webhooks_serve(instance->shared, &instance->place);
    else
        webhooks_serve(instance->webhooks, &instance->place);
}

/* Also where it never served. */
static void a2a_finish(void *ctx) {
    struct a2a_instance *instance = ctx;
    webhooks_leave(instance->webhooks, &instance->place);
    if (instance->shared) shared_webhooks_leave(instance->shared, &instance->place);
}

/* --- the row ------------------------------------------------------------------------------ */

#define CARD "/.well-known/agent-card.json"
#define PUSH "/tasks/{id}/pushNotificationConfigs"

/* The paths of HTTP+JSON, and the card. */
/* clang-format off */
#define PATHS_AT(agent)                                                                                         \
    {STR_INIT("POST"),   STR_INIT(agent "/message:send"),      a2a_rest_send,   ROUTE_GUARDED, ROUTE_JSON},     \
    {STR_INIT("POST"),   STR_INIT(agent "/message:stream"),    a2a_rest_stream, ROUTE_GUARDED, ROUTE_JSON},     \
    {STR_INIT("GET"),    STR_INIT(agent "/tasks"),             a2a_rest_list,   ROUTE_GUARDED, ROUTE_PLAIN},    \
    {STR_INIT("GET"),    STR_INIT(agent "/tasks/{id}"),        a2a_rest_get,    ROUTE_GUARDED, ROUTE_PLAIN},    \
    {STR_INIT("POST"),   STR_INIT(agent "/tasks/{id}"),        a2a_rest_post,   ROUTE_GUARDED, ROUTE_BODY},     \
    {STR_INIT("GET"),    STR_INIT(agent "/extendedAgentCard"), a2a_rest_card,   ROUTE_GUARDED, ROUTE_PLAIN},    \
    {STR_INIT("POST"),   STR_INIT(agent PUSH),             a2a_rest_put_webhook,    ROUTE_GUARDED, ROUTE_JSON}, \
    {STR_INIT("GET"),    STR_INIT(agent PUSH),             a2a_rest_list_webhooks,  ROUTE_GUARDED, ROUTE_PLAIN},\
    {STR_INIT("GET"),    STR_INIT(agent PUSH "/{config}"), a2a_rest_get_webhook,    ROUTE_GUARDED, ROUTE_PLAIN},\
    {STR_INIT("DELETE"), STR_INIT(agent PUSH "/{config}"), a2a_rest_delete_webhook, ROUTE_GUARDED, ROUTE_PLAIN},\
    {STR_INIT("GET"),    STR_INIT(agent CARD),             a2a_card_route, ROUTE_OPEN, ROUTE_HEAD}

/* The same below the path of an agent: without one it is the first. */
static const struct route rows[] = {
    {STR_INIT("POST"), STR_INIT("/a2a"),         a2a_rpc, ROUTE_GUARDED, ROUTE_JSON},
    {STR_INIT("POST"), STR_INIT("/a2a/{agent}"), a2a_rpc, ROUTE_GUARDED, ROUTE_JSON},
    PATHS_AT(""),
    PATHS_AT("/a2a/{agent}"),
    {STR_INIT("GET"), STR_INIT("/a2a/{agent}/.well-known/agent.json"), a2a_card_route, ROUTE_OPEN, ROUTE_HEAD},
};
/* clang-format on */

void a2a_table(void *ctx, struct route_table *ret) {
    struct a2a_instance *instance = ctx;
    guest_table(&instance->guest, rows, ARRAY_LEN(rows), a2a_failure_body, ret);
}

static const struct contract_routes routes[] = {{"http", a2a_table}};

const struct contract a2a_contract = {
    .name = STR_INIT("a2a"),
    .rows = &a2a_rows,
    .wanted = a2a_wanted,
    .routes = routes,
    .routes_count = ARRAY_LEN(routes),
    .settings = {.read = a2a_read, .drop = free},
    .process = {.open = a2a_open, .close = a2a_close},
    .instance = {.init = a2a_init,
                 .use = a2a_use,
                 .serving = a2a_serving,
                 .stopping = guest_stopping,
                 .cut = guest_cut,
                 .finish = a2a_finish,
                 .leave = a2a_finish,
                 .done = free},
};
