/* AgentBreeder's agent.yaml: one agent, described for that platform.
 *
 * Its schema is closed, so unknown keys are refused here as well. Keys that matter only when
 * the platform deploys the agent (cloud, scaling, access) are accepted and ignored, with one
 * warning that names them.
 *
 * Source   contracts/agentbreeder.md 6.2 */
#include "config/breeder.h"

#include "agent/kind.h"
#include "base/file.h"
#include "base/utf8.h"
#include "config/breeder_item.h"
#include "config/rows.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#define DESCRIPTION_MAX 500
#define NAME_MIN 2
#define NAME_MAX 63

struct breeder {
    struct str name, version, description, framework, language;
    struct str unused; /* for keys whose text is checked and not used */
    struct config_agent agent;
    struct config_breeder *names; /* the names it refers to */
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

static bool breeder_check_name(const struct reading *reading, const struct yaml *node,
                               struct err *e) {
    (void)reading;
    struct str name = node->text;
    bool good = name.len >= NAME_MIN && name.len <= NAME_MAX && is_lower(name.at[0]) &&
                is_lower(name.at[name.len - 1]);
    for (size_t i = 0; good && i < name.len; i++)
        good = is_lower(name.at[i]) || name.at[i] == '-';
    return good ||
           yaml_err(e, node,
                    "'" STR_FMT "' is not a name: %d to %d lower-case letters, digits and "
                    "'-', with no '-' at its ends",
                    STR_ARG(str_head(name, 80)), NAME_MIN, NAME_MAX);
}

static bool breeder_check_version(const struct reading *reading, const struct yaml *node,
                                  struct err *e) {
    (void)reading;
    struct str rest = node->text;
    bool good = true;
    for (int i = 0; i < 3; i++) {
        uint64_t number;
        struct str part = str_split(rest, '.', &rest);
        good = good && part.len && str_to_u64(part, &number) && (rest.at != NULL) == (i < 2);
    }
    return good || yaml_err(e, node, "'" STR_FMT "' is not a version such as 1.0.0",
                            STR_ARG(str_head(node->text, 40)));
}

static bool check_owner(const struct reading *reading, const struct yaml *node, struct err *e) {
    (void)reading;
    size_t at = str_find_byte(node->text, '@');
    bool good =
        at > 0 && at + 1 < node->text.len && str_find_byte(node->text, ' ') == node->text.len;
    return good || yaml_err(e, node, "'" STR_FMT "' is not an e-mail address",
                            STR_ARG(str_head(node->text, 80)));
}

static bool check_description(const struct reading *reading, const struct yaml *node,
                              struct err *e) {
    const struct breeder *breeder = reading->entry;
    struct str text = breeder->description;
    return utf8_head(text, DESCRIPTION_MAX) == text.len ||
           yaml_err(e, node, "a description has at most %d characters", DESCRIPTION_MAX);
}

static bool check_spec(const struct reading *reading, const struct yaml *node, struct err *e) {
    (void)reading;
    return str_equal(node->text, STR("v1")) || yaml_err(e, node, "the only spec_version is v1");
}

/* --- framework ---------------------------------------------------------------------------- */

static const char *const frameworks[] = {"langgraph",  "crewai", "claude_sdk", "openai_agents",
                                         "google_adk", "custom", NULL};

/* A custom framework may use any language, because the platform does not build it. */
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

#define PROMPTS "prompts/"

/* A prompt named "prompts/NAME" or "prompts/NAME@1.2.0" is a file next to the agent.yaml. */
static bool find_prompt(const struct config *config, struct str name, struct buf *path) {
    static const char *const endings[] = {".md", ".txt", ".prompt"};
    struct str bare = str_head(name, str_find_byte(name, '@'));
    for (size_t i = 0; i < ARRAY_LEN(endings); i++) {
        struct buf file;
        buf_init(&file, KIB);
        buf_printf(&file, STR_FMT "%s", STR_ARG(bare), endings[i]);
        buf_clear(path);
        struct str found = config_from_folder(config, buf_str(&file), path);
        if (found.at != path->at) buf_append(path, found);
        buf_append_byte(path, '\0');
        buf_done(&file);
        if (buf_ok(path) && access(path->at, R_OK) == 0) return true;
    }
    return false;
}

static bool read_prompt_file(struct config *config, const struct yaml *system, struct str path,
                             struct str *ret, struct err *e) {
    struct buf text;
    struct err why;
    buf_init(&text, MIB);
    bool done = file_read(path, &text, &why) ? arena_str(config->arena, buf_str(&text), ret) ||
                                                   config_too_large(system, e)
                                             : yaml_err(e, system, "%s", why.text);
    buf_done(&text);
    return done;
}

static bool read_prompts(const struct reading *reading, const struct yaml *node,
                         struct err *e) {
    struct breeder *breeder = reading->entry;
    struct config *config = reading->config;
    if (!config_want(node, YAML_MAP, "prompts as a map, such as {system: TEXT}", e))
        return false;
    const struct yaml *system = yaml_find(node, STR("system"));
    if (!system) return true;
    if (!yaml_value(system, YAML_TEXT, &breeder->agent.system, e)) return false;
    struct str name = breeder->agent.system;
    bool named =
        str_starts(name, STR(PROMPTS)) && str_find_byte(str_trim(name), '\n') == name.len;
    if (!named) return true;
    struct buf path;
    buf_init(&path, 4 * KIB);
    bool found = find_prompt(config, name, &path);
    breeder->agent.system = STR_EMPTY;
    if (!found) breeder->names->prompt = system;
    bool done = !found ||
                read_prompt_file(config, system, str_from(path.at), &breeder->agent.system, e);
    buf_done(&path);
    return done;
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

/* --- references --------------------------------------------------------------------------- */

struct str breeder_last_part(struct str ref) {
    size_t start = ref.len;
    while (start > 0 && ref.at[start - 1] != '/') start--;
    return str_skip(ref, start);
}

struct str breeder_text(const struct yaml *item, const char *key) {
    const struct yaml *node = yaml_find(item, str_from(key));
    return node && node->kind == YAML_SCALAR && !yaml_is_null(node) ? node->text : STR_EMPTY;
}

static bool breeder_read_tools(const struct reading *reading, const struct yaml *node,
                               struct err *e) {
    ((struct breeder *)reading->entry)->names->tools = node;
    return breeder_check_items(reading->config, node, BREEDER_TOOL, e);
}

static bool read_servers(const struct reading *reading, const struct yaml *node,
                         struct err *e) {
    ((struct breeder *)reading->entry)->names->servers = node;
    return breeder_check_items(reading->config, node, BREEDER_SERVER, e);
}

static bool read_knowledge(const struct reading *reading, const struct yaml *node,
                           struct err *e) {
    ((struct breeder *)reading->entry)->names->knowledge = node;
    return breeder_check_items(reading->config, node, BREEDER_KNOWLEDGE, e);
}

static bool read_subagents(const struct reading *reading, const struct yaml *node,
                           struct err *e) {
    ((struct breeder *)reading->entry)->names->subagents = node;
    return breeder_check_items(reading->config, node, BREEDER_SUBAGENT, e);
}

bool breeder_missing(struct config *config, const struct yaml *at, struct err *e,
                     const char *format, ...) {
    char text[ERR_TEXT_BYTES];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    yaml_err(e, at, "%s; or set agent_yaml.missing: warn to go without it", text);
    if (config->agent_yaml.missing_warns) config_warn(config, "%s", e->text);
    return config->agent_yaml.missing_warns;
}

/* `framework: custom` with a command is a program that speaks our protocol. */
static bool breeder_read_command(const struct reading *reading, const struct yaml *node,
                                 struct err *e) {
    struct breeder *breeder = reading->entry;
    struct config_agent *agent = &breeder->agent;
    if (!str_equal(breeder->framework, STR("custom")))
        return yaml_err_key(e, node, "'command' stands beside framework: custom");
    agent->kind = agent_kind_find(STR("process"));
    agent->processes = CONFIG_PROCESSES;
    agent->silence_ms = CONFIG_SILENCE_MS;
    return config_read_command(reading, node, agent, e) &&
           config_read_environment(reading, NULL, node, agent, e);
}

static bool read_guardrails(const struct reading *reading, const struct yaml *node,
                            struct err *e) {
    struct breeder *breeder = reading->entry;
    return config_read_breeder_guardrails(reading, node, &breeder->agent, breeder->names, e);
}

/* --- the file ----------------------------------------------------------------------------- */

/* Rows marked unused have no effect, whatever their value. */
static const struct setting rows[] = {
    {.key = "name", TEXT(name), .required = true, .read = breeder_check_name},
    {.key = "version", TEXT(version), .required = true, .read = breeder_check_version},
    {.key = "description", TEXT(description), .read = check_description},
    {.key = "team", TEXT(unused), .required = true},
    {.key = "owner", TEXT(unused), .required = true, .read = check_owner},
    {.key = "spec_version", .read = check_spec},
    {.key = "framework", WORD(framework), .choices = frameworks},
    {.key = "language", NAME(language)},
    {.key = "command", .read = breeder_read_command},
    {.key = "runtime", .read = read_runtime},
    {.key = "model", PART(model), .required = true},
    {.key = "prompts", .read = read_prompts},
    {.key = "tools", .read = breeder_read_tools},
    {.key = "tags"},
    {.key = "type"},
    {.key = "knowledge_bases", .read = read_knowledge},
    {.key = "guardrails", .read = read_guardrails},
    {.key = "subagents", .read = read_subagents},
    {.key = "memory", .kind = SETTING_UNUSED},
    {.key = "mcp_servers", .read = read_servers},
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

/* Includes `deploy`, because nothing is deployed here. */
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

static bool breeder_report(struct config *config, const char *key, struct str value,
                           struct err *e) {
    return config_apply(config, setting_by_key(config, str_from(key)), value, FROM_FILE, NULL,
                        e);
}

/* Read one file as an agent. Its paths are relative to the file. */
static bool breeder_read_agent(struct config *config, const struct config_input *input,
                               const struct yaml *node, struct breeder *ret, struct err *e) {
    const struct reading reading = {config, input, node, ret, 0};
    entry_blank(&schema, ret);
    ret->names = ARENA_NEW(config->arena, struct config_breeder);
    if (!ret->names) return config_too_large(node, e);
    *ret->names = (struct config_breeder){.file = config->file};
    if (!entry_read(&schema, &reading, node, e) || !check_framework(ret, node, e)) return false;
    ret->agent.slug = ret->name;
    ret->agent.description = ret->description;
    ret->agent.at = node;
    ret->agent.breeder = ret->names;
    warn_of_unused(config, node);
    return true;
}

static bool parse_file(struct config *config, struct str path, const struct yaml *at,
                       const struct yaml **ret, struct err *e) {
    struct buf text;
    struct err why;
    buf_init(&text, YAML_MAX_BYTES);
    bool done = file_read(path, &text, &why)
                    ? yaml_parse(config->arena, path, buf_str(&text), ret, e)
                    : yaml_err(e, at, "%s", why.text);
    buf_done(&text);
    return done;
}

bool breeder_read_file(struct config *config, const struct config_input *input, struct str path,
                       const struct yaml *at, struct config_agent *ret, struct err *e) {
    struct breeder breeder = blank;
    const struct yaml *root = NULL;
    struct str file = config->file;
    if (!arena_str(config->arena, path, &path)) return config_too_large(at, e);
    if (!parse_file(config, path, at, &root, e)) return false;
    config->file = path;
    bool done = breeder_read_agent(config, input, root, &breeder, e);
    config->file = file;
    if (done) *ret = breeder.agent;
    return done;
}

bool config_read_breeder(struct config *config, const struct config_input *input,
                         const struct yaml *node, struct err *e) {
    struct breeder breeder = blank;
    struct config_agent *agent = ARENA_NEW(config->arena, struct config_agent);
    if (!agent) return config_too_large(node, e);
    config->agent_yaml.alone = true;
    if (!breeder_read_agent(config, input, node, &breeder, e)) return false;
    *agent = breeder.agent;
    config->agents = agent;
    config->agent_count = 1;
    return breeder_report(config, "agent.name", breeder.name, e) &&
           breeder_report(config, "agent.version", breeder.version, e) &&
           breeder_report(config, "agent.framework", breeder.framework, e);
}
