/* jwt: read a signed JSON Web Token, and the public keys of its issuer. The signature itself is
 * checked elsewhere (tls/public_key.h).
 *
 *     base64url(header) "." base64url(claims) "." base64url(signature)
 *
 * Only what an issuer of ours sends is accepted: RS256 or ES256, with a key id, a subject, an
 * audience, an expiry and a time of issue. `none` and the HMAC algorithms are refused here, so
 * that no public key is ever used as a secret. A token with a member twice, or with `crit`, is
 * refused.
 *
 * Memory   texts are views of the token or memory of the arena.
 * Threads  none; values only.
 * Source   RFC 7515, 7517, 7519, 7518 3.1 and 6, 8725 (best practice); contracts/nimi.md 5.1
 *          "authorization"; NIST SP 800-131A for the sizes of keys.
 */
#ifndef WEIR_WIRE_JWT_H
#define WEIR_WIRE_JWT_H

#include "wire/json.h"

#define JWT_MAX_BYTES ((size_t)16 * 1024)
#define JWT_ARENA_BYTES (4 * JWT_MAX_BYTES) /* enough for any token */
#define JWT_ID_MAX_BYTES 256                /* of a key id and a subject */

enum jwt_algorithm { JWT_RS256, JWT_ES256 };

struct jwt {
    enum jwt_algorithm algorithm;
    struct str key_id;
    struct str signed_text; /* what the signature is over */
    struct str signature;
    struct str issuer, subject;
    struct str scope;                          /* words with a space between; may be empty */
    struct json audience;                      /* a string, or an array of them */
    int64_t expires_s, issued_s, not_before_s; /* Unix; not_before_s is issued_s if absent */
};

/* Read a token. Nothing in it has been proven yet.
 * errors  ERR_MALFORMED what is wrong with it, never with a part of the token */
MUST_CHECK bool jwt_read(struct str token, struct arena *arena, struct jwt *ret, struct err *e);

/* Whether the audience names `audience`. */
bool jwt_is_for(const struct jwt *jwt, struct str audience);

/* Whether it is valid at this time, for clocks that differ by up to `skew_s`.
 * errors  ERR_UNAUTHENTICATED expired, not valid yet, or issued in the future */
MUST_CHECK bool jwt_check_time(const struct jwt *jwt, int64_t now_s, int64_t skew_s,
                               struct err *e);

/* --- a JSON Web Key Set: the public keys of an issuer ---------------------------------------
 *
 * Keys that cannot check an RS256 or ES256 signature are passed over: other types and curves,
 * keys for encryption, keys for another algorithm. So are keys that are too weak: RSA below 2,048
 * bits, or with an exponent that is even or below 3; and RSA above 8,192 bits, which costs too
 * much. */

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
