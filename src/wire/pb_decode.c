#include "wire/pb.h"

#include "base/utf8.h"

#include <assert.h>

#define TAG_BYTES_MAX 5     /* 32 bits; longer tags and lengths are refused, even if padded */
#define VARINT_BYTES_MAX 10 /* 64 bits; excess bits of the tenth byte are dropped */
#define REPEATED_FIRST 4    /* room of an array when its first value arrives */

struct reader {
    const char *at, *end; /* the rest of the message being read */
    const char *start;
    struct arena *arena;
    const struct pb_message *type; /* the outermost message, for error texts */
    struct err *e;
    unsigned depth;
    bool has_unknown; /* the last message read had an unknown field */
};

static bool read_message(struct reader *r, const struct pb_message *type, char *message);

bool pb_decode_view(const struct pb_message *type, struct str bytes, struct arena *arena,
                    void *ret, struct err *e) {
    if (bytes.len == 0) bytes = STR_EMPTY; /* avoids arithmetic on NULL */
    struct reader reader = {.at = bytes.at,
                            .end = bytes.at + bytes.len,
                            .start = bytes.at,
                            .arena = arena,
                            .type = type,
                            .e = e};
    memset(ret, 0, type->size);
    if (read_message(&reader, type, ret)) return true;
    memset(ret, 0, type->size);
    return false;
}

bool pb_decode(const struct pb_message *type, struct lent bytes, struct arena *arena, void *ret,
               struct err *e) {
    struct str kept;
    if (lent_keep(bytes, arena, &kept)) return pb_decode_view(type, kept, arena, ret, e);
    memset(ret, 0, type->size);
    return err_set(e, ERR_TOO_LARGE, "a %s of %zu bytes is more than there is room for",
                   type->name, lent_read(bytes).len);
}

/* --- refusals --------------------------------------------------------------------------- */

static bool pb_decode_refuse(const struct reader *r, const char *why) {
    err_set(r->e, ERR_MALFORMED, "not a %s: %s at byte %zu", r->type->name, why,
            (size_t)(r->at - r->start));
    return false; /* explicit, so that the compiler sees it */
}

static bool refuse_size(const struct reader *r) {
    return err_set(r->e, ERR_TOO_LARGE, "a %s that unpacks to more memory than allowed",
                   r->type->name);
}

static bool refuse_text(const struct reader *r, const struct pb_field *field) {
    return err_set(r->e, ERR_MALFORMED, "not a %s: string field '%s' is not UTF-8",
                   r->type->name, field->name);
}

/* --- the wire --------------------------------------------------------------------------- */

static size_t left(const struct reader *r) {
    return (size_t)(r->end - r->at);
}

static bool read_long_varint(struct reader *r, size_t max_bytes, uint64_t *ret) {
    size_t limit = left(r) < max_bytes ? left(r) : max_bytes;
    uint64_t value = 0;
    for (size_t i = 0; i < limit; i++) {
        uint8_t byte = (uint8_t)r->at[i];
        value |= (uint64_t)(byte & 0x7F) << (7 * i);
        if (byte & 0x80) continue;
        r->at += i + 1;
        *ret = value;
        return true;
    }
    return pb_decode_refuse(r, limit < max_bytes ? "cut short" : "a number of too many bytes");
}

static inline bool read_varint(struct reader *r, size_t max_bytes, uint64_t *ret) {
    if (r->at == r->end || (uint8_t)*r->at >= 0x80) return read_long_varint(r, max_bytes, ret);
    *ret = (uint8_t)*r->at++;
    return true;
}

static inline bool read_tag(struct reader *r, uint32_t *ret_number, enum pb_wire *ret_wire) {
    uint64_t tag;
    if (!read_varint(r, TAG_BYTES_MAX, &tag)) return false;
    if (tag > UINT32_MAX) return pb_decode_refuse(r, "a field number too large");
    if (tag >> 3 == 0) return pb_decode_refuse(r, "field number 0");
    if ((tag & 7) > PB_WIRE_32) return pb_decode_refuse(r, "an unknown wire type");
    *ret_number = (uint32_t)tag >> 3;
    *ret_wire = (enum pb_wire)(tag & 7);
    return true;
}

/* A length and that many bytes. */
static inline bool pb_decode_read_bytes(struct reader *r, struct str *ret) {
    uint64_t len;
    if (!read_varint(r, TAG_BYTES_MAX, &len)) return false;
    if (len > left(r)) return pb_decode_refuse(r, "cut short");
    *ret = str_of(r->at, (size_t)len);
    r->at += len;
    return true;
}

static bool read_fixed(struct reader *r, size_t size, uint64_t *ret) {
    if (size > left(r)) return pb_decode_refuse(r, "cut short");
    uint64_t value = 0;
    for (size_t i = 0; i < size; i++) value |= (uint64_t)(uint8_t)r->at[i] << (8 * i);
    r->at += size;
    *ret = value;
    return true;
}

static bool skip(struct reader *r, uint32_t number, enum pb_wire wire);

static bool skip_group(struct reader *r, uint32_t number) {
    if (r->depth == PB_DEPTH_MAX) return pb_decode_refuse(r, "nested too deeply");
    r->depth++;
    for (;;) {
        uint32_t inner;
        enum pb_wire wire;
        if (!read_tag(r, &inner, &wire)) return false;
        if (wire == PB_WIRE_GROUP_END && inner == number) break;
        if (!skip(r, inner, wire)) return false;
    }
    r->depth--;
    return true;
}

static bool skip(struct reader *r, uint32_t number, enum pb_wire wire) {
    uint64_t value;
    struct str bytes;
    switch (wire) {
    case PB_WIRE_VARINT: return read_varint(r, VARINT_BYTES_MAX, &value);
    case PB_WIRE_64: return read_fixed(r, 8, &value);
    case PB_WIRE_BYTES: return pb_decode_read_bytes(r, &bytes);
    case PB_WIRE_GROUP: return skip_group(r, number);
    case PB_WIRE_GROUP_END: return pb_decode_refuse(r, "the end of a group that never began");
    case PB_WIRE_32: return read_fixed(r, 4, &value);
    }
    assert(false); /* read_tag() refuses all other wire types */
    return false;
}

/* --- places in the struct --------------------------------------------------------------- */

static const struct pb_field *find_field(const struct pb_message *type, uint32_t number) {
    if (number <= type->dense) return &type->fields[number - 1];
    size_t low = type->dense, high = type->field_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (type->fields[middle].number == number) return &type->fields[middle];
        if (type->fields[middle].number < number)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

static size_t pb_decode_value_size(const struct pb_field *field) {
    return field->kind == PB_MESSAGE && field->label >= PB_REPEATED ? field->sub->size
           : field->kind == PB_MESSAGE                              ? sizeof(void *)
                                       : pb_kinds[field->kind].size;
}

/* Room of an array that holds `count` values: the next power of two. It need not be stored. */
static size_t room_for(size_t count) {
    size_t room = REPEATED_FIRST;
    while (room < count) room *= 2;
    return room;
}

/* Append `more` values to a repeated field and return the address of the first. NULL at the
 * arena's limit. */
static char *add_values(struct reader *r, const struct pb_field *field, char *message,
                        size_t more) {
    size_t *count = (size_t *)(message + field->mark);
    size_t size = pb_decode_value_size(field);
    char *array;
    memcpy(&array, message + field->at, sizeof(array));
    if (!array || *count + more > room_for(*count)) {
        char *grown = arena_alloc(r->arena, room_for(*count + more) * size);
        if (!grown) return NULL;
        if (array) memcpy(grown, array, *count * size);
        memcpy(message + field->at, &grown, sizeof(grown));
        array = grown;
    }
    char *place = array + *count * size;
    *count += more;
    return place;
}

/* Address of the field's next value; marks the field as present. NULL at the arena's limit. */
static inline char *value_place(struct reader *r, const struct pb_field *field, char *message) {
    char *place = message + field->at;
    switch ((enum pb_label)field->label) {
    case PB_IMPLICIT: break;
    case PB_OPTIONAL: *(bool *)(message + field->mark) = true; break;
    case PB_ONEOF: {
        int32_t *which = (int32_t *)(message + field->mark);
        if (*which != (int32_t)field->number) memset(place, 0, pb_decode_value_size(field));
        *which = (int32_t)field->number;
        break;
    }
    case PB_REPEATED:
    case PB_PACKED: return add_values(r, field, message, 1);
    }
    return place;
}

/* --- values ----------------------------------------------------------------------------- */

static uint64_t unzigzag(uint64_t value) {
    return value >> 1 ^ (0 - (value & 1));
}

static void store_number(enum pb_kind kind, uint64_t value, char *place) {
    switch (kind) {
    case PB_BOOL: *(bool *)place = value != 0; break;
    case PB_INT32:
    case PB_ENUM:
    case PB_SFIXED32: *(int32_t *)place = (int32_t)(uint32_t)value; break;
    case PB_UINT32:
    case PB_FIXED32: *(uint32_t *)place = (uint32_t)value; break;
    case PB_INT64:
    case PB_SFIXED64: *(int64_t *)place = (int64_t)value; break;
    case PB_UINT64:
    case PB_FIXED64: *(uint64_t *)place = value; break;
    case PB_SINT32: *(int32_t *)place = (int32_t)(uint32_t)unzigzag((uint32_t)value); break;
    case PB_SINT64: *(int64_t *)place = (int64_t)unzigzag(value); break;
    case PB_FLOAT: {
        uint32_t bits = (uint32_t)value;
        memcpy(place, &bits, sizeof(bits));
        break;
    }
    case PB_DOUBLE: memcpy(place, &value, sizeof(value)); break;
    case PB_STRING:
    case PB_BYTES:
    case PB_MESSAGE:
    case PB_KIND_COUNT: assert(false); /* not numbers */
    }
}

static bool pb_decode_read_number(struct reader *r, enum pb_kind kind, uint64_t *ret) {
    if (pb_kinds[kind].wire == PB_WIRE_VARINT) return read_varint(r, VARINT_BYTES_MAX, ret);
    return read_fixed(r, pb_kinds[kind].size, ret);
}

/* The struct of a sub-message: an array element, or the target of the pointer at `place`, which
 * is allocated when NULL. A message given twice is merged into the same struct. */
static char *sub_message(struct reader *r, const struct pb_field *field, char *place) {
    if (field->label == PB_REPEATED) return place;
    char *message;
    memcpy(&message, place, sizeof(message));
    if (message) return message;
    message = arena_alloc(r->arena, field->sub->size);
    memcpy(place, &message, sizeof(message));
    return message;
}

/* A map entry with an unknown field is itself unknown: remove the entry added last. */
static void drop_entry(const struct pb_field *field, char *message, char *entry) {
    size_t *count = (size_t *)(message + field->mark);
    (*count)--;
    memset(entry, 0, field->sub->size);
}

static bool read_sub_message(struct reader *r, const struct pb_field *field, struct str bytes,
                             char *place) {
    if (r->depth == PB_DEPTH_MAX) return pb_decode_refuse(r, "nested too deeply");
    char *message = sub_message(r, field, place);
    if (!message) return refuse_size(r);
    const char *end = r->end;
    r->at = bytes.at;
    r->end = bytes.at + bytes.len;
    r->depth++;
    if (!read_message(r, field->sub, message)) return false;
    r->depth--;
    r->end = end;
    return true;
}

static bool pb_decode_read_text(struct reader *r, const struct pb_field *field,
                                struct str bytes, char *place) {
    if (field->kind == PB_STRING && !utf8_valid(bytes)) return refuse_text(r, field);
    *(struct str *)place = bytes;
    return true;
}

static bool read_delimited(struct reader *r, const struct pb_field *field, char *message) {
    struct str bytes;
    if (!pb_decode_read_bytes(r, &bytes)) return false;
    char *place = value_place(r, field, message);
    if (!place) return refuse_size(r);
    if (field->kind != PB_MESSAGE) return pb_decode_read_text(r, field, bytes, place);
    if (!read_sub_message(r, field, bytes, place)) return false;
    if (field->sub->map_entry && r->has_unknown) drop_entry(field, message, place);
    return true;
}

static bool pb_decode_read_value(struct reader *r, const struct pb_field *field,
                                 char *message) {
    if (pb_kinds[field->kind].wire == PB_WIRE_BYTES) return read_delimited(r, field, message);
    uint64_t value;
    if (!pb_decode_read_number(r, (enum pb_kind)field->kind, &value)) return false;
    char *place = value_place(r, field, message);
    if (!place) return refuse_size(r);
    store_number((enum pb_kind)field->kind, value, place);
    return true;
}

/* Count of numbers in a packed run. A truncated last varint is not counted. */
static size_t count_packed(enum pb_kind kind, struct str run) {
    if (pb_kinds[kind].wire != PB_WIRE_VARINT) return run.len / pb_kinds[kind].size;
    size_t count = 0;
    for (size_t i = 0; i < run.len; i++) count += (uint8_t)run.at[i] < 0x80;
    return count;
}

static bool read_packed(struct reader *r, const struct pb_field *field, char *message) {
    enum pb_kind kind = (enum pb_kind)field->kind;
    struct str run;
    if (!pb_decode_read_bytes(r, &run)) return false;
    if (run.len == 0) return true;

    size_t count = count_packed(kind, run);
    char *place = add_values(r, field, message, count);
    if (!place) return refuse_size(r);

    struct reader inner = *r;
    inner.at = run.at;
    inner.end = run.at + run.len;
    for (size_t i = 0; i < count; i++, place += pb_kinds[kind].size) {
        uint64_t value;
        if (!pb_decode_read_number(&inner, kind, &value)) return false;
        store_number(kind, value, place);
    }
    return inner.at == inner.end || pb_decode_refuse(&inner, "cut short");
}

static bool is_repeated_number(const struct pb_field *field) {
    return field->label >= PB_REPEATED && pb_kinds[field->kind].wire != PB_WIRE_BYTES;
}

/* Read one field; `field` is NULL when the number is unknown. */
static inline bool read_field(struct reader *r, const struct pb_field *field, uint32_t number,
                              enum pb_wire wire, char *message, bool *has_unknown) {
    if (field && wire == pb_kinds[field->kind].wire)
        return pb_decode_read_value(r, field, message);
    if (field && wire == PB_WIRE_BYTES && is_repeated_number(field))
        return read_packed(r, field, message);
    *has_unknown = true;
    return skip(r, number, wire);
}

static bool read_message(struct reader *r, const struct pb_message *type, char *message) {
    bool has_unknown = false;
    while (r->at < r->end) {
        uint32_t number;
        enum pb_wire wire;
        if (!read_tag(r, &number, &wire)) return false;
        const struct pb_field *field = find_field(type, number);
        if (!read_field(r, field, number, wire, message, &has_unknown)) return false;
    }
    r->has_unknown = has_unknown;
    return true;
}
