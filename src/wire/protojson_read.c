#include "base/nearest.h"
#include "wire/base64.h"
#include "wire/protojson.h"

#include <math.h>

#define SHOWN_BYTES 80

struct reading {
    const struct protojson *json;
    struct arena *arena;
    struct err *e;
};

static bool read_message(struct reading *reading, const struct pb_message *type,
                         struct json from, char *ret);

static bool no_room(struct reading *reading) {
    return err_set(reading->e, ERR_TOO_LARGE, "the message is too large");
}

static bool expected(struct reading *reading, const char *what, struct json found) {
    return err_set(reading->e, ERR_INVALID_ARGUMENT, "expected %s, found %s", what,
                   json_kind_name(found.kind));
}

/* --- numbers ------------------------------------------------------------------------------ */

/* The text of a number, which may be quoted. */
static bool number_text(struct reading *reading, struct json from, struct str *ret) {
    if (from.kind == JSON_NUMBER) {
        *ret = from.raw;
        return true;
    }
    if (from.kind != JSON_STRING) return expected(reading, "a number", from);
    return json_str(from, reading->arena, ret) || no_room(reading);
}

static bool out_of_range(struct reading *reading, struct str text) {
    return err_set(reading->e, ERR_INVALID_ARGUMENT, "'" STR_FMT "' is no number of this field",
                   STR_ARG(str_head(text, SHOWN_BYTES)));
}

/* Any spelling of an integer: 5, 5.0, 1e3. */
static bool read_i64(struct reading *reading, struct json from, int64_t min, int64_t max,
                     int64_t *ret) {
    struct str text;
    struct json number;
    struct err none;
    if (!number_text(reading, from, &text)) return false;
    bool good =
        json_read(text, &number, &none) && json_i64(number, ret) && *ret >= min && *ret <= max;
    return good || out_of_range(reading, text);
}

static bool read_u64(struct reading *reading, struct json from, uint64_t *ret) {
    struct str text;
    int64_t small = 0;
    if (!number_text(reading, from, &text)) return false;
    if (str_to_u64(text, ret)) return true; /* also what fits no int64_t */
    if (!read_i64(reading, from, 0, INT64_MAX, &small)) return false;
    *ret = (uint64_t)small;
    return true;
}

static bool read_double(struct reading *reading, struct json from, double *ret) {
    struct str text;
    struct json number;
    struct err none;
    if (!number_text(reading, from, &text)) return false;
    if (str_equal(text, STR("NaN"))) {
        *ret = NAN;
    } else if (str_equal(text, STR("Infinity")) || str_equal(text, STR("-Infinity"))) {
        *ret = text.at[0] == '-' ? -INFINITY : INFINITY;
    } else if (!json_read(text, &number, &none) || !json_double(number, ret)) {
        return out_of_range(reading, text);
    }
    return true;
}

/* --- other single values ------------------------------------------------------------------ */

static bool protojson_read_text(struct reading *reading, struct json from, struct str *ret) {
    if (from.kind != JSON_STRING) return expected(reading, "a string", from);
    return json_str(from, reading->arena, ret) || no_room(reading);
}

static bool protojson_read_bytes(struct reading *reading, struct json from, struct str *ret) {
    struct str text;
    size_t len;
    if (!protojson_read_text(reading, from, &text)) return false;
    char *room = arena_alloc(reading->arena, text.len + 1);
    if (!room) return no_room(reading);
    if (!base64_decode(text, BASE64_STANDARD, BASE64_EITHER, room, &len) &&
        !base64_decode(text, BASE64_URL, BASE64_EITHER, room, &len))
        return err_set(reading->e, ERR_INVALID_ARGUMENT, "expected base64");
    *ret = str_of(room, len);
    return true;
}

static bool read_enum(struct reading *reading, const struct pb_message *type,
                      const struct pb_field *field, struct json from, int32_t *ret) {
    const struct pb_enum_descriptor *named = protojson_enum_of(reading->json, type, field);
    struct nearest nearest;
    struct str name;
    int64_t number = 0;
    if (from.kind == JSON_NUMBER) {
        if (!read_i64(reading, from, INT32_MIN, INT32_MAX, &number)) return false;
        *ret = (int32_t)number;
        return true;
    }
    if (!protojson_read_text(reading, from, &name)) return false;
    nearest_init(&nearest, name);
    for (size_t i = 0; named && i < named->value_count; i++) {
        nearest_offer(&nearest, named->value[i].name);
        if (!str_equal(named->value[i].name, name)) continue;
        *ret = named->value[i].number;
        return true;
    }
    return err_set(reading->e, ERR_INVALID_ARGUMENT, "no value '" STR_FMT "'%s",
                   STR_ARG(str_head(name, SHOWN_BYTES)), nearest_hint(&nearest));
}

#define VALUE(type) (*(type *)(void *)at)

static bool read_small(struct reading *reading, const struct pb_field *field, struct json from,
                       char *at) {
    int64_t number = 0;
    double real = 0;
    bool sign =
        field->kind == PB_INT32 || field->kind == PB_SINT32 || field->kind == PB_SFIXED32;
    if (field->kind == PB_FLOAT) {
        if (!read_double(reading, from, &real)) return false;
        VALUE(float) = (float)real;
        return true;
    }
    if (!read_i64(reading, from, sign ? INT32_MIN : 0, sign ? INT32_MAX : UINT32_MAX, &number))
        return false;
    if (sign)
        VALUE(int32_t) = (int32_t)number;
    else
        VALUE(uint32_t) = (uint32_t)number;
    return true;
}

/* `at` is where the value itself lies. */
static bool protojson_read_value(struct reading *reading, const struct pb_message *type,
                                 const struct pb_field *field, struct json from, char *at) {
    switch ((enum pb_kind)field->kind) {
    case PB_BOOL:
        return json_bool(from, &VALUE(bool)) || expected(reading, "true or false", from);
    case PB_INT32:
    case PB_SINT32:
    case PB_SFIXED32:
    case PB_UINT32:
    case PB_FIXED32:
    case PB_FLOAT: return read_small(reading, field, from, at);
    case PB_INT64:
    case PB_SINT64:
    case PB_SFIXED64: return read_i64(reading, from, INT64_MIN, INT64_MAX, &VALUE(int64_t));
    case PB_UINT64:
    case PB_FIXED64: return read_u64(reading, from, &VALUE(uint64_t));
    case PB_DOUBLE: return read_double(reading, from, &VALUE(double));
    case PB_ENUM: return read_enum(reading, type, field, from, &VALUE(int32_t));
    case PB_STRING: return protojson_read_text(reading, from, &VALUE(struct str));
    case PB_BYTES: return protojson_read_bytes(reading, from, &VALUE(struct str));
    case PB_MESSAGE: return read_message(reading, field->sub, from, at);
    case PB_KIND_COUNT: break;
    }
    return expected(reading, "a value of a known kind", from);
}

/* --- fields ------------------------------------------------------------------------------- */

static size_t protojson_read_value_size(const struct pb_field *field) {
    return field->kind == PB_MESSAGE ? field->sub->size : pb_kinds[field->kind].size;
}

/* Whether `text` spells `name`, as it is or in lowerCamelCase. */
static bool is_spelled(struct str text, const char *name) {
    size_t i = 0;
    if (str_equal(text, str_from(name))) return true;
    for (const char *at = name; *at; at++) {
        if (*at == '_') continue;
        bool up = at > name && at[-1] == '_' && *at >= 'a' && *at <= 'z';
        if (i == text.len || text.at[i++] != (char)(up ? *at - ('a' - 'A') : *at)) return false;
    }
    return i == text.len;
}

static const struct pb_field *find_field(const struct pb_message *type, struct str name) {
    for (size_t i = 0; i < type->field_count; i++) {
        if (is_spelled(name, type->fields[i].name)) return &type->fields[i];
    }
    return NULL;
}

static bool no_field(struct reading *reading, const struct pb_message *type, struct str name) {
    struct nearest nearest;
    nearest_init(&nearest, name);
    for (size_t i = 0; i < type->field_count; i++)
        nearest_offer(&nearest, str_from(type->fields[i].name));
    return err_set(reading->e, ERR_INVALID_ARGUMENT, "%s has no field '" STR_FMT "'%s",
                   type->name, STR_ARG(str_head(name, SHOWN_BYTES)), nearest_hint(&nearest));
}

static bool protojson_read_list(struct reading *reading, const struct pb_message *type,
                                const struct pb_field *field, struct json from, char *message) {
    struct json item;
    struct json_reader reader = json_enter(from);
    size_t count = json_count(from), size = protojson_read_value_size(field), i = 0;
    if (from.kind != JSON_ARRAY) return expected(reading, "an array", from);
    char *values = arena_alloc(reading->arena, count * size + 1);
    if (!values) return no_room(reading);
    for (; json_next_item(&reader, &item); i++) {
        if (!protojson_read_value(reading, type, field, item, values + i * size))
            return err_add(reading->e, "[%zu]", i);
    }
    *(char **)(void *)(message + field->at) = values;
    *(size_t *)(void *)(message + field->mark) = count;
    return true;
}

/* The key of an entry is text in JSON, whatever its type. */
static bool protojson_read_entry(struct reading *reading, const struct pb_message *type,
                                 struct json key, struct json value, char *entry) {
    const struct pb_field *key_field = &type->fields[0], *value_field = &type->fields[1];
    char *at = entry + key_field->at;
    struct str text;
    if (!protojson_read_text(reading, key, &text)) return false;
    if (key_field->kind == PB_BOOL)
        VALUE(bool) = str_equal(text, STR("true"));
    else if (!protojson_read_value(reading, type, key_field, key, at))
        return false;
    at = entry + value_field->at;
    if (value_field->kind == PB_MESSAGE) {
        char *inner = arena_alloc(reading->arena, value_field->sub->size);
        if (!inner) return no_room(reading);
        VALUE(char *) = inner;
        at = inner;
    }
    return protojson_read_value(reading, type, value_field, value, at) ||
           err_add(reading->e, "['" STR_FMT "']", STR_ARG(str_head(text, SHOWN_BYTES)));
}

static bool read_map(struct reading *reading, const struct pb_field *field, struct json from,
                     char *message) {
    struct json key, value;
    struct json_reader reader = json_enter(from);
    size_t count = json_count(from), size = field->sub->size, i = 0;
    if (from.kind != JSON_OBJECT) return expected(reading, "an object", from);
    char *entries = arena_alloc(reading->arena, count * size + 1);
    if (!entries) return no_room(reading);
    for (; json_next_member(&reader, &key, &value); i++) {
        if (!protojson_read_entry(reading, field->sub, key, value, entries + i * size))
            return false;
    }
    *(char **)(void *)(message + field->at) = entries;
    *(size_t *)(void *)(message + field->mark) = count;
    return true;
}

static bool mark_present(struct reading *reading, const struct pb_field *field, char *message) {
    if (field->label == PB_OPTIONAL) *(bool *)(void *)(message + field->mark) = true;
    if (field->label != PB_ONEOF) return true;
    int32_t *which = (int32_t *)(void *)(message + field->mark);
    if (*which && *which != (int32_t)field->number)
        return err_set(reading->e, ERR_INVALID_ARGUMENT, "another one of its group is set");
    *which = (int32_t)field->number;
    return true;
}

static bool read_field(struct reading *reading, const struct pb_message *type,
                       const struct pb_field *field, struct json from, char *message) {
    bool repeated = field->label == PB_REPEATED || field->label == PB_PACKED;
    bool map = repeated && field->kind == PB_MESSAGE && field->sub->map_entry;
    char *at = message + field->at;
    if (map) return read_map(reading, field, from, message);
    if (repeated) return protojson_read_list(reading, type, field, from, message);
    if (!mark_present(reading, field, message)) return false;
    if (field->kind == PB_MESSAGE) {
        char *inner = arena_alloc(reading->arena, field->sub->size + 1);
        if (!inner) return no_room(reading);
        VALUE(char *) = inner;
        at = inner;
    }
    return protojson_read_value(reading, type, field, from, at);
}

static bool is_null(const struct pb_field *field, struct json value) {
    bool value_itself = field->kind == PB_MESSAGE && protojson_known(field->sub) == KNOWN_VALUE;
    return value.kind == JSON_NULL && !value_itself;
}

static bool read_message(struct reading *reading, const struct pb_message *type,
                         struct json from, char *ret) {
    struct json key, value;
    struct str name;
    enum protojson_known known = protojson_known(type);
    if (known != KNOWN_NOT)
        return protojson_read_known(known, from, reading->arena, ret, reading->e);
    if (from.kind != JSON_OBJECT) return expected(reading, "an object", from);
    struct json_reader reader = json_enter(from);
    while (json_next_member(&reader, &key, &value)) {
        if (!json_str(key, reading->arena, &name)) return no_room(reading);
        const struct pb_field *field = find_field(type, name);
        if (!field) return no_field(reading, type, name);
        if (is_null(field, value)) continue;
        if (!read_field(reading, type, field, value, ret))
            return err_add(reading->e, STR_FMT, STR_ARG(name));
    }
    return true;
}

bool protojson_read(const struct protojson *json, const struct pb_message *type,
                    struct json from, struct arena *arena, void *ret, struct err *e) {
    struct reading reading = {.json = json, .arena = arena, .e = e};
    return read_message(&reading, type, from, ret);
}
