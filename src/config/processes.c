/* The keys of an agent that is a program: its command and its environment. */
#include "config/build.h"

#include <unistd.h>

#define WORDS_MAX 64
#define WORD_MAX_BYTES (16 * KIB)

/* Variables that every program gets. None of them is a key or token. */
static const char *const usual[] = {
    "PATH",   "HOME", "USER",   "LOGNAME",   "SHELL",      "LANG",       "LANGUAGE",
    "LC_ALL", "TZ",   "TMPDIR", "NODE_PATH", "PYTHONPATH", "VIRTUAL_ENV"};

static bool processes_keep(struct config *config, const struct yaml *node, struct str text,
                           struct str *ret, struct err *e) {
    return arena_str(config->arena, text, ret) || config_too_large(node, e);
}

/* Make a path relative to the settings file valid in any folder. */
static bool keep_word(struct config *config, const struct yaml *node, struct str *ret,
                      struct err *e) {
    struct buf room;
    buf_init(&room, WORD_MAX_BYTES);
    struct str path = config_from_folder(config, node->text, &room);
    bool beside =
        path.at != node->text.at && buf_append_byte(&room, '\0') && access(room.at, F_OK) == 0;
    bool kept = processes_keep(config, node, beside ? str_from(room.at) : node->text, ret, e);
    buf_done(&room);
    return kept;
}

bool config_read_command(const struct reading *reading, const struct yaml *node,
                         struct config_agent *ret, struct err *e) {
    struct config *config = reading->config;
    if (!config_want(node, YAML_LIST, "a list of words, such as [python3, agent.py]", e))
        return false;
    if (node->count == 0 || node->count > WORDS_MAX)
        return yaml_err(e, node, "a command has 1 to %d words", WORDS_MAX);
    struct str *words = arena_alloc(config->arena, node->count * sizeof(*words));
    if (!words) return config_too_large(node, e);
    ret->command = words; /* before any is counted */
    for (const struct yaml *item = node->first; item; item = item->next) {
        bool word = item->kind == YAML_SCALAR && item->text.len < WORD_MAX_BYTES &&
                    str_find_byte(item->text, '\0') == item->text.len;
        if (!word) return yaml_err(e, item, "a word of a command is a text");
        if (!keep_word(config, item, &words[ret->command_count++], e)) return false;
    }
    return true;
}

static bool add_variable(const struct reading *reading, const struct yaml *node,
                         struct str name, struct str value, struct config_agent *ret,
                         struct err *e) {
    struct buf room;
    struct str *list = (struct str *)ret->environment; /* not shared yet */
    buf_init(&room, 2 * WORD_MAX_BYTES);
    buf_append(&room, name);
    buf_append_byte(&room, '=');
    buf_append(&room, value);
    bool kept = buf_ok(&room) && str_find_byte(buf_str(&room), '\0') == room.len
                    ? processes_keep(reading->config, node, buf_str(&room),
                                     &list[ret->environment_count++], e)
                    : yaml_err(e, node, "this variable is too long");
    buf_done(&room);
    return kept;
}

/* Unless the agent sets it itself. */
static bool add_usual(const struct reading *reading, const struct yaml *named,
                      const struct yaml *node, struct config_agent *ret, struct err *e) {
    for (size_t i = 0; i < ARRAY_LEN(usual); i++) {
        struct str value = config_env(reading->input, usual[i]);
        bool said = named && yaml_find(named, str_from(usual[i]));
        if (value.at && !said &&
            !add_variable(reading, node, str_from(usual[i]), value, ret, e))
            return false;
    }
    return true;
}

/* `named` may be NULL: then only the variables of every program are set. */
bool config_read_environment(const struct reading *reading, const struct yaml *named,
                             const struct yaml *at, struct config_agent *ret, struct err *e) {
    size_t room = ARRAY_LEN(usual) + (named ? named->count : 0);
    ret->environment = arena_alloc(reading->config->arena, room * sizeof(struct str));
    if (!ret->environment) return config_too_large(at, e);
    ret->environment_count = 0;
    if (named &&
        !config_want(named, YAML_MAP, "a map, such as {LOG_LEVEL: debug, API_KEY: }", e))
        return false;
    if (!add_usual(reading, named, at, ret, e)) return false;
    if (!named) return true;
    for (const struct yaml *item = named->first; item; item = item->next) {
        struct buf name;
        buf_init(&name, KIB);
        buf_append(&name, item->key);
        buf_append_byte(&name, '\0');
        struct str value = buf_ok(&name) ? config_env(reading->input, name.at) : STR_EMPTY;
        buf_done(&name);
        if (item->kind == YAML_SCALAR && !yaml_is_null(item)) value = item->text;
        if (!value.at) continue; /* not set here either */
        if (!add_variable(reading, item, item->key, value, ret, e)) return false;
    }
    return true;
}
