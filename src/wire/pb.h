/* pb: protobuf messages as plain C structs.
 *
 * tools/pbgen turns .proto files into structs and, beside each, a table of its fields. The
 * functions here walk any such table. A struct holds:
 *
 *     string, bytes      struct str
 *     numbers, bool      the C type of that name; an enum is an int32_t
 *     optional x         x and `bool has_x`
 *     message x          a pointer, NULL when absent
 *     repeated x         a pointer to x_count adjacent values (messages too)
 *     map<K, V> x        like repeated x, of a struct with `key` and `value`
 *     oneof x            int32_t which_x, the field number or 0, and a union of the members
 *
 * A struct that is all zero is the empty message, so callers write compound literals.
 *
 * Decoding follows proto3: fields come in any order, the last value of a scalar wins, a
 * message given twice is merged, repeated numbers may be packed or not, unknown fields are
 * skipped, and a known field with another wire type is unknown. It refuses what Google's own
 * parser refuses, and field number 0 everywhere. Unknown fields are not kept. As in Google's
 * parser, a map entry that holds one is dropped as a whole.
 *
 * Memory   everything a decoded struct points to is in the arena: a peer's bytes are copied
 *          there once, whole, and decoded text is a view of that copy. Only
 *          pb_decode_view() borrows its bytes.
 * Threads  any; tables are constant, values belong to the caller.
 * Source   protobuf.dev, "Encoding" and "Language Guide (proto 3)". */
#ifndef WEIR_WIRE_PB_H
#define WEIR_WIRE_PB_H

#include "base/buf.h"
#include "base/err.h"
#include "base/lent.h"

#define PB_DEPTH_MAX 100 /* nested messages and groups, as in Google's parsers */

enum pb_kind {
    PB_BOOL,
    PB_INT32,
    PB_INT64,
    PB_UINT32,
    PB_UINT64,
    PB_SINT32,
    PB_SINT64,
    PB_ENUM,
    PB_FIXED32,
    PB_SFIXED32,
    PB_FLOAT,
    PB_FIXED64,
    PB_SFIXED64,
    PB_DOUBLE,
    PB_STRING, /* valid UTF-8, checked when decoding */
    PB_BYTES,
    PB_MESSAGE,
    PB_KIND_COUNT,
};

/* How a field shows its presence, and therefore what `mark` points to. */
enum pb_label {
    PB_IMPLICIT, /* present when not zero; a message: when not NULL. No mark */
    PB_OPTIONAL, /* mark: bool has_x */
    PB_ONEOF,    /* mark: int32_t which_x */
    PB_REPEATED, /* mark: size_t x_count */
    PB_PACKED,   /* like PB_REPEATED; written as one length-delimited run */
};

struct pb_field {
    uint32_t number;
    uint8_t kind;  /* enum pb_kind */
    uint8_t label; /* enum pb_label */
    uint16_t at;   /* offset of the value */
    uint16_t mark; /* offset of the member that the label names */
    const struct pb_message *sub;
    const char *name;
};

struct pb_message {
    const char *name;              /* "crawbl.agentruntime.v1.Turn" */
    const struct pb_field *fields; /* in order of their numbers */
    uint16_t field_count;
    uint16_t dense; /* the first `dense` fields have the numbers 1, 2, 3 ... */
    uint16_t size;  /* sizeof the struct */
    bool map_entry; /* one `key` and `value` of a map */
};

/* Read one message of type `type`. The arena holds a copy of the bytes and the decoded values.
 * ret      a struct of that type; empty (all zero) after a failure
 * errors   ERR_MALFORMED not such a message; ERR_TOO_LARGE the arena's limit was reached */
MUST_CHECK bool pb_decode(const struct pb_message *type, struct lent bytes, struct arena *arena,
                          void *ret, struct err *e);

/* The same without a copy: decoded text is a view of `bytes`, which must outlive the result. */
MUST_CHECK bool pb_decode_view(const struct pb_message *type, struct str bytes,
                               struct arena *arena, void *ret, struct err *e);

/* Number of bytes that pb_encode() will append. */
size_t pb_encoded_len(const struct pb_message *type, const void *message);

/* Append the encoding: fields in order of their numbers, defaults left out, so equal structs
 * have equal bytes. Text is copied unchecked: strings must be valid UTF-8. Messages must form a
 * tree. False, and nothing appended, at the buffer's limit. */
bool pb_encode(const struct pb_message *type, const void *message, struct buf *out);

/* Append it as field `number` of another message: tag, length and the encoding. */
bool pb_encode_member(uint32_t number, const struct pb_message *type, const void *message,
                      struct buf *out);

/* --- for projections written by hand ----------------------------------------------------
 *
 * Add up the lengths, take the room once, then put. Each pb_put_ returns the next position. */

enum pb_wire {
    PB_WIRE_VARINT = 0,
    PB_WIRE_64 = 1,
    PB_WIRE_BYTES = 2,
    PB_WIRE_GROUP = 3,
    PB_WIRE_GROUP_END = 4,
    PB_WIRE_32 = 5,
};

/* By enum pb_kind. */
struct pb_kind_facts {
    uint8_t wire; /* enum pb_wire of one value */
    uint8_t size; /* bytes of one value in its struct; 0: the sub-message's size */
};
extern const struct pb_kind_facts pb_kinds[PB_KIND_COUNT];

static inline size_t pb_varint_len(uint64_t value) {
    /* One byte per 7 bits, rounded up: bits * 9 / 64 computes that without a division. */
    unsigned bits = 64 - (unsigned)__builtin_clzll(value | 1);
    return (bits * 9 + 64) / 64;
}

static inline size_t pb_tag_len(uint32_t number) {
    return pb_varint_len((uint64_t)number << 3);
}

/* A length-delimited field that holds `len` bytes. */
static inline size_t pb_bytes_len(uint32_t number, size_t len) {
    return pb_tag_len(number) + pb_varint_len(len) + len;
}

/* A string or bytes field without presence: nothing when empty. */
static inline size_t pb_str_len(uint32_t number, struct str s) {
    return s.len ? pb_bytes_len(number, s.len) : 0;
}

/* An int32, int64, enum or bool field without presence (cast to int64_t): nothing when 0. */
static inline size_t pb_int_len(uint32_t number, int64_t value) {
    return value ? pb_tag_len(number) + pb_varint_len((uint64_t)value) : 0;
}

static inline char *pb_put_varint(char *at, uint64_t value) {
    while (value >= 0x80) {
        *at++ = (char)(unsigned char)(value | 0x80);
        value >>= 7;
    }
    *at++ = (char)value;
    return at;
}

static inline char *pb_put_tag(char *at, uint32_t number, enum pb_wire wire) {
    return pb_put_varint(at, (uint64_t)number << 3 | wire);
}

/* Tag and length of a length-delimited field; its `len` bytes come next. */
static inline char *pb_put_head(char *at, uint32_t number, size_t len) {
    return pb_put_varint(pb_put_tag(at, number, PB_WIRE_BYTES), len);
}

static inline char *pb_put_bytes(char *at, struct str bytes) {
    if (bytes.len) memcpy(at, bytes.at, bytes.len);
    return at + bytes.len;
}

static inline char *pb_put_str(char *at, uint32_t number, struct str s) {
    return s.len ? pb_put_bytes(pb_put_head(at, number, s.len), s) : at;
}

static inline char *pb_put_int(char *at, uint32_t number, int64_t value) {
    if (!value) return at;
    return pb_put_varint(pb_put_tag(at, number, PB_WIRE_VARINT), (uint64_t)value);
}

/* The same, at the end of a buffer. */
static inline void pb_append_str(struct buf *out, uint32_t number, struct str s) {
    size_t len = pb_str_len(number, s);
    char *at = buf_room(out, len);
    if (!at || len == 0) return;
    pb_put_str(at, number, s);
    buf_grew(out, len);
}

static inline void pb_append_int(struct buf *out, uint32_t number, int64_t value) {
    size_t len = pb_int_len(number, value);
    char *at = buf_room(out, len);
    if (!at || len == 0) return;
    pb_put_int(at, number, value);
    buf_grew(out, len);
}

#endif
