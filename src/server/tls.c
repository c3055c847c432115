#include "server/tls.h"

#include "base/mem.h"
#include "tls/openssl.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>

/* TLS 1.2 only; all ciphers of TLS 1.3 are acceptable. */
#define CIPHERS "ECDHE+AESGCM:ECDHE+CHACHA20"

/* One ticket is enough for a client that reconnects; the default of two is for browsers. */
#define TICKETS 1

struct tls {
    const struct openssl *ssl;
    SSL_CTX *context;
    atomic_uint refs;
};

/* --- certificates ------------------------------------------------------------------------- */

/* The peer sends length-prefixed names in its order of preference; ours decides. */
static int choose_protocol(SSL *state, const unsigned char **ret, unsigned char *ret_len,
                           const unsigned char *names, unsigned len, void *ctx) {
    static const struct str ours[] = {STR_INIT("h2"), STR_INIT("http/1.1")};
    (void)state;
    (void)ctx;
    for (size_t i = 0; i < ARRAY_LEN(ours); i++) {
        for (unsigned at = 0; at < len; at += 1u + names[at]) {
            if (!str_equal(str_of(names + at + 1, names[at]), ours[i])) continue;
            *ret = names + at + 1;
            *ret_len = names[at];
            return SSL_TLSEXT_ERR_OK;
        }
    }
    return SSL_TLSEXT_ERR_ALERT_FATAL;
}

/* By default OpenSSL would prompt on the terminal. */
static int no_password(char *text, int size, int writing, void *ctx) {
    (void)text;
    (void)size;
    (void)writing;
    (void)ctx;
    return 0;
}

static bool tls_refuse(const struct tls *tls, struct str path, const char *what,
                       struct err *e) {
    const char *reason = tls->ssl->ERR_reason_error_string(tls->ssl->ERR_peek_error());
    return err_set(e, ERR_INVALID_ARGUMENT, "'" STR_FMT "' %s%s%s%s", STR_ARG(path), what,
                   reason ? " (" : "", reason ? reason : "", reason ? ")" : "");
}

static bool use_certificate(struct tls *tls, const char *path, struct err *e) {
    return tls->ssl->SSL_CTX_use_certificate_chain_file(tls->context, path) == 1 ||
           tls_refuse(tls, str_from(path), "holds no certificate chain in PEM form", e);
}

static bool use_key(struct tls *tls, const char *path, struct err *e) {
    if (tls->ssl->SSL_CTX_use_PrivateKey_file(tls->context, path, SSL_FILETYPE_PEM) == 1)
        return tls->ssl->SSL_CTX_check_private_key(tls->context) == 1 ||
               tls_refuse(tls, str_from(path), "is the key of another certificate", e);
    return tls_refuse(tls, str_from(path),
                      "holds no private key in PEM form that fits the certificate and has no "
                      "password",
                      e);
}

/* Require peers to present a certificate signed by one of these authorities. */
static bool use_authorities(struct tls *tls, const char *path, struct err *e) {
    if (tls->ssl->SSL_CTX_load_verify_file(tls->context, path) != 1)
        return tls_refuse(tls, str_from(path), "holds no certificates in PEM form", e);
    tls->ssl->SSL_CTX_set_client_CA_list(tls->context, tls->ssl->SSL_load_client_CA_file(path));
    tls->ssl->SSL_CTX_set_verify(tls->context,
                                 SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    return true;
}

static bool use_file(struct tls *tls, struct str path,
                     bool use(struct tls *tls, const char *path, struct err *e),
                     struct err *e) {
    char name[4096];
    if (path.len >= sizeof(name))
        return err_set(e, ERR_INVALID_ARGUMENT, "a path of %zu bytes is too long", path.len);
    memcpy(name, path.at, path.len);
    name[path.len] = '\0';
    if (access(name, R_OK) != 0)
        return err_set(e, ERR_INVALID_ARGUMENT, "cannot read '%s': %s", name,
                       strerrordesc_np(errno));
    tls->ssl->ERR_clear_error();
    bool good = use(tls, name, e);
    tls->ssl->ERR_clear_error();
    return good;
}

static bool use_setting(struct tls *tls, const char *setting, struct str path,
                        bool use(struct tls *tls, const char *path, struct err *e),
                        struct err *e) {
    return use_file(tls, path, use, e) || err_add(e, "%s", setting);
}

static bool make_context(struct tls *tls, struct err *e) {
    const struct openssl *ssl = tls->ssl;
    SSL_CTX *context = tls->context = ssl->SSL_CTX_new(ssl->TLS_server_method());
    if (!context) return err_set(e, ERR_UNAVAILABLE, "OpenSSL does not start");
    ssl->SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION |
                                          SSL_OP_CIPHER_SERVER_PREFERENCE |
                                          SSL_OP_PRIORITIZE_CHACHA);
    bool good =
        ssl->SSL_CTX_ctrl(context, SSL_CTRL_SET_MIN_PROTO_VERSION, TLS1_2_VERSION, NULL) == 1 &&
        ssl->SSL_CTX_set_cipher_list(context, CIPHERS) == 1 &&
        ssl->SSL_CTX_set_session_id_context(context, (const unsigned char *)"weir", 4) == 1;
    if (!good) return err_set(e, ERR_UNAVAILABLE, "this OpenSSL lacks what TLS 1.2 needs");
    ssl->SSL_CTX_ctrl(context, SSL_CTRL_MODE, SSL_MODE_RELEASE_BUFFERS, NULL);
    ssl->SSL_CTX_ctrl(context, SSL_CTRL_SET_SESS_CACHE_MODE, SSL_SESS_CACHE_OFF, NULL);
    ssl->SSL_CTX_set_default_passwd_cb(context, no_password);
    ssl->SSL_CTX_set_alpn_select_cb(context, choose_protocol, NULL);
    return true;
}

static bool check_options(const struct tls_options *options, struct err *e) {
    if (options->cert.len && options->key.len) return true;
    return err_set(e, ERR_INVALID_ARGUMENT, "TLS needs a certificate and its key: set %s",
                   options->cert.len ? "tls.key" : "tls.cert");
}

bool tls_load(const struct tls_options *options, struct tls **ret, struct err *e) {
    const struct openssl *ssl;
    if (!check_options(options, e) || !openssl_load(&ssl, e)) return false;

    struct tls *tls = MEM_NEW(struct tls);
    tls->ssl = ssl;
    atomic_init(&tls->refs, 1);
    bool good =
        make_context(tls, e) &&
        use_setting(tls, "tls.cert", options->cert, use_certificate, e) &&
        use_setting(tls, "tls.key", options->key, use_key, e) &&
        (options->ca.len == 0 || use_setting(tls, "tls.ca", options->ca, use_authorities, e));
    if (!good) {
        tls_unref(tls);
        return false;
    }
    *ret = tls;
    return true;
}

bool server_check_tls(const struct tls_options *options, struct err *e) {
    struct tls *tls = NULL;
    bool good = tls_load(options, &tls, e);
    tls_unref(tls);
    return good;
}

struct tls *tls_ref(struct tls *tls) {
    atomic_fetch_add(&tls->refs, 1);
    return tls;
}

void tls_unref(struct tls *tls) {
    if (!tls || atomic_fetch_sub(&tls->refs, 1) != 1) return;
    tls->ssl->SSL_CTX_free(tls->context);
    free(tls);
}

struct records *tls_accept(struct tls *tls) {
    return records_new(tls->context, RECORDS_SERVER);
}
