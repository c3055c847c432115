/* Tokens and their issuers: what is believed, which keys are fetched, and when. Tokens are made
 * by another implementation; the clock is a number. */
#include "contract/nimi/identity/issuers.h"

#include "helper/assert_str.h"
#include "helper/jwt_samples.h"
#include "wire/jwt.h"

#define PAUSE 30000
#define REFRESH 600000

static struct issuers *issuers;
static struct token_check check;
static struct arena *arena;
static struct err why;

static int setup(void **state) {
    (void)state;
    arena = arena_new(64 * JWT_ARENA_BYTES);
    return 0;
}

static int teardown(void **state) {
    (void)state;
    issuers_unref(issuers);
    issuers = NULL;
    arena_free(arena);
    return 0;
}

static void with(const char *keys, const char *url) {
    const struct issuer_from from = {.name = STR(JWT_ISSUER),
                                     .audience = STR(JWT_AUDIENCE),
                                     .url = str_from(url),
                                     .keys = str_from(keys)};
    struct err e;
    const struct issuers_options options = {
        .issuers = &from, .count = 1, .skew_s = 60, .refresh_ms = REFRESH, .pause_ms = PAUSE};
    if (!issuers_new(&options, &issuers, &e)) fail_msg("%s", e.text);
}

static enum token_state look_at(const char *token, int64_t now_s, uint64_t now_ms) {
    return issuers_check(issuers, str_from(token), now_s, now_ms, arena, &check, &why);
}

static void refused(const char *token, int64_t now_s, const char *sentence) {
    assert_int_equal(look_at(token, now_s, 0), TOKEN_REFUSED);
    if (!strstr(why.text, sentence)) fail_msg("%s, not %s", why.text, sentence);
}

static void a_signed_token_is_believed(void **state) {
    (void)state;
    with(JWT_KEYS, "");
    assert_int_equal(look_at(JWT_RSA_TOKEN, JWT_NOW, 0), TOKEN_GOOD);
    assert_str(check.identity.subject, "anna");
    assert_str(check.identity.scope, "runtime.audit.export openid");
    assert_false(check.stale);
    assert_int_equal(look_at(JWT_EC_TOKEN, JWT_NOW, 0), TOKEN_GOOD);
    assert_int_equal(look_at(JWT_RSA_TOKEN, JWT_NOW + 659, 0), TOKEN_GOOD);
    assert_int_equal(look_at(JWT_RSA_TOKEN, JWT_NOW - 60, 0), TOKEN_GOOD);
}

static void nothing_else_is(void **state) {
    (void)state;
    with(JWT_KEYS, "");
    refused(JWT_EC_OTHER_KEY, JWT_NOW, "signature of the token is wrong");
    refused(JWT_HS_TOKEN, JWT_NOW, "RS256 or ES256");
    refused(JWT_NONE_TOKEN, JWT_NOW, "RS256 or ES256");
    refused(JWT_WRONG_ALG, JWT_NOW, "unknown key");
    refused(JWT_UNKNOWN_KID, JWT_NOW, "unknown key");
    refused(JWT_OTHER_ISSUER, JWT_NOW, "issuer of the token is not known");
    refused(JWT_OTHER_AUDIENCE, JWT_NOW, "another audience");
    refused(JWT_RSA_TOKEN, JWT_NOW + 660, "expired");
    refused(JWT_RSA_TOKEN, JWT_NOW - 61, "not valid yet");
    refused("", JWT_NOW, "not header.claims.signature");
}

/* Every character of a token counts: changed, it is refused. */
static void a_token_with_one_character_changed_is_refused(void **state) {
    (void)state;
    char token[] = JWT_EC_TOKEN;
    with(JWT_KEYS, "");
    for (size_t i = 0; i < sizeof(token) - 1; i++) {
        struct arena *room = arena_new(JWT_ARENA_BYTES);
        char was = token[i];
        token[i] = was == 'A' ? 'B' : 'A';
        assert_int_equal(
            issuers_check(issuers, str_from(token), JWT_NOW, 0, room, &check, &why),
            TOKEN_REFUSED);
        token[i] = was;
        arena_free(room);
    }
}

static void a_file_without_a_usable_key_is_refused_at_the_start(void **state) {
    (void)state;
    static const char *const files[] = {JWT_WEAK_KEYS, "{\"keys\":[]}", "no JSON"};
    for (size_t i = 0; i < ARRAY_LEN(files); i++) {
        const struct issuer_from from = {
            .name = STR("i"), .audience = STR("a"), .keys = str_from(files[i])};
        struct err e;
        assert_false(
            issuers_new(&(struct issuers_options){.issuers = &from, .count = 1}, &issuers, &e));
        assert_true(strstr(e.text, "issuer 'i'") != NULL);
    }
}

/* --- keys of a URL ------------------------------------------------------------------------ */

static void fetched(const char *keys, uint64_t now_ms) {
    assert_true(issuers_begin_fetch(issuers, 0, now_ms));
    assert_false(issuers_begin_fetch(issuers, 0, now_ms)); /* one at a time */
    issuers_fetched(issuers, 0, keys ? str_from(keys) : (struct str){NULL, 0}, "down", now_ms);
}

static void the_first_token_asks_for_the_keys(void **state) {
    (void)state;
    with("", "https://id.example/keys");
    assert_int_equal(look_at(JWT_RSA_TOKEN, JWT_NOW, 1000), TOKEN_NEEDS_KEYS);
    assert_true(issuers_begin_fetch(issuers, 0, 1000));
    assert_int_equal(look_at(JWT_RSA_TOKEN, JWT_NOW, 1001), TOKEN_NEEDS_KEYS); /* wait */
    issuers_fetched(issuers, 0, STR(JWT_KEYS), NULL, 1002);
    assert_int_equal(look_at(JWT_RSA_TOKEN, JWT_NOW, 1003), TOKEN_GOOD);
    /* Claims are looked at first, so a token for others cannot cause a fetch. */
    assert_int_equal(look_at(JWT_OTHER_AUDIENCE, JWT_NOW, 90000), TOKEN_REFUSED);
}

static void an_unknown_key_fetches_them_again_but_not_more_often(void **state) {
    (void)state;
    with("", "https://id.example/keys");
    fetched(JWT_KEYS, 1000);
    assert_int_equal(look_at(JWT_UNKNOWN_KID, JWT_NOW, 1000 + PAUSE - 1), TOKEN_REFUSED);
    assert_int_equal(why.code, ERR_UNAUTHENTICATED);
    assert_int_equal(look_at(JWT_UNKNOWN_KID, JWT_NOW, 1000 + PAUSE), TOKEN_NEEDS_KEYS);
    fetched(JWT_KEYS, 1000 + PAUSE);
    assert_int_equal(look_at(JWT_UNKNOWN_KID, JWT_NOW, 1001 + PAUSE), TOKEN_REFUSED);
    assert_false(issuers_begin_fetch(issuers, 0, 1001 + PAUSE));
}

static void keys_that_cannot_be_had_are_no_fault_of_the_token(void **state) {
    (void)state;
    with("", "https://id.example/keys");
    fetched(NULL, 1000);
    assert_int_equal(look_at(JWT_RSA_TOKEN, JWT_NOW, 1001), TOKEN_REFUSED);
    assert_int_equal(why.code, ERR_UNAVAILABLE);
    fetched(JWT_KEYS, 1000 + PAUSE);
    assert_int_equal(look_at(JWT_RSA_TOKEN, JWT_NOW, 1001 + PAUSE), TOKEN_GOOD);
}

static void old_keys_are_used_while_new_ones_are_fetched(void **state) {
    (void)state;
    uint64_t old = 1000 + REFRESH;
    with("", "https://id.example/keys");
    fetched(JWT_KEYS, 1000);
    assert_int_equal(look_at(JWT_RSA_TOKEN, JWT_NOW, old - 1), TOKEN_GOOD);
    assert_false(check.stale);
    assert_int_equal(look_at(JWT_RSA_TOKEN, JWT_NOW, old), TOKEN_GOOD);
    assert_true(check.stale);
    assert_true(issuers_begin_fetch(issuers, 0, old));
    assert_int_equal(look_at(JWT_RSA_TOKEN, JWT_NOW, old), TOKEN_GOOD);
    assert_false(check.stale);                                    /* under way */
    issuers_fetched(issuers, 0, STR("{\"keys\":[]}"), NULL, old); /* unusable: they stay */
    assert_int_equal(look_at(JWT_RSA_TOKEN, JWT_NOW, old + 1), TOKEN_GOOD);
    assert_false(check.stale); /* not again at once */
}

static void a_key_that_the_issuer_took_back_is_forgotten(void **state) {
    (void)state;
    struct str only_ec = STR("{\"keys\":[{\"kid\":\"e1\",\"kty\":\"EC\",\"crv\":\"P-256\","
                             "\"x\":\"" JWT_EC_X "\",\"y\":\"" JWT_EC_Y "\"}]}");
    with("", "https://id.example/keys");
    fetched(JWT_KEYS, 1000);
    assert_true(issuers_begin_fetch(issuers, 0, 1000 + PAUSE));
    issuers_fetched(issuers, 0, only_ec, NULL, 1000 + PAUSE);
    assert_int_equal(look_at(JWT_RSA_TOKEN, JWT_NOW, 1001 + PAUSE), TOKEN_REFUSED);
    assert_int_equal(look_at(JWT_EC_TOKEN, JWT_NOW, 1001 + PAUSE), TOKEN_GOOD);
}

int main(void) {
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(a_signed_token_is_believed),
        TEST(nothing_else_is),
        TEST(a_token_with_one_character_changed_is_refused),
        TEST(a_file_without_a_usable_key_is_refused_at_the_start),
        TEST(the_first_token_asks_for_the_keys),
        TEST(an_unknown_key_fetches_them_again_but_not_more_often),
        TEST(keys_that_cannot_be_had_are_no_fault_of_the_token),
        TEST(old_keys_are_used_while_new_ones_are_fetched),
        TEST(a_key_that_the_issuer_took_back_is_forgotten),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
