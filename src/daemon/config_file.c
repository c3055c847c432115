/* The settings file: YAML whose keys are those of the table, and a list of agents. */
#include "daemon/config_build.h"

#include "base/file.h"
#include "base/nearest.h"
#include "wire/yaml.h"

/* --- agents --------------------------------------------------------------------------- */

struct agent_nodes {
    struct config_agent agent;
    const struct yaml *tools, *delegates;
};

static const struct yaml_field agent_fields[] = {
    {"slug", YAML_NAME, offsetof(struct agent_nodes, agent.slug), true},
    {"description", YAML_TEXT, offsetof(struct agent_nodes, agent.description), false},
    {"system", YAML_TEXT, offsetof(struct agent_nodes, agent.system), false},
    {"model", YAML_TEXT, offsetof(struct agent_nodes, agent.model), false},
    {"provider", YAML_NAME, offsetof(struct agent_nodes, agent.provider), false},
    {"thinking", YAML_BOOL, offsetof(struct agent_nodes, agent.thinking), false},
    {"tools", YAML_NODE, offsetof(struct agent_nodes, tools), false},
    {"delegates", YAML_NODE, offsetof(struct agent_nodes, delegates), false},
};

static bool read_names(const struct yaml *list, const struct str **ret, size_t *ret_count,
                       struct err *e) {
    if (list->kind != YAML_LIST)
        return yaml_err(e, list, "expected a list of names, such as [one, two]");
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

static bool has_agent(const struct config_agent *agents, size_t count, struct str slug) {
    for (size_t i = 0; i < count; i++) {
        if (str_equal(agents[i].slug, slug)) return true;
    }
    return false;
}

static bool read_agent(const struct yaml *node, struct config_agent *ret, struct err *e) {
    struct agent_nodes nodes = {.agent = {.description = STR_EMPTY,
                                          .system = STR_EMPTY,
                                          .model = STR_EMPTY,
                                          .provider = STR_EMPTY}};
    if (!yaml_fields(node, "an agent", agent_fields, ARRAY_LEN(agent_fields), &nodes, e))
        return false;
    const struct yaml *provider = yaml_find(node, STR("provider"));
    if (provider && !str_equal(nodes.agent.provider, STR("scripted")))
        return yaml_err(e, provider, "the only provider of this version is 'scripted'");
    *ret = nodes.agent;
    ret->all_tools = !nodes.tools;
    return (!nodes.tools || read_names(nodes.tools, &ret->tools, &ret->tool_count, e)) &&
           (!nodes.delegates ||
            read_names(nodes.delegates, &ret->delegates, &ret->delegate_count, e));
}

/* A delegate may stand below the agent that names it, so this comes last. */
static bool check_delegates(const struct config *config, const struct yaml *list,
                            struct err *e) {
    for (const struct yaml *item = list->first; item; item = item->next) {
        const struct yaml *delegates = yaml_find(item, STR("delegates"));
        if (!delegates) continue;
        for (const struct yaml *name = delegates->first; name; name = name->next) {
            if (has_agent(config->agents, config->agent_count, name->text)) continue;
            char hint[NEAREST_HINT_BYTES];
            struct nearest nearest;
            nearest_init(&nearest, name->text);
            for (size_t i = 0; i < config->agent_count; i++)
                nearest_offer(&nearest, config->agents[i].slug);
            return yaml_err(e, name, "no agent is called '" STR_FMT "'%s", STR_ARG(name->text),
                            nearest_hint(&nearest, hint));
        }
    }
    return true;
}

static bool read_agents(struct config *config, const struct yaml *list, struct err *e) {
    if (list->kind != YAML_LIST) return yaml_err(e, list, "expected a list of agents");
    struct config_agent *agents = arena_alloc(config->arena, list->count * sizeof(*agents));
    if (!agents) return yaml_err(e, list, "this list is too large");
    size_t count = 0;
    for (const struct yaml *item = list->first; item; item = item->next) {
        if (!read_agent(item, &agents[count], e)) return false;
        if (has_agent(agents, count, agents[count].slug))
            return yaml_err(e, item, "a second agent '" STR_FMT "'; give it another slug",
                            STR_ARG(agents[count].slug));
        count++;
    }
    config->agents = agents;
    config->agent_count = count;
    return check_delegates(config, list, e);
}

/* --- settings ------------------------------------------------------------------------- */

/* A path in the file is meant from where the file stands. */
static struct str from_folder(const struct config *config, struct str path, struct buf *room) {
    size_t folder = config->file.len;
    while (folder > 0 && config->file.at[folder - 1] != '/') folder--;
    if (str_starts(path, STR("/")) || folder == 0) return path;
    buf_append(room, str_head(config->file, folder));
    buf_append(room, path);
    return buf_str(room);
}

static bool apply_value(struct config *config, const struct setting *setting,
                        const struct yaml *value, struct buf *room, struct err *e) {
    struct err why;
    struct str text = value->text;
    bool path = setting->kind == SETTING_PATH || setting->kind == SETTING_SECRET;
    if (path && text.len) text = from_folder(config, text, room);
    bool done = setting->kind == SETTING_SECRET
                    ? config_read_secret(config, setting, text, FROM_FILE, NULL, &why)
                    : config_apply(config, setting, text, FROM_FILE, NULL, &why);
    return done || yaml_err(e, value, "%s: %s", setting->key, why.text);
}

static bool take_value(struct config *config, const struct setting *setting,
                       const struct yaml *value, struct err *e) {
    if (yaml_is_null(value)) return true; /* a key without a value says nothing */
    if (value->kind != YAML_SCALAR)
        return yaml_err(e, value, "'%s' is one value, not a %s", setting->key,
                        value->kind == YAML_MAP ? "map" : "list");
    struct buf room;
    buf_init(&room, 64 * KIB);
    bool done = apply_value(config, setting, value, &room, e);
    buf_done(&room);
    return done;
}

/* What stands below "listen." in the table, or, for an empty prefix, at the top. */
static void offer_keys(struct nearest *nearest, struct str prefix) {
    for (size_t i = 0; i < setting_count; i++) {
        struct str key = str_from(settings[i].key);
        if (!str_starts(key, prefix)) continue;
        key = str_skip(key, prefix.len);
        nearest_offer(nearest, str_head(key, str_find_byte(key, '.')));
    }
    if (prefix.len == 0) nearest_offer(nearest, STR("agents"));
}

static bool refuse_key(const struct yaml *value, struct str prefix, struct err *e) {
    char hint[NEAREST_HINT_BYTES];
    struct nearest nearest;
    nearest_init(&nearest, value->key);
    offer_keys(&nearest, prefix);
    return yaml_err_key(e, value, "no setting is called '" STR_FMT STR_FMT "'%s",
                        STR_ARG(prefix), STR_ARG(str_head(value->key, 40)),
                        nearest_hint(&nearest, hint));
}

static bool take_section(struct config *config, const struct yaml *map, struct err *e) {
    if (yaml_is_null(map)) return true;
    if (map->kind != YAML_MAP)
        return yaml_err(e, map, "'" STR_FMT "' is a map of settings", STR_ARG(map->key));
    struct buf key;
    buf_init(&key, KIB);
    bool done = true;
    for (const struct yaml *value = map->first; value && done; value = value->next) {
        buf_clear(&key);
        buf_printf(&key, STR_FMT ".", STR_ARG(map->key));
        size_t prefix_len = key.len;
        buf_append(&key, value->key);
        const struct setting *setting = setting_by_key(buf_str(&key));
        done = setting ? take_value(config, setting, value, e)
                       : refuse_key(value, str_head(buf_str(&key), prefix_len), e);
        if (!done) done = config_goes_on(config, e);
    }
    buf_done(&key);
    return done;
}

/* Whether some setting is called "KEY.something". */
static bool is_section(struct str key) {
    for (size_t i = 0; i < setting_count; i++) {
        struct str known = str_from(settings[i].key);
        if (str_starts(known, key) && str_starts(str_skip(known, key.len), STR(".")))
            return true;
    }
    return false;
}

static bool take_file(struct config *config, const struct yaml *root, struct err *e) {
    if (yaml_is_null(root)) return true;
    if (root->kind != YAML_MAP)
        return yaml_err(e, root, "expected settings, such as 'data: DIR'");
    for (const struct yaml *value = root->first; value; value = value->next) {
        const struct setting *setting = setting_by_key(value->key);
        bool done;
        if (str_equal(value->key, STR("agents"))) {
            done = yaml_is_null(value) || read_agents(config, value, e);
        } else if (is_section(value->key)) {
            done = take_section(config, value, e);
        } else if (setting && str_find_byte(value->key, '.') == value->key.len) {
            done = take_value(config, setting, value, e);
        } else {
            done = refuse_key(value, STR_EMPTY, e);
        }
        if (!done && !config_goes_on(config, e)) return false;
    }
    return true;
}

bool config_read_file(struct config *config, struct err *e) {
    struct buf text;
    const struct yaml *root;
    buf_init(&text, YAML_MAX_BYTES);
    bool done = file_read(config->file, &text, e) &&
                yaml_parse(config->arena, config->file, buf_str(&text), &root, e) &&
                take_file(config, root, e);
    buf_done(&text);
    return done;
}
