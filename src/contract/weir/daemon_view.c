/* health, settings, budgets: what this daemon is and how it is set up, for people who run it. */
#include "base/mem.h"
#include "base/version.h"
#include "config/config.h"
#include "contract/weir/inner.h"
#include "session/dormant_runs.h"

#define BODY_MAX_BYTES (16 * MIB)

static void view_reply(struct route_json *reply, struct route_call *call) {
    route_field(call, STR("cache-control"), STR("no-store"));
    route_json_reply(reply, call, 200);
}

bool api_view_begin(struct api_request *request, struct route_call *call,
                    struct api_instance *instance) {
    if (!api_request_begin(request, call, instance, NULL)) return false;
    if (request->caller.all_users) return true;
    route_refuse(call, 403, STR("FORBIDDEN"),
                 "this shows the whole daemon; the token of one user does not open it");
    arena_free(request->arena);
    return false;
}

/* --- GET /weir/v1/health ------------------------------------------------------------------ */

static void write_listeners(struct json_writer *json, const struct api_process *process) {
    json_member_array(json, "listeners");
    for (size_t i = 0; i < process->listener_count; i++) {
        const struct server_listener *listener = &process->listeners[i];
        json_open_object(json);
        json_member_str(json, "name", listener->name);
        json_member_str(json, "address", listener->address);
        json_member_i64(json, "port", listener->port);
        json_member_bool(json, "tls", listener->tls);
        json_close(json);
    }
    json_close(json);
}

static void write_server(struct json_writer *json, const struct api_process *process) {
    struct server_counts counts = process->counts(process->server);
    json_member_object(json, "server");
    json_member_u64(json, "connections", counts.connections);
    json_member_u64(json, "requests_open", counts.exchanges);
    json_member_u64(json, "connections_accepted", counts.accepted);
    json_member_u64(json, "requests", counts.requests);
    json_member_u64(json, "slow_readers_cut", counts.slow_cut);
    json_close(json);
}

static void write_memory(struct json_writer *json, const struct config *config) {
    json_member_object(json, "memory");
    json_member_u64(json, "counted_bytes", mem_counted());
    json_member_u64(json, "ceiling_bytes", config->limits.memory_bytes); /* 0: none */
    json_member_bool(json, "scarce", mem_scarce());
    json_close(json);
}

static void write_store(struct json_writer *json, const struct api_instance *instance,
                        const struct config *config) {
    json_member_object(json, "store");
    json_member_str(json, "kind", config->store.url.len ? STR("postgresql") : STR("sqlite"));
    json_member_u64(json, "epoch", store_epoch(instance->store));
    json_member_bool(json, "shared", store_is_shared(instance->store));
    json_close(json);
}

static void write_providers(struct json_writer *json, const struct config *config) {
    json_member_array(json, "providers");
    for (size_t i = 0; i < config->provider_count; i++) {
        const struct config_provider *provider = &config->providers[i];
        json_open_object(json);
        json_member_str(json, "name", provider->name);
        json_member_str(json, "kind", provider->kind);
        json_member_bool(json, "used", provider->used);
        json_member_bool(json, "key_set", provider->key.len > 0);
        json_close(json);
    }
    json_close(json);
}

void api_get_health(struct route_call *call, void *ctx) {
    struct api_instance *instance = ctx;
    const struct config *config = instance->settings->config;
    struct api_request request;
    struct route_json reply;
    if (!api_view_begin(&request, call, instance)) return;
    struct json_writer *json = route_json_object(&reply, BODY_MAX_BYTES);
    json_member_str(json, "status", instance->stopping ? STR("stopping") : STR("ok"));
    json_member_str(json, "version", STR(WEIR_VERSION));
    json_member_i64(json, "started_unix_ms", instance->process->started_unix_ms);
    write_listeners(json, instance->process);
    write_server(json, instance->process);
    write_memory(json, config);
    write_store(json, instance, config);
    write_providers(json, config);
    json_member_u64(json, "runs_asleep",
                    dormant_runs_count(directory_dormant(instance->directory)));
    view_reply(&reply, call);
    arena_free(request.arena);
}

/* --- GET /weir/v1/settings ---------------------------------------------------------------- */

void api_get_settings(struct route_call *call, void *ctx) {
    struct api_instance *instance = ctx;
    struct api_request request;
    struct route_json reply;
    if (!api_view_begin(&request, call, instance)) return;
    (void)route_json_begin(&reply, BODY_MAX_BYTES);
    config_print_json(instance->settings->config, &reply.text);
    view_reply(&reply, call);
    arena_free(request.arena);
}

/* --- GET /weir/v1/budgets ----------------------------------------------------------------- */

static void write_budget(struct json_writer *json, const struct budget *budget) {
    json_open_object(json);
    if (budget->workspace.len) {
        json_member_str(json, "workspace", budget->workspace);
    } else {
        json_member_null(json, "workspace"); /* each of them, by itself */
    }
    if (budget->agent.len) json_member_str(json, "agent", budget->agent);
    json_member_str(json, "period", budget->period == BUDGET_DAY ? STR("day") : STR("month"));
    if (budget->cost_nano_max) json_member_i64(json, "cost_nano_usd", budget->cost_nano_max);
    if (budget->tokens_max) json_member_i64(json, "tokens", budget->tokens_max);
    json_close(json);
}

void api_list_budgets(struct route_call *call, void *ctx) {
    struct api_instance *instance = ctx;
    const struct config *config = instance->settings->config;
    struct api_request request;
    struct route_json reply;
    if (!api_request_begin(&request, call, instance, NULL)) return;
    struct json_writer *json = route_json_object(&reply, BODY_MAX_BYTES);
    json_member_array(json, "budgets");
    for (size_t i = 0; i < config->budget_count; i++) {
        const struct budget *budget = &config->budgets[i];
        bool seen = budget->workspace.len == 0 || request.caller.all_workspaces ||
                    str_equal(budget->workspace, api_workspace(&request.caller));
        if (seen) write_budget(json, budget);
    }
    json_close(json);
    view_reply(&reply, call);
    arena_free(request.arena);
}
