/* expression: what an arithmetic expression comes to.
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
 * Decimals are counted exactly as long as they have at most 18 digits: 0.1 + 0.2 is 0.3, and
 * 2^53 + 1 ends in a 3. What has no such end (1/3, sqrt(2)) goes on as a double. The point is
 * always a point, whatever the machine's language.
 *
 * Memory   none beyond the stack, whose depth is bounded.
 * Threads  any.
 */
#ifndef WEIR_WIRE_EXPRESSION_H
#define WEIR_WIRE_EXPRESSION_H

#include "base/buf.h"
#include "base/err.h"

#define EXPRESSION_MAX_BYTES (4 * KIB)
#define EXPRESSION_DEPTH_MAX 100 /* parentheses, signs and powers inside each other */

/* Append what `text` comes to, as a JSON number that reads back as the same value.
 * errors  ERR_INVALID_ARGUMENT "column 5: ..." (counted in characters, from 1);
 *         ERR_OUT_OF_RANGE the same, where the value is no finite number;
 *         ERR_TOO_LARGE the text is longer than EXPRESSION_MAX_BYTES */
MUST_CHECK bool expression_evaluate(struct str text, struct buf *out, struct err *e);

#endif
