#include "contract/mcp/contract.h"

#include "base/mem.h"
#include "base/version.h"
#include "config/config.h"
#include "contract/caller.h"
#include "contract/mcp/agents.h"
#include "contract/mcp/options.h"

#include <stdlib.h>

#define NO_USER STR("anonymous") /* of callers without a token, or whose token names none */

#define INSTRUCTIONS                                                                           \
    "Each tool is an agent: send it a message, and it answers when its work is done. To go "   \
    "on "                                                                                      \
    "with a conversation, pass the session of the answer. An answer with the status waiting "  \
    "asks a person to decide: show the question to the user and pass on what they say."

/* --- settings ----------------------------------------------------------------------------- */

static bool mcp_wanted(const struct config *config) {
    return mcp_options(config)->enabled;
}

static bool mcp_read(const struct contract_source *from, void **ret, struct err *e) {
    const struct config *config = from->config;
    struct mcp_settings *settings = MEM_NEW(struct mcp_settings);
    (void)e;
    *settings = (struct mcp_settings){
        .server = {STR("weir"), STR(WEIR_VERSION), STR(INSTRUCTIONS)},
        .workspace = mcp_options(config)->workspace,
        .on_disconnect = mcp_options(config)->on_disconnect,
        .busy = config->session.busy,
        .stall_ms = config->limits.server.write_stall_ms,
        .heartbeat_ms = config->limits.heartbeat_ms,
        .body_max_bytes = config->limits.body_bytes,
        .body_stretch_ms = from->body_stretch_ms,
        .body_stretch_bytes = from->body_stretch_bytes,
    };
    *ret = settings;
    return true;
}

/* --- the process: the sessions of all loops ----------------------------------------------- */

static void *mcp_open(const struct contract_process *process) {
    const struct mcp_options *options = mcp_options(process->config);
    return toolserver_sessions_new((size_t)options->sessions_max, options->session_idle_ms);
}

static void mcp_close(void *state) {
    toolserver_sessions_free(state);
}

/* --- an instance -------------------------------------------------------------------------- */

static void *mcp_init(const struct contract_loop *loop, const void *settings, void *state) {
    struct mcp_instance *instance = MEM_NEW(struct mcp_instance);
    *instance = (struct mcp_instance){
        .settings = settings, .host = loop->host, .callers = loop->callers};
    toolserver_init(&instance->server, &instance->settings->server, &mcp_agents, instance,
                    state, loop->loop);
    return instance;
}

static void mcp_use(void *ctx, const void *settings) {
    struct mcp_instance *instance = ctx;
    instance->settings = settings;
    instance->server.settings = &instance->settings->server;
}

static void mcp_serving(void *ctx) {
    ((struct mcp_instance *)ctx)->loaded = true;
}

static void mcp_stopping(void *ctx) {
    ((struct mcp_instance *)ctx)->stopping = true;
}

static void mcp_cut(void *ctx) {
    toolserver_cut(&((struct mcp_instance *)ctx)->server);
}

/* --- routes ------------------------------------------------------------------------------- */

static bool is_shut(struct route_call *call, const struct mcp_instance *instance,
                    struct route_failure *ret) {
    if (instance->loaded && !instance->stopping) return false;
    route_field(call, STR("retry-after"), STR("1"));
    *ret =
        (struct route_failure){503, STR("UNAVAILABLE"),
                               instance->stopping ? STR("the server is stopping; try again")
                                                  : STR("the store is being opened; try again"),
                               STR_EMPTY};
    return true;
}

static enum route_entry mcp_guard(struct route_call *call, const struct route *row, void *ctx,
                                  struct route_failure *ret) {
    const struct mcp_instance *instance = ctx;
    struct contract_caller caller;
    (void)row;
    if (is_shut(call, instance, ret)) return ENTRY_REFUSED;
    if (!contract_caller_find(call, &instance->callers, &caller, ret)) return ENTRY_REFUSED;
    return caller.proved ? ENTRY_PROVED : ENTRY_TRUSTED;
}

typedef void served_fn(struct toolserver *server, struct route_call *call,
                       const struct toolserver_caller *caller);

/* Ask again when the body has arrived: keys may have changed, or the stop may have begun. */
static void contract_enter(struct route_call *call, struct mcp_instance *instance,
                           served_fn *serve) {
    struct contract_caller found;
    struct route_failure failure;
    if (is_shut(call, instance, &failure) ||
        !contract_caller_find(call, &instance->callers, &found, &failure)) {
        route_fail(call, &failure);
        return;
    }
    const struct contract_identity *identity = &found.identity;
    struct toolserver_caller caller = {
        .workspace = found.proved ? identity->workspace : instance->settings->workspace,
        .user = found.proved && identity->user.len ? identity->user : NO_USER,
        .conversation = STR_EMPTY};
    serve(&instance->server, call, &caller);
}

static void post(struct route_call *call, void *ctx) {
    contract_enter(call, ctx, toolserver_post);
}

static void get(struct route_call *call, void *ctx) {
    contract_enter(call, ctx, toolserver_get);
}

static void delete (struct route_call *call, void *ctx) {
    contract_enter(call, ctx, toolserver_delete);
}

static const struct route rows[] = {
    {STR_INIT("POST"), STR_INIT("/mcp"), post, ROUTE_GUARDED, ROUTE_JSON},
    {STR_INIT("GET"), STR_INIT("/mcp"), get, ROUTE_GUARDED, ROUTE_PLAIN},
    {STR_INIT("DELETE"), STR_INIT("/mcp"), delete, ROUTE_GUARDED, ROUTE_PLAIN},
};

static void mcp_routes(void *ctx, struct route_table *ret) {
    struct mcp_instance *instance = ctx;
    *ret = (struct route_table){.rows = rows,
                                .row_count = ARRAY_LEN(rows),
                                .body_max_bytes = instance->settings->body_max_bytes,
                                .body_stretch_ms = instance->settings->body_stretch_ms,
                                .body_stretch_bytes = instance->settings->body_stretch_bytes,
                                .guard = mcp_guard,
                                .failure_body = toolserver_failure_body,
                                .ctx = instance};
}

static const struct contract_routes routes[] = {{"http", mcp_routes}};

const struct contract mcp_contract = {
    .name = STR_INIT("mcp"),
    .rows = &mcp_rows,
    .wanted = mcp_wanted,
    .routes = routes,
    .routes_count = ARRAY_LEN(routes),
    .settings = {.read = mcp_read, .drop = free},
    .process = {.open = mcp_open, .close = mcp_close},
    .instance = {.init = mcp_init,
                 .use = mcp_use,
                 .serving = mcp_serving,
                 .stopping = mcp_stopping,
                 .cut = mcp_cut,
                 .done = free},
};
