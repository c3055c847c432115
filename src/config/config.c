#include "config/config.h"

#include "base/file.h"
#include "base/mem.h"
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
        /* There are hundreds of settings, and as many entries: most differ at once. */
        if (**entry != *name || strncmp(*entry, name, len) != 0 || (*entry)[len] != '=')
            continue;
        struct str value = str_from(*entry + len + 1);
        if (value.len) return value;
    }
    return (struct str){0};
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
    if (!config_is_set(config, &config->data) && !work_out_data(config, input, e)) return false;
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

bool config_flag_is_unused(const struct config *config, struct str flag) {
    const struct setting_rows *more;
    for (size_t i = 0; (more = more_at(config, i)); i++) {
        const char *const *unused = more->unused_flags;
        for (; unused && *unused; unused++) {
            if (str_equal(flag, str_from(*unused))) return true;
        }
    }
    return false;
}

static void complete_more(struct config *config) {
    const struct setting_rows *more;
    for (size_t i = 0; (more = more_at(config, i)); i++) {
        if (more->complete) more->complete(values_of(config, more), config);
    }
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
                            const struct config_flags *flags) {
    struct str named = flags->file;
    if (!named.len) named = config_env(input, "WEIR_CONFIG");
    if (named.at || input->demo || access(CONFIG_FILE_BESIDE, F_OK) != 0) return named;
    config->file_beside = true;
    return STR(CONFIG_FILE_BESIDE);
}

#define SCHEMA_MAX_BYTES 63 /* of a name of PostgreSQL */

#define REPLICA_MAX_BYTES 63
#define LEASE_MIN_MS 1000
#define LEASE_MAX_MS (60 * 60 * 1000)

static bool check_replica(const struct config *config, struct err *e) {
    struct str name = config->store.replica;
    uint64_t lease_ms = config->store.lease_ms;
    if (!str_is_plain(name, "_-.") || name.len > REPLICA_MAX_BYTES)
        return err_set(e, ERR_INVALID_ARGUMENT,
                       "store.replica: '" STR_FMT "' is no name of letters, digits, _ - and .",
                       STR_ARG(name));
    if (lease_ms < LEASE_MIN_MS || lease_ms > LEASE_MAX_MS)
        return err_set(e, ERR_INVALID_ARGUMENT, "store.lease: it may be 1s to 1h");
    if (name.len == 0 || config->store.url.len) return true;
    return err_set(e, ERR_INVALID_ARGUMENT,
                   "store.replica: several daemons can share a store only in PostgreSQL; set "
                   "WEIR_STORE_URL, or leave the name out");
}

/* The schema becomes part of SQL. */
static bool check_store(const struct config *config, struct err *e) {
    struct str url = config->store.url, schema = config->store.schema;
    bool lower = true;
    for (size_t i = 0; i < schema.len; i++) lower &= schema.at[i] < 'A' || schema.at[i] > 'Z';
    if (!str_is_plain(schema, "_") || !lower || schema.len > SCHEMA_MAX_BYTES)
        return err_set(e, ERR_INVALID_ARGUMENT,
                       "store.schema: '" STR_FMT "' is no name of a-z, 0-9 and _",
                       STR_ARG(schema));
    if (!check_replica(config, e)) return false;
    if (url.len == 0 || str_starts(url, STR("postgres://")) ||
        str_starts(url, STR("postgresql://")))
        return true;
    return err_set(e, ERR_INVALID_ARGUMENT,
                   "WEIR_STORE_URL does not begin with postgres://; leave it out for SQLite");
}

static bool check_bucket(const struct config *config, struct err *e) {
    struct bucket *bucket = NULL;
    bool good = config_bucket(config, NULL, &bucket, e);
    bucket_free(bucket);
    return good;
}

static bool load(struct config *config, const struct config_input *input,
                 struct config_flags *flags, struct err *e) {
    if (!config_scan_flags(config, input, flags, e)) return false;
    if (config->help) return true;
    struct str file = find_file(config, input, flags);
    if (file.at) {
        if (!arena_str(config->arena, file, &config->file))
            return err_set(e, ERR_TOO_LARGE, "the name of the settings file is too long");
        if (!config_read_file(config, input, e) && !config_goes_on(config, e)) return false;
    }
    if (!config_apply_environment(config, input, e) || !config_apply_flags(config, flags, e))
        return false;
    config_warn_of_slips(config, input);
    complete_more(config);
    if (!work_out(config, input, e) || !config_resolve_connectors(config, input, e) ||
        !config_resolve_breeders(config, input, e) || !config_resolve_guardrails(config, e) ||
        !config_resolve_models(config, input, e) || !settle_more(config, input, e))
        return false;
    if (!check_all_bounds(config, e) && !config_goes_on(config, e)) return false;
    if (!check_store(config, e) && !config_goes_on(config, e)) return false;
    if (!check_bucket(config, e) && !config_goes_on(config, e)) return false;
    warn_of_limits(config);
    config_warn_of_budgets(config);
    return true;
}

/* Copy the rows group by group, in the order in which the groups first appear. */
static void join_groups(const struct setting *from, size_t count, struct setting *to) {
    size_t used = 0;
    for (size_t i = 0; i < count; i++) {
        const char *group = from[i].group, *at = group;
        bool joined = false;
        if (!group) continue;
        for (size_t n = 0; n < i; n++)
            joined |= from[n].group && strcmp(from[n].group, group) == 0;
        for (size_t n = i; n < count && !joined; n++) {
            if (from[n].group) at = from[n].group;
            if (strcmp(at, group) != 0) continue;
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

    struct config_flags flags = {
        .given = mem_zero(input->arg_count + 1, sizeof(struct config_flag)), .config = config};
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
