#include "contract/nimi/identity/issuers.h"

#include "base/log.h"
#include "base/mem.h"
#include "tls/public_key.h"
#include "wire/jwt.h"

#include <assert.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>

/* The keys of an issuer at one time; never changed. */
struct key_set {
    atomic_size_t refs;
    size_t count;
    struct issuer_key {
        char *id;
        enum jwt_algorithm algorithm;
        struct public_key *key;
    } keys[];
};

struct issuer {
    char *name, *audience, *url; /* url NULL: the keys never change */
    struct key_set *set;         /* NULL: never fetched */
    bool fetching;
    bool tried; /* fetched at least once, or tried to */
    uint64_t tried_ms, fetched_ms;
    struct list waiting;
};

struct issuers {
    atomic_size_t refs;
    pthread_mutex_t lock; /* guards the members of the issuers that change */
    int64_t skew_s;
    uint64_t refresh_ms, pause_ms;
    size_t count;
    struct issuer issuers[ISSUERS_MAX];
};

/* --- keys --------------------------------------------------------------------------------- */

static void key_set_unref(struct key_set *set) {
    if (!set || atomic_fetch_sub(&set->refs, 1) > 1) return;
    for (size_t i = 0; i < set->count; i++) {
        free(set->keys[i].id);
        public_key_free(set->keys[i].key);
    }
    free(set);
}

static struct key_set *key_set_ref(struct key_set *set) {
    if (set) atomic_fetch_add(&set->refs, 1);
    return set;
}

static struct public_key *make_key(const struct jwk *from) {
    return from->algorithm == JWT_RS256 ? public_key_rsa(from->modulus, from->exponent)
                                        : public_key_p256(from->x, from->y);
}

/* A set without a usable key is refused: it would make every token invalid. */
static bool key_set_read(struct str text, struct key_set **ret, struct err *e) {
    struct jwk found[JWKS_KEYS_MAX];
    size_t count = 0, passed;
    struct arena *arena = arena_new(JWKS_ARENA_BYTES);
    bool read = jwks_read(text, arena, found, &count, &passed, e);
    struct key_set *set =
        mem_zero(1, sizeof(struct key_set) + (count + 1) * sizeof(struct issuer_key));
    atomic_init(&set->refs, 1);
    for (size_t i = 0; read && i < count; i++) {
        struct public_key *key = make_key(&found[i]);
        if (!key) continue;
        set->keys[set->count++] =
            (struct issuer_key){str_dup(found[i].id), found[i].algorithm, key};
    }
    arena_free(arena);
    if (read && set->count) {
        *ret = set;
        return true;
    }
    key_set_unref(set);
    if (!read) return false;
    return err_set(
        e, ERR_INVALID_ARGUMENT,
        "the key set has no usable key: it needs an RSA key of 2048 bits or more, or "
        "one on P-256, with a `kid`");
}

/* The algorithm is the key's, and the token's must be the same. */
static const struct issuer_key *find_key(const struct key_set *set, const struct jwt *jwt) {
    for (size_t i = 0; set && i < set->count; i++) {
        const struct issuer_key *key = &set->keys[i];
        if (str_equal(str_from(key->id), jwt->key_id) && key->algorithm == jwt->algorithm)
            return key;
    }
    return NULL;
}

/* --- the issuers -------------------------------------------------------------------------- */

static bool issuer_init(struct issuer *issuer, const struct issuer_from *from, struct err *e) {
    issuer->name = str_dup(from->name);
    issuer->audience = str_dup(from->audience);
    issuer->url = from->url.len ? str_dup(from->url) : NULL;
    list_init(&issuer->waiting);
    if (issuer->url || key_set_read(from->keys, &issuer->set, e)) return true;
    return err_add(e, "issuer '" STR_FMT "'", STR_ARG(str_head(from->name, 100)));
}

bool issuers_new(const struct issuers_options *options, struct issuers **ret, struct err *e) {
    assert(options->count <= ISSUERS_MAX);
    if (!public_key_need(e)) return false;
    struct issuers *issuers = MEM_NEW(struct issuers);
    atomic_init(&issuers->refs, 1);
    pthread_mutex_init(&issuers->lock, NULL);
    issuers->skew_s = options->skew_s;
    issuers->refresh_ms = options->refresh_ms;
    issuers->pause_ms = options->pause_ms;
    for (size_t i = 0; i < options->count; i++) {
        issuers->count++;
        if (issuer_init(&issuers->issuers[i], &options->issuers[i], e)) continue;
        issuers_unref(issuers);
        return false;
    }
    *ret = issuers;
    return true;
}

struct issuers *issuers_ref(struct issuers *issuers) {
    atomic_fetch_add(&issuers->refs, 1);
    return issuers;
}

void issuers_unref(struct issuers *issuers) {
    if (!issuers || atomic_fetch_sub(&issuers->refs, 1) > 1) return;
    for (size_t i = 0; i < issuers->count; i++) {
        struct issuer *issuer = &issuers->issuers[i];
        assert(list_empty(&issuer->waiting)); /* each waiter has a reference */
        free(issuer->name);
        free(issuer->audience);
        free(issuer->url);
        key_set_unref(issuer->set);
    }
    pthread_mutex_destroy(&issuers->lock);
    free(issuers);
}

/* --- a token ------------------------------------------------------------------------------ */

static bool find_issuer(const struct issuers *issuers, struct str name, size_t *ret) {
    for (size_t i = 0; i < issuers->count; i++) {
        if (!str_equal(str_from(issuers->issuers[i].name), name)) continue;
        *ret = i;
        return true;
    }
    return false;
}

/* Everything that needs no key. */
static bool claims_are_right(const struct issuers *issuers, const struct jwt *jwt,
                             int64_t now_unix_s, size_t *ret_issuer, struct err *e) {
    if (!find_issuer(issuers, jwt->issuer, ret_issuer))
        return err_set(e, ERR_UNAUTHENTICATED, "the issuer of the token is not known here");
    if (!jwt_is_for(jwt, str_from(issuers->issuers[*ret_issuer].audience)))
        return err_set(e, ERR_UNAUTHENTICATED, "the token is for another audience (aud)");
    return jwt_check_time(jwt, now_unix_s, issuers->skew_s, e);
}

static bool may_fetch(const struct issuers *issuers, const struct issuer *issuer,
                      uint64_t now_ms) {
    return issuer->url && (!issuer->tried || now_ms - issuer->tried_ms >= issuers->pause_ms);
}

static bool is_stale(const struct issuers *issuers, const struct issuer *issuer,
                     uint64_t now_ms) {
    return issuer->set && issuers->refresh_ms && !issuer->fetching &&
           now_ms - issuer->fetched_ms >= issuers->refresh_ms &&
           may_fetch(issuers, issuer, now_ms);
}

/* Find the keys, and what to do without the one that is needed. */
static struct key_set *issuers_look(struct issuers *issuers, size_t index, uint64_t now_ms,
                                    bool *ret_stale, bool *ret_wait) {
    struct issuer *issuer = &issuers->issuers[index];
    issuers_lock(issuers);
    struct key_set *set = key_set_ref(issuer->set);
    *ret_stale = is_stale(issuers, issuer, now_ms);
    *ret_wait = issuer->fetching || may_fetch(issuers, issuer, now_ms);
    issuers_unlock(issuers);
    return set;
}

static enum token_state issuers_refuse_unknown(bool has_keys, struct err *e) {
    if (has_keys) {
        err_set(e, ERR_UNAUTHENTICATED, "the token is signed with an unknown key (kid)");
    } else {
        err_set(e, ERR_UNAVAILABLE, "the keys of the token's issuer cannot be fetched now");
    }
    return TOKEN_REFUSED;
}

enum token_state issuers_check(struct issuers *issuers, struct str token, int64_t now_unix_s,
                               uint64_t now_ms, struct arena *arena, struct token_check *ret,
                               struct err *e) {
    struct jwt jwt;
    bool wait;
    if (!jwt_read(token, arena, &jwt, e) ||
        !claims_are_right(issuers, &jwt, now_unix_s, &ret->issuer, e))
        return TOKEN_REFUSED;
    struct key_set *set = issuers_look(issuers, ret->issuer, now_ms, &ret->stale, &wait);
    const struct issuer_key *key = find_key(set, &jwt);
    bool has_keys = set != NULL;
    bool good = key && public_key_signed(key->key, jwt.signed_text, jwt.signature);
    key_set_unref(set);
    if (!key) return wait ? TOKEN_NEEDS_KEYS : issuers_refuse_unknown(has_keys, e);
    if (!good) {
        err_set(e, ERR_UNAUTHENTICATED, "the signature of the token is wrong");
        return TOKEN_REFUSED;
    }
    ret->identity = (struct identity){jwt.subject, jwt.scope, jwt.expires_s};
    return TOKEN_GOOD;
}

struct str issuers_name(const struct issuers *issuers, size_t issuer) {
    return str_from(issuers->issuers[issuer].name);
}

bool issuers_know(const struct issuers *issuers, struct str name) {
    size_t issuer;
    return find_issuer(issuers, name, &issuer);
}

/* --- fetching ----------------------------------------------------------------------------- */

struct str issuers_url(const struct issuers *issuers, size_t issuer) {
    return str_from(issuers->issuers[issuer].url);
}

bool issuers_begin_fetch(struct issuers *issuers, size_t issuer, uint64_t now_ms) {
    struct issuer *at = &issuers->issuers[issuer];
    issuers_lock(issuers);
    bool begin = !at->fetching && may_fetch(issuers, at, now_ms);
    if (begin) {
        at->fetching = at->tried = true;
        at->tried_ms = now_ms;
    }
    issuers_unlock(issuers);
    return begin;
}

void issuers_fetched(struct issuers *issuers, size_t issuer, struct str text, const char *why,
                     uint64_t now_ms) {
    struct issuer *at = &issuers->issuers[issuer];
    struct key_set *set = NULL;
    struct err e;
    bool read = text.at && key_set_read(text, &set, &e);
    if (!read)
        log_warning("the keys of the token issuer %s at %s cannot be used: %s", at->name,
                    at->url, text.at ? e.text : why);
    issuers_lock(issuers);
    struct key_set *old = NULL;
    at->fetching = false;
    if (read) {
        old = at->set;
        at->set = set;
        at->fetched_ms = now_ms;
    }
    issuers_unlock(issuers);
    key_set_unref(old);
}

struct list *issuers_waiting(struct issuers *issuers, size_t issuer) {
    return &issuers->issuers[issuer].waiting;
}

bool issuers_is_fetching(const struct issuers *issuers, size_t issuer) {
    return issuers->issuers[issuer].fetching;
}

void issuers_lock(struct issuers *issuers) {
    pthread_mutex_lock(&issuers->lock);
}

void issuers_unlock(struct issuers *issuers) {
    pthread_mutex_unlock(&issuers->lock);
}
