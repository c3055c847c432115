#include "contract/nimi/job/job_key.h"

#include "base/units.h"
#include "wire/digest.h"

#include <assert.h>
#include <nettle/sha2.h>
#include <stdio.h>

_Static_assert(SHA256_DIGEST_SIZE == CLAIM_PRINT_BYTES, "a fingerprint is a SHA-256");

static size_t chars_of(struct str text) {
    size_t chars = 0;
    for (size_t i = 0; i < text.len; i++) chars += ((unsigned char)text.at[i] & 0xC0) != 0x80;
    return chars;
}

/* Hash the length too, so that "ab", "c" differs from "a", "bc". */
static void digest_str(struct sha256_ctx *hash, struct str text) {
    char len[24];
    int digits = snprintf(len, sizeof(len), "%zu:", text.len);
    sha256_update(hash, (size_t)digits, (const uint8_t *)len);
    if (text.len) sha256_update(hash, text.len, (const uint8_t *)text.at);
}

static void spell_key(const struct nimi_submit_scenario_job_request *request, struct str key,
                      struct job_key *ret) {
    uint8_t digest[SHA256_DIGEST_SIZE];
    struct sha256_ctx hash;
    const char type = (char)request->scenario_type;
    char *at = ret->spelled;
    sha256_init(&hash);
    digest_str(&hash, str_of(&type, 1));
    digest_str(&hash, request->head->model_id);
    digest_str(&hash, key);
    sha256_digest(&hash, sizeof(digest), digest);
    at += snprintf(at, sizeof(ret->spelled), "%s", JOB_KEY_HEAD);
    digest_digits(digest, DIGEST_DIGITS, at);
    ret->key = str_of(ret->spelled, (size_t)(at - ret->spelled) + DIGEST_DIGITS);
}

/* Fingerprint the request without the ids and labels of this one call. */
static void print_request(const struct nimi_submit_scenario_job_request *request,
                          struct job_key *ret) {
    struct nimi_submit_scenario_job_request asked = *request;
    struct buf bytes;
    asked.request_id = asked.idempotency_key = STR_EMPTY;
    asked.labels_count = 0;
    buf_init(&bytes, pb_encoded_len(&nimi_submit_scenario_job_request_table, &asked));
    bool fits = pb_encode(&nimi_submit_scenario_job_request_table, &asked, &bytes);
    assert(fits); /* it has the length that was found */
    (void)fits;
    digest_text(buf_str(&bytes), ret->printed);
    buf_done(&bytes);
    ret->print = str_of(ret->printed, sizeof(ret->printed));
}

bool job_key_read(const struct nimi_submit_scenario_job_request *request,
                  const struct envelope *envelope, struct job_key *ret, struct fault *fault) {
    struct str key = request->idempotency_key;
    ret->key = ret->print = STR_EMPTY;
    if (chars_of(key) > JOB_KEY_MAX_CHARS)
        return fault_set(fault, NIMI_AI_MEDIA_SPEC_INVALID,
                         "idempotency_key has more than %d characters", JOB_KEY_MAX_CHARS);
    if (key.len == 0) key = envelope->idempotency_key;
    if (key.len == 0) return true;
    spell_key(request, key, ret);
    print_request(request, ret);
    return true;
}
