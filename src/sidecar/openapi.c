#include "sidecar/openapi.h"

#include "wire/json.h"

static const struct path {
    const char *path, *method, *summary;
    bool open;
} paths[] = {
    {"/health", "get", "whether the agent answers", true},
    {"/invoke", "post",
     "one turn; the answer has trace_id, tokens, cost_usd, model, latency_ms", false},
    {"/stream", "post", "one turn as server-sent events, which end with done and [DONE]",
     false},
    {"/resume", "post", "go on with a turn that waits for a human", false},
    {"/openapi.json", "get", "this document", true},
    {"/.well-known/agent.json", "get", "the agent's card", true},
};

static void openapi_write_path(struct json_writer *json, const struct path *path) {
    json_member_object(json, path->path);
    json_member_object(json, path->method);
    json_member_str(json, "summary", str_from(path->summary));
    if (path->open) json_member_raw(json, "security", STR("[]"));
    json_member_raw(json, "responses",
                    STR("{\"200\":{\"description\":\"as the Runtime Contract says\"}}"));
    json_close(json);
    json_close(json);
}

void openapi_write(const struct sidecar_options *options, struct buf *out) {
    struct json_writer json = json_writer(out);
    json_open_object(&json);
    json_member_str(&json, "openapi", STR("3.1.0"));
    json_member_object(&json, "info");
    json_member_str(&json, "title", options->agent_name);
    json_member_str(&json, "version",
                    options->agent_version.len ? options->agent_version : STR("0.1.0"));
    json_member_str(&json, "x-agentbreeder-runtime-contract", STR("1"));
    json_close(&json);
    json_member_object(&json, "paths");
    for (size_t i = 0; i < ARRAY_LEN(paths); i++) openapi_write_path(&json, &paths[i]);
    json_close(&json);
    json_member_raw(&json, "components",
                    STR("{\"securitySchemes\":{\"bearerAuth\":{\"type\":\"http\","
                        "\"scheme\":\"bearer\"}}}"));
    json_member_raw(&json, "security", STR("[{\"bearerAuth\":[]}]"));
    json_close(&json);
}
