#include "orchestrator/mcp/endpoint.h"

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "orchestrator/mcp/inner.h"
#include "wire/token.h"

#include <stdlib.h>

#define MCP_PATH "/mcp/v1"
#define AGENTS_PATH "/v1/internal/agents"

/* --- the tools ---------------------------------------------------------------------------- */

orchestrator_tool_fn *orchestrator_serve_tool(const struct orchestrator_endpoint *endpoint,
                                              enum orchestrator_tool tool) {
    if (tool >= ORCHESTRATOR_TOOL_COUNT) return NULL;
    orchestrator_tool_fn *served = endpoint->tools[tool];
    if (!served && endpoint->store) served = orchestrator_palace_tool(tool);
    return served;
}

static bool tools_at(size_t index, const struct toolserver_caller *caller, struct arena *arena,
                     struct toolserver_tool *ret, void *ctx) {
    const struct orchestrator_endpoint *endpoint = ctx;
    size_t seen = 0;
    (void)caller, (void)arena;
    for (unsigned i = 0; i < ORCHESTRATOR_TOOL_COUNT; i++) {
        const struct orchestrator_tool_row *row = &orchestrator_tools[i];
        if (!orchestrator_serve_tool(endpoint, (enum orchestrator_tool)i) || seen++ < index)
            continue;
        *ret = (struct toolserver_tool){.name = row->name,
                                        .description = row->description,
                                        .input_schema = row->input_schema,
                                        .annotations = row->reads
                                                           ? STR("{\"readOnlyHint\":true}")
                                                           : STR("{\"readOnlyHint\":false}"),
                                        .lasts = row->lasts};
        return true;
    }
    return false;
}

static const struct toolserver_table table = {.at = tools_at, .call = orchestrator_serve_call};

static const struct toolserver_settings settings = {STR_INIT("crawbl-orchestrator"),
                                                    STR_INIT("1.0.0"), STR_INIT("")};

void orchestrator_endpoint_init(struct orchestrator_endpoint *endpoint, struct loop *loop) {
    toolserver_init(&endpoint->server, &settings, &table, endpoint, NULL, loop);
}

/* --- who calls ---------------------------------------------------------------------------- */

struct pod {
    char room[TOKEN_PAYLOAD_BYTES];
    struct token token;
};

static bool pod_refuse(struct route_failure *ret, int status, struct str text) {
    *ret = (struct route_failure){status, STR_EMPTY, text, STR_EMPTY};
    return false;
}

static bool verify(const struct orchestrator_endpoint *endpoint, struct str text,
                   struct pod *ret) {
    return endpoint->keys && token_verify(endpoint->keys, text, clock_unix_ms() / 1000,
                                          ret->room, &ret->token) == TOKEN_VALID;
}

/* The texts of both refusals are what pods expect. */
static bool find_caller(struct route_call *call, const struct orchestrator_endpoint *endpoint,
                        struct pod *ret, struct route_failure *ret_failure) {
    struct str header = lent_read(route_header(call, STR("authorization")));
    struct str token;
    struct err e;
    if (!bearer_token_from_header(header, header.at ? 1 : 0, &token, &e))
        return pod_refuse(ret_failure, 401, STR("missing authorization"));
    if (verify(endpoint, token, ret)) return true;
    log_often(LOG_WARNING, "a token for the tools is refused; peer " STR_FMT,
              STR_ARG(exchange_peer(route_exchange(call))));
    return pod_refuse(ret_failure, 401, STR("invalid token"));
}

/* Blueprints are also given to a bare token. */
static bool find_reader(struct route_call *call, const struct orchestrator_endpoint *endpoint,
                        struct pod *ret, struct route_failure *ret_failure) {
    struct str header = str_trim(lent_read(route_header(call, STR("authorization"))));
    struct str token = bearer_token(header);
    if (!endpoint->keys || !endpoint->blueprint)
        return pod_refuse(ret_failure, 503, STR("no signing key is set"));
    if (verify(endpoint, token.at ? token : header, ret)) return true;
    return pod_refuse(ret_failure, 401, STR("unauthorized"));
}

static enum route_entry endpoint_guard(struct route_call *call, const struct route *row,
                                       void *ctx, struct route_failure *ret) {
    struct pod pod;
    bool reads = str_equal(row->path, STR(AGENTS_PATH));
    bool known = reads ? find_reader(call, ctx, &pod, ret) : find_caller(call, ctx, &pod, ret);
    return known ? ENTRY_PROVED : ENTRY_REFUSED;
}

/* --- the tools' route --------------------------------------------------------------------- */

typedef void endpoint_fn(struct toolserver *server, struct route_call *call,
                         const struct toolserver_caller *caller);

static void endpoint_enter(struct route_call *call, struct orchestrator_endpoint *endpoint,
                           endpoint_fn *serve) {
    struct pod pod;
    struct route_failure failure;
    if (!find_caller(call, endpoint, &pod, &failure)) {
        route_fail(call, &failure);
        return;
    }
    struct str conversation = lent_read(route_header(call, STR("x-conversation-id")));
    const struct toolserver_caller caller = {pod.token.workspace, pod.token.user,
                                             conversation.at ? conversation : STR_EMPTY};
    serve(&endpoint->server, call, &caller);
}

static void endpoint_post(struct route_call *call, void *ctx) {
    endpoint_enter(call, ctx, toolserver_post);
}

static void get(struct route_call *call, void *ctx) {
    endpoint_enter(call, ctx, toolserver_get);
}

static void delete (struct route_call *call, void *ctx) {
    endpoint_enter(call, ctx, toolserver_delete);
}

/* --- blueprints --------------------------------------------------------------------------- */

struct orchestrator_blueprint {
    struct route_call *call;
    bool answered;
    void (*left)(void *ctx);
    void *left_ctx;
};

static void blueprint_left(void *ctx) {
    struct orchestrator_blueprint *blueprint = ctx;
    if (!blueprint->answered && blueprint->left) blueprint->left(blueprint->left_ctx);
    free(blueprint);
}

static void blueprint_closed(void *ctx) {
    free(ctx);
}

static const struct route_watch blueprint_watch = {.left = blueprint_left,
                                                   .closed = blueprint_closed};

void orchestrator_blueprint_answer(struct orchestrator_blueprint *blueprint, struct str json) {
    blueprint->answered = true;
    route_reply(blueprint->call, 200, STR("application/json"), json);
}

void orchestrator_blueprint_fail(struct orchestrator_blueprint *blueprint, int status,
                                 struct str text) {
    blueprint->answered = true;
    route_fail(blueprint->call, &(struct route_failure){status, STR_EMPTY, text, STR_EMPTY});
}

void orchestrator_blueprint_watch(struct orchestrator_blueprint *blueprint,
                                  void (*left)(void *ctx), void *ctx) {
    blueprint->left = left;
    blueprint->left_ctx = ctx;
}

/* A query that names no workspace means the token's. */
static bool is_own(struct route_call *call, struct str own) {
    struct buf asked;
    buf_init(&asked, KIB);
    enum query_value value = route_query(call, STR("workspace_id"), &asked);
    bool fits = value != QUERY_BAD && (asked.len == 0 || str_equal(buf_str(&asked), own));
    buf_done(&asked);
    return fits;
}

static void agents(struct route_call *call, void *ctx) {
    struct orchestrator_endpoint *endpoint = ctx;
    struct pod pod;
    struct route_failure failure;
    bool known = find_reader(call, endpoint, &pod, &failure) &&
                 (is_own(call, pod.token.workspace) ||
                  pod_refuse(&failure, 403,
                             STR("workspace_id names another workspace than the "
                                 "token's")));
    if (!known) {
        route_fail(call, &failure);
        return;
    }
    struct orchestrator_blueprint *blueprint = MEM_NEW(struct orchestrator_blueprint);
    blueprint->call = call;
    route_watch(call, &blueprint_watch, blueprint);
    endpoint->blueprint(blueprint, pod.token.workspace, pod.token.user, endpoint->ctx);
}

/* --- the table ---------------------------------------------------------------------------- */

static const struct route rows[] = {
    {STR_INIT("POST"), STR_INIT(MCP_PATH), endpoint_post, ROUTE_GUARDED, ROUTE_JSON},
    {STR_INIT("GET"), STR_INIT(MCP_PATH), get, ROUTE_GUARDED, ROUTE_PLAIN},
    {STR_INIT("DELETE"), STR_INIT(MCP_PATH), delete, ROUTE_GUARDED, ROUTE_PLAIN},
    {STR_INIT("GET"), STR_INIT(AGENTS_PATH), agents, ROUTE_GUARDED, ROUTE_HEAD},
};

static void failure_text(const struct route_failure *failure, struct buf *out) {
    buf_append(out, failure->message);
}

void orchestrator_endpoint_table(struct orchestrator_endpoint *endpoint,
                                 struct route_table *ret) {
    *ret = (struct route_table){.rows = rows,
                                .row_count = ARRAY_LEN(rows),
                                .body_max_bytes = endpoint->body_max_bytes,
                                .body_stretch_ms = endpoint->body_stretch_ms,
                                .body_stretch_bytes = endpoint->body_stretch_bytes,
                                .guard = endpoint_guard,
                                .failure_body = failure_text,
                                .failure_type = STR("text/plain; charset=utf-8"),
                                .ctx = endpoint};
}
