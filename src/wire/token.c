#include "wire/token.h"

#include "base/id.h"
#include "base/mem.h"
#include "base/same.h"
#include "wire/base64.h"
#include "wire/hex.h"

#include <assert.h>
#include <nettle/hmac.h>
#include <nettle/sha2.h>
#include <stdlib.h>

#define MAC_BYTES SHA256_DIGEST_SIZE
#define MAC_HEX_BYTES (2 * MAC_BYTES)

struct token_keys {
    enum token_policy policy;
    int64_t window_s;
    size_t count;
    /* States after hashing the key; a check starts from a copy. */
    struct hmac_sha256_ctx keys[TOKEN_KEYS_MAX];
};

/* ---- Keys ---- */

struct token_keys *token_keys_new(enum token_policy policy, int64_t window_s) {
    assert(window_s >= 0);
    struct token_keys *keys = MEM_NEW(struct token_keys);
    keys->policy = policy;
    keys->window_s = window_s;
    return keys;
}

void token_keys_free(struct token_keys *keys) {
    if (!keys) return;
    explicit_bzero(keys, sizeof(*keys));
    free(keys);
}

bool token_keys_add(struct token_keys *keys, struct str key, bool *ret_trimmed, struct err *e) {
    struct str trimmed = str_trim(key);
    if (trimmed.len == 0)
        return err_set(e, ERR_INVALID_ARGUMENT, "the signing key is empty; set a long secret");
    if (keys->count == TOKEN_KEYS_MAX)
        return err_set(e, ERR_INVALID_ARGUMENT, "more than %d signing keys; remove an old one",
                       TOKEN_KEYS_MAX);
    hmac_sha256_set_key(&keys->keys[keys->count++], trimmed.len, (const uint8_t *)trimmed.at);
    *ret_trimmed = trimmed.len < key.len;
    return true;
}

size_t token_keys_count(const struct token_keys *keys) {
    return keys->count;
}

/* HMAC-SHA256 of `text`. The key's state is not changed, so threads may share it. */
static void mac(const struct hmac_sha256_ctx *key, struct str text,
                uint8_t ret[static MAC_BYTES]) {
    struct sha256_ctx hash = key->inner;
    sha256_update(&hash, text.len, (const uint8_t *)text.at);
    sha256_digest(&hash, MAC_BYTES, ret);
    hash = key->outer;
    sha256_update(&hash, MAC_BYTES, ret);
    sha256_digest(&hash, MAC_BYTES, ret);
}

/* ---- Minting ---- */

/* An id must not contain ':', which ends it in a payload. */
static bool token_id_ok(struct str id) {
    return id_ok(id) && str_find_byte(id, ':') == id.len;
}

static bool check_id(const char *name, struct str id, struct err *e) {
    if (token_id_ok(id)) return true;
    return err_set(e, ERR_INVALID_ARGUMENT,
                   "the %s id is empty, longer than %d bytes or holds ':', a control character "
                   "or bytes that are no text",
                   name, ID_MAX_BYTES);
}

bool token_mint(const struct token_keys *keys, struct str user, struct str workspace,
                int64_t now_unix_s, struct buf *out, struct err *e) {
    if (keys->count == 0)
        return err_set(e, ERR_FAILED_PRECONDITION, "no signing key to mint a token with");
    if (!check_id("user", user, e) || !check_id("workspace", workspace, e)) return false;

    char room[TOKEN_PAYLOAD_BYTES];
    struct buf payload = {.at = room, .room = sizeof(room), .max_bytes = sizeof(room)};
    buf_append(&payload, user);
    buf_append_byte(&payload, ':');
    buf_append(&payload, workspace);
    buf_append_byte(&payload, ':');
    if (!buf_append_i64(&payload, now_unix_s))
        return err_set(e, ERR_INVALID_ARGUMENT, "user and workspace id together are too long");

    size_t begin = out->len;
    uint8_t signature[MAC_BYTES];
    if (base64_encode(out, buf_str(&payload), BASE64_URL, BASE64_UNPADDED)) {
        mac(&keys->keys[0], str_skip(buf_str(out), begin), signature);
        buf_append_byte(out, '.');
        hex_append(out, str_of((const char *)signature, MAC_BYTES));
    }
    return buf_ok(out) || err_set(e, ERR_TOO_LARGE, "a token is longer than the room for it");
}

/* ---- Checking ---- */

/* 16 plus the value of a hex digit; 0: not a digit. A table, because branches on the random
 * digits of a signature would be mispredicted half of the time. */
#define HEX_DIGIT 16u
/* clang-format off */
static const uint8_t hex_values[256] = {
    ['0'] = 16, ['1'] = 17, ['2'] = 18, ['3'] = 19, ['4'] = 20,
    ['5'] = 21, ['6'] = 22, ['7'] = 23, ['8'] = 24, ['9'] = 25,
    ['a'] = 26, ['b'] = 27, ['c'] = 28, ['d'] = 29, ['e'] = 30, ['f'] = 31,
    ['A'] = 26, ['B'] = 27, ['C'] = 28, ['D'] = 29, ['E'] = 30, ['F'] = 31,
};
/* clang-format on */

/* The signature as bytes: hex in either case, or base64url. */
static bool decode_signature(struct str text, uint8_t ret[static MAC_BYTES]) {
    size_t len;
    if (text.len == base64_encoded_len(MAC_BYTES))
        return base64_decode(text, BASE64_URL, BASE64_UNPADDED, (char *)ret, &len);
    if (text.len != MAC_HEX_BYTES) return false;
    unsigned digits = HEX_DIGIT;
    for (size_t i = 0; i < MAC_BYTES; i++) {
        unsigned high = hex_values[(unsigned char)text.at[2 * i]];
        unsigned low = hex_values[(unsigned char)text.at[2 * i + 1]];
        digits &= high & low;
        ret[i] = (uint8_t)(high << 4 | (low & 15));
    }
    return digits != 0;
}

static bool signed_by(const struct hmac_sha256_ctx *key, struct str text,
                      const uint8_t signature[static MAC_BYTES]) {
    uint8_t expected[MAC_BYTES];
    mac(key, text, expected);
    return same_bytes(expected, signature, MAC_BYTES);
}

/* Which key signed `text`, or -1. */
static int find_signer(const struct token_keys *keys, struct str text,
                       const uint8_t signature[static MAC_BYTES]) {
    for (size_t i = 0; i < keys->count; i++) {
        if (signed_by(&keys->keys[i], text, signature)) return (int)i;
    }
    return -1;
}

/* Only the form that we write: no plus sign, no leading zeros, so that each time has one
 * spelling. */
static bool read_time(struct str text, int64_t *ret) {
    char room[24];
    struct buf plain = {.at = room, .room = sizeof(room), .max_bytes = sizeof(room)};
    return str_to_i64(text, ret) && buf_append_i64(&plain, *ret) &&
           str_equal(text, buf_str(&plain));
}

/* Split a payload into user, workspace and, unless it is undated, the time. */
static bool split_payload(struct str payload, struct token *ret) {
    struct str rest, time;
    *ret = (struct token){0};
    ret->user = str_split(payload, ':', &rest);
    ret->workspace = str_split(rest, ':', &time);
    ret->dated = time.at != NULL;
    if (ret->dated && !read_time(time, &ret->unix_s)) return false;
    return token_id_ok(ret->user) && token_id_ok(ret->workspace);
}

static bool in_window(const struct token_keys *keys, int64_t now_unix_s, int64_t unix_s) {
    int64_t age_s;
    if (__builtin_sub_overflow(now_unix_s, unix_s, &age_s)) return false;
    return age_s >= -keys->window_s && age_s <= keys->window_s;
}

enum token_verdict token_verify(const struct token_keys *keys, struct str token,
                                int64_t now_unix_s, char room[static TOKEN_PAYLOAD_BYTES],
                                struct token *ret) {
    struct str signature_text;
    struct str p64 = str_split(token, '.', &signature_text);
    uint8_t signature[MAC_BYTES];
    size_t payload_len;
    if (!decode_signature(signature_text, signature)) return TOKEN_MALFORMED;
    if (base64_decoded_len(p64.len) > TOKEN_PAYLOAD_BYTES) return TOKEN_MALFORMED;
    if (!base64_decode(p64, BASE64_URL, BASE64_UNPADDED, room, &payload_len))
        return TOKEN_MALFORMED;

    struct str payload = str_of(room, payload_len);
    bool lenient = keys->policy == TOKEN_LENIENT;
    int signer = find_signer(keys, p64, signature);
    if (signer < 0 && lenient) signer = find_signer(keys, payload, signature);
    if (signer < 0) return TOKEN_FORGED;

    struct token said;
    if (!split_payload(payload, &said)) return TOKEN_MALFORMED;
    if (!said.dated && !lenient) return TOKEN_MALFORMED;
    if (said.dated && !in_window(keys, now_unix_s, said.unix_s)) return TOKEN_EXPIRED;
    said.key = (size_t)signer;
    *ret = said;
    return TOKEN_VALID;
}

const char *token_verdict_name(enum token_verdict verdict) {
    static const char *const names[] = {
        /* clang-format off */
        [TOKEN_VALID]     = "valid",
        [TOKEN_MALFORMED] = "malformed",
        [TOKEN_FORGED]    = "forged",
        [TOKEN_EXPIRED]   = "expired",
        /* clang-format on */
    };
    assert((size_t)verdict < ARRAY_LEN(names));
    return names[verdict];
}

bool token_check(const struct token_keys *keys, struct str token, int64_t now_unix_s,
                 char room[static TOKEN_PAYLOAD_BYTES], struct token *ret, struct err *e) {
    if (token_verify(keys, token, now_unix_s, room, ret) == TOKEN_VALID) return true;
    return err_set(e, ERR_UNAUTHENTICATED, "invalid bearer token");
}

/* ---- The header ---- */

static bool is_bearer(struct str header, struct str *ret_rest) {
    return str_equal_nocase(str_split(header, ' ', ret_rest), STR("bearer"));
}

struct str bearer_token(struct str header) {
    struct str token;
    bool bearer = is_bearer(str_trim(header), &token);
    token = str_trim(token);
    return bearer && token.len ? token : (struct str){NULL, 0};
}

bool bearer_token_from_header(struct str value, size_t count, struct str *ret, struct err *e) {
    if (count == 0 || (count == 1 && value.len == 0))
        return err_set(e, ERR_UNAUTHENTICATED, "Request unauthenticated with bearer");
    if (count > 1) return err_set(e, ERR_UNAUTHENTICATED, "Bad authorization string");
    struct str token;
    bool bearer = is_bearer(value, &token);
    if (!token.at) return err_set(e, ERR_UNAUTHENTICATED, "Bad authorization string");
    if (!bearer) return err_set(e, ERR_UNAUTHENTICATED, "Request unauthenticated with bearer");
    if (token.len == 0) return err_set(e, ERR_UNAUTHENTICATED, "empty bearer token");
    *ret = token;
    return true;
}

bool token_from_header(const struct token_keys *keys, struct str value, size_t count,
                       int64_t now_unix_s, char room[static TOKEN_PAYLOAD_BYTES],
                       struct token *ret, struct err *e) {
    struct str token = STR_EMPTY;
    return bearer_token_from_header(value, count, &token, e) &&
           token_check(keys, token, now_unix_s, room, ret, e);
}
