/* public_key: check signatures with a public key, RS256 or ES256.
 *
 * Memory   public_key_rsa() and public_key_p256() give one key, which public_key_free() ends.
 * Threads  any; a key may be used by several at once. OpenSSL must be loaded before
 *          (public_key_need()), which blocks.
 * Source   RFC 8017 8.2.2 (PKCS #1 v1.5 with SHA-256); RFC 7518 3.4 (P-256 with SHA-256).
 */
#ifndef WEIR_TLS_PUBLIC_KEY_H
#define WEIR_TLS_PUBLIC_KEY_H

#include "base/err.h"

struct public_key;

/* Load OpenSSL.
 * errors  ERR_UNAVAILABLE it is not installed */
MUST_CHECK bool public_key_need(struct err *e);

/* From big-endian numbers. NULL: OpenSSL refuses them. */
struct public_key *public_key_rsa(struct str modulus, struct str exponent);

/* From the coordinates of a point, 32 bytes each. NULL: it is not on the curve. */
struct public_key *public_key_p256(struct str x, struct str y);

void public_key_free(struct public_key *key); /* accepts NULL */

/* Whether the owner of the key signed `text`. A P-256 signature is r and s, 32 bytes each. */
bool public_key_signed(const struct public_key *key, struct str text, struct str signature);

#endif
