/* dialect_noise: any bytes as a dialect's stream, for the fuzz targets of the dialects.
 *
 * However the bytes are cut, the same is heard; a failure says why; and what is heard can be
 * sent back: the reply becomes messages, its opaque message among them, and the next request
 * with those is one JSON text.
 */
#ifndef WEIR_TEST_HELPER_DIALECT_NOISE_H
#define WEIR_TEST_HELPER_DIALECT_NOISE_H

#include "provider/dialect.h"

#include <assert.h>
#include <stdlib.h>

#define NOISE_MAX_BYTES (4 * MIB)
#define NOISE_CALLS_MAX 1100

struct noise {
    const struct dialect *dialect;
    struct reply *reply;
    struct buf record, text, opaque;
    struct buf calls[NOISE_CALLS_MAX][3]; /* id, tool, arguments */
    size_t call_count;
    bool over, usage;
};

static inline void noise_note(struct noise *noise, char kind, struct str text) {
    buf_append_byte(&noise->record, kind);
    buf_append_u64(&noise->record, text.len);
    buf_append_byte(&noise->record, ':');
    buf_append(&noise->record, text);
}

static inline void noise_text(struct str text, void *ctx) {
    struct noise *noise = ctx;
    assert(text.len > 0 && !noise->usage);
    noise_note(noise, 't', text);
    buf_append(&noise->text, text);
}

static inline void noise_thinking(struct str text, void *ctx) {
    assert(text.len > 0);
    noise_note(ctx, 'h', text);
}

static inline void noise_call(struct str call_id, struct str tool, struct str args, void *ctx) {
    struct noise *noise = ctx;
    const struct str parts[] = {call_id, tool, args};
    assert(noise->call_count < NOISE_CALLS_MAX);
    struct buf *call = noise->calls[noise->call_count++];
    for (size_t i = 0; i < ARRAY_LEN(parts); i++) {
        noise_note(noise, 'c', parts[i]);
        buf_init(&call[i], NOISE_MAX_BYTES);
        buf_append(&call[i], parts[i]);
    }
    if (call_id.len == 0) buf_printf(&call[0], "ours-%zu", noise->call_count); /* as a run */
}

static inline void noise_usage(const struct event_usage *usage, void *ctx) {
    struct noise *noise = ctx;
    assert(!noise->usage);
    noise->usage = true;
    assert(usage->prompt >= TOKENS_UNKNOWN && usage->total >= TOKENS_UNKNOWN);
    noise_note(noise, 'u', usage->model);
    buf_append_i64(&noise->record, usage->prompt);
    buf_append_i64(&noise->record, usage->completion);
    buf_append_i64(&noise->record, usage->total);
}

static inline void noise_opaque(struct str dialect, struct str bytes, void *ctx) {
    struct noise *noise = ctx;
    assert(str_equal(dialect, str_from(noise->dialect->name)));
    assert(noise->opaque.len == 0 && bytes.len > 0);
    noise_note(noise, 'o', bytes);
    buf_append(&noise->opaque, bytes);
}

static inline void noise_event(const struct reply_event *event, void *ctx) {
    switch (event->kind) {
    case REPLY_TEXT: noise_text(event->text, ctx); break;
    case REPLY_THINKING: noise_thinking(event->text, ctx); break;
    case REPLY_TOOL_CALL: noise_call(event->call_id, event->tool, event->args, ctx); break;
    case REPLY_USAGE: noise_usage(event->usage, ctx); break;
    case REPLY_OPAQUE: noise_opaque(event->dialect, event->text, ctx); break;
    default: assert(false);
    }
}

static inline void noise_feed(const struct sse_event *event, void *ctx) {
    struct noise *noise = ctx;
    if (!noise->over) noise->over = !noise->dialect->feed(noise->reply, event);
}

/* Read `bytes` in pieces; whether the reply was a whole one. */
static inline bool noise_read(struct noise *noise, struct str bytes, size_t piece) {
    struct err e;
    struct str model = STR_EMPTY;
    enum reply_outcome outcome = OUTCOME_FAILED;
    struct sse *sse = sse_new(NOISE_MAX_BYTES, noise_feed, noise);
    buf_init(&noise->record, NOISE_MAX_BYTES);
    buf_init(&noise->text, NOISE_MAX_BYTES);
    buf_init(&noise->opaque, NOISE_MAX_BYTES);
    noise->reply = noise->dialect->reply_new(noise_event, noise);
    for (; bytes.len; bytes = str_skip(bytes, piece)) {
        if (!sse_feed(sse, str_head(bytes, piece), &e)) abort();
    }
    if (!noise->over) outcome = noise->dialect->end(noise->reply, &model);
    noise_note(noise, (char)('0' + outcome), model);
    if (outcome == OUTCOME_FAILED) {
        assert(noise->reply->failure.reason && noise->reply->failure.why.code != ERR_NONE);
        noise_note(noise, 'f', err_text(&noise->reply->failure.why));
    }
    noise->dialect->reply_free(noise->reply);
    sse_free(sse);
    return outcome != OUTCOME_FAILED;
}

static inline void noise_done(struct noise *noise) {
    buf_done(&noise->record);
    buf_done(&noise->text);
    buf_done(&noise->opaque);
    for (size_t i = 0; i < noise->call_count; i++) {
        for (size_t part = 0; part < 3; part++) buf_done(&noise->calls[i][part]);
    }
}

/* The next request, with the reply and a result for each of its calls. */
static inline void noise_send_back(const struct noise *noise) {
    static struct message messages[2 * NOISE_CALLS_MAX + 3];
    size_t count = 0;
    if (noise->opaque.len)
        messages[count++] = (struct message){.role = MESSAGE_OPAQUE,
                                             .text = buf_str(&noise->opaque),
                                             .tool = str_from(noise->dialect->name)};
    messages[count++] = (struct message){.role = MESSAGE_AGENT, .text = buf_str(&noise->text)};
    for (size_t i = 0; i < noise->call_count; i++) {
        struct str args = buf_str(&noise->calls[i][2]);
        struct json object;
        struct err e;
        bool usable = json_read(args, &object, &e) && object.kind == JSON_OBJECT;
        messages[count++] = (struct message){.role = MESSAGE_TOOL_CALL,
                                             .call_id = buf_str(&noise->calls[i][0]),
                                             .tool = buf_str(&noise->calls[i][1]),
                                             .text = usable ? args : STR("{}")};
    }
    for (size_t i = 0; i < noise->call_count; i++) {
        messages[count++] = (struct message){.role = MESSAGE_TOOL_RESULT,
                                             .call_id = buf_str(&noise->calls[i][0]),
                                             .tool = buf_str(&noise->calls[i][1]),
                                             .text = STR("{}")};
    }
    /* A reply that asked for nothing ended its turn: another one began. */
    if (noise->call_count == 0)
        messages[count++] = (struct message){.role = MESSAGE_USER, .text = STR("and?")};
    struct provider_request request = {
        .model = STR("m"), .messages = messages, .message_count = count};
    struct dialect_settings settings = {.base_url = STR("http://127.0.0.1/v1")};
    struct buf body;
    struct json value;
    struct err e;
    buf_init(&body, 16 * NOISE_MAX_BYTES);
    if (!noise->dialect->body(&settings, &request, &body, &e)) abort();
    if (!json_read(buf_str(&body), &value, &e)) abort();
    assert(value.kind == JSON_OBJECT);
    buf_done(&body);
}

/* The first byte says how the rest is cut into pieces. */
static inline void dialect_noise(const struct dialect *dialect, const uint8_t *data,
                                 size_t size) {
    if (size < 1 || size > 64 * KIB) return;
    struct str input = str_of(data + 1, size - 1);
    struct noise *whole = calloc(1, sizeof *whole), *cut = calloc(1, sizeof *cut);
    if (!whole || !cut) abort();
    whole->dialect = cut->dialect = dialect;
    if (noise_read(whole, input, size)) noise_send_back(whole);
    noise_read(cut, input, (size_t)data[0] % 16 + 1);
    assert(str_equal(buf_str(&whole->record), buf_str(&cut->record)));
    noise_done(whole);
    noise_done(cut);
    free(whole);
    free(cut);
}

#endif
