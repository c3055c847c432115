/* trust: the certificates that a client trusts.
 *
 * Holds the certificate authorities and the rules of every connection made with them: TLS 1.3,
 * or 1.2 with forward secrecy and an authenticated cipher, no renegotiation, no compression, no
 * early data; keys and signatures of OpenSSL's security level 2. Revocation is not checked,
 * neither by OCSP nor by lists.
 *
 *     trust (one per process) ─▶ visit (one per connection)
 *
 * Memory   trust_load() gives one reference; a visit does not depend on it.
 * Threads  any. trust_load() blocks: it loads OpenSSL and reads files.
 * Source   RFC 5280; RFC 8446, 5246. */
#ifndef WEIR_TLS_TRUST_H
#define WEIR_TLS_TRUST_H

#include "base/err.h"

struct trust;
struct ssl_ctx_st;

/* Both empty: the authorities of the system. */
struct trust_options {
    struct str file;    /* certificates in PEM form */
    struct str folders; /* folders of such files, separated by ':' */
};

/* errors  ERR_UNAVAILABLE no OpenSSL, or no authorities: the text says which file or folder */
MUST_CHECK bool trust_load(const struct trust_options *options, struct trust **ret,
                           struct err *e);
struct trust *trust_ref(struct trust *trust);
void trust_unref(struct trust *trust); /* accepts NULL */

/* Call at the end of a job that called trust_load(): OpenSSL frees its memory for this
 * thread. */
void trust_leave_thread(void);

/* For visit.c. */
struct ssl_ctx_st *trust_context(const struct trust *trust);

#endif
