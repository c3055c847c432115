#include "contract/nimi/random_token.h"

#include "wire/base64.h"
#include "wire/digest.h"

#include <stdlib.h>
#include <sys/random.h>

void random_token_new(char ret[static RANDOM_TOKEN_BYTES + 1]) {
    char bytes[32];
    struct buf text = {.at = ret, .room = RANDOM_TOKEN_BYTES, .max_bytes = RANDOM_TOKEN_BYTES};
    ssize_t got = getrandom(bytes, sizeof(bytes), 0);
    if (got != (ssize_t)sizeof(bytes)) abort(); /* the kernel has no randomness to give */
    base64_encode(&text, str_of(bytes, sizeof(bytes)), BASE64_URL, BASE64_UNPADDED);
    ret[RANDOM_TOKEN_BYTES] = '\0';
    explicit_bzero(bytes, sizeof(bytes));
}

void random_token_digest(struct str token, uint8_t ret[static RANDOM_TOKEN_DIGEST_BYTES]) {
    digest_text(token, ret);
}
