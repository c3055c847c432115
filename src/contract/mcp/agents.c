#include "contract/mcp/agents.h"

#include "base/id.h"
#include "contract/event_id.h"
#include "contract/mcp/agent_call.h"

/* --- the table ---------------------------------------------------------------------------- */

#define INPUT_SCHEMA                                                                           \
    "{\"type\":\"object\",\"properties\":{"                                                    \
    "\"message\":{\"type\":\"string\",\"description\":\"what the agent is to do, or the "      \
    "decision that it waits for\"},"                                                           \
    "\"session\":{\"type\":\"string\",\"description\":\"the conversation to go on with; "      \
    "without it a new one begins\"},"                                                          \
    "\"approval\":{\"type\":\"string\",\"description\":\"the id of the question that message " \
    "decides\"}},\"required\":[\"message\"],\"additionalProperties\":false}"

#define ANNOTATIONS "{\"readOnlyHint\":false,\"idempotentHint\":false,\"openWorldHint\":true}"

static bool agents_describe(const struct agent *agent, struct arena *arena, struct str *ret) {
    struct buf text;
    if (agent->description.len) return arena_str(arena, agent->description, ret);
    buf_init(&text, 4 * KIB);
    buf_append(&text, STR("Sends a message to the agent "));
    buf_append(&text, agent->slug);
    buf_append(&text, STR(" and returns its answer."));
    bool kept = arena_str(arena, buf_str(&text), ret);
    buf_done(&text);
    return kept;
}

/* A reload may replace the engine while a call is read, so what is lent is copied. */
static bool agents_at(size_t index, const struct toolserver_caller *caller, struct arena *arena,
                      struct toolserver_tool *ret, void *ctx) {
    const struct mcp_instance *instance = ctx;
    const struct engine *engine = instance->guest.site.host->engine;
    (void)caller;
    if (index >= engine->agent_count) return false;
    const struct agent *agent = &engine->agents[index];
    struct toolserver_tool tool = {.input_schema = STR(INPUT_SCHEMA),
                                   .annotations = STR(ANNOTATIONS),
                                   .output_schema = agent_result_schema,
                                   .lasts = true};
    struct str schema = agent_call_schema(agent);
    if (!arena_str(arena, agent->slug, &tool.name) ||
        !agents_describe(agent, arena, &tool.description) ||
        (schema.len && !arena_str(arena, schema, &tool.output_schema)))
        return false;
    *ret = tool;
    return true;
}

/* --- the arguments of a call, which are kept in its arena ---------------------------------- */

static bool read_text(struct json arguments, const char *key, struct arena *arena,
                      struct str *ret, struct err *e) {
    struct json value = json_find(arguments, str_from(key));
    *ret = STR_EMPTY;
    if (json_is_absent(value)) return true;
    if (value.kind != JSON_STRING)
        return err_set(e, ERR_INVALID_ARGUMENT, "%s must be a string, not %s", key,
                       json_kind_name(value.kind));
    return json_str(value, arena, ret) ||
           err_set(e, ERR_INVALID_ARGUMENT, "%s is longer than a call may hold", key);
}

static bool read_approval(struct str text, struct agent_call *ret, struct err *e) {
    return text.len == 0 || event_id_read(text, &ret->approval_run, &ret->approval_seq) ||
           err_set(e, ERR_INVALID_ARGUMENT,
                   "approval is not the id of a question; pass the one that the waiting answer "
                   "had");
}

static bool check_keys(struct json arguments, struct err *e) {
    static const char *const keys[] = {"message", "session", "approval", NULL};
    struct json_reader reader = json_enter(arguments);
    struct json key, value;
    while (json_next_member(&reader, &key, &value)) {
        size_t i = 0;
        while (keys[i] && !json_is(key, str_from(keys[i]))) i++;
        if (!keys[i])
            return err_set(e, ERR_INVALID_ARGUMENT,
                           "there is no argument " STR_FMT
                           "; an agent takes message, session and approval",
                           STR_ARG(str_head(key.raw, 100)));
    }
    return json_check_once(arguments, keys, e);
}

static bool read_arguments(struct json arguments, struct arena *arena, struct agent_call *ret,
                           struct err *e) {
    struct str approval = STR_EMPTY;
    if (!check_keys(arguments, e) ||
        !read_text(arguments, "message", arena, &ret->message, e) ||
        !read_text(arguments, "session", arena, &ret->name.session, e) ||
        !read_text(arguments, "approval", arena, &approval, e))
        return false;
    if (ret->message.len == 0)
        return err_set(e, ERR_INVALID_ARGUMENT,
                       "message is missing: say what the agent is to do");
    if (approval.len && !ret->name.session.len)
        return err_set(
            e, ERR_INVALID_ARGUMENT,
            "an approval needs its session; pass the one that the waiting answer had");
    return (!ret->name.session.len || id_check("session", ret->name.session, e)) &&
           read_approval(approval, ret, e);
}

/* --- its calls ---------------------------------------------------------------------------- */

static void agents_call(struct toolserver_call *call, const struct toolserver_tool *tool,
                        struct json arguments, void *ctx) {
    struct mcp_instance *instance = ctx;
    struct err e;
    const struct agent *agent = engine_agent(instance->guest.site.host->engine, tool->name);
    struct agent_call *agent_call = agent_call_new(call, instance);
    struct arena *arena = toolserver_call_arena(call);
    agent_call->agent = tool->name;
    if (agent && agent_call_schema(agent).len) agent_call->schema = tool->output_schema;
    if (read_arguments(arguments, arena, agent_call, &e)) {
        agent_call_begin(agent_call);
    } else {
        agent_call_fail(agent_call, &e);
    }
}

static void mcp_agents_on_missing(const struct err *failed, void *ctx) {
    struct agent_call *agent_call = ctx;
    if (failed && agent_call->known) {
        agent_call_fail(agent_call, failed);
    } else {
        agent_call_refuse(agent_call);
    }
}

void agent_call_follow(struct agent_call *agent_call, uint64_t run, uint64_t after_seq) {
    const struct http_turn_rules *rules = &agent_call->instance->guest.settings->rules;
    const struct follow_options options = {
        .loop = toolserver_call_loop(agent_call->call),
        .directory = agent_call_directory(agent_call),
        .store = session_table_store(agent_call_sessions(agent_call)),
        .run = run,
        .after_seq = after_seq,
        .mode = CLOSE_DONE,
        .stall_ms = rules->stall_ms,
        .heartbeat_ms = rules->heartbeat_ms,
        .wire = &agent_call_wire,
        .missing = mcp_agents_on_missing,
        .ctx = agent_call};
    agent_call->run_id = run;
    agent_call->follow = follow_new(&options);
}

/* From the first event on, because that says whose run it is. */
static void agents_resume(struct toolserver_call *call, uint64_t run, uint64_t after_seq,
                          void *ctx) {
    struct mcp_instance *instance = ctx;
    struct agent_call *agent_call = agent_call_new(call, instance);
    agent_call->after_seq = after_seq;
    agent_call_follow(agent_call, run, 0);
}

const struct toolserver_table mcp_agents = {
    .at = agents_at, .call = agents_call, .resume = agents_resume};
