/* A token or a key set from nowhere is read or refused. What is read keeps to the limits, and
 * reading it cut short never gives a longer signed text. */
#include "wire/jwt.h"

#include <assert.h>

static void check_token(struct str text) {
    struct arena *arena = arena_new(JWT_ARENA_BYTES);
    struct jwt jwt;
    struct err e;
    if (jwt_read(text, arena, &jwt, &e)) {
        assert(jwt.signed_text.at == text.at && jwt.signed_text.len < text.len);
        assert(jwt.key_id.len > 0 && jwt.key_id.len <= JWT_ID_MAX_BYTES);
        assert(jwt.subject.len > 0 && jwt.subject.len <= JWT_ID_MAX_BYTES);
        assert(jwt.issued_s >= 0 && jwt.expires_s >= 0 && jwt.not_before_s >= 0);
        (void)jwt_is_for(&jwt, STR("nimi"));
        bool now = jwt_check_time(&jwt, 1700000000, 60, &e);
        assert(!now || jwt.expires_s > 1700000000 - 60);
    } else {
        assert(e.code == ERR_MALFORMED);
    }
    arena_free(arena);
}

static void check_keys(struct str text) {
    struct arena *arena = arena_new(JWKS_ARENA_BYTES);
    struct jwk keys[JWKS_KEYS_MAX];
    size_t count, passed;
    struct err e;
    if (jwks_read(text, arena, keys, &count, &passed, &e)) {
        assert(count <= JWKS_KEYS_MAX);
        for (size_t i = 0; i < count; i++) {
            assert(keys[i].id.len > 0);
            if (keys[i].algorithm == JWT_RS256)
                assert(8 * keys[i].modulus.len >= JWKS_RSA_MIN_BITS &&
                       8 * keys[i].modulus.len <= JWKS_RSA_MAX_BITS);
            else
                assert(keys[i].x.len == JWKS_P256_BYTES && keys[i].y.len == JWKS_P256_BYTES);
        }
    }
    arena_free(arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    check_token(str_of(data, size));
    check_keys(str_of(data, size));
    return 0;
}
