#include "base/mem.h"
#include "wire/base64.h"
#include "wire/protojson.h"

#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define NAME_BYTES 128

struct writing {
    const struct protojson *json;
    struct json_writer writer;
};

static bool protojson_write_message(struct writing *writing, const struct pb_message *type,
                                    const char *message);

/* "text_delta" as "textDelta". */
static void protojson_write_key(struct writing *writing, const char *name) {
    char camel[NAME_BYTES];
    size_t len = 0;
    for (const char *at = name; *at && len < sizeof(camel); at++) {
        bool up = at > name && at[-1] == '_' && *at >= 'a' && *at <= 'z';
        if (*at != '_') camel[len++] = (char)(up ? *at - ('a' - 'A') : *at);
    }
    json_key(&writing->writer, str_of(camel, len));
}

/* --- single values ------------------------------------------------------------------------ */

static void write_quoted(struct json_writer *writer, int64_t i64, uint64_t u64, bool negative) {
    char text[32];
    if (negative)
        snprintf(text, sizeof(text), "%lld", (long long)i64);
    else
        snprintf(text, sizeof(text), "%llu", (unsigned long long)u64);
    json_write_str(writer, str_from(text));
}

static void write_real(struct json_writer *writer, double value, bool single) {
    char text[40];
    if (!isfinite(value)) {
        json_write_str(writer, isnan(value)  ? STR("NaN")
                               : value > 0.0 ? STR("Infinity")
                                             : STR("-Infinity"));
        return;
    }
    if (!single) {
        json_write_double(writer, value);
        return;
    }
    /* The shortest text that is the same float again. */
    for (int digits = 6; digits <= 9; digits++) {
        snprintf(text, sizeof(text), "%.*g", digits, value);
        if (strtof(text, NULL) == (float)value) break;
    }
    json_write_raw(writer, str_from(text));
}

static void write_bytes(struct json_writer *writer, struct str bytes) {
    struct buf text;
    buf_init(&text, base64_encoded_len(bytes.len) + 4);
    base64_encode(&text, bytes, BASE64_STANDARD, BASE64_PADDED);
    json_write_str(writer, buf_str(&text));
    buf_done(&text);
}

static void write_enum(struct writing *writing, const struct pb_message *type,
                       const struct pb_field *field, int32_t value) {
    const struct pb_enum_descriptor *named = protojson_enum_of(writing->json, type, field);
    for (size_t i = 0; named && i < named->value_count; i++) {
        if (named->value[i].number != value) continue;
        json_write_str(&writing->writer, named->value[i].name);
        return;
    }
    json_write_i64(&writing->writer, value); /* a value from a later version */
}

#define VALUE(type) (*(const type *)(const void *)at)

static bool protojson_write_value(struct writing *writing, const struct pb_message *type,
                                  const struct pb_field *field, const char *at) {
    struct json_writer *writer = &writing->writer;
    switch ((enum pb_kind)field->kind) {
    case PB_BOOL: json_write_bool(writer, VALUE(bool)); break;
    case PB_INT32:
    case PB_SINT32:
    case PB_SFIXED32: json_write_i64(writer, VALUE(int32_t)); break;
    case PB_UINT32:
    case PB_FIXED32: json_write_u64(writer, VALUE(uint32_t)); break;
    case PB_INT64:
    case PB_SINT64:
    case PB_SFIXED64:
        write_quoted(writer, VALUE(int64_t), (uint64_t)VALUE(int64_t), VALUE(int64_t) < 0);
        break;
    case PB_UINT64:
    case PB_FIXED64: write_quoted(writer, 0, VALUE(uint64_t), false); break;
    case PB_FLOAT: write_real(writer, (double)VALUE(float), true); break;
    case PB_DOUBLE: write_real(writer, VALUE(double), false); break;
    case PB_ENUM: write_enum(writing, type, field, VALUE(int32_t)); break;
    case PB_STRING: json_write_str(writer, VALUE(struct str)); break;
    case PB_BYTES: write_bytes(writer, VALUE(struct str)); break;
    case PB_MESSAGE: return protojson_write_message(writing, field->sub, at);
    case PB_KIND_COUNT: assert(false);
    }
    return true;
}

/* --- fields ------------------------------------------------------------------------------- */

static size_t protojson_write_value_size(const struct pb_field *field) {
    return field->kind == PB_MESSAGE ? field->sub->size : pb_kinds[field->kind].size;
}

/* The only place where a value of a message is: a field that is not repeated holds a pointer. */
static const char *single(const struct pb_field *field, const char *message) {
    const char *at = message + field->at;
    return field->kind == PB_MESSAGE ? VALUE(char *const) : at;
}

static bool is_default(const struct pb_field *field, const char *at) {
    static const char zero[16];
    if (field->kind == PB_MESSAGE) return at == NULL;
    if (field->kind == PB_STRING || field->kind == PB_BYTES) return VALUE(struct str).len == 0;
    assert(protojson_write_value_size(field) <= sizeof(zero));
    return memcmp(at, zero, protojson_write_value_size(field)) == 0;
}

static bool is_present(const struct pb_field *field, const char *message) {
    const char *mark = message + field->mark;
    switch ((enum pb_label)field->label) {
    case PB_OPTIONAL: return *(const bool *)(const void *)mark;
    case PB_ONEOF: return *(const int32_t *)(const void *)mark == (int32_t)field->number;
    case PB_REPEATED:
    case PB_PACKED: return *(const size_t *)(const void *)mark > 0;
    case PB_IMPLICIT: break;
    }
    return !is_default(field, single(field, message));
}

/* JSON keys are text, whatever the key's type. */
static void write_map_key(struct writing *writing, const struct pb_field *key,
                          const char *entry) {
    const char *at = entry + key->at;
    char text[32];
    uint64_t u64 = 0;
    int64_t i64 = 0;
    switch ((enum pb_kind)key->kind) {
    case PB_STRING: json_key(&writing->writer, VALUE(struct str)); return;
    case PB_BOOL: json_key(&writing->writer, VALUE(bool) ? STR("true") : STR("false")); return;
    case PB_UINT64:
    case PB_FIXED64: u64 = VALUE(uint64_t); break;
    case PB_UINT32:
    case PB_FIXED32: u64 = VALUE(uint32_t); break;
    case PB_INT64:
    case PB_SINT64:
    case PB_SFIXED64: i64 = VALUE(int64_t); break;
    default: i64 = VALUE(int32_t); break;
    }
    snprintf(text, sizeof(text), u64 ? "%llu" : "%lld", u64 ? (long long)u64 : (long long)i64);
    json_key(&writing->writer, str_from(text));
}

static bool protojson_write_entry(struct writing *writing, const struct pb_message *type,
                                  const char *entry) {
    const struct pb_field *key = &type->fields[0], *value = &type->fields[1];
    const char *at = single(value, entry);
    write_map_key(writing, key, entry);
    if (at) return protojson_write_value(writing, type, value, at);
    json_open_object(&writing->writer); /* an empty message */
    json_close(&writing->writer);
    return true;
}

static bool write_repeated(struct writing *writing, const struct pb_message *type,
                           const struct pb_field *field, const char *message) {
    bool map = field->kind == PB_MESSAGE && field->sub->map_entry;
    size_t count = *(const size_t *)(const void *)(message + field->mark);
    const char *at = message + field->at;
    const char *values = VALUE(char *const);
    if (writing->writer.depth + 1 >= JSON_DEPTH_MAX) return false;
    if (map)
        json_open_object(&writing->writer);
    else
        json_open_array(&writing->writer);
    for (size_t i = 0; i < count; i++) {
        const char *value = values + i * protojson_write_value_size(field);
        bool fine = map ? protojson_write_entry(writing, field->sub, value)
                        : protojson_write_value(writing, type, field, value);
        if (!fine) return false;
    }
    json_close(&writing->writer);
    return true;
}

static bool write_field(struct writing *writing, const struct pb_message *type,
                        const struct pb_field *field, const char *message) {
    if (!is_present(field, message)) return true;
    protojson_write_key(writing, field->name);
    if (field->label == PB_REPEATED || field->label == PB_PACKED)
        return write_repeated(writing, type, field, message);
    return protojson_write_value(writing, type, field, single(field, message));
}

/* False: too deep. */
static bool protojson_write_message(struct writing *writing, const struct pb_message *type,
                                    const char *message) {
    enum protojson_known known = protojson_known(type);
    if (writing->writer.depth + 1 >= JSON_DEPTH_MAX) return false;
    if (known != KNOWN_NOT) return protojson_write_known(known, message, &writing->writer);
    json_open_object(&writing->writer);
    for (size_t i = 0; i < type->field_count; i++) {
        if (!write_field(writing, type, &type->fields[i], message)) return false;
    }
    json_close(&writing->writer);
    return true;
}

bool protojson_write(const struct protojson *json, const struct pb_message *type,
                     const void *message, struct buf *out) {
    struct writing writing = {.json = json, .writer = json_writer(out)};
    size_t begin = out->len;
    if (protojson_write_message(&writing, type, message) && buf_ok(out)) return true;
    out->len = begin;
    return false;
}
