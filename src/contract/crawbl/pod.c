#include "contract/crawbl/pod.h"

#include "config/build.h"

#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#define POD_MODEL "openai/gpt-5-mini"

/* --- ignored flags and variables ---------------------------------------------------------- */

const char *const pod_unused_flags[] = {"redis-addr",    "redis-session-ttl", "spaces-endpoint",
                                        "spaces-region", "spaces-bucket",     NULL};
static const char *const unused_variables[] = {"CRAWBL_REDIS_", "CRAWBL_SPACES_",
                                               "CRAWBL_OTEL_"};

static bool is_unused(struct str variable) {
    for (size_t i = 0; i < ARRAY_LEN(unused_variables); i++) {
        if (str_starts(variable, str_from(unused_variables[i]))) return true;
    }
    return false;
}

static void add_name(struct buf *names, const char *before, struct str name) {
    buf_printf(names, "%s%s" STR_FMT, names->len ? ", " : "", before, STR_ARG(name));
}

/* Note a flag once: "--redis-addr=x" and "--redis-addr" are the same. */
static void add_flags(const struct config *config, const struct config_input *input,
                      struct buf *names) {
    for (size_t i = 0; i < input->arg_count; i++) {
        struct str value, arg = str_from(input->args[i]);
        if (!str_starts(arg, STR("--"))) continue;
        struct str flag = str_split(str_skip(arg, 2), '=', &value);
        if (config_flag_is_unused(config, flag)) add_name(names, "--", flag);
    }
}

void pod_warn(struct config *config, const struct config_input *input) {
    struct buf names;
    buf_init(&names, 4 * KIB);
    add_flags(config, input, &names);
    for (const char *const *entry = input->environment; entry && *entry; entry++) {
        struct str value;
        struct str name = str_split(str_from(*entry), '=', &value);
        if (value.len && is_unused(name)) add_name(&names, "", str_head(name, 64));
    }
    if (names.len)
        config_warn(config,
                    "weir has no Redis, no object store and no exporter of metrics; nothing "
                    "reads " STR_FMT ". Conversations are kept in " STR_FMT,
                    STR_ARG(buf_str(&names)), STR_ARG(config->data));
    buf_done(&names);
}

/* --- the data folder ---------------------------------------------------------------------- */

/* Whether the folder can be written, or created in its nearest existing parent. */
static bool can_be_written(const char *folder) {
    char path[4096];
    snprintf(path, sizeof(path), "%s", folder);
    for (size_t len = strlen(path); len > 0; len--) {
        if (path[len] == '/') path[len] = '\0';
        if (path[len] == '\0' && access(path, F_OK) == 0) return access(path, W_OK | X_OK) == 0;
    }
    return access("/", W_OK) == 0;
}

/* Refuse a folder that belongs to another user, who may have put files in it. */
static bool is_free_or_ours(const char *folder) {
    struct stat found;
    if (lstat(folder, &found) != 0) return true;
    return S_ISDIR(found.st_mode) && found.st_uid == geteuid();
}

static bool take_folder(struct config *config, const char *folder) {
    return is_free_or_ours(folder) && can_be_written(folder) &&
           arena_str(config->arena, str_from(folder), &config->data);
}

bool pod_data(struct config *config, struct err *e) {
    if (config_is_set(config, &config->data)) return true;
    char usual[4096], memory[64];
    snprintf(usual, sizeof(usual), STR_FMT, STR_ARG(config->data));
    if (can_be_written(usual)) return true;
    if (take_folder(config, "/cache/weir")) {
        config_warn(config,
                    "%s cannot be written: conversations are kept in /cache/weir and gone "
                    "with this pod. Mount a volume and name it with WEIR_DATA",
                    usual);
        return true;
    }
    snprintf(memory, sizeof(memory), "/dev/shm/weir-%d", (int)getpid());
    if (!take_folder(config, memory))
        return err_set(e, ERR_UNAVAILABLE,
                       "neither %s nor /cache nor /dev/shm can be written; mount a folder and "
                       "name it with WEIR_DATA",
                       usual);
    config->data_in_memory = true;
    config_warn(config,
                "NOTHING IS KEPT: %s cannot be written and there is no /cache, so "
                "conversations are in memory only and gone with this process. Mount a "
                "folder and name it with WEIR_DATA",
                usual);
    return true;
}

/* --- defaults of the runtime it was made for ---------------------------------------------- */

void pod_model(struct config *config) {
    bool chosen = config->model.len || config->script.len || config->agent_count;
    if (!chosen) config->model = STR(POD_MODEL);
}

void pod_search(struct str searxng, struct config *config) {
    if (!searxng.len) return;
    config->tools.web = true;
    if (config->tools.web_search.backend.len) return; /* the file has its own setting */
    config->tools.web_search.backend = STR("searxng");
    config->tools.web_search.url = searxng;
}
