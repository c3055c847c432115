/* h2_peer: an HTTP/2 server in memory, and one on a socket, controlled by the test.
 *
 * nghttp2 does the protocol. The test's function is called with the path of each complete
 * request, and answers with h2_peer_answer() or with anything else.
 */
#ifndef WEIR_TEST_CLIENT_H2_PEER_H
#define WEIR_TEST_CLIENT_H2_PEER_H

#include "base/buf.h"
#include "base/mem.h"
#include "helper/assert_str.h"

#include <arpa/inet.h>
#include <nghttp2/nghttp2.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

struct h2_peer;

/* `whole`: the request has ended; else its head or a part of its body has come. */
typedef void h2_peer_fn(struct h2_peer *peer, int32_t id, struct str path, bool whole);

struct h2_peer_stream {
    char path[64];
    struct buf heard; /* of the request's body */
    struct buf body;  /* of the answer, not sent yet */
    bool open;        /* more of it may follow */
    bool trailers;    /* "grpc-status" comes after it */
    char status[8];
};

struct h2_peer {
    nghttp2_session *session;
    struct buf out; /* for the client */
    h2_peer_fn *on_request;
    void *ctx;
    bool deaf, hangs_up; /* on a socket: reads no more; closes after what it has said */
    size_t requests, resets, pings;
    uint32_t reset_code;
    struct h2_peer_stream *streams[512]; /* by (id - 1) / 2 */
    char fields[1024];                   /* of the newest request, "name=value;" */
};

static inline struct h2_peer_stream *h2_peer_stream(struct h2_peer *peer, int32_t id) {
    size_t at = (size_t)(id - 1) / 2;
    assert_true(at < ARRAY_LEN(peer->streams));
    if (!peer->streams[at]) {
        peer->streams[at] = MEM_NEW(struct h2_peer_stream);
        buf_init(&peer->streams[at]->heard, 8 * MIB);
        buf_init(&peer->streams[at]->body, 64 * MIB);
    }
    return peer->streams[at];
}

static inline int h2_peer_on_header(nghttp2_session *session, const nghttp2_frame *frame,
                                    const uint8_t *name, size_t name_len, const uint8_t *value,
                                    size_t value_len, uint8_t flags, void *ctx) {
    (void)session;
    (void)flags;
    struct h2_peer *peer = ctx;
    struct h2_peer_stream *stream = h2_peer_stream(peer, frame->hd.stream_id);
    struct str is = str_of(name, name_len);
    if (str_equal(is, STR(":method"))) peer->fields[0] = '\0';
    if (str_equal(is, STR(":path")))
        snprintf(stream->path, sizeof(stream->path), "%.*s", (int)value_len, value);
    size_t len = strlen(peer->fields);
    snprintf(peer->fields + len, sizeof(peer->fields) - len, "%.*s=%.*s;", (int)name_len, name,
             (int)value_len, value);
    return 0;
}

static inline int h2_peer_on_frame(nghttp2_session *session, const nghttp2_frame *frame,
                                   void *ctx) {
    (void)session;
    struct h2_peer *peer = ctx;
    uint8_t type = frame->hd.type;
    if (type == NGHTTP2_PING && !(frame->hd.flags & NGHTTP2_FLAG_ACK)) peer->pings++;
    if (type == NGHTTP2_RST_STREAM) {
        peer->resets++;
        peer->reset_code = frame->rst_stream.error_code;
    }
    if (type != NGHTTP2_HEADERS && type != NGHTTP2_DATA) return 0;
    int32_t id = frame->hd.stream_id;
    struct str path = str_from(h2_peer_stream(peer, id)->path);
    bool ends = frame->hd.flags & NGHTTP2_FLAG_END_STREAM;
    if (type == NGHTTP2_HEADERS) peer->requests++;
    if (!ends || type == NGHTTP2_HEADERS) peer->on_request(peer, id, path, false);
    if (ends) peer->on_request(peer, id, path, true);
    return 0;
}

static inline int h2_peer_on_data(nghttp2_session *session, uint8_t flags, int32_t id,
                                  const uint8_t *at, size_t len, void *ctx) {
    (void)session;
    (void)flags;
    buf_append(&h2_peer_stream(ctx, id)->heard, str_of(at, len));
    return 0;
}

static inline ssize_t h2_peer_on_read(nghttp2_session *session, int32_t id, uint8_t *at,
                                      size_t len, uint32_t *flags, nghttp2_data_source *source,
                                      void *ctx) {
    (void)source;
    struct h2_peer_stream *stream = h2_peer_stream(ctx, id);
    struct str part = str_head(buf_str(&stream->body), len);
    if (!part.len && stream->open) return NGHTTP2_ERR_DEFERRED;
    if (part.len) memcpy(at, part.at, part.len);
    buf_drop(&stream->body, part.len);
    if (stream->body.len || stream->open) return (ssize_t)part.len;
    *flags |= NGHTTP2_DATA_FLAG_EOF;
    if (stream->trailers) {
        const nghttp2_nv nv = {(uint8_t *)(uintptr_t) "grpc-status", (uint8_t *)stream->status,
                               11, strlen(stream->status), NGHTTP2_NV_FLAG_NONE};
        *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
        nghttp2_submit_trailer(session, id, &nv, 1);
    }
    return (ssize_t)part.len;
}

/* max_streams  0: the server does not say */
static inline void h2_peer_open(struct h2_peer *peer, uint32_t max_streams,
                                h2_peer_fn *on_request, void *ctx) {
    nghttp2_session_callbacks *callbacks;
    const nghttp2_settings_entry entry = {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, max_streams};
    *peer = (struct h2_peer){.on_request = on_request, .ctx = ctx};
    buf_init(&peer->out, 64 * MIB);
    nghttp2_session_callbacks_new(&callbacks);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, h2_peer_on_header);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, h2_peer_on_frame);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, h2_peer_on_data);
    nghttp2_option *options;
    nghttp2_option_new(&options);
    nghttp2_option_set_max_send_header_block_length(options, MIB);
    nghttp2_session_server_new2(&peer->session, callbacks, peer, options);
    nghttp2_option_del(options);
    nghttp2_session_callbacks_del(callbacks);
    nghttp2_submit_settings(peer->session, 0, &entry, max_streams ? 1 : 0);
}

static inline void h2_peer_shut(struct h2_peer *peer) {
    nghttp2_session_del(peer->session);
    for (size_t i = 0; i < ARRAY_LEN(peer->streams); i++) {
        if (!peer->streams[i]) continue;
        buf_done(&peer->streams[i]->heard);
        buf_done(&peer->streams[i]->body);
        free(peer->streams[i]);
    }
    buf_done(&peer->out);
}

/* What it has to say is in `out` afterwards. */
static inline void h2_peer_settle(struct h2_peer *peer) {
    const uint8_t *at;
    ssize_t len;
    while ((len = nghttp2_session_mem_send(peer->session, &at)) > 0)
        buf_append(&peer->out, str_of(at, (size_t)len));
}

static inline void h2_peer_feed(struct h2_peer *peer, struct str bytes) {
    ssize_t used =
        nghttp2_session_mem_recv(peer->session, (const uint8_t *)bytes.at, bytes.len);
    assert_int_equal(used, bytes.len);
    h2_peer_settle(peer);
}

static inline nghttp2_nv h2_peer_nv(const char *name, const char *value) {
    return (nghttp2_nv){(uint8_t *)(uintptr_t)name, (uint8_t *)(uintptr_t)value, strlen(name),
                        strlen(value), NGHTTP2_NV_FLAG_NONE};
}

/* The head of an answer whose body follows with h2_peer_say(). grpc_status  NULL: no trailers */
static inline void h2_peer_begin(struct h2_peer *peer, int32_t id, const char *status,
                                 const char *grpc_status) {
    struct h2_peer_stream *stream = h2_peer_stream(peer, id);
    const nghttp2_nv nv[] = {h2_peer_nv(":status", status),
                             h2_peer_nv("content-type", "application/grpc"),
                             h2_peer_nv("x-said", "by the server")};
    const nghttp2_data_provider body = {{.ptr = NULL}, h2_peer_on_read};
    stream->trailers = grpc_status != NULL;
    if (grpc_status) snprintf(stream->status, sizeof(stream->status), "%s", grpc_status);
    stream->open = true;
    nghttp2_submit_response(peer->session, id, nv, ARRAY_LEN(nv), &body);
}

static inline void h2_peer_say(struct h2_peer *peer, int32_t id, struct str bytes, bool last) {
    struct h2_peer_stream *stream = h2_peer_stream(peer, id);
    buf_append(&stream->body, bytes);
    if (last) stream->open = false;
    nghttp2_session_resume_data(peer->session, id);
}

static inline void h2_peer_answer(struct h2_peer *peer, int32_t id, struct str body,
                                  const char *grpc_status) {
    h2_peer_begin(peer, id, "200", grpc_status);
    h2_peer_say(peer, id, body, true);
}

/* One header section, and nothing else. */
static inline void h2_peer_only_head(struct h2_peer *peer, int32_t id, const nghttp2_nv *nv,
                                     size_t count) {
    nghttp2_submit_response(peer->session, id, nv, count, NULL);
}

static inline void h2_peer_reset(struct h2_peer *peer, int32_t id, uint32_t code) {
    nghttp2_submit_rst_stream(peer->session, NGHTTP2_FLAG_NONE, id, code);
}

static inline void h2_peer_goaway(struct h2_peer *peer, int32_t last_id, uint32_t code) {
    nghttp2_submit_goaway(peer->session, NGHTTP2_FLAG_NONE, last_id, code, NULL, 0);
}

/* --- on a socket -------------------------------------------------------------------------- */

enum { PEER_CONNECTIONS = 8 };

struct peer_server {
    int listener, wake[2]; /* wake: closed by peer_server_stop() */
    uint16_t port;
    uint32_t max_streams;
    h2_peer_fn *on_request;
    pthread_t thread;
    atomic_size_t accepted, requests, resets, pings;
    struct h2_peer *peers[PEER_CONNECTIONS];
    int fds[PEER_CONNECTIONS];
};

static inline void peer_server_accept(struct peer_server *server) {
    size_t at = atomic_fetch_add(&server->accepted, 1);
    assert_true(at < PEER_CONNECTIONS);
    server->fds[at] = accept(server->listener, NULL, NULL);
    server->peers[at] = MEM_NEW(struct h2_peer);
    h2_peer_open(server->peers[at], server->max_streams, server->on_request, server);
    h2_peer_settle(server->peers[at]);
}

static inline void peer_server_close(struct peer_server *server, size_t at) {
    close(server->fds[at]);
    server->fds[at] = -1;
}

static inline void peer_server_read(struct peer_server *server, size_t at) {
    char bytes[16 * 1024];
    struct h2_peer *peer = server->peers[at];
    size_t requests = peer->requests, resets = peer->resets, pings = peer->pings;
    ssize_t len = recv(server->fds[at], bytes, sizeof(bytes), 0);
    if (len <= 0) {
        peer_server_close(server, at);
        return;
    }
    h2_peer_feed(peer, str_of(bytes, (size_t)len));
    atomic_fetch_add(&server->requests, peer->requests - requests);
    atomic_fetch_add(&server->resets, peer->resets - resets);
    atomic_fetch_add(&server->pings, peer->pings - pings);
}

static inline void peer_server_write(struct peer_server *server, size_t at) {
    struct h2_peer *peer = server->peers[at];
    while (peer->out.len) {
        ssize_t sent = send(server->fds[at], peer->out.at, peer->out.len, MSG_NOSIGNAL);
        if (sent <= 0) break;
        buf_drop(&peer->out, (size_t)sent);
    }
    buf_clear(&peer->out);
    if (peer->hangs_up) peer_server_close(server, at);
}

static inline void *peer_server_run(void *ctx) {
    struct peer_server *server = ctx;
    for (;;) {
        struct pollfd polls[PEER_CONNECTIONS + 2] = {{server->listener, POLLIN, 0},
                                                     {server->wake[0], POLLIN, 0}};
        for (size_t i = 0; i < PEER_CONNECTIONS; i++) {
            bool deaf = server->fds[i] < 0 || server->peers[i]->deaf;
            polls[i + 2] = (struct pollfd){deaf ? -1 : server->fds[i], POLLIN, 0};
            if (!deaf) peer_server_write(server, i);
            if (server->fds[i] < 0) polls[i + 2].fd = -1;
        }
        poll(polls, ARRAY_LEN(polls), -1);
        if (polls[1].revents) return NULL;
        if (polls[0].revents) peer_server_accept(server);
        for (size_t i = 0; i < PEER_CONNECTIONS; i++) {
            if (polls[i + 2].revents) peer_server_read(server, i);
        }
    }
}

static inline void peer_server_start(struct peer_server *server, uint32_t max_streams,
                                     h2_peer_fn *on_request) {
    struct sockaddr_in address = {.sin_family = AF_INET,
                                  .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t len = sizeof(address);
    *server = (struct peer_server){.max_streams = max_streams, .on_request = on_request};
    for (size_t i = 0; i < PEER_CONNECTIONS; i++) server->fds[i] = -1;
    server->listener = socket(AF_INET, SOCK_STREAM, 0);
    assert_int_equal(bind(server->listener, (struct sockaddr *)&address, len), 0);
    assert_int_equal(listen(server->listener, 16), 0);
    assert_int_equal(getsockname(server->listener, (struct sockaddr *)&address, &len), 0);
    server->port = ntohs(address.sin_port);
    assert_int_equal(pipe(server->wake), 0);
    pthread_create(&server->thread, NULL, peer_server_run, server);
}

static inline void peer_server_stop(struct peer_server *server) {
    close(server->wake[1]);
    pthread_join(server->thread, NULL);
    close(server->wake[0]);
    close(server->listener);
    for (size_t i = 0; i < PEER_CONNECTIONS; i++) {
        if (server->fds[i] >= 0) close(server->fds[i]);
        if (server->peers[i]) h2_peer_shut(server->peers[i]);
        free(server->peers[i]);
    }
}

#endif
