/* digest: SHA-256 of a text, of several, and as hexadecimal digits.
 *
 * Memory   none.
 * Threads  any.
 * Source   FIPS 180-4.
 */
#ifndef WEIR_WIRE_DIGEST_H
#define WEIR_WIRE_DIGEST_H

#include "base/str.h"

#include <stdint.h>

#define DIGEST_BYTES 32
#define DIGEST_DIGITS ((size_t)2 * DIGEST_BYTES)

void digest_text(struct str text, uint8_t ret[DIGEST_BYTES]);

/* Each part is hashed with its length, so that "ab", "c" differs from "a", "bc". */
void digest_parts(const struct str *parts, size_t count, uint8_t ret[DIGEST_BYTES]);

/* Write the first `count` of the DIGEST_DIGITS digits, without a NUL. */
void digest_digits(const uint8_t digest[DIGEST_BYTES], size_t count, char *ret);

#endif
