#include "contract/mcp/contract.h"

#include "base/mem.h"
#include "base/version.h"
#include "contract/mcp/agents.h"
#include "contract/mcp/options.h"

#include <stdlib.h>

#define INSTRUCTIONS                                                                           \
    "Each tool is an agent: send it a message, and it answers when its work is done. To go "   \
    "on "                                                                                      \
    "with a conversation, pass the session of the answer. An answer with the status waiting "  \
    "asks a person to decide: show the question to the user and pass on what they say."

/* --- settings ----------------------------------------------------------------------------- */

static bool mcp_wanted(const struct config *config) {
    return mcp_server_options(config)->guest.enabled;
}

static bool mcp_read(const struct contract_source *from, void **ret, struct err *e) {
    struct mcp_settings *settings = MEM_NEW(struct mcp_settings);
    (void)e;
    *settings = (struct mcp_settings){
        .guest = guest_settings_of(from, &mcp_server_options(from->config)->guest),
        .server = {STR("weir"), STR(WEIR_VERSION), STR(INSTRUCTIONS)},
    };
    *ret = settings;
    return true;
}

/* --- the process: the sessions of all loops ----------------------------------------------- */

static void *mcp_open(const struct contract_process *process) {
    const struct mcp_server_options *options = mcp_server_options(process->config);
    return toolserver_sessions_new((size_t)options->sessions_max, options->session_idle_ms);
}

static void mcp_close(void *state) {
    toolserver_sessions_free(state);
}

/* --- an instance -------------------------------------------------------------------------- */

static void mcp_use(void *ctx, const void *settings) {
    struct mcp_instance *instance = ctx;
    guest_use(&instance->guest, settings);
    instance->server.settings = &((const struct mcp_settings *)settings)->server;
}

static void *mcp_init(const struct contract_loop *loop, const void *settings, void *state) {
    struct mcp_instance *instance = MEM_NEW(struct mcp_instance);
    guest_init(&instance->guest, loop, settings);
    toolserver_init(&instance->server, &((const struct mcp_settings *)settings)->server,
                    &mcp_agents, instance, state, loop->loop);
    return instance;
}

static void mcp_cut(void *ctx) {
    toolserver_cut(&((struct mcp_instance *)ctx)->server);
}

/* --- routes ------------------------------------------------------------------------------- */

typedef void served_fn(struct toolserver *server, struct route_call *call,
                       const struct toolserver_caller *caller);

static void mcp_enter(struct route_call *call, struct mcp_instance *instance,
                      served_fn *serve) {
    struct contract_caller found;
    if (!guest_enter(call, &instance->guest, &found)) return;
    struct toolserver_caller caller = {.workspace = guest_workspace(&instance->guest, &found),
                                       .user = guest_user(&found),
                                       .conversation = STR_EMPTY};
    serve(&instance->server, call, &caller);
}

static void post(struct route_call *call, void *ctx) {
    mcp_enter(call, ctx, toolserver_post);
}

static void get(struct route_call *call, void *ctx) {
    mcp_enter(call, ctx, toolserver_get);
}

static void delete (struct route_call *call, void *ctx) {
    mcp_enter(call, ctx, toolserver_delete);
}

static const struct route rows[] = {
    {STR_INIT("POST"), STR_INIT("/mcp"), post, ROUTE_GUARDED, ROUTE_JSON},
    {STR_INIT("GET"), STR_INIT("/mcp"), get, ROUTE_GUARDED, ROUTE_PLAIN},
    {STR_INIT("DELETE"), STR_INIT("/mcp"), delete, ROUTE_GUARDED, ROUTE_PLAIN},
};

static void mcp_routes(void *ctx, struct route_table *ret) {
    struct mcp_instance *instance = ctx;
    guest_table(&instance->guest, rows, ARRAY_LEN(rows), toolserver_failure_body, ret);
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
                 .serving = guest_serving,
                 .stopping = guest_stopping,
                 .cut = mcp_cut,
                 .done = free},
};
