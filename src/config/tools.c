/* The section `tools`: how the built-in tools are set up. */
#include "config/rows.h"

#include "base/nearest.h"

/* --- web search --------------------------------------------------------------------------- */

struct search {
    struct str backend, url, key_env, key_file;
};

#define ROW_OF struct search

static const struct setting search_rows[] = {
    {.key = "backend", NAME(backend), .required = true, .help = "searxng or brave"},
    {.key = "url", TEXT(url), .help = "where searxng is"},
    {.key = "key_env", NAME(key_env), .help = "the variable that holds the key of brave"},
    {.key = "key_file", TEXT(key_file), .help = "a file that holds it"},
};

static const struct entry_schema search_schema = {.what = "web_search", ROWS(search_rows)};

static bool read_search(const struct reading *reading, const struct yaml *node, struct err *e) {
    struct config *config = reading->config;
    struct search search;
    struct str source;
    const struct reading inner = {config, reading->input, node, &search, 0};
    entry_blank(&search_schema, &search);
    if (!entry_read(&search_schema, &inner, node, e)) return false;
    config->tools.web_search.backend = search.backend;
    config->tools.web_search.url = search.url;
    config->tools.web_search.at = node;
    return config_read_key(config, reading->input, search.key_env, search.key_file, node,
                           &config->tools.web_search.key, &source, e);
}

/* --- files -------------------------------------------------------------------------------- */

static bool check_root(const struct reading *reading, const struct yaml *node, struct err *e) {
    (void)reading;
    return node->text.len || yaml_err(e, node, "root is a folder; name one");
}

#undef ROW_OF
#define ROW_OF struct config

static const struct setting files_rows[] = {
    {.key = "root",
     PATH(tools.files.root),
     .required = true,
     .read = check_root,
     .help = "the folder that file tools see"},
};

static const struct entry_schema files_schema = {.what = "files", ROWS(files_rows)};

static bool read_files(const struct reading *reading, const struct yaml *node, struct err *e) {
    struct config *config = reading->config;
    const struct reading inner = {config, reading->input, node, config, 0};
    config->tools.files.at = node;
    return entry_read(&files_schema, &inner, node, e);
}

/* --- exec --------------------------------------------------------------------------------- */

struct exec_entry {
    struct exec_options options;
    uint64_t cpu_ms;
    const struct yaml *policy;
};

static const char *const exec_scopes[] = {
    [EXEC_SESSION] = "session", [EXEC_USER] = "user", [EXEC_WORKSPACE] = "workspace", NULL};

#undef ROW_OF
#define ROW_OF struct exec_entry

/* clang-format off */
static const struct setting exec_rows[] = {
    {.key = "root", PATH(options.root), .required = true, .read = check_root,
     .help = "the folder of all workspaces; each has its own in it"},
    {.key = "policy", NODE(policy), .help = "allow, ask or hidden; ask where it is left out"},
    {.key = "scope", CHOICE(options.scope), .choices = exec_scopes,
     .help = "whose calls share a folder: session (the default), user or workspace"},
    {.key = "idle", DURATION(options.idle_ms), .least = 1000,
     .beyond = "a folder stays for 1s or more",
     .help = "how long the folder of a session that runs no command stays, 168h"},
    {.key = "network", BOOL(options.limits.network),
     .help = "use this machine's own services; without it there is none"},
    {.key = "timeout", DURATION(options.timeout_ms), .least = 1,
     .beyond = "a command needs some time; give it 1ms or more", .help = "of a command, 30s"},
    {.key = "cpu", DURATION(cpu_ms), .least = 1000, .most = 86400000,
     .beyond = "a process has 1s to 24h of processor time",
     .help = "processor time of one process, 10s"},
    {.key = "memory", SIZE(options.limits.memory_bytes), .least = 16 * MIB,
     .most = INT64_MAX, .beyond = "a process needs 16MiB or more",
     .help = "of one process, 256MiB"},
    {.key = "processes", COUNT(options.limits.processes), .least = 8, .most = 4096,
     .beyond = "a command has 8 to 4096 processes", .help = "and threads at once, 64"},
    {.key = "file", SIZE(options.limits.file_bytes), .least = 1, .most = INT64_MAX,
     .beyond = "a file needs some bytes", .help = "the largest file that is written, 64MiB"},
    {.key = "scratch", SIZE(options.limits.scratch_bytes), .least = 4096, .most = INT64_MAX,
     .beyond = "/tmp needs 4KiB or more", .help = "/tmp, in memory, and /dev/shm likewise, 64MiB"},
    {.key = "disk", SIZE(options.disk_bytes), .least = 1, .most = INT64_MAX,
     .beyond = "a workspace needs some bytes", .help = "all files of a workspace, 256MiB"},
    {.key = "output", SIZE(options.output_bytes), .least = 1, .most = MIB,
     .beyond = "a command may say 1B to 1MiB", .help = "what it may say, 30000B"},
    {.key = "at_once", COUNT(options.at_once), .least = 1, .most = 1000,
     .beyond = "1 to 1000 commands may run at once", .help = "commands at the same time, 4; more wait"},
};
/* clang-format on */

static const struct exec_entry exec_blank = {.options = {.root = STR_INIT(""),
                                                         .limits = {.memory_bytes = 256 * MIB,
                                                                    .cpu_s = 10,
                                                                    .processes = 64,
                                                                    .file_bytes = 64 * MIB,
                                                                    .scratch_bytes = 64 * MIB},
                                                         .scope = EXEC_SESSION,
                                                         .idle_ms = UINT64_C(168) * 3600 * 1000,
                                                         .disk_bytes = 256 * MIB,
                                                         .output_bytes = 30000,
                                                         .timeout_ms = 30 * 1000,
                                                         .at_once = 4},
                                             .cpu_ms = 10 * 1000};

static const struct entry_schema exec_schema = {
    .what = "exec", ROWS(exec_rows), .blank = &exec_blank};

/* Its policy, if any, is in the list for all tools. */
static bool keep_exec_policy(struct config *config, const struct yaml *node, struct err *e) {
    struct config_agent_tool *set = (struct config_agent_tool *)config->tools.policies;
    unsigned policy;
    if (!node) return true;
    if (!config_choice(node, config_policies, &policy, e)) return false;
    set[config->tools.policy_count++] = (struct config_agent_tool){
        .name = STR("exec"), .policy = (enum config_policy)policy, .said = true, .at = node};
    return true;
}

static bool read_exec(const struct reading *reading, const struct yaml *node, struct err *e) {
    struct config *config = reading->config;
    struct exec_entry exec;
    const struct reading inner = {config, reading->input, node, &exec, 0};
    entry_blank(&exec_schema, &exec);
    if (!entry_read(&exec_schema, &inner, node, e)) return false;
    exec.options.limits.cpu_s = (exec.cpu_ms + 999) / 1000;
    config->tools.exec = exec.options;
    return keep_exec_policy(config, exec.policy, e);
}

/* --- the section -------------------------------------------------------------------------- */

/* All other names in the section are names of tools. */
static const struct setting rows[] = {
    {.key = "web_search", .read = read_search, .part = &search_schema},
    {.key = "files", .read = read_files, .part = &files_schema},
    {.key = "exec", .read = read_exec, .part = &exec_schema},
};

/* With a name for one of the operator's own tools, for the documentation. */
static const struct setting shown[] = {
    {.key = "web_search", .part = &search_schema},
    {.key = "files", .part = &files_schema},
    {.key = "exec", .part = &exec_schema},
    {.key = "NAME", .part = &config_own_tool_schema},
};

const struct config_list config_tool_map = {
    .key = "tools", .schema = {.rows = shown, .count = ARRAY_LEN(shown)}};

const char *const config_policies[] = {[CONFIG_TOOL_ALLOW] = "allow",
                                       [CONFIG_TOOL_ASK] = "ask",
                                       [CONFIG_TOOL_HIDDEN] = "hidden",
                                       NULL};

bool config_tool_name(const struct yaml *node, struct err *e) {
    struct str name = node->key;
    bool fits = name.len > 0 && name.len <= 128;
    for (size_t i = 0; i < name.len; i++) fits &= name.at[i] > ' ' && name.at[i] <= '~';
    return fits || yaml_err_key(e, node, "this is not a tool's name");
}

/* "off" is the older word for hidden. */
static bool find_policy(const struct yaml *node, enum config_policy *ret) {
    if (node->kind != YAML_SCALAR) return false;
    *ret = CONFIG_TOOL_HIDDEN;
    if (str_equal(node->text, STR("off")) || str_equal(node->text, STR("false"))) return true;
    for (unsigned i = 0; config_policies[i]; i++) {
        *ret = (enum config_policy)i;
        if (str_equal(node->text, str_from(config_policies[i]))) return true;
    }
    return false;
}

struct tool_entry {
    const struct yaml *policy;
    uint64_t timeout_ms;
};

#undef ROW_OF
#define ROW_OF struct tool_entry

static const struct setting tool_rows[] = {
    {.key = "policy", NODE(policy)},
    {.key = "timeout",
     DURATION(timeout_ms),
     .least = 1,
     .beyond = "a call needs some time; give it 1ms or more"},
};

static const struct entry_schema tool_schema = {.what = "a tool", ROWS(tool_rows)};

static bool is_tool_key(struct str key) {
    for (size_t i = 0; i < ARRAY_LEN(tool_rows); i++) {
        if (str_equal(key, str_from(tool_rows[i].key))) return true;
    }
    return false;
}

/* Whether a map has only these keys; otherwise it may be a misspelt section. */
static bool is_tool(const struct yaml *node) {
    if (node->kind != YAML_MAP || !node->first) return false;
    for (const struct yaml *row = node->first; row; row = row->next) {
        if (!is_tool_key(row->key)) return false;
    }
    return true;
}

/* Read one entry. ret->policy is a node that the caller reads. */
static bool tools_read_tool(const struct reading *reading, const struct yaml *node,
                            struct tool_entry *ret, struct err *e) {
    const struct reading inner = {reading->config, reading->input, node, ret, 0};
    *ret = (struct tool_entry){.policy = node};
    if (!is_tool(node) && !config_is_own_tool(node)) return true;
    ret->policy = NULL;
    if (config_is_own_tool(node))
        return config_read_own_tool(reading, node, &ret->policy, &ret->timeout_ms, e);
    return entry_read(&tool_schema, &inner, node, e);
}

/* NAME: POLICY, or NAME: {policy: POLICY, timeout: DURATION}, or a tool of the operator's own.
 * Whether another tool exists is known only when tools are made. */
static bool set_policy(const struct reading *reading, const struct yaml *node, struct err *e) {
    struct config *config = reading->config;
    struct config_agent_tool *set = (struct config_agent_tool *)config->tools.policies;
    enum config_policy policy = CONFIG_TOOL_ALLOW;
    struct tool_entry tool = {.policy = NULL};
    if (!tools_read_tool(reading, node, &tool, e)) return false;
    if (tool.policy && !find_policy(tool.policy, &policy)) {
        struct nearest nearest;
        nearest_init(&nearest, node->key);
        for (size_t i = 0; i < ARRAY_LEN(rows); i++)
            nearest_offer(&nearest, str_from(rows[i].key));
        return yaml_err_key(e, node,
                            "'" STR_FMT "' has no settings here; all it may be is allow, ask, "
                            "hidden or off%s",
                            STR_ARG(str_head(node->key, 40)), nearest_hint(&nearest));
    }
    if (!config_tool_name(node, e)) return false;
    set[config->tools.policy_count++] =
        (struct config_agent_tool){.name = node->key,
                                   .policy = policy,
                                   .said = true,
                                   .timeout_ms = tool.timeout_ms,
                                   .at = node};
    return true;
}

static bool tools_read_entry(const struct reading *reading, const struct yaml *node,
                             struct err *e) {
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (node->kind == YAML_MAP && str_equal(node->key, str_from(rows[i].key)))
            return rows[i].read(reading, node, e);
    }
    return set_policy(reading, node, e);
}

bool config_read_tools(struct config *config, const struct config_input *input,
                       const struct yaml *node, struct err *e) {
    const struct reading reading = {.config = config, .input = input};
    if (!config_want(node, YAML_MAP, "a map of tools", e)) return false;
    config->tools.policies =
        arena_alloc(config->arena, node->count * sizeof(struct config_agent_tool));
    if (!config->tools.policies) return config_too_large(node, e);
    for (const struct yaml *entry = node->first; entry; entry = entry->next) {
        if (!tools_read_entry(&reading, entry, e) && !config_goes_on(config, e)) return false;
    }
    return true;
}
