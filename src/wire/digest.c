#include "wire/digest.h"

#include <nettle/sha2.h>

void digest_text(struct str text, uint8_t ret[DIGEST_BYTES]) {
    struct sha256_ctx hash;
    sha256_init(&hash);
    sha256_update(&hash, text.len, (const uint8_t *)text.at);
    sha256_digest(&hash, DIGEST_BYTES, ret);
}

void digest_parts(const struct str *parts, size_t count, uint8_t ret[DIGEST_BYTES]) {
    struct sha256_ctx hash;
    sha256_init(&hash);
    for (size_t i = 0; i < count; i++) {
        uint64_t len = parts[i].len;
        sha256_update(&hash, sizeof(len), (const uint8_t *)&len);
        sha256_update(&hash, parts[i].len, (const uint8_t *)parts[i].at);
    }
    sha256_digest(&hash, DIGEST_BYTES, ret);
}

void digest_digits(const uint8_t digest[DIGEST_BYTES], size_t count, char *ret) {
    for (size_t i = 0; i < count; i++)
        ret[i] = "0123456789abcdef"[digest[i / 2] >> (i % 2 ? 0 : 4) & 15];
}
