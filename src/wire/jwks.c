#include "wire/jwks.h"

#include "base/id.h"
#include "wire/base64.h"

#define DEPTH_MAX 8
#define EXPONENT_MAX_BYTES 8

static bool jwks_decode(struct json value, struct arena *arena, struct str *ret) {
    struct str text;
    size_t len;
    if (!json_str(value, arena, &text)) return false;
    char *room = arena_alloc(arena, base64_decoded_len(text.len) + 1);
    if (!room || !base64_decode(text, BASE64_URL, BASE64_UNPADDED, room, &len)) return false;
    *ret = str_of(room, len);
    return true;
}

/* A number without its leading zeros. */
static bool decode_number(struct json value, struct arena *arena, struct str *ret) {
    if (!jwks_decode(value, arena, ret)) return false;
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
           jwks_decode(json_find(from, STR("x")), arena, &ret->x) &&
           jwks_decode(json_find(from, STR("y")), arena, &ret->y) &&
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
