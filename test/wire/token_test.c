#include "wire/token.h"

#include "helper/assert_str.h"

#include "wire/base64.h"

#include <nettle/hmac.h>
#include <stdio.h>

#define KEY "test-signing-key-32bytes-long!!!"
#define MINTED 1700000000

/* Dated, undated, undated signed over the payload, dated signed over the payload. */
#define P64 "dXNlci1hYmMtMTIzOndzLWRlZi00NTY6MTcwMDAwMDAwMA"
#define P64_UNDATED "dXNlci1hYmMtMTIzOndzLWRlZi00NTY"
#define MAC_DATED "7b91d1e98b65c4cea8638123c15d1d04c9cc5f0af6a825ab8949c8529b432597"
#define MAC_UNDATED "b405a8d20fb1029552bdbc3421df74a0afcc47906382da0a93bf809cf7f144f1"
#define MAC_BARE "e7f95f2726ff8086e3d0b99aed7bb3c967ff8f3295e08b04928dcc8544c26ef9"
#define MAC_DATED_BARE "d3428e323fed543f39c592c7c7ec68be00c8b61ecc6f6a913f80c1416fb9fe42"

static struct token_keys *keys_of(enum token_policy policy, const char *first,
                                  const char *second) {
    struct token_keys *keys = token_keys_new(policy, TOKEN_WINDOW_S);
    struct err e;
    bool trimmed;
    assert_true(token_keys_add(keys, str_from(first), &trimmed, &e));
    if (second) assert_true(token_keys_add(keys, str_from(second), &trimmed, &e));
    return keys;
}

static enum token_verdict verdict(const struct token_keys *keys, struct str token,
                                  int64_t now_unix_s) {
    char room[TOKEN_PAYLOAD_BYTES];
    struct token ret;
    struct str copy = exact_copy(token);
    enum token_verdict verdict = token_verify(keys, copy, now_unix_s, room, &ret);
    free((void *)copy.at);
    return verdict;
}

static enum token_verdict verdict_by(enum token_policy policy, const char *token) {
    struct token_keys *keys = keys_of(policy, KEY, NULL);
    enum token_verdict found = verdict(keys, str_from(token), MINTED);
    token_keys_free(keys);
    return found;
}

/* Whether a payload is believed when it is signed as it should be, also one that
 * token_mint() would not write. */
static enum token_verdict verdict_of_payload(enum token_policy policy, struct str payload) {
    struct token_keys *keys = keys_of(policy, KEY, NULL);
    struct hmac_sha256_ctx hmac;
    uint8_t mac[SHA256_DIGEST_SIZE];
    struct buf token;
    buf_init(&token, 4 * KIB);
    base64_encode(&token, payload, BASE64_URL, BASE64_UNPADDED);
    hmac_sha256_set_key(&hmac, strlen(KEY), (const uint8_t *)KEY);
    hmac_sha256_update(&hmac, token.len, (const uint8_t *)buf_str(&token).at);
    hmac_sha256_digest(&hmac, sizeof(mac), mac);
    buf_append_byte(&token, '.');
    for (size_t i = 0; i < sizeof(mac); i++) buf_printf(&token, "%02x", mac[i]);
    enum token_verdict found = verdict(keys, buf_str(&token), MINTED);
    buf_done(&token);
    token_keys_free(keys);
    return found;
}

static const struct {
    const char *key, *user, *workspace;
    int64_t unix_s;
    const char *token;
} vectors[] = {
    {KEY, "user-abc-123", "ws-def-456", MINTED, P64 "." MAC_DATED},
    {"weir-dev-key", "3f2b8c1e-6a0d-4c59-9b7e-1d2f3a4b5c6d",
     "9a8b7c6d-5e4f-4a3b-8c2d-1e0f9a8b7c6d", 1767225600,
     "M2YyYjhjMWUtNmEwZC00YzU5LTliN2UtMWQyZjNhNGI1YzZkOjlhOGI3YzZkLTVlNGYtNGEzYi04YzJkLTFlMGY5"
     "YThiN2M2ZDoxNzY3MjI1NjAw.4ec30d1a373122129d2dddaedb4c0c9b2c1e426764f2704f385fc81fd7df1fb"
     "b"},
    {"clé-∆-key", "用户-1", "ws~2", 1735689599,
     "55So5oi3LTE6d3N-MjoxNzM1Njg5NTk5."
     "ca6b4978bc063eaf4fc2541fe9c4bfa1592894dbdb954a4cbb6bf81e0f23497e"},
};

static void the_known_vectors_are_minted(void **state) {
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(vectors); i++) {
        struct token_keys *keys = keys_of(TOKEN_STRICT, vectors[i].key, NULL);
        struct buf out;
        struct err e;
        buf_init(&out, 512);
        assert_true(token_mint(keys, str_from(vectors[i].user), str_from(vectors[i].workspace),
                               vectors[i].unix_s, &out, &e));
        assert_str(buf_str(&out), vectors[i].token);
        buf_done(&out);
        token_keys_free(keys);
    }
}

static void the_known_vectors_are_believed(void **state) {
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(vectors); i++) {
        for (int policy = TOKEN_LENIENT; policy <= TOKEN_STRICT; policy++) {
            struct token_keys *keys = keys_of((enum token_policy)policy, vectors[i].key, NULL);
            char room[TOKEN_PAYLOAD_BYTES];
            struct token token;
            struct err e;
            assert_true(token_check(keys, str_from(vectors[i].token), vectors[i].unix_s, room,
                                    &token, &e));
            assert_str(token.user, vectors[i].user);
            assert_str(token.workspace, vectors[i].workspace);
            assert_true(token.dated);
            assert_int_equal(token.unix_s, vectors[i].unix_s);
            assert_int_equal(token.key, 0);
            token_keys_free(keys);
        }
    }
}

/* K1: vectors 1u, 1s and 1r. */
static void the_older_forms_are_believed_unless_strict(void **state) {
    (void)state;
    static const char *const older[] = {
        P64_UNDATED "." MAC_UNDATED,
        P64_UNDATED "." MAC_BARE,
        P64 "." MAC_DATED_BARE,
    };
    for (size_t i = 0; i < ARRAY_LEN(older); i++) {
        assert_int_equal(verdict_by(TOKEN_LENIENT, older[i]), TOKEN_VALID);
        assert_true(verdict_by(TOKEN_STRICT, older[i]) != TOKEN_VALID);
    }
    assert_int_equal(verdict_by(TOKEN_STRICT, older[0]), TOKEN_MALFORMED);
    assert_int_equal(verdict_by(TOKEN_STRICT, older[1]), TOKEN_FORGED);
    assert_int_equal(verdict_by(TOKEN_STRICT, older[2]), TOKEN_FORGED);
    /* A signature alone names no subject. */
    assert_int_equal(verdict_by(TOKEN_LENIENT, MAC_BARE), TOKEN_MALFORMED);
    assert_int_equal(verdict_by(TOKEN_LENIENT, "." MAC_BARE), TOKEN_FORGED);
}

static void an_undated_token_says_so_and_does_not_expire(void **state) {
    (void)state;
    struct token_keys *keys = keys_of(TOKEN_LENIENT, KEY, NULL);
    char room[TOKEN_PAYLOAD_BYTES];
    struct token token;
    struct err e;
    assert_true(
        token_check(keys, STR(P64_UNDATED "." MAC_UNDATED), INT64_MAX, room, &token, &e));
    assert_false(token.dated);
    assert_str(token.user, "user-abc-123");
    assert_str(token.workspace, "ws-def-456");
    token_keys_free(keys);
}

static void the_signature_may_be_hex_in_either_case_or_base64url(void **state) {
    (void)state;
    char upper[] = P64 "." MAC_DATED;
    for (char *c = strchr(upper, '.'); *c; c++) {
        if (*c >= 'a' && *c <= 'f') *c = (char)(*c - 32);
    }
    const char *base64 = P64 ".e5HR6YtlxM6oY4EjwV0dBMnMXwr2qCWriUnIUptDJZc";
    for (int policy = TOKEN_LENIENT; policy <= TOKEN_STRICT; policy++) {
        assert_int_equal(verdict_by((enum token_policy)policy, upper), TOKEN_VALID);
        assert_int_equal(verdict_by((enum token_policy)policy, base64), TOKEN_VALID);
    }
}

/* A13: inside the window a token may be used again by any caller; after it, by none. */
static void a_token_is_believed_for_five_minutes_in_both_directions(void **state) {
    (void)state;
    struct token_keys *keys = keys_of(TOKEN_LENIENT, KEY, NULL);
    struct str token = STR(P64 "." MAC_DATED);
    for (int64_t off = -302; off <= 302; off++) {
        bool inside = off >= -300 && off <= 300;
        assert_int_equal(verdict(keys, token, MINTED + off),
                         inside ? TOKEN_VALID : TOKEN_EXPIRED);
    }
    assert_int_equal(verdict(keys, token, INT64_MAX), TOKEN_EXPIRED);
    assert_int_equal(verdict(keys, token, INT64_MIN), TOKEN_EXPIRED);
    assert_int_equal(verdict(keys, token, MINTED), TOKEN_VALID);
    token_keys_free(keys);
}

static void the_window_can_be_walked_down_to_zero(void **state) {
    (void)state;
    for (int64_t window_s = 0; window_s <= 3; window_s++) {
        struct token_keys *keys = token_keys_new(TOKEN_STRICT, window_s);
        struct err e;
        bool trimmed;
        assert_true(token_keys_add(keys, STR(KEY), &trimmed, &e));
        for (int64_t off = -4; off <= 4; off++) {
            bool inside = off >= -window_s && off <= window_s;
            assert_int_equal(verdict(keys, STR(P64 "." MAC_DATED), MINTED + off),
                             inside ? TOKEN_VALID : TOKEN_EXPIRED);
        }
        token_keys_free(keys);
    }
}

static void a_malformed_token_is_refused(void **state) {
    (void)state;
    static const char *const tokens[] = {
        "",
        ".",
        "..",
        P64,
        P64 ".",
        "." MAC_DATED,
        P64 "=." MAC_DATED,
        P64 "==." MAC_DATED,
        P64 "." MAC_DATED " ",
        " " P64 "." MAC_DATED,
        P64 "." MAC_DATED ".",
        P64 "." MAC_DATED "." MAC_DATED,
        P64 ".." MAC_DATED,
        P64 "." MAC_DATED "0",
        P64 "." MAC_UNDATED,
        P64_UNDATED "." MAC_DATED,
        P64 ".0x91d1e98b65c4cea8638123c15d1d04c9cc5f0af6a825ab8949c8529b432597",
        P64 ".e5HR6YtlxM6oY4EjwV0dBMnMXwr2qCWriUnIUptDJZc=",
        P64 ".e5HR6YtlxM6oY4EjwV0dBMnMXwr2qCWriUnIUptDJZd",
        MAC_DATED "." P64,
    };
    for (size_t i = 0; i < ARRAY_LEN(tokens); i++) {
        assert_true(verdict_by(TOKEN_LENIENT, tokens[i]) != TOKEN_VALID);
        assert_true(verdict_by(TOKEN_STRICT, tokens[i]) != TOKEN_VALID);
    }
}

/* Signed by the right key, and still not believed. */
static void a_signed_payload_must_name_both_ids_and_a_time(void **state) {
    (void)state;
    static const struct {
        struct str payload;
        enum token_verdict lenient, strict;
    } cases[] = {
        /* clang-format off */
        {STR_INIT("u:w:1700000000"),     TOKEN_VALID,     TOKEN_VALID},
        {STR_INIT("u:w:+1700000000"),    TOKEN_MALFORMED, TOKEN_MALFORMED},
        {STR_INIT("u:w:01700000000"),    TOKEN_MALFORMED, TOKEN_MALFORMED},
        {STR_INIT("u:w:-0"),             TOKEN_MALFORMED, TOKEN_MALFORMED},
        {STR_INIT("u:w:00"),             TOKEN_MALFORMED, TOKEN_MALFORMED},
        {STR_INIT("u:w"),                TOKEN_VALID,     TOKEN_MALFORMED},
        {STR_INIT("u:w:-1"),             TOKEN_EXPIRED,   TOKEN_EXPIRED},
        {STR_INIT("u:w:-9223372036854775808"), TOKEN_EXPIRED, TOKEN_EXPIRED},
        {STR_INIT("u:w:9223372036854775808"),  TOKEN_MALFORMED, TOKEN_MALFORMED},
        {STR_INIT("u"),                  TOKEN_MALFORMED, TOKEN_MALFORMED},
        {STR_INIT(""),                   TOKEN_MALFORMED, TOKEN_MALFORMED},
        {STR_INIT(":"),                  TOKEN_MALFORMED, TOKEN_MALFORMED},
        {STR_INIT("u:"),                 TOKEN_MALFORMED, TOKEN_MALFORMED},
        {STR_INIT(":w"),                 TOKEN_MALFORMED, TOKEN_MALFORMED},
        {STR_INIT("u::1700000000"),      TOKEN_MALFORMED, TOKEN_MALFORMED},
        {STR_INIT(":w:1700000000"),      TOKEN_MALFORMED, TOKEN_MALFORMED},
        {STR_INIT("u:w:"),               TOKEN_MALFORMED, TOKEN_MALFORMED},
        {STR_INIT("u:w:soon"),           TOKEN_MALFORMED, TOKEN_MALFORMED},
        {STR_INIT("u:w:1.7e9"),          TOKEN_MALFORMED, TOKEN_MALFORMED},
        {STR_INIT("u:w: 1700000000"),    TOKEN_MALFORMED, TOKEN_MALFORMED},
        {STR_INIT("u:w:1700000000:x"),   TOKEN_MALFORMED, TOKEN_MALFORMED},
        {STR_INIT("u:v:w:1700000000"),   TOKEN_MALFORMED, TOKEN_MALFORMED},
        {STR_INIT("u\n:w:1700000000"),   TOKEN_MALFORMED, TOKEN_MALFORMED},
        {STR_INIT("u:w\0:1700000000"),   TOKEN_MALFORMED, TOKEN_MALFORMED},
        {STR_INIT("u\x7F:w:1700000000"), TOKEN_MALFORMED, TOKEN_MALFORMED},
        {STR_INIT("u\xFF:w:1700000000"), TOKEN_MALFORMED, TOKEN_MALFORMED},
        /* clang-format on */
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        assert_int_equal(verdict_of_payload(TOKEN_LENIENT, cases[i].payload), cases[i].lenient);
        assert_int_equal(verdict_of_payload(TOKEN_STRICT, cases[i].payload), cases[i].strict);
    }
}

static void ids_that_would_break_a_payload_are_not_minted(void **state) {
    (void)state;
    static const struct str ids[] = {STR_INIT(""),     STR_INIT("a:b"),  STR_INIT(":"),
                                     STR_INIT("a\nb"), STR_INIT("\0"),   STR_INIT("a\x1F"),
                                     STR_INIT("\x7F"), STR_INIT("\xFF"), STR_INIT("a\xC3")};
    struct token_keys *keys = keys_of(TOKEN_LENIENT, KEY, NULL);
    struct buf out;
    struct err e = {0};
    buf_init(&out, 512);
    for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
        assert_false(token_mint(keys, ids[i], STR("w"), MINTED, &out, &e));
        assert_int_equal(e.code, ERR_INVALID_ARGUMENT);
        assert_false(token_mint(keys, STR("u"), ids[i], MINTED, &out, &e));
        assert_int_equal(e.code, ERR_INVALID_ARGUMENT);
        assert_int_equal(out.len, 0);
    }
    buf_done(&out);
    token_keys_free(keys);
}

static void ids_may_be_long_but_not_endless(void **state) {
    (void)state;
    struct token_keys *keys = keys_of(TOKEN_STRICT, KEY, NULL);
    char id[TOKEN_PAYLOAD_BYTES];
    memset(id, 'x', sizeof(id));
    for (size_t len = 250; len <= 260; len++) {
        struct buf out;
        struct err e;
        buf_init(&out, 4 * KIB);
        bool fits = len <= 256;
        assert_int_equal(token_mint(keys, str_of(id, len), str_of(id, len), MINTED, &out, &e),
                         fits);
        if (fits) assert_int_equal(verdict(keys, buf_str(&out), MINTED), TOKEN_VALID);
        buf_done(&out);
        char payload[300];
        snprintf(payload, sizeof(payload), "%.*s:w:1700000000", (int)len, id);
        assert_int_equal(verdict_of_payload(TOKEN_LENIENT, str_from(payload)),
                         fits ? TOKEN_VALID : TOKEN_MALFORMED);
    }
    char longest[8 * TOKEN_PAYLOAD_BYTES];
    memset(longest, 'A', sizeof(longest));
    memcpy(longest + sizeof(longest) - 65, "." MAC_DATED, 65);
    assert_int_equal(verdict(keys, str_of(longest, sizeof(longest)), MINTED), TOKEN_MALFORMED);
    token_keys_free(keys);
}

static void minting_stops_at_the_limit_of_its_buffer(void **state) {
    (void)state;
    struct token_keys *keys = keys_of(TOKEN_STRICT, KEY, NULL);
    size_t len = strlen(P64 "." MAC_DATED);
    for (size_t limit = 0; limit <= len; limit++) {
        struct buf out;
        struct err e;
        buf_init(&out, limit);
        assert_int_equal(
            token_mint(keys, STR("user-abc-123"), STR("ws-def-456"), MINTED, &out, &e),
            limit == len);
        if (limit < len) assert_int_equal(e.code, ERR_TOO_LARGE);
        buf_done(&out);
    }
    token_keys_free(keys);
}

/* A10, A13 */
static void two_keys_overlap_and_the_withdrawn_one_is_refused(void **state) {
    (void)state;
    struct token_keys *old_only = keys_of(TOKEN_STRICT, "the old key", NULL);
    struct token_keys *both = keys_of(TOKEN_STRICT, "the new key", "the old key");
    struct token_keys *new_only = keys_of(TOKEN_STRICT, "the new key", NULL);
    struct buf old_token, new_token;
    struct err e;
    char room[TOKEN_PAYLOAD_BYTES];
    struct token token;
    buf_init(&old_token, 512);
    buf_init(&new_token, 512);
    assert_true(token_mint(old_only, STR("u"), STR("w"), MINTED, &old_token, &e));
    assert_true(token_mint(both, STR("u"), STR("w"), MINTED, &new_token, &e));

    assert_true(token_check(both, buf_str(&old_token), MINTED, room, &token, &e));
    assert_int_equal(token.key, 1);
    assert_true(token_check(both, buf_str(&new_token), MINTED, room, &token, &e));
    assert_int_equal(token.key, 0);
    assert_int_equal(verdict(new_only, buf_str(&old_token), MINTED), TOKEN_FORGED);
    assert_int_equal(verdict(new_only, buf_str(&new_token), MINTED), TOKEN_VALID);
    assert_int_equal(verdict(old_only, buf_str(&new_token), MINTED), TOKEN_FORGED);
    buf_done(&old_token);
    buf_done(&new_token);
    token_keys_free(old_only);
    token_keys_free(both);
    token_keys_free(new_only);
}

static void keys_lose_the_white_space_around_them(void **state) {
    (void)state;
    struct token_keys *keys = token_keys_new(TOKEN_STRICT, TOKEN_WINDOW_S);
    struct err e;
    bool trimmed = false;
    assert_true(token_keys_add(keys, STR(" " KEY "\r\n"), &trimmed, &e));
    assert_true(trimmed);
    assert_int_equal(verdict(keys, STR(P64 "." MAC_DATED), MINTED), TOKEN_VALID);
    assert_true(token_keys_add(keys, STR("another key"), &trimmed, &e));
    assert_false(trimmed);
    assert_false(token_keys_add(keys, STR(" \n"), &trimmed, &e));
    assert_false(token_keys_add(keys, STR(""), &trimmed, &e));
    assert_int_equal(e.code, ERR_INVALID_ARGUMENT);
    while (token_keys_count(keys) < TOKEN_KEYS_MAX)
        assert_true(token_keys_add(keys, STR("one more"), &trimmed, &e));
    assert_false(token_keys_add(keys, STR("one too many"), &trimmed, &e));
    token_keys_free(keys);
}

static void without_a_key_no_token_is_accepted_and_none_minted(void **state) {
    (void)state;
    struct token_keys *keys = token_keys_new(TOKEN_LENIENT, TOKEN_WINDOW_S);
    struct buf out;
    struct err e;
    buf_init(&out, 256);
    assert_int_equal(verdict(keys, STR(P64 "." MAC_DATED), MINTED), TOKEN_FORGED);
    assert_false(token_mint(keys, STR("u"), STR("w"), MINTED, &out, &e));
    assert_int_equal(e.code, ERR_FAILED_PRECONDITION);
    buf_done(&out);
    token_keys_free(keys);
}

static uint64_t next_random(uint64_t *seed) {
    *seed ^= *seed << 13;
    *seed ^= *seed >> 7;
    *seed ^= *seed << 17;
    return *seed;
}

/* Change a copy of the token somehow; its new length. */
static size_t mutate(char *token, size_t len, size_t room, uint64_t *seed) {
    uint64_t random = next_random(seed);
    size_t at = (size_t)(random >> 32) % len;
    char byte = (char)(random >> 24);
    switch (random % 7) {
    case 0: token[at] = (char)(token[at] ^ 1 << (random >> 8) % 8); return len;
    case 1: token[at] = byte; return len;
    case 2: return at;
    case 3: memmove(token + at, token + at + 1, len - at - 1); return len - 1;
    case 4: token[len] = byte; return len + 1;
    case 5: token[at] = '.'; return len;
    default:
        assert_true(len < room);
        memmove(token + at + 1, token + at, len - at);
        token[at] = byte;
        return len + 1;
    }
}

/* The signature is hex in either case: that a letter of it changed case changes nothing. */
static bool says_the_same(struct str mutant, struct str token) {
    struct str signature, original;
    struct str p64 = str_split(mutant, '.', &signature);
    return str_equal(p64, str_split(token, '.', &original)) &&
           str_equal_nocase(signature, original);
}

/* A2 */
static void a_hundred_thousand_mutants_are_refused(void **state) {
    (void)state;
    static const char *const originals[] = {
        P64 "." MAC_DATED, P64 ".e5HR6YtlxM6oY4EjwV0dBMnMXwr2qCWriUnIUptDJZc",
        P64_UNDATED "." MAC_UNDATED, P64_UNDATED "." MAC_BARE};
    struct token_keys *keys = keys_of(TOKEN_LENIENT, KEY, "another key in force");
    uint64_t seed = 88172645463325252u;
    for (size_t tried = 0; tried < 100000;) {
        struct str original = str_from(originals[tried % ARRAY_LEN(originals)]);
        char room[256], payload[TOKEN_PAYLOAD_BYTES];
        memcpy(room, original.at, original.len);
        size_t len = original.len;
        for (uint64_t changes = next_random(&seed) % 3 + 1; changes > 0 && len > 0; changes--)
            len = mutate(room, len, sizeof(room), &seed);
        struct str mutant = str_of(room, len);
        bool hex = original.len - str_find_byte(original, '.') == 65;
        if (str_equal(mutant, original) || (hex && says_the_same(mutant, original))) continue;
        struct token token;
        if (token_verify(keys, mutant, MINTED, payload, &token) == TOKEN_VALID)
            fail_msg("accepted " STR_FMT, STR_ARG(mutant));
        tried++;
    }
    token_keys_free(keys);
}

/* A2: every single bit, every truncation, every other key of one changed bit. */
static void every_flipped_bit_and_every_truncation_is_refused(void **state) {
    (void)state;
    struct token_keys *keys = keys_of(TOKEN_LENIENT, KEY, NULL);
    struct str original = STR(P64 "." MAC_DATED);
    char room[256];
    for (size_t bit = 0; bit < 8 * original.len; bit++) {
        memcpy(room, original.at, original.len);
        room[bit / 8] = (char)(room[bit / 8] ^ 1 << bit % 8);
        struct str mutant = str_of(room, original.len);
        if (says_the_same(mutant, original)) continue;
        assert_true(verdict(keys, mutant, MINTED) != TOKEN_VALID);
    }
    for (size_t len = 0; len < original.len; len++)
        assert_true(verdict(keys, str_head(original, len), MINTED) != TOKEN_VALID);
    token_keys_free(keys);

    for (size_t bit = 0; bit < 8 * strlen(KEY); bit++) {
        char key[] = KEY;
        key[bit / 8] = (char)(key[bit / 8] ^ 1 << bit % 8);
        keys = keys_of(TOKEN_LENIENT, key, NULL);
        assert_int_equal(verdict(keys, original, MINTED), TOKEN_FORGED);
        token_keys_free(keys);
    }
}

/* A13: what was signed for one workspace opens no other. */
static void a_signature_does_not_fit_another_payload(void **state) {
    (void)state;
    struct token_keys *keys = keys_of(TOKEN_LENIENT, KEY, NULL);
    struct buf token;
    struct err e;
    buf_init(&token, 512);
    assert_true(token_mint(keys, STR("user-abc-123"), STR("ws-other"), MINTED, &token, &e));
    size_t dot = str_find_byte(buf_str(&token), '.');
    memcpy(token.at + dot + 1, MAC_DATED, 64);
    assert_int_equal(verdict(keys, buf_str(&token), MINTED), TOKEN_FORGED);
    buf_done(&token);
    token_keys_free(keys);
}

/* A1 */
static void the_header_is_refused_in_the_words_of_the_contract(void **state) {
    (void)state;
    static const struct {
        struct str value;
        size_t count;
        const char *message; /* NULL: accepted */
    } cases[] = {
        /* clang-format off */
        {STR_INIT(""),               0, "Request unauthenticated with bearer"},
        {STR_INIT(""),               1, "Request unauthenticated with bearer"},
        {STR_INIT("Basic dTpw"),     1, "Request unauthenticated with bearer"},
        {STR_INIT("Bearerx t"),      1, "Request unauthenticated with bearer"},
        {STR_INIT(" Bearer t"),      1, "Request unauthenticated with bearer"},
        {STR_INIT("Bearer"),         1, "Bad authorization string"},
        {STR_INIT("sometoken"),      1, "Bad authorization string"},
        {STR_INIT("Bearer\tt"),      1, "Bad authorization string"},
        {STR_INIT("Bearer t"),       2, "Bad authorization string"},
        {STR_INIT("Bearer "),        1, "empty bearer token"},
        {STR_INIT("Bearer t"),       1, NULL},
        {STR_INIT("bearer t"),       1, NULL},
        {STR_INIT("BEARER t"),       1, NULL},
        /* clang-format on */
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct str token;
        struct err e = {0};
        bool fine = bearer_token_from_header(cases[i].value, cases[i].count, &token, &e);
        assert_int_equal(fine, cases[i].message == NULL);
        if (fine) {
            assert_str(token, "t");
        } else {
            assert_int_equal(e.code, ERR_UNAUTHENTICATED);
            assert_string_equal(e.text, cases[i].message);
        }
    }
}

static void a_bearer_token_is_found_without_the_blanks_around_it(void **state) {
    (void)state;
    static const char *const right[] = {"Bearer t", "bearer t", "BEARER   t  ", " Bearer t"};
    static const char *const wrong[] = {"",  "Bearer",  "Bearer ", "Bearer   ", "Bearert t",
                                        "t", "Basic t", " ",       "Bearer\tt"};
    for (size_t i = 0; i < ARRAY_LEN(right); i++)
        assert_str(bearer_token(str_from(right[i])), "t");
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
        assert_null(bearer_token(str_from(wrong[i])).at);
    assert_null(bearer_token((struct str){NULL, 0}).at);
    assert_str(bearer_token(STR("Bearer a b")), "a b");
}

/* A1: a space too many before or after the token makes it another token. */
static void a_header_says_who_calls(void **state) {
    (void)state;
    struct token_keys *keys = keys_of(TOKEN_STRICT, KEY, NULL);
    char room[TOKEN_PAYLOAD_BYTES];
    struct token token;
    struct err e;
    assert_true(
        token_from_header(keys, STR("bearer " P64 "." MAC_DATED), 1, MINTED, room, &token, &e));
    assert_str(token.user, "user-abc-123");
    assert_str(token.workspace, "ws-def-456");
    static const struct str wrong[] = {STR_INIT("Bearer " P64 "." MAC_DATED " "),
                                       STR_INIT("Bearer  " P64 "." MAC_DATED),
                                       STR_INIT("Bearer t")};
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
        assert_false(token_from_header(keys, wrong[i], 1, MINTED, room, &token, &e));
        assert_int_equal(e.code, ERR_UNAUTHENTICATED);
        assert_string_equal(e.text, "invalid bearer token");
    }
    assert_false(token_from_header(keys, STR("Bearer " P64 "." MAC_DATED), 1, MINTED + 301,
                                   room, &token, &e));
    assert_string_equal(e.text, "invalid bearer token");
    token_keys_free(keys);
}

static void each_verdict_has_a_name_for_the_audit(void **state) {
    (void)state;
    assert_string_equal(token_verdict_name(TOKEN_VALID), "valid");
    assert_string_equal(token_verdict_name(TOKEN_MALFORMED), "malformed");
    assert_string_equal(token_verdict_name(TOKEN_FORGED), "forged");
    assert_string_equal(token_verdict_name(TOKEN_EXPIRED), "expired");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_known_vectors_are_minted),
        cmocka_unit_test(the_known_vectors_are_believed),
        cmocka_unit_test(the_older_forms_are_believed_unless_strict),
        cmocka_unit_test(an_undated_token_says_so_and_does_not_expire),
        cmocka_unit_test(the_signature_may_be_hex_in_either_case_or_base64url),
        cmocka_unit_test(a_token_is_believed_for_five_minutes_in_both_directions),
        cmocka_unit_test(the_window_can_be_walked_down_to_zero),
        cmocka_unit_test(a_malformed_token_is_refused),
        cmocka_unit_test(a_signed_payload_must_name_both_ids_and_a_time),
        cmocka_unit_test(ids_that_would_break_a_payload_are_not_minted),
        cmocka_unit_test(ids_may_be_long_but_not_endless),
        cmocka_unit_test(minting_stops_at_the_limit_of_its_buffer),
        cmocka_unit_test(two_keys_overlap_and_the_withdrawn_one_is_refused),
        cmocka_unit_test(keys_lose_the_white_space_around_them),
        cmocka_unit_test(without_a_key_no_token_is_accepted_and_none_minted),
        cmocka_unit_test(a_hundred_thousand_mutants_are_refused),
        cmocka_unit_test(every_flipped_bit_and_every_truncation_is_refused),
        cmocka_unit_test(a_signature_does_not_fit_another_payload),
        cmocka_unit_test(the_header_is_refused_in_the_words_of_the_contract),
        cmocka_unit_test(a_bearer_token_is_found_without_the_blanks_around_it),
        cmocka_unit_test(a_header_says_who_calls),
        cmocka_unit_test(each_verdict_has_a_name_for_the_audit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
