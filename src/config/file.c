/* The settings file: YAML with the keys of the table, and sections that are lists. */
#include "config/build.h"

#include "base/file.h"
#include "base/nearest.h"

/* The sections that are not settings of the table. */
const struct config_list *const config_lists[] = {&config_provider_list, &config_agent_list,
                                                  &config_tool_map,      &config_price_list,
                                                  &config_budget_list,   &config_connector_list,
                                                  &config_issuer_list,   &config_guardrail_list,
                                                  &config_mcp_list,      NULL};

/* --- settings ------------------------------------------------------------------------- */

struct str config_from_folder(const struct config *config, struct str path, struct buf *room) {
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
    if (path && text.len) text = config_from_folder(config, text, room);
    bool done = setting->kind == SETTING_SECRET
                    ? config_read_secret(config, setting, text, FROM_FILE, NULL, &why)
                    : config_apply(config, setting, text, FROM_FILE, NULL, &why);
    return done || yaml_err(e, value, "%s: %s", setting->key, why.text);
}

/* Join a list of words to one text with ';' between them. */
static bool take_words(struct config *config, const struct setting *setting,
                       const struct yaml *list, struct err *e) {
    struct buf text;
    struct err why;
    bool done = true;
    buf_init(&text, 64 * KIB);
    for (const struct yaml *item = list->first; item && done; item = item->next) {
        bool word =
            item->kind == YAML_SCALAR && str_find_byte(item->text, ';') == item->text.len;
        word = word && str_trim(item->text).len > 0;
        done = word || yaml_err(e, item, "%s: a list of words without ';'", setting->key);
        if (text.len) buf_append_byte(&text, ';');
        if (done) buf_append(&text, item->text);
    }
    if (done && !config_apply(config, setting, buf_str(&text), FROM_FILE, NULL, &why))
        done = yaml_err(e, list, "%s: %s", setting->key, why.text);
    buf_done(&text);
    return done;
}

static bool is_list(enum setting_kind kind) {
    return kind == SETTING_WORDS || kind == SETTING_HOSTS || kind == SETTING_ORIGINS;
}

static bool file_take_value(struct config *config, const struct setting *setting,
                            const struct yaml *value, struct err *e) {
    if (yaml_is_null(value)) return true; /* a key without a value has no effect */
    if (is_list(setting->kind) && value->kind == YAML_LIST)
        return take_words(config, setting, value, e);
    if (value->kind != YAML_SCALAR)
        return yaml_err(e, value, "'%s' is one value, not a %s", setting->key,
                        value->kind == YAML_MAP ? "map" : "list");
    struct buf room;
    buf_init(&room, 64 * KIB);
    bool done = apply_value(config, setting, value, &room, e);
    buf_done(&room);
    return done;
}

/* Offer the names that follow `prefix` in the table; with an empty prefix, the top-level
 * keys. */
static void offer_keys(const struct config *config, struct nearest *nearest,
                       struct str prefix) {
    for (size_t i = 0; i < config->setting_count; i++) {
        struct str key = str_from(config->settings[i].key);
        if (!str_starts(key, prefix)) continue;
        key = str_skip(key, prefix.len);
        nearest_offer(nearest, str_head(key, str_find_byte(key, '.')));
    }
    if (prefix.len) return;
    for (size_t i = 0; config_lists[i]; i++)
        nearest_offer(nearest, str_from(config_lists[i]->key));
}

/* For names that other programs give their section of MCP servers. */
#define MCP_HINT "; MCP servers are a list of the section mcp (docs/tools.md)"

static bool means_mcp(struct str key) {
    return str_equal(key, STR("mcp_servers")) || str_equal(key, STR("mcpServers"));
}

/* A file of the offline provider that was taken for settings. */
#define SCRIPT_HINT                                                                            \
    "; this is of a script, which --script FILE plays, or `script: FILE` in the settings"

static bool means_script(struct str key) {
    return str_equal(key, STR("pace")) || str_equal(key, STR("scenes"));
}

static const char *key_hint(struct nearest *nearest, struct str key, struct str prefix) {
    if (!prefix.len && means_mcp(key)) return MCP_HINT;
    if (!prefix.len && means_script(key)) return SCRIPT_HINT;
    return nearest_hint(nearest);
}

static bool file_refuse_key(const struct config *config, const struct yaml *value,
                            struct str prefix, struct err *e) {
    struct nearest nearest;
    nearest_init(&nearest, value->key);
    offer_keys(config, &nearest, prefix);
    return yaml_err_key(e, value, "no setting is called '" STR_FMT STR_FMT "'%s",
                        STR_ARG(prefix), STR_ARG(str_head(value->key, 40)),
                        key_hint(&nearest, value->key, prefix));
}

/* Whether some setting is called "KEY.something". */
static bool is_section(const struct config *config, struct str key) {
    for (size_t i = 0; i < config->setting_count; i++) {
        struct str known = str_from(config->settings[i].key);
        if (str_starts(known, key) && str_starts(str_skip(known, key.len), STR(".")))
            return true;
    }
    return false;
}

/* `prefix` is empty, or ends in a dot. A section may hold others: files: {s3: {...}}. */
static bool take_section(struct config *config, const struct yaml *map, struct str prefix,
                         struct err *e) {
    if (yaml_is_null(map)) return true;
    if (map->kind != YAML_MAP)
        return yaml_err(e, map, "'" STR_FMT STR_FMT "' is a map of settings", STR_ARG(prefix),
                        STR_ARG(map->key));
    struct buf key;
    buf_init(&key, KIB);
    bool done = true;
    for (const struct yaml *value = map->first; value && done; value = value->next) {
        buf_clear(&key);
        buf_printf(&key, STR_FMT STR_FMT ".", STR_ARG(prefix), STR_ARG(map->key));
        struct str above = str_head(buf_str(&key), key.len);
        buf_append(&key, value->key);
        above.at = key.at; /* it may have moved */
        const struct setting *setting = setting_by_key(config, buf_str(&key));
        if (setting)
            done = file_take_value(config, setting, value, e);
        else if (buf_ok(&key) && is_section(config, buf_str(&key)))
            done = take_section(config, value, above, e);
        else
            done = file_refuse_key(config, value, above, e);
        if (!done) done = config_goes_on(config, e);
    }
    buf_done(&key);
    return done;
}

static const struct config_list *find_list(struct str key) {
    for (size_t i = 0; config_lists[i]; i++) {
        if (str_equal(key, str_from(config_lists[i]->key))) return config_lists[i];
    }
    return NULL;
}

static bool take_key(struct config *config, const struct config_input *input,
                     const struct yaml *value, struct err *e) {
    const struct setting *setting = setting_by_key(config, value->key);
    const struct config_list *list = find_list(value->key);
    if (list && yaml_is_null(value)) return true;
    if (list == &config_tool_map) return config_read_tools(config, input, value, e);
    if (list) return config_read_list(config, input, list, value, e);
    if (is_section(config, value->key)) return take_section(config, value, STR_EMPTY, e);
    if (setting && str_find_byte(value->key, '.') == value->key.len)
        return file_take_value(config, setting, value, e);
    return file_refuse_key(config, value, STR_EMPTY, e);
}

static bool take_file(struct config *config, const struct config_input *input,
                      const struct yaml *root, struct err *e) {
    if (yaml_is_null(root)) return true;
    if (root->kind != YAML_MAP)
        return yaml_err(e, root, "expected settings, such as 'data: DIR'");
    if (config_is_breeder(config, root)) return config_read_breeder(config, input, root, e);
    for (const struct yaml *value = root->first; value; value = value->next) {
        if (!take_key(config, input, value, e) && !config_goes_on(config, e)) return false;
    }
    return true;
}

bool config_read_file(struct config *config, const struct config_input *input, struct err *e) {
    struct buf text;
    const struct yaml *root;
    buf_init(&text, YAML_MAX_BYTES);
    bool read = file_read(config->file, &text, e);
    config->file_blank = read && str_trim(buf_str(&text)).len == 0;
    bool done = read && yaml_parse(config->arena, config->file, buf_str(&text), &root, e) &&
                take_file(config, input, root, e);
    buf_done(&text);
    return done;
}
