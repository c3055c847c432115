/* The section `tools`: how the tools that this program brings are set up. */
#include "config/build.h"

#include "base/nearest.h"

static bool too_large(const struct yaml *node, struct err *e) {
    return yaml_err(e, node, "the settings are too large");
}

/* --- web search --------------------------------------------------------------------------- */

struct search_nodes {
    struct str backend, url, key_env, key_file;
};

static const struct yaml_field search_fields[] = {
    {"backend", YAML_NAME, offsetof(struct search_nodes, backend), true},
    {"url", YAML_TEXT, offsetof(struct search_nodes, url), false},
    {"key_env", YAML_NAME, offsetof(struct search_nodes, key_env), false},
    {"key_file", YAML_TEXT, offsetof(struct search_nodes, key_file), false},
};

static bool read_search(struct config *config, const struct config_input *input,
                        const struct yaml *node, struct err *e) {
    struct search_nodes nodes = {STR_EMPTY, STR_EMPTY, STR_EMPTY, STR_EMPTY};
    struct config_key_names names = {.file = STR_EMPTY};
    struct str source;
    struct err why;
    struct buf room;
    if (!yaml_fields(node, "web_search", search_fields, ARRAY_LEN(search_fields), &nodes, e))
        return false;
    buf_init(&room, 64 * KIB);
    if (nodes.key_env.len) names.names[names.count++] = nodes.key_env;
    if (nodes.key_file.len) names.file = config_from_folder(config, nodes.key_file, &room);
    config->tools.web_search.backend = nodes.backend;
    config->tools.web_search.url = nodes.url;
    config->tools.web_search.at = node;
    bool done =
        config_find_key(config, input, &names, &config->tools.web_search.key, &source, &why);
    buf_done(&room);
    return done || yaml_err(e, node, "%s", why.text);
}

/* --- files -------------------------------------------------------------------------------- */

struct files_nodes {
    struct str root;
};

static const struct yaml_field files_fields[] = {
    {"root", YAML_TEXT, offsetof(struct files_nodes, root), true},
};

static bool read_files(struct config *config, const struct config_input *input,
                       const struct yaml *node, struct err *e) {
    struct files_nodes nodes = {STR_EMPTY};
    struct buf room;
    (void)input;
    if (!yaml_fields(node, "files", files_fields, ARRAY_LEN(files_fields), &nodes, e))
        return false;
    if (!nodes.root.len)
        return yaml_err(e, yaml_find(node, STR("root")), "root is a folder; name one");
    buf_init(&room, 64 * KIB);
    struct str root = config_from_folder(config, nodes.root, &room);
    bool kept = arena_str(config->arena, root, &config->tools.files.root);
    buf_done(&room);
    config->tools.files.at = node;
    return kept || too_large(node, e);
}

/* --- the section -------------------------------------------------------------------------- */

static const struct {
    const char *name;
    config_section_fn *read;
} sections[] = {{"web_search", read_search}, {"files", read_files}};

const char *const config_policies[] = {[CONFIG_TOOL_ALLOW] = "allow",
                                       [CONFIG_TOOL_ASK] = "ask",
                                       [CONFIG_TOOL_HIDDEN] = "hidden",
                                       NULL};

bool config_tool_name(const struct yaml *node, struct err *e) {
    struct str name = node->key;
    bool fits = name.len > 0 && name.len <= 128;
    for (size_t i = 0; i < name.len; i++) fits &= name.at[i] > ' ' && name.at[i] <= '~';
    return fits || yaml_err_key(e, node, "this is no tool's name");
}

/* "off" is an older word for hidden. */
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

/* NAME: POLICY. Whether such a tool exists is only known where tools are made. */
static bool set_policy(struct config *config, const struct yaml *node, struct err *e) {
    struct config_agent_tool *set = (struct config_agent_tool *)config->tools.policies;
    enum config_policy policy;
    if (!find_policy(node, &policy)) {
        char hint[NEAREST_HINT_BYTES];
        struct nearest nearest;
        nearest_init(&nearest, node->key);
        for (size_t i = 0; i < ARRAY_LEN(sections); i++)
            nearest_offer(&nearest, str_from(sections[i].name));
        return yaml_err_key(e, node,
                            "'" STR_FMT "' has no settings here; all it may be is allow, ask, "
                            "hidden or off%s",
                            STR_ARG(str_head(node->key, 40)), nearest_hint(&nearest, hint));
    }
    if (!config_tool_name(node, e)) return false;
    set[config->tools.policy_count++] = (struct config_agent_tool){
        .name = node->key, .policy = policy, .said = true, .at = node};
    return true;
}

static bool read_entry(struct config *config, const struct config_input *input,
                       const struct yaml *node, struct err *e) {
    for (size_t i = 0; i < ARRAY_LEN(sections); i++) {
        if (node->kind == YAML_MAP && str_equal(node->key, str_from(sections[i].name)))
            return sections[i].read(config, input, node, e);
    }
    return set_policy(config, node, e);
}

bool config_read_tools(struct config *config, const struct config_input *input,
                       const struct yaml *node, struct err *e) {
    if (!config_want(node, YAML_MAP, "a map of tools", e)) return false;
    config->tools.policies =
        arena_alloc(config->arena, node->count * sizeof(struct config_agent_tool));
    if (!config->tools.policies) return too_large(node, e);
    for (const struct yaml *entry = node->first; entry; entry = entry->next) {
        if (!read_entry(config, input, entry, e) && !config_goes_on(config, e)) return false;
    }
    return true;
}
