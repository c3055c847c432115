#include "client/grpc_call.h"

#include "base/mem.h"
#include "client/grpc_reply.h"
#include "client/h2.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#define OWN_FIELDS_MAX 6
#define HEAD_TEXT_MAX_BYTES (64 * KIB)

struct grpc_call {
    struct place *place;
    struct h2_stream *stream; /* NULL once it is over */
    enum grpc_call_state state;
    struct grpc_call_sink sink;
    void *ctx;
    struct grpc_reply reply;
    struct timer deadline;
    struct task resume;
    bool paused; /* by the caller */
    bool late;   /* `failed` is reported after the pause */
    struct err failed;
    unsigned inside; /* callbacks of the caller on the stack */
};

/* --- states ------------------------------------------------------------------------------- */

const struct state grpc_call_states[GRPC_CALL_STATE_COUNT] = {
    [GRPC_CALL_ASKING] = {"asking", TO(GRPC_CALL_READING) | TO(GRPC_CALL_OVER)},
    [GRPC_CALL_READING] = {"reading", TO(GRPC_CALL_OVER)},
    [GRPC_CALL_OVER] = {"over", 0},
};

/* The only function that writes call->state. */
static void grpc_call_move(struct grpc_call *call, enum grpc_call_state next) {
    assert(states_allow(grpc_call_states, call->state, next));
    call->state = next;
}

/* --- the end ------------------------------------------------------------------------------ */

static void grpc_call_free(struct grpc_call *call) {
    call->place->calls--;
    grpc_reply_done(&call->reply);
    free(call);
}

static void grpc_call_enter(struct grpc_call *call) {
    call->inside++;
}

/* Call after a callback. False: the call is over, and is freed by the last one on the stack. */
static bool grpc_call_leave(struct grpc_call *call) {
    bool over = call->state == GRPC_CALL_OVER;
    if (--call->inside == 0 && over) grpc_call_free(call);
    return !over;
}

/* The stream has ended, or is cancelled here. */
static void grpc_call_close(struct grpc_call *call) {
    struct h2_stream *stream = call->stream;
    grpc_call_move(call, GRPC_CALL_OVER);
    call->stream = NULL;
    timer_stop(&call->deadline);
    task_cancel(&call->resume);
    if (stream) h2_stream_cancel(stream);
}

static void grpc_call_finish_with(struct grpc_call *call, const struct grpc_call_end *end) {
    grpc_call_enter(call);
    grpc_call_close(call);
    call->sink.on_end(end, call->ctx);
    (void)grpc_call_leave(call);
}

/* Give up the call. A paused caller gets the report after the pause. */
static void grpc_call_fail(struct grpc_call *call, const struct err *why) {
    if (call->paused) {
        struct h2_stream *stream = call->stream;
        call->failed = *why;
        call->late = true;
        call->stream = NULL;
        timer_stop(&call->deadline);
        if (stream) h2_stream_cancel(stream);
        return;
    }
    const struct grpc_call_end end = {.code = why->code, .text = err_text(why)};
    grpc_call_finish_with(call, &end);
}

void grpc_call_cancel(struct grpc_call *call) {
    grpc_call_enter(call);
    grpc_call_close(call);
    (void)grpc_call_leave(call);
}

static void on_deadline(void *ctx) {
    struct grpc_call *call = ctx;
    struct err why;
    err_set(&why, ERR_DEADLINE_EXCEEDED, "the server did not answer in time");
    grpc_call_fail(call, &why);
}

/* --- the answer --------------------------------------------------------------------------- */

static void give_metadata(struct grpc_call *call, struct str name, struct str value) {
    struct buf bytes;
    struct err none;
    buf_init(&bytes, H2_HEAD_MAX_BYTES);
    bool binary = str_ends(name, STR("-bin"));
    grpc_call_enter(call);
    if (!binary)
        call->sink.on_metadata(name, value, call->ctx);
    else if (grpc_bin_decode(&bytes, value, &none))
        call->sink.on_metadata(name, buf_str(&bytes), call->ctx);
    (void)grpc_call_leave(call);
    buf_done(&bytes);
}

static void on_field(struct str name, struct str value, void *ctx) {
    struct grpc_call *call = ctx;
    bool metadata = grpc_reply_field(&call->reply, name, value);
    if (metadata && call->sink.on_metadata) give_metadata(call, name, value);
}

static void grpc_call_on_head(unsigned status, void *ctx) {
    struct grpc_call *call = ctx;
    struct err why;
    if (grpc_reply_head(&call->reply, status, &why)) {
        grpc_call_move(call, GRPC_CALL_READING);
    } else {
        grpc_call_fail(call, &why);
    }
}

/* False: the call is over. */
static bool give_message(struct grpc_call *call, struct str bytes) {
    struct text block = {0};
    struct lent lent = lent_begin(bytes, &block);
    grpc_call_enter(call);
    call->sink.on_message(lent, call->ctx);
    lent_end(&block);
    return grpc_call_leave(call);
}

static size_t grpc_call_on_body(struct str bytes, void *ctx) {
    struct grpc_call *call = ctx;
    struct str rest = bytes, message;
    struct err why;
    while (!call->paused) {
        enum grpc_step step = grpc_reply_next(&call->reply, &rest, &message, &why);
        if (step == GRPC_MORE) break;
        if (step == GRPC_BROKEN) {
            grpc_call_fail(call, &why);
            return bytes.len;
        }
        if (!give_message(call, message)) return bytes.len;
    }
    return bytes.len - rest.len;
}

static void grpc_call_on_drained(void *ctx) {
    struct grpc_call *call = ctx;
    if (!call->sink.on_drained) return;
    grpc_call_enter(call);
    call->sink.on_drained(call->ctx);
    (void)grpc_call_leave(call);
}

static void on_stream_end(const struct h2_end *stream_end, void *ctx) {
    struct grpc_call *call = ctx;
    struct grpc_call_end end;
    struct err why;
    call->stream = NULL;
    grpc_reply_end(&call->reply, stream_end, &end, &why);
    grpc_call_finish_with(call, &end);
}

static const struct h2_events events = {on_field, grpc_call_on_head, grpc_call_on_body,
                                        grpc_call_on_drained, on_stream_end};

/* --- the request -------------------------------------------------------------------------- */

/* Whether this is a valid name of metadata that gRPC does not reserve. */
static bool grpc_call_is_name(struct str name) {
    for (size_t i = 0; i < name.len; i++) {
        char c = name.at[i];
        bool good = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' || c == '_' ||
                    c == '.';
        if (!good) return false;
    }
    return name.len > 0 && !str_starts(name, STR("grpc-"));
}

/* Checks the field. The value in *ret is in `text`, which must not be reallocated
 * afterwards. */
static bool add_metadata(const struct grpc_metadata *from, struct buf *text,
                         struct http_header *ret, struct err *e) {
    bool binary = str_ends(from->name, STR("-bin"));
    if (!grpc_call_is_name(from->name))
        return err_set(e, ERR_INVALID_ARGUMENT, "'" STR_FMT "' is not a gRPC metadata name",
                       STR_ARG(str_head(from->name, 100)));
    size_t begin = text->len;
    if (binary)
        grpc_bin_encode(text, from->value);
    else if (str_is_printable(from->value))
        buf_append(text, from->value);
    else
        return err_set(e, ERR_INVALID_ARGUMENT,
                       "the metadata '" STR_FMT "' has a value that is not printable ASCII; a "
                       "name that ends in -bin may have any",
                       STR_ARG(str_head(from->name, 100)));
    *ret = (struct http_header){from->name, str_skip(buf_str(text), begin)};
    return buf_ok(text) || err_set(e, ERR_INVALID_ARGUMENT, "the metadata is too long");
}

struct grpc_head {
    struct http_header fields[OWN_FIELDS_MAX + GRPC_CALL_METADATA_MAX];
    size_t count;
    struct buf text; /* holds what the fields point to; has all its room */
};

static bool write_fields(const struct grpc_call_request *request, struct grpc_head *ret,
                         struct err *e) {
    static const struct http_header usual[] = {
        {STR_INIT("te"), STR_INIT("trailers")},
        {STR_INIT("content-type"), STR_INIT("application/grpc")},
        {STR_INIT("user-agent"), STR_INIT("weir")},
        {STR_INIT("grpc-accept-encoding"), STR_INIT("identity")},
    };
    ret->count = 0;
    for (size_t i = 0; i < ARRAY_LEN(usual); i++) ret->fields[ret->count++] = usual[i];
    if (request->deadline_ms) {
        size_t begin = ret->text.len;
        grpc_timeout_append(&ret->text, request->deadline_ms * 1000000);
        ret->fields[ret->count++] =
            (struct http_header){STR("grpc-timeout"), str_skip(buf_str(&ret->text), begin)};
    }
    assert(request->metadata_count <= GRPC_CALL_METADATA_MAX);
    for (size_t i = 0; i < request->metadata_count; i++) {
        if (!add_metadata(&request->metadata[i], &ret->text, &ret->fields[ret->count++], e))
            return false;
    }
    return true;
}

/* "host:port", an IPv6 address in brackets. */
static void write_authority(const struct grpc_call_request *request, struct buf *out) {
    bool six = str_find_byte(request->host, ':') < request->host.len;
    buf_printf(out, six ? "[" STR_FMT "]:%u" : STR_FMT ":%u", STR_ARG(request->host),
               request->port);
}

static void open_stream(struct grpc_call *call, const struct grpc_call_request *request,
                        const struct grpc_head *fields) {
    struct buf authority;
    buf_init(&authority, KIB);
    write_authority(request, &authority);
    const struct h2_server server = {.host = request->host,
                                     .port = request->port,
                                     .secure = request->secure,
                                     .connect_ms = request->connect_ms,
                                     .keepalive_ms = request->keepalive_ms,
                                     .keepalive_answer_ms = request->keepalive_answer_ms};
    const struct h2_head head = {.method = STR("POST"),
                                 .scheme = request->secure ? STR("https") : STR("http"),
                                 .authority = buf_str(&authority),
                                 .path = request->path,
                                 .fields = fields->fields,
                                 .field_count = fields->count};
    call->stream = h2_start(call->place, &server, &head, &events, call);
    buf_done(&authority);
}

static void on_resume(void *ctx) {
    struct grpc_call *call = ctx;
    if (call->paused) return;
    if (call->late)
        grpc_call_fail(call, &call->failed);
    else if (call->stream)
        h2_stream_resume(call->stream);
}

bool grpc_call_start(struct http_pool *pool, struct loop *loop,
                     const struct grpc_call_request *request, const struct grpc_call_sink *sink,
                     void *ctx, struct grpc_call **ret, struct err *e) {
    struct grpc_head fields;
    buf_init(&fields.text, HEAD_TEXT_MAX_BYTES);
    (void)buf_room(&fields.text, HEAD_TEXT_MAX_BYTES); /* so that it does not move */
    if (!write_fields(request, &fields, e)) {
        buf_done(&fields.text);
        return false;
    }
    struct grpc_call *call = MEM_NEW(struct grpc_call);
    call->place = http_place_of(pool, loop);
    call->place->calls++;
    call->sink = *sink;
    call->ctx = ctx;
    grpc_reply_init(&call->reply, request->message_max_bytes);
    timer_init(&call->deadline, loop, on_deadline, call);
    task_init(&call->resume, on_resume, call);
    if (request->deadline_ms) timer_start(&call->deadline, request->deadline_ms);
    open_stream(call, request, &fields);
    buf_done(&fields.text);
    *ret = call;
    return true;
}

bool grpc_call_send(struct grpc_call *call, struct str message, struct err *e) {
    struct buf framed;
    if (!call->stream) return true; /* it is over; on_end is on the stack */
    buf_init(&framed, GRPC_PREFIX_BYTES + message.len);
    grpc_append_message(&framed, message);
    bool fits = h2_stream_write(call->stream, buf_str(&framed));
    buf_done(&framed);
    return fits || err_set(e, ERR_TOO_LARGE, "more waits to be sent than %zu bytes",
                           H2_UNSENT_MAX_BYTES);
}

void grpc_call_finish(struct grpc_call *call) {
    if (call->stream) h2_stream_finish(call->stream);
}

bool grpc_call_waits(const struct grpc_call *call) {
    return call->stream && h2_stream_waits(call->stream);
}

bool grpc_call_queues(const struct grpc_call *call) {
    return call->stream && h2_stream_queues(call->stream);
}

void grpc_call_hand_over(struct grpc_call *call, const struct grpc_call_sink *sink, void *ctx) {
    call->sink = *sink;
    call->ctx = ctx;
}

void grpc_call_pause(struct grpc_call *call) {
    call->paused = true;
    if (call->stream) h2_stream_pause(call->stream);
}

void grpc_call_resume(struct grpc_call *call) {
    call->paused = false;
    if (call->state != GRPC_CALL_OVER) loop_defer(call->place->loop, &call->resume);
}
