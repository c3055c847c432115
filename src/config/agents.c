/* The agents that the file lists. Whose model each one asks is decided when all of it has been
 * read (models.c). */
#include "config/build.h"

#include "base/file.h"
#include "base/nearest.h"
#include "wire/json.h"

#include <stdlib.h>

#define INSTRUCTIONS_MAX_BYTES (1 * MIB)
#define TEMPERATURE_MAX 2
#define TOP_P_MAX 1

/* Numbers with a point keep so many digits behind it. */
#define POINT_DIGITS 6
#define POINT_SCALE 1e6

struct agent_nodes {
    struct config_agent agent;
    const struct yaml *system, *instructions, *instructions_file, *model, *provider, *fallback,
        *temperature, *top_p, *effort, *output, *output_file, *limits, *tools, *delegates;
};

#define FIELD(key, type, member, required)                                                     \
    { key, YAML_##type, offsetof(struct agent_nodes, member), required }

static const struct yaml_field agent_fields[] = {
    FIELD("slug", NAME, agent.slug, true),
    FIELD("description", TEXT, agent.description, false),
    FIELD("system", NODE, system, false),
    FIELD("instructions", NODE, instructions, false),
    FIELD("instructions_file", NODE, instructions_file, false),
    FIELD("model", NODE, model, false),
    FIELD("provider", NODE, provider, false),
    FIELD("fallback", NODE, fallback, false),
    FIELD("temperature", NODE, temperature, false),
    FIELD("top_p", NODE, top_p, false),
    FIELD("max_tokens", COUNT, agent.max_tokens, false),
    FIELD("effort", NODE, effort, false),
    FIELD("thinking_tokens", COUNT, agent.thinking_tokens, false),
    FIELD("window", COUNT, agent.window, false),
    FIELD("output", NODE, output, false),
    FIELD("output_file", NODE, output_file, false),
    FIELD("thinking", BOOL, agent.thinking, false),
    FIELD("tools", NODE, tools, false),
    FIELD("delegates", NODE, delegates, false),
    FIELD("limits", NODE, limits, false),
};

/* --- lists of names ----------------------------------------------------------------------- */

static bool read_names(const struct yaml *list, const struct str **ret, size_t *ret_count,
                       struct err *e) {
    if (!config_want(list, YAML_LIST, "a list of names, such as [one, two]", e)) return false;
    struct str *names = arena_alloc(list->document->arena, list->count * sizeof(*names));
    if (!names) return yaml_err(e, list, "this list is too large");
    size_t count = 0;
    for (const struct yaml *item = list->first; item; item = item->next) {
        if (!yaml_value(item, YAML_NAME, &names[count++], e)) return false;
    }
    *ret = names;
    *ret_count = count;
    return true;
}

/* An item of the list, or NAME: POLICY of the map. */
static bool read_tool(const struct yaml *node, bool in_map, struct config_agent_tool *ret,
                      struct err *e) {
    unsigned policy = CONFIG_TOOL_ALLOW;
    ret->at = node;
    if (in_map) {
        if (!config_tool_name(node, e)) return false;
        if (!config_choice(node, config_policies, &policy, e)) return false;
        ret->name = node->key;
        ret->said = true;
    } else if (!yaml_value(node, YAML_NAME, &ret->name, e)) {
        return false;
    }
    ret->policy = (enum config_policy)policy;
    return true;
}

static bool read_tools(const struct yaml *node, struct config_agent *ret, struct err *e) {
    if (node->kind == YAML_SCALAR)
        return yaml_err(e, node,
                        "expected a list of names, such as [one, two], or a map of "
                        "them to allow, ask or hidden");
    struct config_agent_tool *tools =
        arena_alloc(node->document->arena, node->count * sizeof(*tools));
    if (!tools) return yaml_err(e, node, "this list is too large");
    for (const struct yaml *item = node->first; item; item = item->next) {
        if (!read_tool(item, node->kind == YAML_MAP, &tools[ret->tool_count], e)) return false;
        for (size_t i = 0; i < ret->tool_count; i++) {
            if (str_equal(tools[i].name, tools[ret->tool_count].name))
                return yaml_err(e, item, "tool '" STR_FMT "' stands here twice",
                                STR_ARG(tools[i].name));
        }
        ret->tool_count++;
    }
    ret->tools = tools;
    ret->all_tools = false;
    return true;
}

/* --- instructions and output -------------------------------------------------------------- */

static bool too_large(const struct yaml *node, struct err *e) {
    return yaml_err(e, node, "the settings are too large");
}

/* The text of the file that `node` names, kept. */
static bool read_text_file(struct config *config, const struct yaml *node, struct str *ret,
                           struct err *e) {
    struct err why;
    struct str path;
    if (!yaml_value(node, YAML_TEXT, &path, e)) return false;
    struct buf room, text;
    buf_init(&room, 64 * KIB);
    buf_init(&text, INSTRUCTIONS_MAX_BYTES);
    bool read = file_read(config_from_folder(config, path, &room), &text, &why);
    bool done = read && arena_str(config->arena, buf_str(&text), ret);
    buf_done(&room);
    buf_done(&text);
    if (!read) return yaml_err(e, node, "%s", why.text);
    return done || too_large(node, e);
}

/* Three keys say the same; one is enough. */
static bool read_instructions(struct config *config, const struct agent_nodes *nodes,
                              struct str *ret, struct err *e) {
    const struct yaml *inline_text = nodes->system ? nodes->system : nodes->instructions;
    const struct yaml *second =
        nodes->system && nodes->instructions ? nodes->instructions : nodes->instructions_file;
    if (inline_text && second)
        return yaml_err_key(e, second, "this agent has instructions already; remove one");
    if (inline_text) return yaml_value(inline_text, YAML_TEXT, ret, e);
    return !second || read_text_file(config, second, ret, e);
}

static bool read_output(struct config *config, const struct agent_nodes *nodes, struct str *ret,
                        struct err *e) {
    struct err why;
    struct json schema;
    if (nodes->output && nodes->output_file)
        return yaml_err_key(e, nodes->output_file, "this agent has an output already");
    if (nodes->output) return yaml_value(nodes->output, YAML_JSON, ret, e);
    if (!nodes->output_file) return true;
    if (!read_text_file(config, nodes->output_file, ret, e)) return false;
    if (!json_read(*ret, &schema, &why)) return yaml_err(e, nodes->output_file, "%s", why.text);
    return schema.kind == JSON_OBJECT ||
           yaml_err(e, nodes->output_file, "expected a JSON Schema, which is an object");
}

/* --- how its model answers ---------------------------------------------------------------- */

static bool read_number(const struct yaml *node, unsigned max, double *ret, struct err *e) {
    uint64_t scaled;
    if (!node) return true;
    if (!config_decimal(node, POINT_DIGITS, &scaled, e)) return false;
    if ((double)scaled > max * POINT_SCALE)
        return yaml_err(e, node, "'" STR_FMT "' is more than %u", STR_ARG(node->text), max);
    *ret = (double)scaled / POINT_SCALE;
    return true;
}

static bool read_effort(const struct yaml *node, struct str *ret, struct err *e) {
    static const char *const efforts[] = {"low", "medium", "high", NULL};
    unsigned effort;
    if (!node) return true;
    if (!config_choice(node, efforts, &effort, e)) return false;
    *ret = str_from(efforts[effort]);
    return true;
}

static bool read_counts(const struct yaml *node, const struct config_agent *ret,
                        struct err *e) {
    static const char *const counts[] = {"max_tokens", "thinking_tokens", "window"};
    const uint64_t values[] = {ret->max_tokens, ret->thinking_tokens, ret->window};
    for (size_t i = 0; i < ARRAY_LEN(counts); i++) {
        const struct yaml *at = yaml_find(node, str_from(counts[i]));
        uint64_t said;
        struct err known; /* what is no number was refused before */
        if (at && yaml_value(at, YAML_COUNT, &said, &known) &&
            (values[i] == 0 || values[i] > INT32_MAX))
            return yaml_err(e, at, "%s is a count of tokens, 1 to %d", counts[i], INT32_MAX);
    }
    if (ret->window && ret->max_tokens >= ret->window)
        return yaml_err(e, yaml_find(node, STR("max_tokens")),
                        "a reply of %llu tokens leaves no room in a window of %llu",
                        (unsigned long long)ret->max_tokens, (unsigned long long)ret->window);
    return true;
}

/* --- limits ------------------------------------------------------------------------------- */

struct limit_nodes {
    uint64_t model_calls, tool_calls, tokens;
    const struct yaml *cost;
};

static const struct yaml_field limit_fields[] = {
    {"model_calls", YAML_COUNT, offsetof(struct limit_nodes, model_calls), false},
    {"tool_calls", YAML_COUNT, offsetof(struct limit_nodes, tool_calls), false},
    {"tokens", YAML_COUNT, offsetof(struct limit_nodes, tokens), false},
    {"cost", YAML_NODE, offsetof(struct limit_nodes, cost), false},
};

static bool read_limits(const struct yaml *map, struct config_agent *ret, struct err *e) {
    struct limit_nodes nodes = {0};
    if (!yaml_fields(map, "limits", limit_fields, ARRAY_LEN(limit_fields), &nodes, e))
        return false;
    for (const struct yaml *node = map->first; node; node = node->next) {
        uint64_t count;
        bool is_count = node != nodes.cost;
        if (is_count && (!yaml_value(node, YAML_COUNT, &count, e))) return false;
        if (is_count && (count == 0 || count > 1000000000))
            return yaml_err(e, node,
                            "a limit of " STR_FMT " makes no sense; leave it out, or "
                            "give it 1 to 1000000000",
                            STR_ARG(str_head(node->text, 40)));
    }
    ret->limits.model_calls = nodes.model_calls;
    ret->limits.tool_calls = nodes.tool_calls;
    ret->limits.tokens = nodes.tokens;
    if (!nodes.cost) return true;
    if (!config_dollars(nodes.cost, &ret->limits.cost_nano, e)) return false;
    return ret->limits.cost_nano > 0 ||
           yaml_err(e, nodes.cost, "a limit of nothing makes no sense; leave it out");
}

/* --- an agent ----------------------------------------------------------------------------- */

static bool has_agent(const struct config_agent *agents, size_t count, struct str slug) {
    for (size_t i = 0; i < count; i++) {
        if (str_equal(agents[i].slug, slug)) return true;
    }
    return false;
}

static bool read_agent(struct config *config, const struct yaml *node, struct config_agent *ret,
                       struct err *e) {
    struct agent_nodes nodes = {.agent = {.description = STR_EMPTY,
                                          .system = STR_EMPTY,
                                          .model = {.name = STR_EMPTY},
                                          .effort = STR_EMPTY,
                                          .output = STR_EMPTY,
                                          .temperature = -1,
                                          .top_p = -1,
                                          .all_tools = true}};
    if (!config_fields(config, node, "an agent", agent_fields, ARRAY_LEN(agent_fields), &nodes,
                       e))
        return false;
    *ret = nodes.agent;
    ret->at = node;
    ret->model_at = nodes.model;
    ret->provider_at = nodes.provider;
    ret->fallback_at = nodes.fallback;
    return config_step(config, read_instructions(config, &nodes, &ret->system, e), e) &&
           config_step(config, read_output(config, &nodes, &ret->output, e), e) &&
           config_step(config, read_counts(node, ret, e), e) &&
           config_step(config,
                       read_number(nodes.temperature, TEMPERATURE_MAX, &ret->temperature, e),
                       e) &&
           config_step(config, read_number(nodes.top_p, TOP_P_MAX, &ret->top_p, e), e) &&
           config_step(config, read_effort(nodes.effort, &ret->effort, e), e) &&
           config_step(config, !nodes.limits || read_limits(nodes.limits, ret, e), e) &&
           config_step(config, !nodes.tools || read_tools(nodes.tools, ret, e), e) &&
           config_step(config,
                       !nodes.delegates || read_names(nodes.delegates, &ret->delegates,
                                                      &ret->delegate_count, e),
                       e);
}

/* --- the list ----------------------------------------------------------------------------- */

static bool refuse_delegate(const struct config *config, const struct yaml *name,
                            struct err *e) {
    char hint[NEAREST_HINT_BYTES];
    struct nearest nearest;
    nearest_init(&nearest, name->text);
    for (size_t i = 0; i < config->agent_count; i++)
        nearest_offer(&nearest, config->agents[i].slug);
    return yaml_err(e, name, "no agent is called '" STR_FMT "'%s", STR_ARG(name->text),
                    nearest_hint(&nearest, hint));
}

/* A delegate may stand below the agent that names it, so this comes last. */
static bool check_delegates(struct config *config, const struct yaml *list, struct err *e) {
    for (const struct yaml *item = list->first; item; item = item->next) {
        const struct yaml *delegates = yaml_find(item, STR("delegates"));
        const struct yaml *name = delegates ? delegates->first : NULL;
        for (; name; name = name->next) {
            if (has_agent(config->agents, config->agent_count, name->text)) continue;
            refuse_delegate(config, name, e);
            if (!config_goes_on(config, e)) return false;
        }
    }
    return true;
}

bool config_read_agents(struct config *config, const struct config_input *input,
                        const struct yaml *node, struct err *e) {
    (void)input;
    if (!config_want(node, YAML_LIST, "a list of agents", e)) return false;
    struct config_agent *agents = arena_alloc(config->arena, node->count * sizeof(*agents));
    if (!agents) return yaml_err(e, node, "this list is too large");
    size_t count = 0;
    for (const struct yaml *item = node->first; item; item = item->next) {
        /* One with a mistake still counts as a name that others may know. */
        if (!read_agent(config, item, &agents[count], e)) return false;
        if (!agents[count].slug.len) continue;
        if (has_agent(agents, count, agents[count].slug)) {
            yaml_err(e, item, "a second agent '" STR_FMT "'; give it another slug",
                     STR_ARG(agents[count].slug));
            if (!config_goes_on(config, e)) return false;
            continue;
        }
        count++;
    }
    config->agents = agents;
    config->agent_count = count;
    return check_delegates(config, node, e);
}
