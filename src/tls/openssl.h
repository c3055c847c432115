/* openssl: libssl, loaded on first use.
 *
 * Loading costs megabytes and milliseconds, so a daemon without TLS never does it. The
 * functions are looked up by name once and called through this table, under their own names.
 *
 * Private to tls/ and server/.
 *
 * Memory   stays for the life of the process: a library in which other threads may have state
 *          is not unloaded.
 * Threads  openssl_load() any; it blocks, as it reads files. The table is constant afterwards.
 */
#ifndef WEIR_TLS_OPENSSL_H
#define WEIR_TLS_OPENSSL_H

#include "base/err.h"

#include <openssl/bio.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/ssl.h>
#include <openssl/x509v3.h>

/* clang-format off */
#define OPENSSL_SSL_FUNCTIONS(USE)                                                             \
    USE(TLS_server_method) USE(TLS_client_method) USE(SSL_CTX_new) USE(SSL_CTX_free)           \
    USE(SSL_CTX_ctrl) USE(SSL_CTX_set_options) USE(SSL_CTX_set_cipher_list)                    \
    USE(SSL_CTX_set_alpn_select_cb) USE(SSL_CTX_use_certificate_chain_file)                    \
    USE(SSL_CTX_use_PrivateKey_file) USE(SSL_CTX_check_private_key)                            \
    USE(SSL_CTX_set_default_passwd_cb) USE(SSL_CTX_load_verify_file)                           \
    USE(SSL_load_client_CA_file) USE(SSL_CTX_set_client_CA_list) USE(SSL_CTX_set_verify)       \
    USE(SSL_CTX_get_cert_store) USE(SSL_CTX_get0_param) USE(SSL_CTX_set_session_id_context)    \
    USE(SSL_CTX_sess_set_new_cb) USE(SSL_new) USE(SSL_free) USE(SSL_ctrl) USE(SSL_set_bio)     \
    USE(SSL_set_accept_state) USE(SSL_set_connect_state) USE(SSL_set1_host) USE(SSL_get0_param) \
    USE(SSL_set_alpn_protos) USE(SSL_get0_alpn_selected) USE(SSL_set_session)                  \
    USE(SSL_SESSION_free) USE(SSL_SESSION_up_ref) USE(SSL_SESSION_is_resumable)                \
    USE(SSL_SESSION_get_protocol_version) USE(SSL_set_ex_data) USE(SSL_get_ex_data)            \
    USE(SSL_get_ex_data_X509_STORE_CTX_idx) USE(SSL_is_init_finished) USE(SSL_has_pending)     \
    USE(SSL_session_reused) USE(SSL_read) USE(SSL_write) USE(SSL_shutdown) USE(SSL_get_error)   \
    USE(SSL_free_buffers) USE(SSL_rstate_string)

#define OPENSSL_CRYPTO_FUNCTIONS(USE)                                                          \
    USE(ERR_clear_error) USE(ERR_peek_error) USE(ERR_reason_error_string)                      \
    USE(BIO_get_new_index) USE(BIO_meth_new) USE(BIO_meth_set_read) USE(BIO_meth_set_write)    \
    USE(BIO_meth_set_ctrl) USE(BIO_new) USE(BIO_set_data) USE(BIO_get_data) USE(BIO_set_init)  \
    USE(BIO_set_flags) USE(BIO_clear_flags) USE(OPENSSL_sk_num) USE(OPENSSL_sk_value)          \
    USE(X509_STORE_get0_objects) USE(X509_STORE_CTX_get_ex_data) USE(X509_STORE_CTX_get_error) \
    USE(X509_STORE_CTX_get_current_cert) USE(X509_VERIFY_PARAM_set_hostflags)                  \
    USE(X509_VERIFY_PARAM_set1_ip) USE(X509_verify_cert_error_string) USE(X509_get_issuer_name) \
    USE(X509_NAME_oneline) USE(X509_getm_notBefore) USE(X509_getm_notAfter)                    \
    USE(X509_get_ext_d2i) USE(GENERAL_NAMES_free) USE(ASN1_TIME_to_tm)                         \
    USE(ASN1_STRING_get0_data) USE(ASN1_STRING_length) USE(OPENSSL_thread_stop)                   \
    USE(EVP_PKEY_CTX_new_from_name) USE(EVP_PKEY_CTX_free) USE(EVP_PKEY_fromdata_init)         \
    USE(EVP_PKEY_fromdata) USE(EVP_PKEY_free) USE(EVP_MD_CTX_new) USE(EVP_MD_CTX_free)         \
    USE(EVP_DigestVerifyInit) USE(EVP_DigestVerify) USE(EVP_sha256)
/* clang-format on */

struct openssl {
#define MEMBER(name) __typeof__(name) *name;
    OPENSSL_SSL_FUNCTIONS(MEMBER)
    OPENSSL_CRYPTO_FUNCTIONS(MEMBER)
#undef MEMBER
};

/* The table; the same one each time.
 * errors  ERR_UNAVAILABLE the library is not installed, or not the version we were built for */
MUST_CHECK bool openssl_load(const struct openssl **ret, struct err *e);

/* The table; it must have been loaded. */
const struct openssl *openssl_loaded(void);

#endif
