/* asking: a model answers, and its words become events. */
#include "base/mem.h"
#include "base/utf8.h"
#include "run/inner.h"
#include "wire/json.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

/* --- text --------------------------------------------------------------------------------- */

typedef void append_fn(struct run *run, struct str text);

static void append_text(struct run *run, struct str text) {
    if (text.len == 0) return;
    if (!buf_append(&run->reply, text)) {
        run_fail(run, ERR_RESOURCE_EXHAUSTED, STR("REPLY_TOO_LONG"),
                 STR("the model's reply is longer than the limit of a reply"));
        return;
    }
    struct event event = {.kind = EVENT_TEXT, .text = {text}};
    run_append(run, &event);
}

static void append_thinking(struct run *run, struct str text) {
    if (text.len == 0) return;
    struct event event = {.kind = EVENT_THINKING, .thinking = {text}};
    run_append(run, &event);
}

/* Bytes that are not text become U+FFFD; a character that is not complete yet waits. */
static void take_repaired(struct run *run, struct tail *tail, struct str bytes,
                          append_fn *append) {
    struct buf whole, valid;
    buf_init(&whole, bytes.len + sizeof(tail->bytes));
    buf_init(&valid, 3 * (bytes.len + sizeof(tail->bytes)));
    buf_append(&whole, str_of(tail->bytes, tail->len));
    buf_append(&whole, bytes);
    tail->len = utf8_pending(buf_str(&whole));
    struct str now = str_head(buf_str(&whole), whole.len - tail->len);
    memcpy(tail->bytes, now.at + now.len, tail->len);
    utf8_append_repaired(&valid, now);
    append(run, buf_str(&valid));
    buf_done(&whole);
    buf_done(&valid);
}

static void take_text(struct run *run, struct tail *tail, struct str bytes, append_fn *append) {
    if (tail->len == 0 && utf8_valid(bytes)) {
        append(run, bytes);
    } else {
        take_repaired(run, tail, bytes, append);
    }
}

/* The reply is over: what was held back will never be completed. */
static void flush_tail(struct run *run, struct tail *tail, append_fn *append) {
    if (tail->len == 0) return;
    tail->len = 0;
    append(run, STR("\xEF\xBF\xBD"));
}

static void on_text(struct str text, void *ctx) {
    struct run *run = ctx;
    take_text(run, &run->text_tail, text, append_text);
}

static void on_thinking(struct str text, void *ctx) {
    struct run *run = ctx;
    take_text(run, &run->thinking_tail, text, append_thinking);
}

/* --- calls, questions, usage -------------------------------------------------------------- */

static struct call *add_call(struct run *run) {
    if (run->call_count == run->call_room) {
        run->call_room = run->call_room ? run->call_room * 2 : 4;
        run->calls = mem_resize(run->calls, run->call_room * sizeof(struct call));
    }
    struct call *call = &run->calls[run->call_count++];
    *call = (struct call){.run = run, .state = CALL_PENDING};
    return call;
}

/* A provider that names no call gets one from us, unique in its session. */
static struct str name_call(struct run *run, struct str call_id, char room[48]) {
    if (call_id.len) return call_id;
    int len = snprintf(room, 48, "call-%llu-%u", (unsigned long long)run->id, run->tool_calls);
    return str_of(room, (size_t)len);
}

static void on_tool_call(struct str call_id, struct str tool, struct str args, void *ctx) {
    struct run *run = ctx;
    if (run->tool_calls == run->engine->limits.tool_calls_max) {
        run_fail(run, ERR_RESOURCE_EXHAUSTED, STR("TOOL_CALLS"),
                 STR("the turn asked for more tool calls than its limit allows"));
        return;
    }
    run->tool_calls++;
    char room[48];
    struct json object;
    struct err e;
    bool usable = json_read(args, &object, &e) && object.kind == JSON_OBJECT;
    struct call *call = add_call(run);
    if (!run_keep(run, name_call(run, call_id, room), &call->call_id)) return;
    if (!run_keep(run, tool, &call->tool)) return;
    if (!run_keep(run, usable ? args : STR("{}"), &call->args)) return;
}

static void on_approval(struct str call_id, struct str question, struct str tool,
                        struct str args, void *ctx) {
    struct run *run = ctx;
    if (run->asks_human) return; /* one question a reply: the first */
    char room[48];
    struct call *call = add_call(run);
    run->asks_human = true;
    run->human_call = run->call_count - 1;
    if (!run_keep(run, question, &run->question)) return;
    if (!run_keep(run, name_call(run, call_id, room), &call->call_id)) return;
    if (!run_keep(run, tool, &call->tool)) return;
    if (!run_keep(run, args, &call->args)) return;
}

/* One event a model call, always, whether or not the provider counted. */
static void append_usage(struct run *run, const struct event_usage *usage) {
    struct event event = {.kind = EVENT_USAGE, .usage = *usage};
    event.usage.call_sequence = run->model_calls - 1;
    run->usage_seen = true;
    run_append(run, &event);
}

static void on_usage(const struct event_usage *usage, void *ctx) {
    struct run *run = ctx;
    if (!run->usage_seen) append_usage(run, usage);
}

/* --- the end of a reply ------------------------------------------------------------------- */

static bool is_blank(struct str text) {
    return str_trim(text).len == 0;
}

static void keep_reply(struct run *run) {
    struct str reply = str_skip(buf_str(&run->reply), run->reply_from);
    if (is_blank(reply)) return;
    struct message message = {.role = MESSAGE_AGENT, .agent = run->agent->slug};
    if (run_keep(run, reply, &message.text)) run_add_message(run, message);
}

/* Whether this reply is the last of its agent's part: it asks for nothing, or only hands the
 * turn over. */
static bool ends_part(const struct run *run) {
    for (size_t i = 0; i < run->call_count; i++) {
        if (run->asks_human || !str_equal(run->calls[i].tool, STR(TRANSFER_TOOL))) return false;
    }
    return true;
}

/* The agent's part is over: what it said, before its tools and after them, is one Turn. */
static void end_part(struct run *run) {
    struct str part = buf_str(&run->reply);
    if (is_blank(part)) return;
    if (!event_turn_append(&run->turns, run->agent->slug, part)) {
        run_fail_memory(run);
        return;
    }
    bool added = !is_blank(str_skip(part, run->reply_from));
    if (run->reply_from == 0 || !added) return;
    struct said said = {.index = run->message_count - 1};
    if (!run_keep(run, part, &said.text)) return;
    run->said = mem_resize(run->said, (run->said_count + 1) * sizeof(struct said));
    run->said[run->said_count++] = said;
}

static void on_done(struct str model, void *ctx) {
    struct run *run = ctx;
    run->provider_call = NULL;
    flush_tail(run, &run->thinking_tail, append_thinking);
    flush_tail(run, &run->text_tail, append_text);
    if (run->ending_seq) return;
    if (!run_keep(run, model, &run->model)) return;
    if (!run->usage_seen) {
        append_usage(run, &(struct event_usage){run->model, TOKENS_UNKNOWN, TOKENS_UNKNOWN,
                                                TOKENS_UNKNOWN, TOKENS_UNKNOWN, TOKENS_UNKNOWN,
                                                TOKENS_UNKNOWN, 0});
    }
    keep_reply(run);
    if (run->ending_seq) return;
    bool part_ends = ends_part(run);
    if (part_ends) end_part(run);
    if (run->ending_seq) return;
    /* A question to a human shows what was said before it; the answer begins anew. */
    if (part_ends || run->asks_human) buf_clear(&run->reply);
    if (run->call_count) {
        run_work(run);
    } else {
        run_done(run);
    }
}

static void on_failed(const struct err *why, struct str reason, void *ctx) {
    struct run *run = ctx;
    run->provider_call = NULL;
    flush_tail(run, &run->text_tail, append_text);
    run_fail(run, why->code, reason, err_text(why));
}

static const struct provider_sink sink = {
    .on_text = on_text,
    .on_thinking = on_thinking,
    .on_tool_call = on_tool_call,
    .on_usage = on_usage,
    .on_approval = on_approval,
    .on_done = on_done,
    .on_failed = on_failed,
};

/* --- asking ------------------------------------------------------------------------------- */

void run_ask(struct run *run) {
    const struct engine *engine = run->engine;
    if (run->model_calls == engine->limits.model_calls_max) {
        run_fail(run, ERR_RESOURCE_EXHAUSTED, STR("MODEL_CALLS"),
                 STR("the turn asked the model more often than its limit allows"));
        return;
    }
    run->model_calls++;
    run_move(run, RUN_ASKING);
    run->reply_from = run->reply.len;
    run->usage_seen = run->asks_human = false;
    run->call_count = 0;
    const struct agent *agent = run->agent;
    run->asked = (struct provider_request){
        .agent = agent->slug,
        .model = agent->model,
        .system = run->system.len ? run->system : agent->system,
        .messages = run->messages,
        .message_count = run->message_count,
        .turn_start = run->turn_start,
    };
    run->provider_call =
        provider_call_start(agent->provider, run->host->loop, &run->asked, &sink, run);
    if (run->held) agent->provider->kind->pause(run->provider_call);
}

void run_stop_asking(struct run *run) {
    if (!run->provider_call) return;
    struct provider_call *call = run->provider_call;
    run->provider_call = NULL;
    run->agent->provider->kind->cancel(call);
}
