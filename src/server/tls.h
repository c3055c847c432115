/* tls: the certificates of a listener.
 *
 * A `struct tls` holds a listener's certificate and key, and the CA for client certificates.
 * It creates the record layer of each connection (tls/records.h).
 *
 * TLS 1.3, or 1.2 with forward secrecy and an authenticated cipher. No renegotiation, no
 * compression, no early data. Sessions resume by ticket. The ticket keys change with the
 * certificates, so no ticket outlives the rules it was issued under.
 *
 * Private to server/.
 *
 * Memory   tls_load() gives one reference; records do not depend on it.
 * Threads  any.
 * Source   RFC 8446, 5246; 7301 (ALPN); 9113 9.2 (TLS for HTTP/2). */
#ifndef WEIR_SERVER_TLS_H
#define WEIR_SERVER_TLS_H

#include "server/server.h"
#include "tls/records.h"

struct tls;

/* Read the files. Blocks: do not call it on a serving loop. The error names the file.
 * errors  ERR_INVALID_ARGUMENT unreadable, not a certificate, or key and certificate differ;
 *         ERR_UNAVAILABLE no OpenSSL on this machine */
MUST_CHECK bool tls_load(const struct tls_options *options, struct tls **ret, struct err *e);
struct tls *tls_ref(struct tls *tls);
void tls_unref(struct tls *tls); /* accepts NULL */

/* The records of a connection that this listener has accepted; records_free() ends them. */
struct records *tls_accept(struct tls *tls);

#endif
