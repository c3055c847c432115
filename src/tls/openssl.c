#include "tls/openssl.h"

#include "base/shared_library.h"

static struct openssl table;

#define SYMBOL(name) SHARED_SYMBOL(struct openssl, name),
static const struct shared_symbol ssl_symbols[] = {OPENSSL_SSL_FUNCTIONS(SYMBOL)};
static const struct shared_symbol crypto_symbols[] = {OPENSSL_CRYPTO_FUNCTIONS(SYMBOL)};

#define OPENSSL(name, list)                                                                    \
    {                                                                                          \
        .file = (name), .title = "OpenSSL", .needs = "TLS needs OpenSSL 3",                    \
        .package = "libssl3", .version = "weir is built for OpenSSL 3.0 and later",            \
        .code = ERR_UNAVAILABLE, .symbols = (list), .symbols_count = ARRAY_LEN(list),          \
        .table = &table,                                                                       \
    }

static struct shared_library crypto = OPENSSL("libcrypto.so.3", crypto_symbols);
static struct shared_library ssl = OPENSSL("libssl.so.3", ssl_symbols);

bool openssl_load(const struct openssl **ret, struct err *e) {
    *ret = &table;
    return shared_library_load(&crypto, e) && shared_library_load(&ssl, e);
}

const struct openssl *openssl_loaded(void) {
    return &table;
}
