/* records: the TLS records of one connection.
 *
 * Bytes become records and records become bytes; there is no socket and no clock. Bytes enter
 * through records_receive() and leave through a buffer that the caller lends, so a turn still
 * ends in one write and an idle connection holds no buffer.
 *
 *     peer's bytes ─▶ records_receive ─▶ plain      and, while the handshake lasts, ─▶ out
 *     our bytes    ─▶ records_seal    ─▶ out
 *
 * The server makes them of a listener's certificates (server/tls.h), the client of whom it
 * trusts (tls/visit.h).
 *
 * Memory   records_new() gives them to the caller, who ends them with records_free().
 * Threads  the loop's of the connection.
 * Source   RFC 8446, 5246.
 */
#ifndef WEIR_TLS_RECORDS_H
#define WEIR_TLS_RECORDS_H

#include "base/attr.h"
#include "base/buf.h"

struct records;
struct ssl_ctx_st; /* OpenSSL's, for those who may include tls/openssl.h */
struct ssl_st;

enum records_verdict {
    RECORDS_FINE,
    RECORDS_ENDED,  /* the peer closed its side */
    RECORDS_BROKEN, /* not TLS, or not acceptable; `out` may hold the alert */
};

enum records_side { RECORDS_SERVER, RECORDS_CLIENT };

/* OpenSSL must be loaded. The records keep a reference to the context. */
struct records *records_new(struct ssl_ctx_st *context, enum records_side side);
void records_free(struct records *records); /* accepts NULL */
struct ssl_st *records_state(struct records *records);

/* Bytes from the peer. Decrypted bytes are appended to `plain`, TLS's own replies to `out`. At
 * most the length of `bytes` plus RECORDS_ROOM_BYTES is appended. A client begins the handshake
 * by receiving nothing. */
#define RECORDS_ROOM_BYTES (17 * KIB)
enum records_verdict records_receive(struct records *records, struct str bytes,
                                     struct buf *plain, struct buf *out);

/* Whether the handshake is complete. */
bool records_are_open(const struct records *records);

/* By default OpenSSL allocates its buffers, 16 KiB each, for each record and frees them after it,
 * which is a tenth of what a short record costs. A connection in use may keep them; once it is
 * idle they are released. A buffer with a part of a record goes when the rest has been read. */
void records_keep_buffers(struct records *records);
void records_release_buffers(struct records *records);

/* OpenSSL's number for what broke them; 0: nothing did, or only we say so. */
unsigned long records_fault(const struct records *records);

/* Bytes for the peer, once the handshake is over. False: the connection is broken. */
MUST_CHECK bool records_seal(struct records *records, struct str plain, struct buf *out);

/* Say to the peer that nothing more will follow. */
void records_end(struct records *records, struct buf *out);

#endif
