/* decimal: arithmetic that is exact where possible.
 *
 * A number is digits / 10^scale with at most 18 digits, as long as every step of its
 * computation was exact. Otherwise it is the nearest double. A step between two exact numbers
 * whose result needs more digits is computed with doubles.
 *
 * Memory   plain values.
 * Threads  any.
 */
#ifndef WEIR_TOOL_DECIMAL_H
#define WEIR_TOOL_DECIMAL_H

#include "base/buf.h"

struct decimal {
    bool exact;
    int64_t digits; /* exact: no zero at its end unless scale is 0 */
    unsigned scale; /* 0 to 18 */
    double real;    /* the nearest double, always */
};

/* Exact when it is a whole number below 2^53. */
struct decimal decimal_of(double real);

/* "12", "0.5", ".5", "1e-3": digits with at most one point, then maybe an exponent. */
MUST_CHECK bool decimal_read(struct str text, struct decimal *ret);

/* As a JSON number. The value must be finite. */
bool decimal_put(struct buf *out, struct decimal value);

struct decimal decimal_add(struct decimal a, struct decimal b);
struct decimal decimal_subtract(struct decimal a, struct decimal b);
struct decimal decimal_multiply(struct decimal a, struct decimal b);
struct decimal decimal_divide(struct decimal a, struct decimal b);
struct decimal decimal_remainder(struct decimal a, struct decimal b); /* has the sign of `a` */
struct decimal decimal_power(struct decimal base, struct decimal exponent);
struct decimal decimal_negate(struct decimal a);

/* The nearest whole number in a direction: `round` takes halves away from zero. */
struct decimal decimal_floor(struct decimal a);
struct decimal decimal_ceil(struct decimal a);
struct decimal decimal_round(struct decimal a);

/* -1, 0 or 1. */
int decimal_compare(struct decimal a, struct decimal b);

#endif
