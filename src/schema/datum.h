/* datum: a JSON value in a normalised form, for comparison.
 *
 * A struct json is a slice of text, and the same value has many spellings: members in any
 * order and more than once, escapes, 1 and 1.0 and 10e-1. Here strings are unescaped, members
 * are sorted with the last of each name kept, and numbers are digits and a power of ten, so
 * equal values compare equal and none is rounded.
 *
 * Memory   lives in the arena given and borrows the text of the value.
 * Threads  none; read-only once read.
 * Source   RFC 8259; JSON Schema 2020-12 core 4.2.2 for equality.
 */
#ifndef WEIR_SCHEMA_DATUM_H
#define WEIR_SCHEMA_DATUM_H

#include "wire/json.h"

struct datum_member;

struct datum {
    enum json_kind kind;
    bool negative;    /* a number below zero */
    struct str raw;   /* its source text */
    int64_t exponent; /* a number is its digits times ten to this */
    union {
        struct str text;   /* of a string */
        struct str digits; /* of a number: no zeros at either end; empty is zero */
        struct {
            union {
                struct datum *items;
                struct datum_member *members; /* sorted by name, each name once */
            };
            size_t count;
        };
    };
};

struct datum_member {
    struct str name;
    struct datum value;
};

/* An upper bound of the arena memory needed for a text of `len` bytes. */
size_t datum_bytes(size_t len);

/* Open `value`. False at the limit of the arena. */
MUST_CHECK bool datum_read(struct json value, struct arena *arena, struct datum *ret);

/* The member of an object, or NULL; for any other kind NULL. *ret_index (may be NULL) is its
 * place among the members. */
const struct datum *datum_find(const struct datum *object, struct str name, size_t *ret_index);

/* -1, 0 or 1: a total order in which only equal values give 0. Numbers compare by value;
 * exponents beyond 10^15 are all treated alike. */
int datum_compare(const struct datum *a, const struct datum *b);

/* Whether a number has no fraction: 1, 1.0, 1e3. */
bool datum_is_integer(const struct datum *number);

/* Digits that a divisor may have. */
#define DATUM_DIVISOR_DIGITS 18

/* Whether `number` is a whole multiple of `divisor`: above zero, no more digits than above. */
bool datum_is_multiple(const struct datum *number, const struct datum *divisor);

#endif
