/* token: signed proof of who calls.
 *
 * A holder of the shared key mints a token that names a user and a workspace. Another holder of
 * the key accepts it for five minutes (a setting) before and after its time stamp:
 *
 *     payload    user ":" workspace ":" unix seconds
 *     p64        base64url of the payload, without '='
 *     token      p64 "." lower-case hex of HMAC-SHA256(key, p64)
 *
 * Minting writes this form only. Checking also accepts the signature as unpadded base64url and,
 * unless the keys are strict, two older forms: a payload without the time (it never expires)
 * and a signature over the payload itself. A signature over the payload cannot be mistaken for
 * one over p64, because a payload contains a ':' and base64url does not.
 *
 * Used tokens are not recorded: a token can be used again until it expires. Several keys may be
 * valid at once, so that a new key can overlap the old one.
 *
 * Memory   struct token_keys owns the keys and wipes them when freed. Claims are views into
 *          the caller's room.
 * Threads  any, once the keys are complete; checking changes nothing.
 * Source   contracts of the agent runtime, "Authentication"; RFC 2104; RFC 6750 for the scheme.
 */
#ifndef WEIR_WIRE_TOKEN_H
#define WEIR_WIRE_TOKEN_H

#include "base/buf.h"
#include "base/err.h"

#define TOKEN_WINDOW_S 300 /* unless configured otherwise */
#define TOKEN_KEYS_MAX 4
#define TOKEN_PAYLOAD_BYTES 1024

enum token_policy {
    TOKEN_LENIENT, /* also payloads without time and signatures over the payload */
    TOKEN_STRICT,
};

struct token_keys; /* opaque: holds secrets */

/* Tokens are accepted up to `window_s` before and after their time stamp. The caller owns the
 * result and ends it with token_keys_free(), which accepts NULL. Without a key every token is
 * refused. */
struct token_keys *token_keys_new(enum token_policy policy, int64_t window_s);
void token_keys_free(struct token_keys *keys);

/* Add a key. All keys are accepted; the first one mints. White space around the key is removed,
 * and *ret_trimmed says whether there was any, which deserves a warning.
 * errors  ERR_INVALID_ARGUMENT nothing is left, or there are TOKEN_KEYS_MAX already */
MUST_CHECK bool token_keys_add(struct token_keys *keys, struct str key, bool *ret_trimmed,
                               struct err *e);

size_t token_keys_count(const struct token_keys *keys);

/* Append a token, signed with the first key.
 * errors  ERR_INVALID_ARGUMENT an id is empty, not valid text, or contains ':' or a control
 *         byte, or both together are too long; ERR_FAILED_PRECONDITION no key; ERR_TOO_LARGE
 *         the buffer's limit */
MUST_CHECK bool token_mint(const struct token_keys *keys, struct str user, struct str workspace,
                           int64_t now_unix_s, struct buf *out, struct err *e);

struct token {
    struct str user, workspace;
    bool dated;
    int64_t unix_s; /* when it was minted, if dated */
    size_t key;     /* index of the key that signed it, in the order they were added */
};

/* Why a token is refused. For the audit log, never for the peer. */
enum token_verdict {
    TOKEN_VALID,
    TOKEN_MALFORMED,
    TOKEN_FORGED, /* none of our keys signed it */
    TOKEN_EXPIRED,
};

/* "valid", "malformed", "forged", "expired". */
const char *token_verdict_name(enum token_verdict verdict);

/* room  receives the claims of a valid token */
enum token_verdict token_verify(const struct token_keys *keys, struct str token,
                                int64_t now_unix_s, char room[static TOKEN_PAYLOAD_BYTES],
                                struct token *ret);

/* The same with an error for the peer, which does not say what was wrong.
 * errors  ERR_UNAUTHENTICATED "invalid bearer token" */
MUST_CHECK bool token_check(const struct token_keys *keys, struct str token, int64_t now_unix_s,
                            char room[static TOKEN_PAYLOAD_BYTES], struct token *ret,
                            struct err *e);

/* The token of an `authorization` header, "Bearer" in any case, without the blanks around it; a
 * view of `header`. at == NULL: there is no header, another scheme, or no token. */
struct str bearer_token(struct str header);

/* Find the token in the `authorization` header of a call; the result is a view of `value`. The
 * header must occur exactly once (count) and hold "Bearer" in any case, a space and a token. A
 * blank too many is part of the token.
 * errors  ERR_UNAUTHENTICATED with the message that clients of the contract expect */
MUST_CHECK bool bearer_token_from_header(struct str value, size_t count, struct str *ret,
                                         struct err *e);

/* Both in one: identify the caller by the `authorization` header. */
MUST_CHECK bool token_from_header(const struct token_keys *keys, struct str value, size_t count,
                                  int64_t now_unix_s, char room[static TOKEN_PAYLOAD_BYTES],
                                  struct token *ret, struct err *e);

#endif
