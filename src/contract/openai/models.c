/* models: each agent is a model. */
#include "contract/openai/api_error.h"
#include "contract/openai/openai.h"
#include "wire/json.h"

#define LIST_MAX_BYTES (8 * MIB)

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

static void models_reply(struct route_call *call, const struct buf *body) {
    route_reply(call, 200, STR("application/json"), buf_str(body));
}

void openai_list_models(struct route_call *call, void *ctx) {
    const struct openai_instance *instance = ctx;
    const struct engine *engine = instance->guest.site.host->engine;
    struct buf body;
    buf_init(&body, LIST_MAX_BYTES);
    struct json_writer json = json_writer(&body);
    json_open_object(&json);
    json_member_str(&json, "object", STR("list"));
    json_member_array(&json, "data");
    for (size_t i = 0; i < engine->agent_count; i++)
        write_model(instance, &engine->agents[i], &json);
    json_close(&json);
    json_close(&json);
    models_reply(call, &body);
    buf_done(&body);
}

void openai_get_model(struct route_call *call, void *ctx) {
    const struct openai_instance *instance = ctx;
    const struct engine *engine = instance->guest.site.host->engine;
    struct buf out;
    struct err e;
    buf_init(&out, LIST_MAX_BYTES);
    bool named = route_parameter_text(call, STR("model"), &out);
    const struct agent *agent = named ? engine_agent(engine, buf_str(&out)) : NULL;
    if (agent) {
        buf_clear(&out);
        struct json_writer json = json_writer(&out);
        write_model(instance, agent, &json);
        models_reply(call, &out);
    } else {
        engine_refuse_agent(engine, named ? buf_str(&out) : STR_EMPTY, &e);
        api_error_of_model(call, &e);
    }
    buf_done(&out);
}
