#include "client/h2_session.h"

#include "base/buf.h"
#include "base/mem.h"

#include <assert.h>
#include <nghttp2/nghttp2.h>
#include <stdlib.h>

#define ROOM_BYTES 32768
#define FIELD_EXTRA_BYTES 32 /* RFC 9113 6.5.2 */

/* Only one ping is sent at a time, so its content does not matter. */
struct h2_session {
    nghttp2_session *inner;
    h2_output_fn *on_output;
    void *ctx;
    struct list streams;
    size_t stream_count;
    bool ping_waits;
    bool goaway; /* the server sent one, with this code */
    uint32_t goaway_code;
    bool not_http2; /* the server does not speak HTTP/2 */
    bool settled;   /* its SETTINGS have come */
    enum h2_opening opening;
    uint32_t fault; /* why we end the connection; 0: we do not */
    size_t section_bytes;
    uint64_t feeds; /* how often bytes came */
    bool silent;    /* a call was given up, and nothing has come since it began */
};

/* What a piece of a response touches comes first: with hundreds of calls none of it stays in a cache
 * from one piece to the next, so each cache line costs a wait. */
struct h2_stream {
    struct h2_session *session; /* NULL: the connection has ended */
    const struct h2_events *events;
    void *ctx;
    int32_t id;
    enum h2_stream_state state;
    unsigned inside; /* callbacks on the stack */
    bool paused;
    bool ended;        /* `end` is set; reported once all is read */
    bool closed;       /* nghttp2 no longer knows it */
    struct buf unread; /* response bytes kept during a pause */

    struct list link;     /* in its session's list */
    unsigned status;      /* of the head being received */
    size_t section_bytes; /* of the section being received */
    struct buf out;       /* the unsent part of the request */
    size_t out_at;
    bool finished;     /* nothing follows `out` */
    bool deferred;     /* nghttp2 waits for more bytes */
    bool sent;         /* END_STREAM was sent */
    bool alone;        /* its session had carried others when it began, and had none */
    uint64_t feeds;    /* the session's when it began */
    struct h2_end end; /* its `why` is &err, or NULL */
    struct err err;
};

/* --- states ------------------------------------------------------------------------------- */

const struct state h2_stream_states[H2_STREAM_STATE_COUNT] = {
    [H2_STREAM_WAITING] = {"waiting", TO(H2_STREAM_ASKING) | TO(H2_STREAM_OVER)},
    [H2_STREAM_ASKING] = {"asking", TO(H2_STREAM_READING) | TO(H2_STREAM_OVER)},
    [H2_STREAM_READING] = {"reading", TO(H2_STREAM_OVER)},
    [H2_STREAM_OVER] = {"over", 0},
};

/* The only function that writes stream->state. */
static void h2_stream_move(struct h2_stream *stream, enum h2_stream_state next) {
    assert(states_allow(h2_stream_states, stream->state, next));
    stream->state = next;
}

/* --- the end of a stream ------------------------------------------------------------------ */

/* These calls fail only when memory is exhausted, or because of a bug here. */
static void must(int result) {
    assert(result == 0);
    (void)result;
}

static void h2_stream_free(struct h2_stream *stream) {
    buf_done(&stream->out);
    buf_done(&stream->unread);
    free(stream);
}

static void leave_session(struct h2_stream *stream) {
    struct h2_session *session = stream->session;
    if (!session) return;
    if (!stream->closed) nghttp2_session_set_stream_user_data(session->inner, stream->id, NULL);
    list_remove(&stream->link);
    session->stream_count--;
    stream->session = NULL;
    session->on_output(session->ctx);
}

/* nghttp2 knows the stream until the frame was sent. */
static void reset(struct h2_stream *stream, uint32_t code) {
    struct h2_session *session = stream->session;
    if (!session || stream->closed) return;
    nghttp2_submit_rst_stream(session->inner, NGHTTP2_FLAG_NONE, stream->id, code);
    session->on_output(session->ctx);
}

/* Call before a callback. */
static void h2_stream_enter(struct h2_stream *stream) {
    stream->inside++;
}

/* Call after a callback. False: the stream is over, and is freed by the last one on the
 * stack. */
static bool h2_stream_leave(struct h2_stream *stream) {
    bool over = stream->state == H2_STREAM_OVER;
    if (--stream->inside == 0 && over) h2_stream_free(stream);
    return !over;
}

/* Report the end if it is due. False: the stream is over now. */
static bool give_end(struct h2_stream *stream) {
    if (!stream->ended || stream->paused || stream->unread.len) return true;
    /* RFC 9113 8.1: the response is complete, so the rest of the request is not needed. */
    if (!stream->sent && !stream->end.why) reset(stream, NGHTTP2_NO_ERROR);
    leave_session(stream);
    h2_stream_enter(stream);
    h2_stream_move(stream, H2_STREAM_OVER);
    stream->events->on_end(&stream->end, stream->ctx);
    return h2_stream_leave(stream);
}

/* Set the end of the stream. Only the first one counts. */
static void end_stream(struct h2_stream *stream, const struct err *why, bool never_seen) {
    if (stream->ended) return;
    stream->ended = true;
    stream->end.never_seen = never_seen;
    if (why) {
        stream->err = *why;
        stream->end.why = &stream->err;
    }
}

/* End the stream with an error found on our side. */
static void fail_stream(struct h2_stream *stream, const struct err *why) {
    reset(stream, NGHTTP2_CANCEL);
    end_stream(stream, why, false);
    (void)give_end(stream);
}

void h2_stream_cancel(struct h2_stream *stream) {
    struct h2_session *session = stream->session;
    if (session && stream->feeds == session->feeds) session->silent = true;
    reset(stream, NGHTTP2_CANCEL);
    leave_session(stream);
    h2_stream_enter(stream);
    h2_stream_move(stream, H2_STREAM_OVER);
    (void)h2_stream_leave(stream);
}

/* --- the response ------------------------------------------------------------------------- */

static struct h2_stream *stream_of(nghttp2_session *inner, int32_t id) {
    return id ? nghttp2_session_get_stream_user_data(inner, id) : NULL;
}

/* Report bytes of the body. *ret_used: how many the reader took; the window opens by as many.
 * False: the stream is over. */
static bool give_body(struct h2_stream *stream, struct str bytes, size_t *ret_used) {
    h2_stream_enter(stream);
    size_t used = stream->events->on_body(bytes, stream->ctx);
    struct h2_session *session = stream->session;
    assert(used <= bytes.len);
    *ret_used = used;
    if (used && session && !stream->closed && !stream->ended) {
        nghttp2_session_consume_stream(session->inner, stream->id, used);
        session->on_output(session->ctx);
    }
    return h2_stream_leave(stream);
}

/* Report the kept bytes until the reader pauses again. False: the stream is over. */
static bool give_unread(struct h2_stream *stream) {
    while (stream->unread.len && !stream->paused) {
        size_t used;
        struct buf unread = stream->unread;
        buf_init(&stream->unread, H2_WINDOW_BYTES);
        bool goes_on = give_body(stream, buf_str(&unread), &used);
        if (goes_on && used < unread.len) {
            assert(stream->paused);
            buf_append(&stream->unread, str_skip(buf_str(&unread), used));
        }
        buf_done(&unread);
        if (!goes_on) return false;
    }
    return true;
}

static int on_data(nghttp2_session *inner, uint8_t flags, int32_t id, const uint8_t *at,
                   size_t len, void *ctx) {
    (void)flags;
    struct h2_session *session = ctx;
    struct h2_stream *stream = stream_of(inner, id);
    struct str bytes = str_of(at, len);
    size_t used = 0;
    nghttp2_session_consume_connection(inner, len);
    session->on_output(session->ctx);
    if (!stream || stream->ended) return 0;
    if (!stream->paused && !stream->unread.len && !give_body(stream, bytes, &used)) return 0;
    if (used < len) buf_append(&stream->unread, str_skip(bytes, used));
    return 0;
}

static int on_begin_headers(nghttp2_session *inner, const nghttp2_frame *frame, void *ctx) {
    (void)ctx;
    struct h2_stream *stream = stream_of(inner, frame->hd.stream_id);
    if (stream) stream->section_bytes = 0;
    return 0;
}

static bool h2_session_fits(struct h2_stream *stream, size_t bytes) {
    stream->section_bytes += bytes + FIELD_EXTRA_BYTES;
    return stream->section_bytes <= H2_HEAD_MAX_BYTES;
}

static unsigned read_status(struct str digits) {
    uint64_t status;
    return str_to_u64(digits, &status) && status < 1000 ? (unsigned)status : 0;
}

static int on_header(nghttp2_session *inner, const nghttp2_frame *frame, const uint8_t *name_at,
                     size_t name_len, const uint8_t *value_at, size_t value_len, uint8_t flags,
                     void *ctx) {
    (void)flags;
    (void)ctx;
    struct h2_stream *stream = stream_of(inner, frame->hd.stream_id);
    struct str name = str_of(name_at, name_len), value = str_of(value_at, value_len);
    if (!stream || stream->ended) return 0;
    if (!h2_session_fits(stream, name_len + value_len)) {
        struct err why;
        err_set(&why, ERR_TOO_LARGE, "the head of the answer is too long");
        fail_stream(stream, &why);
    } else if (str_equal(name, STR(":status"))) {
        stream->status = read_status(value);
    } else if (stream->status / 100 != 1) { /* ignore the fields of 1xx heads */
        h2_stream_enter(stream);
        stream->events->on_field(name, value, stream->ctx);
        (void)h2_stream_leave(stream);
    }
    return 0;
}

/* False: the stream is over. */
static bool give_head(struct h2_stream *stream) {
    if (stream->state != H2_STREAM_ASKING || stream->status / 100 == 1) return true;
    h2_stream_move(stream, H2_STREAM_READING);
    h2_stream_enter(stream);
    stream->events->on_head(stream->status, stream->ctx);
    return h2_stream_leave(stream);
}

static void on_stream_frame(struct h2_stream *stream, const nghttp2_frame *frame) {
    if (!stream || stream->ended) return;
    if (frame->hd.type == NGHTTP2_HEADERS && !give_head(stream)) return;
    if (!(frame->hd.flags & NGHTTP2_FLAG_END_STREAM) || stream->ended) return;
    end_stream(stream, NULL, false);
    (void)give_end(stream);
}

/* --- the whole connection ----------------------------------------------------------------- */

static bool goes_for_http1(const struct h2_session *session) {
    return session->goaway && session->goaway_code == NGHTTP2_HTTP_1_1_REQUIRED;
}

/* Streams that were not sent yet never will be. They end now, without waiting for the
 * others. */
static void refuse_waiting(struct h2_session *session) {
    struct err why;
    struct list refused;
    err_set(&why, ERR_UNAVAILABLE, "the server accepts no further requests on this connection");
    list_init(&refused);
    LIST_EACH(&session->streams, link) {
        struct h2_stream *stream = CONTAINER_OF(link, struct h2_stream, link);
        if (stream->state != H2_STREAM_WAITING) continue;
        list_remove(link);
        list_append(&refused, link);
    }
    for (struct list *link; (link = list_pop(&refused));) {
        struct h2_stream *stream = CONTAINER_OF(link, struct h2_stream, link);
        list_append(&session->streams, link);
        reset(stream, NGHTTP2_CANCEL);
        stream->end.wants_http1 = goes_for_http1(session);
        end_stream(stream, &why, true);
        (void)give_end(stream);
    }
}

static int on_frame(nghttp2_session *inner, const nghttp2_frame *frame, void *ctx) {
    struct h2_session *session = ctx;
    switch (frame->hd.type) {
    case NGHTTP2_HEADERS:
    case NGHTTP2_DATA: on_stream_frame(stream_of(inner, frame->hd.stream_id), frame); break;
    case NGHTTP2_SETTINGS: session->settled = true; break;
    case NGHTTP2_PING:
        if (frame->hd.flags & NGHTTP2_FLAG_ACK) session->ping_waits = false;
        break;
    case NGHTTP2_GOAWAY:
        session->goaway = true;
        session->goaway_code = frame->goaway.error_code;
        refuse_waiting(session);
        break;
    default: break;
    }
    return 0;
}

static const char *code_text(uint32_t code) {
    switch (code) {
    case NGHTTP2_REFUSED_STREAM: return "the server refused the request";
    case NGHTTP2_ENHANCE_YOUR_CALM: return "the server is asked too much of";
    case NGHTTP2_CANCEL: return "the server cancelled the request";
    case NGHTTP2_INTERNAL_ERROR: return "the server failed";
    case NGHTTP2_HTTP_1_1_REQUIRED: return "the server wants HTTP/1.1 for it";
    default: return "the server gave the request up";
    }
}

/* The server has reset the stream or excluded it by GOAWAY, or nghttp2 found an error in it. */
static int on_stream_close(nghttp2_session *inner, int32_t id, uint32_t code, void *ctx) {
    const struct h2_session *session = ctx;
    struct h2_stream *stream = stream_of(inner, id);
    if (!stream) return 0;
    stream->closed = true;
    if (stream->ended) return 0; /* reported once the rest is read */
    struct err why;
    bool asks = stream->state <= H2_STREAM_ASKING;
    bool never_seen = asks && code == NGHTTP2_REFUSED_STREAM;
    stream->end.wants_http1 =
        (asks && code == NGHTTP2_HTTP_1_1_REQUIRED) || (never_seen && goes_for_http1(session));
    err_set(&why, ERR_UNAVAILABLE, "%s (%s)", code_text(code), nghttp2_http2_strerror(code));
    stream->end.reset = true;
    stream->end.code = code;
    end_stream(stream, &why, never_seen);
    (void)give_end(stream);
    return 0;
}

static int on_frame_sent(nghttp2_session *inner, const nghttp2_frame *frame, void *ctx) {
    struct h2_session *session = ctx;
    if (frame->hd.type == NGHTTP2_GOAWAY && !session->fault)
        session->fault = frame->goaway.error_code;
    struct h2_stream *stream = stream_of(inner, frame->hd.stream_id);
    if (!stream) return 0;
    if (frame->hd.type == NGHTTP2_HEADERS && stream->state == H2_STREAM_WAITING)
        h2_stream_move(stream, H2_STREAM_ASKING);
    bool carries = frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA;
    if (carries && frame->hd.flags & NGHTTP2_FLAG_END_STREAM) stream->sent = true;
    if (frame->hd.type != NGHTTP2_DATA || h2_stream_unsent(stream)) return 0;
    h2_stream_enter(stream);
    if (stream->events->on_drained && !stream->ended) stream->events->on_drained(stream->ctx);
    (void)h2_stream_leave(stream);
    return 0;
}

/* Only this callback says that the peer does not speak HTTP/2. */
static int h2_session_on_complaint(nghttp2_session *inner, int code, const char *text,
                                   size_t len, void *ctx) {
    (void)inner;
    (void)text;
    (void)len;
    struct h2_session *session = ctx;
    if (code == NGHTTP2_ERR_SETTINGS_EXPECTED) session->not_http2 = true;
    return 0;
}

/* --- the request -------------------------------------------------------------------------- */

static ssize_t h2_session_on_read(nghttp2_session *inner, int32_t id, uint8_t *at, size_t len,
                                  uint32_t *flags, nghttp2_data_source *source, void *ctx) {
    (void)source;
    (void)ctx;
    struct h2_stream *stream = stream_of(inner, id);
    if (!stream) return NGHTTP2_ERR_DEFERRED; /* cancelled: the reset is not sent yet */
    struct str rest = str_head(str_skip(buf_str(&stream->out), stream->out_at), len);
    if (!rest.len && !stream->finished) {
        stream->deferred = true;
        return NGHTTP2_ERR_DEFERRED;
    }
    if (rest.len) memcpy(at, rest.at, rest.len);
    stream->out_at += rest.len;
    if (stream->out_at == stream->out.len) {
        buf_release(&stream->out);
        stream->out_at = 0;
        if (stream->finished) *flags |= NGHTTP2_DATA_FLAG_EOF;
    }
    return (ssize_t)rest.len;
}

static void go_on_sending(struct h2_stream *stream) {
    struct h2_session *session = stream->session;
    if (!session || stream->closed) return;
    if (stream->deferred) nghttp2_session_resume_data(session->inner, stream->id);
    stream->deferred = false;
    session->on_output(session->ctx);
}

bool h2_stream_write(struct h2_stream *stream, struct str bytes) {
    assert(!stream->finished);
    if (stream->ended || !bytes.len) return true; /* it would not be read */
    if (h2_stream_unsent(stream) + bytes.len > H2_UNSENT_MAX_BYTES) return false;
    buf_drop(&stream->out, stream->out_at);
    stream->out_at = 0;
    buf_append(&stream->out, bytes);
    go_on_sending(stream);
    return true;
}

void h2_stream_finish(struct h2_stream *stream) {
    if (stream->finished) return;
    stream->finished = true;
    go_on_sending(stream);
}

size_t h2_stream_unsent(const struct h2_stream *stream) {
    return stream->out.len - stream->out_at;
}

bool h2_stream_waits(const struct h2_stream *stream) {
    return stream->state == H2_STREAM_WAITING;
}

bool h2_stream_queues(const struct h2_stream *stream) {
    const struct h2_session *session = stream->session;
    if (!session || stream->state != H2_STREAM_WAITING) return false;
    return session->stream_count > nghttp2_session_get_remote_settings(
                                       session->inner, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS);
}

static nghttp2_nv nv_of(struct str name, struct str value) {
    return (nghttp2_nv){(uint8_t *)(uintptr_t)name.at, (uint8_t *)(uintptr_t)value.at, name.len,
                        value.len, NGHTTP2_NV_FLAG_NONE};
}

struct h2_stream *h2_stream_new(struct h2_session *session, const struct h2_head *head,
                                const struct h2_events *events, void *ctx) {
    struct h2_stream *stream = MEM_NEW(struct h2_stream);
    nghttp2_nv nv[H2_SESSION_FIELDS_MAX + 4];
    size_t count = 0;
    nghttp2_data_provider body = {{.ptr = NULL}, h2_session_on_read};
    assert(head->field_count <= H2_SESSION_FIELDS_MAX);
    nv[count++] = nv_of(STR(":method"), head->method);
    nv[count++] = nv_of(STR(":scheme"), head->scheme);
    nv[count++] = nv_of(STR(":authority"), head->authority);
    nv[count++] = nv_of(STR(":path"), head->path);
    for (size_t i = 0; i < head->field_count; i++)
        nv[count++] = nv_of(head->fields[i].name, head->fields[i].value);

    stream->session = session;
    stream->feeds = session->feeds;
    stream->alone =
        session->stream_count == 0 && nghttp2_session_get_next_stream_id(session->inner) > 1;
    stream->events = events;
    stream->ctx = ctx;
    stream->finished = head->no_body;
    buf_init(&stream->out, H2_UNSENT_MAX_BYTES);
    buf_init(&stream->unread, H2_WINDOW_BYTES);
    stream->id = nghttp2_submit_request(session->inner, NULL, nv, count,
                                        head->no_body ? NULL : &body, stream);
    assert(stream->id > 0); /* fails only if h2_session_drains() */
    list_append(&session->streams, &stream->link);
    session->stream_count++;
    session->on_output(session->ctx);
    return stream;
}

/* --- pauses ------------------------------------------------------------------------------- */

void h2_stream_pause(struct h2_stream *stream) {
    stream->paused = true;
}

void h2_stream_resume(struct h2_stream *stream) {
    if (!stream->paused) return;
    stream->paused = false;
    if (give_unread(stream)) (void)give_end(stream);
}

/* --- public functions --------------------------------------------------------------------- */

static nghttp2_session_callbacks *make_callbacks(void) {
    nghttp2_session_callbacks *callbacks;
    must(nghttp2_session_callbacks_new(&callbacks));
    nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, on_begin_headers);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
    nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, on_frame_sent);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_stream_close);
    nghttp2_session_callbacks_set_error_callback2(callbacks, h2_session_on_complaint);
    return callbacks;
}

/* Send one stream, or none, until the server has announced its limit. */
static nghttp2_option *make_options(enum h2_opening opening) {
    nghttp2_option *options;
    must(nghttp2_option_new(&options));
    nghttp2_option_set_no_auto_window_update(options, 1);
    nghttp2_option_set_no_closed_streams(options, 1);
    nghttp2_option_set_peer_max_concurrent_streams(options, opening == H2_ASKS_AT_ONCE ? 1 : 0);
    return options;
}

struct h2_session *h2_session_new(enum h2_opening opening, h2_output_fn *on_output, void *ctx) {
    struct h2_session *session = MEM_NEW(struct h2_session);
    nghttp2_session_callbacks *callbacks = make_callbacks();
    nghttp2_option *options = make_options(opening);
    const nghttp2_settings_entry settings[] = {
        {NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, H2_WINDOW_BYTES},
        {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, H2_HEAD_MAX_BYTES},
    };
    session->opening = opening;
    session->on_output = on_output;
    session->ctx = ctx;
    list_init(&session->streams);
    must(nghttp2_session_client_new2(&session->inner, callbacks, session, options));
    must(nghttp2_submit_settings(session->inner, NGHTTP2_FLAG_NONE, settings,
                                 ARRAY_LEN(settings)));
    must(nghttp2_session_set_local_window_size(session->inner, NGHTTP2_FLAG_NONE, 0,
                                               H2_CONNECTION_WINDOW_BYTES));
    nghttp2_option_del(options);
    nghttp2_session_callbacks_del(callbacks);
    return session;
}

void h2_session_free(struct h2_session *session) {
    if (!session) return;
    assert(list_empty(&session->streams));
    nghttp2_session_del(session->inner);
    free(session);
}

static bool refuse_server(const struct h2_session *session, const char *detail, struct err *e) {
    if (session->not_http2)
        return err_set(e, ERR_UNAVAILABLE,
                       "the server does not speak HTTP/2; is this its gRPC port?");
    return err_set(e, ERR_UNAVAILABLE, "the server breaks the rules of HTTP/2 (%s)", detail);
}

bool h2_session_feed(struct h2_session *session, struct str bytes, struct err *e) {
    session->feeds++;
    session->silent = false;
    ssize_t used =
        nghttp2_session_mem_recv(session->inner, (const uint8_t *)bytes.at, bytes.len);
    if (used < 0) return refuse_server(session, nghttp2_strerror((int)used), e);
    if (session->not_http2) return refuse_server(session, "", e);
    if (nghttp2_session_want_write(session->inner)) session->on_output(session->ctx);
    return true;
}

struct str h2_session_pull(struct h2_session *session) {
    const uint8_t *at;
    ssize_t len = nghttp2_session_mem_send(session->inner, &at);
    return len > 0 ? str_of(at, (size_t)len) : STR_EMPTY;
}

void h2_session_break(struct h2_session *session, const struct err *why) {
    while (!list_empty(&session->streams)) { /* an end may cancel others */
        struct h2_stream *stream = CONTAINER_OF(session->streams.next, struct h2_stream, link);
        /* NOLINTNEXTLINE(clang-analyzer-unix.Malloc): what is freed has left the list */
        bool never_seen = stream->state == H2_STREAM_WAITING;
        stream->end.unanswered = stream->alone && stream->feeds == session->feeds;
        stream->end.wants_http1 =
            session->opening == H2_ASKS_AFTER_SETTINGS && !session->settled;
        leave_session(stream);
        end_stream(stream, why, never_seen);
        (void)give_end(stream);
    }
}

bool h2_session_drains(const struct h2_session *session) {
    return session->goaway || session->fault ||
           !nghttp2_session_check_request_allowed(session->inner) ||
           nghttp2_session_get_next_stream_id(session->inner) > INT32_MAX;
}

const char *h2_session_farewell(const struct h2_session *session) {
    return session->goaway && session->goaway_code != NGHTTP2_NO_ERROR
               ? nghttp2_http2_strerror(session->goaway_code)
               : NULL;
}

bool h2_session_over(const struct h2_session *session) {
    return !nghttp2_session_want_read(session->inner) &&
           !nghttp2_session_want_write(session->inner);
}

/* A server that is silent may be gone, and the window for what is sent belongs to all calls: a body that it
 * does not read would hold up the next ones. */
bool h2_session_has_room(const struct h2_session *session) {
    return !h2_session_drains(session) && !session->silent && !session->ping_waits &&
           nghttp2_session_get_remote_window_size(session->inner) >= ROOM_BYTES &&
           session->stream_count < nghttp2_session_get_remote_settings(
                                       session->inner, NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS);
}

size_t h2_session_streams(const struct h2_session *session) {
    return session->stream_count;
}

void h2_session_ping(struct h2_session *session) {
    session->ping_waits = true;
    nghttp2_submit_ping(session->inner, NGHTTP2_FLAG_NONE, NULL);
    session->on_output(session->ctx);
}

bool h2_session_ping_waits(const struct h2_session *session) {
    return session->ping_waits;
}
