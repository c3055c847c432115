#include "tls/openssl.h"

#include "base/mem.h"

#include <dlfcn.h>
#include <pthread.h>

/* The names include the ABI version; a library with another version has other functions. */
#define LIBSSL "libssl.so.3"
#define LIBCRYPTO "libcrypto.so.3"

static struct openssl table;
static struct err failed;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static bool open_library(const char *name, void **ret) {
    *ret = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (*ret) return true;
    const char *why = dlerror(); /* NOLINT(concurrency-mt-unsafe): glibc keeps one a thread */
    return err_set(&failed, ERR_UNAVAILABLE,
                   "TLS needs OpenSSL 3, and it cannot be loaded (%s): install the package "
                   "libssl3",
                   why);
}

/* dlsym() returns an object pointer even for a function. POSIX guarantees that copying the bits
 * works. */
static bool openssl_find(void *library, const char *name, void *ret) {
    void *found = dlsym(library, name);
    if (!found)
        return err_set(&failed, ERR_UNAVAILABLE,
                       "the installed OpenSSL has no %s(); weir is "
                       "built for OpenSSL 3.0 and later",
                       name);
    memcpy(ret, &found, sizeof(found));
    return true;
}

static bool find_all(void *ssl, void *crypto) {
#define FIND_SSL(name)                                                                         \
    if (!openssl_find(ssl, #name, &table.name)) return false;
#define FIND_CRYPTO(name)                                                                      \
    if (!openssl_find(crypto, #name, &table.name)) return false;
    OPENSSL_SSL_FUNCTIONS(FIND_SSL)
    OPENSSL_CRYPTO_FUNCTIONS(FIND_CRYPTO)
#undef FIND_SSL
#undef FIND_CRYPTO
    return true;
}

static void tls_openssl_load(void) {
    void *ssl, *crypto;
    bool good =
        open_library(LIBCRYPTO, &crypto) && open_library(LIBSSL, &ssl) && find_all(ssl, crypto);
    (void)good; /* the result is in `failed` */
}

bool openssl_load(const struct openssl **ret, struct err *e) {
    pthread_once(&once, tls_openssl_load);
    if (failed.code != ERR_NONE) {
        *e = failed;
        return false;
    }
    *ret = &table;
    return true;
}

const struct openssl *openssl_loaded(void) {
    return &table;
}
