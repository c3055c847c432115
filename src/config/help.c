/* Settings explained and shown: --help, docs/config.md, and the values in force. */
#include "config/build.h"

#include "wire/json.h"

#include <stdio.h>

#define HELP_COLUMN 26

static void help_append_names(const struct setting *setting, const char *between,
                              struct buf *out) {
    for (size_t i = 0; i < SETTING_ENV_MAX && setting->env[i]; i++)
        buf_printf(out, "%s%s", i ? between : "", setting->env[i]);
    if (setting->kind == SETTING_SECRET) buf_printf(out, "%s%s_FILE", between, setting->env[0]);
}

static void append_padding(struct buf *out, size_t line_start) {
    buf_append_byte(out, ' '); /* two at least: they end the name */
    do buf_append_byte(out, ' ');
    while (out->len - line_start < HELP_COLUMN);
}

static const struct setting *rows_of(const struct config *config, size_t *ret_count) {
    *ret_count = config ? config->setting_count : setting_count;
    return config ? config->settings : settings;
}

void config_help(const struct config *config, struct buf *out) {
    size_t count;
    const struct setting *rows = rows_of(config, &count);
    buf_append(out,
               STR("Settings. Flags beat environment, environment beats the file, the file "
                   "beats defaults.\n\n"));
    size_t start = out->len;
    buf_append(out, STR("  -c, --config PATH"));
    append_padding(out, start);
    buf_append(out, STR("the settings file [WEIR_CONFIG]\n"));
    for (size_t i = 0; i < count; i++) {
        const struct setting *setting = &rows[i];
        if (setting->group) buf_printf(out, "\n%s\n", setting->group);
        start = out->len;
        if (setting->flag) {
            const char *value = setting_placeholder(setting);
            buf_printf(out, "  --%s%s%s", setting->flag, *value ? " " : "", value);
        } else {
            buf_append(out, STR("  (no flag)"));
        }
        append_padding(out, start);
        buf_printf(out, "%s\n", setting->help);
        buf_printf(out, "%*s[", HELP_COLUMN, "");
        help_append_names(setting, ", ", out);
        buf_append(out, STR("; default "));
        setting_append_default(setting, out);
        buf_append(out, STR("]\n"));
    }
}

static void append_settings(const struct config *config, struct buf *out) {
    size_t count;
    const struct setting *rows = rows_of(config, &count);
    for (size_t i = 0; i < count; i++) {
        const struct setting *setting = &rows[i];
        if (setting->group)
            buf_printf(out,
                       "%s### %s\n\n| file key | flag | environment | default | meaning |\n"
                       "|---|---|---|---|---|\n",
                       i ? "\n" : "", setting->group);
        buf_printf(out, "| `%s` | ", setting->key);
        if (setting->flag) buf_printf(out, "`--%s`", setting->flag);
        buf_append(out, STR(" | `"));
        help_append_names(setting, "` `", out);
        buf_append(out, STR("` | "));
        setting_append_default(setting, out);
        buf_printf(out, " | %s%s |\n", setting->help, setting->fixed ? " (*start*)" : "");
    }
}

/* The accepted form of a value: "low, medium, high", "1 to 10", "TIME". */
static void append_form(const struct setting *row, struct buf *out) {
    for (size_t i = 0; row->choices && row->choices[i]; i++)
        buf_printf(out, "%s%s", i ? ", " : "", row->choices[i]);
    if (row->choices) return;
    bool counts = row->kind == SETTING_COUNT || row->kind == SETTING_DECIMAL;
    if (counts && row->most) {
        buf_printf(out, "%llu to %llu", (unsigned long long)row->least,
                   (unsigned long long)row->most);
    } else {
        bool yes_no = row->kind == SETTING_BOOL;
        buf_append(out, str_from(yes_no ? "true, false" : setting_placeholder(row)));
    }
}

static void append_rows(const struct entry_schema *schema, const char *before,
                        struct buf *out) {
    for (size_t i = 0; i < schema->count; i++) {
        const struct setting *row = &schema->rows[i];
        if (row->part) {
            char prefix[64];
            snprintf(prefix, sizeof(prefix), "%s%s.", before, row->key);
            append_rows(row->part, prefix, out);
            continue;
        }
        buf_printf(out, "| `%s%s` | ", before, row->key);
        append_form(row, out);
        buf_printf(out, " | %s%s |\n", row->help, row->required ? " (*required*)" : "");
    }
}

void config_help_markdown(const struct config *config, struct buf *out) {
    append_settings(config, out);
    for (size_t i = 0; config_lists[i]; i++) {
        buf_printf(out, "\n### Entries of `%s`\n\n| key | value | meaning |\n|---|---|---|\n",
                   config_lists[i]->key);
        append_rows(&config_lists[i]->schema, "", out);
    }
}

static void append_origin(const struct config *config, const struct config_origin *origin,
                          struct buf *out) {
    switch (origin->source) {
    case FROM_DEFAULT: buf_append(out, STR("default")); break;
    case FROM_FILE: buf_append(out, config->file); break;
    case FROM_ENVIRONMENT: buf_append(out, str_from(origin->name)); break;
    case FROM_FLAG: buf_printf(out, "--%s", origin->name); break;
    }
}

static struct str source_name(enum config_source source) {
    static const char *const names[] = {[FROM_DEFAULT] = "default",
                                        [FROM_FILE] = "file",
                                        [FROM_ENVIRONMENT] = "environment",
                                        [FROM_FLAG] = "flag"};
    return str_from(names[source]);
}

static void put_setting(struct json_writer *json, const struct config *config, size_t index,
                        struct buf *value) {
    const struct config_origin *origin = &config->origins[index];
    buf_clear(value);
    setting_append(&config->settings[index], config, value);
    json_open_object(json);
    json_member_str(json, "key", str_from(config->settings[index].key));
    json_member_str(json, "value", buf_str(value));
    json_member_str(json, "source", source_name(origin->source));
    if (origin->source == FROM_FILE) json_member_str(json, "name", config->file);
    if (origin->name) json_member_str(json, "name", str_from(origin->name));
    json_close(json);
}

/* Write the entries of lists, one line each: "KEY = VALUE". */
static void put_lists(struct json_writer *json, const struct config *config,
                      struct buf *lines) {
    buf_clear(lines);
    config_print_lists(config, lines);
    struct str rest = buf_str(lines);
    while (rest.len) {
        struct str line = str_split(rest, '\n', &rest);
        size_t at = str_find(line, STR(" = "));
        if (at == line.len) continue;
        json_open_object(json);
        json_member_str(json, "key", str_head(line, at));
        json_member_str(json, "value", str_skip(line, at + strlen(" = ")));
        json_close(json);
    }
}

void config_print_json(const struct config *config, struct buf *out) {
    struct buf text;
    buf_init(&text, MIB);
    struct json_writer json = json_writer(out);
    json_open_object(&json);
    json_member_array(&json, "settings");
    for (size_t i = 0; i < config->setting_count; i++) put_setting(&json, config, i, &text);
    json_close(&json);
    json_member_array(&json, "lists");
    put_lists(&json, config, &text);
    json_close(&json);
    json_close(&json);
    buf_append_byte(out, '\n');
    buf_done(&text);
}

void config_print(const struct config *config, struct buf *out) {
    for (size_t i = 0; i < config->setting_count; i++) {
        buf_printf(out, "%s = ", config->settings[i].key);
        setting_append(&config->settings[i], config, out);
        buf_append(out, STR(" ("));
        append_origin(config, &config->origins[i], out);
        buf_append(out, STR(")\n"));
    }
    config_print_lists(config, out);
}
