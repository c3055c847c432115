#include "wire/pb.h"

#include "base/mem.h"

#include <assert.h>
#include <stdlib.h>

/* A length stands in front of what it measures, so encoding walks the message twice: once to
 * measure, once to write. The first walk leaves every nested length here and the second finds
 * them in the same order. */
struct lengths {
    size_t *at;
    size_t count, room;
    size_t first[24]; /* enough for nearly all messages, without the heap */
};

static void lengths_init(struct lengths *lengths) {
    lengths->at = lengths->first;
    lengths->count = 0;
    lengths->room = ARRAY_LEN(lengths->first);
}

static void lengths_done(struct lengths *lengths) {
    if (lengths->at != lengths->first) free(lengths->at);
}

static void lengths_grow(struct lengths *lengths) {
    bool on_heap = lengths->at != lengths->first;
    size_t *grown =
        mem_resize(on_heap ? lengths->at : NULL, 2 * lengths->room * sizeof(*grown));
    if (!on_heap) memcpy(grown, lengths->first, sizeof(lengths->first));
    lengths->at = grown;
    lengths->room *= 2;
}

/* The slot of the next nested length. */
static inline size_t lengths_claim(struct lengths *lengths) {
    if (lengths->count == lengths->room) lengths_grow(lengths);
    return lengths->count++;
}

static size_t measure_message(const struct pb_message *type, const char *message,
                              struct lengths *lengths);
static char *put_message(char *at, const struct pb_message *type, const char *message,
                         const size_t **lengths);

size_t pb_encoded_len(const struct pb_message *type, const void *message) {
    struct lengths lengths;
    lengths_init(&lengths);
    size_t len = measure_message(type, message, &lengths);
    lengths_done(&lengths);
    return len;
}

bool pb_encode(const struct pb_message *type, const void *message, struct buf *out) {
    struct lengths lengths;
    lengths_init(&lengths);
    size_t len = measure_message(type, message, &lengths);
    char *room = buf_room(out, len);
    if (room) {
        const size_t *next = lengths.at;
        char *end = put_message(room, type, message, &next);
        assert(end == room + len);
        buf_grew(out, len);
    }
    lengths_done(&lengths);
    return room != NULL;
}

/* --- what is in the struct -------------------------------------------------------------- */

static const uint8_t sizes[PB_KIND_COUNT] = {
    /* clang-format off */
    [PB_BOOL]   = sizeof(bool),
    [PB_INT32]  = 4, [PB_UINT32]  = 4, [PB_SINT32]   = 4, [PB_ENUM]   = 4,
    [PB_INT64]  = 8, [PB_UINT64]  = 8, [PB_SINT64]   = 8,
    [PB_FLOAT]  = 4, [PB_FIXED32] = 4, [PB_SFIXED32] = 4,
    [PB_DOUBLE] = 8, [PB_FIXED64] = 8, [PB_SFIXED64] = 8,
    [PB_STRING] = sizeof(struct str), [PB_BYTES] = sizeof(struct str),
    /* clang-format on */
};

static inline uint32_t load_32(const char *place) {
    uint32_t bits;
    memcpy(&bits, place, sizeof(bits));
    return bits;
}

static inline uint64_t load_64(const char *place) {
    uint64_t bits;
    memcpy(&bits, place, sizeof(bits));
    return bits;
}

static inline const char *load_pointer(const char *place) {
    const char *pointer;
    memcpy(&pointer, place, sizeof(pointer));
    return pointer;
}

static inline const struct str *text_at(const char *place) {
    return (const struct str *)place;
}

/* What the varint of a number says. */
static inline uint64_t varint_of(enum pb_kind kind, const char *place) {
    switch (kind) {
    case PB_BOOL: return *(const bool *)place;
    case PB_INT32:
    case PB_ENUM: return (uint64_t)(int64_t)(int32_t)load_32(place);
    case PB_UINT32: return load_32(place);
    case PB_SINT32: return load_32(place) << 1 ^ (0 - (load_32(place) >> 31));
    case PB_SINT64: return load_64(place) << 1 ^ (0 - (load_64(place) >> 63));
    default: return load_64(place);
    }
}

/* -0.0 is not zero: its bits count, as Google has it. */
static inline bool is_zero(enum pb_kind kind, const char *place) {
    if (kind == PB_STRING || kind == PB_BYTES) return text_at(place)->len == 0;
    if (kind == PB_MESSAGE) return load_pointer(place) == NULL;
    if (kind == PB_BOOL) return !*(const bool *)place;
    return sizes[kind] == 4 ? load_32(place) == 0 : load_64(place) == 0;
}

/* For a field that is not repeated. */
static inline bool is_present(const struct pb_field *field, const char *message) {
    switch ((enum pb_label)field->label) {
    case PB_OPTIONAL: return *(const bool *)(message + field->mark);
    case PB_ONEOF: return *(const int32_t *)(message + field->mark) == (int32_t)field->number;
    default: return !is_zero((enum pb_kind)field->kind, message + field->at);
    }
}

/* The values of a repeated field, side by side. */
struct values {
    const char *at;
    size_t count, size;
};

static struct values values_of(const struct pb_field *field, const char *message) {
    return (struct values){
        .at = load_pointer(message + field->at),
        .count = *(const size_t *)(message + field->mark),
        .size = field->kind == PB_MESSAGE ? field->sub->size : sizes[field->kind],
    };
}

/* A message's own struct: an element of its array, or behind the pointer. A oneof that says
 * message and points nowhere has an empty one. */
static inline const char *sub_message(const struct pb_field *field, const char *place) {
    return field->label == PB_REPEATED ? place : load_pointer(place);
}

/* --- the first walk: measure -------------------------------------------------------------- */

static size_t measure_sub_message(const struct pb_field *field, const char *message,
                                  struct lengths *lengths) {
    size_t slot = lengths_claim(lengths);
    size_t len = message ? measure_message(field->sub, message, lengths) : 0;
    lengths->at[slot] = len;
    return pb_varint_len(len) + len;
}

static inline size_t measure_value(const struct pb_field *field, const char *place,
                                   struct lengths *lengths) {
    switch ((enum pb_kind)field->kind) {
    case PB_FIXED32:
    case PB_SFIXED32:
    case PB_FLOAT: return 4;
    case PB_FIXED64:
    case PB_SFIXED64:
    case PB_DOUBLE: return 8;
    case PB_STRING:
    case PB_BYTES: return pb_varint_len(text_at(place)->len) + text_at(place)->len;
    case PB_MESSAGE: return measure_sub_message(field, sub_message(field, place), lengths);
    default: return pb_varint_len(varint_of((enum pb_kind)field->kind, place));
    }
}

static size_t measure_values(const struct pb_field *field, const char *message,
                             struct lengths *lengths) {
    struct values values = values_of(field, message);
    if (values.count == 0) return 0;

    bool packed = field->label == PB_PACKED;
    size_t slot = packed ? lengths_claim(lengths) : 0;
    size_t len = 0;
    for (size_t i = 0; i < values.count; i++)
        len += measure_value(field, values.at + i * values.size, lengths);
    if (!packed) return values.count * pb_tag_len(field->number) + len;
    lengths->at[slot] = len;
    return pb_bytes_len(field->number, len);
}

static size_t measure_message(const struct pb_message *type, const char *message,
                              struct lengths *lengths) {
    size_t len = 0;
    const struct pb_field *end = type->fields + type->field_count;
    for (const struct pb_field *field = type->fields; field < end; field++) {
        if (field->label >= PB_REPEATED)
            len += measure_values(field, message, lengths);
        else if (is_present(field, message))
            len +=
                pb_tag_len(field->number) + measure_value(field, message + field->at, lengths);
    }
    return len;
}

/* --- the second walk: write --------------------------------------------------------------- */

static enum pb_wire wire_of(enum pb_kind kind) {
    switch (kind) {
    case PB_FIXED32:
    case PB_SFIXED32:
    case PB_FLOAT: return PB_WIRE_32;
    case PB_FIXED64:
    case PB_SFIXED64:
    case PB_DOUBLE: return PB_WIRE_64;
    case PB_STRING:
    case PB_BYTES:
    case PB_MESSAGE: return PB_WIRE_BYTES;
    default: return PB_WIRE_VARINT;
    }
}

static char *put_fixed(char *at, uint64_t bits, size_t size) {
    for (size_t i = 0; i < size; i++) *at++ = (char)(uint8_t)(bits >> (8 * i));
    return at;
}

static inline char *put_value(char *at, const struct pb_field *field, const char *place,
                              const size_t **lengths) {
    switch ((enum pb_kind)field->kind) {
    case PB_FIXED32:
    case PB_SFIXED32:
    case PB_FLOAT: return put_fixed(at, load_32(place), 4);
    case PB_FIXED64:
    case PB_SFIXED64:
    case PB_DOUBLE: return put_fixed(at, load_64(place), 8);
    case PB_STRING:
    case PB_BYTES: return pb_put_bytes(pb_put_varint(at, text_at(place)->len), *text_at(place));
    case PB_MESSAGE: {
        const char *message = sub_message(field, place);
        at = pb_put_varint(at, *(*lengths)++);
        return message ? put_message(at, field->sub, message, lengths) : at;
    }
    default: return pb_put_varint(at, varint_of((enum pb_kind)field->kind, place));
    }
}

static char *put_values(char *at, const struct pb_field *field, const char *message,
                        const size_t **lengths) {
    struct values values = values_of(field, message);
    if (values.count == 0) return at;

    bool packed = field->label == PB_PACKED;
    if (packed) at = pb_put_head(at, field->number, *(*lengths)++);
    for (size_t i = 0; i < values.count; i++) {
        if (!packed) at = pb_put_tag(at, field->number, wire_of((enum pb_kind)field->kind));
        at = put_value(at, field, values.at + i * values.size, lengths);
    }
    return at;
}

static char *put_message(char *at, const struct pb_message *type, const char *message,
                         const size_t **lengths) {
    const struct pb_field *end = type->fields + type->field_count;
    for (const struct pb_field *field = type->fields; field < end; field++) {
        if (field->label >= PB_REPEATED) {
            at = put_values(at, field, message, lengths);
        } else if (is_present(field, message)) {
            at = pb_put_tag(at, field->number, wire_of((enum pb_kind)field->kind));
            at = put_value(at, field, message + field->at, lengths);
        }
    }
    return at;
}
