/* The agents in the file. Their models and providers are resolved after the whole file has been
 * read (models.c). */
#include "config/breeder.h"
#include "config/rows.h"

#include "agent/converse.h"
#include "agent/kind.h"
#include "base/nearest.h"
#include "wire/json.h"

/* --- lists of names ----------------------------------------------------------------------- */

static bool read_delegates(const struct reading *reading, const struct yaml *list,
                           struct err *e) {
    struct config_agent *agent = reading->entry;
    return config_read_names(reading->config, list, "a list of names, such as [one, two]",
                             &agent->delegates, &agent->delegate_count, e);
}

/* An item of the list, or NAME: POLICY of the map. */
static bool agents_read_tool(const struct yaml *node, bool in_map,
                             struct config_agent_tool *ret, struct err *e) {
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

static bool agents_read_tools(const struct reading *reading, const struct yaml *node,
                              struct err *e) {
    struct config_agent *ret = reading->entry;
    if (node->kind == YAML_SCALAR)
        return yaml_err(e, node,
                        "expected a list of names, such as [one, two], or a map of "
                        "them to allow, ask or hidden");
    struct config_agent_tool *tools =
        arena_alloc(reading->config->arena, node->count * sizeof(*tools));
    if (!tools) return yaml_err(e, node, "this list is too large");
    /* Before any is counted: what is good of it may be read after an error. */
    ret->tools = tools;
    for (const struct yaml *item = node->first; item; item = item->next) {
        if (!agents_read_tool(item, node->kind == YAML_MAP, &tools[ret->tool_count], e))
            return false;
        for (size_t i = 0; i < ret->tool_count; i++) {
            if (str_equal(tools[i].name, tools[ret->tool_count].name))
                return yaml_err(e, item, "tool '" STR_FMT "' stands here twice",
                                STR_ARG(tools[i].name));
        }
        ret->tool_count++;
    }
    ret->all_tools = false;
    return true;
}

/* --- the rows ----------------------------------------------------------------------------- */

static bool check_schema(const struct reading *reading, const struct yaml *node,
                         struct err *e) {
    const struct config_agent *agent = reading->entry;
    struct err why;
    struct json schema;
    if (!json_read(agent->output, &schema, &why)) return yaml_err(e, node, "%s", why.text);
    return schema.kind == JSON_OBJECT ||
           yaml_err(e, node, "expected a JSON Schema, which is an object");
}

static bool agents_read_command(const struct reading *reading, const struct yaml *node,
                                struct err *e) {
    return config_read_command(reading, node, reading->entry, e);
}

/* Kept without the slash at its end. */
static bool read_url(const struct reading *reading, const struct yaml *node, struct err *e) {
    struct config_agent *agent = reading->entry;
    struct str text;
    struct err why;
    if (!yaml_value(node, YAML_TEXT, &text, e)) return false;
    return config_keep_url(reading->config, text, &agent->url, &why) ||
           yaml_err(e, node, "url: %s", why.text);
}

static bool read_headers(const struct reading *reading, const struct yaml *map, struct err *e) {
    struct config_agent *agent = reading->entry;
    return config_read_headers(reading, map, &agent->headers, &agent->header_count, e);
}

static bool read_address(const struct reading *reading, const struct yaml *node,
                         struct err *e) {
    struct config_agent *agent = reading->entry;
    struct str host;
    uint16_t port;
    struct err why;
    return yaml_value(node, YAML_TEXT, &agent->address, e) &&
           (converse_read_address(agent->address, &host, &port, &why) ||
            yaml_err(e, node, "address: %s", why.text));
}

static bool refuse_secret(const struct reading *reading, const struct yaml *api_key,
                          struct err *e) {
    (void)reading;
    return config_refuse_key(api_key, e);
}

const char *const config_histories[] = {[CONFIG_HISTORY_SESSION] = "session",
                                        [CONFIG_HISTORY_METADATA] = "metadata",
                                        [CONFIG_HISTORY_INPUT] = "input",
                                        NULL};

static const char *const efforts[] = {"low", "medium", "high", NULL};

#define NO_LIMIT "a limit of %s makes no sense; leave it out, or give it 1 to 1000000000"
#define INSTRUCTED "this agent has instructions already; remove one"
#define SHAPED "this agent has an output already"

#define ROW_OF struct config_agent

/* clang-format off */
static const struct setting limit_rows[] = {
    {.key = "model_calls", COUNT(limits.model_calls),
     .least = 1, .most = 1000000000, .beyond = NO_LIMIT,
     .help = "how often its model is asked"},
    {.key = "tool_calls", COUNT(limits.tool_calls),
     .least = 1, .most = 1000000000, .beyond = NO_LIMIT, .help = "tools asked for"},
    {.key = "tokens", COUNT(limits.tokens),
     .least = 1, .most = 1000000000, .beyond = NO_LIMIT, .help = "of all its calls"},
    {.key = "cost", DOLLARS(limits.cost_nano),
     .least = 1, .beyond = "a limit of nothing makes no sense; leave it out",
     .help = "what they may cost, in dollars"},
};

static const struct entry_schema limits = {.what = "limits", ROWS(limit_rows)};

static const struct setting rows[] = {
    {.key = "slug", NAME(slug), .help = "its name on every wire (*required*)"},
    {.key = "agent_yaml",
     .help = "in place of all other keys: the path of an agent.yaml of AgentBreeder "
             "([agents](agents.md#an-agentyaml-of-agentbreeder))"},
    {.key = "kind", WORD(kind_name), .choices = agent_kind_names,
     .help = "model (the default); process: a program of any language "
             "([process agents](process-agents.md)); http, openai, converse: a server elsewhere "
             "([remote agents](remote-agents.md)); plugin: a shared library "
             "([plugin agents](plugin-agents.md))"},
    {.key = "command", .read = agents_read_command,
     .help = "of a process: the program and its arguments, as a list; files beside the "
             "settings file are found"},
    {.key = "processes", COUNT(processes), .least = 1, .most = 256,
     .beyond = "an agent has 1 to 256 processes",
     .help = "of a process: so many turns at once for each thread, 4 where it is left out"},
    {.key = "silence", DURATION(silence_ms), .least = 1,
     .beyond = "an agent needs some time; give it 1ms or more",
     .help = "of every kind but model: how long it may say nothing while a turn is with it, 5m "
             "where it is left out"},
    {.key = "url", .read = read_url,
     .help = "of http and openai: where its server is, such as `http://127.0.0.1:8000`; for "
             "openai with the `/v1`"},
    {.key = "key_env", NAME(key_env),
     .help = "of a server: the variable that holds a key, sent as Bearer; of converse: it signs tokens"},
    {.key = "key_file", TEXT(key_file), .help = "of a server: a file that holds it"},
    {.key = "api_key", .read = refuse_secret,
     .help = "refused: a key never stands in the settings"},
    {.key = "headers", .read = read_headers, .help = "of a server: a map of more headers"},
    {.key = "stream", BOOL(streams),
     .help = "of a server: whether it is asked for a stream; true where it is left out. One "
             "that does not stream is asked without"},
    {.key = "address", .read = read_address,
     .help = "of converse: where the AgentRuntime is, such as `agents.example:42618`; the port "
             "is 42618 where it is left out"},
    {.key = "tls", BOOL(tls),
     .help = "of converse: whether the address is asked over TLS, with a certificate that the "
             "system trusts"},
    {.key = "remote_agent", NAME(remote_agent),
     .help = "of converse: which of its agents is asked; its Manager where it is left out"},
    {.key = "stream_per_turn", BOOL(stream_per_turn),
     .help = "of converse: whether each turn opens a stream of its own; a conversation keeps "
             "one where it is left out"},
    {.key = "history", CHOICE(history), .choices = config_histories,
     .help = "of http: `session` (the server remembers its sessions), `metadata` or `input` "
             "(earlier turns go there with each turn)"},
    {.key = "config", JSON(sent_config),
     .help = "of http and plugin: a map that goes with each turn"},
    {.key = "metadata", JSON(sent_metadata), .help = "of http: likewise"},
    {.key = "library", PATH(library), .help = "of a plugin: the shared library"},
    {.key = "environment",
     .help = "of a process: a map of variables; one without a value is passed on. Beside them "
             "it gets PATH, HOME, LANG and the like, and no keys"},
    {.key = "description", TEXT(description), .help = "what other agents read about it"},
    {.key = "max_tokens", COUNT(max_tokens), .least = 1, .most = INT32_MAX,
     .beyond = "max_tokens is a count of tokens, 1 to 2147483647",
     .help = "tokens of one reply"},
    {.key = "thinking_tokens", COUNT(thinking_tokens), .least = 1,
     .most = INT32_MAX, .beyond = "thinking_tokens is a count of tokens, 1 to 2147483647",
     .help = "how much it thinks, where the model can"},
    {.key = "window", COUNT(window), .least = 1, .most = INT32_MAX,
     .beyond = "window is a count of tokens, 1 to 2147483647",
     .help = "tokens that its model reads and writes at once; longer conversations are "
             "summarised, and so are sessions of more than 56 turns or 224 KiB"},
    {.key = "thinking", BOOL(thinking),
     .help = "whether callers of Converse see its reasoning"},
    {.key = "system", TEXT(system), .twice = INSTRUCTED, .help = "the same as instructions"},
    {.key = "instructions", TEXT(system), .twice = INSTRUCTED, .help = "the system prompt"},
    {.key = "instructions_file", CONTENTS(system), .twice = INSTRUCTED,
     .help = "a file with them"},
    {.key = "output", JSON(output), .twice = SHAPED,
     .help = "a JSON Schema: its answer is JSON that follows it"},
    {.key = "output_file", CONTENTS(output), .twice = SHAPED,
     .read = check_schema, .help = "a file with one"},
    {.key = "model", NODE(model_at),
     .help = "provider/model, or a name that its provider has for one"},
    {.key = "provider", NODE(provider_at), .help = "who answers for it"},
    {.key = "fallback", NODE(fallback_at),
     .help = "a model, or a list of them: asked in turn when the one before does not answer "
             "at all. After its first word no other is asked"},
    {.key = "temperature", DECIMAL(temperature), .digits = 6, .most = 2,
     .beyond = "'%s' is more than 2", .help = "how freely its model answers"},
    {.key = "top_p", DECIMAL(top_p), .digits = 6, .most = 1,
     .beyond = "'%s' is more than 1", .help = "the share of likely words that its model chooses from"},
    {.key = "effort", WORD(effort), .choices = efforts,
     .help = "how much it thinks, where the model can"},
    {.key = "limits", PART(limits), .help = "of one turn while this agent has it"},
    {.key = "tools", .read = agents_read_tools,
     .help = "a list of names, or a map of names to `allow`, `ask` (a person decides, each "
             "time) or `hidden`. Left out: those of its script, and of the MCP server while a "
             "turn of Converse runs"},
    {.key = "guardrails", .read = config_read_agent_guardrails,
     .help = "a list of rules from the section `guardrails`, for what it reads and what it "
             "says, in this order; pii_detection redacts personal data"},
    {.key = "delegates", .read = read_delegates,
     .help = "a list of agents that it may hand the turn to"},
};
/* clang-format on */

static const struct config_agent blank = {.processes = CONFIG_PROCESSES,
                                          .silence_ms = CONFIG_SILENCE_MS,
                                          .streams = true,
                                          .model.name = STR_INIT(""),
                                          .temperature = -1,
                                          .top_p = -1,
                                          .all_tools = true};

/* --- the list ----------------------------------------------------------------------------- */

static bool has_agent(const struct config_agent *agents, size_t count, struct str slug) {
    for (size_t i = 0; i < count; i++) {
        if (str_equal(agents[i].slug, slug)) return true;
    }
    return false;
}

static bool refuse_delegate(const struct config *config, const struct yaml *name,
                            struct err *e) {
    struct nearest nearest;
    nearest_init(&nearest, name->text);
    for (size_t i = 0; i < config->agent_count; i++)
        nearest_offer(&nearest, config->agents[i].slug);
    return yaml_err(e, name, "no agent is called '" STR_FMT "'%s", STR_ARG(name->text),
                    nearest_hint(&nearest));
}

/* This comes last, because a delegate may follow the agent that names it. */
static bool check_delegates(const struct reading *reading, const struct yaml *list,
                            struct err *e) {
    struct config *config = reading->config;
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

static bool check_window(const struct config_agent *agent, struct err *e) {
    return !agent->window || agent->max_tokens < agent->window ||
           yaml_err(e, yaml_find(agent->at, STR("max_tokens")),
                    "a reply of %llu tokens leaves no room in a window of %llu",
                    (unsigned long long)agent->max_tokens, (unsigned long long)agent->window);
}

/* Keys that some kinds have. */
static const struct {
    const char *key, *kinds;
} own_keys[] = {
    {"command", "process"},
    {"processes", "process"},
    {"environment", "process"},
    {"silence", "process, http, openai, converse, plugin"},
    {"library", "plugin"},
    {"url", "http, openai"},
    {"key_env", "http, openai, converse"},
    {"key_file", "http, openai, converse"},
    {"headers", "http, openai"},
    {"stream", "http, openai"},
    {"address", "converse"},
    {"tls", "converse"},
    {"remote_agent", "converse"},
    {"stream_per_turn", "converse"},
    {"history", "http"},
    {"config", "http, plugin"},
    {"metadata", "http"},
};

/* Keys that have no effect on agents of some kinds. */
static const struct {
    const char *key, *kinds;
} model_keys[] = {
    {"model", "model, openai, process, plugin"},
    {"provider", "model"},
    {"fallback", "model"},
    {"temperature", "model, openai"},
    {"top_p", "model, openai"},
    {"effort", "model, openai"},
    {"max_tokens", "model, openai"},
    {"thinking_tokens", "model, openai"},
    {"instructions", "model, openai, converse, process, plugin"},
    {"instructions_file", "model, openai, converse, process, plugin"},
    {"system", "model, openai, converse, process, plugin"},
    {"tools", "model, openai, process, plugin"},
    {"delegates", "model, openai, process, plugin"},
};

/* Where such a key belongs instead. */
static const struct {
    const char *kind, *fix;
} model_key_fixes[] = {
    {"http", "its server has its own; what it should know goes under 'config', with each turn"},
    {"openai", "its server is asked itself, at 'url'"},
    {"converse", "its runtime has its own; set it there"},
    {"process", "its program calls models by itself; tell it in 'environment'"},
    {"plugin", "its library calls models by itself; tell it in 'config'"},
};

static bool has_word(const char *words, const char *word) {
    struct str rest = str_from(words);
    while (rest.len) {
        if (str_equal(str_trim(str_split(rest, ',', &rest)), str_from(word))) return true;
    }
    return false;
}

static bool agents_read_key(const struct reading *reading, const struct yaml *node,
                            struct config_agent *agent, struct err *e) {
    const struct yaml *file = yaml_find(node, STR("key_file"));
    if (!config_read_key(reading->config, reading->input, agent->key_env, agent->key_file,
                         file ? file : node, &agent->key, &agent->key_source, e))
        return false;
    if (agent->url.len) /* a signing key is not sent */
        config_warn_of_clear_key(reading->config, "agent", agent->slug, agent->url, agent->key);
    return true;
}

static bool check_model_keys(const struct yaml *node, const char *kind, struct err *e) {
    const char *fix = NULL;
    for (size_t i = 0; i < ARRAY_LEN(model_key_fixes); i++) {
        if (strcmp(model_key_fixes[i].kind, kind) == 0) fix = model_key_fixes[i].fix;
    }
    for (size_t i = 0; fix && i < ARRAY_LEN(model_keys); i++) {
        const struct yaml *found = yaml_find(node, str_from(model_keys[i].key));
        if (found && !has_word(model_keys[i].kinds, kind))
            return yaml_err_key(e, found,
                                "'%s' does nothing for an agent with kind: %s; remove it: %s",
                                model_keys[i].key, kind, fix);
    }
    return true;
}

static bool check_kind(const struct reading *reading, const struct yaml *node,
                       struct config_agent *agent, struct err *e) {
    const struct agent_kind *kind = agent->kind = agent_kind_find(agent->kind_name);
    const char *name = kind ? kind->name : agent_kind_names[0];
    const struct yaml *said = yaml_find(node, STR("kind"));
    if (said && !kind && !str_equal(said->text, str_from(name))) return true; /* it was noted */
    for (size_t i = 0; i < ARRAY_LEN(own_keys); i++) {
        const struct yaml *found = yaml_find(node, str_from(own_keys[i].key));
        if (found && !has_word(own_keys[i].kinds, name))
            return yaml_err_key(e, found, "'%s' is of an agent with kind: %s", own_keys[i].key,
                                own_keys[i].kinds);
    }
    if (!kind) return true;
    if (!check_model_keys(node, name, e)) return false;
    if (!yaml_find(node, str_from(kind->needs)))
        return yaml_err(e, node, "an agent with kind: %s needs the key '%s'", name,
                        kind->needs);
    if (agent->url.len || agent->address.len) return agents_read_key(reading, node, agent, e);
    return !agent->command_count ||
           config_read_environment(reading, yaml_find(node, STR("environment")), node, agent,
                                   e);
}

/* An entry that is the path of an agent.yaml. */
static bool read_breeder(const struct reading *reading, const struct yaml *node,
                         const struct yaml *path, struct config_agent *ret, struct err *e) {
    for (const struct yaml *other = node->first; other; other = other->next) {
        if (other != path)
            return yaml_err_key(e, other,
                                "'agent_yaml' stands alone; write '" STR_FMT "' into that file",
                                STR_ARG(str_head(other->key, 40)));
    }
    struct str file;
    struct buf room;
    if (!yaml_value(path, YAML_TEXT, &file, e)) return false;
    buf_init(&room, 4 * KIB);
    file = config_from_folder(reading->config, file, &room);
    bool done = breeder_read_file(reading->config, reading->input, file, path, ret, e);
    buf_done(&room);
    return done;
}

/* Its absence was not noted as a misspelled key. */
static bool check_slug(const struct reading *reading, const struct config_agent *agent,
                       const struct yaml *node, struct err *e) {
    return agent->slug.len || reading->config->problem_count > reading->problems ||
           yaml_err(e, node, "an agent needs the key 'slug'");
}

/* An agent with a mistake still counts as a name that others may refer to. */
static bool keep_agent(const struct reading *reading, const struct yaml *node, struct err *e) {
    struct config *config = reading->config;
    struct config_agent *agents = (struct config_agent *)config->agents; /* ours until now */
    struct config_agent *agent = reading->entry;
    const struct yaml *path = yaml_find(node, STR("agent_yaml"));
    if (path && !read_breeder(reading, node, path, agent, e)) return false;
    if (!check_slug(reading, agent, node, e)) return false;
    if (path) node = agent->at;
    if (!config_step(config, check_window(agent, e), e)) return false;
    if (!path && !config_step(config, check_kind(reading, node, agent, e), e)) return false;
    if (!agent->slug.len) return true;
    if (has_agent(agents, config->agent_count, agent->slug))
        return yaml_err(e, path ? path : node,
                        "a second agent '" STR_FMT "'; give it another slug",
                        STR_ARG(agent->slug));
    agents[config->agent_count++] = *agent;
    return true;
}

const struct config_list config_agent_list = {
    .key = "agents",
    .what = "a list of agents",
    .schema = {.what = "an agent", ROWS(rows), .blank = &blank, .every = true},
    KEPT_IN(agents, agent_count),
    .at = offsetof(struct config_agent, at),
    .keep = keep_agent,
    .after = check_delegates};
