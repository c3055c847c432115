/* Describes what is wrong with a certificate: what, why, and the fix. The contents of a
 * certificate are untrusted: they are cut, and only printable characters are shown. */
#include "tls/visit_hooks.h"

#include "base/buf.h"
#include "tls/openssl.h"

#include <arpa/inet.h>
#include <stdlib.h>
#include <time.h>

#define SHOWN_MAX_BYTES 64
#define NAMES_MAX 3

static void append_shown(struct buf *ret, struct str text) {
    struct str head = str_head(text, SHOWN_MAX_BYTES);
    for (size_t i = 0; i < head.len; i++) {
        char byte = head.at[i];
        buf_append_byte(ret, byte >= ' ' && byte <= '~' ? byte : '?');
    }
    if (head.len < text.len) buf_append(ret, STR("..."));
}

/* --- names and dates ---------------------------------------------------------------------- */

static void append_day(struct buf *ret, const ASN1_TIME *time) {
    struct tm tm;
    if (openssl_loaded()->ASN1_TIME_to_tm(time, &tm) != 1) return;
    buf_printf(ret, "%04d-%02d-%02d %02d:%02d UTC", tm.tm_year + 1900, tm.tm_mon + 1,
               tm.tm_mday, tm.tm_hour, tm.tm_min);
}

static void append_issuer(struct buf *ret, X509 *certificate) {
    const struct openssl *ssl = openssl_loaded();
    char name[256];
    ssl->X509_NAME_oneline(ssl->X509_get_issuer_name(certificate), name, sizeof(name));
    buf_append_byte(ret, '\'');
    append_shown(ret, str_from(name));
    buf_append_byte(ret, '\'');
}

static struct str certificate_bytes_of(const ASN1_STRING *string) {
    const struct openssl *ssl = openssl_loaded();
    int len = ssl->ASN1_STRING_length(string);
    return str_of(ssl->ASN1_STRING_get0_data(string), len > 0 ? (size_t)len : 0);
}

/* False: a kind of name that does not identify a server. */
static bool certificate_append_name(struct buf *ret, const GENERAL_NAME *name) {
    char address[INET6_ADDRSTRLEN];
    if (name->type == GEN_DNS) {
        append_shown(ret, certificate_bytes_of(name->d.dNSName));
        return true;
    }
    if (name->type != GEN_IPADD) return false;
    struct str bytes = certificate_bytes_of(name->d.iPAddress);
    if (bytes.len != 4 && bytes.len != 16) return false;
    inet_ntop(bytes.len == 4 ? AF_INET : AF_INET6, bytes.at, address, sizeof(address));
    buf_append(ret, str_from(address));
    return true;
}

static void certificate_append_names(struct buf *ret, const X509 *certificate) {
    const struct openssl *ssl = openssl_loaded();
    GENERAL_NAMES *names = ssl->X509_get_ext_d2i(certificate, NID_subject_alt_name, NULL, NULL);
    int count = names ? ssl->OPENSSL_sk_num((const void *)names) : 0, shown = 0;
    for (int i = 0; i < count && shown < NAMES_MAX; i++) {
        size_t before = ret->len;
        if (shown) buf_append(ret, STR(", "));
        if (certificate_append_name(ret, ssl->OPENSSL_sk_value((const void *)names, i)))
            shown++;
        else
            ret->len = before;
    }
    if (shown == NAMES_MAX && count > NAMES_MAX) buf_append(ret, STR(" and others"));
    if (shown == 0) buf_append(ret, STR("no name at all"));
    if (names) ssl->GENERAL_NAMES_free(names);
}

/* --- problems ----------------------------------------------------------------------------- */

enum detail { NOTHING, ITS_NAMES, ITS_ISSUER, ITS_BEGIN, ITS_END };

#define OF_ONE_S_OWN                                                                           \
    ": a certificate authority of your own goes to the system's, or into the file that "       \
    "tls.trust or SSL_CERT_FILE names"
#define THE_CLOCK ": renew it at the server, or set the clock of this machine"

static const struct {
    int code;
    const char *what;
    enum detail detail;
    const char *fix;
} problems[] = {
    /* clang-format off */
    {X509_V_ERR_CERT_HAS_EXPIRED,    "its certificate is valid no longer, since ", ITS_END, THE_CLOCK},
    {X509_V_ERR_CERT_NOT_YET_VALID,  "its certificate is not valid before ", ITS_BEGIN, THE_CLOCK},
    {X509_V_ERR_HOSTNAME_MISMATCH,   "its certificate is not for the name in the URL but for ", ITS_NAMES,
     ": ask for one of these, or add the name to the certificate (subjectAltName)"},
    {X509_V_ERR_IP_ADDRESS_MISMATCH, "its certificate is not for the address in the URL but for ", ITS_NAMES,
     ": ask for one of these, or add the address to the certificate (subjectAltName)"},
    {X509_V_ERR_DEPTH_ZERO_SELF_SIGNED_CERT, "its certificate is not trusted, as it is self-signed", NOTHING, OF_ONE_S_OWN},
    {X509_V_ERR_SELF_SIGNED_CERT_IN_CHAIN, "its certificate is not trusted, as its authority is unknown here: ", ITS_ISSUER, OF_ONE_S_OWN},
    {X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT, "its certificate is not trusted, as its authority is unknown here: ", ITS_ISSUER, OF_ONE_S_OWN},
    {X509_V_ERR_UNABLE_TO_GET_ISSUER_CERT_LOCALLY, "its certificate is not trusted, as its authority is unknown here, or the server leaves out a certificate in between: ", ITS_ISSUER, OF_ONE_S_OWN},
    {X509_V_ERR_UNABLE_TO_VERIFY_LEAF_SIGNATURE, "its certificate is not trusted, as its authority is unknown here, or the server leaves out a certificate in between: ", ITS_ISSUER, OF_ONE_S_OWN},
    {X509_V_ERR_CERT_SIGNATURE_FAILURE, "its certificate is not trusted, as it was not signed by ", ITS_ISSUER, OF_ONE_S_OWN},
    {X509_V_ERR_INVALID_PURPOSE,     "its certificate is not trusted, as it is not one for servers", NOTHING,
     ": it needs the extended key usage serverAuth, or none at all"},
    {X509_V_ERR_INVALID_CA,          "its certificate is not trusted, as it is signed by one that may not sign: ", ITS_ISSUER,
     ": an authority needs basicConstraints CA:TRUE"},
    {X509_V_ERR_EE_KEY_TOO_SMALL,    "its certificate is not trusted, as its key is too short", NOTHING,
     ": RSA takes 2048 bits, ECDSA 224"},
    {X509_V_ERR_CA_KEY_TOO_SMALL,    "its certificate is not trusted, as the key of its authority is too short", NOTHING,
     ": RSA takes 2048 bits, ECDSA 224"},
    {X509_V_ERR_CA_MD_TOO_WEAK,      "its certificate is not trusted, as it is signed with a hash that is broken", NOTHING,
     ": sign with SHA-256"},
    /* clang-format on */
};

static void append_detail(struct buf *ret, enum detail detail, X509 *certificate) {
    const struct openssl *ssl = openssl_loaded();
    switch (detail) {
    case NOTHING: break;
    case ITS_NAMES: certificate_append_names(ret, certificate); break;
    case ITS_ISSUER: append_issuer(ret, certificate); break;
    case ITS_BEGIN: append_day(ret, ssl->X509_getm_notBefore(certificate)); break;
    case ITS_END: append_day(ret, ssl->X509_getm_notAfter(certificate)); break;
    }
}

void certificate_describe_problem(X509_STORE_CTX *store, struct buf *ret) {
    const struct openssl *ssl = openssl_loaded();
    int code = ssl->X509_STORE_CTX_get_error(store);
    X509 *certificate = ssl->X509_STORE_CTX_get_current_cert(store);
    for (size_t i = 0; i < ARRAY_LEN(problems); i++) {
        if (problems[i].code != code || !certificate) continue;
        buf_append(ret, str_from(problems[i].what));
        append_detail(ret, problems[i].detail, certificate);
        buf_append(ret, str_from(problems[i].fix));
        return;
    }
    buf_printf(ret, "its certificate is not trusted (%s)" OF_ONE_S_OWN,
               ssl->X509_verify_cert_error_string(code));
}
