/* protojson_known: moments, durations and free-form values. */
#include "proto/google.pb.h"
#include "wire/moment.h"
#include "wire/protojson.h"

#include <math.h>
#include <stdio.h>

#define NANOS_DIGITS 9
#define NANOS INT64_C(1000000000)

enum protojson_known protojson_known(const struct pb_message *type) {
    static const struct {
        const struct pb_message *type;
        enum protojson_known known;
    } rows[] = {
        {&google_timestamp_table, KNOWN_TIMESTAMP}, {&google_duration_table, KNOWN_DURATION},
        {&google_struct_table, KNOWN_STRUCT},       {&google_value_table, KNOWN_VALUE},
        {&google_list_value_table, KNOWN_LIST},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        if (rows[i].type == type) return rows[i].known;
    }
    return KNOWN_NOT;
}

/* --- writing ------------------------------------------------------------------------------ */

static bool protojson_known_write_value(const struct google_value *value,
                                        struct json_writer *writer);

/* ".5", ".25", or nothing: 3, 6 or 9 digits. */
static void put_fraction(struct buf *out, int32_t nanos) {
    if (nanos == 0) return;
    if (nanos % 1000000 == 0)
        buf_printf(out, ".%03d", nanos / 1000000);
    else if (nanos % 1000 == 0)
        buf_printf(out, ".%06d", nanos / 1000);
    else
        buf_printf(out, ".%09d", nanos);
}

/* A moment that has no such text is written as an object, so that nothing is lost. */
static void write_numbers(int64_t seconds, int32_t nanos, struct json_writer *writer) {
    json_open_object(writer);
    json_member_i64(writer, "seconds", seconds);
    json_member_i64(writer, "nanos", nanos);
    json_close(writer);
}

static void write_timestamp(const struct google_timestamp *from, struct json_writer *writer) {
    struct buf text;
    buf_init(&text, 64);
    bool fits = from->nanos >= 0 && from->nanos < NANOS && moment_put(&text, from->seconds, 0);
    if (!fits) {
        write_numbers(from->seconds, from->nanos, writer);
    } else {
        while (text.len && text.at[text.len - 1] != 'Z' && text.at[text.len - 1] != '+')
            text.len--;
        text.len -= text.len > 0;
        put_fraction(&text, from->nanos);
        buf_append_byte(&text, 'Z');
        json_write_str(writer, buf_str(&text));
    }
    buf_done(&text);
}

static void write_duration(const struct google_duration *from, struct json_writer *writer) {
    struct buf text;
    bool negative = from->seconds < 0 || from->nanos < 0;
    bool fits = from->nanos > -NANOS && from->nanos < NANOS && from->seconds != INT64_MIN &&
                (from->seconds <= 0 || from->nanos >= 0) &&
                (from->seconds >= 0 || from->nanos <= 0);
    if (!fits) {
        write_numbers(from->seconds, from->nanos, writer);
        return;
    }
    buf_init(&text, 64);
    buf_printf(&text, "%s%lld", negative ? "-" : "",
               (long long)(from->seconds < 0 ? -from->seconds : from->seconds));
    put_fraction(&text, from->nanos < 0 ? -from->nanos : from->nanos);
    buf_append_byte(&text, 's');
    json_write_str(writer, buf_str(&text));
    buf_done(&text);
}

static bool write_struct(const struct google_struct *from, struct json_writer *writer) {
    static const struct google_value null = {.which_kind = GOOGLE_VALUE_NULL_VALUE};
    if (writer->depth + 1 >= JSON_DEPTH_MAX) return false;
    json_open_object(writer);
    for (size_t i = 0; from && i < from->fields_count; i++) {
        const struct google_value *value = from->fields[i].value;
        json_key(writer, from->fields[i].key);
        if (!protojson_known_write_value(value ? value : &null, writer)) return false;
    }
    json_close(writer);
    return true;
}

static bool write_list(const struct google_list_value *from, struct json_writer *writer) {
    if (writer->depth + 1 >= JSON_DEPTH_MAX) return false;
    json_open_array(writer);
    for (size_t i = 0; from && i < from->values_count; i++) {
        if (!protojson_known_write_value(&from->values[i], writer)) return false;
    }
    json_close(writer);
    return true;
}

static bool protojson_known_write_value(const struct google_value *value,
                                        struct json_writer *writer) {
    switch (value->which_kind) {
    case GOOGLE_VALUE_NUMBER_VALUE: json_write_double(writer, value->number_value); break;
    case GOOGLE_VALUE_STRING_VALUE: json_write_str(writer, value->string_value); break;
    case GOOGLE_VALUE_BOOL_VALUE: json_write_bool(writer, value->bool_value); break;
    case GOOGLE_VALUE_STRUCT_VALUE: return write_struct(value->struct_value, writer);
    case GOOGLE_VALUE_LIST_VALUE: return write_list(value->list_value, writer);
    default: json_write_null(writer); break;
    }
    return true;
}

bool protojson_write_known(enum protojson_known known, const void *message,
                           struct json_writer *writer) {
    switch (known) {
    case KNOWN_TIMESTAMP: write_timestamp(message, writer); break;
    case KNOWN_DURATION: write_duration(message, writer); break;
    case KNOWN_STRUCT: return write_struct(message, writer);
    case KNOWN_VALUE: return protojson_known_write_value(message, writer);
    case KNOWN_LIST: return write_list(message, writer);
    case KNOWN_NOT: break;
    }
    return true;
}

/* --- reading ------------------------------------------------------------------------------ */

static bool protojson_known_read_value(struct json from, struct arena *arena,
                                       struct google_value *ret, struct err *e);

static bool no_room(struct err *e) {
    return err_set(e, ERR_TOO_LARGE, "the message is too large");
}

/* The digits after a point, as nanoseconds; *text begins with the point, or has none. */
static bool read_fraction(struct str *text, int32_t *ret) {
    int32_t nanos = 0;
    size_t digits = 0;
    if (!str_starts(*text, STR("."))) return true;
    *text = str_skip(*text, 1);
    for (; digits < text->len && text->at[digits] >= '0' && text->at[digits] <= '9'; digits++) {
        if (digits == NANOS_DIGITS) return false;
        nanos = nanos * 10 + (text->at[digits] - '0');
    }
    *text = str_skip(*text, digits);
    for (size_t i = digits; i < NANOS_DIGITS; i++) nanos *= 10;
    *ret = nanos;
    return digits > 0;
}

static bool read_timestamp(struct str text, struct google_timestamp *ret, struct err *e) {
    size_t point = str_find_byte(text, '.');
    struct str fraction = str_skip(text, point);
    if (!moment_read(text, &ret->seconds, e)) return false;
    return read_fraction(&fraction, &ret->nanos) ||
           err_set(e, ERR_INVALID_ARGUMENT, "a moment has at most nine digits of a second");
}

/* "3s", "-1.5s". */
static bool protojson_known_read_duration(struct str text, struct google_duration *ret,
                                          struct err *e) {
    bool negative = str_starts(text, STR("-"));
    struct str rest = str_skip(text, negative);
    size_t digits = 0;
    uint64_t seconds = 0;
    while (digits < rest.len && rest.at[digits] >= '0' && rest.at[digits] <= '9') digits++;
    bool good = str_to_u64(str_head(rest, digits), &seconds) && seconds <= INT64_MAX;
    rest = str_skip(rest, digits);
    good = good && read_fraction(&rest, &ret->nanos) && str_equal(rest, STR("s"));
    if (!good)
        return err_set(e, ERR_INVALID_ARGUMENT, "a duration is seconds and an 's': \"1.5s\"");
    ret->seconds = negative ? -(int64_t)seconds : (int64_t)seconds;
    if (negative) ret->nanos = -ret->nanos;
    return true;
}

static bool read_struct(struct json from, struct arena *arena, struct google_struct *ret,
                        struct err *e) {
    struct json key, value;
    struct json_reader reader = json_enter(from);
    size_t count = json_count(from), at = 0;
    if (from.kind != JSON_OBJECT)
        return err_set(e, ERR_INVALID_ARGUMENT, "expected an object, found %s",
                       json_kind_name(from.kind));
    struct google_struct_fields_entry *fields = arena_alloc(arena, count * sizeof(*fields));
    struct google_value *values = arena_alloc(arena, count * sizeof(*values));
    if (!fields || !values) return no_room(e);
    for (; json_next_member(&reader, &key, &value); at++) {
        if (!json_str(key, arena, &fields[at].key)) return no_room(e);
        if (!protojson_known_read_value(value, arena, &values[at], e)) return false;
        fields[at].value = &values[at];
    }
    *ret = (struct google_struct){.fields = fields, .fields_count = count};
    return true;
}

static bool protojson_known_read_list(struct json from, struct arena *arena,
                                      struct google_list_value *ret, struct err *e) {
    struct json item;
    struct json_reader reader = json_enter(from);
    size_t count = json_count(from), at = 0;
    if (from.kind != JSON_ARRAY)
        return err_set(e, ERR_INVALID_ARGUMENT, "expected an array, found %s",
                       json_kind_name(from.kind));
    struct google_value *values = arena_alloc(arena, count * sizeof(*values));
    if (!values) return no_room(e);
    while (json_next_item(&reader, &item)) {
        if (!protojson_known_read_value(item, arena, &values[at++], e)) return false;
    }
    *ret = (struct google_list_value){.values = values, .values_count = count};
    return true;
}

static bool read_inner(struct json from, struct arena *arena, struct google_value *ret,
                       struct err *e) {
    if (from.kind == JSON_OBJECT) {
        struct google_struct *inner = arena_alloc(arena, sizeof(*inner));
        ret->which_kind = GOOGLE_VALUE_STRUCT_VALUE;
        ret->struct_value = inner;
        return inner ? read_struct(from, arena, inner, e) : no_room(e);
    }
    struct google_list_value *inner = arena_alloc(arena, sizeof(*inner));
    ret->which_kind = GOOGLE_VALUE_LIST_VALUE;
    ret->list_value = inner;
    return inner ? protojson_known_read_list(from, arena, inner, e) : no_room(e);
}

static bool protojson_known_read_value(struct json from, struct arena *arena,
                                       struct google_value *ret, struct err *e) {
    switch (from.kind) {
    case JSON_OBJECT:
    case JSON_ARRAY: return read_inner(from, arena, ret, e);
    case JSON_STRING:
        ret->which_kind = GOOGLE_VALUE_STRING_VALUE;
        return json_str(from, arena, &ret->string_value) || no_room(e);
    case JSON_NUMBER:
        ret->which_kind = GOOGLE_VALUE_NUMBER_VALUE;
        return (json_double(from, &ret->number_value) && isfinite(ret->number_value)) ||
               err_set(e, ERR_INVALID_ARGUMENT, "the number is too large");
    case JSON_TRUE:
    case JSON_FALSE:
        ret->which_kind = GOOGLE_VALUE_BOOL_VALUE;
        ret->bool_value = from.kind == JSON_TRUE;
        return true;
    case JSON_NONE:
    case JSON_NULL: break;
    }
    ret->which_kind = GOOGLE_VALUE_NULL_VALUE;
    return true;
}

bool protojson_read_known(enum protojson_known known, struct json from, struct arena *arena,
                          void *ret, struct err *e) {
    struct str text;
    if (known == KNOWN_STRUCT) return read_struct(from, arena, ret, e);
    if (known == KNOWN_LIST) return protojson_known_read_list(from, arena, ret, e);
    if (known == KNOWN_VALUE) return protojson_known_read_value(from, arena, ret, e);
    if (from.kind != JSON_STRING)
        return err_set(e, ERR_INVALID_ARGUMENT, "expected a string, found %s",
                       json_kind_name(from.kind));
    if (!json_str(from, arena, &text)) return no_room(e);
    return known == KNOWN_TIMESTAMP ? read_timestamp(text, ret, e)
                                    : protojson_known_read_duration(text, ret, e);
}
