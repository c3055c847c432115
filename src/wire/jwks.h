/* jwks: read a JSON Web Key Set: the public keys of an issuer of tokens.
 *
 * Keys that cannot check an RS256 or ES256 signature are passed over: other types and curves,
 * keys for encryption, keys for another algorithm. So are keys that are too weak: RSA below 2,048
 * bits, or with an exponent that is even or below 3; and RSA above 8,192 bits, which costs too
 * much.
 *
 * Memory   texts are memory of the arena.
 * Threads  none; values only.
 * Source   RFC 7517, 7518 6.2 and 6.3; RFC 8725 3.5; NIST SP 800-131A for the sizes.
 */
#ifndef WEIR_WIRE_JWKS_H
#define WEIR_WIRE_JWKS_H

#include "wire/jwt.h"

#define JWKS_MAX_BYTES ((size_t)256 * 1024)
#define JWKS_ARENA_BYTES (4 * JWKS_MAX_BYTES)
#define JWKS_KEYS_MAX 64
#define JWKS_RSA_MIN_BITS 2048
#define JWKS_RSA_MAX_BITS 8192
#define JWKS_P256_BYTES 32

struct jwk {
    enum jwt_algorithm algorithm; /* the one it checks */
    struct str id;
    struct str modulus, exponent; /* RS256: big-endian, without leading zeros */
    struct str x, y;              /* ES256: JWKS_P256_BYTES each */
};

/* The usable keys, at most JWKS_KEYS_MAX. *ret_passed: how many were passed over.
 * errors  ERR_MALFORMED not a key set, or two usable keys have one id */
MUST_CHECK bool jwks_read(struct str text, struct arena *arena,
                          struct jwk ret[static JWKS_KEYS_MAX], size_t *ret_count,
                          size_t *ret_passed, struct err *e);

#endif
