/* random_token: secrets that callers are given, of 32 random bytes.
 *
 * Who gives one out keeps only its digest.
 *
 * Memory   plain values.
 * Threads  any.
 */
#ifndef WEIR_CONTRACT_NIMI_RANDOM_TOKEN_H
#define WEIR_CONTRACT_NIMI_RANDOM_TOKEN_H

#include "base/str.h"

#define RANDOM_TOKEN_BYTES 43 /* as base64url */
#define RANDOM_TOKEN_DIGEST_BYTES 32

/* A new one, ending in NUL. */
void random_token_new(char ret[static RANDOM_TOKEN_BYTES + 1]);

/* SHA-256 of any token. */
void random_token_digest(struct str token, uint8_t ret[static RANDOM_TOKEN_DIGEST_BYTES]);

#endif
