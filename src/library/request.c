/* request: what is sent, made of a stream's options before anything is dialled. */
#include "library/inner.h"

#include "base/mem.h"
#include "wire/grpc.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

#define PATH_MAX_BYTES (4 * KIB)

/* --- the method --------------------------------------------------------------------------- */

static const enum close_mode modes[] = {
    [WEIR_MODE_KNOWN] = CLOSE_SINGLE,
    [WEIR_MODE_DONE] = CLOSE_DONE,
    [WEIR_MODE_TERMINAL] = CLOSE_TERMINAL,
    [WEIR_MODE_EOF] = CLOSE_EOF,
    [WEIR_MODE_SUBSCRIPTION] = CLOSE_SUBSCRIPTION,
};

/* A gRPC path that has no row: its frames are bytes, and only a subscription can be read without
 * knowing them. */
static bool take_unknown(struct weir_stream *stream, struct str name, int mode, struct err *e) {
    struct str rest = str_skip(name, 1);
    bool path = str_starts(name, STR("/")) && str_find_byte(rest, '/') > 0 &&
                str_find_byte(rest, '/') + 1 < rest.len && str_is_plain(rest, "/._");
    if (!path)
        return err_set(
            e, ERR_INVALID_ARGUMENT,
            "unknown stream '" STR_FMT "'; give a gRPC path, "
            "\"/package.Service/Method\", the name of a known method, \"/stream\" or "
            "\"runs/ID/events\"",
            STR_ARG(str_head(name, 100)));
    if (mode != WEIR_MODE_SUBSCRIPTION)
        return err_set(e, ERR_INVALID_ARGUMENT,
                       "the messages of " STR_FMT " are not known here, so only mode D "
                       "(subscription) can be read: which frame completes another stream could "
                       "not be told",
                       STR_ARG(str_head(name, 200)));
    stream->own = (struct reader_method){
        .path = text_str(stream->path), .mode = CLOSE_SUBSCRIPTION, .kind = READER_PLAIN};
    stream->method = &stream->own;
    return true;
}

/* The path as it is sent: the name, where that is one; else that of the row. */
static void write_path(struct weir_stream *stream, const struct reader_method *method,
                       struct str name) {
    bool run = method && method->kind == READER_RUN;
    struct buf path;
    buf_init(&path, PATH_MAX_BYTES + KIB);
    if (run && !str_starts(name, STR("/"))) buf_append(&path, STR("/weir/v1/"));
    bool whole = !method || run || str_starts(name, STR("/"));
    buf_append(&path, whole ? name : method->path);
    stream->path = text_copy(buf_str(&path));
    buf_done(&path);
}

static bool take_method(struct weir_stream *stream, const struct weir_stream_options *options,
                        struct err *e) {
    struct str name = str_from(options->method);
    if (name.len == 0 || name.len > PATH_MAX_BYTES)
        return err_set(e, ERR_INVALID_ARGUMENT, "no method, or one that is too long");
    if (options->mode < 0 || options->mode > WEIR_MODE_SUBSCRIPTION)
        return err_set(e, ERR_INVALID_ARGUMENT, "there is no mode %d", options->mode);
    const struct reader_method *method = reader_method_find(name);
    write_path(stream, method, name);
    stream->method = method;
    if (!method) return take_unknown(stream, name, options->mode, e);
    bool same = options->mode == WEIR_MODE_KNOWN || modes[options->mode] == method->mode;
    return same || err_set(e, ERR_INVALID_ARGUMENT,
                           STR_FMT " closes by mode " STR_FMT "; leave the mode out",
                           STR_ARG(method->path), STR_ARG(close_mode_name(method->mode)));
}

/* --- messages ----------------------------------------------------------------------------- */

static bool add_message(struct weir_stream *stream, struct str message, struct err *e) {
    stream->message_count++;
    return grpc_append_message(&stream->messages, message) ||
           err_set(e, ERR_TOO_LARGE, "the request is longer than %zu bytes",
                   STREAM_REQUEST_MAX_BYTES);
}

static bool add_json(struct weir_stream *stream, struct json from, struct err *e) {
    const struct pb_message *type = stream->method->request;
    struct buf message;
    struct arena *arena = arena_new(STREAM_ARENA_MAX_BYTES);
    buf_init(&message, STREAM_REQUEST_MAX_BYTES);
    void *request = arena_alloc(arena, type->size + 1u);
    bool good = (request || err_set(e, ERR_TOO_LARGE, "the request is too large")) &&
                protojson_read(stream->client->json, type, from, arena, request, e) &&
                (pb_encode(type, request, &message) ||
                 err_set(e, ERR_TOO_LARGE, "the request is too large")) &&
                add_message(stream, buf_str(&message), e);
    buf_done(&message);
    arena_free(arena);
    return good;
}

/* One object; for Converse also an array of them. */
static bool add_all_json(struct weir_stream *stream, const char *text, struct err *e) {
    struct json from, item;
    if (!stream->method->request)
        return err_set(e, ERR_INVALID_ARGUMENT,
                       "the messages of " STR_FMT " are not known here: give the request as "
                       "bytes, not as JSON",
                       STR_ARG(text_str(stream->path)));
    if (!json_read(str_from(text), &from, e)) return err_add(e, "the request");
    bool turns = stream->method->kind == READER_CONVERSE && from.kind == JSON_ARRAY;
    if (!turns) return add_json(stream, from, e) || err_add(e, "the request");
    struct json_reader reader = json_enter(from);
    for (size_t i = 0; json_next_item(&reader, &item); i++) {
        if (!add_json(stream, item, e)) return err_add(e, "turn %zu of the request", i + 1);
    }
    return stream->message_count > 0 ||
           err_set(e, ERR_INVALID_ARGUMENT, "the request has no turn");
}

/* The body of /stream is JSON as it is; a run's events need none. */
static bool take_body(struct weir_stream *stream, const struct weir_stream_options *options,
                      struct err *e) {
    struct json body;
    if (stream->method->kind == READER_RUN) {
        return (!options->json && !options->request) ||
               err_set(e, ERR_INVALID_ARGUMENT, "a run's events take no request");
    }
    struct str text = options->json ? str_from(options->json)
                                    : str_of(options->request, options->request_len);
    if (!json_read(text, &body, e)) return err_add(e, "the request");
    return buf_append(&stream->messages, text) ||
           err_set(e, ERR_TOO_LARGE, "the request is longer than %zu bytes",
                   STREAM_REQUEST_MAX_BYTES);
}

static bool library_request_take_request(struct weir_stream *stream,
                                         const struct weir_stream_options *options,
                                         struct err *e) {
    if (options->json && options->request)
        return err_set(e, ERR_INVALID_ARGUMENT,
                       "give the request as JSON or as bytes, not both");
    if (reader_kind_is_http(stream->method->kind)) return take_body(stream, options, e);
    if (options->json) return add_all_json(stream, options->json, e);
    return add_message(stream, str_of(options->request, options->request_len), e);
}

/* --- headers ------------------------------------------------------------------------------ */

static bool request_add_header(struct weir_stream *stream, struct str name, struct str value,
                               struct err *e) {
    struct buf *text = &stream->header_text;
    if (stream->header_count == ARRAY_LEN(stream->headers))
        return err_set(e, ERR_INVALID_ARGUMENT, "more than %zu headers",
                       ARRAY_LEN(stream->headers));
    size_t begin = text->len;
    buf_append(text, name);
    buf_append(text, value);
    if (!buf_ok(text))
        return err_set(e, ERR_TOO_LARGE, "the headers are longer than %zu bytes",
                       STREAM_HEADERS_MAX_BYTES);
    struct str both = str_skip(buf_str(text), begin);
    stream->headers[stream->header_count++] =
        (struct http_header){str_head(both, name.len), str_skip(both, name.len)};
    return true;
}

/* A random UUID: this call is not a repetition of another one. */
static void request_write_key(char ret[40]) {
    unsigned char b[16] = {0};
    if (getrandom(b, sizeof(b), 0) != sizeof(b)) abort();
    snprintf(ret, 40, "%02x%02x%02x%02x-%02x%02x-4%01x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
             b[0], b[1], b[2], b[3], b[4], b[5], b[6] & 15, b[7], (b[8] & 0x3f) | 0x80, b[9],
             b[10], b[11], b[12], b[13], b[14], b[15]);
}

/* What every call of nimi.runtime.v1 must carry (contracts/nimi.md 5). */
static bool add_envelope(struct weir_stream *stream, struct err *e) {
    char key[40];
    struct str app = text_str(stream->client->app_id);
    request_write_key(key);
    const struct http_header envelope[] = {
        {STR("x-nimi-protocol-version"), STR("1.0.0")},
        {STR("x-nimi-participant-protocol-version"), STR("1.0.0")},
        {STR("x-nimi-participant-id"), app},
        {STR("x-nimi-domain"), STR("runtime.rpc")},
        {STR("x-nimi-caller-kind"), STR("third-party-app")},
        {STR("x-nimi-caller-id"), app},
        {STR("x-nimi-app-id"), app},
        {STR("x-nimi-idempotency-key"), str_from(key)},
    };
    for (size_t i = 0; i < ARRAY_LEN(envelope); i++) {
        if (!request_add_header(stream, envelope[i].name, envelope[i].value, e)) return false;
    }
    return true;
}

static bool add_usual_headers(struct weir_stream *stream, struct err *e) {
    struct str authorization = text_str(stream->client->authorization);
    if (authorization.len &&
        !request_add_header(stream, STR("authorization"), authorization, e))
        return false;
    if (reader_kind_is_http(stream->method->kind)) {
        if (!request_add_header(stream, STR("accept"), STR("text/event-stream"), e))
            return false;
        return stream->method->kind != READER_TURN ||
               (request_add_header(stream, STR("content-type"), STR("application/json"), e) &&
                request_add_header(stream, STR("x-runtime-contract-version"), STR("1"), e));
    }
    bool nimi = str_starts(text_str(stream->path), STR("/nimi."));
    return !nimi || add_envelope(stream, e);
}

static bool request_is_name(struct str name) {
    for (size_t i = 0; i < name.len; i++) {
        if (name.at[i] >= 'A' && name.at[i] <= 'Z') return false;
    }
    return name.len > 0 && str_is_plain(name, "-_.") && !str_starts(name, STR("grpc-"));
}

static bool add_headers(struct weir_stream *stream, const char *const *headers, struct err *e) {
    for (size_t i = 0; headers && headers[i]; i += 2) {
        struct str name = str_from(headers[i]), value = str_from(headers[i + 1]);
        if (!headers[i + 1])
            return err_set(e, ERR_INVALID_ARGUMENT, "the header '%.100s' has no value",
                           headers[i]);
        if (!request_is_name(name) || !str_is_printable(value))
            return err_set(
                e, ERR_INVALID_ARGUMENT,
                "the header '%.100s' is not one: a name in lower case, and a value of "
                "printable ASCII",
                headers[i]);
        if (!request_add_header(stream, name, value, e)) return false;
    }
    return true;
}

bool reading_take_options(struct weir_stream *stream, const struct weir_stream_options *options,
                          struct err *e) {
    buf_init(&stream->messages, STREAM_REQUEST_MAX_BYTES);
    buf_init(&stream->header_text, STREAM_HEADERS_MAX_BYTES);
    (void)buf_room(&stream->header_text, STREAM_HEADERS_MAX_BYTES); /* so that it stays */
    stream->deadline_ms = options->deadline_ms;
    stream->resumed = options->resumed;
    stream->queue_bytes = options->queue_bytes ? options->queue_bytes : STREAM_QUEUE_BYTES;
    stream->message_bytes =
        options->message_bytes ? options->message_bytes : GRPC_MESSAGE_MAX_BYTES;
    return take_method(stream, options, e) &&
           library_request_take_request(stream, options, e) && add_usual_headers(stream, e) &&
           add_headers(stream, options->headers, e);
}
