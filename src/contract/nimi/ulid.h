/* ulid: ids of 26 letters and digits that sort by creation time.
 *
 * Threads  any.
 * Source   github.com/ulid/spec: 48 bits of milliseconds, 80 random bits, Crockford's base 32.
 */
#ifndef WEIR_CONTRACT_NIMI_ULID_H
#define WEIR_CONTRACT_NIMI_ULID_H

#include "base/str.h"

#define ULID_LEN 26

/* Write a new id, ending in NUL. */
void ulid_new(char ret[static ULID_LEN + 1]);

/* The same for something that was made at `unix_ms` and has a number here. Of the 80 bits, 64
 * hold the number and 16 are random, so no table is needed to map ids to numbers. The number
 * alone proves nothing: compare an id from a caller with the stored one. */
void ulid_new_numbered(char ret[static ULID_LEN + 1], int64_t unix_ms, uint64_t number);

/* Read the number in an id. False: it is not a ULID. */
bool ulid_number(struct str ulid, uint64_t *ret);

#endif
