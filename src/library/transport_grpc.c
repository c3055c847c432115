/* transport_grpc: a stream's call over gRPC. */
#include "library/inner.h"

#include "wire/grpc.h"

/* --- the answer --------------------------------------------------------------------------- */

/* They may overtake messages of a paused call, so they are only kept here. */
static void on_metadata(struct str name, struct str value, void *ctx) {
    struct weir_stream *stream = ctx;
    if (!str_equal(name, STR("grpc-status-details-bin"))) return;
    buf_clear(&stream->refusal);
    buf_append(&stream->refusal, value);
}

static void transport_grpc_on_message(struct lent message, void *ctx) {
    reading_take_message(ctx, lent_read(message));
}

static void transport_grpc_on_end(const struct grpc_call_end *from, void *ctx) {
    struct weir_stream *stream = ctx;
    const struct reader_end end = {
        .code = from->code, .from_server = from->from_server, .never_seen = from->never_seen};
    stream->grpc = NULL;
    if (stream->refusal.len) reader_status_details(&stream->reader, buf_str(&stream->refusal));
    if (from->said.len) reader_status_message(&stream->reader, from->said);
    reading_end(stream, &end, from->text);
}

static const struct grpc_call_sink sink = {.on_metadata = on_metadata,
                                           .on_message = transport_grpc_on_message,
                                           .on_end = transport_grpc_on_end};

/* --- the call ----------------------------------------------------------------------------- */

/* Send the next request; after the last one, that there is no other. */
static bool send_next(struct weir_stream *stream, struct err *e) {
    struct grpc_reader reader;
    struct grpc_message message;
    struct err none;
    struct str rest = str_skip(buf_str(&stream->messages), stream->sent);
    struct str at = rest;
    grpc_reader_init(&reader, STREAM_REQUEST_MAX_BYTES);
    enum grpc_step step = grpc_next(&reader, &at, &message, &none);
    bool sent = step != GRPC_MESSAGE || grpc_call_send(stream->grpc, message.bytes, e);
    stream->sent += rest.len - at.len;
    if (sent && at.len == 0) grpc_call_finish(stream->grpc);
    grpc_reader_done(&reader);
    return sent;
}

static bool transport_grpc_start(struct weir_stream *stream, struct err *e) {
    struct weir_client *client = stream->client;
    struct grpc_metadata metadata[GRPC_CALL_METADATA_MAX];
    for (size_t i = 0; i < stream->header_count; i++)
        metadata[i] = (struct grpc_metadata){stream->headers[i].name, stream->headers[i].value};
    const struct grpc_call_request request = {.host = text_str(client->host),
                                              .port = client->port,
                                              .secure = client->secure,
                                              .path = text_str(stream->path),
                                              .metadata = metadata,
                                              .metadata_count = stream->header_count,
                                              .deadline_ms = stream->deadline_ms,
                                              .message_max_bytes = stream->message_bytes};
    if (!grpc_call_start(client->pool, client->loop, &request, &sink, stream, &stream->grpc, e))
        return false;
    if (send_next(stream, e)) return true;
    grpc_call_cancel(stream->grpc);
    stream->grpc = NULL;
    return false;
}

static void transport_grpc_pause_call(struct weir_stream *stream) {
    grpc_call_pause(stream->grpc);
}

static void transport_grpc_resume(struct weir_stream *stream) {
    if (stream->grpc) grpc_call_resume(stream->grpc);
}

static void transport_grpc_cancel(struct weir_stream *stream) {
    struct grpc_call *call = stream->grpc;
    stream->grpc = NULL;
    if (call) grpc_call_cancel(call);
}

/* A turn is over, and there are others. */
static void turn_over(struct weir_stream *stream) {
    struct err none;
    if (stream->sent < stream->messages.len) (void)send_next(stream, &none);
}

const struct stream_transport transport_grpc = {.start = transport_grpc_start,
                                                .pause = transport_grpc_pause_call,
                                                .resume = transport_grpc_resume,
                                                .cancel = transport_grpc_cancel,
                                                .turn_over = turn_over};
