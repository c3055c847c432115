#include "wire/jwt.h"

#include "base/id.h"
#include "wire/base64.h"

#define DEPTH_MAX 8
#define EXPONENT_MAX_BYTES 8

static bool malformed(struct err *e, const char *why) {
    return err_set(e, ERR_MALFORMED, "%s", why);
}

/* --- the three parts ---------------------------------------------------------------------- */

struct parts {
    struct str header, claims, signature; /* as text */
};

static bool split(struct str token, struct parts *ret, struct err *e) {
    struct str rest;
    if (token.len > JWT_MAX_BYTES) return malformed(e, "the token is too long");
    ret->header = str_split(token, '.', &rest);
    ret->claims = str_split(rest, '.', &ret->signature);
    if (!ret->signature.at || str_find_byte(ret->signature, '.') < ret->signature.len ||
        ret->header.len == 0 || ret->claims.len == 0 || ret->signature.len == 0)
        return malformed(e, "the token is not header.claims.signature");
    return true;
}

static bool jwt_decode(struct str text, struct arena *arena, struct str *ret) {
    size_t len;
    char *room = arena_alloc(arena, base64_decoded_len(text.len) + 1);
    if (!room || !base64_decode(text, BASE64_URL, BASE64_UNPADDED, room, &len)) return false;
    *ret = str_of(room, len);
    return true;
}

static bool decode_part(struct str text, struct arena *arena, struct str *ret, struct err *e) {
    return jwt_decode(text, arena, ret) || malformed(e, "a part of the token is not base64url");
}

static bool decode_object(struct str text, struct arena *arena, struct json *ret,
                          struct err *e) {
    struct str bytes;
    struct err why;
    if (!decode_part(text, arena, &bytes, e)) return false;
    if (!json_read_depth(bytes, DEPTH_MAX, ret, &why) || ret->kind != JSON_OBJECT)
        return malformed(e, "a part of the token is not a JSON object");
    return true;
}

/* --- the header --------------------------------------------------------------------------- */

/* A text of at least one byte that names something. */
static bool read_name(struct json value, struct arena *arena, struct str *ret) {
    return json_str(value, arena, ret) && ret->len <= JWT_ID_MAX_BYTES && id_ok(*ret);
}

static bool jwt_read_header(struct json header, struct arena *arena, struct jwt *ret,
                            struct err *e) {
    static const char *const once[] = {"alg", "kid", "crit", "b64", NULL};
    struct json algorithm = json_find(header, STR("alg"));
    if (!json_check_once(header, once, e)) return malformed(e, "the header has a member twice");
    if (json_find(header, STR("crit")).kind != JSON_NONE)
        return malformed(e, "the header demands an extension (crit), and none is known");
    if (json_is(algorithm, STR("RS256"))) {
        ret->algorithm = JWT_RS256;
    } else if (json_is(algorithm, STR("ES256"))) {
        ret->algorithm = JWT_ES256;
    } else {
        return malformed(e, "the token must be signed with RS256 or ES256");
    }
    return read_name(json_find(header, STR("kid")), arena, &ret->key_id) ||
           malformed(e, "the header names no key (kid)");
}

/* --- the claims --------------------------------------------------------------------------- */

/* Seconds since 1970; a fraction is dropped. */
static bool read_time(struct json value, int64_t *ret) {
    double seconds;
    if (json_i64(value, ret)) return *ret >= 0;
    if (!json_double(value, &seconds) || !(seconds >= 0 && seconds < 1e15)) return false;
    *ret = (int64_t)seconds;
    return true;
}

static bool read_times(struct json claims, struct jwt *ret, struct err *e) {
    struct json not_before = json_find(claims, STR("nbf"));
    if (!read_time(json_find(claims, STR("exp")), &ret->expires_s))
        return malformed(e, "the token says not when it expires (exp)");
    if (!read_time(json_find(claims, STR("iat")), &ret->issued_s))
        return malformed(e, "the token says not when it was issued (iat)");
    ret->not_before_s = ret->issued_s;
    return not_before.kind == JSON_NONE || read_time(not_before, &ret->not_before_s) ||
           malformed(e, "nbf is not a time");
}

static bool read_claims(struct json claims, struct arena *arena, struct jwt *ret,
                        struct err *e) {
    static const char *const once[] = {"iss", "sub", "aud", "exp", "iat", "nbf", "scope", NULL};
    struct json scope = json_find(claims, STR("scope"));
    if (!json_check_once(claims, once, e)) return malformed(e, "the token has a claim twice");
    if (!json_str(json_find(claims, STR("iss")), arena, &ret->issuer) || ret->issuer.len == 0)
        return malformed(e, "the token names no issuer (iss)");
    if (!read_name(json_find(claims, STR("sub")), arena, &ret->subject))
        return malformed(e, "the token names no subject (sub), or one that is no id");
    ret->scope = STR_EMPTY;
    if (scope.kind != JSON_NONE && !json_str(scope, arena, &ret->scope))
        return malformed(e, "scope is not a text");
    ret->audience = json_find(claims, STR("aud"));
    return read_times(claims, ret, e);
}

bool jwt_read(struct str token, struct arena *arena, struct jwt *ret, struct err *e) {
    struct parts parts;
    struct json header, claims;
    struct jwt jwt = {.key_id = STR_EMPTY};
    if (!split(token, &parts, e) || !decode_object(parts.header, arena, &header, e) ||
        !jwt_read_header(header, arena, &jwt, e) ||
        !decode_part(parts.signature, arena, &jwt.signature, e) ||
        !decode_object(parts.claims, arena, &claims, e) || !read_claims(claims, arena, &jwt, e))
        return false;
    jwt.signed_text = str_head(token, parts.header.len + 1 + parts.claims.len);
    *ret = jwt;
    return true;
}

/* --- what it is good for ------------------------------------------------------------------ */

bool jwt_is_for(const struct jwt *jwt, struct str audience) {
    struct json_reader items = json_enter(jwt->audience);
    struct json item;
    if (jwt->audience.kind != JSON_ARRAY) return json_is(jwt->audience, audience);
    while (json_next_item(&items, &item)) {
        if (json_is(item, audience)) return true;
    }
    return false;
}

bool jwt_check_time(const struct jwt *jwt, int64_t now_s, int64_t skew_s, struct err *e) {
    /* No time is negative, so the differences cannot overflow. */
    if (now_s - skew_s >= jwt->expires_s)
        return err_set(e, ERR_UNAUTHENTICATED, "the token has expired");
    if (jwt->not_before_s - skew_s > now_s)
        return err_set(e, ERR_UNAUTHENTICATED, "the token is not valid yet");
    if (jwt->issued_s - skew_s > now_s)
        return err_set(e, ERR_UNAUTHENTICATED, "the token was issued in the future");
    return true;
}

/* --- key sets ----------------------------------------------------------------------------- */

static bool decode_member(struct json value, struct arena *arena, struct str *ret) {
    struct str text;
    return json_str(value, arena, &text) && jwt_decode(text, arena, ret);
}

/* A number without its leading zeros. */
static bool decode_number(struct json value, struct arena *arena, struct str *ret) {
    if (!decode_member(value, arena, ret)) return false;
    while (ret->len && ret->at[0] == '\0') *ret = str_skip(*ret, 1);
    return ret->len > 0;
}

static size_t bits_of(struct str number) {
    size_t bits = 8 * number.len;
    for (unsigned top = (unsigned char)number.at[0]; !(top & 0x80u); top <<= 1) bits--;
    return bits;
}

static bool rsa_is_strong(const struct jwk *key) {
    size_t bits = bits_of(key->modulus);
    struct str e = key->exponent;
    bool odd = (unsigned char)e.at[e.len - 1] & 1u;
    bool small = e.len == 1 && (unsigned char)e.at[0] < 3;
    return bits >= JWKS_RSA_MIN_BITS && bits <= JWKS_RSA_MAX_BITS && odd && !small &&
           e.len <= EXPONENT_MAX_BYTES;
}

static bool read_rsa(struct json from, struct arena *arena, struct jwk *ret) {
    ret->algorithm = JWT_RS256;
    return decode_number(json_find(from, STR("n")), arena, &ret->modulus) &&
           decode_number(json_find(from, STR("e")), arena, &ret->exponent) &&
           rsa_is_strong(ret);
}

static bool read_curve(struct json from, struct arena *arena, struct jwk *ret) {
    ret->algorithm = JWT_ES256;
    return json_is(json_find(from, STR("crv")), STR("P-256")) &&
           decode_member(json_find(from, STR("x")), arena, &ret->x) &&
           decode_member(json_find(from, STR("y")), arena, &ret->y) &&
           ret->x.len == JWKS_P256_BYTES && ret->y.len == JWKS_P256_BYTES;
}

/* Whether the key's own members allow checking signatures with it. */
static bool is_for_checking(struct json from, enum jwt_algorithm algorithm) {
    struct json use = json_find(from, STR("use")), said = json_find(from, STR("alg"));
    struct json operations = json_find(from, STR("key_ops")), operation;
    struct json_reader each = json_enter(operations);
    struct str name = algorithm == JWT_RS256 ? STR("RS256") : STR("ES256");
    if (use.kind != JSON_NONE && !json_is(use, STR("sig"))) return false;
    if (said.kind != JSON_NONE && !json_is(said, name)) return false;
    if (operations.kind == JSON_NONE) return true;
    while (json_next_item(&each, &operation)) {
        if (json_is(operation, STR("verify"))) return true;
    }
    return false;
}

static bool jwks_read_key(struct json from, struct arena *arena, struct jwk *ret) {
    static const char *const once[] = {"kty", "kid", "alg", "use", "key_ops", "n",
                                       "e",   "crv", "x",   "y",   NULL};
    struct json type = json_find(from, STR("kty"));
    struct err e;
    *ret = (struct jwk){.id = STR_EMPTY};
    if (from.kind != JSON_OBJECT || !json_check_once(from, once, &e)) return false;
    if (!json_str(json_find(from, STR("kid")), arena, &ret->id) || !id_ok(ret->id))
        return false;
    bool read = json_is(type, STR("RSA"))  ? read_rsa(from, arena, ret)
                : json_is(type, STR("EC")) ? read_curve(from, arena, ret)
                                           : false;
    return read && is_for_checking(from, ret->algorithm);
}

static bool jwks_is_taken(struct str id, const struct jwk *keys, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (str_equal(keys[i].id, id)) return true;
    }
    return false;
}

bool jwks_read(struct str text, struct arena *arena, struct jwk ret[static JWKS_KEYS_MAX],
               size_t *ret_count, size_t *ret_passed, struct err *e) {
    struct json whole, item;
    struct err why;
    size_t count = 0, passed = 0;
    if (text.len > JWKS_MAX_BYTES) return err_set(e, ERR_MALFORMED, "the key set is too long");
    if (!json_read_depth(text, DEPTH_MAX, &whole, &why))
        return err_set(e, ERR_MALFORMED, "the key set is not JSON: %s", why.text);
    struct json keys = json_find(whole, STR("keys"));
    if (keys.kind != JSON_ARRAY)
        return err_set(e, ERR_MALFORMED, "the key set has no array `keys` (RFC 7517)");
    struct json_reader each = json_enter(keys);
    while (json_next_item(&each, &item)) {
        struct jwk key;
        if (count == JWKS_KEYS_MAX || !jwks_read_key(item, arena, &key)) {
            passed++;
            continue;
        }
        if (jwks_is_taken(key.id, ret, count))
            return err_set(e, ERR_MALFORMED, "the key set has two keys '" STR_FMT "'",
                           STR_ARG(str_head(key.id, 60)));
        ret[count++] = key;
    }
    *ret_count = count;
    *ret_passed = passed;
    return true;
}
