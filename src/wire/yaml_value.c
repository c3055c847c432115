/* The values of a YAML tree: as C types, as structs, as JSON. */
#include "base/nearest.h"
#include "base/units.h"
#include "wire/json.h"
#include "wire/yaml.h"

#define NAME_MAX_BYTES 128

/* Errors repeat at most this much of the input. */
#define SHOWN_BYTES 40

const char *yaml_kind_name(const struct yaml *node) {
    static const char *const names[] = {"text", "a list", "a map"};
    return yaml_is_null(node) ? "nothing" : names[node->kind];
}

/* --- one value ------------------------------------------------------------------------ */

static bool want_scalar(const struct yaml *node, const char *what, struct err *e) {
    if (node->kind == YAML_SCALAR && !yaml_is_null(node)) return true;
    return yaml_err(e, node, "expected %s, found %s", what, yaml_kind_name(node));
}

static bool value_text(const struct yaml *node, void *ret, struct err *e) {
    if (!want_scalar(node, "text", e)) return false;
    *(struct str *)ret = node->text;
    return true;
}

static bool value_name(const struct yaml *node, void *ret, struct err *e) {
    if (!want_scalar(node, "a name", e)) return false;
    bool good = node->text.len > 0 && node->text.len <= NAME_MAX_BYTES;
    for (size_t i = 0; good && i < node->text.len; i++)
        good = node->text.at[i] > ' ' && node->text.at[i] <= '~';
    if (!good)
        return yaml_err(e, node,
                        "'" STR_FMT "' is not a name; use 1 to %d letters, digits, '-' and '_'",
                        STR_ARG(str_head(node->text, SHOWN_BYTES)), NAME_MAX_BYTES);
    *(struct str *)ret = node->text;
    return true;
}

static bool value_bool(const struct yaml *node, void *ret, struct err *e) {
    bool yes = node->kind == YAML_SCALAR && str_equal(node->text, STR("true"));
    bool no = node->kind == YAML_SCALAR && str_equal(node->text, STR("false"));
    if (node->quoted || (!yes && !no)) return yaml_err(e, node, "expected true or false");
    *(bool *)ret = yes;
    return true;
}

static bool value_count(const struct yaml *node, void *ret, struct err *e) {
    if (!want_scalar(node, "a whole number", e)) return false;
    if (!node->quoted && str_to_u64(node->text, ret)) return true;
    return yaml_err(e, node, "'" STR_FMT "' is not a whole number",
                    STR_ARG(str_head(node->text, SHOWN_BYTES)));
}

static bool value_measure(const struct yaml *node, void *ret, struct err *e, const char *what,
                          bool (*read)(struct str, uint64_t *, struct err *)) {
    if (!want_scalar(node, what, e)) return false;
    struct err why;
    if (read(node->text, ret, &why)) return true;
    return yaml_err(e, node, "%s", why.text);
}

static bool value_duration(const struct yaml *node, void *ret, struct err *e) {
    return value_measure(node, ret, e, "a duration such as 20ms", units_duration);
}

static bool yaml_value_size(const struct yaml *node, void *ret, struct err *e) {
    return value_measure(node, ret, e, "a size such as 256KiB", units_size);
}

static bool value_json(const struct yaml *node, void *ret, struct err *e) {
    if (node->kind != YAML_MAP)
        return yaml_err(e, node, "expected a map, such as {key: value}, found %s",
                        yaml_kind_name(node));
    struct buf text;
    buf_init(&text, 8 * YAML_MAX_BYTES); /* an escape is at most six bytes for one */
    bool done =
        yaml_to_json(node, &text) && arena_str(node->document->arena, buf_str(&text), ret);
    buf_done(&text);
    return done || yaml_err(e, node, "this map is too large");
}

static bool value_node(const struct yaml *node, void *ret, struct err *e) {
    (void)e;
    *(const struct yaml **)ret = node;
    return true;
}

bool yaml_value(const struct yaml *node, enum yaml_type type, void *ret, struct err *e) {
    static bool (*const read[])(const struct yaml *, void *, struct err *) = {
        [YAML_TEXT] = value_text,      [YAML_NAME] = value_name,
        [YAML_BOOL] = value_bool,      [YAML_COUNT] = value_count,
        [YAML_SIZE] = yaml_value_size, [YAML_DURATION] = value_duration,
        [YAML_JSON] = value_json,      [YAML_NODE] = value_node,
    };
    return read[type](node, ret, e);
}

/* --- a map ---------------------------------------------------------------------------- */

static bool yaml_value_refuse_unknown(const struct yaml *value, const char *what,
                                      const struct yaml_field *fields, size_t field_count,
                                      struct err *e) {
    struct nearest nearest;
    nearest_init(&nearest, value->key);
    for (size_t i = 0; i < field_count; i++) nearest_offer(&nearest, str_from(fields[i].key));
    return yaml_err_key(e, value, "%s has no key '" STR_FMT "'%s", what,
                        STR_ARG(str_head(value->key, SHOWN_BYTES)), nearest_hint(&nearest));
}

static bool yaml_value_is_known(struct str key, const struct yaml_field *fields,
                                size_t field_count) {
    for (size_t i = 0; i < field_count; i++) {
        if (str_equal(key, str_from(fields[i].key))) return true;
    }
    return false;
}

bool yaml_fields(const struct yaml *map, const char *what, const struct yaml_field *fields,
                 size_t field_count, void *ret, struct err *e) {
    if (map->kind != YAML_MAP)
        return yaml_err(e, map, "expected %s, which is a map, found %s", what,
                        yaml_kind_name(map));
    for (const struct yaml *value = map->first; value; value = value->next) {
        if (!yaml_value_is_known(value->key, fields, field_count))
            return yaml_value_refuse_unknown(value, what, fields, field_count, e);
    }
    for (size_t i = 0; i < field_count; i++) {
        const struct yaml_field *field = &fields[i];
        const struct yaml *value = yaml_find(map, str_from(field->key));
        if (!value && field->required)
            return yaml_err(e, map, "%s needs the key '%s'", what, field->key);
        if (value && !yaml_value(value, field->type, (char *)ret + field->offset, e))
            return false;
    }
    return true;
}

/* --- as JSON -------------------------------------------------------------------------- */

/* Whether a scalar is a number, true, false or null in JSON. */
static bool is_json_word(struct str text) {
    const char *end = text.at + text.len;
    bool number = text.len && (*text.at == '-' || (*text.at >= '0' && *text.at <= '9'));
    if (number) return json_number_end(text.at, end) == end;
    return str_equal(text, STR("true")) || str_equal(text, STR("false")) ||
           str_equal(text, STR("null"));
}

static bool scalar_to_json(const struct yaml *node, struct buf *out, yaml_text_fn *write_text,
                           void *ctx) {
    if (yaml_is_null(node)) return buf_append(out, STR("null"));
    if (!node->quoted && is_json_word(node->text)) return buf_append(out, node->text);
    return write_text(node, out, ctx);
}

bool yaml_to_json_with(const struct yaml *node, struct buf *out, yaml_text_fn *write_text,
                       void *ctx) {
    if (node->kind == YAML_SCALAR) return scalar_to_json(node, out, write_text, ctx);

    bool map = node->kind == YAML_MAP;
    buf_append_byte(out, map ? '{' : '[');
    for (const struct yaml *child = node->first; child; child = child->next) {
        if (child != node->first) buf_append_byte(out, ',');
        if (map) {
            json_put_str(out, child->key);
            buf_append_byte(out, ':');
        }
        if (!yaml_to_json_with(child, out, write_text, ctx)) return false;
    }
    return buf_append_byte(out, map ? '}' : ']');
}

static bool put_str(const struct yaml *scalar, struct buf *out, void *ctx) {
    (void)ctx;
    return json_put_str(out, scalar->text);
}

bool yaml_to_json(const struct yaml *node, struct buf *out) {
    return yaml_to_json_with(node, out, put_str, NULL);
}
