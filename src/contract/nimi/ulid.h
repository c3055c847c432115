/* ulid: ids that sort by the time they were made, as 26 letters and digits.
 *
 * Threads  any.
 * Source   github.com/ulid/spec: 48 bits of milliseconds, 80 random bits, Crockford's base 32.
 */
#ifndef WEIR_CONTRACT_NIMI_ULID_H
#define WEIR_CONTRACT_NIMI_ULID_H

#include "base/str.h"

#define ULID_LEN 26

/* Fill `ret`, which ends in NUL, with a new one. */
void ulid_new(char ret[static ULID_LEN + 1]);

#endif
