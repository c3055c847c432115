/* Vendors' keys: from a variable, a file, or a systemd credential. */
#include "config/build.h"

#include "base/file.h"

#include <stdio.h>

/* Check that the key is valid in a header, so that a wrong file is noticed early. */
static bool check_key(struct str key, struct err *e) {
    for (size_t i = 0; i < key.len; i++) {
        unsigned char byte = (unsigned char)key.at[i];
        if (byte <= ' ' || byte > '~')
            return err_set(e, ERR_INVALID_ARGUMENT,
                           "it holds a space or a character that no header carries; is it "
                           "really the key?");
    }
    return key.len > 0 ||
           err_set(e, ERR_INVALID_ARGUMENT,
                   "it holds nothing but white space; put the key there, or remove it");
}

static bool keep_key(struct config *config, struct str text, struct str *ret, struct err *e) {
    struct str key = str_trim(text);
    if (!check_key(key, e)) return false;
    return arena_str(config->arena, key, ret) ||
           err_set(e, ERR_TOO_LARGE, "the settings are too large");
}

static bool read_key(struct config *config, struct str path, struct str *ret, struct err *e) {
    struct buf text;
    buf_init(&text, SECRET_MAX_BYTES);
    bool done = file_read(path, &text, e) && keep_key(config, buf_str(&text), ret, e);
    if (text.room) explicit_bzero(text.at, text.room);
    buf_done(&text);
    return done;
}

static bool note_source(struct config *config, struct str source, struct str *ret,
                        struct err *e) {
    return arena_str(config->arena, source, ret) ||
           err_set(e, ERR_TOO_LARGE, "the settings are too large");
}

/* From the variable, a mounted file of its name, or the file that NAME_FILE names. If there is
 * none, *ret_key stays empty. */
static bool key_of_variable(struct config *config, const struct config_input *input,
                            struct str name, struct str *ret_key, struct str *ret_source,
                            struct err *e) {
    char variable[160];
    snprintf(variable, sizeof(variable), STR_FMT, STR_ARG(str_head(name, 128)));
    struct str value = config_env(input, variable);
    if (value.at) {
        if (!keep_key(config, value, ret_key, e)) return err_add(e, "%s", variable);
        return note_source(config, str_from(variable), ret_source, e);
    }
    struct buf mounted;
    buf_init(&mounted, 4 * KIB);
    bool found = config_mounted_secret(input, variable, &mounted);
    bool read = found && read_key(config, buf_str(&mounted), ret_key, e) &&
                note_source(config, buf_str(&mounted), ret_source, e);
    if (found && !read) err_add(e, "%s", mounted.at);
    buf_done(&mounted);
    if (found) return read;
    snprintf(variable, sizeof(variable), STR_FMT "_FILE", STR_ARG(str_head(name, 128)));
    struct str path = config_env(input, variable);
    if (!path.at) return true;
    if (!read_key(config, path, ret_key, e)) return err_add(e, "%s", variable);
    return note_source(config, str_from(variable), ret_source, e);
}

/* From systemd's LoadCredential=NAME:PATH. */
static bool key_of_credential(struct config *config, const struct config_input *input,
                              struct str name, struct str *ret_key, struct str *ret_source,
                              struct err *e) {
    struct str folder = config_env(input, "CREDENTIALS_DIRECTORY");
    struct buf path;
    if (!folder.at) return true;
    buf_init(&path, 4 * KIB);
    buf_printf(&path, STR_FMT "/" STR_FMT, STR_ARG(folder), STR_ARG(name));
    bool read = read_key(config, buf_str(&path), ret_key, e);
    bool none = !read && e->code == ERR_NOT_FOUND;
    buf_done(&path);
    if (read) return note_source(config, STR("systemd credential"), ret_source, e);
    return none || err_add(e, "credential " STR_FMT, STR_ARG(str_head(name, 128)));
}

bool config_find_key(struct config *config, const struct config_input *input,
                     const struct config_key_names *names, struct str *ret_key,
                     struct str *ret_source, struct err *e) {
    *ret_key = *ret_source = STR_EMPTY;
    for (size_t i = 0; i < names->count && !ret_key->len; i++) {
        if (!key_of_variable(config, input, names->names[i], ret_key, ret_source, e))
            return false;
    }
    if (!ret_key->len && names->file.len) {
        if (!read_key(config, names->file, ret_key, e)) return err_add(e, "key_file");
        if (!note_source(config, names->file, ret_source, e)) return false;
    }
    for (size_t i = 0; i < names->count && !ret_key->len; i++) {
        if (!key_of_credential(config, input, names->names[i], ret_key, ret_source, e))
            return false;
    }
    return true;
}

bool config_read_key(struct config *config, const struct config_input *input,
                     struct str key_env, struct str key_file, const struct yaml *at,
                     struct str *ret_key, struct str *ret_source, struct err *e) {
    struct config_key_names names = {.names = {key_env}, .count = key_env.len != 0};
    struct err why;
    struct buf room;
    buf_init(&room, 64 * KIB);
    names.file = key_file.len ? config_from_folder(config, key_file, &room) : STR_EMPTY;
    bool found = config_find_key(config, input, &names, ret_key, ret_source, &why);
    buf_done(&room);
    return found || yaml_err(e, at, "%s", why.text);
}
