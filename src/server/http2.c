#include "server/http2.h"

#include "base/mem.h"

#include <assert.h>
#include <stdlib.h>

#define STREAM_WINDOW_BYTES (256 * KIB)
#define CONNECTION_WINDOW_BYTES (1 * MIB)

/* After the first GOAWAY, requests that were already sent still arrive. */
#define SHUT_DOWN_GRACE_MS 1000
#define OWED_LOOK_MS 1000

/* These calls fail only when memory is exhausted, or because of a bug here. */
static void must(int result) {
    assert(result == 0);
    (void)result;
}

/* --- for the other files ------------------------------------------------------------------ */

size_t http2_streams_max(const struct conn *conn) {
    const struct server_limits *limits = conn->limits;
    bool stranger = !conn->authenticated && limits->streams_max_stranger > 0;
    return stranger ? limits->streams_max_stranger : limits->streams_max;
}

void http2_reset(struct http2 *http2, int32_t stream_id, uint32_t code) {
    nghttp2_submit_rst_stream(http2->session, NGHTTP2_FLAG_NONE, stream_id, code);
}

void http2_end(struct http2 *http2, uint32_t code, struct str why) {
    if (http2->ending) return;
    http2->ending = true;
    nghttp2_submit_goaway(http2->session, NGHTTP2_FLAG_NONE,
                          nghttp2_session_get_last_proc_stream_id(http2->session), code,
                          (const uint8_t *)why.at, why.len);
}

void http2_count_fault(struct http2 *http2) {
    if (!abuse_fault(&http2->abuse, http2_now_ms(http2)))
        http2_end(http2, NGHTTP2_ENHANCE_YOUR_CALM, STR("too_many_resets"));
}

static void settle_window(struct http2 *http2) {
    size_t room = mem_scarce() ? 0 : HTTP2_HELD_MAX_BYTES;
    size_t owed = http2->held_bytes > room ? http2->held_bytes - room : 0;
    if (owed < http2->owed_bytes) {
        nghttp2_session_consume_connection(http2->session, http2->owed_bytes - owed);
        http2->owed_bytes = owed;
    }
    http2->owed_ms = http2->owed_bytes ? http2_now_ms(http2) : CONN_NEVER;
}

void http2_hold(struct http2 *http2, size_t bytes) {
    http2->held_bytes += bytes;
    http2->owed_bytes += bytes;
    settle_window(http2);
}

void http2_let_go(struct http2 *http2, size_t bytes) {
    assert(bytes <= http2->held_bytes);
    http2->held_bytes -= bytes;
    settle_window(http2);
}

void http2_last_goaway(struct http2 *http2) {
    http2->notice_ms = CONN_NEVER;
    nghttp2_submit_goaway(http2->session, NGHTTP2_FLAG_NONE,
                          nghttp2_session_get_last_proc_stream_id(http2->session),
                          NGHTTP2_NO_ERROR, NULL, 0);
}

/* --- what a connection asks for ----------------------------------------------------------- */

static void http2_forget(struct exchange *exchange) {
    struct http2 *http2 = http2_awake(exchange->conn);
    nghttp2_session_set_stream_user_data(http2->session, exchange->stream_id, NULL);
}

static void http2_consumed(struct exchange *exchange, size_t len) {
    struct http2 *http2 = http2_awake(exchange->conn);
    nghttp2_session_consume_stream(http2->session, exchange->stream_id, len);
    http2_let_go(http2, len);
    if (nghttp2_session_want_write(http2->session)) conn_flush_soon(exchange->conn);
}

static void http2_authenticated(struct conn *conn) {
    struct http2 *http2 = http2_awake(conn);
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
    struct http2 *http2 = http2_awake(conn);
    nghttp2_submit_shutdown_notice(http2->session);
    nghttp2_submit_ping(http2->session, NGHTTP2_FLAG_NONE, NULL);
    http2->notice_ms = http2_now_ms(http2);
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

/* Memory may be scarce no more; nothing else tells a connection whose window is used up. */
static uint64_t owed_due_ms(const struct http2 *http2) {
    return http2->owed_ms == CONN_NEVER ? CONN_NEVER : http2->owed_ms + OWED_LOOK_MS;
}

static uint64_t http2_due_ms(const struct conn *conn) {
    const struct http2 *http2 = conn->protocol_state;
    uint64_t due_ms = keepalive_due_ms(http2);
    if (head_due_ms(http2) < due_ms) due_ms = head_due_ms(http2);
    if (notice_due_ms(http2) < due_ms) due_ms = notice_due_ms(http2);
    if (owed_due_ms(http2) < due_ms) due_ms = owed_due_ms(http2);
    return due_ms;
}

static void http2_overdue(struct conn *conn) {
    struct http2 *http2 = http2_awake(conn);
    uint64_t now = http2_now_ms(http2);
    if (head_due_ms(http2) <= now) {
        http2_end(http2, NGHTTP2_ENHANCE_YOUR_CALM, STR("header_timeout"));
        conn_finish(conn);
    } else if (notice_due_ms(http2) <= now) {
        http2_last_goaway(http2);
        conn_flush_soon(conn);
    } else if (owed_due_ms(http2) <= now) {
        settle_window(http2);
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
    http2_receive_callbacks(callbacks);
    http2_send_callbacks(callbacks);
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
    if (!http2_memory_init(&http2->memory, conn)) {
        conn_cut(conn, EXCHANGE_ABORTED);
        return;
    }
    frames_init(&http2->ahead);
    abuse_init(&http2->abuse);
    http2->head_ms = http2->asked_ms = http2->notice_ms = http2->owed_ms = CONN_NEVER;
    http2_awake(conn);
    nghttp2_mem allocator = http2_memory_allocator(&http2->memory);
    must(nghttp2_session_server_new3(&http2->session, home->callbacks, http2, home->options,
                                     &allocator));
    http2->memory.starting = false;

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
    struct http2 *http2 = http2_awake(conn);
    nghttp2_session_del(http2->session); /* NULL: there was no memory for it */
    http2_memory_done(&http2->memory);
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
