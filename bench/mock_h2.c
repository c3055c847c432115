#include "mock_h2.h"

#include "base/mem.h"
#include "base/units.h"

#include <errno.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define HEAD_BYTES 9
#define READ_BYTES (64 * KIB)
#define OUT_MAX_BYTES (4 * MIB)
#define FRAME_MAX_BYTES (16 * KIB)
#define WINDOW_BYTES 65535

enum {
    DATA,
    HEADERS,
    PRIORITY,
    RST_STREAM,
    SETTINGS,
    PUSH_PROMISE,
    PING,
    GOAWAY,
    WINDOW_UPDATE
};
enum { END_STREAM = 1, ACK = 1, END_HEADERS = 4 };

static const struct str preface = STR_INIT("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");

/* :status 200, then content-type: text/event-stream as a literal with an indexed name. */
static const struct str answer_head = STR_INIT("\x88\x0f\x10\x11"
                                               "text/event-stream");

struct mock_h2 {
    int fd;
    SSL *ssl; /* NULL: cleartext */
    mock_ask_fn *on_ask;
    void *ctx;
    bool greeted, broken;
    int64_t window, stream_window;
    struct list calls;
    struct buf in, out;
};

/* ---- sending ---- */

static void put_frame(struct mock_h2 *h2, unsigned type, unsigned flags, uint32_t id,
                      struct str bytes) {
    const unsigned char head[HEAD_BYTES] = {(unsigned char)(bytes.len >> 16),
                                            (unsigned char)(bytes.len >> 8),
                                            (unsigned char)bytes.len,
                                            (unsigned char)type,
                                            (unsigned char)flags,
                                            (unsigned char)(id >> 24),
                                            (unsigned char)(id >> 16),
                                            (unsigned char)(id >> 8),
                                            (unsigned char)id};
    if (!buf_append(&h2->out, str_of(head, HEAD_BYTES)) || !buf_append(&h2->out, bytes))
        h2->broken = true;
}

bool mock_h2_has_room(const struct mock_call *call, size_t len) {
    return call->window >= (int64_t)len && call->h2->window >= (int64_t)len;
}

static void put_data(struct mock_call *call, struct str text, unsigned flags) {
    call->window -= (int64_t)text.len;
    call->h2->window -= (int64_t)text.len;
    put_frame(call->h2, DATA, flags, call->id, text);
}

void mock_h2_begin(struct mock_call *call) {
    put_frame(call->h2, HEADERS, END_HEADERS, call->id, answer_head);
}

void mock_h2_say(struct mock_call *call, struct str text) {
    put_data(call, text, 0);
}

static void call_free(struct mock_call *call) {
    list_remove(&call->link);
    list_remove(&call->sibling);
    free(call);
}

void mock_h2_end(struct mock_call *call, struct str text) {
    put_data(call, text, END_STREAM);
    call_free(call);
}

bool mock_h2_flush(struct mock_h2 *h2) {
    if (h2->broken || !h2->out.len) return !h2->broken;
    if (h2->ssl && !SSL_is_init_finished(h2->ssl)) return true;
    ERR_clear_error(); /* those of another connection */
    ssize_t sent = h2->ssl ? SSL_write(h2->ssl, h2->out.at, (int)h2->out.len)
                           : send(h2->fd, h2->out.at, h2->out.len, MSG_NOSIGNAL);
    if (sent != (ssize_t)h2->out.len) return false;
    buf_clear(&h2->out);
    return true;
}

/* ---- receiving ---- */

static uint32_t read_u32(const char *at) {
    const unsigned char *b = (const unsigned char *)at;
    return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

static struct mock_call *call_find(const struct mock_h2 *h2, uint32_t id) {
    LIST_EACH(&h2->calls, link) {
        struct mock_call *call = CONTAINER_OF(link, struct mock_call, sibling);
        if (call->id == id) return call;
    }
    return NULL;
}

static struct mock_call *call_new(struct mock_h2 *h2, uint32_t id) {
    struct mock_call *call = MEM_NEW(struct mock_call);
    list_init(&call->link);
    call->h2 = h2;
    call->id = id;
    call->window = h2->stream_window;
    list_append(&h2->calls, &call->sibling);
    return call;
}

static void take_settings(struct mock_h2 *h2, unsigned flags, struct str bytes) {
    if (flags & ACK) return;
    for (; bytes.len >= 6; bytes = str_skip(bytes, 6)) {
        if (bytes.at[0] != 0 || bytes.at[1] != 4) continue; /* SETTINGS_INITIAL_WINDOW_SIZE */
        int64_t size = read_u32(bytes.at + 2), more = size - h2->stream_window;
        h2->stream_window = size;
        LIST_EACH(&h2->calls, link)
        CONTAINER_OF(link, struct mock_call, sibling)->window += more;
    }
    put_frame(h2, SETTINGS, ACK, 0, STR_EMPTY);
}

static void take_frame(struct mock_h2 *h2, unsigned type, unsigned flags, uint32_t id,
                       struct str bytes) {
    struct mock_call *call = id ? call_find(h2, id) : NULL;
    if (type == HEADERS && !call) call = call_new(h2, id);
    if (type == SETTINGS) take_settings(h2, flags, bytes);
    if (type == PING && !(flags & ACK)) put_frame(h2, PING, ACK, 0, bytes);
    if (type == RST_STREAM && call) call_free(call);
    if (type == WINDOW_UPDATE && bytes.len == 4 && (id == 0 || call))
        *(id ? &call->window : &h2->window) += read_u32(bytes.at) & INT32_MAX;
    bool whole = (type == HEADERS || type == DATA) && flags & END_STREAM;
    if (!whole || !call || call->asked) return;
    call->asked = true;
    h2->on_ask(call, h2->ctx);
}

/* Take the frames that are whole. */
static void take_frames(struct mock_h2 *h2) {
    struct str rest = buf_str(&h2->in);
    if (!h2->greeted && rest.len < preface.len) return;
    if (!h2->greeted) {
        h2->broken = !str_starts(rest, preface);
        h2->greeted = true;
        rest = str_skip(rest, preface.len);
    }
    while (!h2->broken && rest.len >= HEAD_BYTES) {
        size_t len = read_u32(rest.at) >> 8;
        if (len > FRAME_MAX_BYTES) h2->broken = true;
        if (rest.len < HEAD_BYTES + len) break;
        take_frame(h2, (unsigned char)rest.at[3], (unsigned char)rest.at[4],
                   read_u32(rest.at + 5) & INT32_MAX,
                   str_head(str_skip(rest, HEAD_BYTES), len));
        rest = str_skip(rest, HEAD_BYTES + len);
    }
    buf_drop(&h2->in, h2->in.len - rest.len);
}

/* Of TLS everything that has come, because what OpenSSL holds wakes nobody. */
bool mock_h2_read(struct mock_h2 *h2) {
    for (;;) {
        char *room = buf_room(&h2->in, READ_BYTES);
        if (!room) return false;
        ERR_clear_error();
        ssize_t got = h2->ssl ? SSL_read(h2->ssl, room, READ_BYTES)
                              : recv(h2->fd, room, READ_BYTES, MSG_DONTWAIT);
        if (got <= 0) {
            bool later = h2->ssl ? SSL_get_error(h2->ssl, (int)got) == SSL_ERROR_WANT_READ
                                 : got < 0 && (errno == EAGAIN || errno == EINTR);
            return later && mock_h2_flush(h2);
        }
        buf_grew(&h2->in, (size_t)got);
        take_frames(h2);
        if (h2->broken) return false;
    }
}

/* ---- beginning and end ---- */

static int choose_h2(SSL *ssl, const unsigned char **ret, unsigned char *ret_len,
                     const unsigned char *offered, unsigned len, void *ctx) {
    (void)ssl;
    (void)ctx;
    for (unsigned at = 0; at + 3 <= len; at += 1u + offered[at]) {
        if (offered[at] != 2 || memcmp(offered + at + 1, "h2", 2) != 0) continue;
        *ret = offered + at + 1;
        *ret_len = 2;
        return SSL_TLSEXT_ERR_OK;
    }
    return SSL_TLSEXT_ERR_ALERT_FATAL;
}

struct ssl_ctx_st *mock_h2_tls(const char *certificate, const char *key) {
    SSL_CTX *tls = SSL_CTX_new(TLS_server_method());
    if (tls && SSL_CTX_use_certificate_chain_file(tls, certificate) == 1 &&
        SSL_CTX_use_PrivateKey_file(tls, key, SSL_FILETYPE_PEM) == 1) {
        SSL_CTX_set_alpn_select_cb(tls, choose_h2, NULL);
        return tls;
    }
    SSL_CTX_free(tls);
    return NULL;
}

struct mock_h2 *mock_h2_new(int fd, struct ssl_ctx_st *tls, mock_ask_fn *on_ask, void *ctx) {
    static const struct str settings = STR_INIT("\0\3\0\0\x03\xe8"); /* 1,000 streams at once */
    static const struct str window = STR_INIT("\x3f\xff\0\0");
    struct mock_h2 *h2 = MEM_NEW(struct mock_h2);
    h2->fd = fd;
    h2->on_ask = on_ask;
    h2->ctx = ctx;
    h2->window = h2->stream_window = WINDOW_BYTES;
    list_init(&h2->calls);
    buf_init(&h2->in, OUT_MAX_BYTES);
    buf_init(&h2->out, OUT_MAX_BYTES);
    put_frame(h2, SETTINGS, 0, 0, settings);
    put_frame(h2, WINDOW_UPDATE, 0, 0, window);
    if (!tls) return h2;
    h2->ssl = SSL_new(tls);
    SSL_set_fd(h2->ssl, fd);
    SSL_set_accept_state(h2->ssl); /* SSL_read() shakes hands */
    return h2;
}

void mock_h2_free(struct mock_h2 *h2) {
    while (!list_empty(&h2->calls))
        call_free(CONTAINER_OF(h2->calls.next, struct mock_call, sibling));
    SSL_free(h2->ssl);
    close(h2->fd);
    buf_done(&h2->in);
    buf_done(&h2->out);
    free(h2);
}
