/* tls: certificates, and the records of one connection.
 *
 * A `struct tls` is what a listener shows to its peers: certificate, key, and whom it asks for
 * a certificate in turn. A session turns bytes into records and back; it has no socket and no
 * clock. Bytes come in with tls_receive() and leave through a buffer that the caller lends, so
 * a turn still ends in one write and an idle connection holds no buffer.
 *
 *     peer's bytes ─▶ tls_receive ─▶ plain      and, while the handshake lasts, ─▶ out
 *     our bytes    ─▶ tls_seal    ─▶ out
 *
 * TLS 1.3, or 1.2 with forward secrecy and an authenticated cipher. No renegotiation, no
 * compression, no early data. Sessions resume by ticket; their keys change with the
 * certificates, so no ticket outlives the rules it was given under.
 *
 * Private to server/.
 *
 * Memory   tls_load() gives one reference; a session holds what it needs by itself.
 * Threads  a struct tls any; a session belongs to the loop of its connection.
 * Source   RFC 8446, 5246; 7301 (ALPN); 9113 9.2 (TLS for HTTP/2).
 */
#ifndef WEIR_SERVER_TLS_H
#define WEIR_SERVER_TLS_H

#include "base/buf.h"
#include "server/server.h"

struct tls;

/* Read the files. Blocks: not on a loop that serves somebody. The error names the file.
 * errors  ERR_INVALID_ARGUMENT unreadable, no certificate, or not of one pair;
 *         ERR_UNAVAILABLE no OpenSSL on this machine */
MUST_CHECK bool tls_load(const struct tls_options *options, struct tls **ret, struct err *e);
struct tls *tls_ref(struct tls *tls);
void tls_unref(struct tls *tls); /* accepts NULL */

enum tls_verdict {
    TLS_FINE,
    TLS_ENDED,  /* the peer said that nothing more will come */
    TLS_BROKEN, /* what it says is no TLS, or not ours; `out` may hold the alert */
};

struct tls_session;

struct tls_session *tls_session_new(struct tls *tls);
void tls_session_free(struct tls_session *session);

/* Bytes from the peer. What they mean is appended to `plain`, what TLS has to say to `out`.
 * At most `bytes` and TLS_RECORD_BYTES come out. */
#define TLS_RECORD_BYTES (17 * 1024)
enum tls_verdict tls_receive(struct tls_session *session, struct str bytes, struct buf *plain,
                             struct buf *out);

/* Bytes for the peer, once the handshake is over. False: the session is broken. */
MUST_CHECK bool tls_seal(struct tls_session *session, struct str plain, struct buf *out);

/* Say that nothing more will come. */
void tls_end(struct tls_session *session, struct buf *out);

#endif
