/* h2: one HTTP/2 client connection, made for measuring.
 *
 * It cuts frames itself and takes from nghttp2 only the header compression, because a client
 * that costs more than the server measures itself. It speaks what a gRPC client needs: many
 * streams, length-prefixed messages both ways, windows as large as the protocol allows,
 * answers to PING and SETTINGS. A server that breaks the protocol is an error with a
 * sentence, never a shrug: a run that met one does not count.
 *
 * Memory   owns its buffers and streams; h2_done() frees them. Messages lent to on_message are
 *          borrowed.
 * Threads  none.
 * Source   RFC 9113; RFC 7541; gRPC over HTTP/2 (PROTOCOL-HTTP2.md).
 */
#ifndef WEIR_BENCH_H2_H
#define WEIR_BENCH_H2_H

#include "base/buf.h"
#include "base/err.h"

#include <nghttp2/nghttp2.h>

struct h2_stream {
    uint32_t id;
    int64_t send_window;
    uint64_t unacked;   /* received since the last WINDOW_UPDATE */
    struct buf part;    /* a message whose end has not arrived */
    struct buf waiting; /* bytes to send once the window opens */
    bool half_close;    /* END_STREAM goes after `waiting` */
    bool ended;         /* the server said END_STREAM */
    int http_status;    /* 0 until headers came */
    int grpc_status;    /* -1 until trailers came */
    char grpc_message[160];
    void *user;
};

struct h2_field {
    struct str name, value;
};

struct h2 {
    int fd;
    struct str authority;
    const struct h2_field *fields; /* of every request, beside the usual ones; borrowed */
    size_t field_count;
    nghttp2_hd_deflater *deflater;
    nghttp2_hd_inflater *inflater;
    struct buf in, out;
    struct h2_stream **streams; /* stream 2n+1 at n */
    size_t stream_count, stream_room;
    int64_t send_window;
    int64_t stream_window; /* what the server grants a new stream */
    uint32_t max_streams;
    uint64_t unacked;
    bool settled; /* the server's SETTINGS came */
    bool blocked; /* some stream has bytes waiting for a window */
    bool in_headers;
    uint32_t headers_stream;
    bool headers_end;
    uint64_t read_us; /* when the bytes being looked at were read */
    uint64_t frames, reads, bytes;
    /* False ends the connection with *e. */
    bool (*on_message)(struct h2_stream *stream, struct str message, struct err *e);
    bool (*on_end)(struct h2_stream *stream, struct err *e);
    /* Not NULL: answers are no gRPC, and each piece of a body comes here. */
    bool (*on_bytes)(struct h2_stream *stream, struct str bytes, struct err *e);
};

/* Connect to 127.0.0.1:port (blocking), then send preface, SETTINGS and a large window. The
 * socket is non-blocking from then on. Set on_message and on_end afterwards. */
MUST_CHECK bool h2_connect(struct h2 *h2, int port, struct err *e);
void h2_done(struct h2 *h2);

/* Open a gRPC stream; its HEADERS are queued. Owned by the connection. An empty authorization
 * is left out. */
struct h2_stream *h2_open(struct h2 *h2, struct str path, struct str authorization);

/* The same for a POST of JSON; h2_send_bytes() is its body. */
struct h2_stream *h2_post(struct h2 *h2, struct str path);
void h2_send_bytes(struct h2 *h2, struct h2_stream *stream, struct str bytes);

/* Queue one message, its gRPC prefix in front. */
void h2_send(struct h2 *h2, struct h2_stream *stream, struct str message);
void h2_half_close(struct h2 *h2, struct h2_stream *stream);

/* Read once and hand out what is complete; nothing there is no error. */
MUST_CHECK bool h2_read(struct h2 *h2, struct err *e);

/* Write what is queued. *ret_left says whether the socket was full. */
MUST_CHECK bool h2_flush(struct h2 *h2, bool *ret_left, struct err *e);

#endif
