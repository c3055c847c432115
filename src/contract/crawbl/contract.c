#include "contract/crawbl/contract.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "contract/crawbl/memory.h"
#include "contract/crawbl/options.h"
#include "proto/memory.pb.h"
#include "proto/runtime.pb.h"

#include <stdlib.h>

/* --- settings ----------------------------------------------------------------------------- */

static bool add_key(struct crawbl_settings *settings, const struct crawbl_options *options,
                    struct str key, struct err *e) {
    bool trimmed;
    if (key.len == 0) return true;
    if (!settings->keys) settings->keys = crawbl_keys_new(options);
    return token_keys_add(settings->keys, key, &trimmed, e);
}

static bool add_keys(struct crawbl_settings *settings, const struct contract_source *from,
                     struct err *e) {
    const struct crawbl_options *options = crawbl_options(from->config);
    if (from->demo_key.len) return add_key(settings, options, from->demo_key, e);
    settings->secured = options->key.len > 0;
    return add_key(settings, options, options->key, e) &&
           add_key(settings, options, options->key_previous, e);
}

/* Recordings do not include the orchestrator's agents and tools, so a replay must not fetch
 * them. */
static void leave_workspace_agents(struct workspace_agents_settings *workspace_agents,
                                   const struct config *config) {
    if (!workspace_agents->endpoint.len) return;
    if (config->tape.record.len)
        log_warning("calls to tools of the MCP endpoint are not recorded; a replay has the "
                    "agents and tools of the settings alone");
    if (!config->tape.play.len) return;
    log_warning("replaying: the MCP endpoint is not asked, agents and tools are those of the "
                "settings");
    workspace_agents->endpoint = STR_EMPTY;
}

/* Fetches are signed, so without keys none is sent and libcurl is not needed. */
static bool fill_workspace_agents(struct crawbl_settings *settings,
                                  const struct contract_source *from, struct err *e) {
    const struct crawbl_options *options = crawbl_options(from->config);
    settings->workspace_agents =
        (struct workspace_agents_settings){.endpoint = options->mcp_endpoint,
                                           .blueprint = options->blueprint,
                                           .keys = settings->keys};
    leave_workspace_agents(&settings->workspace_agents, from->config);
    if (!settings->workspace_agents.endpoint.len || !from->pool) return true;
    return !settings->keys || http_pool_need(from->pool, e);
}

static struct converse_settings converse_of(const struct crawbl_settings *settings,
                                            const struct contract_source *from) {
    const struct config *config = from->config;
    const struct crawbl_options *options = crawbl_options(config);
    return (struct converse_settings){
        .guard = {settings->keys, options->workspace, options->user},
        .lenient = options->lenient,
        .errors_as_text = options->errors_as_text,
        .sticky = options->sticky,
        .busy = config->session.busy,
        .message_max_bytes = config->limits.message_bytes,
        .stall_ms = config->limits.server.write_stall_ms,
        .on_disconnect = options->on_disconnect,
    };
}

static void crawbl_drop(void *ctx) {
    struct crawbl_settings *settings = ctx;
    token_keys_free(settings->keys);
    free(settings);
}

static bool crawbl_read(const struct contract_source *from, void **ret, struct err *e) {
    struct crawbl_settings *settings = MEM_NEW(struct crawbl_settings);
    if (!add_keys(settings, from, e) || !fill_workspace_agents(settings, from, e)) {
        crawbl_drop(settings);
        return false;
    }
    settings->converse = converse_of(settings, from);
    *ret = settings;
    return true;
}

static bool crawbl_secured(const void *ctx) {
    return ((const struct crawbl_settings *)ctx)->secured;
}

static bool crawbl_identify(const void *ctx, struct str bearer, struct contract_identity *ret) {
    _Static_assert(CONTRACT_IDENTITY_BYTES >= TOKEN_PAYLOAD_BYTES, "a token's names fit");
    const struct crawbl_settings *settings = ctx;
    struct token token;
    if (!settings->keys || token_verify(settings->keys, bearer, clock_unix_ms() / 1000,
                                        ret->room, &token) != TOKEN_VALID)
        return false;
    ret->workspace = token.workspace;
    ret->user = token.user;
    return true;
}

/* --- an instance -------------------------------------------------------------------------- */

struct crawbl_instance {
    struct workspace_agents *workspace_agents;
    struct converse_instance converse;
    struct memory_instance memory;
    struct run_host *host;
};

static void crawbl_use(void *ctx, const void *settings) {
    const struct crawbl_settings *wanted = settings;
    struct crawbl_instance *instance = ctx;
    instance->converse.settings = instance->memory.settings = &wanted->converse;
    workspace_agents_use(instance->workspace_agents, instance->host->engine,
                         &wanted->workspace_agents);
}

static void *crawbl_init(const struct contract_loop *loop, const void *settings, void *state) {
    struct crawbl_instance *instance = MEM_NEW(struct crawbl_instance);
    (void)state;
    instance->host = loop->host;
    instance->workspace_agents = workspace_agents_new(loop->loop, loop->pool);
    instance->converse = (struct converse_instance){
        .host = loop->host, .workspace_agents = instance->workspace_agents};
    instance->memory = (struct memory_instance){.store = loop->store};
    crawbl_use(instance, settings);
    return instance;
}

static void crawbl_leave(void *ctx) {
    struct crawbl_instance *instance = ctx;
    workspace_agents_free(instance->workspace_agents);
    instance->workspace_agents = NULL;
}

/* --- turns that waited for a human across a restart --------------------------------------- */

/* The agents of one may be those of its workspace's blueprint, which are asked for again. */
struct restored_turn {
    struct contract_ask head;
    struct workspace_agents_ask ask;
    recover_engine_fn *answer;
    void *ctx;
};

static void restored_turn_on_engine(struct engine *engine, void *ctx) {
    struct restored_turn *restored_turn = ctx;
    recover_engine_fn *answer = restored_turn->answer;
    void *answer_ctx = restored_turn->ctx;
    free(restored_turn);
    answer(engine, answer_ctx);
}

static void restored_turn_leave(struct contract_ask *head) {
    struct restored_turn *restored_turn = CONTAINER_OF(head, struct restored_turn, head);
    workspace_agents_leave(&restored_turn->ask);
    free(restored_turn);
}

static struct engine *crawbl_find_agents(void *ctx, const struct session_name *name,
                                         recover_engine_fn *answer, void *answer_ctx,
                                         struct contract_ask **ret_ask) {
    struct crawbl_instance *instance = ctx;
    const struct mcp_caller caller = {name->user, name->workspace, name->session};
    struct restored_turn *restored_turn = MEM_NEW(struct restored_turn);
    *restored_turn = (struct restored_turn){
        .head = {restored_turn_leave}, .answer = answer, .ctx = answer_ctx};
    struct engine *engine =
        workspace_agents_find(instance->workspace_agents, &caller, &restored_turn->ask,
                              restored_turn_on_engine, restored_turn);
    if (engine) {
        free(restored_turn);
        return engine;
    }
    *ret_ask = &restored_turn->head;
    return NULL;
}

/* --- services ----------------------------------------------------------------------------- */

static struct str grpc_address(const struct config *config) {
    return crawbl_options(config)->listen;
}

static bool grpc_strangers(const void *ctx) {
    return ((const struct crawbl_settings *)ctx)->keys != NULL;
}

static bool grpc_reflects(const struct config *config) {
    return config->reflection;
}

static void crawbl_converse(void *ctx, struct rpc_service *ret) {
    converse_service(&((struct crawbl_instance *)ctx)->converse, ret);
}

static void crawbl_memory(void *ctx, struct rpc_service *ret) {
    memory_service(&((struct crawbl_instance *)ctx)->memory, ret);
}

static const struct contract_listener listeners[] = {
    {.name = "grpc",
     .wire = CONTRACT_GRPC,
     .address = grpc_address,
     .strangers = grpc_strangers,
     .reflects = grpc_reflects},
};

static const struct contract_service services[] = {
    {"grpc", &crawbl_runtime_descriptor, crawbl_converse},
    {"grpc", &crawbl_memory_descriptor, crawbl_memory},
};

const struct contract crawbl_contract = {
    .name = STR_INIT("crawbl"),
    .rows = &crawbl_rows,
    .listeners = listeners,
    .listener_count = ARRAY_LEN(listeners),
    .services = services,
    .service_count = ARRAY_LEN(services),
    .settings = {.read = crawbl_read,
                 .drop = crawbl_drop,
                 .secured = crawbl_secured,
                 .identify = crawbl_identify},
    .instance = {.init = crawbl_init,
                 .use = crawbl_use,
                 .leave = crawbl_leave,
                 .done = free,
                 .find_agents = crawbl_find_agents},
};
