/* issuers: who may say who a caller is.
 *
 * Each issuer of the settings signs tokens for one audience with keys from a file, or from a URL
 * (JWKS). Keys of a URL are fetched when a token first needs one (key_fetch.h), and kept. When a
 * token names an unknown key they are fetched again, at most every `pause_ms`; and in the
 * background once they are older than `refresh_ms`, so that a key that the issuer took back is
 * forgotten. If that fails the old keys stay.
 *
 *     check ─▶ TOKEN_GOOD | TOKEN_REFUSED
 *           └▶ TOKEN_NEEDS_KEYS ─▶ fetch ─▶ check again
 *
 * Memory   issuers_new() gives one reference. An identity's texts are memory of its arena.
 * Threads  any; one lock, which is not held while a signature is checked. issuers_new() blocks:
 *          it loads OpenSSL.
 * Source   contracts/nimi.md 5.1 "authorization"; RFC 7517, 8725.
 */
#ifndef WEIR_CONTRACT_NIMI_IDENTITY_ISSUERS_H
#define WEIR_CONTRACT_NIMI_IDENTITY_ISSUERS_H

#include "base/arena.h"
#include "base/err.h"
#include "base/list.h"

#define ISSUERS_MAX 16

struct issuers;

struct issuers_options {
    const struct issuer_from {
        struct str name;     /* the claim `iss`, letter for letter */
        struct str audience; /* what `aud` must name */
        struct str url;      /* of its key set; empty: it is in `keys` */
        struct str keys;     /* a key set, as text */
    } * issuers;
    size_t count;        /* at most ISSUERS_MAX */
    int64_t skew_s;      /* how much clocks may differ */
    uint64_t refresh_ms; /* age at which keys are fetched again; 0: never */
    uint64_t pause_ms;   /* between two fetches of one issuer's keys */
};

/* errors  ERR_INVALID_ARGUMENT a key set that cannot be read, or has no usable key;
 *         ERR_UNAVAILABLE OpenSSL is not installed */
MUST_CHECK bool issuers_new(const struct issuers_options *options, struct issuers **ret,
                            struct err *e);
struct issuers *issuers_ref(struct issuers *issuers);
void issuers_unref(struct issuers *issuers); /* accepts NULL */

/* What a valid token says. */
struct identity {
    struct str subject, scope;
    int64_t expires_s; /* Unix */
};

enum token_state {
    TOKEN_GOOD,
    TOKEN_REFUSED,
    TOKEN_NEEDS_KEYS, /* fetch the keys of *ret_issuer, then check again */
};

struct token_check {
    struct identity identity; /* of a good token */
    size_t issuer;
    bool stale; /* good, but the issuer's keys should be fetched again meanwhile */
};

/* Check a bearer token. `e` says why it is refused, without any part of the token.
 * now_ms  monotonic
 * errors  ERR_UNAUTHENTICATED; ERR_UNAVAILABLE the issuer's keys could never be fetched */
enum token_state issuers_check(struct issuers *issuers, struct str token, int64_t now_unix_s,
                               uint64_t now_ms, struct arena *arena, struct token_check *ret,
                               struct err *e);

/* The name of an issuer (the claim `iss`), and whether there is one of this name. */
struct str issuers_name(const struct issuers *issuers, size_t issuer);
bool issuers_know(const struct issuers *issuers, struct str name);

/* --- for key_fetch.c ---------------------------------------------------------------------- */

/* The URL of an issuer's keys. */
struct str issuers_url(const struct issuers *issuers, size_t issuer);

/* Begin a fetch, unless one is under way: returns whether the caller must fetch and then call
 * issuers_fetched(). */
bool issuers_begin_fetch(struct issuers *issuers, size_t issuer, uint64_t now_ms);

/* Use a fetched key set. What cannot be used changes nothing, and the log says why.
 * text  at NULL: it could not be fetched, `why` says why */
void issuers_fetched(struct issuers *issuers, size_t issuer, struct str text, const char *why,
                     uint64_t now_ms);

/* Calls that wait for an issuer's keys; both under the lock. */
struct list *issuers_waiting(struct issuers *issuers, size_t issuer);
bool issuers_is_fetching(const struct issuers *issuers, size_t issuer);
void issuers_lock(struct issuers *issuers);
void issuers_unlock(struct issuers *issuers);

#endif
