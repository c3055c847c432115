#include "wire/pb.h"

#include "base/mem.h"

#include <assert.h>
#include <stdlib.h>

/* A length comes before the bytes it measures. So encoding first walks the message to make a
 * plan: each value to write becomes a step, in order, with its length. The second pass is a
 * plain loop over the steps. */
struct step {
    const struct pb_field *field;
    const char *place; /* the value; of a packed field, the first value */
    size_t len;        /* of a message, or of a packed run */
};

struct plan {
    struct step *steps;
    size_t count, room;
    struct step first[16]; /* enough for most messages without the heap */
};

static void plan_init(struct plan *plan) {
    plan->steps = plan->first;
    plan->count = 0;
    plan->room = ARRAY_LEN(plan->first);
}

static void plan_done(struct plan *plan) {
    if (plan->steps != plan->first) free(plan->steps);
}

static void plan_grow(struct plan *plan) {
    bool on_heap = plan->steps != plan->first;
    plan->room *= 2;
    plan->steps = mem_resize(on_heap ? plan->steps : NULL, plan->room * sizeof(*plan->steps));
    if (!on_heap) memcpy(plan->steps, plan->first, sizeof(plan->first));
}

/* Add a step and return its index; pointers to steps do not stay valid. */
static inline size_t plan_step(struct plan *plan, const struct pb_field *field,
                               const char *place) {
    if (plan->count == plan->room) plan_grow(plan);
    struct step *step = &plan->steps[plan->count];
    step->field = field;
    step->place = place;
    return plan->count++;
}

static size_t plan_message(struct plan *plan, const struct pb_message *type,
                           const char *message);
static char *carry_out(const struct plan *plan, char *at);

size_t pb_encoded_len(const struct pb_message *type, const void *message) {
    struct plan plan;
    plan_init(&plan);
    size_t len = plan_message(&plan, type, message);
    plan_done(&plan);
    return len;
}

/* `number`: the message is the value of this field of another one; 0: of none. */
static bool encode_as(uint32_t number, const struct pb_message *type, const void *message,
                      struct buf *out) {
    struct plan plan;
    plan_init(&plan);
    size_t len = plan_message(&plan, type, message);
    size_t head = number ? pb_tag_len(number) + pb_varint_len(len) : 0;
    char *room = buf_room(out, head + len);
    if (room) {
        if (number) pb_put_head(room, number, len);
        char *end = carry_out(&plan, room + head);
        assert(end == room + head + len);
        buf_grew(out, head + len);
    }
    plan_done(&plan);
    return room != NULL;
}

bool pb_encode(const struct pb_message *type, const void *message, struct buf *out) {
    return encode_as(0, type, message, out);
}

bool pb_encode_member(uint32_t number, const struct pb_message *type, const void *message,
                      struct buf *out) {
    return encode_as(number, type, message, out);
}

const struct pb_kind_facts pb_kinds[PB_KIND_COUNT] = {
    /* clang-format off */
    [PB_BOOL]     = {PB_WIRE_VARINT, sizeof(bool)},
    [PB_INT32]    = {PB_WIRE_VARINT, 4},
    [PB_INT64]    = {PB_WIRE_VARINT, 8},
    [PB_UINT32]   = {PB_WIRE_VARINT, 4},
    [PB_UINT64]   = {PB_WIRE_VARINT, 8},
    [PB_SINT32]   = {PB_WIRE_VARINT, 4},
    [PB_SINT64]   = {PB_WIRE_VARINT, 8},
    [PB_ENUM]     = {PB_WIRE_VARINT, 4},
    [PB_FIXED32]  = {PB_WIRE_32,     4},
    [PB_SFIXED32] = {PB_WIRE_32,     4},
    [PB_FLOAT]    = {PB_WIRE_32,     4},
    [PB_FIXED64]  = {PB_WIRE_64,     8},
    [PB_SFIXED64] = {PB_WIRE_64,     8},
    [PB_DOUBLE]   = {PB_WIRE_64,     8},
    [PB_STRING]   = {PB_WIRE_BYTES,  sizeof(struct str)},
    [PB_BYTES]    = {PB_WIRE_BYTES,  sizeof(struct str)},
    [PB_MESSAGE]  = {PB_WIRE_BYTES,  0},
    /* clang-format on */
};

/* --- reading the struct ------------------------------------------------------------------- */

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

/* The varint value of a number. */
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

/* -0.0 is not zero: its bits count, as in Google's encoder. */
static inline bool is_zero(enum pb_kind kind, const char *place) {
    if (kind == PB_STRING || kind == PB_BYTES) return text_at(place)->len == 0;
    if (kind == PB_MESSAGE) return load_pointer(place) == NULL;
    if (kind == PB_BOOL) return !*(const bool *)place;
    return pb_kinds[kind].size == 4 ? load_32(place) == 0 : load_64(place) == 0;
}

/* For a field that is not repeated. */
static inline bool is_present(const struct pb_field *field, const char *message) {
    switch ((enum pb_label)field->label) {
    case PB_OPTIONAL: return *(const bool *)(message + field->mark);
    case PB_ONEOF: return *(const int32_t *)(message + field->mark) == (int32_t)field->number;
    default: return !is_zero((enum pb_kind)field->kind, message + field->at);
    }
}

/* --- plan --------------------------------------------------------------------------------- */

/* Length of a value that is neither text nor a message. */
static inline size_t number_len(enum pb_kind kind, const char *place) {
    if (pb_kinds[kind].wire != PB_WIRE_VARINT) return pb_kinds[kind].size;
    return pb_varint_len(varint_of(kind, place));
}

/* `message` may be NULL: a oneof that selects a message but points nowhere has an empty one. */
static size_t plan_sub_message(struct plan *plan, const struct pb_field *field,
                               const char *message) {
    size_t step = plan_step(plan, field, message);
    size_t len = message ? plan_message(plan, field->sub, message) : 0;
    plan->steps[step].len = len;
    return pb_bytes_len(field->number, len);
}

static inline size_t plan_value(struct plan *plan, const struct pb_field *field,
                                const char *place) {
    plan_step(plan, field, place);
    if (field->kind == PB_STRING || field->kind == PB_BYTES)
        return pb_bytes_len(field->number, text_at(place)->len);
    return pb_tag_len(field->number) + number_len((enum pb_kind)field->kind, place);
}

static size_t plan_packed(struct plan *plan, const struct pb_field *field, const char *array,
                          size_t count) {
    size_t size = pb_kinds[field->kind].size, len = 0;
    for (size_t i = 0; i < count; i++)
        len += number_len((enum pb_kind)field->kind, array + i * size);
    size_t step = plan_step(plan, field, array);
    plan->steps[step].len = len;
    return pb_bytes_len(field->number, len);
}

static size_t plan_repeated(struct plan *plan, const struct pb_field *field,
                            const char *message) {
    const char *array = load_pointer(message + field->at);
    size_t count = *(const size_t *)(message + field->mark), len = 0;
    if (count == 0) return 0;
    if (field->label == PB_PACKED) return plan_packed(plan, field, array, count);
    for (size_t i = 0; i < count; i++)
        len += field->kind == PB_MESSAGE
                   ? plan_sub_message(plan, field, array + i * field->sub->size)
                   : plan_value(plan, field, array + i * pb_kinds[field->kind].size);
    return len;
}

static size_t plan_message(struct plan *plan, const struct pb_message *type,
                           const char *message) {
    size_t len = 0;
    const struct pb_field *end = type->fields + type->field_count;
    for (const struct pb_field *field = type->fields; field < end; field++) {
        if (field->label >= PB_REPEATED)
            len += plan_repeated(plan, field, message);
        else if (!is_present(field, message))
            continue;
        else if (field->kind == PB_MESSAGE)
            len += plan_sub_message(plan, field, load_pointer(message + field->at));
        else
            len += plan_value(plan, field, message + field->at);
    }
    return len;
}

/* --- carry out ---------------------------------------------------------------------------- */

static char *put_fixed(char *at, uint64_t bits, size_t size) {
    for (size_t i = 0; i < size; i++) *at++ = (char)(uint8_t)(bits >> (8 * i));
    return at;
}

static inline char *pb_encode_put_number(char *at, enum pb_kind kind, const char *place) {
    switch (pb_kinds[kind].wire) {
    case PB_WIRE_32: return put_fixed(at, load_32(place), 4);
    case PB_WIRE_64: return put_fixed(at, load_64(place), 8);
    default: return pb_put_varint(at, varint_of(kind, place));
    }
}

static char *put_packed(char *at, const struct step *step) {
    at = pb_put_head(at, step->field->number, step->len);
    const char *place = step->place;
    for (const char *end = at + step->len; at < end; place += pb_kinds[step->field->kind].size)
        at = pb_encode_put_number(at, (enum pb_kind)step->field->kind, place);
    return at;
}

static inline char *put_step(char *at, const struct step *step) {
    const struct pb_field *field = step->field;
    switch ((enum pb_kind)field->kind) {
    case PB_STRING:
    case PB_BYTES:
        at = pb_put_head(at, field->number, text_at(step->place)->len);
        return pb_put_bytes(at, *text_at(step->place));
    case PB_MESSAGE: return pb_put_head(at, field->number, step->len); /* its fields follow */
    default: break;
    }
    if (field->label == PB_PACKED) return put_packed(at, step);
    at = pb_put_tag(at, field->number, (enum pb_wire)pb_kinds[field->kind].wire);
    return pb_encode_put_number(at, (enum pb_kind)field->kind, step->place);
}

static char *carry_out(const struct plan *plan, char *at) {
    for (size_t i = 0; i < plan->count; i++) at = put_step(at, &plan->steps[i]);
    return at;
}
