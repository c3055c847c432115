/* dialect_replay: what holds for the replies of every dialect, whatever comes.
 *
 * The first byte says how the rest, a stream, is cut into pieces; cutting must change nothing, nor
 * whether an event may be taken like the one before (json_template.h).
 * Nothing is reported after the reply was stopped, usage once at most, and no text after it. A
 * failure says why. What was reported can be asked again: as a conversation it becomes a body
 * that is JSON.
 */
#ifndef WEIR_FUZZ_DIALECT_REPLAY_H
#define WEIR_FUZZ_DIALECT_REPLAY_H

#include "provider/dialect.h"

#include "base/arena.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#define REPLAY_STREAM_MAX_BYTES (64 * KIB)
#define REPLAY_MAX_BYTES (64 * MIB)
#define REPLAY_CALLS_MAX 1100 /* more than gather.h takes; with more nothing is asked again */

/* What one dialect keeps to. */
struct replay_promise {
    const struct dialect *dialect;
    size_t calls_max;  /* of one reply */
    bool opaque_whole; /* an opaque message stands in the next body, byte for byte */
};

struct replay {
    const struct dialect *dialect;
    struct reply *reply;
    enum reply_outcome outcome;
    struct arena *arena;
    struct buf told; /* all that was reported, to compare */
    struct buf text; /* of the answer */
    struct str opaque;
    struct message calls[REPLAY_CALLS_MAX];
    size_t call_count, usages, events, stop_at;
    bool over;
    bool forgets; /* each event is read */
};

static void replay_write(struct replay *replay, char what, struct str text) {
    buf_append_byte(&replay->told, what);
    buf_append_u64(&replay->told, text.len);
    buf_append_byte(&replay->told, ':');
    buf_append(&replay->told, text);
}

static struct str replay_keep(struct replay *replay, struct str text) {
    struct str kept = STR_EMPTY;
    bool fits = arena_str(replay->arena, text, &kept);
    assert(fits);
    return kept;
}

static bool replay_is_object(struct str text) {
    struct json json;
    struct err e;
    return json_read(text, &json, &e) && json.kind == JSON_OBJECT;
}

/* As a run keeps it, a call without an id gets one. */
static void replay_call(struct replay *replay, const struct reply_event *event) {
    char ours[32];
    int len = snprintf(ours, sizeof(ours), "ours-%zu", replay->call_count);
    struct str id = event->call_id.len ? event->call_id : str_of(ours, (size_t)len);
    if (replay->call_count < REPLAY_CALLS_MAX)
        replay->calls[replay->call_count] =
            (struct message){.role = MESSAGE_TOOL_CALL,
                             .agent = STR("a"),
                             .call_id = replay_keep(replay, id),
                             .tool = replay_keep(replay, event->tool),
                             .text = replay_keep(replay, event->args)};
    replay->call_count++;
}

static void replay_usage(struct replay *replay, const struct event_usage *usage) {
    const int64_t tokens[] = {usage->prompt,   usage->completion, usage->total,
                              usage->tool_use, usage->thoughts,   usage->cached};
    assert(replay->usages++ == 0);
    for (size_t i = 0; i < ARRAY_LEN(tokens); i++) {
        assert(tokens[i] >= TOKENS_UNKNOWN);
        buf_append_i64(&replay->told, tokens[i]);
    }
    replay_write(replay, 'm', usage->model);
}

static void replay_opaque(struct replay *replay, const struct reply_event *event) {
    struct err e;
    struct json json;
    assert(str_equal(event->dialect, str_from(replay->dialect->name)));
    assert(replay->opaque.len == 0);
    bool reads = json_read(event->text, &json, &e);
    assert(reads && json_count(json) > 0);
    replay->opaque = replay_keep(replay, event->text);
}

static void replay_event(const struct reply_event *event, void *ctx) {
    struct replay *replay = ctx;
    bool text = event->kind == REPLY_TEXT || event->kind == REPLY_THINKING;
    assert(!replay->reply->stopped);
    replay_write(replay, (char)('a' + event->kind), event->text);
    replay_write(replay, 'i', event->call_id);
    replay_write(replay, 'n', event->name);
    replay_write(replay, 'a', event->args);
    switch (event->kind) {
    case REPLY_TEXT: buf_append(&replay->text, event->text); break;
    case REPLY_THINKING: break;
    case REPLY_TOOL_CALL: replay_call(replay, event); break;
    case REPLY_USAGE: replay_usage(replay, event->usage); break;
    case REPLY_OPAQUE: replay_opaque(replay, event); break;
    case REPLY_NOTE: assert(event->text.len); break;
    case REPLY_OWN_CALL: assert(replay_is_object(event->args)); break;
    case REPLY_OWN_RESULT: assert(event->call_id.len); break;
    case REPLY_APPROVAL: assert(event->text.len && replay_is_object(event->args)); break;
    default: assert(false); /* the rest is not a dialect's to say */
    }
    assert(!text || (event->text.len > 0 && replay->usages == 0));
    if (++replay->events == replay->stop_at) replay->reply->stopped = true;
}

static void replay_feed(const struct sse_event *event, void *ctx) {
    struct replay *replay = ctx;
    if (replay->over || replay->reply->stopped) return;
    if (replay->forgets) json_template_forget(&replay->reply->like);
    if (!replay->dialect->reader->feed(replay->reply, event)) replay->over = true;
}

static void replay_outcome(struct replay *replay, struct str model) {
    const struct reply_failure *failure = &replay->reply->failure;
    if (replay->outcome == OUTCOME_FAILED) {
        assert(failure->reason && failure->why.code != ERR_NONE && failure->why.text[0]);
        replay_write(replay, 'f', str_from(failure->reason));
        replay_write(replay, 'f', err_text(&failure->why));
    } else {
        replay_write(replay, (char)('0' + replay->outcome), model);
    }
}

static struct replay *replay_stream(const struct dialect *dialect, struct str stream,
                                    size_t piece, size_t stop_at, bool forgets) {
    struct err e;
    struct str model = STR_EMPTY;
    struct replay *replay = calloc(1, sizeof(*replay));
    if (!replay) abort();
    replay->dialect = dialect;
    replay->outcome = OUTCOME_FAILED;
    replay->opaque = STR_EMPTY;
    replay->stop_at = stop_at;
    replay->forgets = forgets;
    replay->arena = arena_new(REPLAY_MAX_BYTES);
    buf_init(&replay->told, REPLAY_MAX_BYTES);
    buf_init(&replay->text, REPLAY_MAX_BYTES);
    replay->reply = dialect->reader->begin(replay_event, replay);
    struct sse *sse = sse_new(REPLAY_MAX_BYTES, replay_feed, replay);
    for (; stream.len; stream = str_skip(stream, piece)) {
        if (!sse_feed(sse, str_head(stream, piece), &e)) abort();
    }
    if (!replay->over) replay->outcome = dialect->reader->end(replay->reply, &model);
    if (!replay->reply->stopped) replay_outcome(replay, model);
    dialect->reader->free(replay->reply);
    sse_free(sse);
    return replay;
}

static void replay_free(struct replay *replay) {
    buf_done(&replay->told);
    buf_done(&replay->text);
    arena_free(replay->arena);
    free(replay);
}

/* The reply as history, each call with a result, and asked about once more. */
static size_t replay_history(const struct replay *replay, struct message *ret) {
    size_t count = 0;
    ret[count++] = (struct message){.role = MESSAGE_USER, .text = STR("go")};
    ret[count++] = (struct message){.role = MESSAGE_OPAQUE,
                                    .agent = STR("a"),
                                    .tool = str_from(replay->dialect->name),
                                    .text = replay->opaque};
    ret[count++] = (struct message){
        .role = MESSAGE_AGENT, .agent = STR("a"), .text = buf_str(&replay->text)};
    for (size_t i = 0; i < replay->call_count; i++) ret[count++] = replay->calls[i];
    for (size_t i = 0; i < replay->call_count; i++)
        ret[count++] = (struct message){.role = MESSAGE_TOOL_RESULT,
                                        .agent = STR("a"),
                                        .call_id = replay->calls[i].call_id,
                                        .tool = replay->calls[i].tool,
                                        .text = replay->calls[i].text,
                                        .error = i % 2};
    /* A reply that asked for nothing ended its turn: another one began. */
    if (replay->call_count == 0)
        ret[count++] = (struct message){.role = MESSAGE_USER, .text = STR("and?")};
    return count;
}

/* Half a reply may be refused. */
static void replay_ask_again(const struct replay *replay, bool opaque_whole, bool must_do) {
    if (replay->call_count > REPLAY_CALLS_MAX) return;
    static struct message messages[2 * REPLAY_CALLS_MAX + 4];
    const struct dialect_settings settings = {.base_url = STR("https://h"), .model = STR("m")};
    const struct provider_request request = {.agent = STR("a"),
                                             .model = STR("m"),
                                             .messages = messages,
                                             .message_count = replay_history(replay, messages)};
    struct buf body;
    struct err e;
    struct json json;
    buf_init(&body, REPLAY_MAX_BYTES);
    bool written = replay->dialect->body(&settings, &request, &body, &e);
    assert(written || !must_do);
    if (written) {
        bool reads = json_read(buf_str(&body), &json, &e);
        assert(reads || str_find(err_text(&e), STR("levels")) < err_text(&e).len);
        assert(!reads || json.kind == JSON_OBJECT);
        struct str inner = str_head(str_skip(replay->opaque, 1), replay->opaque.len - 2);
        if (opaque_whole && replay->opaque.len)
            assert(str_find(buf_str(&body), inner) < body.len);
    }
    buf_done(&body);
}

/* As a run does it: arguments that are no object become an empty one. */
static void replay_mend(struct replay *replay) {
    for (size_t i = 0; i < replay->call_count && i < REPLAY_CALLS_MAX; i++) {
        struct message *call = &replay->calls[i];
        if (!replay_is_object(call->text)) call->text = STR("{}");
    }
}

static void dialect_replay(const struct replay_promise *promise, const uint8_t *data,
                           size_t size) {
    const struct dialect *dialect = promise->dialect;
    if (size < 2 || size > REPLAY_STREAM_MAX_BYTES) return;
    struct str stream = str_of(data + 1, size - 1);
    struct replay *whole = replay_stream(dialect, stream, stream.len, 0, false);
    struct replay *cut = replay_stream(dialect, stream, (size_t)data[0] % 16 + 1, 0, false);
    struct replay *read = replay_stream(dialect, stream, stream.len, 0, true);
    struct replay *stopped =
        replay_stream(dialect, stream, stream.len, (size_t)data[0] / 16 * 3 + 3, false);
    assert(str_equal(buf_str(&whole->told), buf_str(&cut->told)));
    assert(str_equal(buf_str(&whole->told), buf_str(&read->told)));
    assert(whole->call_count <= promise->calls_max);
    replay_ask_again(whole, promise->opaque_whole, false);
    replay_mend(whole);
    replay_ask_again(whole, promise->opaque_whole, whole->outcome != OUTCOME_FAILED);
    replay_free(whole);
    replay_free(cut);
    replay_free(read);
    replay_free(stopped);
}

#endif
