/* HTTP/2 against nghttp2's client side, and against invalid frames. */
#include "server/http2.h"

#include "fake.h"

#include <setjmp.h>
#include <stdarg.h>
/* cmocka wants these before it. */
#include <cmocka.h>
#include <nghttp2/nghttp2.h>
#include <stdio.h>

/* --- the application: the test plays it --------------------------------------------------- */

#define CALLS_MAX 4096

struct call {
    struct exchange *exchange; /* NULL once it is closed */
    struct buf body;
    size_t drained;
    bool body_ended, closed;
    enum exchange_close how;
};

struct app {
    struct call calls[CALLS_MAX];
    size_t begun, alive, alive_most;
    bool answers; /* 200 and the body, by itself */
    bool keeps;   /* does not consume */
};

static void app_body(struct exchange *exchange, struct lent lent, void *ctx);
static void app_body_end(struct exchange *exchange, void *ctx);
static void app_drained(struct exchange *exchange, void *ctx);
static void app_closed(struct exchange *exchange, enum exchange_close how, void *ctx);

static const struct exchange_events app_events = {app_body, app_body_end, app_drained,
                                                  app_closed};

static struct call *call_of(struct app *app, const struct exchange *exchange) {
    for (size_t i = app->begun; i-- > 0;)
        if (app->calls[i].exchange == exchange) return &app->calls[i];
    fail_msg("an exchange that never began, or is closed");
    return NULL;
}

static void app_start(struct exchange *exchange, void *ctx) {
    struct app *app = ctx;
    assert_true(app->begun < CALLS_MAX);
    struct call *call = &app->calls[app->begun++];
    call->exchange = exchange;
    buf_init(&call->body, 16 * MIB);
    if (++app->alive > app->alive_most) app->alive_most = app->alive;
    exchange_accept(exchange, &app_events, app);
    if (app->answers) exchange_head(exchange, 200, NULL, 0);
}

static void app_body(struct exchange *exchange, struct lent lent, void *ctx) {
    struct str bytes = lent_read(lent);
    struct app *app = ctx;
    buf_append(&call_of(app, exchange)->body, bytes);
    if (app->answers) exchange_send(exchange, bytes);
    if (!app->keeps) exchange_consumed(exchange, bytes.len);
}

static void app_body_end(struct exchange *exchange, void *ctx) {
    struct app *app = ctx;
    call_of(app, exchange)->body_ended = true;
    if (app->answers) exchange_end(exchange, NULL, 0);
}

static void app_drained(struct exchange *exchange, void *ctx) {
    call_of(ctx, exchange)->drained++;
}

static void app_closed(struct exchange *exchange, enum exchange_close how, void *ctx) {
    struct app *app = ctx;
    struct call *call = call_of(app, exchange);
    call->exchange = NULL;
    call->closed = true;
    call->how = how;
    app->alive--;
}

/* --- the peer
 * ----------------------------------------------------------------------------------- */

#define STREAMS_MAX 4096

struct stream {
    int status;
    size_t body_bytes, data_frames;
    char trailer[64];
    bool ended, closed, interim;
    uint32_t code;
    size_t headers;
};

struct scene {
    struct fake fake;
    struct app app;
    nghttp2_session *session;
    struct stream streams[STREAMS_MAX]; /* by stream id / 2 */
    size_t goaways, pings_answered, largest_data;
    uint32_t goaway_code;
    int32_t goaway_last;
    char goaway_why[64];
    uint32_t streams_allowed;
    bool manual_windows;
};

static struct stream *stream_of(struct scene *scene, int32_t id) {
    return &scene->streams[(id / 2) % STREAMS_MAX];
}

static int peer_header(nghttp2_session *session, const nghttp2_frame *frame,
                       const uint8_t *name, size_t name_len, const uint8_t *value,
                       size_t value_len, uint8_t flags, void *ctx) {
    (void)session;
    (void)flags;
    struct stream *stream = stream_of(ctx, frame->hd.stream_id);
    struct str name_text = str_of(name, name_len), value_text = str_of(value, value_len);
    if (str_equal(name_text, STR(":status"))) {
        stream->status = atoi((const char *)value);
        if (stream->status == 100) stream->interim = true;
    } else {
        snprintf(stream->trailer, sizeof(stream->trailer), STR_FMT "=" STR_FMT,
                 STR_ARG(name_text), STR_ARG(value_text));
    }
    return 0;
}

static int peer_data(nghttp2_session *session, uint8_t flags, int32_t stream_id,
                     const uint8_t *bytes, size_t len, void *ctx) {
    (void)session;
    (void)flags;
    (void)bytes;
    stream_of(ctx, stream_id)->body_bytes += len;
    return 0;
}

static int peer_frame(nghttp2_session *session, const nghttp2_frame *frame, void *ctx) {
    (void)session;
    struct scene *scene = ctx;
    struct stream *stream = stream_of(scene, frame->hd.stream_id);
    switch (frame->hd.type) {
    case NGHTTP2_HEADERS: stream->headers++; break;
    case NGHTTP2_DATA:
        stream->data_frames++;
        if (frame->hd.length > scene->largest_data) scene->largest_data = frame->hd.length;
        break;
    case NGHTTP2_GOAWAY:
        scene->goaways++;
        scene->goaway_code = frame->goaway.error_code;
        scene->goaway_last = frame->goaway.last_stream_id;
        snprintf(scene->goaway_why, sizeof(scene->goaway_why), "%.*s",
                 (int)frame->goaway.opaque_data_len, (const char *)frame->goaway.opaque_data);
        break;
    case NGHTTP2_PING:
        if (frame->hd.flags & NGHTTP2_FLAG_ACK) scene->pings_answered++;
        break;
    case NGHTTP2_SETTINGS:
        for (size_t i = 0; i < frame->settings.niv; i++)
            if (frame->settings.iv[i].settings_id == NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS)
                scene->streams_allowed = frame->settings.iv[i].value;
        break;
    default: break;
    }
    bool ends = (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) &&
                (frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA);
    if (ends) stream->ended = true;
    return 0;
}

static int peer_closed(nghttp2_session *session, int32_t stream_id, uint32_t code, void *ctx) {
    (void)session;
    struct stream *stream = stream_of(ctx, stream_id);
    stream->closed = true;
    stream->code = code;
    return 0;
}

static void new_session(struct scene *scene) {
    nghttp2_session_callbacks *callbacks;
    nghttp2_option *option;
    nghttp2_session_callbacks_new(&callbacks);
    nghttp2_option_new(&option);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, peer_header);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, peer_data);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, peer_frame);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, peer_closed);
    nghttp2_option_set_peer_max_concurrent_streams(option, 10000);
    nghttp2_option_set_no_auto_window_update(option, scene->manual_windows);
    nghttp2_session_client_new2(&scene->session, callbacks, scene, option);
    nghttp2_session_callbacks_del(callbacks);
    nghttp2_option_del(option);
}

static void receive(struct scene *scene) {
    struct fake *fake = &scene->fake;
    if (fake->sent.len) {
        ssize_t used = nghttp2_session_mem_recv(scene->session, (const uint8_t *)fake->sent.at,
                                                fake->sent.len);
        assert_int_equal(used, fake->sent.len);
    }
    buf_clear(&fake->sent);
}

/* Both sides say what they have to say, until both are silent. */
static void talk(struct scene *scene) {
    bool more = true;
    while (more) {
        const uint8_t *bytes;
        ssize_t len = nghttp2_session_mem_send(scene->session, &bytes);
        assert_true(len >= 0);
        fake_receive(&scene->fake, str_of(bytes, (size_t)len));
        more = len > 0 || scene->fake.sent.len > 0;
        receive(scene);
    }
}

static int open_plain(void **state) {
    struct scene *scene = MEM_NEW(struct scene);
    fake_open(&scene->fake, app_start, &scene->app);
    new_session(scene);
    nghttp2_submit_settings(scene->session, 0, NULL, 0);
    *state = scene;
    return 0;
}

static int open_scene(void **state) {
    open_plain(state);
    talk(*state);
    return 0;
}

static int shut_scene(void **state) {
    struct scene *scene = *state;
    fake_shut(&scene->fake);
    assert_int_equal(scene->app.alive, 0);
    for (size_t i = 0; i < scene->app.begun; i++) {
        assert_true(scene->app.calls[i].closed);
        buf_done(&scene->app.calls[i].body);
    }
    nghttp2_session_del(scene->session);
    free(scene);
    return 0;
}

#define NV(name, value)                                                                        \
    {                                                                                          \
        (uint8_t *)(uintptr_t)(name), (uint8_t *)(uintptr_t)(value), strlen(name),             \
            strlen(value), 0                                                                   \
    }

/* What is still to be uploaded. */
struct upload {
    size_t left;
    bool open_end; /* more may follow */
};

static ssize_t upload_read(nghttp2_session *session, int32_t stream_id, uint8_t *bytes,
                           size_t len, uint32_t *flags, nghttp2_data_source *source,
                           void *ctx) {
    (void)session;
    (void)stream_id;
    (void)ctx;
    struct upload *upload = source->ptr;
    size_t part = upload->left < len ? upload->left : len;
    memset(bytes, 'x', part);
    upload->left -= part;
    if (upload->left == 0 && upload->open_end)
        return part ? (ssize_t)part : NGHTTP2_ERR_DEFERRED;
    if (upload->left == 0) *flags = NGHTTP2_DATA_FLAG_EOF;
    return (ssize_t)part;
}

static int32_t ask_with(struct scene *scene, const nghttp2_nv *extra, size_t count,
                        struct upload *upload) {
    nghttp2_nv nv[128] = {NV(":method", "POST"), NV(":scheme", "http"), NV(":path", "/a?b"),
                          NV(":authority", "localhost")};
    for (size_t i = 0; i < count; i++) nv[4 + i] = extra[i];
    nghttp2_data_provider provider = {{.ptr = upload}, upload_read};
    int32_t id = nghttp2_submit_request(scene->session, NULL, nv, 4 + count,
                                        upload ? &provider : NULL, NULL);
    assert_true(id > 0);
    return id;
}

/* One request with a body that stays open, seen by the application. */
static struct upload open_end = {.open_end = true};

static int32_t ask_open(struct scene *scene, struct exchange **ret) {
    int32_t id = ask_with(scene, NULL, 0, &open_end);
    size_t before = scene->app.begun;
    talk(scene);
    assert_int_equal(scene->app.begun, before + 1);
    *ret = scene->app.calls[before].exchange;
    return id;
}

/* --- frames made by hand
 * --------------------------------------------------------------------------- */

static void put_frame(struct buf *buf, size_t len, uint8_t type, uint8_t flags, uint32_t id,
                      struct str payload) {
    const char head[9] = {(char)(len >> 16), (char)(len >> 8), (char)len,
                          (char)type,        (char)flags,      (char)(id >> 24),
                          (char)(id >> 16),  (char)(id >> 8),  (char)id};
    buf_append(buf, str_of(head, 9));
    buf_append(buf, payload);
}

/* :method POST, :scheme http, :path /, :authority a */
#define HEAD_BLOCK "\x83\x86\x84\x41\x01\x61"
#define PREFACE "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"

struct raw {
    struct fake fake;
    struct app *app;
    struct buf out;
};

static int open_raw(void **state) {
    struct raw *raw = MEM_NEW(struct raw);
    raw->app = MEM_NEW(struct app);
    buf_init(&raw->out, 64 * MIB);
    fake_open(&raw->fake, app_start, raw->app);
    buf_append(&raw->out, STR(PREFACE));
    put_frame(&raw->out, 0, NGHTTP2_SETTINGS, 0, 0, STR_EMPTY);
    *state = raw;
    return 0;
}

static int shut_raw(void **state) {
    struct raw *raw = *state;
    fake_shut(&raw->fake);
    assert_int_equal(raw->app->alive, 0);
    for (size_t i = 0; i < raw->app->begun; i++) buf_done(&raw->app->calls[i].body);
    buf_done(&raw->out);
    free(raw->app);
    free(raw);
    return 0;
}

/* Send what was put together, 64 KiB at a time like a socket would bring it. */
static void send_raw(struct raw *raw) {
    struct str rest = buf_str(&raw->out);
    for (; rest.len; rest = str_skip(rest, HOME_READ_BYTES))
        fake_receive(&raw->fake, str_head(rest, HOME_READ_BYTES));
    buf_clear(&raw->out);
}

/* The code of the last GOAWAY that was sent, or -1. */
static int64_t goaway_code(const struct raw *raw) {
    struct str sent = buf_str(&raw->fake.sent);
    int64_t code = -1;
    while (sent.len >= 9) {
        const uint8_t *head = (const uint8_t *)sent.at;
        size_t len = (size_t)head[0] << 16 | (size_t)head[1] << 8 | head[2];
        if (head[3] == NGHTTP2_GOAWAY && sent.len >= 17)
            code = (int64_t)head[13] << 24 | head[14] << 16 | head[15] << 8 | head[16];
        sent = str_skip(sent, 9 + len);
    }
    return code;
}

static size_t count_sent(const struct raw *raw, uint8_t type) {
    struct str sent = buf_str(&raw->fake.sent);
    size_t count = 0;
    while (sent.len >= 9) {
        const uint8_t *head = (const uint8_t *)sent.at;
        count += head[3] == type;
        sent = str_skip(sent, 9 + ((size_t)head[0] << 16 | (size_t)head[1] << 8 | head[2]));
    }
    return count;
}

/* --- requests and answers
 * ----------------------------------------------------------------------------- */

static void the_parts_of_a_request_can_be_read(void **state) {
    struct scene *scene = *state;
    const nghttp2_nv extra[] = {NV("x-one", "1"), NV("content-length", "3")};
    struct upload upload = {.left = 3};
    ask_with(scene, extra, 2, &upload);
    talk(scene);
    struct exchange *exchange = scene->app.calls[0].exchange;
    assert_true(str_equal(exchange_method(exchange), STR("POST")));
    assert_true(str_equal(exchange_path(exchange), STR("/a")));
    assert_true(str_equal(exchange_query(exchange), STR("b")));
    assert_true(str_equal(exchange_authority(exchange), STR("localhost")));
    assert_true(str_equal(exchange_field(exchange, STR("x-one"))->value, STR("1")));
    assert_int_equal(exchange_content_length(exchange), 3);
    assert_int_equal(exchange_http(exchange), EXCHANGE_HTTP_2);
    size_t count;
    exchange_fields(exchange, &count);
    assert_int_equal(count, 2);
    assert_true(str_equal(buf_str(&scene->app.calls[0].body), STR("xxx")));
    assert_true(scene->app.calls[0].body_ended);
}

static void a_call_is_answered_and_completes(void **state) {
    struct scene *scene = *state;
    scene->app.answers = true;
    struct upload upload = {.left = 3000000};
    int32_t id = ask_with(scene, NULL, 0, &upload);
    talk(scene);
    struct stream *stream = stream_of(scene, id);
    assert_int_equal(stream->status, 200);
    assert_int_equal(stream->body_bytes, 3000000);
    assert_true(stream->closed);
    assert_int_equal(stream->code, NGHTTP2_NO_ERROR);
    assert_int_equal(scene->app.calls[0].how, EXCHANGE_COMPLETE);
}

static void head_and_end_without_bytes_are_one_header_section(void **state) {
    struct scene *scene = *state;
    struct exchange *exchange;
    int32_t id = ask_open(scene, &exchange);
    const struct field status = {STR("grpc-status"), STR("5")};
    exchange_head(exchange, 200, &status, 1);
    exchange_end(exchange, NULL, 0);
    talk(scene);
    struct stream *stream = stream_of(scene, id);
    assert_int_equal(stream->headers, 1);
    assert_int_equal(stream->data_frames, 0);
    assert_true(stream->ended);
    assert_string_equal(stream->trailer, "grpc-status=5");
    /* The request had not ended: the rest of it is not wanted. */
    assert_true(stream->closed);
    assert_int_equal(stream->code, NGHTTP2_NO_ERROR);
    assert_int_equal(scene->app.calls[0].how, EXCHANGE_COMPLETE);
}

static void trailers_follow_the_bytes(void **state) {
    struct scene *scene = *state;
    struct exchange *exchange;
    int32_t id = ask_open(scene, &exchange);
    const struct field status = {STR("grpc-status"), STR("0")};
    exchange_head(exchange, 200, NULL, 0);
    talk(scene);
    assert_int_equal(stream_of(scene, id)->status, 200);
    exchange_send(exchange, STR("hello"));
    exchange_end(exchange, &status, 1);
    talk(scene);
    struct stream *stream = stream_of(scene, id);
    assert_int_equal(stream->body_bytes, 5);
    assert_int_equal(stream->headers, 2);
    assert_string_equal(stream->trailer, "grpc-status=0");
    assert_true(stream->ended);
}

static void trailers_may_follow_nothing(void **state) {
    struct scene *scene = *state;
    struct exchange *exchange;
    int32_t id = ask_open(scene, &exchange);
    const struct field status = {STR("grpc-status"), STR("0")};
    exchange_head(exchange, 200, NULL, 0);
    talk(scene);
    exchange_end(exchange, &status, 1);
    talk(scene);
    assert_int_equal(stream_of(scene, id)->headers, 2);
    assert_int_equal(stream_of(scene, id)->data_frames, 0);
    assert_true(stream_of(scene, id)->ended);
}

static void many_messages_leave_in_few_frames_and_one_write(void **state) {
    struct scene *scene = *state;
    struct exchange *exchange;
    int32_t id = ask_open(scene, &exchange);
    exchange_head(exchange, 200, NULL, 0);
    size_t sends = scene->fake.sends;
    for (size_t i = 0; i < 500; i++)
        exchange_send(exchange, STR("0123456789012345678901234567"
                                    "8901234567890123456789012345"
                                    "678901234567890123456789"));
    loop_turn(scene->fake.loop);
    assert_int_equal(scene->fake.sends, sends + 1);
    receive(scene);
    assert_int_equal(stream_of(scene, id)->body_bytes, 500 * 80);
    assert_int_equal(stream_of(scene, id)->data_frames, 3);
    assert_int_equal(scene->largest_data, 16384);
}

static void what_is_sent_now_leaves_with_what_others_have(void **state) {
    struct scene *scene = *state;
    struct exchange *one, *two;
    int32_t id = ask_open(scene, &one), other = ask_open(scene, &two);
    exchange_head(one, 200, NULL, 0);
    exchange_head(two, 200, NULL, 0);
    loop_turn(scene->fake.loop);
    size_t sends = scene->fake.sends;
    exchange_send_now(one, STR("five5"));
    exchange_send_now(two, STR("six666"));
    assert_int_equal(scene->fake.sends, sends);
    loop_turn(scene->fake.loop);
    assert_int_equal(scene->fake.sends, sends + 1);
    receive(scene);
    assert_int_equal(stream_of(scene, id)->body_bytes, 5);
    assert_int_equal(stream_of(scene, other)->body_bytes, 6);
}

static void streams_take_turns(void **state) {
    struct scene *scene = *state;
    struct exchange *one, *two;
    int32_t first = ask_open(scene, &one), second = ask_open(scene, &two);
    char bytes[20000] = {0};
    exchange_head(one, 200, NULL, 0);
    exchange_head(two, 200, NULL, 0);
    exchange_send(one, str_of(bytes, sizeof(bytes)));
    exchange_send(two, str_of(bytes, sizeof(bytes)));
    exchange_send(one, str_of(bytes, sizeof(bytes)));
    exchange_send(two, str_of(bytes, sizeof(bytes)));
    loop_turn(scene->fake.loop);
    receive(scene); /* the connection's first window holds 65,535 of the 80,000 bytes */
    assert_true(stream_of(scene, first)->body_bytes > 25000);
    assert_true(stream_of(scene, second)->body_bytes > 25000);
}

static void a_head_request_gets_no_body(void **state) {
    struct scene *scene = *state;
    nghttp2_nv nv[] = {NV(":method", "HEAD"), NV(":scheme", "http"), NV(":path", "/"),
                       NV(":authority", "a")};
    int32_t id = nghttp2_submit_request(scene->session, NULL, nv, 4, NULL, NULL);
    talk(scene);
    struct exchange *exchange = scene->app.calls[0].exchange;
    exchange_head(exchange, 200, NULL, 0);
    exchange_send(exchange, STR("no"));
    exchange_end(exchange, NULL, 0);
    talk(scene);
    assert_int_equal(stream_of(scene, id)->body_bytes, 0);
    assert_true(stream_of(scene, id)->closed);
}

static void a_hundred_is_sent_when_the_body_is_wanted(void **state) {
    struct scene *scene = *state;
    const nghttp2_nv extra[] = {NV("expect", "100-continue")};
    int32_t id = ask_with(scene, extra, 1, &open_end);
    talk(scene);
    assert_true(stream_of(scene, id)->interim);
    exchange_head(scene->app.calls[0].exchange, 200, NULL, 0);
    talk(scene);
    assert_int_equal(stream_of(scene, id)->status, 200);
}

static void fields_that_only_http_1_knows_are_left_out(void **state) {
    struct scene *scene = *state;
    struct exchange *exchange;
    int32_t id = ask_open(scene, &exchange);
    const struct field fields[] = {{STR("x"), STR("y")},
                                   {STR("connection"), STR("keep-alive")}};
    exchange_head(exchange, 200, fields, 2);
    talk(scene);
    assert_string_equal(stream_of(scene, id)->trailer, "x=y");
}

/* --- endings ------------------------------------------------------------------------------ */

static void a_peer_that_resets_has_left(void **state) {
    struct scene *scene = *state;
    struct exchange *exchange;
    int32_t id = ask_open(scene, &exchange);
    exchange_head(exchange, 200, NULL, 0);
    talk(scene);
    nghttp2_submit_rst_stream(scene->session, 0, id, NGHTTP2_CANCEL);
    talk(scene);
    assert_int_equal(scene->app.calls[0].how, EXCHANGE_PEER_LEFT);
    assert_false(fake_is_over(&scene->fake));
}

static void a_peer_that_closes_has_left_all_its_streams(void **state) {
    struct scene *scene = *state;
    struct exchange *exchange;
    ask_open(scene, &exchange);
    ask_open(scene, &exchange);
    fake_peer_ends(&scene->fake);
    assert_int_equal(scene->app.calls[0].how, EXCHANGE_PEER_LEFT);
    assert_int_equal(scene->app.calls[1].how, EXCHANGE_PEER_LEFT);
}

static void each_abort_has_its_code(void **state) {
    struct scene *scene = *state;
    static const struct {
        enum exchange_abort why;
        uint32_t code;
    } rows[] = {
        {ABORT_NO_ERROR, NGHTTP2_NO_ERROR},
        {ABORT_CANCEL, NGHTTP2_CANCEL},
        {ABORT_INTERNAL, NGHTTP2_INTERNAL_ERROR},
        {ABORT_PROTOCOL, NGHTTP2_PROTOCOL_ERROR},
        {ABORT_REFUSED_STREAM, NGHTTP2_REFUSED_STREAM},
        {ABORT_ENHANCE_CALM, NGHTTP2_ENHANCE_YOUR_CALM},
    };
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        struct exchange *exchange;
        int32_t id = ask_open(scene, &exchange);
        exchange_head(exchange, 200, NULL, 0);
        exchange_send(exchange, STR("dropped"));
        exchange_abort(exchange, rows[i].why);
        exchange_abort(exchange, ABORT_INTERNAL); /* the first one counts */
        exchange_end(exchange, NULL, 0);
        assert_false(scene->app.calls[i].closed);
        talk(scene);
        assert_int_equal(stream_of(scene, id)->code, rows[i].code);
        assert_int_equal(stream_of(scene, id)->body_bytes, 0);
        assert_int_equal(scene->app.calls[i].how, EXCHANGE_ABORTED);
    }
}

static void an_abort_in_the_middle_of_a_stalled_frame_is_clean(void **state) {
    struct scene *scene = *state;
    struct exchange *exchange;
    int32_t id = ask_open(scene, &exchange);
    scene->fake.window = 100;
    char bytes[60000] = {0};
    exchange_head(exchange, 200, NULL, 0);
    exchange_send(exchange, str_of(bytes, sizeof(bytes)));
    loop_turn(scene->fake.loop);
    exchange_abort(exchange, ABORT_CANCEL);
    loop_turn(scene->fake.loop);
    fake_allow(&scene->fake, SIZE_MAX);
    talk(scene);
    assert_int_equal(stream_of(scene, id)->code, NGHTTP2_CANCEL);
    assert_false(fake_is_over(&scene->fake));
}

/* --- flow control
 * ------------------------------------------------------------------------------------------ */

static void a_body_that_is_not_consumed_stops_at_the_window(void **state) {
    struct scene *scene = *state;
    scene->app.keeps = true;
    struct upload upload = {.left = 1000000};
    ask_with(scene, NULL, 0, &upload);
    talk(scene);
    struct call *call = &scene->app.calls[0];
    assert_int_equal(call->body.len, 256 * KIB);
    exchange_consumed(call->exchange, call->body.len);
    talk(scene);
    assert_int_equal(call->body.len, 512 * KIB);
}

/* Each holds a whole window of its own; twenty hold five times the connection's. */
static void streams_that_wait_hold_up_no_other(void **state) {
    struct scene *scene = *state;
    scene->app.keeps = true;
    for (size_t i = 0; i < 20; i++) {
        struct upload upload = {.left = MIB, .open_end = true};
        ask_with(scene, NULL, 0, &upload);
        talk(scene);
        assert_int_equal(scene->app.calls[i].body.len, 256 * KIB);
    }
    struct upload last = {.left = 100000};
    ask_with(scene, NULL, 0, &last);
    talk(scene);
    assert_int_equal(scene->app.calls[20].body.len, 100000);
    assert_true(scene->app.calls[20].body_ended);
}

/* --- streams of a connection that has little room ----------------------------------------- */

#define PAUSED 100
#define PAUSED_BYTES (8 * KIB)

static void answer_paused(struct scene *scene, struct exchange **exchanges, int32_t *ids) {
    static const char bytes[PAUSED_BYTES];
    scene->app.keeps = true;
    for (size_t i = 0; i < PAUSED; i++) {
        ids[i] = ask_open(scene, &exchanges[i]);
        exchange_authenticated(exchanges[i]);
        exchange_head(exchanges[i], 200, NULL, 0);
    }
    talk(scene);
    for (size_t i = 0; i < PAUSED; i++)
        exchange_send(exchanges[i], str_of(bytes, sizeof(bytes)));
}

static void
a_connection_that_takes_nothing_makes_its_streams_wait_and_loses_none(void **state) {
    struct scene *scene = *state;
    struct exchange *exchanges[PAUSED], *last, *next;
    int32_t ids[PAUSED];
    ask_open(scene, &last);
    ask_open(scene, &next);
    answer_paused(scene, exchanges, ids);
    scene->fake.window = 0;
    assert_int_equal(exchange_pressure(last), 0); /* nobody knows yet that it takes nothing */
    loop_turn(scene->fake.loop);
    assert_int_equal(exchange_queued(last), 0);
    assert_true(exchange_pressure(last) > MIB);
    exchange_wake_at(next, 0);
    exchange_wake_at(last, 0);
    for (int second = 0; second < 10; second++) {
        loop_advance(scene->fake.loop, 1000);
        assert_true(exchange_pressure(last) > MIB);
    }
    assert_int_equal(scene->app.calls[0].drained + scene->app.calls[1].drained, 0);
    fake_allow(&scene->fake, SIZE_MAX);
    talk(scene);
    assert_int_equal(scene->app.calls[0].drained, 1);
    assert_int_equal(scene->app.calls[1].drained, 1);
    assert_int_equal(exchange_pressure(last), 0);
    for (size_t i = 0; i < PAUSED; i++) {
        assert_int_equal(stream_of(scene, ids[i])->body_bytes, PAUSED_BYTES);
        assert_false(stream_of(scene, ids[i])->closed);
    }
}

/* The peer reads the connection but not these streams. */
static void streams_that_are_not_read_leave_room_for_one_that_is(void **state) {
    struct scene *scene = *state;
    struct exchange *exchanges[PAUSED], *read;
    int32_t ids[PAUSED];
    const nghttp2_settings_entry no_window = {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, 0};
    nghttp2_submit_settings(scene->session, 0, &no_window, 1);
    answer_paused(scene, exchanges, ids);
    int32_t id = ask_open(scene, &read);
    exchange_head(read, 200, NULL, 0);
    nghttp2_submit_window_update(scene->session, 0, id, MIB);
    talk(scene);
    assert_int_equal(stream_of(scene, ids[0])->body_bytes, 0);
    for (int i = 0; i < 10; i++) {
        assert_int_equal(exchange_pressure(read), 0);
        exchange_send(read, STR("news"));
        exchange_wake_at(read, 0);
        talk(scene);
        loop_advance(scene->fake.loop, 1000);
    }
    assert_int_equal(stream_of(scene, id)->body_bytes, 40);
    assert_int_equal(scene->app.calls[PAUSED].drained, 10);
}

/* 8 MiB, and then what the connection's window has left. */
static void what_waits_on_a_connection_is_bounded_and_goes_on_when_taken(void **state) {
    struct scene *scene = *state;
    scene->app.keeps = true;
    size_t held = 0, most = HTTP2_HELD_MAX_BYTES + MIB;
    struct upload uploads[40];
    for (size_t i = 0; i < 40; i++) {
        uploads[i] = (struct upload){.left = MIB, .open_end = true};
        ask_with(scene, NULL, 0, &uploads[i]);
        talk(scene);
    }
    for (size_t i = 0; i < 40; i++) held += scene->app.calls[i].body.len;
    assert_int_equal(held, most);
    for (size_t i = 0; i < 8; i++) exchange_consumed(scene->app.calls[i].exchange, 256 * KIB);
    talk(scene);
    size_t again = 0;
    for (size_t i = 0; i < 40; i++) again += scene->app.calls[i].body.len;
    assert_int_equal(again, most + 8 * 256 * KIB);
}

static void scarce_memory_holds_streams_up_until_it_is_there_again(void **state) {
    struct scene *scene = *state;
    struct upload uploads[5];
    size_t received = 0;
    scene->app.keeps = true;
    mem_limit(mem_counted() * 2 + 8 * MIB);
    mem_count(5 * MIB);
    for (size_t i = 0; i < 5; i++) {
        uploads[i] = (struct upload){.left = 256 * KIB, .open_end = true};
        ask_with(scene, NULL, 0, &uploads[i]);
        talk(scene);
    }
    for (size_t i = 0; i < 5; i++) received += scene->app.calls[i].body.len;
    mem_uncount(5 * MIB);
    mem_limit(0);
    assert_int_equal(received, MIB);
    loop_advance(scene->fake.loop, 1000);
    talk(scene);
    assert_int_equal(scene->app.calls[4].body.len, 256 * KIB);
}

static void bytes_kept_by_a_closed_exchange_go_back_to_the_connection(void **state) {
    struct scene *scene = *state;
    scene->app.keeps = true;
    for (size_t i = 0; i < 20; i++) { /* five times the connection's window */
        struct upload upload = {.left = 256 * KIB, .open_end = true};
        ask_with(scene, NULL, 0, &upload);
        talk(scene);
        assert_int_equal(scene->app.calls[i].body.len, 256 * KIB);
        exchange_abort(scene->app.calls[i].exchange, ABORT_CANCEL);
        talk(scene);
    }
}

/* 300 KiB, one byte a frame, each with 255 bytes of padding (G12). */
static void padding_is_given_back_with_the_bytes(void **state) {
    struct raw *raw = *state;
    put_frame(&raw->out, 6, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS, 1, STR(HEAD_BLOCK));
    send_raw(raw);
    char payload[257] = {(char)255, 'x'};
    size_t before = 0;
    int64_t window = 256 * KIB;
    for (size_t i = 0; i < 300 * KIB; i++) {
        put_frame(&raw->out, 257, NGHTTP2_DATA, NGHTTP2_FLAG_PADDED, 1,
                  str_of(payload, sizeof(payload)));
        window -= 257;
        if (raw->out.len < 32 * KIB) continue;
        send_raw(raw);
        struct str sent = str_skip(buf_str(&raw->fake.sent), before);
        before = raw->fake.sent.len;
        for (; sent.len >= 13; sent = str_skip(sent, 13)) {
            const uint8_t *head = (const uint8_t *)sent.at;
            if (head[3] != NGHTTP2_WINDOW_UPDATE) break;
            uint32_t more = (uint32_t)head[9] << 24 | (uint32_t)head[10] << 16 |
                            (uint32_t)head[11] << 8 | head[12];
            if (head[8] == 1) window += more;
        }
        assert_true(window > 0);
    }
    put_frame(&raw->out, 0, NGHTTP2_DATA, NGHTTP2_FLAG_END_STREAM, 1, STR_EMPTY);
    send_raw(raw);
    assert_int_equal(raw->app->calls[0].body.len, 300 * KIB);
    assert_true(raw->app->calls[0].body_ended);
}

static void open_windows_by_hand(struct scene *scene) {
    nghttp2_session_del(scene->session);
    fake_shut(&scene->fake);
    fake_open(&scene->fake, app_start, &scene->app);
    scene->manual_windows = true;
    new_session(scene);
    nghttp2_submit_settings(scene->session, 0, NULL, 0);
}

static void a_closed_window_holds_the_bytes_and_wakes_the_owner_later(void **state) {
    struct scene *scene = *state;
    open_windows_by_hand(scene);
    struct exchange *exchange;
    int32_t id = ask_open(scene, &exchange);
    char bytes[100000] = {0};
    exchange_head(exchange, 200, NULL, 0);
    exchange_send(exchange, str_of(bytes, sizeof(bytes)));
    talk(scene);
    assert_int_equal(stream_of(scene, id)->body_bytes, 65535);
    assert_int_equal(exchange_queued(exchange), 100000 - 65535);
    exchange_wake_at(exchange, 1000);
    talk(scene);
    assert_int_equal(scene->app.calls[0].drained, 0);
    loop_advance(scene->fake.loop, 700);
    assert_int_equal(exchange_stalled_ms(exchange), 700);
    nghttp2_session_consume(scene->session, id, 65535);
    talk(scene);
    assert_int_equal(scene->app.calls[0].drained, 1);
    assert_int_equal(exchange_stalled_ms(exchange), 0);
    assert_int_equal(stream_of(scene, id)->body_bytes, 100000);

    /* And when the window stays closed, the exchange is cut in the end. */
    exchange_send(exchange, str_of(bytes, sizeof(bytes)));
    talk(scene);
    loop_advance(scene->fake.loop, 40000);
    assert_true(scene->app.calls[0].closed);
    assert_int_equal(scene->app.calls[0].how, EXCHANGE_ABORTED);
}

/* RFC 9113 6.9: HEADERS need no window. */
static void trailers_do_not_wait_for_the_window(void **state) {
    struct scene *scene = *state;
    open_windows_by_hand(scene);
    const struct field status = {STR("grpc-status"), STR("1")};
    struct exchange *exchange, *other;
    static const char bytes[65535];
    int32_t id = ask_open(scene, &exchange);
    exchange_head(exchange, 200, NULL, 0);
    exchange_send(exchange, str_of(bytes, sizeof(bytes))); /* all that the peer takes */
    talk(scene);
    assert_int_equal(exchange_queued(exchange), 0);
    exchange_end(exchange, &status, 1);
    talk(scene);
    assert_int_equal(stream_of(scene, id)->body_bytes, sizeof(bytes));
    assert_string_equal(stream_of(scene, id)->trailer, "grpc-status=1");
    assert_true(stream_of(scene, id)->ended);

    /* The same with the head in one turn; here the window of the connection is shut. */
    int32_t next = ask_open(scene, &other);
    exchange_head(other, 200, NULL, 0);
    exchange_end(other, &status, 1);
    talk(scene);
    assert_int_equal(stream_of(scene, next)->headers, 2);
    assert_int_equal(stream_of(scene, next)->data_frames, 0);
    assert_true(stream_of(scene, next)->ended);
    assert_int_equal(scene->goaways, 0);
}

/* A stream whose window opens by `bytes` every ten seconds; how often until it was reset. */
static int drip(struct scene *scene, int32_t bytes) {
    static char answer[400 * KIB];
    struct exchange *exchange;
    open_windows_by_hand(scene);
    int32_t id = ask_open(scene, &exchange);
    int times = 0;
    exchange_head(exchange, 200, NULL, 0);
    exchange_send(exchange, str_of(answer, sizeof(answer)));
    talk(scene);
    for (; times < 12 && !stream_of(scene, id)->code; times++) {
        nghttp2_submit_window_update(scene->session, NGHTTP2_FLAG_NONE, 0, 64 * 1024);
        nghttp2_submit_window_update(scene->session, NGHTTP2_FLAG_NONE, id, bytes);
        talk(scene);
        loop_advance(scene->fake.loop, 10000);
        talk(scene);
    }
    assert_false(fake_is_over(&scene->fake));
    return times;
}

static void a_stream_that_is_opened_byte_by_byte_is_reset(void **state) { /* H5 */
    assert_true(drip(*state, 1) < 12);
}

static void a_stream_that_takes_a_kilobyte_a_second_goes_on(void **state) {
    assert_int_equal(drip(*state, 12 * 1024), 12);
}

static void a_peer_that_reads_nothing_for_thirty_seconds_is_cut(void **state) {
    struct scene *scene = *state;
    for (size_t i = 0; i < 100; i++) ask_with(scene, NULL, 0, NULL);
    talk(scene);
    scene->fake.window = 0;
    char bytes[1000] = {0};
    for (size_t i = 0; i < 100; i++) {
        exchange_head(scene->app.calls[i].exchange, 200, NULL, 0);
        exchange_send(scene->app.calls[i].exchange, str_of(bytes, sizeof(bytes)));
        exchange_end(scene->app.calls[i].exchange, NULL, 0);
    }
    loop_turn(scene->fake.loop);
    assert_true(scene->fake.conn->unsent.len + scene->fake.conn->queued_bytes < MIB);
    loop_advance(scene->fake.loop, 30000);
    assert_null(scene->fake.conn);
}

/* --- limits ------------------------------------------------------------------------------- */

static void strangers_get_a_hundred_streams_and_known_callers_a_thousand(void **state) {
    struct scene *scene = *state;
    assert_int_equal(scene->streams_allowed, 100);
    struct exchange *exchange;
    ask_open(scene, &exchange);
    exchange_authenticated(exchange);
    talk(scene);
    assert_int_equal(scene->streams_allowed, 1000);
    for (size_t i = 1; i < 1000; i++) ask_with(scene, NULL, 0, &open_end);
    talk(scene);
    assert_int_equal(scene->app.alive, 1000);
}

static void streams_beyond_the_limit_are_refused_and_nothing_runs(void **state) {
    struct raw *raw = *state;
    put_frame(&raw->out, 0, NGHTTP2_SETTINGS, NGHTTP2_FLAG_ACK, 0, STR_EMPTY);
    for (uint32_t i = 0; i < 1000; i++)
        put_frame(&raw->out, 6, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS, 2 * i + 1,
                  STR(HEAD_BLOCK));
    send_raw(raw);
    assert_int_equal(raw->app->begun, 100);
    assert_int_equal(count_sent(raw, NGHTTP2_RST_STREAM), 900);
    assert_int_equal(goaway_code(raw), -1);
    assert_false(fake_is_over(&raw->fake));
}

static void too_many_fields_are_answered_with_431(void **state) {
    struct scene *scene = *state;
    nghttp2_nv extra[101];
    for (size_t i = 0; i < 101; i++) extra[i] = (nghttp2_nv)NV("a", "b");
    int32_t id = ask_with(scene, extra, 101, NULL);
    int32_t fine = ask_with(scene, extra, 100, NULL);
    talk(scene);
    assert_int_equal(stream_of(scene, id)->status, 431);
    assert_int_equal(stream_of(scene, fine)->status, 0);
    assert_int_equal(scene->app.begun, 1);
}

static void too_large_fields_are_answered_with_431(void **state) {
    struct scene *scene = *state;
    char value[17001];
    memset(value, 'x', 17000);
    value[17000] = '\0';
    const nghttp2_nv extra[] = {NV("a", value)};
    int32_t id = ask_with(scene, extra, 1, NULL);
    talk(scene);
    assert_int_equal(stream_of(scene, id)->status, 431);
    assert_int_equal(scene->app.begun, 0);
}

static int32_t ask_path(struct scene *scene, const char *method, const char *path,
                        const char *authority, const char *host) {
    nghttp2_nv nv[] = {NV(":method", method), NV(":scheme", "http"), NV(":path", path),
                       NV(":authority", authority), NV("host", host)};
    int32_t id = nghttp2_submit_request(scene->session, NULL, nv, *host ? 5 : 4, NULL, NULL);
    assert_true(id > 0);
    talk(scene);
    return id;
}

static void odd_targets_and_authorities_are_refused(void **state) {
    struct scene *scene = *state;
    char path[9002] = "/";
    memset(path + 1, 'x', 9000);
    path[9001] = '\0';
    assert_int_equal(stream_of(scene, ask_path(scene, "GET", path, "a", ""))->status, 414);
    assert_int_equal(stream_of(scene, ask_path(scene, "GET", "/#a", "a", ""))->status, 400);
    int32_t user = ask_path(scene, "GET", "/", "u@a", "");
    assert_int_equal(stream_of(scene, user)->code, NGHTTP2_PROTOCOL_ERROR);
    int32_t other = ask_path(scene, "GET", "/", "a", "b");
    assert_int_equal(stream_of(scene, other)->code, NGHTTP2_PROTOCOL_ERROR);
    assert_int_equal(scene->app.begun, 0);
    ask_path(scene, "GET", "/", "a", "A");
    assert_int_equal(scene->app.begun, 1);
}

static void fields_of_a_connection_are_refused(void **state) {
    static const char *const names[] = {"connection", "keep-alive", "transfer-encoding",
                                        "upgrade", "proxy-connection"};
    struct raw *raw = *state;
    for (uint32_t i = 0; i < ARRAY_LEN(names); i++) {
        char block[64];
        size_t len = 6;
        memcpy(block, HEAD_BLOCK, 6);
        block[len++] = 0; /* literal, not indexed, new name */
        block[len++] = (char)strlen(names[i]);
        memcpy(block + len, names[i], strlen(names[i]));
        len += strlen(names[i]);
        memcpy(block + len, "\x01x", 2);
        len += 2;
        put_frame(&raw->out, len, NGHTTP2_HEADERS,
                  NGHTTP2_FLAG_END_HEADERS | NGHTTP2_FLAG_END_STREAM, 2 * i + 1,
                  str_of(block, len));
    }
    send_raw(raw);
    assert_int_equal(raw->app->begun, 0);
    assert_int_equal(count_sent(raw, NGHTTP2_RST_STREAM), ARRAY_LEN(names));
    assert_false(fake_is_over(&raw->fake));
}

static void te_is_trailers_or_nothing(void **state) {
    struct scene *scene = *state;
    const nghttp2_nv good[] = {NV("te", "trailers")}, bad[] = {NV("te", "gzip")};
    ask_with(scene, good, 1, NULL);
    int32_t id = ask_with(scene, bad, 1, NULL);
    talk(scene);
    assert_int_equal(scene->app.begun, 1);
    assert_int_equal(stream_of(scene, id)->code, NGHTTP2_PROTOCOL_ERROR);
}

/* --- abuse -------------------------------------------------------------------------------- */

static void rapid_resets_end_in_goaway(void **state) { /* H2 */
    struct raw *raw = *state;
    uint32_t i = 0;
    for (; i < 100000 && !fake_is_over(&raw->fake) && raw->app->begun < CALLS_MAX - 100; i++) {
        put_frame(&raw->out, 6, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS, 2 * i + 1,
                  STR(HEAD_BLOCK));
        put_frame(&raw->out, 4, NGHTTP2_RST_STREAM, 0, 2 * i + 1, STR("\0\0\0\x08"));
        if (i % 10 == 9) send_raw(raw);
    }
    assert_true(i < 1200);
    assert_true(raw->app->begun < 1200);
    assert_true(raw->app->alive_most <= 100);
    assert_true(goaway_code(raw) > 0);
}

/* Frames that make us reset the stream, instead of resetting it oneself. */
static void resets_that_the_peer_provokes_end_in_goaway(void **state) {
    struct raw *raw = *state;
    uint32_t i = 0;
    for (; i < 100000 && !fake_is_over(&raw->fake); i++) {
        put_frame(&raw->out, 6, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS, 2 * i + 1,
                  STR(HEAD_BLOCK));
        put_frame(&raw->out, 4, NGHTTP2_WINDOW_UPDATE, 0, 2 * i + 1, STR("\x7F\xFF\xFF\xFF"));
        if (i % 10 == 9) send_raw(raw);
    }
    assert_in_range(i, 190, 210); /* H3 */
    assert_true(goaway_code(raw) > 0);
}

static void malformed_requests_in_masses_end_in_goaway(void **state) {
    struct raw *raw = *state;
    uint32_t i = 0;
    for (; i < 100000 && !fake_is_over(&raw->fake); i++) {
        put_frame(&raw->out, 1, NGHTTP2_HEADERS,
                  NGHTTP2_FLAG_END_HEADERS | NGHTTP2_FLAG_END_STREAM, 2 * i + 1, STR("\x83"));
        if (i % 10 == 9) send_raw(raw);
    }
    assert_in_range(i, 190, 210);
    assert_int_equal(raw->app->begun, 0);
    assert_int_equal(goaway_code(raw), NGHTTP2_ENHANCE_YOUR_CALM);
}

static void the_ninth_continuation_closes(void **state) { /* H4 */
    struct raw *raw = *state;
    put_frame(&raw->out, 6, NGHTTP2_HEADERS, 0, 1, STR(HEAD_BLOCK));
    for (size_t i = 0; i < 8; i++)
        put_frame(&raw->out, 5, NGHTTP2_CONTINUATION, 0, 1, STR("\0\x01x\x01y"));
    send_raw(raw);
    assert_false(fake_is_over(&raw->fake));
    put_frame(&raw->out, 5, NGHTTP2_CONTINUATION, 0, 1, STR("\0\x01x\x01y"));
    send_raw(raw);
    assert_true(fake_is_over(&raw->fake));
    assert_int_equal(raw->app->begun, 0);
}

static void broken_compression_closes(void **state) { /* H6 */
    static const struct {
        const char *name;
        struct str block;
    } rows[] = {
        {"table size above the limit", STR_INIT("\x3f\xe1\xff\xff\x07")},
        {"index 0", STR_INIT("\x80")},
        {"an index nobody filled", STR_INIT("\xff\x20")},
        {"Huffman's EOS", STR_INIT("\x00\x84\xff\xff\xff\xff\x01x")},
        {"a string of 4 GiB", STR_INIT("\x00\x7f\x80\xff\xff\xff\x0f")},
        {"an endless integer",
         STR_INIT("\xff\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80")},
    };
    struct raw *raw = *state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        put_frame(&raw->out, rows[i].block.len, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS, 1,
                  rows[i].block);
        send_raw(raw);
        if (goaway_code(raw) != NGHTTP2_COMPRESSION_ERROR || !fake_is_over(&raw->fake))
            fail_msg("%s: code %d", rows[i].name, (int)goaway_code(raw));
        fake_shut(&raw->fake);
        fake_open(&raw->fake, app_start, raw->app);
        buf_append(&raw->out, STR(PREFACE));
        put_frame(&raw->out, 0, NGHTTP2_SETTINGS, 0, 0, STR_EMPTY);
    }
}

static void a_header_bomb_closes(void **state) {
    struct raw *raw = *state;
    char block[16000];
    /* One field of 4,000 bytes into the table, then a byte for each time it is meant. */
    memcpy(block, HEAD_BLOCK "\x40\x01x\x7f\xa1\x1e", 12);
    memset(block + 12, 'y', 4000);
    memset(block + 4012, 0xbe, 11988);
    put_frame(&raw->out, sizeof(block), NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS, 1,
              str_of(block, sizeof(block)));
    send_raw(raw);
    assert_true(fake_is_over(&raw->fake));
    assert_int_equal(raw->app->begun, 0);
}

/* `frame` a hundred thousand times; how many of them it took. */
static size_t flood(struct raw *raw, uint8_t type, uint32_t id, struct str payload) {
    size_t i = 0;
    for (; i < 100000 && !fake_is_over(&raw->fake); i++) {
        put_frame(&raw->out, payload.len, type, 0, id, payload);
        if (i % 10 == 9) send_raw(raw);
    }
    return i;
}

static void floods_of_frames_that_ask_for_nothing_close(void **state) { /* H7, H8 */
    struct raw *raw = *state;
    assert_true(flood(raw, NGHTTP2_SETTINGS, 0, STR_EMPTY) < 1100);
    assert_int_equal(goaway_code(raw), NGHTTP2_ENHANCE_YOUR_CALM);
}

static void a_flood_of_pings_closes(void **state) {
    struct raw *raw = *state;
    assert_true(flood(raw, NGHTTP2_PING, 0, STR("12345678")) < 1100);
    assert_int_equal(goaway_code(raw), NGHTTP2_ENHANCE_YOUR_CALM);
}

static void a_flood_of_priorities_closes(void **state) {
    struct raw *raw = *state;
    assert_true(flood(raw, NGHTTP2_PRIORITY, 1, STR("\0\0\0\0\x10")) < 1100);
    assert_int_equal(goaway_code(raw), NGHTTP2_ENHANCE_YOUR_CALM);
}

static void a_flood_of_empty_data_closes(void **state) {
    struct raw *raw = *state;
    put_frame(&raw->out, 6, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS, 1, STR(HEAD_BLOCK));
    assert_true(flood(raw, NGHTTP2_DATA, 1, STR_EMPTY) < 1100);
    assert_int_equal(goaway_code(raw), NGHTTP2_ENHANCE_YOUR_CALM);
    assert_int_equal(raw->app->calls[0].how, EXCHANGE_ABORTED);
}

static void pings_that_cannot_be_acknowledged_close(void **state) {
    struct raw *raw = *state;
    send_raw(raw);
    raw->fake.window = 0;
    for (size_t i = 0; i < 3000; i++)
        put_frame(&raw->out, 8, NGHTTP2_PING, 0, 0, STR("12345678"));
    send_raw(raw);
    assert_true(raw->fake.conn->state != CONN_OPEN);
}

static void settings_with_too_many_entries_close(void **state) {
    struct raw *raw = *state;
    char entries[6 * 2000];
    for (size_t i = 0; i < sizeof(entries); i += 6)
        memcpy(entries + i, "\0\x04\0\0\xff\xff", 6);
    put_frame(&raw->out, sizeof(entries), NGHTTP2_SETTINGS, 0, 0,
              str_of(entries, sizeof(entries)));
    send_raw(raw);
    assert_true(fake_is_over(&raw->fake));
}

static void a_window_that_overflows_closes(void **state) {
    struct raw *raw = *state;
    put_frame(&raw->out, 4, NGHTTP2_WINDOW_UPDATE, 0, 0, STR("\x7f\xff\xff\xff"));
    send_raw(raw);
    assert_int_equal(goaway_code(raw), NGHTTP2_FLOW_CONTROL_ERROR);
    assert_true(fake_is_over(&raw->fake));
}

static void unknown_frames_are_ignored(void **state) {
    struct raw *raw = *state;
    for (size_t i = 0; i < 100000; i++) put_frame(&raw->out, 3, 0xbb, 0x5, 0, STR("abc"));
    send_raw(raw);
    assert_false(fake_is_over(&raw->fake));
}

/* --- frames on closed streams (RFC 9113 5.1) ---------------------------------------------- */

static void a_stream_that_the_peer_reset_is_closed_to_it(void **state) {
    static const struct {
        size_t len;
        uint8_t type;
        struct str payload;
    } rows[] = {
        {4, NGHTTP2_DATA, STR_INIT("late")},
        {6, NGHTTP2_HEADERS, STR_INIT(HEAD_BLOCK)},
    };
    struct raw *raw = *state;
    for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
        put_frame(&raw->out, 6, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS, 1, STR(HEAD_BLOCK));
        put_frame(&raw->out, 4, NGHTTP2_RST_STREAM, 0, 1, STR("\0\0\0\x08"));
        put_frame(&raw->out, rows[i].len, rows[i].type, NGHTTP2_FLAG_END_HEADERS, 1,
                  rows[i].payload);
        send_raw(raw);
        assert_int_equal(goaway_code(raw), NGHTTP2_STREAM_CLOSED);
        assert_true(fake_is_over(&raw->fake));
        shut_raw(state);
        open_raw(state);
        raw = *state;
    }
}

static void a_number_that_was_passed_over_cannot_be_used(void **state) {
    struct raw *raw = *state;
    put_frame(&raw->out, 6, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS, 5, STR(HEAD_BLOCK));
    put_frame(&raw->out, 6, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS, 3, STR(HEAD_BLOCK));
    send_raw(raw);
    assert_int_equal(goaway_code(raw), NGHTTP2_STREAM_CLOSED);
}

static void data_on_a_stream_that_we_reset_is_only_late(void **state) {
    struct raw *raw = *state;
    put_frame(&raw->out, 6, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS, 1, STR(HEAD_BLOCK));
    send_raw(raw);
    exchange_abort(raw->app->calls[0].exchange, ABORT_CANCEL);
    put_frame(&raw->out, 0, NGHTTP2_SETTINGS, 0, 0, STR_EMPTY);
    send_raw(raw);
    assert_true(raw->app->calls[0].closed);
    for (size_t i = 0; i < 100; i++) put_frame(&raw->out, 4, NGHTTP2_DATA, 0, 1, STR("late"));
    put_frame(&raw->out, 6, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS, 1, STR(HEAD_BLOCK));
    send_raw(raw);
    assert_int_equal(goaway_code(raw), -1);
    assert_false(fake_is_over(&raw->fake));
}

static void a_priority_of_nothing_or_of_itself_closes(void **state) {
    struct raw *raw = *state;
    static const uint32_t ids[] = {0, 3};
    for (size_t i = 0; i < ARRAY_LEN(ids); i++) {
        put_frame(&raw->out, 5, NGHTTP2_PRIORITY, 0, ids[i], STR("\x80\0\0\3\x10"));
        send_raw(raw);
        assert_int_equal(goaway_code(raw), NGHTTP2_PROTOCOL_ERROR);
        shut_raw(state);
        open_raw(state);
        raw = *state;
    }
}

static void three_quick_pings_are_too_many(void **state) { /* G15 */
    struct scene *scene = *state;
    for (size_t i = 0; i < 3; i++) {
        nghttp2_submit_ping(scene->session, 0, NULL);
        talk(scene);
        assert_int_equal(scene->goaways, i == 2);
        loop_advance(scene->fake.loop, 1000);
    }
    assert_int_equal(scene->goaway_code, NGHTTP2_ENHANCE_YOUR_CALM);
    assert_string_equal(scene->goaway_why, "too_many_pings");
    assert_true(fake_is_over(&scene->fake));
}

static void patient_pings_are_answered_for_ever(void **state) {
    struct scene *scene = *state;
    struct exchange *exchange;
    ask_open(scene, &exchange);
    for (size_t i = 0; i < 40; i++) {
        nghttp2_submit_ping(scene->session, 0, NULL);
        talk(scene);
        loop_advance(scene->fake.loop, 15000);
    }
    assert_int_equal(scene->pings_answered, 40);
    assert_int_equal(scene->goaways, 0);
}

static void without_that_rule_pings_come_as_they_like(void **state) {
    struct scene *scene = *state;
    scene->fake.limits.ping_apart_ms = 0;
    for (size_t i = 0; i < 40; i++) {
        nghttp2_submit_ping(scene->session, 0, NULL);
        talk(scene);
    }
    assert_int_equal(scene->pings_answered, 40);
    assert_int_equal(scene->goaways, 0);
}

static void pings_between_answers_are_fine(void **state) {
    struct scene *scene = *state;
    struct exchange *exchange;
    ask_open(scene, &exchange);
    exchange_head(exchange, 200, NULL, 0);
    for (size_t i = 0; i < 40; i++) {
        exchange_send(exchange, STR("x"));
        nghttp2_submit_ping(scene->session, 0, NULL);
        talk(scene);
    }
    assert_int_equal(scene->goaways, 0);
}

static void text_after_a_preface_closes(void **state) {
    struct raw *raw = *state;
    buf_clear(&raw->out);
    buf_append(&raw->out, STR(PREFACE "GET / HTTP/1.1\r\nHost: a\r\n\r\n"));
    send_raw(raw);
    assert_true(fake_is_over(&raw->fake));
    assert_int_equal(raw->app->begun, 0);
}

/* --- time and stopping
 * ---------------------------------------------------------------------------------------- */

static void a_slow_preface_is_closed_after_ten_seconds(void **state) { /* H9 */
    struct raw *raw = *state;
    struct str preface = STR(PREFACE);
    for (size_t i = 0; i < preface.len && !fake_is_over(&raw->fake); i++) {
        assert_true(i <= 10);
        fake_receive(&raw->fake, str_head(str_skip(preface, i), 1));
        loop_advance(raw->fake.loop, 1000);
    }
    assert_true(fake_is_over(&raw->fake));
}

static void a_header_section_must_end_within_ten_seconds(void **state) {
    struct raw *raw = *state;
    put_frame(&raw->out, 6, NGHTTP2_HEADERS, 0, 1, STR(HEAD_BLOCK));
    send_raw(raw);
    loop_advance(raw->fake.loop, 9999);
    assert_false(fake_is_over(&raw->fake));
    loop_advance(raw->fake.loop, 1);
    assert_true(fake_is_over(&raw->fake));
}

static void a_silent_peer_is_asked_and_then_cut(void **state) { /* G18 */
    struct scene *scene = *state;
    struct exchange *exchange;
    ask_open(scene, &exchange);
    loop_advance(scene->fake.loop, server_limits_default.keepalive_ms);
    assert_true(scene->fake.sent.len > 0);
    talk(scene); /* answered: it lives on */
    loop_advance(scene->fake.loop, server_limits_default.keepalive_ms);
    assert_int_equal(scene->app.alive, 1);
    loop_advance(scene->fake.loop,
                 server_limits_default.keepalive_timeout_ms); /* not answered */
    assert_int_equal(scene->app.calls[0].how, EXCHANGE_PEER_LEFT);
    assert_null(scene->fake.conn);
}

static void an_idle_connection_is_closed_after_five_minutes(void **state) {
    struct scene *scene = *state;
    for (size_t i = 0; i < 310; i++) {
        loop_advance(scene->fake.loop, 1000);
        talk(scene);
    }
    assert_true(fake_is_over(&scene->fake));
    assert_int_equal(scene->goaway_code, NGHTTP2_NO_ERROR);
}

static void stopping_says_goaway_twice_and_lets_the_stream_end(void **state) {
    struct scene *scene = *state;
    struct exchange *exchange;
    int32_t id = ask_open(scene, &exchange);
    conn_shut_down(scene->fake.conn);
    loop_turn(scene->fake.loop);
    receive(scene);
    assert_int_equal(scene->goaways, 1);
    assert_int_equal(scene->goaway_last, 0x7fffffff);
    talk(scene);
    assert_int_equal(scene->goaways, 2);
    assert_int_equal(scene->goaway_last, id);
    assert_false(fake_is_over(&scene->fake));
    exchange_head(exchange, 200, NULL, 0);
    exchange_end(exchange, NULL, 0);
    talk(scene);
    assert_int_equal(scene->app.calls[0].how, EXCHANGE_COMPLETE);
    assert_true(fake_is_over(&scene->fake));
}

static void stopping_does_not_wait_for_a_peer_that_answers_no_ping(void **state) {
    struct scene *scene = *state;
    conn_shut_down(scene->fake.conn);
    loop_turn(scene->fake.loop);
    assert_false(fake_is_over(&scene->fake));
    loop_advance(scene->fake.loop, 1000);
    assert_true(fake_is_over(&scene->fake));
}

/* --- however the bytes come
 * --------------------------------------------------------------------------------------- */

static void a_request_reads_the_same_however_it_is_cut(void **state) {
    struct raw *raw = *state;
    put_frame(&raw->out, 6, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS, 1, STR(HEAD_BLOCK));
    put_frame(&raw->out, 5, NGHTTP2_DATA, NGHTTP2_FLAG_END_STREAM, 1, STR("hello"));
    struct str whole = buf_str(&raw->out);
    for (size_t cut = 1; cut < whole.len; cut++) {
        struct fake fake;
        struct echo echo = {0};
        fake_open(&fake, echo_start, &echo);
        fake_receive(&fake, str_head(whole, cut));
        fake_receive(&fake, str_skip(whole, cut));
        assert_int_equal(echo.begun, 1);
        assert_int_equal(echo.closed, 1);
        assert_int_equal(echo.how, EXCHANGE_COMPLETE);
        fake_shut(&fake);
    }
}

static void no_prefix_of_a_request_completes(void **state) {
    struct raw *raw = *state;
    put_frame(&raw->out, 6, NGHTTP2_HEADERS, NGHTTP2_FLAG_END_HEADERS, 1, STR(HEAD_BLOCK));
    size_t head = raw->out.len;
    put_frame(&raw->out, 5, NGHTTP2_DATA, NGHTTP2_FLAG_END_STREAM, 1, STR("hello"));
    for (size_t len = 0; len < raw->out.len; len++) {
        struct fake fake;
        struct echo echo = {0};
        fake_open(&fake, echo_start, &echo);
        fake_receive(&fake, str_head(buf_str(&raw->out), len));
        assert_int_equal(echo.begun, len >= head);
        fake_peer_ends(&fake);
        assert_int_equal(echo.closed, len >= head);
        if (len >= head) assert_int_equal(echo.how, EXCHANGE_PEER_LEFT);
        fake_shut(&fake);
    }
}

#define SCENE(name) cmocka_unit_test_setup_teardown(name, open_scene, shut_scene)
#define RAW(name) cmocka_unit_test_setup_teardown(name, open_raw, shut_raw)

int main(void) {
    const struct CMUnitTest tests[] = {
        SCENE(the_parts_of_a_request_can_be_read),
        SCENE(a_call_is_answered_and_completes),
        SCENE(head_and_end_without_bytes_are_one_header_section),
        SCENE(trailers_follow_the_bytes),
        SCENE(trailers_may_follow_nothing),
        SCENE(many_messages_leave_in_few_frames_and_one_write),
        SCENE(what_is_sent_now_leaves_with_what_others_have),
        SCENE(streams_take_turns),
        SCENE(a_head_request_gets_no_body),
        SCENE(a_hundred_is_sent_when_the_body_is_wanted),
        SCENE(fields_that_only_http_1_knows_are_left_out),
        SCENE(a_peer_that_resets_has_left),
        SCENE(a_peer_that_closes_has_left_all_its_streams),
        SCENE(each_abort_has_its_code),
        SCENE(an_abort_in_the_middle_of_a_stalled_frame_is_clean),
        SCENE(a_body_that_is_not_consumed_stops_at_the_window),
        SCENE(streams_that_wait_hold_up_no_other),
        SCENE(a_connection_that_takes_nothing_makes_its_streams_wait_and_loses_none),
        SCENE(streams_that_are_not_read_leave_room_for_one_that_is),
        SCENE(scarce_memory_holds_streams_up_until_it_is_there_again),
        SCENE(what_waits_on_a_connection_is_bounded_and_goes_on_when_taken),
        SCENE(bytes_kept_by_a_closed_exchange_go_back_to_the_connection),
        RAW(padding_is_given_back_with_the_bytes),
        SCENE(a_closed_window_holds_the_bytes_and_wakes_the_owner_later),
        SCENE(trailers_do_not_wait_for_the_window),
        SCENE(a_stream_that_is_opened_byte_by_byte_is_reset),
        SCENE(a_stream_that_takes_a_kilobyte_a_second_goes_on),
        SCENE(a_peer_that_reads_nothing_for_thirty_seconds_is_cut),
        SCENE(strangers_get_a_hundred_streams_and_known_callers_a_thousand),
        RAW(streams_beyond_the_limit_are_refused_and_nothing_runs),
        SCENE(too_many_fields_are_answered_with_431),
        SCENE(too_large_fields_are_answered_with_431),
        SCENE(odd_targets_and_authorities_are_refused),
        RAW(fields_of_a_connection_are_refused),
        SCENE(te_is_trailers_or_nothing),
        RAW(rapid_resets_end_in_goaway),
        RAW(resets_that_the_peer_provokes_end_in_goaway),
        RAW(malformed_requests_in_masses_end_in_goaway),
        RAW(the_ninth_continuation_closes),
        RAW(broken_compression_closes),
        RAW(a_header_bomb_closes),
        RAW(floods_of_frames_that_ask_for_nothing_close),
        RAW(a_flood_of_pings_closes),
        RAW(a_flood_of_priorities_closes),
        RAW(a_flood_of_empty_data_closes),
        RAW(pings_that_cannot_be_acknowledged_close),
        RAW(settings_with_too_many_entries_close),
        RAW(a_window_that_overflows_closes),
        RAW(unknown_frames_are_ignored),
        RAW(a_stream_that_the_peer_reset_is_closed_to_it),
        RAW(a_number_that_was_passed_over_cannot_be_used),
        RAW(data_on_a_stream_that_we_reset_is_only_late),
        RAW(a_priority_of_nothing_or_of_itself_closes),
        SCENE(three_quick_pings_are_too_many),
        SCENE(patient_pings_are_answered_for_ever),
        SCENE(without_that_rule_pings_come_as_they_like),
        SCENE(pings_between_answers_are_fine),
        RAW(text_after_a_preface_closes),
        RAW(a_slow_preface_is_closed_after_ten_seconds),
        RAW(a_header_section_must_end_within_ten_seconds),
        SCENE(a_silent_peer_is_asked_and_then_cut),
        SCENE(an_idle_connection_is_closed_after_five_minutes),
        SCENE(stopping_says_goaway_twice_and_lets_the_stream_end),
        SCENE(stopping_does_not_wait_for_a_peer_that_answers_no_ping),
        RAW(a_request_reads_the_same_however_it_is_cut),
        RAW(no_prefix_of_a_request_completes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
