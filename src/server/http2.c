/* HTTP/2: nghttp2 enforces the protocol's rules, this file enforces ours.
 *
 * The owners' output is turned into frames once per turn, in http2_settle(). Bytes are taken
 * from nghttp2 only while the socket accepts them. A DATA frame is copied once, from the
 * exchange's queue into the turn's write.
 *
 * Source   RFC 9113; checks.md groups G and H for what counts as abuse. */
#include "base/mem.h"
#include "server/abuse.h"
#include "server/conn.h"
#include "server/frames.h"
#include "server/http2_head.h"
#include "server/single.h"

#include <assert.h>
#include <nghttp2/nghttp2.h>
#include <stdlib.h>

#define STREAM_WINDOW_BYTES (256 * KIB)
#define CONNECTION_WINDOW_BYTES (1 * MIB)

/* After the first GOAWAY, requests that were already sent still arrive. */
#define SHUT_DOWN_GRACE_MS 1000

/* nghttp2 treats a stream above SETTINGS_MAX_CONCURRENT_STREAMS as a broken connection once
 * the peer has acknowledged the limit. We would rather refuse that one stream, so nghttp2
 * gets this number and the peer, in put_frame(), the real one. */
#define STREAMS_NGHTTP2_ALLOWS 0x7fffffffu

struct http2 {
    struct conn *conn;
    nghttp2_session *session;
    struct gather *gather; /* during http2_gather() */
    struct abuse abuse;
    uint64_t head_ms;   /* when the open header block began, or CONN_NEVER */
    uint64_t asked_ms;  /* when our unanswered ping was sent, or CONN_NEVER */
    uint64_t notice_ms; /* when the first GOAWAY was sent, or CONN_NEVER */
    int32_t peer_reset; /* the stream that the peer reset last */
    struct frames ahead;
    bool settings_came;
    bool ending; /* the last GOAWAY is queued: ignore everything else */
};

static uint64_t now_ms(const struct http2 *http2) {
    return loop_now_ms(http2->conn->home->loop);
}

/* These calls fail only when memory is exhausted, or because of a bug here. */
static void must(int result) {
    assert(result == 0);
    (void)result;
}

/* --- abuse -------------------------------------------------------------------------------- */

/* Queue the last GOAWAY, with `why` for the peer's log. Running exchanges are cut. */
static void end_session(struct http2 *http2, uint32_t code, struct str why) {
    if (http2->ending) return;
    http2->ending = true;
    nghttp2_submit_goaway(http2->session, NGHTTP2_FLAG_NONE,
                          nghttp2_session_get_last_proc_stream_id(http2->session), code,
                          (const uint8_t *)why.at, why.len);
}

static void count_fault(struct http2 *http2) {
    if (!abuse_fault(&http2->abuse, now_ms(http2)))
        end_session(http2, NGHTTP2_ENHANCE_YOUR_CALM, STR("too_many_resets"));
}

static void count_refusal(struct http2 *http2) {
    if (!abuse_refusal(&http2->abuse, now_ms(http2)))
        end_session(http2, NGHTTP2_ENHANCE_YOUR_CALM, STR("too_many_resets"));
}

static void count_chore(struct http2 *http2) {
    if (!abuse_chore(&http2->abuse, now_ms(http2)))
        end_session(http2, NGHTTP2_ENHANCE_YOUR_CALM, STR("too_many_empty_frames"));
}

static void reset(struct http2 *http2, int32_t stream_id, uint32_t code) {
    nghttp2_submit_rst_stream(http2->session, NGHTTP2_FLAG_NONE, stream_id, code);
}

/* --- requests ----------------------------------------------------------------------------- */

static size_t streams_max(const struct conn *conn) {
    const struct server_limits *limits = conn->limits;
    bool stranger = !conn->authenticated && limits->streams_max_stranger > 0;
    return stranger ? limits->streams_max_stranger : limits->streams_max;
}

static int on_begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *ctx) {
    struct http2 *http2 = ctx;
    http2->head_ms = now_ms(http2);
    abuse_section(&http2->abuse);
    if (frame->headers.cat != NGHTTP2_HCAT_REQUEST || http2->ending) return 0;
    if (http2->conn->exchange_count >= streams_max(http2->conn)) {
        reset(http2, frame->hd.stream_id, NGHTTP2_REFUSED_STREAM);
        count_refusal(http2);
        return 0;
    }
    struct exchange *exchange = exchange_new(http2->conn, EXCHANGE_HTTP_2);
    exchange->stream_id = frame->hd.stream_id;
    /* Streams take turns. Without "incremental" the oldest would be sent completely first. */
    const nghttp2_extpri in_turns = {.urgency = NGHTTP2_EXTPRI_DEFAULT_URGENCY, .inc = 1};
    nghttp2_session_change_extpri_stream_priority(session, frame->hd.stream_id, &in_turns, 1);
    return nghttp2_session_set_stream_user_data(session, frame->hd.stream_id, exchange);
}

static struct exchange *http2_find(struct http2 *http2, int32_t stream_id) {
    return nghttp2_session_get_stream_user_data(http2->session, stream_id);
}

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                     size_t name_len, const uint8_t *value, size_t value_len, uint8_t flags,
                     void *ctx) {
    (void)session;
    (void)flags;
    struct http2 *http2 = ctx;
    const struct server_limits *limits = http2->conn->limits;
    if (!abuse_field(&http2->abuse, name_len + value_len + HTTP2_FIELD_EXTRA_BYTES,
                     limits->fields_max_bytes + limits->target_max_bytes))
        end_session(http2, NGHTTP2_ENHANCE_YOUR_CALM, STR("header_list_too_large"));

    struct exchange *exchange = http2_find(http2, frame->hd.stream_id);
    if (!exchange) return 0;
    if (frame->headers.cat != NGHTTP2_HCAT_REQUEST)
        return single_may_trail(str_of(name, name_len)) ? 0
                                                        : NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    if (exchange->request)
        http2_head_field(exchange, str_of(name, name_len), str_of(value, value_len));
    return 0;
}

static void on_request_head(struct http2 *http2, struct exchange *exchange, bool ends) {
    int refusal = http2_head_end(exchange, ends);
    if (refusal == HTTP2_HEAD_MALFORMED) {
        exchange->reset = true;
        reset(http2, exchange->stream_id, NGHTTP2_PROTOCOL_ERROR);
        count_fault(http2);
    } else if (refusal) {
        exchange_refuse(exchange, refusal);
    } else {
        exchange_begin(exchange);
        if (ends) exchange_give_end(exchange);
    }
}

static int on_data(nghttp2_session *session, uint8_t flags, int32_t stream_id,
                   const uint8_t *bytes, size_t len, void *ctx) {
    (void)flags;
    struct http2 *http2 = ctx;
    struct exchange *exchange = http2_find(http2, stream_id);
    abuse_heard(&http2->abuse);
    if (!exchange || exchange->reset) {
        nghttp2_session_consume(session, stream_id, len);
        return 0;
    }
    exchange_give_body(exchange, str_of(bytes, len));
    return 0;
}

/* --- frames on closed streams --------------------------------------------------------- */

/* Frames on a stream that the peer has closed, or whose number it has skipped, are errors (RFC
 * 9113 5.1 and 5.1.1). nghttp2 keeps no closed streams here and would not notice. */
static bool is_closed(const struct http2 *http2, int32_t stream_id) {
    bool past = stream_id % 2 == 1 &&
                stream_id <= nghttp2_session_get_last_proc_stream_id(http2->session);
    return past && !nghttp2_session_find_stream(http2->session, stream_id) &&
           !abuse_was_reset(&http2->abuse, stream_id);
}

static void refuse_closed(struct http2 *http2) {
    end_session(http2, NGHTTP2_STREAM_CLOSED, STR("stream_is_closed"));
}

/* nghttp2 reports header sections at the right time, between the frames around them. */
static int on_begin_frame(nghttp2_session *session, const nghttp2_frame_hd *head, void *ctx) {
    (void)session;
    struct http2 *http2 = ctx;
    if (head->type == NGHTTP2_HEADERS && is_closed(http2, head->stream_id))
        refuse_closed(http2);
    return 0;
}

/* PRIORITY has no effect any more, and nghttp2 drops it silently. */
static void judge_priority(struct http2 *http2, const struct frame_head *head) {
    bool on_itself = (head->first4 & 0x7fffffff) == (uint32_t)head->stream;
    if (head->stream == 0 || on_itself)
        end_session(http2, NGHTTP2_PROTOCOL_ERROR, STR("bad_priority"));
    count_chore(http2);
}

/* Check the heads of the frames that nghttp2 is about to read for what it would accept
 * silently. */
static void look_ahead(struct http2 *http2, struct str bytes) {
    struct frame_head head;
    while (!http2->ending && frames_next(&http2->ahead, &bytes, &head)) {
        bool again = head.stream != 0 && head.stream == http2->peer_reset;
        switch (head.type) {
        case NGHTTP2_DATA:
            if (again || is_closed(http2, head.stream)) refuse_closed(http2);
            break;
        case NGHTTP2_PRIORITY: judge_priority(http2, &head); break;
        case NGHTTP2_RST_STREAM: http2->peer_reset = head.stream; break;
        default: break;
        }
    }
}

/* --- pings -------------------------------------------------------------------------------- */

static void on_ping(struct http2 *http2) {
    if (!abuse_ping(&http2->abuse, now_ms(http2), http2->conn->limits->ping_apart_ms))
        end_session(http2, NGHTTP2_ENHANCE_YOUR_CALM, STR("too_many_pings"));
}

static void last_goaway(struct http2 *http2) {
    http2->notice_ms = CONN_NEVER;
    nghttp2_submit_goaway(http2->session, NGHTTP2_FLAG_NONE,
                          nghttp2_session_get_last_proc_stream_id(http2->session),
                          NGHTTP2_NO_ERROR, NULL, 0);
}

static void on_ping_answer(struct http2 *http2) {
    http2->asked_ms = CONN_NEVER;
    if (http2->notice_ms != CONN_NEVER) last_goaway(http2);
}

/* --- frames ------------------------------------------------------------------------------- */

static void on_stream_frame(struct http2 *http2, const nghttp2_frame *frame) {
    struct exchange *exchange = http2_find(http2, frame->hd.stream_id);
    bool ends = (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) != 0;
    bool is_data = frame->hd.type == NGHTTP2_DATA;
    if (is_data && !ends && frame->hd.length == 0) count_chore(http2);
    if (!exchange || exchange->reset) return;
    if (!is_data && frame->headers.cat == NGHTTP2_HCAT_REQUEST)
        on_request_head(http2, exchange, ends);
    else if (ends)
        exchange_give_end(exchange);
}

static int on_frame(nghttp2_session *session, const nghttp2_frame *frame, void *ctx) {
    (void)session;
    struct http2 *http2 = ctx;
    bool is_ack = (frame->hd.flags & NGHTTP2_FLAG_ACK) != 0;
    if (http2->ending) return 0;
    switch (frame->hd.type) {
    case NGHTTP2_HEADERS: http2->head_ms = CONN_NEVER; /* fallthrough */
    case NGHTTP2_DATA: on_stream_frame(http2, frame); break;
    case NGHTTP2_SETTINGS:
        http2->settings_came = true;
        if (!is_ack) count_chore(http2);
        break;
    case NGHTTP2_PING:
        if (is_ack)
            on_ping_answer(http2);
        else
            on_ping(http2);
        break;
    case NGHTTP2_RST_STREAM: {
        struct exchange *exchange = http2_find(http2, frame->hd.stream_id);
        if (exchange) exchange->peer_reset = true;
        break;
    }
    default: break;
    }
    return 0;
}

static enum exchange_close how_closed(const struct exchange *exchange) {
    if (exchange->aborted) return EXCHANGE_ABORTED;
    if (exchange->response_sent) return EXCHANGE_COMPLETE;
    return exchange->peer_reset ? EXCHANGE_PEER_LEFT : EXCHANGE_ABORTED;
}

static int on_stream_close(nghttp2_session *session, int32_t stream_id, uint32_t code,
                           void *ctx) {
    (void)code;
    struct http2 *http2 = ctx;
    struct exchange *exchange = http2_find(http2, stream_id);
    if (!exchange) return 0;
    /* Give back to the connection's window what the owner did not consume. */
    if (exchange->unconsumed) nghttp2_session_consume_connection(session, exchange->unconsumed);
    exchange_close(exchange, how_closed(exchange));
    return 0;
}

/* nghttp2 found an error in a stream and will reset it. Count it here, because many may arrive
 * before anything is sent. */
static int on_invalid_frame(nghttp2_session *session, const nghttp2_frame *frame, int why,
                            void *ctx) {
    (void)session;
    (void)why;
    struct http2 *http2 = ctx;
    struct exchange *exchange =
        frame->hd.stream_id ? http2_find(http2, frame->hd.stream_id) : NULL;
    if (!exchange || exchange->reset) return 0;
    exchange->reset = true;
    count_fault(http2);
    return 0;
}

static int on_frame_sent(nghttp2_session *session, const nghttp2_frame *frame, void *ctx) {
    (void)session;
    struct http2 *http2 = ctx;
    uint8_t type = frame->hd.type;
    if (type != NGHTTP2_HEADERS && type != NGHTTP2_DATA && type != NGHTTP2_RST_STREAM) return 0;
    struct exchange *exchange = http2_find(http2, frame->hd.stream_id);
    if (type == NGHTTP2_RST_STREAM) {
        abuse_reset(&http2->abuse, frame->hd.stream_id);
        /* Not requested by us: nghttp2 found an error in the stream. */
        if (exchange && !exchange->reset) count_fault(http2);
        return 0;
    }
    abuse_said(&http2->abuse);
    if (!exchange || !(frame->hd.flags & NGHTTP2_FLAG_END_STREAM)) return 0;
    exchange->response_sent = true;
    if (exchange->request_ended) return 0;
    exchange->reset = true; /* RFC 9113 8.1: the answer is complete, the rest is not needed */
    reset(http2, exchange->stream_id, NGHTTP2_NO_ERROR);
    return 0;
}

/* --- answers: bytes ----------------------------------------------------------------------- */

static void submit_trailers(struct http2 *http2, struct exchange *exchange) {
    struct http2_section out;
    http2_head_write(exchange->trailers, &out);
    nghttp2_submit_trailer(http2->session, exchange->stream_id, out.nv, out.count);
    free(exchange->trailers);
    exchange->trailers = NULL;
}

/* Returns how much of the queue the next DATA frame takes; put_data() copies the bytes. */
static ssize_t on_read(nghttp2_session *session, int32_t stream_id, uint8_t *at, size_t len,
                       uint32_t *flags, nghttp2_data_source *source, void *ctx) {
    (void)session;
    (void)source;
    (void)at;
    struct http2 *http2 = ctx;
    struct exchange *exchange = http2_find(http2, stream_id);
    if (!exchange) return NGHTTP2_ERR_DEFERRED;
    size_t queued = exchange_queued(exchange);
    if (exchange->aborted || (queued == 0 && !exchange->ended)) {
        exchange->body_deferred = true;
        return NGHTTP2_ERR_DEFERRED;
    }
    *flags = NGHTTP2_DATA_FLAG_NO_COPY;
    if (queued > len) return (ssize_t)len;
    if (!exchange->ended) return (ssize_t)queued;
    *flags |= NGHTTP2_DATA_FLAG_EOF;
    if (exchange->trailers) {
        *flags |= NGHTTP2_DATA_FLAG_NO_END_STREAM;
        submit_trailers(http2, exchange);
    }
    return (ssize_t)queued;
}

static int put_data(nghttp2_session *session, nghttp2_frame *frame, const uint8_t *head,
                    size_t len, nghttp2_data_source *source, void *ctx) {
    (void)session;
    (void)source;
    struct http2 *http2 = ctx;
    struct exchange *exchange = http2_find(http2, frame->hd.stream_id);
    if (!exchange) return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE; /* cut; reset with it */
    if (gather_full(http2->gather)) return NGHTTP2_ERR_WOULDBLOCK;
    gather_append(http2->gather, str_of(head, 9));
    gather_append(http2->gather, str_head(exchange_unsent(exchange), len));
    exchange_left(exchange, len);
    return 0;
}

static void put_frame(struct http2 *http2, struct gather *gather, struct str frame) {
    char *at = gather->at + gather->len;
    gather_append(gather, frame);
    frames_set(at, frame.len, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS,
               (uint32_t)streams_max(http2->conn)); /* see STREAMS_NGHTTP2_ALLOWS */
}

#define FRAME_TYPE_AT 3

/* After the last GOAWAY no stream needs a reset of its own. */
static void http2_gather(struct conn *conn, struct gather *gather) {
    struct http2 *http2 = conn->protocol_state;
    http2->gather = gather;
    while (!gather_full(gather)) {
        const uint8_t *frame;
        ssize_t len = nghttp2_session_mem_send(http2->session, &frame);
        if (len <= 0) break;
        if (http2->ending && frame[FRAME_TYPE_AT] == NGHTTP2_RST_STREAM) continue;
        put_frame(http2, gather, str_of(frame, (size_t)len));
    }
    http2->gather = NULL;
    bool over = !nghttp2_session_want_read(http2->session) &&
                !nghttp2_session_want_write(http2->session);
    if (over || http2->ending) conn_finish(conn);
}

/* --- answers: once a turn ----------------------------------------------------------------- */

static void submit_head(struct http2 *http2, struct exchange *exchange) {
    struct http2_section out;
    http2_head_write(exchange->head, &out);
    bool whole = exchange->ended && !exchange->trailers &&
                 (exchange->is_head || exchange_queued(exchange) == 0);
    nghttp2_data_provider body = {{.ptr = NULL}, on_read};
    nghttp2_submit_response(http2->session, exchange->stream_id, out.nv, out.count,
                            whole ? NULL : &body);
    free(exchange->head);
    exchange->head = NULL;
}

static void submit_continue(struct http2 *http2, struct exchange *exchange) {
    const struct section interim = {.status = 100};
    struct http2_section out;
    http2_head_write(&interim, &out);
    nghttp2_submit_headers(http2->session, NGHTTP2_FLAG_NONE, exchange->stream_id, NULL, out.nv,
                           out.count, NULL);
}

static const uint32_t code_of[] = {
    [ABORT_NO_ERROR] = NGHTTP2_NO_ERROR,
    [ABORT_CANCEL] = NGHTTP2_CANCEL,
    [ABORT_INTERNAL] = NGHTTP2_INTERNAL_ERROR,
    [ABORT_PROTOCOL] = NGHTTP2_PROTOCOL_ERROR,
    [ABORT_REFUSED_STREAM] = NGHTTP2_REFUSED_STREAM,
    [ABORT_ENHANCE_CALM] = NGHTTP2_ENHANCE_YOUR_CALM,
};

static void settle_one(struct http2 *http2, struct exchange *exchange) {
    if (exchange->reset) return;
    if (exchange->aborted) {
        exchange->reset = true;
        reset(http2, exchange->stream_id, code_of[exchange->abort_code]);
        return;
    }
    bool waits = exchange->expects_continue && !exchange->body_came && !exchange->head_given;
    exchange->expects_continue = false;
    if (waits) submit_continue(http2, exchange);
    if (exchange->head) {
        submit_head(http2, exchange);
    } else if (exchange->body_deferred && (exchange_queued(exchange) || exchange->ended)) {
        exchange->body_deferred = false;
        nghttp2_session_resume_data(http2->session, exchange->stream_id);
    }
    exchange_settle(exchange);
}

/* --- the rest ----------------------------------------------------------------------------- */

static void http2_forget(struct exchange *exchange) {
    struct http2 *http2 = exchange->conn->protocol_state;
    nghttp2_session_set_stream_user_data(http2->session, exchange->stream_id, NULL);
}

static void http2_settle(struct conn *conn) {
    struct http2 *http2 = conn->protocol_state;
    struct list now;
    list_init(&now);
    list_move(&conn->dirty, &now);
    struct list *link;
    while ((link = list_pop(&now)))
        settle_one(http2, CONTAINER_OF(link, struct exchange, dirty));
}

static void http2_receive(struct conn *conn, struct str bytes) {
    struct http2 *http2 = conn->protocol_state;
    look_ahead(http2, bytes);
    ssize_t used =
        nghttp2_session_mem_recv(http2->session, (const uint8_t *)bytes.at, bytes.len);
    if (used == NGHTTP2_ERR_BAD_CLIENT_MAGIC) {
        conn_cut(conn, EXCHANGE_ABORTED);
        return;
    }
    /* A flood of frames to acknowledge, or of CONTINUATION. */
    if (used < 0) end_session(http2, NGHTTP2_ENHANCE_YOUR_CALM, STR("too_many_frames"));
    if (http2->ending)
        conn_finish(conn);
    else
        conn_flush_soon(conn);
}

static void http2_consumed(struct exchange *exchange, size_t len) {
    struct http2 *http2 = exchange->conn->protocol_state;
    nghttp2_session_consume(http2->session, exchange->stream_id, len);
    if (nghttp2_session_want_write(http2->session)) conn_flush_soon(exchange->conn);
}

static void http2_authenticated(struct conn *conn) {
    struct http2 *http2 = conn->protocol_state;
    const struct server_limits *limits = conn->limits;
    if (limits->streams_max_stranger == 0 ||
        limits->streams_max_stranger >= limits->streams_max)
        return;
    const nghttp2_settings_entry entry = {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS,
                                          STREAMS_NGHTTP2_ALLOWS};
    must(nghttp2_submit_settings(http2->session, NGHTTP2_FLAG_NONE, &entry, 1));
    conn_flush_soon(conn);
}

static bool http2_wants_bytes(const struct conn *conn) {
    (void)conn; /* each stream's window limits its sender */
    return true;
}

/* In two steps (RFC 9113 6.8): first announce the stop; then, when the peer must have read
 * that, name the last stream that was handled. */
static void http2_shut_down(struct conn *conn) {
    struct http2 *http2 = conn->protocol_state;
    nghttp2_submit_shutdown_notice(http2->session);
    nghttp2_submit_ping(http2->session, NGHTTP2_FLAG_NONE, NULL);
    http2->notice_ms = now_ms(http2);
    conn_flush_soon(conn);
    conn_rearm(conn);
}

static uint64_t keepalive_due_ms(const struct http2 *http2) {
    const struct server_limits *limits = http2->conn->limits;
    if (limits->keepalive_ms == 0) return CONN_NEVER;
    if (http2->asked_ms != CONN_NEVER) return http2->asked_ms + limits->keepalive_timeout_ms;
    return http2->conn->read_ms + limits->keepalive_ms;
}

static uint64_t head_due_ms(const struct http2 *http2) {
    uint64_t patience_ms = http2->conn->limits->header_timeout_ms;
    if (!http2->settings_came) return http2->conn->opened_ms + patience_ms;
    return http2->head_ms == CONN_NEVER ? CONN_NEVER : http2->head_ms + patience_ms;
}

static uint64_t notice_due_ms(const struct http2 *http2) {
    return http2->notice_ms == CONN_NEVER ? CONN_NEVER : http2->notice_ms + SHUT_DOWN_GRACE_MS;
}

static uint64_t http2_due_ms(const struct conn *conn) {
    const struct http2 *http2 = conn->protocol_state;
    uint64_t due_ms = keepalive_due_ms(http2);
    if (head_due_ms(http2) < due_ms) due_ms = head_due_ms(http2);
    if (notice_due_ms(http2) < due_ms) due_ms = notice_due_ms(http2);
    return due_ms;
}

static void http2_overdue(struct conn *conn) {
    struct http2 *http2 = conn->protocol_state;
    uint64_t now = now_ms(http2);
    if (head_due_ms(http2) <= now) {
        end_session(http2, NGHTTP2_ENHANCE_YOUR_CALM, STR("header_timeout"));
        conn_finish(conn);
    } else if (notice_due_ms(http2) <= now) {
        last_goaway(http2);
        conn_flush_soon(conn);
    } else if (http2->asked_ms != CONN_NEVER) {
        conn_cut(conn, EXCHANGE_PEER_LEFT);
    } else {
        http2->asked_ms = now;
        nghttp2_submit_ping(http2->session, NGHTTP2_FLAG_NONE, NULL);
        conn_flush_soon(conn);
    }
}

static void make_callbacks(struct home *home) {
    nghttp2_session_callbacks *callbacks;
    must(nghttp2_session_callbacks_new(&callbacks));
    nghttp2_session_callbacks_set_on_begin_frame_callback(callbacks, on_begin_frame);
    nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, on_begin_headers);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
    nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(callbacks, on_invalid_frame);
    nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, on_frame_sent);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_stream_close);
    nghttp2_session_callbacks_set_send_data_callback(callbacks, put_data);
    home->callbacks = callbacks;
}

static void make_options(struct home *home) {
    nghttp2_option *options;
    must(nghttp2_option_new(&options));
    nghttp2_option_set_no_auto_window_update(options, 1);
    nghttp2_option_set_no_closed_streams(options, 1);
    /* A token followed by a space is refused with a message by the code that reads tokens. */
    nghttp2_option_set_no_rfc9113_leading_and_trailing_ws_validation(options, 1);
    abuse_limit(options);
    home->options = options;
}

static void http2_start(struct conn *conn) {
    struct home *home = conn->home;
    if (!home->callbacks) make_callbacks(home);
    if (!home->options) make_options(home);

    struct http2 *http2 = MEM_NEW(struct http2);
    conn->protocol_state = http2;
    http2->conn = conn;
    frames_init(&http2->ahead);
    abuse_init(&http2->abuse);
    http2->head_ms = http2->asked_ms = http2->notice_ms = CONN_NEVER;
    must(nghttp2_session_server_new2(&http2->session, home->callbacks, http2, home->options));

    const nghttp2_settings_entry settings[] = {
        {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, STREAMS_NGHTTP2_ALLOWS},
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, STREAM_WINDOW_BYTES},
        {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, (uint32_t)conn->limits->fields_max_bytes},
        {NGHTTP2_SETTINGS_NO_RFC7540_PRIORITIES, 1},
    };
    must(nghttp2_submit_settings(http2->session, NGHTTP2_FLAG_NONE, settings,
                                 ARRAY_LEN(settings)));
    must(nghttp2_session_set_local_window_size(http2->session, NGHTTP2_FLAG_NONE, 0,
                                               CONNECTION_WINDOW_BYTES));
    conn_flush_soon(conn);
}

static void http2_free(struct conn *conn) {
    struct http2 *http2 = conn->protocol_state;
    nghttp2_session_del(http2->session);
    free(http2);
}

const struct protocol protocol_http2 = {
    .name = "h2",
    .start = http2_start,
    .free = http2_free,
    .receive = http2_receive,
    .settle = http2_settle,
    .gather = http2_gather,
    .forget = http2_forget,
    .consumed = http2_consumed,
    .authenticated = http2_authenticated,
    .wants_bytes = http2_wants_bytes,
    .shut_down = http2_shut_down,
    .due_ms = http2_due_ms,
    .overdue = http2_overdue,
};
