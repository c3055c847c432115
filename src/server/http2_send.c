#include "server/http2.h"

#include "server/http2_head.h"

#include <stdlib.h>

/* --- bytes ----------------------------------------------------------------------- */

static void submit_trailers(struct http2 *http2, struct exchange *exchange) {
    struct http2_section out;
    http2_head_write(exchange->trailers, &out);
    nghttp2_submit_trailer(http2->session, exchange->stream_id, out.nv, out.count);
    free(exchange->trailers);
    exchange->trailers = NULL;
}

/* Returns how much of the queue the next DATA frame takes; put_data() copies the bytes. */
static ssize_t http2_send_on_read(nghttp2_session *session, int32_t stream_id, uint8_t *at,
                                  size_t len, uint32_t *flags, nghttp2_data_source *source,
                                  void *ctx) {
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
               (uint32_t)http2_streams_max(http2->conn)); /* see STREAMS_NGHTTP2_ALLOWS */
}

#define FRAME_TYPE_AT 3

/* After the last GOAWAY no stream needs a reset of its own. */
void http2_gather(struct conn *conn, struct gather *gather) {
    struct http2 *http2 = http2_awake(conn);
    http2->gather = gather;
    while (!gather_full(gather)) {
        const uint8_t *frame;
        ssize_t len = nghttp2_session_mem_send(http2->session, &frame);
        if (len <= 0) break;
        if (http2->ending && frame[FRAME_TYPE_AT] == NGHTTP2_RST_STREAM) continue;
        put_frame(http2, gather, str_of(frame, (size_t)len));
    }
    http2->gather = NULL;
    conn->window_shut = nghttp2_session_get_remote_window_size(http2->session) <= 0;
    bool over = !nghttp2_session_want_read(http2->session) &&
                !nghttp2_session_want_write(http2->session);
    if (over || http2->ending) conn_finish(conn);
}

/* --- once a turn ----------------------------------------------------------------- */

static void submit_head(struct http2 *http2, struct exchange *exchange) {
    struct http2_section out;
    http2_head_write(exchange->head, &out);
    bool whole = exchange->ended && !exchange->trailers &&
                 (exchange->is_head || exchange_queued(exchange) == 0);
    nghttp2_data_provider body = {{.ptr = NULL}, http2_send_on_read};
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

/* HEADERS need no window, but nghttp2 asks http2_send_on_read() only where one is open. So trailers
 * with nothing in front of them do not wait for it: they go behind the response's head, which was
 * submitted before. */
static bool only_trailers_are_left(const struct exchange *exchange) {
    return exchange->trailers && !exchange->head && exchange_queued(exchange) == 0;
}

static void settle_one(struct http2 *http2, struct exchange *exchange) {
    if (exchange->reset) return;
    if (exchange->aborted) {
        exchange->reset = true;
        http2_reset(http2, exchange->stream_id, code_of[exchange->abort_code]);
        return;
    }
    bool waits = exchange->expects_continue && !exchange->body_came && !exchange->head_given;
    exchange->expects_continue = false;
    if (waits) submit_continue(http2, exchange);
    if (exchange->head) submit_head(http2, exchange);
    if (only_trailers_are_left(exchange)) {
        submit_trailers(http2, exchange);
    } else if (exchange->body_deferred && (exchange_queued(exchange) || exchange->ended)) {
        exchange->body_deferred = false;
        nghttp2_session_resume_data(http2->session, exchange->stream_id);
    }
    exchange_settle(exchange);
}

void http2_settle(struct conn *conn) {
    struct http2 *http2 = http2_awake(conn);
    struct list now;
    list_init(&now);
    list_move(&conn->dirty, &now);
    struct list *link;
    while ((link = list_pop(&now)))
        settle_one(http2, CONTAINER_OF(link, struct exchange, dirty));
}

/* --- what was sent ------------------------------------------------------------------------ */

static int on_frame_sent(nghttp2_session *session, const nghttp2_frame *frame, void *ctx) {
    (void)session;
    struct http2 *http2 = ctx;
    uint8_t type = frame->hd.type;
    if (type != NGHTTP2_HEADERS && type != NGHTTP2_DATA && type != NGHTTP2_RST_STREAM) return 0;
    struct exchange *exchange = http2_find(http2, frame->hd.stream_id);
    if (type == NGHTTP2_RST_STREAM) {
        abuse_reset(&http2->abuse, frame->hd.stream_id);
        /* Not requested by us: nghttp2 found an error in the stream. */
        if (exchange && !exchange->reset) http2_count_fault(http2);
        return 0;
    }
    abuse_said(&http2->abuse);
    if (!exchange || !(frame->hd.flags & NGHTTP2_FLAG_END_STREAM)) return 0;
    exchange->response_sent = true;
    if (exchange->request_ended) return 0;
    exchange->reset = true; /* RFC 9113 8.1: the answer is complete, the rest is not needed */
    http2_reset(http2, exchange->stream_id, NGHTTP2_NO_ERROR);
    return 0;
}

void http2_send_callbacks(nghttp2_session_callbacks *callbacks) {
    nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, on_frame_sent);
    nghttp2_session_callbacks_set_send_data_callback(callbacks, put_data);
}
