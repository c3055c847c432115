/* models: each agent is a model. */
#include "contract/openai/api_error.h"
#include "contract/openai/openai.h"
#include "route/route_json.h"

#define LIST_MAX_BYTES (8 * MIB)
#define NAME_MAX_BYTES (8 * MIB)

static void write_model(const struct openai_instance *instance, const struct agent *agent,
                        struct json_writer *json) {
    json_open_object(json);
    json_member_str(json, "id", agent->slug);
    json_member_str(json, "object", STR("model"));
    json_member_i64(json, "created", instance->started_unix_s);
    json_member_str(json, "owned_by", STR("weir"));
    json_member_str(json, "name", agent->slug);
    json_member_str(json, "description", agent->description);
    json_close(json);
}

void openai_list_models(struct route_call *call, void *ctx) {
    const struct openai_instance *instance = ctx;
    const struct engine *engine = instance->guest.site.host->engine;
    struct route_json reply;
    struct json_writer *json = route_json_object(&reply, LIST_MAX_BYTES);
    json_member_str(json, "object", STR("list"));
    json_member_array(json, "data");
    for (size_t i = 0; i < engine->agent_count; i++)
        write_model(instance, &engine->agents[i], json);
    json_close(json);
    route_json_reply(&reply, call, 200);
}

void openai_get_model(struct route_call *call, void *ctx) {
    const struct openai_instance *instance = ctx;
    const struct engine *engine = instance->guest.site.host->engine;
    struct route_json reply;
    struct buf name;
    struct err e;
    buf_init(&name, NAME_MAX_BYTES);
    bool named = route_parameter_text(call, STR("model"), &name);
    const struct agent *agent = named ? engine_agent(engine, buf_str(&name)) : NULL;
    if (agent) {
        write_model(instance, agent, route_json_begin(&reply, LIST_MAX_BYTES));
        route_json_reply(&reply, call, 200);
    } else {
        engine_refuse_agent(engine, named ? buf_str(&name) : STR_EMPTY, &e);
        api_error_of_model(call, &e);
    }
    buf_done(&name);
}
