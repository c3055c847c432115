#include "tls/public_key.h"

#include "base/mem.h"
#include "tls/openssl.h"

#include <openssl/core_names.h>
#include <openssl/ec.h>
#include <openssl/evp.h>
#include <stdlib.h>

#define COORDINATE_BYTES 32
#define NUMBER_MAX_BYTES 1024

struct public_key {
    EVP_PKEY *key;
    bool curve;
};

bool public_key_need(struct err *e) {
    const struct openssl *loaded;
    return openssl_load(&loaded, e);
}

/* --- a key from its numbers --------------------------------------------------------------- */

static struct public_key *public_key_make(const char *type, OSSL_PARAM *numbers, bool curve) {
    const struct openssl *ssl = openssl_loaded();
    EVP_PKEY_CTX *context = ssl->EVP_PKEY_CTX_new_from_name(NULL, type, NULL);
    EVP_PKEY *made = NULL;
    bool good = context && ssl->EVP_PKEY_fromdata_init(context) == 1 &&
                ssl->EVP_PKEY_fromdata(context, &made, EVP_PKEY_PUBLIC_KEY, numbers) == 1;
    ssl->EVP_PKEY_CTX_free(context);
    ssl->ERR_clear_error();
    if (!good) return NULL;
    struct public_key *key = MEM_NEW(struct public_key);
    key->key = made;
    key->curve = curve;
    return key;
}

/* OpenSSL wants numbers in the machine's order of bytes, which is little-endian here. */
static void reverse(struct str from, unsigned char *ret) {
    for (size_t i = 0; i < from.len; i++) ret[i] = (unsigned char)from.at[from.len - 1 - i];
}

struct public_key *public_key_rsa(struct str modulus, struct str exponent) {
    unsigned char n[NUMBER_MAX_BYTES], e[16];
    if (modulus.len == 0 || modulus.len > sizeof(n) || exponent.len == 0 ||
        exponent.len > sizeof(e))
        return NULL;
    reverse(modulus, n);
    reverse(exponent, e);
    OSSL_PARAM numbers[] = {OSSL_PARAM_BN(OSSL_PKEY_PARAM_RSA_N, n, modulus.len),
                            OSSL_PARAM_BN(OSSL_PKEY_PARAM_RSA_E, e, exponent.len),
                            OSSL_PARAM_END};
    return public_key_make("RSA", numbers, false);
}

struct public_key *public_key_p256(struct str x, struct str y) {
    unsigned char point[1 + 2 * COORDINATE_BYTES] = {POINT_CONVERSION_UNCOMPRESSED};
    char group[] = "prime256v1";
    if (x.len != COORDINATE_BYTES || y.len != COORDINATE_BYTES) return NULL;
    memcpy(point + 1, x.at, x.len);
    memcpy(point + 1 + COORDINATE_BYTES, y.at, y.len);
    OSSL_PARAM numbers[] = {
        OSSL_PARAM_utf8_string(OSSL_PKEY_PARAM_GROUP_NAME, group, sizeof(group) - 1),
        OSSL_PARAM_octet_string(OSSL_PKEY_PARAM_PUB_KEY, point, sizeof(point)), OSSL_PARAM_END};
    return public_key_make("EC", numbers, true);
}

void public_key_free(struct public_key *key) {
    if (!key) return;
    openssl_loaded()->EVP_PKEY_free(key->key);
    free(key);
}

/* --- signatures --------------------------------------------------------------------------- */

#define DER_MAX_BYTES (2 + 2 * (2 + 1 + COORDINATE_BYTES))

/* Append a number as a DER INTEGER: the fewest bytes that do not look negative. */
static size_t put_integer(unsigned char *out, struct str number) {
    size_t at = 0;
    while (number.len > 1 && number.at[0] == '\0') number = str_skip(number, 1);
    bool negative = (unsigned char)number.at[0] & 0x80u;
    out[at++] = 0x02;
    out[at++] = (unsigned char)(number.len + negative);
    if (negative) out[at++] = 0;
    memcpy(out + at, number.at, number.len);
    return at + number.len;
}

/* r and s as OpenSSL wants them: SEQUENCE { INTEGER r, INTEGER s }. */
static size_t put_der(struct str signature, unsigned char ret[DER_MAX_BYTES]) {
    size_t len = put_integer(ret + 2, str_head(signature, COORDINATE_BYTES));
    len += put_integer(ret + 2 + len, str_skip(signature, COORDINATE_BYTES));
    ret[0] = 0x30;
    ret[1] = (unsigned char)len;
    return 2 + len;
}

static bool verify(const struct public_key *key, struct str text, const unsigned char *bytes,
                   size_t len) {
    const struct openssl *ssl = openssl_loaded();
    EVP_MD_CTX *context = ssl->EVP_MD_CTX_new();
    bool good =
        context &&
        ssl->EVP_DigestVerifyInit(context, NULL, ssl->EVP_sha256(), NULL, key->key) == 1 &&
        ssl->EVP_DigestVerify(context, bytes, len, (const unsigned char *)text.at, text.len) ==
            1;
    ssl->EVP_MD_CTX_free(context);
    ssl->ERR_clear_error();
    return good;
}

bool public_key_signed(const struct public_key *key, struct str text, struct str signature) {
    unsigned char der[DER_MAX_BYTES];
    if (!key->curve)
        return verify(key, text, (const unsigned char *)signature.at, signature.len);
    if (signature.len != (size_t)2 * COORDINATE_BYTES) return false;
    return verify(key, text, der, put_der(signature, der));
}
