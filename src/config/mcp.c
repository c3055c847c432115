/* The section `mcp`: servers of the Model Context Protocol whose tools agents may have. */
#include "config/rows.h"

#define NAME_MAX_BYTES 32

struct mcp_entry {
    struct config_mcp mcp;
    const struct yaml *command, *args, *env, *env_from, *url, *agents, *tools;
    struct str key_env, key_file;
};

/* Variables of our environment that a server's program gets, in addition to the entry's own. */
static const char *const passed[] = {"PATH", "HOME",    "LANG",  "LC_ALL", "TERM",
                                     "USER", "LOGNAME", "SHELL", "TMPDIR"};

static bool mcp_is_name(struct str name) {
    return name.len > 0 && name.len <= NAME_MAX_BYTES && str_is_plain(name, "-_");
}

static const char *mcp_keep(struct config *config, struct str text) {
    struct str kept;
    return arena_str(config->arena, text, &kept) ? kept.at : NULL;
}

/* --- a program ---------------------------------------------------------------------------- */

static bool read_word(struct config *config, const struct yaml *node, const char **ret,
                      struct err *e) {
    struct str text;
    if (!yaml_value(node, YAML_TEXT, &text, e)) return false;
    if (str_find_byte(text, '\0') < text.len) return yaml_err(e, node, "no text of a program");
    *ret = mcp_keep(config, text);
    return *ret || config_too_large(node, e);
}

static bool read_words(struct config *config, const struct yaml *list, const char **words,
                       size_t *count, struct err *e) {
    if (!list) return true;
    if (list->kind == YAML_SCALAR) return read_word(config, list, &words[(*count)++], e);
    if (!config_want(list, YAML_LIST, "a program and its arguments, such as [npx, -y, NAME]",
                     e))
        return false;
    for (const struct yaml *item = list->first; item; item = item->next) {
        if (!read_word(config, item, &words[(*count)++], e)) return false;
    }
    return true;
}

static size_t mcp_count_of(const struct yaml *node) {
    return node ? node->count + 1 : 0;
}

static bool mcp_read_command(struct config *config, struct mcp_entry *entry, struct err *e) {
    size_t room = mcp_count_of(entry->command) + mcp_count_of(entry->args) + 1, count = 0;
    const char **words = arena_alloc(config->arena, room * sizeof(char *));
    if (!words) return config_too_large(entry->command, e);
    if (!read_words(config, entry->command, words, &count, e)) return false;
    if (!count || !words[0][0]) return yaml_err(e, entry->command, "it names no program");
    if (!read_words(config, entry->args, words, &count, e)) return false;
    words[count] = NULL;
    entry->mcp.command = words;
    return true;
}

/* "NAME=value" */
static bool add_variable(struct config *config, struct str name, struct str value,
                         const char **rows, size_t *count, struct err *e) {
    struct buf text;
    buf_init(&text, 64 * KIB);
    buf_append(&text, name);
    buf_append_byte(&text, '=');
    buf_append(&text, value);
    rows[*count] = buf_ok(&text) ? mcp_keep(config, buf_str(&text)) : NULL;
    buf_done(&text);
    return rows[(*count)++] || err_set(e, ERR_TOO_LARGE, "a variable is too long");
}

static bool pass_variable(struct config *config, const struct config_input *input,
                          const char *name, const char **rows, size_t *count, struct err *e) {
    struct str value = config_env(input, name);
    return !value.at || add_variable(config, str_from(name), value, rows, count, e);
}

static bool read_env(struct config *config, const struct config_input *input,
                     struct mcp_entry *entry, const char **rows, struct err *e) {
    size_t count = 0;
    const char *name;
    struct str value;
    for (size_t i = 0; i < ARRAY_LEN(passed); i++) {
        if (!pass_variable(config, input, passed[i], rows, &count, e)) return false;
    }
    const struct yaml *from = entry->env_from;
    if (from && !config_want(from, YAML_LIST, "a list of variables to pass on", e))
        return false;
    for (const struct yaml *item = from ? from->first : NULL; item; item = item->next) {
        if (!read_word(config, item, &name, e) ||
            !pass_variable(config, input, name, rows, &count, e))
            return false;
    }
    const struct yaml *map = entry->env;
    if (map && !config_want(map, YAML_MAP, "variables as a map, such as {LEVEL: debug}", e))
        return false;
    for (const struct yaml *item = map ? map->first : NULL; item; item = item->next) {
        if (!yaml_value(item, YAML_TEXT, &value, e) ||
            !add_variable(config, item->key, value, rows, &count, e))
            return false;
    }
    return true;
}

static bool read_environment(struct config *config, const struct config_input *input,
                             struct mcp_entry *entry, struct err *e) {
    size_t room =
        ARRAY_LEN(passed) + mcp_count_of(entry->env) + mcp_count_of(entry->env_from) + 1;
    const char **rows = arena_alloc(config->arena, room * sizeof(char *));
    if (!rows) return config_too_large(entry->command, e);
    for (size_t i = 0; i < room; i++) rows[i] = NULL;
    entry->mcp.environment = rows;
    return read_env(config, input, entry, rows, e);
}

/* --- a server over HTTP ------------------------------------------------------------------- */

static bool read_headers(const struct reading *reading, const struct yaml *map, struct err *e) {
    struct config_mcp *ret = &((struct mcp_entry *)reading->entry)->mcp;
    if (map->count > 32) return yaml_err(e, map, "these are more than 32 headers");
    return config_read_headers(reading, map, &ret->headers, &ret->header_count, e);
}

static bool read_url(struct config *config, const struct config_input *input,
                     struct mcp_entry *entry, struct err *e) {
    struct str text, source;
    struct err why;
    if (!yaml_value(entry->url, YAML_TEXT, &text, e)) return false;
    if (!config_keep_url(config, text, &entry->mcp.url, &why))
        return yaml_err(e, entry->url, "url: %s", why.text);
    return config_read_key(config, input, entry->key_env, entry->key_file, entry->mcp.at,
                           &entry->mcp.key, &source, e);
}

/* --- which agent has which server --------------------------------------------------------- */

static bool read_policies(struct config *config, struct mcp_entry *entry, struct err *e) {
    const struct yaml *map = entry->tools;
    if (!map) return true;
    if (!config_want(map, YAML_MAP, "a map of tools, such as {\"delete_*\": ask}", e))
        return false;
    struct config_agent_tool *rows =
        arena_alloc(config->arena, (map->count + 1) * sizeof(*rows));
    if (!rows) return config_too_large(map, e);
    entry->mcp.policies = rows; /* before any is counted */
    for (const struct yaml *item = map->first; item; item = item->next) {
        unsigned policy;
        if (!config_tool_name(item, e) || !config_choice(item, config_policies, &policy, e))
            return false;
        rows[entry->mcp.policy_count++] = (struct config_agent_tool){
            .name = item->key, .policy = (enum config_policy)policy, .said = true, .at = item};
    }
    return true;
}

/* --- the section -------------------------------------------------------------------------- */

static const char *const elicitations[] = {[CONFIG_ELICITATION_CANCEL] = "cancel",
                                           [CONFIG_ELICITATION_DEFAULTS] = "accept-defaults",
                                           NULL};

#define ROW_OF struct mcp_entry

/* clang-format off */
static const struct setting rows[] = {
    {.key = "name", NAME(mcp.name), .required = true, .help = "what it is called here and in the log"},
    {.key = "command", NODE(command),
     .help = "a program that speaks MCP on its standard streams: one word, or a list with its "
             "arguments"},
    {.key = "args", NODE(args), .help = "more arguments of the program"},
    {.key = "env", NODE(env), .help = "a map of variables for the program"},
    {.key = "env_from", NODE(env_from), .help = "a list of our own variables to pass on to it"},
    {.key = "url", NODE(url), .help = "a server over streamable HTTP, in place of a program"},
    {.key = "headers", .read = read_headers, .help = "a map of more headers"},
    {.key = "key_env", NAME(key_env), .help = "the variable that holds a key, sent as Bearer"},
    {.key = "key_file", TEXT(key_file), .help = "a file that holds it"},
    {.key = "user_header", NAME(mcp.user_header), .help = "the header that names the turn's user"},
    {.key = "conversation_header", NAME(mcp.conversation_header),
     .help = "the header that names the turn's conversation"},
    {.key = "prefix", TEXT(mcp.prefix), .help = "stands in front of the names of its tools"},
    {.key = "agents", NODE(agents), .help = "who may have its tools; left out: every agent"},
    {.key = "tools", NODE(tools),
     .help = "allow, ask or hidden by tool or pattern; the first that fits counts"},
    {.key = "elicitation", CHOICE(mcp.elicitation), .choices = elicitations,
     .help = "what a question of the server to the user gets; accept-defaults: the defaults of "
             "its form, where all that it requires has one"},
    {.key = "timeout", DURATION(mcp.timeout_ms), .least = 1,
     .beyond = "a call needs some time; give it 1ms or more", .help = "for one call"},
};
/* clang-format on */

static bool check_mcp(const struct reading *reading, const struct mcp_entry *entry,
                      const struct yaml *node, struct err *e) {
    const struct config *config = reading->config;
    struct str name = entry->mcp.name;
    if (!mcp_is_name(name))
        return yaml_err(e, yaml_find(node, STR("name")),
                        "a server's name has 1 to %d letters, digits, '-' and '_'",
                        NAME_MAX_BYTES);
    if (entry->mcp.prefix.len && !mcp_is_name(entry->mcp.prefix))
        return yaml_err(e, yaml_find(node, STR("prefix")),
                        "a prefix has letters, digits, '-' and '_'");
    for (size_t i = 0; i < config->mcp_count; i++) {
        if (str_equal(config->mcp[i].name, name))
            return yaml_err(e, node, "a second server '" STR_FMT "'; give it another name",
                            STR_ARG(name));
    }
    bool either = (entry->command != NULL) != (entry->url != NULL);
    return either || yaml_err(e, node, "a server needs either 'command' or 'url'");
}

static bool append_mcp(struct config *config, const struct config_mcp *mcp, struct err *e) {
    struct config_mcp *all = (struct config_mcp *)(uintptr_t)config->mcp; /* not shared yet */
    if (!all) {
        all = arena_alloc(config->arena, CONFIG_MCP_MAX * sizeof(*all));
        if (!all) return config_too_large(mcp->at, e);
        config->mcp = all;
    }
    if (config->mcp_count == CONFIG_MCP_MAX)
        return yaml_err(e, mcp->at, "there are more than %d MCP servers", CONFIG_MCP_MAX);
    all[config->mcp_count++] = *mcp;
    return true;
}

static bool keep_mcp(const struct reading *reading, const struct yaml *node, struct err *e) {
    struct config *config = reading->config;
    struct mcp_entry *entry = reading->entry;
    if (!entry->mcp.name.len) return true; /* that error was reported already */
    entry->mcp.at = node;
    if (!check_mcp(reading, entry, node, e) ||
        !config_read_names(config, entry->agents, "a list of agents", &entry->mcp.agents,
                           &entry->mcp.agent_count, e) ||
        !read_policies(config, entry, e))
        return false;
    if (entry->command && (!mcp_read_command(config, entry, e) ||
                           !read_environment(config, reading->input, entry, e)))
        return false;
    if (entry->url && !read_url(config, reading->input, entry, e)) return false;
    return append_mcp(config, &entry->mcp, e);
}

static const struct mcp_entry blank = {.mcp = {.name = STR_INIT(""),
                                               .url = STR_INIT(""),
                                               .key = STR_INIT(""),
                                               .user_header = STR_INIT(""),
                                               .conversation_header = STR_INIT(""),
                                               .prefix = STR_INIT("")},
                                       .key_env = STR_INIT(""),
                                       .key_file = STR_INIT("")};

const struct config_list config_mcp_list = {
    .key = "mcp",
    .what = "a list of MCP servers",
    .schema = {.what = "an MCP server", ROWS(rows), .blank = &blank},
    .keep = keep_mcp};

/* --- servers of an agent.yaml ------------------------------------------------------------- */

static bool add_agent(struct config *config, struct config_mcp *mcp, struct str agent,
                      struct err *e) {
    struct str *agents = arena_alloc(config->arena, (mcp->agent_count + 1) * sizeof(*agents));
    if (!agents) return config_too_large(mcp->at, e);
    for (size_t i = 0; i < mcp->agent_count; i++) agents[i] = mcp->agents[i];
    agents[mcp->agent_count++] = agent;
    mcp->agents = agents;
    return true;
}

bool config_add_mcp(struct config *config, struct str name, struct str url, struct str agent,
                    const struct yaml *at, const struct config_mcp **ret, struct err *e) {
    struct config_mcp *all = (struct config_mcp *)(uintptr_t)config->mcp; /* not shared yet */
    struct config_mcp mcp = blank.mcp;
    struct err why;
    mcp.name = name;
    mcp.at = at;
    if (!mcp_is_name(name))
        return yaml_err(e, at, "a server's name has 1 to %d letters, digits, '-' and '_'",
                        NAME_MAX_BYTES);
    if (!config_keep_url(config, url, &mcp.url, &why))
        return yaml_err(e, at, "url: %s", why.text);
    for (size_t i = 0; i < config->mcp_count; i++) {
        *ret = &all[i];
        if (!str_equal(all[i].name, name)) continue;
        return str_equal(all[i].url, mcp.url)
                   ? add_agent(config, &all[i], agent, e)
                   : yaml_err(e, at, "a second server '" STR_FMT "'; give it another name",
                              STR_ARG(name));
    }
    if (!add_agent(config, &mcp, agent, e) || !append_mcp(config, &mcp, e)) return false;
    *ret = &config->mcp[config->mcp_count - 1];
    return true;
}
