/* The command line and the environment: two of the three sources of settings. */
#include "config/build.h"

#include "base/nearest.h"

#include <stdio.h>
#include <unistd.h>

/* --- flags ---------------------------------------------------------------------------- */

static bool find_flag(const struct config *config, struct str flag, struct config_flag *ret) {
    const struct setting *setting = setting_by_flag(config, flag);
    if (!setting) return false;
    bool own = setting->flag && str_equal(flag, str_from(setting->flag));
    *ret = (struct config_flag){.setting = setting,
                                .flag = own ? setting->flag : setting->also.flag,
                                .before = own ? "" : setting->also.before};
    return true;
}

static bool refuse_flag(const struct config *config, const struct config_input *input,
                        struct str flag, struct err *e) {
    struct nearest nearest;
    nearest_init(&nearest, flag);
    for (size_t i = 0; i < config->setting_count; i++) {
        if (config->settings[i].flag)
            nearest_offer(&nearest, str_from(config->settings[i].flag));
    }
    nearest_offer(&nearest, STR("config"));
    nearest_offer(&nearest, STR("help"));
    for (const char *const *own = input->own_flags; own && *own; own++) {
        nearest_offer(&nearest, str_from(*own));
    }
    if (nearest.found.len == 0)
        return err_set(e, ERR_INVALID_ARGUMENT, "no flag is called --" STR_FMT "; see --help",
                       STR_ARG(str_head(flag, 40)));
    return err_set(e, ERR_INVALID_ARGUMENT,
                   "no flag is called --" STR_FMT "; did you mean --" STR_FMT "?",
                   STR_ARG(str_head(flag, 40)), STR_ARG(nearest.found));
}

/* The value of a flag: after its '=', or the next argument. */
static bool take_flag_value(const struct config_input *input, size_t *i, struct str flag,
                            struct str attached, struct str *ret, struct err *e) {
    if (attached.at) {
        *ret = attached;
        return true;
    }
    bool last = *i + 1 == input->arg_count;
    if (last || str_starts(str_from(input->args[*i + 1]), STR("--")))
        return err_set(e, ERR_INVALID_ARGUMENT, "--" STR_FMT " needs a value", STR_ARG(flag));
    *ret = str_from(input->args[++*i]);
    return true;
}

static bool take_long(const struct config_input *input, size_t *i, struct config_flags *flags,
                      struct err *e) {
    struct str attached;
    struct str flag = str_split(str_from(input->args[*i] + 2), '=', &attached);
    if (str_equal(flag, STR("config")))
        return take_flag_value(input, i, flag, attached, &flags->file, e);

    struct config_flag *given = &flags->given[flags->count];
    if (config_flag_is_unused(flags->config, flag))
        return take_flag_value(input, i, flag, attached, &given->value, e);
    if (!find_flag(flags->config, flag, given))
        return refuse_flag(flags->config, input, flag, e);
    const struct setting *setting = given->setting;
    flags->count++;
    if (setting->kind == SETTING_BOOL && !attached.at) {
        given->value = STR("true");
        return true;
    }
    return take_flag_value(input, i, flag, attached, &given->value, e);
}

static bool take_short(const struct config_input *input, size_t *i, struct config_flags *flags,
                       struct err *e) {
    struct str arg = str_from(input->args[*i]);
    if (str_equal(arg, STR("-v"))) {
        flags->given[flags->count++] = (struct config_flag){
            setting_by_flag(flags->config, STR("log-level")), "log-level", "", STR("debug")};
        return true;
    }
    if (!str_equal(arg, STR("-c")))
        return err_set(e, ERR_INVALID_ARGUMENT, "no flag is called " STR_FMT "; see --help",
                       STR_ARG(str_head(arg, 40)));
    return take_flag_value(input, i, STR("config"), (struct str){0}, &flags->file, e);
}

static bool is_help(const char *arg) {
    return strcmp(arg, "--help") == 0 || strcmp(arg, "-h") == 0;
}

bool config_scan_flags(struct config *config, const struct config_input *input,
                       struct config_flags *flags, struct err *e) {
    struct str *operands = (struct str *)config->operands; /* not shared yet */
    bool flags_over = false;
    for (size_t i = 0; i < input->arg_count; i++) {
        const char *arg = input->args[i];
        bool long_flag = strncmp(arg, "--", 2) == 0;
        if (!flags_over && strcmp(arg, "--") == 0) {
            flags_over = true;
        } else if (flags_over || arg[0] != '-' || arg[1] == '\0') {
            if (!arena_str(config->arena, str_from(arg), &operands[config->operand_count]))
                return err_set(e, ERR_TOO_LARGE, "the arguments are too long");
            if (config->operand_count++ == 0) config->operand_at = i;
        } else if (is_help(arg)) {
            config->help = true;
            return true;
        } else if (!(long_flag ? take_long : take_short)(input, &i, flags, e)) {
            return false;
        }
    }
    return true;
}

/* Set a value with `before` prepended, unless it begins with it already. */
static bool apply_after(struct config *config, const struct setting *setting,
                        const char *before, struct str value, enum config_source source,
                        const char *name, struct err *e) {
    struct buf text;
    buf_init(&text, value.len + 64);
    buf_append(&text, str_from(before));
    buf_append(&text, value);
    bool done = config_apply(config, setting, buf_str(&text), source, name, e);
    buf_done(&text);
    return done;
}

bool config_apply_flags(struct config *config, const struct config_flags *flags,
                        struct err *e) {
    for (size_t i = 0; i < flags->count; i++) {
        const struct config_flag *given = &flags->given[i];
        if (apply_after(config, given->setting, given->before, given->value, FROM_FLAG,
                        given->flag, e))
            continue;
        err_add(e, "--%s", given->flag);
        if (!config_goes_on(config, e)) return false;
    }
    return true;
}

/* --- environment ---------------------------------------------------------------------- */

static bool apply_variable(struct config *config, const struct setting *setting,
                           const char *name, struct str value, struct err *e) {
    bool other = setting->also.env && strcmp(name, setting->also.env) == 0;
    if (setting->kind == SETTING_SECRET)
        return config_apply_secret(config, setting, value, FROM_ENVIRONMENT, name, false, e);
    return apply_after(config, setting, other ? setting->also.before : "", value,
                       FROM_ENVIRONMENT, name, e);
}

bool config_mounted_secret(const struct config_input *input, const char *name,
                           struct buf *room) {
    struct str folder = config_env(input, "SECRETS_DIR");
    if (!folder.at) folder = STR("/mnt/secrets");
    buf_printf(room, STR_FMT "/%s", STR_ARG(folder), name);
    buf_append_byte(room, '\0');
    room->len--;
    return buf_ok(room) && access(room->at, F_OK) == 0;
}

static bool read_secret_at(struct config *config, const struct setting *setting,
                           struct str path, const char *name, const char *where,
                           struct err *e) {
    return config_read_secret(config, setting, path, FROM_ENVIRONMENT, name, e) ||
           err_add(e, "%s", where);
}

/* If the variable is not set, use a mounted file of its name, or the file that NAME_FILE names,
 * as is usual in containers. */
static bool apply_secret_file(struct config *config, const struct setting *setting,
                              const struct config_input *input, const char *name,
                              struct err *e) {
    char file_name[64];
    struct buf room;
    snprintf(file_name, sizeof(file_name), "%s_FILE", name);
    struct str path = config_env(input, file_name);
    if (config_env(input, name).at) {
        if (path.at) config_warn(config, "%s is set, so %s is not read", name, file_name);
        return true;
    }
    buf_init(&room, 4 * KIB);
    bool done = true;
    if (config_mounted_secret(input, name, &room)) {
        done = read_secret_at(config, setting, buf_str(&room), name, room.at, e);
    } else if (path.at) {
        done = read_secret_at(config, setting, path, name, file_name, e);
    }
    buf_done(&room);
    return done;
}

bool config_apply_environment(struct config *config, const struct config_input *input,
                              struct err *e) {
    for (size_t i = 0; i < config->setting_count; i++) {
        const struct setting *setting = &config->settings[i];
        for (size_t n = 0; n < SETTING_ENV_MAX && setting->env[n]; n++) {
            const char *name = setting->env[n];
            struct str value = config_env(input, name);
            if (setting->kind == SETTING_SECRET &&
                !apply_secret_file(config, setting, input, name, e) &&
                !config_goes_on(config, e))
                return false;
            if (!value.at) continue;
            if (!apply_variable(config, setting, name, value, e)) {
                err_add(e, "%s", name);
                if (!config_goes_on(config, e)) return false;
            }
            break; /* our own name comes first and wins */
        }
    }
    return true;
}

void config_warn_of_slips(struct config *config, const struct config_input *input) {
    for (const char *const *entry = input->environment; entry && *entry; entry++) {
        struct str rest;
        struct str name = str_split(str_from(*entry), '=', &rest);
        if (!str_starts(name, STR("WEIR_")) || str_equal(name, STR("WEIR_CONFIG")) ||
            str_equal(name, STR("WEIR_URL"))) /* of the commands that ask a daemon */
            continue;
        struct nearest nearest;
        nearest_init(&nearest, name);
        nearest_offer(&nearest, STR("WEIR_CONFIG"));
        for (size_t i = 0; i < config->setting_count; i++) {
            if (config->settings[i].env[0])
                nearest_offer(&nearest, str_from(config->settings[i].env[0]));
        }
        if (nearest.found.len && nearest.edits > 0)
            config_warn(config, "nothing reads " STR_FMT "; did you mean " STR_FMT "?",
                        STR_ARG(str_head(name, 64)), STR_ARG(nearest.found));
    }
}
