/* AgentBreeder's agent.yaml: one agent, described for that platform.
 *
 * Its schema is closed, so what it does not know is refused here as well. What only means
 * something where the platform deploys it (cloud, scaling, access) is taken and passed over,
 * with one warning that names it.
 *
 * Source   contracts/agentbreeder.md 6.2 */
#include "config/build.h"

#include "base/nearest.h"

#define DESCRIPTION_MAX 500
#define NAME_MIN 2
#define NAME_MAX 63

struct breeder {
    struct str name, version, description, team, owner;
    struct config_agent agent;
    const struct yaml *framework, *language, *runtime, *model, *prompts, *tools, *deploy,
        *spec_version, *other; /* of all keys that mean nothing here */
};

#define FIELD(key, type, member, required)                                                     \
    { key, YAML_##type, offsetof(struct breeder, member), required }

static const struct yaml_field fields[] = {
    FIELD("spec_version", NODE, spec_version, false),
    FIELD("name", TEXT, name, true),
    FIELD("version", TEXT, version, true),
    FIELD("description", TEXT, description, false),
    FIELD("team", TEXT, team, true),
    FIELD("owner", TEXT, owner, true),
    FIELD("framework", NODE, framework, false),
    FIELD("language", NODE, language, false),
    FIELD("runtime", NODE, runtime, false),
    FIELD("model", NODE, model, true),
    FIELD("prompts", NODE, prompts, false),
    FIELD("tools", NODE, tools, false),
    FIELD("deploy", NODE, deploy, true),
    FIELD("tags", NODE, other, false),
    FIELD("type", NODE, other, false),
    FIELD("knowledge_bases", NODE, other, false),
    FIELD("guardrails", NODE, other, false),
    FIELD("subagents", NODE, other, false),
    FIELD("memory", NODE, other, false),
    FIELD("mcp_servers", NODE, other, false),
    FIELD("access", NODE, other, false),
    FIELD("gateways", NODE, other, false),
    FIELD("crewai", NODE, other, false),
    FIELD("google_adk", NODE, other, false),
    FIELD("claude_managed", NODE, other, false),
    FIELD("claude_sdk", NODE, other, false),
};

/* Nothing happens here because of them, whatever they say. */
static const char *const passed_over[] = {
    "knowledge_bases", "guardrails", "subagents", "memory",     "mcp_servers",
    "access",          "gateways",   "crewai",    "google_adk", "claude_managed",
    "claude_sdk",      "deploy",     NULL};

bool config_is_breeder(const struct config *config, const struct yaml *root) {
    static const char *const only_there[] = {"deploy", "framework", "owner", "spec_version"};
    for (size_t i = 0; i < ARRAY_LEN(only_there); i++) {
        if (yaml_find(root, str_from(only_there[i]))) return true;
    }
    bool named =
        str_ends(config->file, STR("agent.yaml")) || str_ends(config->file, STR("agent.yml"));
    return named && yaml_find(root, STR("name"));
}

/* --- names -------------------------------------------------------------------------------- */

static bool is_lower(char c) {
    return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9');
}

static bool check_name(const struct yaml *node, struct err *e) {
    struct str name = node->text;
    bool good = name.len >= NAME_MIN && name.len <= NAME_MAX && is_lower(name.at[0]) &&
                is_lower(name.at[name.len - 1]);
    for (size_t i = 0; good && i < name.len; i++)
        good = is_lower(name.at[i]) || name.at[i] == '-';
    return good || yaml_err(e, node,
                            "'" STR_FMT "' is no name: %d to %d lower-case letters, digits and "
                            "'-', with no '-' at its ends",
                            STR_ARG(str_head(name, 80)), NAME_MIN, NAME_MAX);
}

static bool check_version(const struct yaml *node, struct err *e) {
    struct str rest = node->text;
    bool good = true;
    for (int i = 0; i < 3; i++) {
        uint64_t number;
        struct str part = str_split(rest, '.', &rest);
        good = good && part.len && str_to_u64(part, &number) && (rest.at != NULL) == (i < 2);
    }
    return good || yaml_err(e, node, "'" STR_FMT "' is no version such as 1.0.0",
                            STR_ARG(str_head(node->text, 40)));
}

static bool check_owner(const struct yaml *node, struct err *e) {
    size_t at = str_find_byte(node->text, '@');
    bool good =
        at > 0 && at + 1 < node->text.len && str_find_byte(node->text, ' ') == node->text.len;
    return good || yaml_err(e, node, "'" STR_FMT "' is no e-mail address",
                            STR_ARG(str_head(node->text, 80)));
}

static bool check_names(const struct yaml *root, const struct breeder *breeder, struct err *e) {
    const struct yaml *description = yaml_find(root, STR("description"));
    if (breeder->description.len > DESCRIPTION_MAX)
        return yaml_err(e, description, "a description has at most %d characters",
                        DESCRIPTION_MAX);
    if (breeder->spec_version && !str_equal(breeder->spec_version->text, STR("v1")))
        return yaml_err(e, breeder->spec_version, "the only spec_version is v1");
    return check_name(yaml_find(root, STR("name")), e) &&
           check_version(yaml_find(root, STR("version")), e) &&
           check_owner(yaml_find(root, STR("owner")), e);
}

/* --- framework ---------------------------------------------------------------------------- */

static const char *const frameworks[] = {"langgraph",  "crewai", "claude_sdk", "openai_agents",
                                         "google_adk", "custom", NULL};

struct runtime_nodes {
    const struct yaml *language;
    struct str framework, version, entrypoint;
};

static const struct yaml_field runtime_fields[] = {
    {"language", YAML_NODE, offsetof(struct runtime_nodes, language), true},
    {"framework", YAML_NAME, offsetof(struct runtime_nodes, framework), true},
    {"version", YAML_TEXT, offsetof(struct runtime_nodes, version), false},
    {"entrypoint", YAML_TEXT, offsetof(struct runtime_nodes, entrypoint), false},
};

static bool read_runtime(const struct yaml *node, struct str *ret, struct err *e) {
    static const char *const languages[] = {"python", "node",   "go", "kotlin",
                                            "rust",   "csharp", NULL};
    struct runtime_nodes nodes = {.framework = STR_EMPTY};
    struct str language;
    unsigned known;
    if (!yaml_fields(node, "runtime", runtime_fields, ARRAY_LEN(runtime_fields), &nodes, e) ||
        !yaml_value(nodes.language, YAML_NAME, &language, e))
        return false;
    *ret = nodes.framework;
    /* By hand, in whatever language: the platform does not build it. */
    return str_equal(nodes.framework, STR("custom")) ||
           config_choice(nodes.language, languages, &known, e);
}

static bool read_framework(const struct yaml *root, const struct breeder *breeder,
                           struct str *ret, struct err *e) {
    unsigned framework;
    if (!breeder->framework == !breeder->runtime)
        return yaml_err(e, breeder->runtime ? breeder->runtime : root,
                        "an agent.yaml has either 'framework' or 'runtime'");
    if (breeder->runtime) return read_runtime(breeder->runtime, ret, e);
    if (!config_choice(breeder->framework, frameworks, &framework, e)) return false;
    *ret = str_from(frameworks[framework]);
    if (breeder->language && !str_equal(*ret, STR("custom")))
        return yaml_err_key(e, breeder->language,
                            "'language' stands beside framework: custom; "
                            "else it belongs into 'runtime'");
    struct str language;
    return !breeder->language || yaml_value(breeder->language, YAML_NAME, &language, e);
}

/* --- model, prompts, deploy --------------------------------------------------------------- */

struct model_nodes {
    const struct yaml *primary, *fallback, *temperature, *max_tokens;
    struct str gateway;
};

static const struct yaml_field model_fields[] = {
    {"primary", YAML_NODE, offsetof(struct model_nodes, primary), true},
    {"fallback", YAML_NODE, offsetof(struct model_nodes, fallback), false},
    {"gateway", YAML_TEXT, offsetof(struct model_nodes, gateway), false},
    {"temperature", YAML_NODE, offsetof(struct model_nodes, temperature), false},
    {"max_tokens", YAML_NODE, offsetof(struct model_nodes, max_tokens), false},
};

static bool read_model(const struct yaml *node, struct config_agent *ret, struct err *e) {
    struct model_nodes nodes = {0};
    uint64_t milli;
    if (!yaml_fields(node, "model", model_fields, ARRAY_LEN(model_fields), &nodes, e))
        return false;
    ret->model_at = nodes.primary;
    ret->fallback_at = nodes.fallback;
    if (nodes.temperature) {
        if (!config_decimal(nodes.temperature, 3, &milli, e)) return false;
        if (milli > 2000) return yaml_err(e, nodes.temperature, "a temperature is 0 to 2");
        ret->temperature = (double)milli / 1000;
    }
    if (!nodes.max_tokens) return true;
    if (!yaml_value(nodes.max_tokens, YAML_COUNT, &ret->max_tokens, e)) return false;
    return (ret->max_tokens > 0 && ret->max_tokens <= INT32_MAX) ||
           yaml_err(e, nodes.max_tokens, "max_tokens is a count of tokens, at least 1");
}

static bool read_prompts(const struct yaml *node, struct config_agent *ret, struct err *e) {
    if (!config_want(node, YAML_MAP, "prompts as a map, such as {system: TEXT}", e))
        return false;
    const struct yaml *system = yaml_find(node, STR("system"));
    return !system || yaml_value(system, YAML_TEXT, &ret->system, e);
}

struct deploy_nodes {
    const struct yaml *cloud, *other;
};

static const struct yaml_field deploy_fields[] = {
    {"cloud", YAML_NODE, offsetof(struct deploy_nodes, cloud), true},
    {"runtime", YAML_NODE, offsetof(struct deploy_nodes, other), false},
    {"region", YAML_NODE, offsetof(struct deploy_nodes, other), false},
    {"scaling", YAML_NODE, offsetof(struct deploy_nodes, other), false},
    {"resources", YAML_NODE, offsetof(struct deploy_nodes, other), false},
    {"env_vars", YAML_NODE, offsetof(struct deploy_nodes, other), false},
    {"secrets", YAML_NODE, offsetof(struct deploy_nodes, other), false},
    {"identity", YAML_NODE, offsetof(struct deploy_nodes, other), false},
    {"sidecar", YAML_NODE, offsetof(struct deploy_nodes, other), false},
};

static bool check_deploy(const struct yaml *node, struct err *e) {
    static const char *const clouds[] = {"aws",   "azure",          "gcp", "kubernetes",
                                         "local", "claude-managed", NULL};
    struct deploy_nodes nodes = {0};
    unsigned cloud;
    return yaml_fields(node, "deploy", deploy_fields, ARRAY_LEN(deploy_fields), &nodes, e) &&
           config_choice(nodes.cloud, clouds, &cloud, e);
}

/* --- tools -------------------------------------------------------------------------------- */

static struct str last_part(struct str ref) {
    size_t start = ref.len;
    while (start > 0 && ref.at[start - 1] != '/') start--;
    return str_skip(ref, start);
}

/* A tool of the platform's registry; of ours when it is called the same. Registry names like
 * '-', ours '_'. */
static bool read_tool(struct config *config, const struct yaml *node,
                      struct config_agent_tool *ret, struct err *e) {
    const struct yaml *name = yaml_find(node, STR("name"));
    const struct yaml *ref = yaml_find(node, STR("ref"));
    const struct yaml *approval = yaml_find(node, STR("approval"));
    struct str text;
    if (!config_want(node, YAML_MAP, "a tool as a map, such as {ref: tools/web-search}", e))
        return false;
    if (!name && !ref) return yaml_err(e, node, "a tool needs the key 'ref' or 'name'");
    if (!yaml_value(name ? name : ref, YAML_NAME, &text, e)) return false;
    bool asks =
        approval && approval->kind == YAML_SCALAR &&
        (str_equal(approval->text, STR("true")) || str_equal(approval->text, STR("required")));
    *ret = (struct config_agent_tool){.policy = asks ? CONFIG_TOOL_ASK : CONFIG_TOOL_ALLOW,
                                      .said = asks,
                                      .optional = true,
                                      .at = node};
    if (!arena_str(config->arena, last_part(text), &ret->name))
        return yaml_err(e, node, "the settings are too large");
    for (char *at = (char *)ret->name.at; *at; at++) {
        if (*at == '-') *at = '_';
    }
    return true;
}

static bool read_tools(struct config *config, const struct yaml *node, struct config_agent *ret,
                       struct err *e) {
    if (!config_want(node, YAML_LIST, "a list of tools", e)) return false;
    struct config_agent_tool *tools = arena_alloc(config->arena, node->count * sizeof(*tools));
    if (!tools) return yaml_err(e, node, "this list is too large");
    for (const struct yaml *item = node->first; item; item = item->next) {
        if (!read_tool(config, item, &tools[ret->tool_count++], e)) return false;
    }
    ret->tools = tools;
    return true;
}

/* --- the file ----------------------------------------------------------------------------- */

static void warn_of_passed_over(struct config *config, const struct yaml *root) {
    struct buf keys;
    buf_init(&keys, KIB);
    for (size_t i = 0; passed_over[i]; i++) {
        if (!yaml_find(root, str_from(passed_over[i]))) continue;
        buf_printf(&keys, "%s%s", keys.len ? ", " : "", passed_over[i]);
    }
    config_warn(config, STR_FMT ": taken, but without a meaning here: " STR_FMT,
                STR_ARG(str_head(config->file, 256)), STR_ARG(buf_str(&keys)));
    buf_done(&keys);
}

static bool tell(struct config *config, const char *key, struct str value, struct err *e) {
    return config_apply(config, setting_by_key(str_from(key)), value, FROM_FILE, NULL, e);
}

static bool take(struct config *config, const struct yaml *root, struct breeder *breeder,
                 struct err *e) {
    struct config_agent *agent = ARENA_NEW(config->arena, struct config_agent);
    struct str framework = STR_EMPTY;
    if (!agent) return yaml_err(e, root, "the settings are too large");
    *agent = (struct config_agent){.slug = breeder->name,
                                   .description = breeder->description,
                                   .system = STR_EMPTY,
                                   .effort = STR_EMPTY,
                                   .output = STR_EMPTY,
                                   .temperature = -1,
                                   .top_p = -1,
                                   .at = root};
    if (!check_names(root, breeder, e) || !read_framework(root, breeder, &framework, e) ||
        !read_model(breeder->model, agent, e) || !check_deploy(breeder->deploy, e) ||
        (breeder->prompts && !read_prompts(breeder->prompts, agent, e)) ||
        (breeder->tools && !read_tools(config, breeder->tools, agent, e)))
        return false;
    config->agents = agent;
    config->agent_count = 1;
    return tell(config, "agent.name", breeder->name, e) &&
           tell(config, "agent.version", breeder->version, e) &&
           tell(config, "agent.framework", framework, e);
}

bool config_read_breeder(struct config *config, const struct config_input *input,
                         const struct yaml *node, struct err *e) {
    struct breeder breeder = {.description = STR_EMPTY};
    (void)input;
    if (!yaml_fields(node, "an agent.yaml", fields, ARRAY_LEN(fields), &breeder, e) ||
        !take(config, node, &breeder, e))
        return false;
    warn_of_passed_over(config, node);
    return true;
}
