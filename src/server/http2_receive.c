#include "server/http2.h"

#include "server/http2_head.h"
#include "server/single.h"

/* --- abuse -------------------------------------------------------------------------------- */

static void count_refusal(struct http2 *http2) {
    if (!abuse_refusal(&http2->abuse, http2_now_ms(http2)))
        http2_end(http2, NGHTTP2_ENHANCE_YOUR_CALM, STR("too_many_resets"));
}

static void count_chore(struct http2 *http2) {
    if (!abuse_chore(&http2->abuse, http2_now_ms(http2)))
        http2_end(http2, NGHTTP2_ENHANCE_YOUR_CALM, STR("too_many_empty_frames"));
}

/* --- requests ----------------------------------------------------------------------------- */

static int on_begin_headers(nghttp2_session *session, const nghttp2_frame *frame, void *ctx) {
    struct http2 *http2 = ctx;
    http2->head_ms = http2_now_ms(http2);
    abuse_section(&http2->abuse);
    if (frame->headers.cat != NGHTTP2_HCAT_REQUEST || http2->ending) return 0;
    if (http2->conn->exchange_count >= http2_streams_max(http2->conn)) {
        http2_reset(http2, frame->hd.stream_id, NGHTTP2_REFUSED_STREAM);
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

static int on_header(nghttp2_session *session, const nghttp2_frame *frame, const uint8_t *name,
                     size_t name_len, const uint8_t *value, size_t value_len, uint8_t flags,
                     void *ctx) {
    (void)session;
    (void)flags;
    struct http2 *http2 = ctx;
    const struct server_limits *limits = http2->conn->limits;
    if (!abuse_field(&http2->abuse, name_len + value_len + HTTP2_FIELD_EXTRA_BYTES,
                     limits->fields_max_bytes + limits->target_max_bytes))
        http2_end(http2, NGHTTP2_ENHANCE_YOUR_CALM, STR("header_list_too_large"));

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
        http2_reset(http2, exchange->stream_id, NGHTTP2_PROTOCOL_ERROR);
        http2_count_fault(http2);
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
    http2_hold(http2, len);
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
    http2_end(http2, NGHTTP2_STREAM_CLOSED, STR("stream_is_closed"));
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
        http2_end(http2, NGHTTP2_PROTOCOL_ERROR, STR("bad_priority"));
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
    if (!abuse_ping(&http2->abuse, http2_now_ms(http2), http2->conn->limits->ping_apart_ms))
        http2_end(http2, NGHTTP2_ENHANCE_YOUR_CALM, STR("too_many_pings"));
}

static void on_ping_answer(struct http2 *http2) {
    http2->asked_ms = CONN_NEVER;
    if (http2->notice_ms != CONN_NEVER) http2_last_goaway(http2);
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
    (void)session;
    http2_let_go(http2, exchange->unconsumed); /* what the owner did not consume */
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
    http2_count_fault(http2);
    return 0;
}

/* --- the rest ----------------------------------------------------------------------------- */

void http2_receive(struct conn *conn, struct str bytes) {
    struct http2 *http2 = http2_awake(conn);
    look_ahead(http2, bytes);
    ssize_t used =
        nghttp2_session_mem_recv(http2->session, (const uint8_t *)bytes.at, bytes.len);
    if (used == NGHTTP2_ERR_BAD_CLIENT_MAGIC) {
        conn_cut(conn, EXCHANGE_ABORTED);
        return;
    }
    /* A flood of frames to acknowledge, or of CONTINUATION. */
    if (used < 0) http2_end(http2, NGHTTP2_ENHANCE_YOUR_CALM, STR("too_many_frames"));
    if (http2->ending)
        conn_finish(conn);
    else
        conn_flush_soon(conn);
}

void http2_receive_callbacks(nghttp2_session_callbacks *callbacks) {
    nghttp2_session_callbacks_set_on_begin_frame_callback(callbacks, on_begin_frame);
    nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, on_begin_headers);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
    nghttp2_session_callbacks_set_on_invalid_frame_recv_callback(callbacks, on_invalid_frame);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_stream_close);
}
