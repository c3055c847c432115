/* h2_session: the client's side of one HTTP/2 connection, without a socket.
 *
 * nghttp2 enforces the protocol's rules. This file has ours: which call gets which report, what
 * is kept while a reader pauses, and what is known about a call that failed.
 *
 *     h2_stream_new ─▶ waiting ─▶ asking ─▶ reading ─▶ over
 *                      (on_field ..., on_head once, at the end of `asking`)
 *
 * A call waits while the server allows no further stream. A paused call takes no bytes: its
 * window stays closed, and bytes that arrived before, at most H2_WINDOW_BYTES, are kept. The
 * connection's own window is opened at once, so that other calls go on.
 *
 * It uses no socket and no clock, so tests and the fuzzer can drive it with bytes.
 *
 * Private to client/.
 *
 * Memory   a stream frees itself after on_end, or by h2_stream_cancel(). It may outlive its
 *          session while its reader pauses. Arguments of callbacks are lent.
 * Threads  none; one session belongs to one loop.
 * Source   RFC 9113. */
#ifndef WEIR_CLIENT_H2_SESSION_H
#define WEIR_CLIENT_H2_SESSION_H

#include "base/err.h"
#include "base/list.h"
#include "base/states.h"
#include "client/http.h"

/* How much a server may send on one call before its reader takes it. */
#define H2_WINDOW_BYTES (64 * KIB)
#define H2_CONNECTION_WINDOW_BYTES (1 * MIB)

/* Limit for the fields of one head, or of the trailers; each field counts 32 bytes extra. */
#define H2_HEAD_MAX_BYTES (64 * KIB)

/* Limit for the number of fields of a request. */
#define H2_SESSION_FIELDS_MAX 130

/* Limit for the unsent part of a request. */
#define H2_UNSENT_MAX_BYTES (64 * MIB)

struct h2_session;
struct h2_stream;

enum h2_stream_state {
    H2_STREAM_WAITING, /* nothing was sent */
    H2_STREAM_ASKING,  /* the head of the request was sent */
    H2_STREAM_READING, /* the head of the response has arrived */
    H2_STREAM_OVER,
    H2_STREAM_STATE_COUNT,
};

extern const struct state h2_stream_states[H2_STREAM_STATE_COUNT];

/* How a call ended. */
struct h2_end {
    const struct err *why; /* NULL: the response is complete */
    bool reset;            /* the server reset the stream, with `code` */
    uint32_t code;         /* RFC 9113 7 */
    /* The server has provably done nothing: the request was not sent, the server refused the
     * stream, or its GOAWAY excludes it. The request may be repeated. */
    bool never_seen;
    /* The connection had carried an earlier call and none when this one began, and was lost without
     * a byte since. */
    bool unanswered;
    /* The server has done nothing, because it wants HTTP/1.1 for it or does not speak HTTP/2. */
    bool wants_http1;
};

/* The stream may be paused, written to and cancelled inside each of them. None runs before
 * h2_stream_new() has returned. */
struct h2_events {
    /* A field of the head; after on_head, of the trailers, which may overtake bytes that wait
     * for a paused reader. */
    void (*on_field)(struct str name, struct str value, void *ctx);
    void (*on_head)(unsigned status, void *ctx);
    /* Returns how many bytes were taken; fewer only if the callback has paused. The rest comes
     * again after the pause. */
    size_t (*on_body)(struct str bytes, void *ctx);
    void (*on_drained)(void *ctx); /* everything written was sent; may be NULL */
    void (*on_end)(const struct h2_end *end, void *ctx);
};

/* There is output: call h2_session_pull() soon. */
typedef void h2_output_fn(void *ctx);

/* When the first call is sent: at once, or after the server's SETTINGS, so that a server which does
 * not speak HTTP/2 has provably not seen it. */
enum h2_opening { H2_ASKS_AT_ONCE, H2_ASKS_AFTER_SETTINGS };

struct h2_session *h2_session_new(enum h2_opening opening, h2_output_fn *on_output, void *ctx);
/* No stream may be left: h2_session_break(). Not inside a callback. */
void h2_session_free(struct h2_session *session);

/* Bytes from the server. False: the connection cannot be used any more.
 * errors  ERR_UNAVAILABLE it is not HTTP/2, or breaks its rules */
MUST_CHECK bool h2_session_feed(struct h2_session *session, struct str bytes, struct err *e);

/* The next bytes to send, valid until the next call; empty: none now. */
struct str h2_session_pull(struct h2_session *session);

/* The connection has ended, and so does every call; a paused call ends after its pause. */
void h2_session_break(struct h2_session *session, const struct err *why);

/* The server has announced that it takes no further calls (GOAWAY), or all numbers are used. */
bool h2_session_drains(const struct h2_session *session);
/* The reason in the server's GOAWAY ("ENHANCE_YOUR_CALM"), or NULL. */
const char *h2_session_farewell(const struct h2_session *session);
/* There is nothing left to read or to write. */
bool h2_session_over(const struct h2_session *session);
size_t h2_session_streams(const struct h2_session *session);
/* A further call would be sent at once. */
bool h2_session_has_room(const struct h2_session *session);

void h2_session_ping(struct h2_session *session);
bool h2_session_ping_waits(const struct h2_session *session); /* for its answer */

/* --- one call -------------------------------------------------------------------------- */

struct h2_head {
    struct str method, scheme, authority, path;
    const struct http_header *fields; /* lower case names */
    size_t field_count;
    bool no_body;
};

/* The head is copied. */
struct h2_stream *h2_stream_new(struct h2_session *session, const struct h2_head *head,
                                const struct h2_events *events, void *ctx);

/* Append to the request's body. False: more than H2_UNSENT_MAX_BYTES wait. */
MUST_CHECK bool h2_stream_write(struct h2_stream *stream, struct str bytes);
/* The request's body is complete. */
void h2_stream_finish(struct h2_stream *stream);
size_t h2_stream_unsent(const struct h2_stream *stream);
/* Nothing was sent yet: there is no connection, or no room on it. */
bool h2_stream_waits(const struct h2_stream *stream);
/* The same, because the server allows no more concurrent calls. */
bool h2_stream_queues(const struct h2_stream *stream);

void h2_stream_pause(struct h2_stream *stream);
/* May call back before it returns. */
void h2_stream_resume(struct h2_stream *stream);
/* Nothing more is reported; the stream is reset (CANCEL). */
void h2_stream_cancel(struct h2_stream *stream);

#endif
