/* AgentBreeder's agent.yaml: one agent, described for that platform.
 *
 * Its schema is closed, so unknown keys are refused here as well. Keys that matter only when
 * the platform deploys the agent (cloud, scaling, access) are accepted and ignored, with one
 * warning that names them.
 *
 * Source   contracts/agentbreeder.md 6.2 */
#include "config/rows.h"

#include "base/nearest.h"

#define DESCRIPTION_MAX 500
#define NAME_MIN 2
#define NAME_MAX 63

struct breeder {
    struct str name, version, description, framework, language;
    struct str unused; /* of keys whose text is looked at and means nothing here */
    struct config_agent agent;
    bool asks; /* its guardrails have a human decide about its tools */
};

#define ROW_OF struct breeder

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

static bool check_name(const struct reading *reading, const struct yaml *node, struct err *e) {
    (void)reading;
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

static bool check_version(const struct reading *reading, const struct yaml *node,
                          struct err *e) {
    (void)reading;
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

static bool check_owner(const struct reading *reading, const struct yaml *node, struct err *e) {
    (void)reading;
    size_t at = str_find_byte(node->text, '@');
    bool good =
        at > 0 && at + 1 < node->text.len && str_find_byte(node->text, ' ') == node->text.len;
    return good || yaml_err(e, node, "'" STR_FMT "' is no e-mail address",
                            STR_ARG(str_head(node->text, 80)));
}

static bool check_description(const struct reading *reading, const struct yaml *node,
                              struct err *e) {
    const struct breeder *breeder = reading->entry;
    return breeder->description.len <= DESCRIPTION_MAX ||
           yaml_err(e, node, "a description has at most %d characters", DESCRIPTION_MAX);
}

static bool check_spec(const struct reading *reading, const struct yaml *node, struct err *e) {
    (void)reading;
    return str_equal(node->text, STR("v1")) || yaml_err(e, node, "the only spec_version is v1");
}

/* --- framework ---------------------------------------------------------------------------- */

static const char *const frameworks[] = {"langgraph",  "crewai", "claude_sdk", "openai_agents",
                                         "google_adk", "custom", NULL};

/* By hand, in whatever language: the platform does not build it. */
static bool check_language(const struct reading *reading, const struct yaml *node,
                           struct err *e) {
    static const char *const languages[] = {"python", "node",   "go", "kotlin",
                                            "rust",   "csharp", NULL};
    const struct breeder *breeder = reading->entry;
    unsigned known;
    return str_equal(breeder->framework, STR("custom")) ||
           config_choice(node, languages, &known, e);
}

static const struct setting runtime_rows[] = {
    {.key = "framework", NAME(framework), .required = true},
    {.key = "version", TEXT(unused)},
    {.key = "entrypoint", TEXT(unused)},
    {.key = "language", NAME(unused), .required = true, .read = check_language},
};

static const struct entry_schema runtime = {.what = "runtime", ROWS(runtime_rows)};

#define EITHER "an agent.yaml has either 'framework' or 'runtime'"

static bool read_runtime(const struct reading *reading, const struct yaml *node,
                         struct err *e) {
    if (yaml_find(reading->map, STR("framework"))) return yaml_err(e, node, EITHER);
    return entry_read(&runtime, reading, node, e);
}

static bool check_framework(const struct breeder *breeder, const struct yaml *root,
                            struct err *e) {
    const struct yaml *language = yaml_find(root, STR("language"));
    if (!breeder->framework.len) return yaml_err(e, root, EITHER);
    return yaml_find(root, STR("runtime")) || !language ||
           str_equal(breeder->framework, STR("custom")) ||
           yaml_err_key(e, language,
                        "'language' stands beside framework: custom; "
                        "else it belongs into 'runtime'");
}

/* --- model, prompts, deploy --------------------------------------------------------------- */

static const struct setting model_rows[] = {
    {.key = "primary", NODE(agent.model_at), .required = true},
    {.key = "fallback", NODE(agent.fallback_at)},
    {.key = "gateway", TEXT(unused)},
    {.key = "temperature",
     DECIMAL(agent.temperature),
     .digits = 3,
     .most = 2,
     .beyond = "a temperature is 0 to 2"},
    {.key = "max_tokens",
     COUNT(agent.max_tokens),
     .least = 1,
     .most = INT32_MAX,
     .beyond = "max_tokens is a count of tokens, at least 1"},
};

static const struct entry_schema model = {.what = "model", ROWS(model_rows)};

static bool read_prompts(const struct reading *reading, const struct yaml *node,
                         struct err *e) {
    struct breeder *breeder = reading->entry;
    if (!config_want(node, YAML_MAP, "prompts as a map, such as {system: TEXT}", e))
        return false;
    const struct yaml *system = yaml_find(node, STR("system"));
    return !system || yaml_value(system, YAML_TEXT, &breeder->agent.system, e);
}

static const char *const clouds[] = {"aws",   "azure",          "gcp", "kubernetes",
                                     "local", "claude-managed", NULL};

static const struct setting deploy_rows[] = {
    {.key = "cloud", WORD(unused), .choices = clouds, .required = true},
    {.key = "runtime"},
    {.key = "region"},
    {.key = "scaling"},
    {.key = "resources"},
    {.key = "env_vars"},
    {.key = "secrets"},
    {.key = "identity"},
    {.key = "sidecar"},
};

static const struct entry_schema deploy = {.what = "deploy", ROWS(deploy_rows)};

/* --- tools -------------------------------------------------------------------------------- */

static struct str last_part(struct str ref) {
    size_t start = ref.len;
    while (start > 0 && ref.at[start - 1] != '/') start--;
    return str_skip(ref, start);
}

/* A tool of the platform's registry, or ours of the same name. Registry names use '-', ours use
 * '_'. */
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

static bool read_tools(const struct reading *reading, const struct yaml *node, struct err *e) {
    struct config *config = reading->config;
    struct breeder *breeder = reading->entry;
    struct config_agent *ret = &breeder->agent;
    if (!config_want(node, YAML_LIST, "a list of tools", e)) return false;
    struct config_agent_tool *tools = arena_alloc(config->arena, node->count * sizeof(*tools));
    if (!tools) return yaml_err(e, node, "this list is too large");
    for (const struct yaml *item = node->first; item; item = item->next) {
        if (!read_tool(config, item, &tools[ret->tool_count++], e)) return false;
    }
    ret->tools = tools;
    return true;
}

/* framework: custom with a command is a program that speaks our protocol. */
static bool read_command(const struct reading *reading, const struct yaml *node,
                         struct err *e) {
    struct breeder *breeder = reading->entry;
    struct config_agent *agent = &breeder->agent;
    if (!str_equal(breeder->framework, STR("custom")))
        return yaml_err_key(e, node, "'command' stands beside framework: custom");
    agent->kind = CONFIG_AGENT_PROCESS;
    agent->processes = CONFIG_PROCESSES;
    agent->silence_ms = CONFIG_SILENCE_MS;
    return config_read_command(reading, node, agent, e) &&
           config_read_environment(reading, NULL, node, agent, e);
}

static bool read_guardrails(const struct reading *reading, const struct yaml *node,
                            struct err *e) {
    struct breeder *breeder = reading->entry;
    return config_read_breeder_guardrails(reading, node, &breeder->agent, &breeder->asks, e);
}

/* hitl_approve: a human decides about each call. */
static void ask_for_tools(struct config_agent *agent) {
    struct config_agent_tool *tools = (struct config_agent_tool *)agent->tools; /* ours */
    for (size_t i = 0; i < agent->tool_count; i++) {
        tools[i].policy = CONFIG_TOOL_ASK;
        tools[i].said = true;
    }
}

/* --- the file ----------------------------------------------------------------------------- */

/* Rows marked unused have no effect, whatever their value. */
static const struct setting rows[] = {
    {.key = "name", TEXT(name), .required = true, .read = check_name},
    {.key = "version", TEXT(version), .required = true, .read = check_version},
    {.key = "description", TEXT(description), .read = check_description},
    {.key = "team", TEXT(unused), .required = true},
    {.key = "owner", TEXT(unused), .required = true, .read = check_owner},
    {.key = "spec_version", .read = check_spec},
    {.key = "framework", WORD(framework), .choices = frameworks},
    {.key = "language", NAME(language)},
    {.key = "command", .read = read_command},
    {.key = "runtime", .read = read_runtime},
    {.key = "model", PART(model), .required = true},
    {.key = "prompts", .read = read_prompts},
    {.key = "tools", .read = read_tools},
    {.key = "tags"},
    {.key = "type"},
    {.key = "knowledge_bases", .kind = SETTING_UNUSED},
    {.key = "guardrails", .read = read_guardrails},
    {.key = "subagents", .kind = SETTING_UNUSED},
    {.key = "memory", .kind = SETTING_UNUSED},
    {.key = "mcp_servers", .kind = SETTING_UNUSED},
    {.key = "access", .kind = SETTING_UNUSED},
    {.key = "gateways", .kind = SETTING_UNUSED},
    {.key = "crewai", .kind = SETTING_UNUSED},
    {.key = "google_adk", .kind = SETTING_UNUSED},
    {.key = "claude_managed", .kind = SETTING_UNUSED},
    {.key = "claude_sdk", .kind = SETTING_UNUSED},
    {.key = "deploy", PART(deploy), .required = true},
};

static const struct breeder blank = {.agent = {.slug = STR_INIT(""),
                                               .description = STR_INIT(""),
                                               .system = STR_INIT(""),
                                               .model.name = STR_INIT(""),
                                               .effort = STR_INIT(""),
                                               .output = STR_INIT(""),
                                               .temperature = -1,
                                               .top_p = -1}};

static const struct entry_schema schema = {
    .what = "an agent.yaml", ROWS(rows), .blank = &blank};

/* Whatever its `deploy` says: nothing is deployed here. */
static void warn_of_unused(struct config *config, const struct yaml *root) {
    struct buf keys;
    buf_init(&keys, KIB);
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        bool unused = rows[i].kind == SETTING_UNUSED || rows[i].part == &deploy;
        if (!unused || !yaml_find(root, str_from(rows[i].key))) continue;
        buf_printf(&keys, "%s%s", keys.len ? ", " : "", rows[i].key);
    }
    config_warn(config, STR_FMT ": taken, but without a meaning here: " STR_FMT,
                STR_ARG(str_head(config->file, 256)), STR_ARG(buf_str(&keys)));
    buf_done(&keys);
}

static bool breeder_tell(struct config *config, const char *key, struct str value,
                         struct err *e) {
    return config_apply(config, setting_by_key(config, str_from(key)), value, FROM_FILE, NULL,
                        e);
}

bool config_read_breeder(struct config *config, const struct config_input *input,
                         const struct yaml *node, struct err *e) {
    struct breeder breeder;
    const struct reading reading = {config, input, node, &breeder, 0};
    struct config_agent *agent = ARENA_NEW(config->arena, struct config_agent);
    if (!agent) return config_too_large(node, e);
    entry_blank(&schema, &breeder);
    if (!entry_read(&schema, &reading, node, e) || !check_framework(&breeder, node, e))
        return false;
    *agent = breeder.agent;
    if (breeder.asks) ask_for_tools(agent);
    agent->slug = breeder.name;
    agent->description = breeder.description;
    agent->at = node;
    config->agents = agent;
    config->agent_count = 1;
    if (!breeder_tell(config, "agent.name", breeder.name, e) ||
        !breeder_tell(config, "agent.version", breeder.version, e) ||
        !breeder_tell(config, "agent.framework", breeder.framework, e))
        return false;
    warn_of_unused(config, node);
    return true;
}
