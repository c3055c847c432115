#include "tool/decimal.h"

#include "wire/json.h"

#include <math.h>

#define DIGITS_MAX 18                             /* 10^18 fits an int64_t */
#define DIGITS_LIMIT INT64_C(1000000000000000000) /* below this, both ways */
#define TEXT_MAX_BYTES ((size_t)512)              /* of a number to parse */
#define POWER_STEPS_MAX 4096 /* of an exact power; more need too many digits */

__extension__ typedef __int128 wide; /* holds the product of two numbers of 18 digits */

static wide ten_to(unsigned exponent) {
    wide ten = 1;
    while (exponent-- > 0) ten *= 10;
    return ten;
}

/* Above this, a double cannot represent every whole number. */
#define WHOLE_LIMIT 9007199254740992.0 /* 2^53 */

struct decimal decimal_of(double real) {
    if (real > -WHOLE_LIMIT && real < WHOLE_LIMIT && trunc(real) == real) {
        int64_t whole = (int64_t)real;
        return (struct decimal){.exact = true, .digits = whole, .real = (double)whole};
    }
    return (struct decimal){.real = real};
}

/* Exact if it fits without trailing zeros, else a double. */
static bool make_exact(wide digits, unsigned scale, struct decimal *ret) {
    while (scale > 0 && digits % 10 == 0) {
        digits /= 10;
        scale--;
    }
    if (scale > DIGITS_MAX || digits >= DIGITS_LIMIT || digits <= -(wide)DIGITS_LIMIT)
        return false;
    *ret = (struct decimal){.exact = true, .digits = (int64_t)digits, .scale = scale};

    /* Converting two rounded parts would round twice, so let strtod() round once. */
    struct buf text;
    char spelled[48];
    buf_init(&text, sizeof spelled);
    buf_append_i64(&text, ret->digits);
    buf_printf(&text, "e-%u", scale);
    struct json number = {JSON_NUMBER, buf_str(&text)};
    bool read = json_double(number, &ret->real);
    buf_done(&text);
    return read;
}

/* ---- Text ---- */

static bool digits_of(struct str text, size_t *at, wide *digits, size_t *count, bool *fits) {
    size_t began = *at;
    for (; *at < text.len && text.at[*at] >= '0' && text.at[*at] <= '9'; (*at)++) {
        *digits = *digits * 10 + (text.at[*at] - '0');
        if (*digits >= (wide)DIGITS_LIMIT * DIGITS_LIMIT / 10) *fits = false;
        if (!*fits) *digits = 0; /* the double is used instead */
    }
    *count = *at - began;
    return *count > 0;
}

/* The exponent in "1e-3", which begins at `text`; 0 without one. */
static bool exponent_of(struct str text, int64_t *ret) {
    *ret = 0;
    if (text.len == 0) return true;
    if (text.at[0] != 'e' && text.at[0] != 'E') return false;
    return text.len < 8 && str_to_i64(str_skip(text, 1), ret);
}

static bool read_double(struct str text, bool whole_missing, struct decimal *ret) {
    struct buf json;
    buf_init(&json, TEXT_MAX_BYTES + 8);
    if (whole_missing) buf_append_byte(&json, '0');
    buf_append(&json, text);
    struct json number = {JSON_NUMBER, buf_str(&json)};
    double real;
    bool read = json_double(number, &real);
    buf_done(&json);
    if (read) *ret = decimal_of(real);
    return read;
}

bool decimal_read(struct str text, struct decimal *ret) {
    wide digits = 0;
    size_t at = 0, whole = 0, fraction = 0;
    bool fits = true;
    int64_t exponent;

    if (text.len == 0 || text.len > TEXT_MAX_BYTES) return false;
    digits_of(text, &at, &digits, &whole, &fits);
    if (at < text.len && text.at[at] == '.') {
        at++;
        if (!digits_of(text, &at, &digits, &fraction, &fits)) return false;
    }
    if (whole + fraction == 0 || !exponent_of(str_skip(text, at), &exponent)) return false;

    int64_t scale = (int64_t)fraction - exponent;
    if (fits && scale < 0 && scale >= -DIGITS_MAX && digits < DIGITS_LIMIT) {
        digits *= ten_to((unsigned)-scale);
        scale = 0;
    }
    if (fits && scale >= 0 && scale <= (int64_t)TEXT_MAX_BYTES &&
        make_exact(digits, (unsigned)scale, ret))
        return true;
    return read_double(text, whole == 0, ret);
}

bool decimal_put(struct buf *out, struct decimal value) {
    if (!value.exact) return json_put_double(out, value.real);
    if (value.digits < 0) buf_append_byte(out, '-');
    wide digits = value.digits < 0 ? -(wide)value.digits : value.digits;
    wide one = ten_to(value.scale);
    buf_append_u64(out, (uint64_t)(digits / one));
    if (value.scale > 0)
        buf_printf(out, ".%0*llu", (int)value.scale, (unsigned long long)(digits % one));
    return buf_ok(out);
}

/* ---- Steps ---- */

/* Bring both to the same scale. False: one is a double. */
static bool align(struct decimal a, struct decimal b, wide *left, wide *right,
                  unsigned *scale) {
    if (!a.exact || !b.exact) return false;
    *scale = a.scale > b.scale ? a.scale : b.scale;
    *left = a.digits * ten_to(*scale - a.scale);
    *right = b.digits * ten_to(*scale - b.scale);
    return true;
}

struct decimal decimal_add(struct decimal a, struct decimal b) {
    struct decimal sum;
    unsigned scale;
    wide left, right;
    if (align(a, b, &left, &right, &scale) && make_exact(left + right, scale, &sum)) return sum;
    return decimal_of(a.real + b.real);
}

struct decimal decimal_negate(struct decimal a) {
    a.digits = -a.digits;
    a.real = a.exact && a.digits == 0 ? 0 : -a.real;
    return a;
}

struct decimal decimal_subtract(struct decimal a, struct decimal b) {
    return decimal_add(a, decimal_negate(b));
}

struct decimal decimal_multiply(struct decimal a, struct decimal b) {
    struct decimal product;
    if (a.exact && b.exact &&
        make_exact((wide)a.digits * b.digits, a.scale + b.scale, &product))
        return product;
    return decimal_of(a.real * b.real);
}

/* Long division, digit by digit, until there is no remainder. */
struct decimal decimal_divide(struct decimal a, struct decimal b) {
    unsigned scale;
    wide left, right;
    if (align(a, b, &left, &right, &scale) && right != 0) {
        wide quotient = left / right, rest = left % right;
        for (scale = 0; rest != 0 && scale < DIGITS_MAX; scale++) {
            wide next = quotient * 10 + rest * 10 / right;
            if (next >= DIGITS_LIMIT || next <= -(wide)DIGITS_LIMIT) break;
            quotient = next;
            rest = rest * 10 % right;
        }
        struct decimal exact;
        if (rest == 0 && make_exact(quotient, scale, &exact)) return exact;
    }
    return decimal_of(a.real / b.real);
}

struct decimal decimal_remainder(struct decimal a, struct decimal b) {
    struct decimal rest;
    unsigned scale;
    wide left, right;
    if (align(a, b, &left, &right, &scale) && right != 0 &&
        make_exact(left % right, scale, &rest))
        return rest;
    return decimal_of(fmod(a.real, b.real));
}

struct decimal decimal_power(struct decimal base, struct decimal exponent) {
    bool steps = base.exact && exponent.exact && exponent.scale == 0 && exponent.digits >= 0 &&
                 exponent.digits <= POWER_STEPS_MAX;
    struct decimal power = {.exact = true, .digits = 1, .real = 1};
    for (int64_t i = 0; steps && i < exponent.digits; i++) {
        power = decimal_multiply(power, base);
        steps = power.exact;
    }
    return steps ? power : decimal_of(pow(base.real, exponent.real));
}

static struct decimal to_whole(struct decimal a, double (*of_double)(double),
                               wide (*of_parts)(wide whole, wide rest, wide one)) {
    struct decimal whole;
    if (a.exact) {
        wide one = ten_to(a.scale);
        if (make_exact(of_parts(a.digits / one, a.digits % one, one), 0, &whole)) return whole;
    }
    return decimal_of(of_double(a.real));
}

static wide floor_parts(wide whole, wide rest, wide one) {
    (void)one;
    return rest < 0 ? whole - 1 : whole;
}

static wide ceil_parts(wide whole, wide rest, wide one) {
    (void)one;
    return rest > 0 ? whole + 1 : whole;
}

static wide round_parts(wide whole, wide rest, wide one) {
    if (2 * rest >= one) return whole + 1;
    return 2 * rest <= -one ? whole - 1 : whole;
}

struct decimal decimal_floor(struct decimal a) {
    return to_whole(a, floor, floor_parts);
}

struct decimal decimal_ceil(struct decimal a) {
    return to_whole(a, ceil, ceil_parts);
}

struct decimal decimal_round(struct decimal a) {
    return to_whole(a, round, round_parts);
}

int decimal_compare(struct decimal a, struct decimal b) {
    unsigned scale;
    wide left, right;
    if (align(a, b, &left, &right, &scale)) return (left > right) - (left < right);
    return (a.real > b.real) - (a.real < b.real);
}
