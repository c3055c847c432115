/* transport_http: a stream's call as server-sent events over HTTP. */
#include "library/inner.h"

#include "client/http.h"

/* Our version of the Runtime Contract. */
#define VERSION STR("1")

static void transport_http_on_event(const struct sse_event *event, void *ctx) {
    reading_take_event(ctx, event);
}

static void transport_http_on_head(const struct http_head *head, void *ctx) {
    struct weir_stream *stream = ctx;
    struct str type = str_head(head->content_type, STR("text/event-stream").len);
    bool events = head->status == 200 && str_equal_nocase(type, STR("text/event-stream"));
    if (stream->method->kind == READER_TURN && !str_equal(str_trim(head->version), VERSION))
        reader_note(&stream->reader, FAULT_VERSION);
    if (events)
        stream->sse = sse_new(stream->message_bytes, transport_http_on_event, stream);
    else
        stream->http_status = head->status;
}

/* The stream's own failure: the call is cancelled, and this is its end. */
static void transport_http_give_up(struct weir_stream *stream, const struct err *why) {
    const struct reader_end end = {.code = why->code};
    struct http_call *call = stream->http;
    stream->http = NULL;
    http_cancel(call);
    reading_end(stream, &end, err_text(why));
}

static void transport_http_on_body(struct lent bytes, void *ctx) {
    struct weir_stream *stream = ctx;
    struct err why;
    if (!stream->sse)
        buf_append(&stream->refusal, lent_read(bytes));
    else if (!sse_feed(stream->sse, lent_read(bytes), &why))
        transport_http_give_up(stream, &why);
}

/* The answer is complete, and is not a stream of events. */
static void end_refused(struct weir_stream *stream) {
    struct reader_end end = {.from_server = true};
    if (stream->http_status == 200) {
        end.code = ERR_UNKNOWN;
        reading_end(stream, &end, STR("the answer is not a stream of events"));
        return;
    }
    end.code =
        reader_http_refusal(&stream->reader, stream->http_status, buf_str(&stream->refusal));
    struct buf text;
    buf_init(&text, KIB);
    buf_printf(&text, "the server answers with the HTTP status %u", stream->http_status);
    reading_end(stream, &end, buf_str(&text));
    buf_done(&text);
}

static void transport_http_on_end(const struct err *failed, enum http_stage stage, void *ctx) {
    struct weir_stream *stream = ctx;
    stream->http = NULL;
    if (failed) {
        const struct reader_end end = {.code = failed->code,
                                       .never_seen = stage == HTTP_CONNECTING};
        reading_end(stream, &end, err_text(failed));
    } else if (stream->sse) {
        const struct reader_end end = {.code = ERR_NONE, .from_server = true};
        reading_end(stream, &end, STR_EMPTY);
    } else {
        end_refused(stream);
    }
}

static const struct http_sink sink = {transport_http_on_head, transport_http_on_body,
                                      transport_http_on_end};

static bool transport_http_start(struct weir_stream *stream, struct err *e) {
    struct weir_client *client = stream->client;
    struct buf url;
    bool turn = stream->method->kind == READER_TURN;
    (void)e;
    buf_init(&url, 16 * KIB);
    buf_append(&url, text_str(client->base));
    buf_append(&url, text_str(stream->path));
    stream->http = http_start(client->pool, client->loop,
                              &(struct http_request){.method = turn ? STR("POST") : STR("GET"),
                                                     .url = buf_str(&url),
                                                     .headers = stream->headers,
                                                     .header_count = stream->header_count,
                                                     .body = buf_str(&stream->messages),
                                                     .total_ms = stream->deadline_ms,
                                                     .once = turn},
                              &sink, stream);
    buf_done(&url);
    return true;
}

static void transport_http_pause_call(struct weir_stream *stream) {
    http_pause(stream->http);
}

static void transport_http_resume(struct weir_stream *stream) {
    if (stream->http) http_resume(stream->http);
}

static void transport_http_cancel(struct weir_stream *stream) {
    struct http_call *call = stream->http;
    stream->http = NULL;
    if (call) http_cancel(call);
}

const struct stream_transport transport_http = {.start = transport_http_start,
                                                .pause = transport_http_pause_call,
                                                .resume = transport_http_resume,
                                                .cancel = transport_http_cancel};
