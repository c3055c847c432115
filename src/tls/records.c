#include "tls/records.h"

#include "base/mem.h"
#include "tls/openssl.h"

#include <assert.h>
#include <pthread.h>
#include <stdlib.h>

/* Limit for records without application data after the handshake: key updates and the like cost
 * us more than the peer. */
#define SILENT_MAX_BYTES (16 * KIB)

struct records {
    const struct openssl *ssl;
    SSL *state;
    struct str in;       /* not yet read by OpenSSL; set only during records_receive() */
    struct buf *out;     /* set only during a call */
    size_t silent_bytes; /* received since the last application data */
    unsigned long fault;
};

/* --- between OpenSSL and the connection's bytes -------------------------------------------- */

static int bio_read(BIO *bio, char *ret, int size) {
    const struct openssl *ssl = openssl_loaded();
    struct records *records = ssl->BIO_get_data(bio);
    struct str part = str_head(records->in, (size_t)size);
    ssl->BIO_clear_flags(bio, BIO_FLAGS_RWS | BIO_FLAGS_SHOULD_RETRY);
    if (part.len == 0) {
        ssl->BIO_set_flags(bio, BIO_FLAGS_READ | BIO_FLAGS_SHOULD_RETRY);
        return -1;
    }
    memcpy(ret, part.at, part.len);
    records->in = str_skip(records->in, part.len);
    return (int)part.len;
}

static int bio_write(BIO *bio, const char *bytes, int len) {
    struct records *records = openssl_loaded()->BIO_get_data(bio);
    if (!records->out || !buf_append(records->out, str_of(bytes, (size_t)len))) return -1;
    return len;
}

static long bio_ctrl(BIO *bio, int what, long number, void *at) {
    (void)bio;
    (void)number;
    (void)at;
    return what == BIO_CTRL_FLUSH; /* a flush has nothing to do in memory */
}

static BIO_METHOD *method;
static pthread_once_t method_once = PTHREAD_ONCE_INIT;

static void make_method(void) {
    const struct openssl *ssl = openssl_loaded();
    method = ssl->BIO_meth_new(ssl->BIO_get_new_index() | BIO_TYPE_SOURCE_SINK, "weir");
    ssl->BIO_meth_set_read(method, bio_read);
    ssl->BIO_meth_set_write(method, bio_write);
    ssl->BIO_meth_set_ctrl(method, bio_ctrl);
}

/* --- creation and release ----------------------------------------------------------------- */

struct records *records_new(SSL_CTX *context, enum records_side side) {
    pthread_once(&method_once, make_method);
    struct records *records = MEM_NEW(struct records);
    const struct openssl *ssl = records->ssl = openssl_loaded();
    records->state = ssl->SSL_new(context);
    BIO *bio = ssl->BIO_new(method);
    assert(records->state && bio); /* fails only when memory is exhausted */
    ssl->BIO_set_data(bio, records);
    ssl->BIO_set_init(bio, 1);
    ssl->SSL_set_bio(records->state, bio, bio);
    if (side == RECORDS_SERVER)
        ssl->SSL_set_accept_state(records->state);
    else
        ssl->SSL_set_connect_state(records->state);
    return records;
}

void records_free(struct records *records) {
    if (!records) return;
    records->ssl->SSL_free(records->state);
    free(records);
}

SSL *records_state(struct records *records) {
    return records->state;
}

bool records_are_open(const struct records *records) {
    return records->ssl->SSL_is_init_finished(records->state) == 1;
}

unsigned long records_fault(const struct records *records) {
    return records->fault;
}

/* From 3.2 on OpenSSL passes a changed mode on to its reader only when a mode is set. */
void records_keep_buffers(struct records *records) {
    records->ssl->SSL_ctrl(records->state, SSL_CTRL_CLEAR_MODE, SSL_MODE_RELEASE_BUFFERS, NULL);
    records->ssl->SSL_ctrl(records->state, SSL_CTRL_MODE, 0, NULL);
}

/* Whether a record has arrived in part. Some versions of OpenSSL free the buffer nevertheless, and
 * read from it afterwards (CVE-2024-4741). */
static bool is_inside_record(const struct records *records) {
    return records->ssl->SSL_has_pending(records->state) ||
           strcmp(records->ssl->SSL_rstate_string(records->state), "RH") != 0;
}

/* A buffer that holds a part of a record goes later, by the mode. */
void records_release_buffers(struct records *records) {
    records->ssl->SSL_ctrl(records->state, SSL_CTRL_MODE, SSL_MODE_RELEASE_BUFFERS, NULL);
    if (!is_inside_record(records)) records->ssl->SSL_free_buffers(records->state);
}

/* --- both directions ---------------------------------------------------------------------- */

static enum records_verdict verdict_of(struct records *records, int result) {
    switch (records->ssl->SSL_get_error(records->state, result)) {
    case SSL_ERROR_WANT_READ: return RECORDS_FINE;
    case SSL_ERROR_ZERO_RETURN: return RECORDS_ENDED;
    default: records->fault = records->ssl->ERR_peek_error(); return RECORDS_BROKEN;
    }
}

/* OpenSSL's errors belong to the thread: those of another connection must not count for this one.
 * Looking first costs a quarter of what emptying the list does. */
static void forget_errors(const struct records *records) {
    if (records->ssl->ERR_peek_error()) records->ssl->ERR_clear_error();
}

/* Read until OpenSSL needs more bytes. This also performs the handshake. */
static enum records_verdict records_read_all(struct records *records, struct buf *plain) {
    do {
        char *room = buf_room(plain, RECORDS_ROOM_BYTES);
        if (!room) return RECORDS_BROKEN;
        forget_errors(records);
        int len = records->ssl->SSL_read(records->state, room, (int)RECORDS_ROOM_BYTES);
        if (len <= 0) return verdict_of(records, len);
        buf_grew(plain, (size_t)len);
    } while (records->in.len || records->ssl->SSL_has_pending(records->state));
    return RECORDS_FINE;
}

enum records_verdict records_receive(struct records *records, struct str bytes,
                                     struct buf *plain, struct buf *out) {
    size_t before = plain->len;
    bool was_open = records_are_open(records);
    records->in = bytes;
    records->out = out;
    enum records_verdict verdict = records_read_all(records, plain);
    records->in = STR_EMPTY;
    records->out = NULL;
    if (plain->len > before || !was_open)
        records->silent_bytes = 0;
    else
        records->silent_bytes += bytes.len;
    bool chatters = records->silent_bytes > SILENT_MAX_BYTES + RECORDS_ROOM_BYTES;
    return chatters ? RECORDS_BROKEN : verdict;
}

bool records_seal(struct records *records, struct str plain, struct buf *out) {
    if (plain.len == 0) return true;
    records->out = out;
    forget_errors(records);
    int len = records->ssl->SSL_write(records->state, plain.at, (int)plain.len);
    records->out = NULL;
    return len == (int)plain.len;
}

void records_end(struct records *records, struct buf *out) {
    if (!records_are_open(records)) return;
    records->out = out;
    forget_errors(records);
    records->ssl->SSL_shutdown(records->state);
    records->out = NULL;
}
