#include "wire/sigv4.h"

#include <assert.h>
#include <nettle/hmac.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#define ALGORITHM "AWS4-HMAC-SHA256"
#define DATE_BYTES 8         /* of a time, the day */
#define SECRET_MAX_BYTES 256 /* longer ones are not in use */
#define CANONICAL_BYTES (64 * KIB)
#define UNRESERVED "-_.~"

void sigv4_time(int64_t unix_s, char ret[SIGV4_TIME_BYTES]) {
    time_t moment = (time_t)unix_s;
    struct tm tm;
    gmtime_r(&moment, &tm);
    if (strftime(ret, SIGV4_TIME_BYTES, "%Y%m%dT%H%M%SZ", &tm) != SIGV4_TIME_BYTES - 1)
        memcpy(ret, "19700101T000000Z", SIGV4_TIME_BYTES); /* a year without four digits */
}

/* --- the canonical request ---------------------------------------------------------------- */

bool sigv4_append_path(struct buf *out, struct str path) {
    return buf_append_percent(out, path, UNRESERVED "/");
}

static int compare_pairs(const void *a, const void *b) {
    const struct sigv4_pair *left = a, *right = b;
    int names = str_compare(left->name, right->name);
    return names ? names : str_compare(left->value, right->value);
}

static void sort(const struct sigv4_pair *pairs, size_t count,
                 struct sigv4_pair ret[SIGV4_PAIRS_MAX]) {
    assert(count <= SIGV4_PAIRS_MAX);
    if (count) memcpy(ret, pairs, count * sizeof(*ret));
    qsort(ret, count, sizeof(*ret), compare_pairs);
}

bool sigv4_append_query(struct buf *out, const struct sigv4_pair *query, size_t count) {
    struct sigv4_pair sorted[SIGV4_PAIRS_MAX];
    sort(query, count, sorted);
    for (size_t i = 0; i < count; i++) {
        if (i) buf_append_byte(out, '&');
        buf_append_percent(out, sorted[i].name, UNRESERVED);
        buf_append_byte(out, '=');
        buf_append_percent(out, sorted[i].value, UNRESERVED);
    }
    return buf_ok(out);
}

/* Without spaces at the ends, and with one where there are several. */
static void append_value(struct buf *out, struct str value) {
    value = str_trim(value);
    for (size_t i = 0; i < value.len; i++) {
        bool again = value.at[i] == ' ' && value.at[i - 1] == ' '; /* the first is none */
        if (!again) buf_append_byte(out, value.at[i]);
    }
}

static void sigv4_append_names(struct buf *out, const struct sigv4_pair *sorted, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (i) buf_append_byte(out, ';');
        buf_append(out, sorted[i].name);
    }
}

bool sigv4_canonical(const struct sigv4_request *request, struct buf *out) {
    struct sigv4_pair sorted[SIGV4_PAIRS_MAX];
    sort(request->headers, request->header_count, sorted);
    buf_append(out, request->method);
    buf_append_byte(out, '\n');
    buf_append(out, request->path);
    buf_append_byte(out, '\n');
    sigv4_append_query(out, request->query, request->query_count);
    buf_append_byte(out, '\n');
    for (size_t i = 0; i < request->header_count; i++) {
        buf_append(out, sorted[i].name);
        buf_append_byte(out, ':');
        append_value(out, sorted[i].value);
        buf_append_byte(out, '\n');
    }
    buf_append_byte(out, '\n');
    sigv4_append_names(out, sorted, request->header_count);
    buf_append_byte(out, '\n');
    buf_append(out, request->body_sum);
    return buf_ok(out);
}

/* --- the signature ------------------------------------------------------------------------ */

static void append_scope(const struct sigv4_key *key, const char *time, struct buf *out) {
    buf_append(out, str_head(str_from(time), DATE_BYTES));
    buf_append_byte(out, '/');
    buf_append(out, key->region);
    buf_append_byte(out, '/');
    buf_append(out, key->service);
    buf_append(out, STR("/aws4_request"));
}

bool sigv4_string_to_sign(const struct sigv4_key *key, const char *time, struct str canonical,
                          struct buf *out) {
    uint8_t digest[DIGEST_BYTES];
    char digits[DIGEST_DIGITS];
    digest_text(canonical, digest);
    digest_digits(digest, DIGEST_DIGITS, digits);
    buf_append(out, STR(ALGORITHM "\n"));
    buf_append(out, str_from(time));
    buf_append_byte(out, '\n');
    append_scope(key, time, out);
    buf_append_byte(out, '\n');
    buf_append(out, str_of(digits, DIGEST_DIGITS));
    return buf_ok(out);
}

static void mac(struct str key, struct str text, uint8_t ret[DIGEST_BYTES]) {
    struct hmac_sha256_ctx context;
    hmac_sha256_set_key(&context, key.len, (const uint8_t *)key.at);
    hmac_sha256_update(&context, text.len, (const uint8_t *)text.at);
    hmac_sha256_digest(&context, DIGEST_BYTES, ret);
}

static void sigv4_signature(const struct sigv4_key *key, const char *time, struct str to_sign,
                            char ret[DIGEST_DIGITS]) {
    char secret[SECRET_MAX_BYTES + 4] = "AWS4";
    uint8_t chain[DIGEST_BYTES];
    struct str current = str_of(chain, DIGEST_BYTES),
               used = str_head(key->secret, SECRET_MAX_BYTES);
    memcpy(secret + 4, used.at, used.len);
    mac(str_of(secret, used.len + 4), str_of(time, DATE_BYTES), chain);
    mac(current, key->region, chain);
    mac(current, key->service, chain);
    mac(current, STR("aws4_request"), chain);
    mac(current, to_sign, chain);
    digest_digits(chain, DIGEST_DIGITS, ret);
    explicit_bzero(secret, sizeof(secret));
}

bool sigv4_authorize(const struct sigv4_key *key, const char *time,
                     const struct sigv4_request *request, struct buf *out) {
    struct sigv4_pair sorted[SIGV4_PAIRS_MAX];
    struct buf canonical, to_sign;
    char signature[DIGEST_DIGITS];
    buf_init(&canonical, CANONICAL_BYTES);
    buf_init(&to_sign, 4 * KIB);
    bool good = sigv4_canonical(request, &canonical) &&
                sigv4_string_to_sign(key, time, buf_str(&canonical), &to_sign);
    if (good) sigv4_signature(key, time, buf_str(&to_sign), signature);
    buf_done(&canonical);
    buf_done(&to_sign);
    if (!good) return false;
    sort(request->headers, request->header_count, sorted);
    buf_append(out, STR(ALGORITHM " Credential="));
    buf_append(out, key->access);
    buf_append_byte(out, '/');
    append_scope(key, time, out);
    buf_append(out, STR(", SignedHeaders="));
    sigv4_append_names(out, sorted, request->header_count);
    buf_append(out, STR(", Signature="));
    buf_append(out, str_of(signature, DIGEST_DIGITS));
    return buf_ok(out);
}
