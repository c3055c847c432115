/* visit_hooks: what OpenSSL calls in the middle of a visit.
 *
 * Private to tls/.
 */
#ifndef WEIR_TLS_VISIT_HOOKS_H
#define WEIR_TLS_VISIT_HOOKS_H

#include <openssl/ssl.h>

/* Keeps what is wrong with a certificate, and decides nothing. */
int visit_on_verified(int good, X509_STORE_CTX *store);

/* 1: the ticket is taken. */
int visit_on_ticket(SSL *state, SSL_SESSION *ticket);

/* certificate.c: append the sentence about the certificate that `store` refuses. */
struct buf;
void certificate_describe_problem(X509_STORE_CTX *store, struct buf *ret);

#endif
