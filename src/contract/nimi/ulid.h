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

/* The same for something that was made at `unix_ms` and has a number here: of the 80 bits, 64
 * are the number and 16 are random, so no table has to say which id has which number. Whoever
 * is handed an id compares it with the one that was kept. */
void ulid_new_numbered(char ret[static ULID_LEN + 1], int64_t unix_ms, uint64_t number);

/* The number in it; false: that is no ULID. */
bool ulid_number(struct str ulid, uint64_t *ret);

#endif
