/* dialect_replay: what holds for the replies of every dialect, whatever comes.
 *
 * The first byte says how the rest, a stream, is cut into pieces; cutting must change nothing.
 * Nothing is told after the reply was stopped, and usage once at most. What was told can be
 * asked again: as a conversation it becomes a body that is JSON, and an opaque message stands
 * in it byte for byte.
 */
#ifndef WEIR_FUZZ_DIALECT_REPLAY_H
#define WEIR_FUZZ_DIALECT_REPLAY_H

#include "provider/dialect.h"

#include "base/arena.h"

#include <assert.h>

#define REPLAY_CALLS_MAX 64

struct replay {
    const struct dialect *dialect;
    struct reply *reply;
    struct arena *arena;
    struct buf told; /* all that the sink heard, to compare */
    struct buf text; /* of the answer */
    struct str opaque;
    struct message calls[REPLAY_CALLS_MAX];
    size_t call_count, usages, callbacks, stop_at;
    bool over;
};

static void replay_write(struct replay *replay, char what, struct str text) {
    buf_append_byte(&replay->told, what);
    buf_append_u64(&replay->told, text.len);
    buf_append_byte(&replay->told, ':');
    buf_append(&replay->told, text);
}

/* Once in each callback. */
static void replay_hear(struct replay *replay, char what, struct str text) {
    assert(!replay->reply->stopped);
    replay_write(replay, what, text);
    if (++replay->callbacks == replay->stop_at) replay->reply->stopped = true;
}

static struct str replay_keep(struct replay *replay, struct str text) {
    struct str kept = STR_EMPTY;
    bool fits = arena_str(replay->arena, text, &kept);
    assert(fits);
    return kept;
}

static void replay_text(struct str text, void *ctx) {
    struct replay *replay = ctx;
    assert(text.len > 0);
    replay_hear(replay, 't', text);
    buf_append(&replay->text, text);
}

static void replay_thinking(struct str text, void *ctx) {
    assert(text.len > 0);
    replay_hear(ctx, 'h', text);
}

static void replay_call(struct str call_id, struct str tool, struct str args, void *ctx) {
    struct replay *replay = ctx;
    replay_hear(replay, 'c', call_id);
    replay_write(replay, 'n', tool);
    replay_write(replay, 'a', args);
    if (replay->call_count < REPLAY_CALLS_MAX)
        replay->calls[replay->call_count] =
            (struct message){.role = MESSAGE_TOOL_CALL,
                             .agent = STR("a"),
                             .call_id = replay_keep(replay, call_id),
                             .tool = replay_keep(replay, tool),
                             .text = replay_keep(replay, args)};
    replay->call_count++;
}

static void replay_usage(const struct event_usage *usage, void *ctx) {
    struct replay *replay = ctx;
    const int64_t tokens[] = {usage->prompt,   usage->completion, usage->total,
                              usage->tool_use, usage->thoughts,   usage->cached};
    assert(replay->usages++ == 0);
    for (size_t i = 0; i < ARRAY_LEN(tokens); i++) assert(tokens[i] >= TOKENS_UNKNOWN);
    buf_append_i64(&replay->told, usage->prompt);
    replay_hear(replay, 'u', usage->model);
}

static void replay_opaque(struct str dialect, struct str bytes, void *ctx) {
    struct replay *replay = ctx;
    struct err e;
    struct json json;
    assert(str_equal(dialect, str_from(replay->dialect->name)) && replay->opaque.len == 0);
    bool reads = json_read(bytes, &json, &e);
    assert(reads && json_count(json) > 0);
    replay_hear(replay, 'o', bytes);
    replay->opaque = replay_keep(replay, bytes);
}

static void replay_event(const struct reply_event *event, void *ctx) {
    switch (event->kind) {
    case REPLY_TEXT: replay_text(event->text, ctx); break;
    case REPLY_THINKING: replay_thinking(event->text, ctx); break;
    case REPLY_TOOL_CALL: replay_call(event->call_id, event->tool, event->args, ctx); break;
    case REPLY_USAGE: replay_usage(event->usage, ctx); break;
    case REPLY_OPAQUE: replay_opaque(event->dialect, event->text, ctx); break;
    default: assert(false);
    }
}

static void replay_feed(const struct sse_event *event, void *ctx) {
    struct replay *replay = ctx;
    if (replay->over || replay->reply->stopped) return;
    if (!replay->dialect->feed(replay->reply, event)) replay->over = true;
}

/* A failure says why. */
static void replay_outcome(struct replay *replay, enum reply_outcome outcome,
                           struct str model) {
    const struct reply_failure *failure = &replay->reply->failure;
    if (outcome == OUTCOME_FAILED) {
        assert(failure->reason && failure->why.code != ERR_NONE && failure->why.text[0]);
        buf_append(&replay->told, str_from(failure->reason));
    } else {
        buf_append(&replay->told, model);
    }
}

static void replay_stream(struct replay *replay, const struct dialect *dialect,
                          struct str stream, size_t piece, size_t stop_at) {
    struct err e;
    struct str model = STR_EMPTY;
    enum reply_outcome outcome = OUTCOME_FAILED;
    *replay = (struct replay){.dialect = dialect,
                              .opaque = STR_EMPTY,
                              .stop_at = stop_at,
                              .arena = arena_new(64 * MIB)};
    buf_init(&replay->told, 64 * MIB);
    buf_init(&replay->text, 64 * MIB);
    replay->reply = dialect->reply_new(replay_event, replay);
    struct sse *sse = sse_new(MIB, replay_feed, replay);
    bool fine = true;
    for (; stream.len && fine; stream = str_skip(stream, piece))
        fine = sse_feed(sse, str_head(stream, piece), &e);
    if (!replay->over) outcome = dialect->end(replay->reply, &model);
    if (!replay->reply->stopped) replay_outcome(replay, outcome, model);
    dialect->reply_free(replay->reply);
    sse_free(sse);
}

static void replay_done(struct replay *replay) {
    buf_done(&replay->told);
    buf_done(&replay->text);
    arena_free(replay->arena);
}

/* The reply as history, each call with a result, and asked about once more. */
static void replay_ask_again(const struct replay *replay) {
    size_t count = 0, calls = replay->call_count;
    struct message messages[2 * REPLAY_CALLS_MAX + 3];
    if (calls > REPLAY_CALLS_MAX) return;
    messages[count++] = (struct message){.role = MESSAGE_USER, .text = STR("go")};
    messages[count++] = (struct message){.role = MESSAGE_OPAQUE,
                                         .agent = STR("a"),
                                         .tool = str_from(replay->dialect->name),
                                         .text = replay->opaque};
    messages[count++] = (struct message){
        .role = MESSAGE_AGENT, .agent = STR("a"), .text = buf_str(&replay->text)};
    for (size_t i = 0; i < calls; i++) messages[count++] = replay->calls[i];
    for (size_t i = 0; i < calls; i++)
        messages[count++] = (struct message){.role = MESSAGE_TOOL_RESULT,
                                             .call_id = replay->calls[i].call_id,
                                             .text = replay->calls[i].text,
                                             .error = i % 2};

    const struct dialect_settings settings = {.base_url = STR("https://h"), .model = STR("m")};
    const struct provider_request request = {
        .agent = STR("a"), .model = STR("m"), .messages = messages, .message_count = count};
    struct buf body;
    struct err e;
    struct json json;
    buf_init(&body, 64 * MIB);
    if (replay->dialect->body(&settings, &request, &body, &e)) {
        bool reads = json_read(buf_str(&body), &json, &e);
        assert(reads || str_find(err_text(&e), STR("levels")) < err_text(&e).len);
        struct str inner = str_head(str_skip(replay->opaque, 1), replay->opaque.len - 2);
        if (replay->opaque.len) assert(str_find(buf_str(&body), inner) < body.len);
    }
    buf_done(&body);
}

static void dialect_replay(const struct dialect *dialect, const uint8_t *data, size_t size) {
    if (size < 2) return;
    struct str stream = str_of(data + 1, size - 1);
    struct replay whole, cut, stopped;
    replay_stream(&whole, dialect, stream, stream.len, 0);
    replay_stream(&cut, dialect, stream, (size_t)data[0] % 16 + 1, 0);
    replay_stream(&stopped, dialect, stream, stream.len, (size_t)data[0] / 16 * 3 + 3);
    assert(str_equal(buf_str(&whole.told), buf_str(&cut.told)));
    replay_ask_again(&whole);
    replay_done(&whole);
    replay_done(&cut);
    replay_done(&stopped);
}

#endif
