/* Tokens, and key sets: what is read, and every way to be refused. */
#include "wire/jwt.h"

#include "helper/assert_str.h"
#include "helper/jwt_samples.h"
#include "wire/base64.h"

#include <stdlib.h>

static struct arena *arena;

static int setup(void **state) {
    (void)state;
    arena = arena_new(JWKS_ARENA_BYTES);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    arena_free(arena);
    return 0;
}

/* --- tokens ------------------------------------------------------------------------------- */

static void read_good(const char *token, struct jwt *ret) {
    struct err e;
    if (!jwt_read(str_from(token), arena, ret, &e)) fail_msg("%s", e.text);
}

static void a_token_says_who_and_for_whom(void **state) {
    (void)state;
    struct jwt jwt;
    read_good(JWT_RSA_TOKEN, &jwt);
    assert_int_equal(jwt.algorithm, JWT_RS256);
    assert_str(jwt.key_id, "r1");
    assert_str(jwt.issuer, JWT_ISSUER);
    assert_str(jwt.subject, "anna");
    assert_str(jwt.scope, "runtime.audit.export openid");
    assert_int_equal(jwt.signature.len, 256);
    assert_true(jwt_is_for(&jwt, STR("nimi")));
    assert_false(jwt_is_for(&jwt, STR("nim")));
    read_good(JWT_EC_TOKEN, &jwt);
    assert_int_equal(jwt.algorithm, JWT_ES256);
    assert_int_equal(jwt.signature.len, 64);
    assert_true(jwt_is_for(&jwt, STR("nimi")) && jwt_is_for(&jwt, STR("other")));
    read_good(JWT_OTHER_AUDIENCE, &jwt);
    assert_false(jwt_is_for(&jwt, STR("nimi")));
}

static void a_token_cut_anywhere_is_refused(void **state) {
    (void)state;
    struct str whole = STR(JWT_EC_TOKEN);
    size_t signature = whole.len;
    while (whole.at[signature - 1] != '.') signature--;
    for (size_t cut = 0; cut < whole.len; cut++) {
        struct arena *room = arena_new(JWT_ARENA_BYTES);
        struct jwt jwt;
        struct err e;
        char *copy = malloc(cut + 1); /* so that a sanitizer sees a read past the cut */
        memcpy(copy, whole.at, cut);
        bool read = jwt_read(str_of(copy, cut), room, &jwt, &e);
        /* Within the signature it is a token with a shorter signature. */
        if (cut <= signature) assert_false(read);
        if (read) assert_true(jwt.signature.len < 64);
        free(copy);
        arena_free(room);
    }
}

/* A token with this header and these claims, and some signature. */
static bool read_made(const char *header, const char *claims, struct jwt *ret, struct err *e) {
    struct buf token;
    struct str kept;
    buf_init(&token, 64 * KIB);
    base64_encode(&token, str_from(header), BASE64_URL, BASE64_UNPADDED);
    buf_append_byte(&token, '.');
    base64_encode(&token, str_from(claims), BASE64_URL, BASE64_UNPADDED);
    buf_append(&token, STR(".c2ln"));
    assert_true(arena_str(arena, buf_str(&token), &kept));
    buf_done(&token);
    return jwt_read(kept, arena, ret, e);
}

#define HEAD "{\"alg\":\"RS256\",\"kid\":\"k\"}"
#define WHO "\"iss\":\"i\",\"sub\":\"s\",\"aud\":\"a\""

static void what_is_wrong_with_a_token_is_said(void **state) {
    (void)state;
    static const struct {
        const char *header, *claims, *why;
    } rows[] = {
        {"{\"alg\":\"none\",\"kid\":\"k\"}", "{}", "must be signed with RS256 or ES256"},
        {"{\"alg\":\"HS256\",\"kid\":\"k\"}", "{}", "must be signed with RS256 or ES256"},
        {"{\"alg\":\"rs256\",\"kid\":\"k\"}", "{}", "must be signed with RS256 or ES256"},
        {"{\"alg\":[\"RS256\"],\"kid\":\"k\"}", "{}", "must be signed with RS256 or ES256"},
        {"{\"kid\":\"k\"}", "{}", "must be signed with RS256 or ES256"},
        {"{\"alg\":\"none\",\"alg\":\"RS256\",\"kid\":\"k\"}", "{}", "a member twice"},
        {"{\"alg\":\"RS256\"}", "{}", "no key (kid)"},
        {"{\"alg\":\"RS256\",\"kid\":\"\"}", "{}", "no key (kid)"},
        {"{\"alg\":\"RS256\",\"kid\":\"k\",\"crit\":[\"b64\"]}", "{}", "(crit)"},
        {"[]", "{}", "not a JSON object"},
        {HEAD, "[]", "not a JSON object"},
        {HEAD, "{\"sub\":\"s\"}", "no issuer (iss)"},
        {HEAD, "{\"iss\":7,\"sub\":\"s\"}", "no issuer (iss)"},
        {HEAD, "{\"iss\":\"i\"}", "no subject (sub)"},
        {HEAD, "{\"iss\":\"i\",\"sub\":\"a\\nb\"}", "no subject (sub)"},
        {HEAD, "{\"sub\":\"x\"," WHO ",\"iat\":1,\"exp\":2}", "a claim twice"},
        {HEAD, "{" WHO ",\"iat\":1}", "when it expires (exp)"},
        {HEAD, "{" WHO ",\"iat\":1,\"exp\":\"2\"}", "when it expires (exp)"},
        {HEAD, "{" WHO ",\"iat\":1,\"exp\":-2}", "when it expires (exp)"},
        {HEAD, "{" WHO ",\"iat\":1,\"exp\":1e99}", "when it expires (exp)"},
        {HEAD, "{" WHO ",\"exp\":2}", "when it was issued (iat)"},
        {HEAD, "{" WHO ",\"iat\":1,\"exp\":2,\"nbf\":null}", "nbf is not a time"},
        {HEAD, "{" WHO ",\"iat\":1,\"exp\":2,\"scope\":[]}", "scope is not a text"},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct jwt jwt;
        struct err e;
        assert_false(read_made(rows[i].header, rows[i].claims, &jwt, &e));
        assert_int_equal(e.code, ERR_MALFORMED);
        if (!strstr(e.text, rows[i].why)) fail_msg("row %zu: %s", i, e.text);
    }
}

static void times_hold_to_the_second_and_the_skew(void **state) {
    (void)state;
    struct jwt jwt;
    struct err e;
    assert_true(read_made(HEAD, "{" WHO ",\"iat\":1000.9,\"nbf\":1100,\"exp\":2e3}", &jwt, &e));
    assert_int_equal(jwt.issued_s, 1000);
    static const struct {
        int64_t now_s, skew_s;
        bool good;
    } rows[] = {
        {1099, 0, false},  {1100, 0, true},  {1999, 0, true},  {2000, 0, false},
        {1039, 60, false}, {1040, 60, true}, {2059, 60, true}, {2060, 60, false},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++)
        assert_int_equal(jwt_check_time(&jwt, rows[i].now_s, rows[i].skew_s, &e), rows[i].good);
    /* Issued in the future, though nbf allows it. */
    assert_true(read_made(HEAD, "{" WHO ",\"iat\":1500,\"nbf\":1,\"exp\":2000}", &jwt, &e));
    assert_false(jwt_check_time(&jwt, 1400, 60, &e));
    assert_int_equal(e.code, ERR_UNAUTHENTICATED);
    assert_true(jwt_check_time(&jwt, 1440, 60, &e));
}

/* --- key sets ----------------------------------------------------------------------------- */

static struct jwk keys[JWKS_KEYS_MAX];
static size_t count, passed;

static bool read_keys(const char *text, struct err *e) {
    return jwks_read(str_from(text), arena, keys, &count, &passed, e);
}

static void a_key_set_has_keys_of_both_kinds(void **state) {
    (void)state;
    struct err e;
    assert_true(read_keys(JWT_KEYS, &e));
    assert_int_equal(count, 2);
    assert_str(keys[0].id, "r1");
    assert_int_equal(keys[0].modulus.len, 256);
    assert_int_equal(keys[0].exponent.len, 3);
    assert_str(keys[1].id, "e1");
    assert_int_equal(keys[1].algorithm, JWT_ES256);
}

#define P256 "\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"" JWT_EC_X "\",\"y\":\"" JWT_EC_Y "\""

static void keys_for_something_else_and_weak_ones_are_passed_over(void **state) {
    (void)state;
    static const char *const sets[] = {
        JWT_WEAK_KEYS,
        "{\"keys\":[7]}",
        "{\"keys\":[{\"kty\":\"oct\",\"kid\":\"a\",\"k\":\"AAAA\"}]}",
        "{\"keys\":[{" P256 "}]}", /* no id */
        "{\"keys\":[{\"kid\":\"a\",\"use\":\"enc\"," P256 "}]}",
        "{\"keys\":[{\"kid\":\"a\",\"alg\":\"ES384\"," P256 "}]}",
        "{\"keys\":[{\"kid\":\"a\",\"key_ops\":[\"sign\"]," P256 "}]}",
        "{\"keys\":[{\"kid\":\"a\",\"kty\":\"RSA\"," P256 "}]}", /* two types */
        ("{\"keys\":[{\"kid\":\"a\",\"kty\":\"EC\",\"crv\":\"P-256\",\"x\":\"AA\",\"y\":\"AA\"}"
         "]"
         "}"),
        "{\"keys\":[{\"kid\":\"a\",\"kty\":\"RSA\",\"n\":\"AAAA\",\"e\":\"AQAB\"}]}",
    };
    struct err e;
    for (size_t i = 0; i < ARRAY_LEN(sets); i++) {
        assert_true(read_keys(sets[i], &e));
        if (count != 0 || passed != 1) fail_msg("set %zu: %zu, %zu", i, count, passed);
    }
    assert_true(
        read_keys("{\"keys\":[{\"kid\":\"a\",\"key_ops\":[\"verify\"]," P256 "}]}", &e));
    assert_int_equal(count, 1);
}

static void a_malformed_key_set_is_refused(void **state) {
    (void)state;
    static const char *const texts[] = {"",
                                        "{}",
                                        "[]",
                                        "{\"keys\":{}}",
                                        "{\"keys\":[",
                                        "{\"keys\":[{\"kid\":\"a\"," P256
                                        "},{\"kid\":\"a\"," P256 "}]}"};
    struct err e;
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) assert_false(read_keys(texts[i], &e));
    for (size_t cut = 0; cut < strlen(JWT_KEYS); cut++) {
        struct arena *room = arena_new(JWKS_ARENA_BYTES);
        char *copy = malloc(cut + 1);
        memcpy(copy, JWT_KEYS, cut);
        assert_false(jwks_read(str_of(copy, cut), room, keys, &count, &passed, &e));
        free(copy);
        arena_free(room);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_token_says_who_and_for_whom, setup, teardown),
        cmocka_unit_test_setup_teardown(a_token_cut_anywhere_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(what_is_wrong_with_a_token_is_said, setup, teardown),
        cmocka_unit_test_setup_teardown(times_hold_to_the_second_and_the_skew, setup, teardown),
        cmocka_unit_test_setup_teardown(a_key_set_has_keys_of_both_kinds, setup, teardown),
        cmocka_unit_test_setup_teardown(keys_for_something_else_and_weak_ones_are_passed_over,
                                        setup, teardown),
        cmocka_unit_test_setup_teardown(a_malformed_key_set_is_refused, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
