/* tls: certificates, and the records of one connection.
 *
 * A `struct tls` holds a listener's certificate and key, and the CA for client certificates. A
 * session turns bytes into records and back; it has no socket and no clock. Bytes enter through
 * tls_receive() and leave through a buffer that the caller lends, so a turn still ends in one
 * write and an idle connection holds no buffer.
 *
 *     peer's bytes ─▶ tls_receive ─▶ plain      and, while the handshake lasts, ─▶ out
 *     our bytes    ─▶ tls_seal    ─▶ out
 *
 * TLS 1.3, or 1.2 with forward secrecy and an authenticated cipher. No renegotiation, no
 * compression, no early data. Sessions resume by ticket. The ticket keys change with the
 * certificates, so no ticket outlives the rules it was issued under.
 *
 * Private to server/.
 *
 * Memory   tls_load() gives one reference; a session does not depend on it.
 * Threads  a struct tls any; a session belongs to the loop of its connection.
 * Source   RFC 8446, 5246; 7301 (ALPN); 9113 9.2 (TLS for HTTP/2).
 */
#ifndef WEIR_SERVER_TLS_H
#define WEIR_SERVER_TLS_H

#include "base/buf.h"
#include "server/server.h"

struct tls;

/* Read the files. Blocks: do not call it on a serving loop. The error names the file.
 * errors  ERR_INVALID_ARGUMENT unreadable, not a certificate, or key and certificate differ;
 *         ERR_UNAVAILABLE no OpenSSL on this machine */
MUST_CHECK bool tls_load(const struct tls_options *options, struct tls **ret, struct err *e);
struct tls *tls_ref(struct tls *tls);
void tls_unref(struct tls *tls); /* accepts NULL */

enum tls_verdict {
    TLS_FINE,
    TLS_ENDED,  /* the peer closed its side */
    TLS_BROKEN, /* not TLS, or not acceptable; `out` may hold the alert */
};

struct tls_session;

struct tls_session *tls_session_new(struct tls *tls);
void tls_session_free(struct tls_session *session);

/* Bytes from the peer. Decrypted bytes are appended to `plain`, TLS's own replies to `out`. At
 * most the length of `bytes` plus TLS_RECORD_BYTES is appended. */
#define TLS_RECORD_BYTES (17 * 1024)
enum tls_verdict tls_receive(struct tls_session *session, struct str bytes, struct buf *plain,
                             struct buf *out);

/* Bytes for the peer, once the handshake is over. False: the session is broken. */
MUST_CHECK bool tls_seal(struct tls_session *session, struct str plain, struct buf *out);

/* Tell the peer that nothing more will follow. */
void tls_end(struct tls_session *session, struct buf *out);

#endif
