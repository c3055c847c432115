/* peer_secure: the server of peer.h with TLS, for tests that define PEER_SECURE.
 *
 * Its certificate is created with the first peer, and trusted through SSL_CERT_FILE. Each write
 * of the test's functions is sealed in records of its own. A connection that they close ends
 * with close_notify.
 */
#ifndef WEIR_TEST_CLIENT_PEER_SECURE_H
#define WEIR_TEST_CLIENT_PEER_SECURE_H

#include "base/buf.h"
#include "helper/certificates.h"
#include "server/tls.h"
#include "tls/records.h"

#include <assert.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>

enum { PEER_SECURE_FDS = 8192 };

/* One of them belongs to one thread, the connection's. */
struct peer_secure {
    struct records *records;
    struct buf plain, sealed;
};

static struct peer_secure *peer_secures[PEER_SECURE_FDS];
static struct tls *peer_secure_tls;
static pthread_once_t peer_secure_once = PTHREAD_ONCE_INIT;

static inline void peer_secure_forget(void) {
    tls_unref(peer_secure_tls);
    (void)certificates_close();
}

static inline void peer_secure_load(void) {
    static const struct certificates_wish wish = {
        .name = "peer",
        .issuer = "root",
        .extensions = "subjectAltName=IP:127.0.0.1,DNS:localhost"};
    struct err e;
    int failed = certificates_open() || certificates_self_signed("root", CERTIFICATES_CA) ||
                 certificates_sign(&wish);
    struct tls_options options = {.cert = str_from(certificates_path("peer", "pem")),
                                  .key = str_from(certificates_path("peer", "key"))};
    if (failed || !tls_load(&options, &peer_secure_tls, &e)) {
        fprintf(stderr, "no certificate: %s\n", failed ? "openssl" : e.text);
        abort();
    }
    setenv("SSL_CERT_FILE", certificates_path("root", "pem"), 1);
    unsetenv("SSL_CERT_DIR"); /* of the machine that runs the tests */
    atexit(peer_secure_forget);
}

static inline bool peer_secure_flush(int fd) {
    struct buf *sealed = &peer_secures[fd]->sealed;
    struct str left = buf_str(sealed);
    while (left.len) {
        ssize_t sent = send(fd, left.at, left.len, MSG_NOSIGNAL);
        if (sent <= 0) return false;
        left = str_skip(left, (size_t)sent);
    }
    buf_clear(sealed);
    return true;
}

static inline void peer_secure_open(int fd) {
    assert(fd < PEER_SECURE_FDS && !peer_secures[fd]);
    struct peer_secure *secure = peer_secures[fd] = calloc(1, sizeof(*secure));
    assert(secure);
    secure->records = tls_accept(peer_secure_tls);
    buf_init(&secure->plain, 256 * KIB);
    buf_init(&secure->sealed, MIB);
}

static inline void peer_secure_shut(int fd) {
    struct peer_secure *secure = peer_secures[fd];
    records_end(secure->records, &secure->sealed);
    (void)peer_secure_flush(fd);
    records_free(secure->records);
    buf_done(&secure->plain);
    buf_done(&secure->sealed);
    peer_secures[fd] = NULL;
    free(secure);
}

/* As recv(): at most `size` decrypted bytes, 0 at the end of whatever kind. */
static inline ssize_t peer_secure_recv(int fd, char *ret, size_t size) {
    struct peer_secure *secure = peer_secures[fd];
    char sealed[16 * 1024];
    while (secure->plain.len == 0) {
        ssize_t len = recv(fd, sealed, sizeof(sealed), 0);
        if (len <= 0) return 0;
        enum records_verdict verdict = records_receive(
            secure->records, str_of(sealed, (size_t)len), &secure->plain, &secure->sealed);
        bool said = peer_secure_flush(fd);
        if (secure->plain.len == 0 && (verdict != RECORDS_FINE || !said)) return 0;
    }
    struct str part = str_head(buf_str(&secure->plain), size);
    memcpy(ret, part.at, part.len);
    buf_drop(&secure->plain, part.len);
    return (ssize_t)part.len;
}

/* As send(). */
static inline ssize_t peer_secure_send(int fd, struct str bytes) {
    struct peer_secure *secure = peer_secures[fd];
    struct str part = str_head(bytes, 64 * KIB);
    bool good = records_seal(secure->records, part, &secure->sealed) && peer_secure_flush(fd);
    return good ? (ssize_t)part.len : -1;
}

#endif
