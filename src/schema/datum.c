#include "schema/datum.h"

#include <assert.h>
#include <stdlib.h>

size_t datum_bytes(size_t len) {
    /* The smallest member (`"":0` and a comma) is five bytes, the smallest item two. Alignment
     * may cost some bytes per array. Unescaped strings and digits are no longer than their
     * source. */
    return 4 * KIB + len * (sizeof(struct datum) + 16);
}

/* ---- Numbers ---- */

static size_t find_exponent(struct str text) {
    size_t at = 0;
    while (at < text.len && text.at[at] != 'e' && text.at[at] != 'E') at++;
    return at;
}

/* The digits of `mantissa` without the point; a view when it has none. */
static bool join_digits(struct str mantissa, struct arena *arena, struct str *ret) {
    size_t point = str_find_byte(mantissa, '.');
    if (point == mantissa.len) {
        *ret = mantissa;
        return true;
    }
    char *joined = arena_alloc(arena, mantissa.len);
    if (!joined) return false;
    struct str fraction = str_skip(mantissa, point + 1);
    memcpy(joined, mantissa.at, point);
    memcpy(joined + point, fraction.at, fraction.len);
    *ret = str_of(joined, point + fraction.len);
    return true;
}

static bool datum_read_number(struct str raw, struct arena *arena, struct datum *ret) {
    bool negative = raw.at[0] == '-';
    struct str rest = str_skip(raw, negative ? 1 : 0);
    size_t mantissa_len = find_exponent(rest);
    struct str mantissa = str_head(rest, mantissa_len), digits;
    if (!join_digits(mantissa, arena, &digits)) return false;

    int64_t exponent = json_exponent(str_skip(rest, mantissa_len + 1));
    if (digits.len < mantissa.len)
        exponent -= (int64_t)(mantissa.len - 1 - str_find_byte(mantissa, '.'));
    while (digits.len && digits.at[0] == '0') digits = str_skip(digits, 1);
    for (; digits.len && digits.at[digits.len - 1] == '0'; digits.len--) exponent++;
    ret->digits = digits;
    ret->negative = negative && digits.len;
    ret->exponent = digits.len ? exponent : 0;
    return true;
}

static int by_size(const struct datum *a, const struct datum *b) {
    int64_t a_places = (int64_t)a->digits.len + a->exponent;
    int64_t b_places = (int64_t)b->digits.len + b->exponent;
    if (a_places != b_places) return a_places < b_places ? -1 : 1;
    return str_compare(a->digits, b->digits);
}

static int compare_numbers(const struct datum *a, const struct datum *b) {
    if (a->negative != b->negative) return a->negative ? -1 : 1;
    if (!a->digits.len || !b->digits.len) return (a->digits.len > 0) - (b->digits.len > 0);
    return a->negative ? by_size(b, a) : by_size(a, b);
}

bool datum_is_integer(const struct datum *number) {
    return number->kind == JSON_NUMBER && number->exponent >= 0;
}

static uint64_t times(uint64_t a, uint64_t b, uint64_t modulus) {
    return (uint64_t)((unsigned __int128)a * b % modulus);
}

static uint64_t power_of_ten(uint64_t exponent, uint64_t modulus) {
    uint64_t result = 1 % modulus, base = 10 % modulus;
    for (; exponent; exponent >>= 1) {
        if (exponent & 1) result = times(result, base, modulus);
        base = times(base, base, modulus);
    }
    return result;
}

bool datum_is_multiple(const struct datum *number, const struct datum *divisor) {
    assert(divisor->digits.len && divisor->digits.len <= DATUM_DIVISOR_DIGITS);
    uint64_t modulus = 0, left = 0;
    for (size_t i = 0; i < divisor->digits.len; i++)
        modulus = modulus * 10 + (uint64_t)(divisor->digits.at[i] - '0');
    if (number->digits.len == 0) return true;
    /* The digits do not end in zero, so they contain no power of ten to make up the
     * difference. */
    if (number->exponent < divisor->exponent) return false;

    for (size_t i = 0; i < number->digits.len; i++)
        left = (times(left, 10, modulus) + (uint64_t)(number->digits.at[i] - '0')) % modulus;
    uint64_t places = (uint64_t)(number->exponent - divisor->exponent);
    return times(left, power_of_ten(places, modulus), modulus) == 0;
}

/* ---- Reading ---- */

static bool read_items(struct json array, struct arena *arena, struct datum *ret) {
    size_t count = json_count(array);
    struct datum *items = arena_alloc(arena, count * sizeof(*items));
    if (!items) return false;
    struct json_reader reader = json_enter(array);
    struct json item;
    for (size_t i = 0; json_next_item(&reader, &item); i++) {
        if (!datum_read(item, arena, &items[i])) return false;
    }
    ret->items = items;
    ret->count = count;
    return true;
}

/* Order by name; members with the same name keep their order in the text. */
static int by_name(const void *a, const void *b) {
    const struct datum_member *x = a, *y = b;
    int order = str_compare(x->name, y->name);
    if (order) return order;
    return x->value.raw.at < y->value.raw.at ? -1 : x->value.raw.at > y->value.raw.at;
}

static size_t keep_last_of_each(struct datum_member *members, size_t count) {
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        bool again = kept && str_equal(members[kept - 1].name, members[i].name);
        members[again ? kept - 1 : kept++] = members[i];
    }
    return kept;
}

static bool read_members(struct json object, struct arena *arena, struct datum *ret) {
    size_t count = json_count(object);
    struct datum_member *members = arena_alloc(arena, count * sizeof(*members));
    if (!members) return false;
    struct json_reader reader = json_enter(object);
    struct json key, value;
    for (size_t i = 0; json_next_member(&reader, &key, &value); i++) {
        if (!json_str(key, arena, &members[i].name)) return false;
        if (!datum_read(value, arena, &members[i].value)) return false;
    }
    if (count) qsort(members, count, sizeof(*members), by_name);
    ret->members = members;
    ret->count = keep_last_of_each(members, count);
    return true;
}

bool datum_read(struct json value, struct arena *arena, struct datum *ret) {
    *ret = (struct datum){.kind = value.kind, .raw = value.raw};
    switch (value.kind) {
    case JSON_OBJECT: return read_members(value, arena, ret);
    case JSON_ARRAY: return read_items(value, arena, ret);
    case JSON_STRING: return json_str(value, arena, &ret->text);
    case JSON_NUMBER: return datum_read_number(value.raw, arena, ret);
    case JSON_NONE:
    case JSON_TRUE:
    case JSON_FALSE:
    case JSON_NULL: break;
    }
    return true;
}

/* ---- Comparing ---- */

static int compare_items(const struct datum *a, const struct datum *b) {
    for (size_t i = 0; i < a->count && i < b->count; i++) {
        int order = datum_compare(&a->items[i], &b->items[i]);
        if (order) return order;
    }
    return (a->count > b->count) - (a->count < b->count);
}

static int compare_members(const struct datum *a, const struct datum *b) {
    for (size_t i = 0; i < a->count && i < b->count; i++) {
        int order = str_compare(a->members[i].name, b->members[i].name);
        if (!order) order = datum_compare(&a->members[i].value, &b->members[i].value);
        if (order) return order;
    }
    return (a->count > b->count) - (a->count < b->count);
}

int datum_compare(const struct datum *a, const struct datum *b) {
    if (a->kind != b->kind) return a->kind < b->kind ? -1 : 1;
    switch (a->kind) {
    case JSON_OBJECT: return compare_members(a, b);
    case JSON_ARRAY: return compare_items(a, b);
    case JSON_STRING: return str_compare(a->text, b->text);
    case JSON_NUMBER: return compare_numbers(a, b);
    case JSON_NONE:
    case JSON_TRUE:
    case JSON_FALSE:
    case JSON_NULL: break;
    }
    return 0;
}

const struct datum *datum_find(const struct datum *object, struct str name, size_t *ret_index) {
    size_t low = 0, high = object->kind == JSON_OBJECT ? object->count : 0;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = str_compare(object->members[middle].name, name);
        if (order == 0) {
            if (ret_index) *ret_index = middle;
            return &object->members[middle].value;
        }
        if (order < 0) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    return NULL;
}
