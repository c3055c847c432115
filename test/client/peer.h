/* peer: a server of a few lines on the loopback, and a client that asks it.
 *
 * Each connection has a thread that reads requests and lets the test's function answer with
 * plain writes, so a test can send any byte at any time. The client records what its calls
 * report as "200 text/plain;body;whole".
 *
 * If a test defines PEER_SECURE before it includes this, everything runs over TLS.
 */
#ifndef WEIR_TEST_CLIENT_PEER_H
#define WEIR_TEST_CLIENT_PEER_H

#include "base/buf.h"
#include "base/mem.h"
#include "client/http.h"
#include "helper/assert_str.h"

#include <arpa/inet.h>
#include <assert.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#ifdef PEER_SECURE
#include "client/peer_secure.h"
#define PEER_SCHEME "https"
#else
#define PEER_SCHEME "http"
#endif

/* --- the server --------------------------------------------------------------------------- */

enum { CONNECTIONS_MAX = 2048 };

struct peer;

/* Answer one request, head and body. False: close. */
typedef bool peer_fn(struct peer *peer, int fd, struct str request);

struct peer {
    int listener;
    unsigned port;
    peer_fn *answer;
    void *ctx;
    pthread_t thread;
    atomic_int accepted;
    atomic_size_t sent;
    atomic_bool saw_close; /* the other side closed first */
};

struct peer_connection {
    struct peer *peer;
    int fd;
    pthread_t thread;
};

#ifdef PEER_SECURE
static inline ssize_t peer_raw_send(int fd, struct str bytes) {
    return peer_secure_send(fd, bytes);
}

static inline ssize_t peer_raw_recv(int fd, char *ret, size_t size) {
    return peer_secure_recv(fd, ret, size);
}
#else
static inline ssize_t peer_raw_send(int fd, struct str bytes) {
    return send(fd, bytes.at, bytes.len, MSG_NOSIGNAL);
}

static inline ssize_t peer_raw_recv(int fd, char *ret, size_t size) {
    return recv(fd, ret, size, 0);
}
#endif

static inline bool peer_send(struct peer *peer, int fd, struct str bytes) {
    while (bytes.len) {
        ssize_t sent = peer_raw_send(fd, bytes);
        if (sent <= 0) return false;
        atomic_fetch_add(&peer->sent, (size_t)sent);
        bytes = str_skip(bytes, (size_t)sent);
    }
    return true;
}

static inline bool peer_say(struct peer *peer, int fd, const char *text) {
    return peer_send(peer, fd, str_from(text));
}

/* Until the other side closes. */
static inline bool peer_wait(struct peer *peer, int fd) {
    char byte;
    while (peer_raw_recv(fd, &byte, 1) > 0) {
    }
    atomic_store(&peer->saw_close, true);
    return false;
}

/* How long the request is, or SIZE_MAX while its head is not complete. */
static inline size_t peer_request_len(struct str text) {
    size_t end = str_find(text, STR("\r\n\r\n"));
    if (end == text.len) return SIZE_MAX;
    struct str rest = str_skip(text, str_find_nocase(text, STR("content-length:")));
    uint64_t body = 0;
    if (rest.len) {
        struct str line = str_split(str_skip(rest, sizeof("content-length:") - 1), '\r', &rest);
        assert_true(str_to_u64(str_trim(line), &body));
    }
    return end + 4 + (size_t)body;
}

static inline void *peer_serve(void *ctx) {
    struct peer_connection *connection = ctx;
    char text[16 * 1024];
    size_t len = 0;
#ifdef PEER_SECURE
    peer_secure_open(connection->fd);
#endif
    for (bool open = true; open;) {
        ssize_t got = peer_raw_recv(connection->fd, text + len, sizeof(text) - len);
        if (got <= 0) break;
        len += (size_t)got;
        if (len < peer_request_len(str_of(text, len))) continue;
        open = connection->peer->answer(connection->peer, connection->fd, str_of(text, len));
        len = 0;
    }
#ifdef PEER_SECURE
    peer_secure_shut(connection->fd);
#endif
    close(connection->fd);
    return NULL;
}

static inline void *peer_accept(void *ctx) {
    struct peer *peer = ctx;
    struct peer_connection *all = mem_zero(CONNECTIONS_MAX, sizeof(*all));
    int count = 0, fd;
    while ((fd = accept(peer->listener, NULL, NULL)) >= 0) {
        int on = 1;
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
        assert(count < CONNECTIONS_MAX);
        atomic_fetch_add(&peer->accepted, 1);
        all[count] = (struct peer_connection){.peer = peer, .fd = fd};
        pthread_create(&all[count].thread, NULL, peer_serve, &all[count]);
        count++;
    }
    while (count--) pthread_join(all[count].thread, NULL);
    free(all);
    return NULL;
}

/* port  0: any */
static inline void peer_start_on(struct peer *peer, const char *ip, unsigned port,
                                 peer_fn *answer, void *ctx) {
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_port = htons((uint16_t)port),
                                  .sin_addr.s_addr = inet_addr(ip)};
    socklen_t len = sizeof(address);
#ifdef PEER_SECURE
    pthread_once(&peer_secure_once, peer_secure_load);
#endif
    *peer = (struct peer){.answer = answer, .ctx = ctx};
    peer->listener = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(peer->listener, (struct sockaddr *)&address, len), 0);
    assert_int_equal(listen(peer->listener, 1024), 0);
    assert_int_equal(getsockname(peer->listener, (struct sockaddr *)&address, &len), 0);
    peer->port = ntohs(address.sin_port);
    pthread_create(&peer->thread, NULL, peer_accept, peer);
}

static inline void peer_start_at(struct peer *peer, const char *ip, peer_fn *answer,
                                 void *ctx) {
    peer_start_on(peer, ip, 0, answer, ctx);
}

static inline void peer_start(struct peer *peer, peer_fn *answer, void *ctx) {
    peer_start_at(peer, "127.0.0.1", answer, ctx);
}

/* The connections must be closed, or be on their way to it. */
static inline void peer_stop(struct peer *peer) {
    shutdown(peer->listener, SHUT_RDWR);
    pthread_join(peer->thread, NULL);
    close(peer->listener);
}

/* --- who asks ----------------------------------------------------------------------------- */

struct asker {
    struct loop *loop;
    struct http_pool *pool;
    int open; /* calls; the loop stops at 0 */
};

enum moment { NEVER, AT_HEAD, AT_BODY };

struct ask {
    struct asker *asker;
    struct http_call *call;
    enum moment cancels, pauses;
    struct timer resume;
    uint64_t pause_ms;
    int pauses_left;
    bool paused;
    int bodies, ends;
    size_t bytes;
    enum http_stage stage;
    enum err_code code;
    char why[ERR_TEXT_BYTES], url[256];
    struct buf heard;
};

static inline void asker_open(struct asker *asker) {
    struct err e;
    *asker = (struct asker){.loop = loop_new(), .pool = http_pool_new()};
    http_pool_add(asker->pool, asker->loop);
    if (!http_pool_need(asker->pool, &e)) fail_msg("%s", e.text);
}

static inline void asker_shut(struct asker *asker) {
    http_pool_leave(asker->pool, asker->loop);
    http_pool_free(asker->pool);
    loop_free(asker->loop);
}

static inline void ask_over(struct ask *ask) {
    if (--ask->asker->open == 0) loop_stop(ask->asker->loop);
}

static inline void ask_resume(void *ctx) {
    struct ask *ask = ctx;
    ask->paused = false;
    http_resume(ask->call);
}

static inline void ask_react(struct ask *ask, enum moment moment) {
    if (ask->cancels == moment) {
        http_cancel(ask->call);
        ask_over(ask);
    } else if (ask->pauses == moment && ask->pauses_left-- > 0) {
        ask->paused = true;
        http_pause(ask->call);
        timer_start(&ask->resume, ask->pause_ms);
    }
}

static inline void ask_head(const struct http_head *head, void *ctx) {
    struct ask *ask = ctx;
    assert_false(ask->paused);
    buf_printf(&ask->heard, "%u " STR_FMT, head->status, STR_ARG(head->content_type));
    if (head->retry_after_ms >= 0)
        buf_printf(&ask->heard, " after %lld", (long long)head->retry_after_ms);
    buf_append_byte(&ask->heard, ';');
    snprintf(ask->url, sizeof(ask->url), STR_FMT, STR_ARG(head->url));
    ask_react(ask, AT_HEAD);
}

static inline void ask_body(struct lent lent, void *ctx) {
    struct str bytes = lent_read(lent);
    struct ask *ask = ctx;
    assert_false(ask->paused);
    assert_true(bytes.len > 0);
    ask->bodies++;
    ask->bytes += bytes.len;
    buf_append(&ask->heard, bytes); /* a large one is counted only */
    ask_react(ask, AT_BODY);
}

static inline void ask_end(const struct err *failed, enum http_stage stage, void *ctx) {
    struct ask *ask = ctx;
    ask->ends++;
    ask->stage = stage;
    ask->code = failed ? failed->code : ERR_NONE;
    snprintf(ask->why, sizeof(ask->why), "%s", failed ? failed->text : "");
    buf_append(&ask->heard, failed ? err_name(failed->code) : STR(";whole"));
    timer_stop(&ask->resume);
    ask_over(ask);
}

static const struct http_sink ask_sink = {ask_head, ask_body, ask_end};

static inline void ask_start(struct ask *ask, struct asker *asker,
                             const struct http_request *request) {
    ask->asker = asker;
    buf_init(&ask->heard, 64 * KIB);
    timer_init(&ask->resume, asker->loop, ask_resume, ask);
    asker->open++;
    ask->call = http_start(asker->pool, asker->loop, request, &ask_sink, ask);
    assert_int_equal(ask->ends, 0);
}

static inline void ask_done(struct ask *ask) {
    assert_true(ask->ends <= 1);
    buf_done(&ask->heard);
}

static inline struct http_request get_request(char *room, size_t size, const struct peer *peer,
                                              const char *path) {
    snprintf(room, size, PEER_SCHEME "://127.0.0.1:%u%s", peer->port, path);
    return (struct http_request){.method = STR("GET"), .url = str_from(room)};
}

#endif
