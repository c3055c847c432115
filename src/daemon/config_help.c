/* The settings explained and shown: --help, docs/config.md, and what is in force. */
#include "daemon/config_build.h"

#define HELP_COLUMN 26

static const char *shown_default(const struct setting *setting) {
    if (setting->shown) return setting->shown;
    return setting->preset ? setting->preset : "none";
}

static void append_names(const struct setting *setting, const char *between, struct buf *out) {
    for (size_t i = 0; i < SETTING_ENV_MAX && setting->env[i]; i++)
        buf_printf(out, "%s%s", i ? between : "", setting->env[i]);
    if (setting->kind == SETTING_SECRET) buf_printf(out, "%s%s_FILE", between, setting->env[0]);
}

static void append_padding(struct buf *out, size_t line_start) {
    size_t used = out->len - line_start;
    do buf_append_byte(out, ' ');
    while (++used < HELP_COLUMN);
}

void config_help(struct buf *out) {
    buf_append(out,
               STR("Settings. Flags beat environment, environment beats the file, the file "
                   "beats defaults.\n\n"));
    size_t start = out->len;
    buf_append(out, STR("  -c, --config PATH"));
    append_padding(out, start);
    buf_append(out, STR("the settings file [WEIR_CONFIG]\n"));
    for (size_t i = 0; i < setting_count; i++) {
        const struct setting *setting = &settings[i];
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
        append_names(setting, ", ", out);
        buf_printf(out, "; default %s]\n", shown_default(setting));
    }
}

void config_help_markdown(struct buf *out) {
    for (size_t i = 0; i < setting_count; i++) {
        const struct setting *setting = &settings[i];
        if (setting->group)
            buf_printf(out,
                       "%s### %s\n\n| file key | flag | environment | default | meaning |\n"
                       "|---|---|---|---|---|\n",
                       i ? "\n" : "", setting->group);
        buf_printf(out, "| `%s` | ", setting->key);
        if (setting->flag) buf_printf(out, "`--%s`", setting->flag);
        buf_append(out, STR(" | `"));
        append_names(setting, "` `", out);
        buf_printf(out, "` | %s | %s%s |\n", shown_default(setting), setting->help,
                   setting->fixed ? " (*start*)" : "");
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

void config_print(const struct config *config, struct buf *out) {
    for (size_t i = 0; i < setting_count; i++) {
        buf_printf(out, "%s = ", settings[i].key);
        setting_append(&settings[i], config, out);
        buf_append(out, STR(" ("));
        append_origin(config, &config->origins[i], out);
        buf_append(out, STR(")\n"));
    }
    config_print_lists(config, out);
}
