#include "config/config.h"

#include "base/file.h"
#include "base/mem.h"
#include "base/nearest.h"
#include "config/build.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define THREADS_MAX 256

/* The file that `weir init` writes. */
#define CONFIG_FILE_BESIDE "weir.yaml"

/* --- what the sources share ----------------------------------------------------------- */

void config_warn(struct config *config, const char *format, ...) {
    if (config->warning_count == CONFIG_WARNINGS_MAX) return;
    struct str *warnings = (struct str *)config->warnings; /* not shared yet */
    struct buf text;
    va_list values;
    buf_init(&text, KIB);
    va_start(values, format);
    buf_vprintf(&text, format, values);
    va_end(values);
    if (buf_ok(&text) &&
        arena_str(config->arena, buf_str(&text), &warnings[config->warning_count]))
        config->warning_count++;
    buf_done(&text);
}

bool config_goes_on(struct config *config, const struct err *why) {
    if (!config->problems || config->problem_count == CONFIG_PROBLEMS_MAX) return false;
    struct str *problems = (struct str *)config->problems; /* not shared yet */
    if (!arena_str(config->arena, err_text(why), &problems[config->problem_count]))
        return false;
    config->problem_count++;
    return true;
}

void config_problem(struct config *config, const struct err *why) {
    (void)!config_goes_on(config, why); /* at the limit, the first ones are enough */
}

bool config_step(struct config *config, bool well, const struct err *why) {
    return well || config_goes_on(config, why);
}

bool config_apply(struct config *config, const struct setting *setting, struct str text,
                  enum config_source source, const char *name, struct err *e) {
    if (!setting_set(setting, text, config, e)) return false;
    config->origins[setting - config->settings] = (struct config_origin){source, name};
    return true;
}

bool config_apply_secret(struct config *config, const struct setting *setting, struct str text,
                         enum config_source source, const char *name, bool from_file,
                         struct err *e) {
    struct str trimmed = str_trim(text);
    if (trimmed.len == 0)
        return err_set(e, ERR_INVALID_ARGUMENT,
                       "it holds nothing but white space; put the secret there, or remove it");
    /* Editors end a file with a newline, so that is not worth a warning. */
    struct str expected =
        from_file ? str_head(text, text.len - str_ends(text, STR("\n"))) : text;
    if (trimmed.len != expected.len)
        config_warn(config, "white space around %s was removed", name ? name : setting->key);
    return config_apply(config, setting, trimmed, source, name, e);
}

bool config_read_secret(struct config *config, const struct setting *setting, struct str path,
                        enum config_source source, const char *name, struct err *e) {
    struct buf text;
    buf_init(&text, SECRET_MAX_BYTES);
    bool done = file_read(path, &text, e) &&
                config_apply_secret(config, setting, buf_str(&text), source, name, true, e);
    if (text.room) explicit_bzero(text.at, text.room);
    buf_done(&text);
    return done;
}

struct str config_env(const struct config_input *input, const char *name) {
    size_t len = strlen(name);
    const char *const *entry = input->environment;
    for (; entry && *entry; entry++) {
        if (strncmp(*entry, name, len) != 0 || (*entry)[len] != '=') continue;
        struct str value = str_from(*entry + len + 1);
        if (value.len) return value;
    }
    return (struct str){0};
}

/* --- flags ---------------------------------------------------------------------------- */

/* The command line, which is read before the file because it may name the file. */
struct flags {
    struct given {
        const struct setting *setting;
        const char *flag;   /* as given */
        const char *before; /* prepended to the value */
        struct str value;
    } * given;
    size_t count;
    struct str file;
    const struct config *config; /* whose settings it may name */
};

static bool find_flag(const struct config *config, struct str flag, struct given *ret) {
    const struct setting *setting = setting_by_flag(config, flag);
    if (!setting) return false;
    bool own = setting->flag && str_equal(flag, str_from(setting->flag));
    *ret = (struct given){.setting = setting,
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

static bool take_long(const struct config_input *input, size_t *i, struct flags *flags,
                      struct err *e) {
    struct str attached;
    struct str flag = str_split(str_from(input->args[*i] + 2), '=', &attached);
    if (str_equal(flag, STR("config")))
        return take_flag_value(input, i, flag, attached, &flags->file, e);

    struct given *given = &flags->given[flags->count];
    if (config_pod_flag(flag))
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

static bool take_short(const struct config_input *input, size_t *i, struct flags *flags,
                       struct err *e) {
    struct str arg = str_from(input->args[*i]);
    if (str_equal(arg, STR("-v"))) {
        flags->given[flags->count++] = (struct given){
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

static bool scan_flags(struct config *config, const struct config_input *input,
                       struct flags *flags, struct err *e) {
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
            config->operand_count++;
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

static bool apply_flags(struct config *config, const struct flags *flags, struct err *e) {
    for (size_t i = 0; i < flags->count; i++) {
        const struct given *given = &flags->given[i];
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

static bool apply_environment(struct config *config, const struct config_input *input,
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

/* A variable with our prefix that is not a setting is probably a typing mistake. */
static void warn_of_slips(struct config *config, const struct config_input *input) {
    for (const char *const *entry = input->environment; entry && *entry; entry++) {
        struct str rest;
        struct str name = str_split(str_from(*entry), '=', &rest);
        if (!str_starts(name, STR("WEIR_")) || str_equal(name, STR("WEIR_CONFIG"))) continue;
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

/* --- what follows from the rest ------------------------------------------------------- */

bool config_is_set(const struct config *config, const void *member) {
    for (size_t i = 0; i < config->setting_count; i++) {
        if ((const char *)config + config->settings[i].offset == (const char *)member)
            return config->origins[i].source != FROM_DEFAULT;
    }
    return false;
}

static uint64_t allowed_cpus(const struct config_input *input) {
    cpu_set_t cpus;
    if (input->cpus) return input->cpus;
    if (sched_getaffinity(0, sizeof(cpus), &cpus) != 0) return 1;
    return (uint64_t)CPU_COUNT(&cpus);
}

/* The user's XDG data folder, or that of a service without a home. */
static bool work_out_data(struct config *config, const struct config_input *input,
                          struct err *e) {
    struct str data_home = config_env(input, "XDG_DATA_HOME");
    struct str home = config_env(input, "HOME");
    struct buf path;
    buf_init(&path, 4 * KIB);
    if (str_starts(data_home, STR("/"))) { /* XDG: ignore a relative path */
        buf_printf(&path, STR_FMT "/weir", STR_ARG(data_home));
    } else if (home.at) {
        buf_printf(&path, STR_FMT "/.local/share/weir", STR_ARG(home));
    } else {
        buf_append(&path, STR("/var/lib/weir"));
    }
    bool done = buf_ok(&path) && arena_str(config->arena, buf_str(&path), &config->data);
    buf_done(&path);
    return done || err_set(e, ERR_TOO_LARGE, "HOME is too long; set --data");
}

static bool work_out(struct config *config, const struct config_input *input, struct err *e) {
    bool pod = config_is_pod(config);
    bool chosen = config_is_set(config, &config->data);
    if (!chosen && !work_out_data(config, input, e)) return false;
    if (!chosen && pod && !config_pod_data(config, e)) return false;
    if (!config_is_set(config, &config->threads)) config->threads = allowed_cpus(input);
    if (config->threads > THREADS_MAX && !config_is_set(config, &config->threads))
        config->threads = THREADS_MAX;
    return true;
}

bool config_is_loopback(struct str address) {
    static const char *const near[] = {"127.", "localhost:", "[::1]:", "unix:"};
    for (size_t i = 0; i < ARRAY_LEN(near); i++) {
        if (str_starts(address, str_from(near[i]))) return true;
    }
    return address.len == 0;
}

/* A listener that does not exist yet. Only its setting does. */
static void warn_of_closed_doors(struct config *config) {
    if (config->admin.len)
        config_warn(config, "this version does not serve listen.admin; set it to off to "
                            "silence this");
}

void config_warn_of_limit(struct config *config, const char *narrow, const char *wide,
                          const char *why) {
    uint64_t inner = setting_number(setting_by_key(config, str_from(narrow)), config);
    uint64_t outer = setting_number(setting_by_key(config, str_from(wide)), config);
    if (outer && inner > outer)
        config_warn(config, "%s is more than %s and never counts: %s", narrow, wide, why);
}

static void warn_of_limits(struct config *config) {
    config_warn_of_limit(config, "limits.reply", "limits.run", "a reply is part of its turn");
    config_warn_of_limit(config, "limits.tool_output", "limits.run",
                         "a result is part of its turn");
    config_warn_of_limit(config, "limits.field_bytes", "limits.connection",
                         "fields wait in their connection");
}

/* Checked when all settings have been read, because a number may be derived from others. */
static bool check_bounds(const struct config *config, const struct setting *setting,
                         struct err *e) {
    uint64_t number = setting_number(setting, config);
    if (number >= setting->least && (!setting->most || number <= setting->most)) return true;
    if (setting->most)
        return err_set(e, ERR_INVALID_ARGUMENT, "%s: %llu is not from %llu to %llu",
                       setting->key, (unsigned long long)number,
                       (unsigned long long)setting->least, (unsigned long long)setting->most);
    struct buf usual;
    buf_init(&usual, KIB);
    setting_append_default(setting, &usual);
    err_set(e, ERR_INVALID_ARGUMENT, "%s: 0 lets nothing through; leave it at " STR_FMT,
            setting->key, STR_ARG(buf_str(&usual)));
    buf_done(&usual);
    return false;
}

static bool check_all_bounds(const struct config *config, struct err *e) {
    for (size_t i = 0; i < config->setting_count; i++) {
        const struct setting *setting = &config->settings[i];
        if (setting->least && !check_bounds(config, setting, e)) return false;
    }
    return true;
}

/* --- loading -------------------------------------------------------------------------- */

static size_t aligned(size_t size) {
    return (size + _Alignof(max_align_t) - 1) & ~(_Alignof(max_align_t) - 1);
}

static const struct setting_rows *more_at(const struct config *config, size_t index) {
    return config->more ? config->more(index, config->more_ctx) : NULL;
}

static void *values_of(const struct config *config, const struct setting_rows *rows) {
    const struct setting_rows *more;
    size_t at = aligned(sizeof(*config));
    for (size_t i = 0; (more = more_at(config, i)); i++) {
        if (more == rows) return (char *)(uintptr_t)config + at;
        at += aligned(more->size);
    }
    return NULL;
}

const void *config_values(const struct config *config, const struct setting_rows *rows) {
    return values_of(config, rows);
}

static bool settle_more(struct config *config, const struct config_input *input,
                        struct err *e) {
    const struct setting_rows *more;
    for (size_t i = 0; (more = more_at(config, i)); i++) {
        if (more->settle && !more->settle(values_of(config, more), config, input, e) &&
            !config_goes_on(config, e))
            return false;
    }
    return true;
}

/* The named file, or one in the current folder. */
static struct str find_file(struct config *config, const struct config_input *input,
                            const struct flags *flags) {
    struct str named = flags->file;
    if (!named.len) named = config_env(input, "WEIR_CONFIG");
    if (named.at || input->demo || access(CONFIG_FILE_BESIDE, F_OK) != 0) return named;
    config->file_beside = true;
    return STR(CONFIG_FILE_BESIDE);
}

static bool load(struct config *config, const struct config_input *input, struct flags *flags,
                 struct err *e) {
    if (!scan_flags(config, input, flags, e)) return false;
    if (config->help) return true;
    struct str file = find_file(config, input, flags);
    if (file.at) {
        if (!arena_str(config->arena, file, &config->file))
            return err_set(e, ERR_TOO_LARGE, "the name of the settings file is too long");
        if (!config_read_file(config, input, e) && !config_goes_on(config, e)) return false;
    }
    if (!apply_environment(config, input, e) || !apply_flags(config, flags, e)) return false;
    warn_of_slips(config, input);
    config_pod_model(config);
    config_pod_search(config);
    if (!work_out(config, input, e) || !config_resolve_connectors(config, input, e) ||
        !config_resolve_breeders(config, input, e) || !config_resolve_guardrails(config, e) ||
        !config_resolve_models(config, input, e) || !settle_more(config, input, e))
        return false;
    if (!check_all_bounds(config, e) && !config_goes_on(config, e)) return false;
    warn_of_closed_doors(config);
    config_pod_warn(config, input);
    warn_of_limits(config);
    config_warn_of_budgets(config);
    return true;
}

/* Copy the rows group by group, in the order in which the groups first appear. */
static void join_groups(const struct setting *from, size_t count, struct setting *to) {
    size_t used = 0;
    const char *group = NULL;
    for (size_t i = 0; i < count; i++) {
        if (!from[i].group) continue;
        bool joined = false;
        for (size_t n = 0; n < i; n++)
            joined |= from[n].group && strcmp(from[n].group, from[i].group) == 0;
        for (size_t n = i; n < count && !joined; n++) {
            if (from[n].group) group = from[n].group;
            if (strcmp(group, from[i].group) != 0) continue;
            to[used] = from[n];
            to[used++].group = n == i ? group : NULL;
        }
    }
}

/* The values of further rows follow ours in memory, in order, so an offset from the config
 * reaches each. */
static void list_settings(struct config *config) {
    const struct setting_rows *more;
    size_t at = aligned(sizeof(*config)), count = setting_count;
    for (size_t i = 0; (more = more_at(config, i)); i++) count += more->count;
    struct setting *all = mem_zero(count, sizeof(*all));
    struct setting *joined = arena_alloc(config->arena, count * sizeof(*joined));
    memcpy(all, settings, setting_count * sizeof(*all));
    count = setting_count;
    for (size_t i = 0; (more = more_at(config, i)); i++) {
        for (size_t n = 0; n < more->count; n++, count++) {
            all[count] = more->rows[n];
            all[count].offset += at;
        }
        at += aligned(more->size);
    }
    join_groups(all, count, joined);
    free(all);
    config->settings = joined;
    config->setting_count = count;
}

static struct config *new_config(struct arena *arena, const struct config_input *input) {
    const struct setting_rows *more;
    size_t size = aligned(sizeof(struct config));
    for (size_t i = 0; input->more && (more = input->more(i, input->more_ctx)); i++)
        size += aligned(more->size);
    struct config *config = arena_alloc(arena, size);
    memset(config, 0, size);
    config->arena = arena;
    config->file = STR_EMPTY;
    config->more = input->more;
    config->more_ctx = input->more_ctx;
    list_settings(config);
    config->origins = arena_alloc(arena, config->setting_count * sizeof(*config->origins));
    return config;
}

bool config_load(const struct config_input *input, struct config **ret, struct err *e) {
    struct arena *arena = arena_new(CONFIG_ARENA_BYTES);
    struct config *config = new_config(arena, input);
    if (input->collect)
        config->problems = arena_alloc(arena, CONFIG_PROBLEMS_MAX * sizeof(struct str));
    config->warnings = arena_alloc(arena, CONFIG_WARNINGS_MAX * sizeof(struct str));
    settings_default(config);

    struct flags flags = {.given = mem_zero(input->arg_count + 1, sizeof(struct given)),
                          .config = config};
    config->operands = arena_alloc(arena, (input->arg_count + 1) * sizeof(struct str));
    bool done = config->operands ? load(config, input, &flags, e)
                                 : err_set(e, ERR_TOO_LARGE, "there are too many arguments");
    free(flags.given);
    if (!done) {
        config_free(config);
        return false;
    }
    *ret = config;
    return true;
}

void config_log(const struct config *config) {
    enum log_form form = config->log.form == CONFIG_LOG_JSON ? LOG_JSON : LOG_PLAIN;
    if (config->log.form == CONFIG_LOG_AUTO && !isatty(STDERR_FILENO)) form = LOG_JSON;
    log_setup(config->log.level, form);
    for (size_t i = 0; i < config->warning_count; i++) {
        log_warning(STR_FMT, STR_ARG(config->warnings[i]));
    }
}

/* Secrets must not remain in freed memory. */
static void config_forget(struct str secret) {
    if (secret.len) explicit_bzero((char *)secret.at, secret.len);
}

static void forget_own(const struct config_own_tool *tool) {
    config_forget(tool->key);
    for (size_t i = 0; i < tool->secret_count; i++) config_forget(tool->secrets[i].value);
}

void config_free(struct config *config) {
    if (!config) return;
    for (size_t i = 0; i < config->setting_count; i++) {
        if (config->settings[i].kind == SETTING_SECRET)
            config_forget(setting_text(&config->settings[i], config));
    }
    config_forget(config->tools.web_search.key);
    for (size_t i = 0; i < config->provider_count; i++) config_forget(config->providers[i].key);
    for (size_t i = 0; i < config->mcp_count; i++) config_forget(config->mcp[i].key);
    for (size_t i = 0; i < config->tools.own_count; i++) forget_own(&config->tools.own[i]);
    arena_free(config->arena); /* also frees the config, which is in it */
}
