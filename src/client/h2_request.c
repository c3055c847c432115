#include "client/h2_request.h"

#include "base/buf.h"
#include "base/mem.h"

#include <assert.h>
#include <stdlib.h>

/* Of a long body, this much is copied at once. */
#define BODY_PART_BYTES (64 * KIB)

struct h2_request {
    struct h2_stream *stream; /* NULL: it has ended */
    const struct link_events *events;
    void *ctx;
    unsigned inside; /* events on the stack */
    bool headed;     /* the head has come */
    bool paused, left;
    struct str body;  /* of the request: not handed to the stream yet */
    struct buf lines; /* of the response's head, those from lines_at on not reported yet */
    size_t lines_at;
};

/* --- events ------------------------------------------------------------------------------- */

static void h2_request_free(struct h2_request *request) {
    buf_done(&request->lines);
    free(request);
}

static void h2_request_enter(struct h2_request *request) {
    request->inside++;
}

/* False: the request is over. It is freed by the last one on the stack. */
static bool h2_request_exit(struct h2_request *request) {
    bool left = request->left;
    if (--request->inside == 0 && left) h2_request_free(request);
    return !left;
}

/* The stream that it had, which is to be cancelled, or NULL. */
static struct h2_stream *h2_request_close(struct h2_request *request) {
    struct h2_stream *stream = request->stream;
    request->stream = NULL;
    request->left = true;
    return stream;
}

void h2_request_leave(struct h2_request *request) {
    struct h2_stream *stream = h2_request_close(request);
    if (request->inside == 0) h2_request_free(request);
    if (stream) h2_stream_cancel(stream);
}

static void h2_request_end(struct h2_request *request, const struct err *why, bool lost) {
    const struct link_events *events = request->events;
    void *ctx = request->ctx;
    h2_request_leave(request);
    events->on_end(why, lost, ctx);
}

void h2_request_pause(struct h2_request *request) {
    request->paused = true;
    if (request->stream) h2_stream_pause(request->stream);
}

/* Act on the answer of an event, which is still on the stack. False: no further event comes now. */
static bool h2_request_obey(struct h2_request *request, enum http1_go go) {
    struct err why;
    if (request->left) return false;
    switch (go) {
    case HTTP1_GO: return !request->paused;
    case HTTP1_PAUSE: h2_request_pause(request); return false;
    case HTTP1_STOP: break;
    }
    struct h2_stream *stream = h2_request_close(request);
    if (stream) h2_stream_cancel(stream);
    err_set(&why, ERR_UNAVAILABLE, "the answer is not wanted any more");
    request->events->on_end(&why, false, request->ctx);
    return false;
}

/* --- the response ------------------------------------------------------------------------- */

static void h2_request_on_field(struct str name, struct str value, void *ctx) {
    struct h2_request *request = ctx;
    if (request->headed) return; /* a trailer */
    buf_append(&request->lines, name);
    buf_append(&request->lines, STR(": "));
    buf_append(&request->lines, value);
    buf_append(&request->lines, STR("\r\n"));
}

/* The lines that were not reported yet. False: paused, or over. */
static bool give_lines(struct h2_request *request) {
    while (request->lines_at < request->lines.len) {
        struct str rest = str_skip(buf_str(&request->lines), request->lines_at);
        struct str line = str_head(rest, str_find(rest, STR("\r\n")));
        request->lines_at += line.len + 2;
        if (!h2_request_obey(request, request->events->response.on_line(line, request->ctx)))
            return false;
    }
    buf_release(&request->lines);
    request->lines_at = 0;
    return true;
}

static void h2_request_on_head(unsigned status, void *ctx) {
    struct h2_request *request = ctx;
    struct buf lines;
    buf_init(&lines, 2 * H2_HEAD_MAX_BYTES);
    buf_printf(&lines, "HTTP/2 %03u\r\n", status);
    buf_append(&lines, buf_str(&request->lines));
    buf_append(&lines, STR("\r\n"));
    assert(buf_ok(&lines)); /* the session limits the head */
    buf_done(&request->lines);
    request->lines = lines;
    request->headed = true;
    if (request->paused) return; /* the stream is, too */
    h2_request_enter(request);
    (void)give_lines(request);
    (void)h2_request_exit(request);
}

static size_t h2_request_on_body(struct str bytes, void *ctx) {
    struct h2_request *request = ctx;
    h2_request_enter(request);
    (void)h2_request_obey(request, request->events->response.on_body(bytes, request->ctx));
    (void)h2_request_exit(request);
    return bytes.len;
}

static void h2_request_on_end(const struct h2_end *end, void *ctx) {
    struct h2_request *request = ctx;
    request->stream = NULL;
    if (end->wants_http1) {
        const struct link_events *events = request->events;
        void *of = request->ctx;
        h2_request_leave(request);
        events->on_http1(end->why, of);
        return;
    }
    h2_request_end(request, end->why, end->never_seen || end->unanswered);
}

/* As in link_resume(): what has come is reported before this returns. */
void h2_request_resume(struct h2_request *request) {
    if (!request->paused) return;
    request->paused = false;
    h2_request_enter(request);
    if (give_lines(request) && request->stream) h2_stream_resume(request->stream);
    (void)h2_request_exit(request);
}

/* --- the request -------------------------------------------------------------------------- */

/* The body follows in parts, so that a long one is not copied as a whole. */
static void h2_request_on_drained(void *ctx) {
    struct h2_request *request = ctx;
    struct str part = str_head(request->body, BODY_PART_BYTES);
    if (!part.len) return; /* this was the last part */
    request->body = str_skip(request->body, part.len);
    bool fits = h2_stream_write(request->stream, part);
    assert(fits); /* nothing else waits */
    (void)fits;
    if (!request->body.len) h2_stream_finish(request->stream);
}

static const struct h2_events h2_request_events = {
    .on_field = h2_request_on_field,
    .on_head = h2_request_on_head,
    .on_body = h2_request_on_body,
    .on_drained = h2_request_on_drained,
    .on_end = h2_request_on_end,
};

/* Fields that HTTP/2 says otherwise, or forbids. */
static bool is_of_http1(struct str name) {
    static const struct str names[] = {STR_INIT("connection"),        STR_INIT("keep-alive"),
                                       STR_INIT("proxy-connection"),  STR_INIT("te"),
                                       STR_INIT("transfer-encoding"), STR_INIT("upgrade")};
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (str_equal_nocase(name, names[i])) return true;
    return false;
}

/* The fields of `rest`, their names in lower case in `names`, which has room for them all. */
static void read_fields(struct str rest, struct http_header *fields, struct buf *names,
                        struct h2_head *ret) {
    while (rest.len) {
        struct str value, line = str_head(rest, str_find(rest, STR("\r\n")));
        rest = str_skip(rest, line.len + 2);
        if (!line.len) return;
        struct str name = str_split(line, ':', &value);
        value = str_trim(value);
        if (str_equal_nocase(name, STR("host"))) ret->authority = value;
        if (str_equal_nocase(name, STR("host")) || is_of_http1(name)) continue;
        size_t from = names->len;
        for (size_t i = 0; i < name.len; i++) {
            char c = name.at[i];
            buf_append_byte(names, c >= 'A' && c <= 'Z' ? (char)(c - 'A' + 'a') : c);
        }
        fields[ret->field_count++] =
            (struct http_header){str_skip(buf_str(names), from), value};
    }
}

struct h2_request *h2_request_new(struct h2 *h2, struct str head, struct str body,
                                  const struct link_events *events, void *ctx) {
    struct h2_request *request = MEM_NEW(struct h2_request);
    struct http_header fields[H2_SESSION_FIELDS_MAX];
    struct h2_head as_sent = {.scheme = h2_is_secure(h2) ? STR("https") : STR("http"),
                              .fields = fields};
    struct buf names;
    struct str rest, line = str_head(head, str_find(head, STR("\r\n")));
    request->events = events;
    request->ctx = ctx;
    request->body = body;
    buf_init(&request->lines, 2 * H2_HEAD_MAX_BYTES);
    buf_init(&names, head.len + 1);
    (void)buf_room(&names, head.len); /* so that it does not move */
    as_sent.method = str_split(line, ' ', &rest);
    as_sent.path = str_split(rest, ' ', &rest);
    as_sent.no_body = body.len == 0;
    read_fields(str_skip(head, line.len + 2), fields, &names, &as_sent);
    request->stream = h2_start_on(h2, &as_sent, &h2_request_events, request);
    if (body.len) h2_request_on_drained(request);
    buf_done(&names);
    return request;
}
