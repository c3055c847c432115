/* Values that only the lists of a settings file have: decimals, dollars, words, keys. */
#include "config/build.h"

#include "base/file.h"
#include "base/nearest.h"

#include <stdarg.h>
#include <stdio.h>

#define NANO_DIGITS 9

bool config_err_at(struct err *e, const struct yaml *at, const char *format, ...) {
    char text[ERR_TEXT_BYTES];
    va_list values;
    va_start(values, format);
    vsnprintf(text, sizeof(text), format, values);
    va_end(values);
    return at ? yaml_err(e, at, "%s", text) : err_set(e, ERR_INVALID_ARGUMENT, "%s", text);
}

/* --- numbers ------------------------------------------------------------------------------ */

static bool all_digits(struct str text) {
    for (size_t i = 0; i < text.len; i++) {
        if (text.at[i] < '0' || text.at[i] > '9') return false;
    }
    return true;
}

static bool refuse_decimal(struct str text, struct err *e) {
    return err_set(e, ERR_INVALID_ARGUMENT, "'" STR_FMT "' is no decimal number such as 0.25",
                   STR_ARG(str_head(text, 40)));
}

bool config_decimal_text(struct str text, unsigned digits, uint64_t *ret, struct err *e) {
    struct str fraction;
    struct str whole = str_split(text, '.', &fraction);
    uint64_t number = 0;
    bool point = fraction.at != NULL;
    if (!point) fraction = STR_EMPTY;
    if (!whole.len || !all_digits(whole) || !all_digits(fraction) || (point && !fraction.len))
        return refuse_decimal(text, e);
    if (fraction.len > digits)
        return err_set(e, ERR_INVALID_ARGUMENT,
                       "'" STR_FMT "' has more than %u digits behind its point",
                       STR_ARG(str_head(text, 40)), digits);
    if (whole.len > 9 || !str_to_u64(whole, &number))
        return err_set(e, ERR_INVALID_ARGUMENT, "'" STR_FMT "' is too large",
                       STR_ARG(str_head(text, 40)));
    for (unsigned i = 0; i < digits; i++) {
        number = number * 10 + (i < fraction.len ? (uint64_t)(fraction.at[i] - '0') : 0);
    }
    *ret = number;
    return true;
}

bool config_decimal(const struct yaml *node, unsigned digits, uint64_t *ret, struct err *e) {
    struct err why;
    if (node->kind != YAML_SCALAR) return yaml_err(e, node, "expected a decimal number");
    return config_decimal_text(node->text, digits, ret, &why) ||
           yaml_err(e, node, "%s", why.text);
}

bool config_dollars(const struct yaml *node, int64_t *ret, struct err *e) {
    struct err why;
    uint64_t nano = 0;
    if (node->kind != YAML_SCALAR) return yaml_err(e, node, "expected dollars, such as $1.50");
    struct str text = str_skip(node->text, str_starts(node->text, STR("$")));
    if (!config_decimal_text(text, NANO_DIGITS, &nano, &why))
        return yaml_err(e, node, "%s; write dollars such as $1.50", why.text);
    *ret = (int64_t)nano; /* nine digits before the point: it fits */
    return true;
}

/* --- words -------------------------------------------------------------------------------- */

bool config_choice(const struct yaml *node, const char *const *choices, unsigned *ret,
                   struct err *e) {
    char all[256] = "";
    char hint[NEAREST_HINT_BYTES];
    struct nearest nearest;
    nearest_init(&nearest, node->text);
    for (unsigned i = 0; choices[i]; i++) {
        if (node->kind == YAML_SCALAR && str_equal(node->text, str_from(choices[i]))) {
            *ret = i;
            return true;
        }
        nearest_offer(&nearest, str_from(choices[i]));
        size_t used = strlen(all);
        snprintf(all + used, sizeof(all) - used, "%s%s", i ? ", " : "", choices[i]);
    }
    return yaml_err(e, node, "'" STR_FMT "' is not one of: %s%s",
                    STR_ARG(str_head(node->text, 40)), all, nearest_hint(&nearest, hint));
}

bool config_want(const struct yaml *node, enum yaml_kind kind, const char *what,
                 struct err *e) {
    return node->kind == kind || yaml_err(e, node, "expected %s", what);
}

/* --- keys --------------------------------------------------------------------------------- */

/* A key is sent in a header, and a wrong file should be noticed before that. */
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

/* The variable itself, a mounted file of its name, or the one that NAME_FILE names. Nothing:
 * *ret_key stays empty. */
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

/* What systemd hands to a service with LoadCredential=NAME:PATH. */
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
