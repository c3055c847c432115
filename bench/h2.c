#include "h2.h"

#include "base/clock.h"
#include "base/mem.h"

#include <arpa/inet.h>
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#define FRAME_HEAD 9
#define FRAME_MAX 16384
#define READ_BYTES (256 * KIB)
#define OUT_MAX_BYTES (64 * MIB)
#define MESSAGE_MAX_BYTES (16 * MIB)
#define WINDOW_MAX 0x7fffffff
#define WINDOW_FIRST 65535
#define REFILL_BYTES (1u << 29)
#define GRPC_HEAD 5

enum frame_type {
    FRAME_DATA = 0,
    FRAME_HEADERS = 1,
    FRAME_RST_STREAM = 3,
    FRAME_SETTINGS = 4,
    FRAME_PUSH_PROMISE = 5,
    FRAME_PING = 6,
    FRAME_GOAWAY = 7,
    FRAME_WINDOW_UPDATE = 8,
    FRAME_CONTINUATION = 9,
};

enum frame_flag {
    FLAG_ACK = 1,
    FLAG_END_STREAM = 1,
    FLAG_END_HEADERS = 4,
    FLAG_PADDED = 8,
    FLAG_PRIORITY = 32,
};

struct frame {
    uint8_t type, flags;
    uint32_t stream;
    struct str body;
};

/* ---- bytes ---- */

static uint32_t get_u32(const char *at) {
    const unsigned char *b = (const unsigned char *)at;
    return (uint32_t)b[0] << 24 | (uint32_t)b[1] << 16 | (uint32_t)b[2] << 8 | b[3];
}

static void put_u32(char *at, uint32_t number) {
    at[0] = (char)(number >> 24);
    at[1] = (char)(number >> 16);
    at[2] = (char)(number >> 8);
    at[3] = (char)number;
}

static void put_frame(struct h2 *h2, enum frame_type type, uint8_t flags, uint32_t stream,
                      struct str body) {
    char *at = buf_room(&h2->out, FRAME_HEAD + body.len);
    assert(at && body.len <= FRAME_MAX);
    put_u32(at, (uint32_t)body.len << 8);
    at[3] = (char)type;
    at[4] = (char)flags;
    put_u32(at + 5, stream);
    if (body.len) memcpy(at + FRAME_HEAD, body.at, body.len);
    buf_grew(&h2->out, FRAME_HEAD + body.len);
}

static void put_window_update(struct h2 *h2, uint32_t stream, uint32_t more) {
    char body[4];
    put_u32(body, more);
    put_frame(h2, FRAME_WINDOW_UPDATE, 0, stream, str_of(body, sizeof(body)));
}

/* ---- life ---- */

static bool dial(int port, int *ret_fd, struct err *e) {
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0) return err_set(e, ERR_UNAVAILABLE, "socket: %s", strerror(errno));
    struct sockaddr_in where = {.sin_family = AF_INET,
                                .sin_port = htons((uint16_t)port),
                                .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    if (connect(fd, (struct sockaddr *)&where, sizeof(where)) < 0) {
        int why = errno;
        close(fd);
        return err_set(e, ERR_UNAVAILABLE, "connect to port %d: %s", port, strerror(why));
    }
    int on = 1;
    (void)setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    if (fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK) < 0) {
        close(fd);
        return err_set(e, ERR_INTERNAL, "fcntl: %s", strerror(errno));
    }
    *ret_fd = fd;
    return true;
}

static void greet(struct h2 *h2) {
    static const char settings[] = "\x00\x02\x00\x00\x00\x00"  /* ENABLE_PUSH 0 */
                                   "\x00\x03\x00\x00\x00\x00"  /* MAX_CONCURRENT_STREAMS 0 */
                                   "\x00\x04\x7f\xff\xff\xff"; /* INITIAL_WINDOW_SIZE */
    buf_append(&h2->out, STR("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"));
    put_frame(h2, FRAME_SETTINGS, 0, 0, str_of(settings, sizeof(settings) - 1));
    put_window_update(h2, 0, WINDOW_MAX - WINDOW_FIRST);
}

bool h2_connect(struct h2 *h2, int port, struct err *e) {
    int fd = -1;
    if (!dial(port, &fd, e)) return false;
    *h2 = (struct h2){.fd = fd,
                      .authority = STR("127.0.0.1"),
                      .send_window = WINDOW_FIRST,
                      .stream_window = WINDOW_FIRST,
                      .max_streams = UINT32_MAX};
    buf_init(&h2->in, 2 * READ_BYTES);
    buf_init(&h2->out, OUT_MAX_BYTES);
    nghttp2_hd_deflate_new(&h2->deflater, 4096);
    nghttp2_hd_inflate_new(&h2->inflater);
    assert(h2->deflater && h2->inflater);
    greet(h2);
    return true;
}

void h2_done(struct h2 *h2) {
    if (h2->fd >= 0) close(h2->fd);
    h2->fd = -1;
    buf_done(&h2->in);
    buf_done(&h2->out);
    nghttp2_hd_deflate_del(h2->deflater);
    nghttp2_hd_inflate_del(h2->inflater);
    for (size_t i = 0; i < h2->stream_count; i++) {
        buf_done(&h2->streams[i]->part);
        buf_done(&h2->streams[i]->waiting);
        free(h2->streams[i]);
    }
    free(h2->streams);
}

/* ---- sending ---- */

static nghttp2_nv header(struct str name, struct str value, uint8_t flags) {
    return (nghttp2_nv){(uint8_t *)(uintptr_t)name.at, (uint8_t *)(uintptr_t)value.at, name.len,
                        value.len, flags};
}

static struct h2_stream *stream_new(struct h2 *h2) {
    if (h2->stream_count == h2->stream_room) {
        h2->stream_room = h2->stream_room ? 2 * h2->stream_room : 16;
        h2->streams = mem_resize(h2->streams, h2->stream_room * sizeof(*h2->streams));
    }
    struct h2_stream *stream = MEM_NEW(struct h2_stream);
    stream->id = (uint32_t)(2 * h2->stream_count + 1);
    stream->send_window = h2->stream_window;
    stream->grpc_status = -1;
    buf_init(&stream->part, MESSAGE_MAX_BYTES);
    buf_init(&stream->waiting, MESSAGE_MAX_BYTES);
    h2->streams[h2->stream_count++] = stream;
    return stream;
}

#define FIELDS_MAX 24

static struct h2_stream *put_head(struct h2 *h2, const nghttp2_nv *headers, size_t count) {
    struct h2_stream *stream = stream_new(h2);
    uint8_t block[1024];
    ssize_t len = nghttp2_hd_deflate_hd(h2->deflater, block, sizeof(block), headers, count);
    assert(len > 0);
    put_frame(h2, FRAME_HEADERS, FLAG_END_HEADERS, stream->id, str_of(block, (size_t)len));
    return stream;
}

struct h2_stream *h2_post(struct h2 *h2, struct str path) {
    const nghttp2_nv headers[] = {
        header(STR(":method"), STR("POST"), NGHTTP2_NV_FLAG_NONE),
        header(STR(":scheme"), STR("http"), NGHTTP2_NV_FLAG_NONE),
        header(STR(":path"), path, NGHTTP2_NV_FLAG_NONE),
        header(STR(":authority"), h2->authority, NGHTTP2_NV_FLAG_NONE),
        header(STR("content-type"), STR("application/json"), NGHTTP2_NV_FLAG_NONE),
    };
    return put_head(h2, headers, ARRAY_LEN(headers));
}

struct h2_stream *h2_open(struct h2 *h2, struct str path, struct str authorization) {
    size_t count = 7;
    nghttp2_nv headers[FIELDS_MAX] = {
        header(STR(":method"), STR("POST"), NGHTTP2_NV_FLAG_NONE),
        header(STR(":scheme"), STR("http"), NGHTTP2_NV_FLAG_NONE),
        header(STR(":path"), path, NGHTTP2_NV_FLAG_NONE),
        header(STR(":authority"), h2->authority, NGHTTP2_NV_FLAG_NONE),
        header(STR("te"), STR("trailers"), NGHTTP2_NV_FLAG_NONE),
        header(STR("content-type"), STR("application/grpc"), NGHTTP2_NV_FLAG_NONE),
        header(STR("user-agent"), STR("weir-bench"), NGHTTP2_NV_FLAG_NONE),
    };
    assert(count + h2->field_count < FIELDS_MAX);
    if (authorization.len)
        headers[count++] =
            header(STR("authorization"), authorization, NGHTTP2_NV_FLAG_NO_INDEX);
    for (size_t i = 0; i < h2->field_count; i++)
        headers[count++] =
            header(h2->fields[i].name, h2->fields[i].value, NGHTTP2_NV_FLAG_NONE);
    return put_head(h2, headers, count);
}

/* As much of what waits as the two windows allow. */
static void pump(struct h2 *h2, struct h2_stream *stream) {
    while (stream->waiting.len && h2->send_window > 0 && stream->send_window > 0) {
        size_t len = stream->waiting.len;
        if (len > FRAME_MAX) len = FRAME_MAX;
        if ((int64_t)len > h2->send_window) len = (size_t)h2->send_window;
        if ((int64_t)len > stream->send_window) len = (size_t)stream->send_window;
        put_frame(h2, FRAME_DATA, 0, stream->id, str_head(buf_str(&stream->waiting), len));
        buf_drop(&stream->waiting, len);
        h2->send_window -= (int64_t)len;
        stream->send_window -= (int64_t)len;
    }
    if (stream->waiting.len) {
        h2->blocked = true;
        return;
    }
    if (stream->half_close) put_frame(h2, FRAME_DATA, FLAG_END_STREAM, stream->id, STR_EMPTY);
    stream->half_close = false;
}

static void pump_all(struct h2 *h2) {
    h2->blocked = false;
    for (size_t i = 0; i < h2->stream_count; i++)
        if (h2->streams[i]->waiting.len) pump(h2, h2->streams[i]);
}

void h2_send_bytes(struct h2 *h2, struct h2_stream *stream, struct str bytes) {
    buf_append(&stream->waiting, bytes);
    assert(buf_ok(&stream->waiting));
    pump(h2, stream);
}

void h2_send(struct h2 *h2, struct h2_stream *stream, struct str message) {
    char head[GRPC_HEAD] = {0};
    put_u32(head + 1, (uint32_t)message.len);
    buf_append(&stream->waiting, str_of(head, sizeof(head)));
    buf_append(&stream->waiting, message);
    assert(buf_ok(&stream->waiting));
    pump(h2, stream);
}

void h2_half_close(struct h2 *h2, struct h2_stream *stream) {
    stream->half_close = true;
    if (!stream->waiting.len) pump(h2, stream);
}

bool h2_flush(struct h2 *h2, bool *ret_left, struct err *e) {
    size_t done = 0;
    while (done < h2->out.len) {
        ssize_t wrote = write(h2->fd, h2->out.at + done, h2->out.len - done);
        if (wrote < 0 && errno == EINTR) continue;
        if (wrote < 0 && errno == EAGAIN) break;
        if (wrote < 0) return err_set(e, ERR_UNAVAILABLE, "write: %s", strerror(errno));
        done += (size_t)wrote;
    }
    buf_drop(&h2->out, done);
    *ret_left = h2->out.len > 0;
    return true;
}

/* ---- receiving ---- */

static struct h2_stream *stream_find(const struct h2 *h2, uint32_t id) {
    size_t at = id / 2;
    return id % 2 == 1 && at < h2->stream_count ? h2->streams[at] : NULL;
}

/* Take the padding off. */
static bool unpad(struct frame *frame, struct err *e) {
    if (!(frame->flags & FLAG_PADDED)) return true;
    size_t pad = frame->body.len ? (unsigned char)frame->body.at[0] : 0;
    if (frame->body.len < 1 + pad) return err_set(e, ERR_MALFORMED, "padding past the frame");
    frame->body = str_head(str_skip(frame->body, 1), frame->body.len - 1 - pad);
    return true;
}

/* Whole messages straight from the frame; what is cut goes through stream->part. */
static bool take_messages(struct h2 *h2, struct h2_stream *stream, struct str bytes,
                          struct err *e) {
    if (h2->on_bytes) return !bytes.len || h2->on_bytes(stream, bytes, e);
    bool joined = stream->part.len > 0;
    if (joined) {
        if (!buf_append(&stream->part, bytes))
            return err_set(e, ERR_TOO_LARGE, "a message over %zu bytes", MESSAGE_MAX_BYTES);
        bytes = buf_str(&stream->part);
    }
    size_t taken = 0;
    while (bytes.len - taken >= GRPC_HEAD) {
        size_t len = get_u32(bytes.at + taken + 1);
        if (bytes.at[taken] != 0)
            return err_set(e, ERR_MALFORMED, "a compressed message nobody asked for");
        if (bytes.len - taken - GRPC_HEAD < len) break;
        struct str message = str_of(bytes.at + taken + GRPC_HEAD, len);
        if (!h2->on_message(stream, message, e)) return false;
        taken += GRPC_HEAD + len;
    }
    if (joined) {
        buf_drop(&stream->part, taken);
        return true;
    }
    if (taken == bytes.len) return true;
    return buf_append(&stream->part, str_skip(bytes, taken)) ||
           err_set(e, ERR_TOO_LARGE, "a message over %zu bytes", MESSAGE_MAX_BYTES);
}

static bool stream_end(struct h2 *h2, struct h2_stream *stream, struct err *e) {
    if (stream->part.len) return err_set(e, ERR_MALFORMED, "the stream ended in a message");
    stream->ended = true;
    return h2->on_end(stream, e);
}

static bool on_data(struct h2 *h2, struct frame *frame, struct err *e) {
    struct h2_stream *stream = stream_find(h2, frame->stream);
    if (!stream) return err_set(e, ERR_MALFORMED, "DATA on stream %u", frame->stream);
    if (stream->http_status == 0) return err_set(e, ERR_MALFORMED, "DATA before HEADERS");
    h2->unacked += frame->body.len;
    stream->unacked += frame->body.len;
    if (h2->unacked >= REFILL_BYTES) {
        put_window_update(h2, 0, (uint32_t)h2->unacked);
        h2->unacked = 0;
    }
    if (stream->unacked >= REFILL_BYTES) {
        put_window_update(h2, stream->id, (uint32_t)stream->unacked);
        stream->unacked = 0;
    }
    bool last = frame->flags & FLAG_END_STREAM;
    return unpad(frame, e) && take_messages(h2, stream, frame->body, e) &&
           (!last || stream_end(h2, stream, e));
}

static void note_header(struct h2_stream *stream, struct str name, struct str value) {
    uint64_t number = 0;
    if (str_equal(name, STR(":status")) && str_to_u64(value, &number))
        stream->http_status = (int)number;
    if (str_equal(name, STR("grpc-status")) && str_to_u64(value, &number))
        stream->grpc_status = (int)number;
    if (str_equal(name, STR("grpc-message")))
        snprintf(stream->grpc_message, sizeof(stream->grpc_message), STR_FMT, STR_ARG(value));
}

static bool inflate_block(struct h2 *h2, struct h2_stream *stream, struct str block, bool last,
                          struct err *e) {
    const uint8_t *at = (const uint8_t *)block.at;
    size_t len = block.len;
    for (;;) {
        nghttp2_nv field;
        int flags = 0;
        ssize_t took = nghttp2_hd_inflate_hd2(h2->inflater, &field, &flags, at, len, last);
        if (took < 0)
            return err_set(e, ERR_MALFORMED, "header block: %s", nghttp2_strerror((int)took));
        at += took;
        len -= (size_t)took;
        if (flags & NGHTTP2_HD_INFLATE_EMIT)
            note_header(stream, str_of(field.name, field.namelen),
                        str_of(field.value, field.valuelen));
        if (flags & NGHTTP2_HD_INFLATE_FINAL) break;
        if (!(flags & NGHTTP2_HD_INFLATE_EMIT) && len == 0) break;
    }
    if (last) nghttp2_hd_inflate_end_headers(h2->inflater);
    return true;
}

static bool on_headers(struct h2 *h2, struct frame *frame, struct err *e) {
    if (frame->type == FRAME_HEADERS) {
        if (!unpad(frame, e)) return false;
        if (frame->flags & FLAG_PRIORITY) frame->body = str_skip(frame->body, 5);
        h2->headers_stream = frame->stream;
        h2->headers_end = frame->flags & FLAG_END_STREAM;
    }
    struct h2_stream *stream = stream_find(h2, frame->stream);
    if (!stream || frame->stream != h2->headers_stream)
        return err_set(e, ERR_MALFORMED, "HEADERS on stream %u", frame->stream);
    bool last = frame->flags & FLAG_END_HEADERS;
    h2->in_headers = !last;
    if (!inflate_block(h2, stream, frame->body, last, e)) return false;
    return !last || !h2->headers_end || stream_end(h2, stream, e);
}

static bool on_settings(struct h2 *h2, const struct frame *frame, struct err *e) {
    if (frame->flags & FLAG_ACK) return true;
    for (struct str rest = frame->body; rest.len >= 6; rest = str_skip(rest, 6)) {
        uint32_t id = (uint32_t)(unsigned char)rest.at[0] << 8 | (unsigned char)rest.at[1];
        uint32_t value = get_u32(rest.at + 2);
        if (id == NGHTTP2_SETTINGS_HEADER_TABLE_SIZE && value < 4096)
            nghttp2_hd_deflate_change_table_size(h2->deflater, value);
        if (id == NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS) h2->max_streams = value;
        if (id != NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE) continue;
        if (value > WINDOW_MAX) return err_set(e, ERR_MALFORMED, "window of %u", value);
        for (size_t i = 0; i < h2->stream_count; i++)
            h2->streams[i]->send_window += (int64_t)value - h2->stream_window;
        h2->stream_window = value;
    }
    h2->settled = true;
    put_frame(h2, FRAME_SETTINGS, FLAG_ACK, 0, STR_EMPTY);
    if (h2->blocked) pump_all(h2);
    return true;
}

static bool on_window_update(struct h2 *h2, const struct frame *frame, struct err *e) {
    if (frame->body.len != 4) return err_set(e, ERR_MALFORMED, "WINDOW_UPDATE size");
    int64_t more = get_u32(frame->body.at) & WINDOW_MAX;
    struct h2_stream *stream = stream_find(h2, frame->stream);
    if (frame->stream == 0) h2->send_window += more;
    if (stream) stream->send_window += more;
    if (h2->blocked) pump_all(h2);
    return true;
}

static bool on_frame(struct h2 *h2, struct frame *frame, struct err *e) {
    if (h2->in_headers && frame->type != FRAME_CONTINUATION)
        return err_set(e, ERR_MALFORMED, "frame %u inside a header block", frame->type);
    switch (frame->type) {
    case FRAME_DATA: return on_data(h2, frame, e);
    case FRAME_HEADERS:
    case FRAME_CONTINUATION: return on_headers(h2, frame, e);
    case FRAME_SETTINGS: return on_settings(h2, frame, e);
    case FRAME_WINDOW_UPDATE: return on_window_update(h2, frame, e);
    case FRAME_PING:
        if (!(frame->flags & FLAG_ACK)) put_frame(h2, FRAME_PING, FLAG_ACK, 0, frame->body);
        return true;
    case FRAME_RST_STREAM:
        if (stream_find(h2, frame->stream) && stream_find(h2, frame->stream)->ended)
            return true;
        return err_set(e, ERR_UNAVAILABLE, "RST_STREAM on stream %u, code %u", frame->stream,
                       frame->body.len >= 4 ? get_u32(frame->body.at) : 0);
    case FRAME_GOAWAY:
        return err_set(e, ERR_UNAVAILABLE, "GOAWAY, code %u: " STR_FMT,
                       frame->body.len >= 8 ? get_u32(frame->body.at + 4) : 0,
                       STR_ARG(str_skip(frame->body, 8)));
    case FRAME_PUSH_PROMISE: return err_set(e, ERR_MALFORMED, "PUSH_PROMISE");
    default: return true; /* RFC 9113 4.1: unknown types are ignored */
    }
}

static bool cut_frames(struct h2 *h2, struct err *e) {
    struct str rest = buf_str(&h2->in);
    while (rest.len >= FRAME_HEAD) {
        size_t len = get_u32(rest.at) >> 8;
        if (len > FRAME_MAX) return err_set(e, ERR_MALFORMED, "a frame of %zu bytes", len);
        if (rest.len < FRAME_HEAD + len) break;
        struct frame frame = {.type = (uint8_t)rest.at[3],
                              .flags = (uint8_t)rest.at[4],
                              .stream = get_u32(rest.at + 5) & WINDOW_MAX,
                              .body = str_of(rest.at + FRAME_HEAD, len)};
        h2->frames++;
        if (!on_frame(h2, &frame, e)) return false;
        rest = str_skip(rest, FRAME_HEAD + len);
    }
    buf_drop(&h2->in, h2->in.len - rest.len);
    return true;
}

bool h2_read(struct h2 *h2, struct err *e) {
    char *at = buf_room(&h2->in, READ_BYTES);
    assert(at);
    ssize_t got = read(h2->fd, at, READ_BYTES);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return true;
    if (got < 0) return err_set(e, ERR_UNAVAILABLE, "read: %s", strerror(errno));
    if (got == 0) return err_set(e, ERR_UNAVAILABLE, "the server closed the connection");
    h2->read_us = clock_mono_us();
    h2->reads++;
    h2->bytes += (uint64_t)got;
    buf_grew(&h2->in, (size_t)got);
    return cut_frames(h2, e);
}
