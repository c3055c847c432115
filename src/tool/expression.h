/* expression: evaluate an arithmetic expression.
 *
 *     expression   sum
 *     sum          product (("+" | "-") product)*
 *     product      signed (("*" | "/" | "%") signed)*
 *     signed       ("-" | "+") signed | power
 *     power        atom ("^" signed)?                      2^3^2 is 2^9, -2^2 is -4
 *     atom         number | name | name "(" sum ("," sum)* ")" | "(" sum ")"
 *
 * Names: pi e; sqrt abs round floor ceil ln log log10 exp sin cos tan (radians), min max (any
 * number of values). log is the one with base 10.
 *
 * Decimals are exact up to 18 digits: 0.1 + 0.2 is 0.3, and 2^53 + 1 ends in a 3. Other values
 * (1/3, sqrt(2)) continue as doubles. The decimal separator is always a point, whatever the
 * locale.
 *
 * Memory   none beyond the stack, whose depth is bounded.
 * Threads  any.
 */
#ifndef WEIR_TOOL_EXPRESSION_H
#define WEIR_TOOL_EXPRESSION_H

#include "base/buf.h"
#include "base/err.h"

#define EXPRESSION_MAX_BYTES (4 * KIB)
#define EXPRESSION_DEPTH_MAX 100 /* parentheses, signs and powers inside each other */

/* Append the value of `text` as a JSON number that reads back as the same value.
 * errors  ERR_INVALID_ARGUMENT "column 5: ..." (counted in characters, from 1);
 *         ERR_OUT_OF_RANGE the same, when the value is not finite;
 *         ERR_TOO_LARGE the text is longer than EXPRESSION_MAX_BYTES */
MUST_CHECK bool expression_evaluate(struct str text, struct buf *out, struct err *e);

#endif
