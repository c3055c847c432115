/* http2: one connection's HTTP/2 session, shared by the files that read and write it.
 *
 *     http2.c          starts and ends it; pings, deadlines, the last GOAWAY
 *     http2_receive.c  what the peer's frames mean, and which of them are abuse
 *     http2_send.c     the owners' answers become frames
 *
 * nghttp2 enforces the protocol's rules, these files enforce ours.
 *
 * Memory   belongs to its connection.
 * Threads  the connection's loop.
 * Source   RFC 9113; checks.md groups G and H for what counts as abuse.
 */
#ifndef WEIR_SERVER_HTTP2_H
#define WEIR_SERVER_HTTP2_H

#include "server/abuse.h"
#include "server/conn.h"
#include "server/frames.h"
#include "server/http2_memory.h"

#include <nghttp2/nghttp2.h>

struct http2 {
    struct conn *conn;
    nghttp2_session *session; /* call nghttp2 only after http2_awake() */
    struct http2_memory memory;
    struct gather *gather; /* during http2_gather() */
    struct abuse abuse;
    uint64_t head_ms;   /* when the open header block began, or CONN_NEVER */
    uint64_t asked_ms;  /* when our unanswered ping was sent, or CONN_NEVER */
    uint64_t notice_ms; /* when the first GOAWAY was sent, or CONN_NEVER */
    int32_t peer_reset; /* the stream that the peer reset last */
    size_t held_bytes;  /* of bodies that the owners have not consumed */
    size_t owed_bytes;  /* of these: not given back to the connection's window yet */
    uint64_t owed_ms;   /* when that was looked at last, or CONN_NEVER: nothing is owed */
    struct frames ahead;
    bool settings_came;
    bool ending; /* the last GOAWAY is queued: ignore everything else */
};

static inline uint64_t http2_now_ms(const struct http2 *http2) {
    return loop_now_ms(http2->conn->home->loop);
}

/* The session, for use: it rests no more. Each function of the protocol begins with this. */
static inline struct http2 *http2_awake(struct conn *conn) {
    struct http2 *http2 = conn->protocol_state;
    http2->memory.used_ms = loop_now_ms(conn->home->loop);
    if (!list_linked(&http2->memory.link)) http2_memory_wake(&http2->memory);
    return http2;
}

/* The stream's exchange. NULL: it was refused, or is gone. */
static inline struct exchange *http2_find(struct http2 *http2, int32_t stream_id) {
    return nghttp2_session_get_stream_user_data(http2->session, stream_id);
}

/* How many streams the peer may have open now. */
size_t http2_streams_max(const struct conn *conn);

void http2_reset(struct http2 *http2, int32_t stream_id, uint32_t code);

/* Bytes of a body came, or (taken) were consumed or have gone with their stream. The connection's
 * window opens again for bytes that wait for their owner, so that a stream which waits holds up no
 * other; up to HTTP2_HELD_MAX_BYTES, and not while memory is scarce. */
#define HTTP2_HELD_MAX_BYTES (8 * MIB)
void http2_hold(struct http2 *http2, size_t bytes);
void http2_let_go(struct http2 *http2, size_t bytes);

/* Queue the last GOAWAY, with `why` for the peer's log. Running exchanges are cut. */
void http2_end(struct http2 *http2, uint32_t code, struct str why);

/* The peer broke a rule, or made us reset a stream: too often, and the session ends. */
void http2_count_fault(struct http2 *http2);

/* Name the last stream that was handled; the session goes on for the streams that run. */
void http2_last_goaway(struct http2 *http2);

/* --- http2_receive.c: bytes of the peer become requests -------------------------------------
 *
 * nghttp2 reads the frames and calls back there. Abuse that it would accept is counted, and ends
 * the session. */

/* As in struct protocol. */
void http2_receive(struct conn *conn, struct str bytes);

/* Set nghttp2's callbacks for what it receives. */
void http2_receive_callbacks(nghttp2_session_callbacks *callbacks);

/* --- http2_send.c: answers become frames ----------------------------------------------------
 *
 * The owners' output is turned into frames once per turn, in http2_settle(). Bytes are taken
 * from nghttp2 only while the socket accepts them. A DATA frame is copied once, from the
 * exchange's queue into the turn's write. */

/* nghttp2 treats a stream above SETTINGS_MAX_CONCURRENT_STREAMS as a broken connection once
 * the peer has acknowledged the limit. We would rather refuse that one stream, so nghttp2
 * gets this number and the peer, when the frame is sent, the real one. */
#define STREAMS_NGHTTP2_ALLOWS 0x7fffffffu

/* As in struct protocol. */
void http2_settle(struct conn *conn);
void http2_gather(struct conn *conn, struct gather *gather);

/* Set nghttp2's callbacks for what it sends. */
void http2_send_callbacks(nghttp2_session_callbacks *callbacks);

#endif
