/* agents: the configured agents, and what each of them really gets. */
#include "agent/kind.h"
#include "config/config.h"
#include "contract/weir/inner.h"
#include "daemon/team_view.h"

#include <stdlib.h>

#define BODY_MAX_BYTES (16 * MIB)

/* "provider/model"; without a model of its own the provider alone. */
static void agents_model(const struct config *config, const struct config_agent *from,
                         struct buf *out) {
    const struct config_model *model = from ? &from->model : &config->model_default;
    if (from && from->kind) return; /* no model of ours */
    buf_append(out, model->provider ? model->provider->name : STR("scripted"));
    if (model->name.len) buf_printf(out, "/" STR_FMT, STR_ARG(model->name));
}

static void agents_tools(struct json_writer *json, const struct api_settings *settings,
                         const struct agent *agent) {
    static const char *const policies[] = {
        [TOOL_ALLOW] = "allow", [TOOL_ASK] = "ask", [TOOL_HIDDEN] = "hidden"};
    struct team_tool_view *views = NULL;
    size_t count = team_view(settings->team, settings->config, agent, &views);
    json_member_array(json, "tools");
    for (size_t i = 0; i < count; i++) {
        json_open_object(json);
        json_member_str(json, "name", views[i].name);
        json_member_str(json, "from", str_from(views[i].from));
        if (views[i].server.len) json_member_str(json, "server", views[i].server);
        json_member_str(json, "policy", str_from(policies[views[i].policy]));
        json_member_bool(json, "missing", views[i].missing);
        json_close(json);
    }
    json_close(json);
    free(views);
}

static void agents_write(struct json_writer *json, const struct api_settings *settings,
                         size_t index) {
    const struct config *config = settings->config;
    const struct agent *agent = &settings->team->agents[index];
    const struct config_agent *from = config->agent_count ? &config->agents[index] : NULL;
    struct buf model;
    buf_init(&model, 64 * KIB);
    agents_model(config, from, &model);
    json_open_object(json);
    json_member_str(json, "name", agent->slug);
    json_member_str(json, "description", agent->description);
    json_member_str(json, "kind", str_from(from && from->kind ? from->kind->name : "llm"));
    json_member_str(json, "model", buf_str(&model));
    agents_tools(json, settings, agent);
    json_member_array(json, "delegates");
    for (size_t i = 0; i < agent->delegate_count; i++)
        json_write_str(json, agent->delegates[i]);
    json_close(json);
    json_member_bool(json, "default", index == 0);
    json_close(json);
    buf_done(&model);
}

void api_list_agents(struct route_call *call, void *ctx) {
    struct api_instance *instance = ctx;
    const struct api_settings *settings = instance->settings;
    struct api_request request;
    struct route_json reply;
    if (!api_request_begin(&request, call, instance, NULL)) return;
    struct json_writer *json = route_json_object(&reply, BODY_MAX_BYTES);
    json_member_array(json, "agents");
    for (size_t i = 0; i < settings->team->agent_count; i++) agents_write(json, settings, i);
    json_close(json);
    route_json_reply(&reply, call, 200);
    arena_free(request.arena);
}
