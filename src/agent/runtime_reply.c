/* Reads the responses of a server of the Runtime Contract. */
#include "agent/kind.h"
#include "agent/runtime.h"
#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>

#define TEXT_MAX_BYTES (16 * MIB)
#define ERROR_MAX_BYTES 600
#define MODEL_MAX_BYTES 200
#define QUESTION_MAX_BYTES (64 * KIB)
#define CODE_MAX_BYTES 40
#define COUNT_MAX INT64_C(1000000000000)
#define DOLLARS_MAX 1e6

struct runtime_reply {
    struct reply base;
    size_t calls;  /* own calls reported so far */
    bool said;     /* some text was reported */
    bool answered; /* the whole answer or a question was reported */
    bool counted;
    struct event_usage usage;
    struct buf model;
    struct buf room; /* holds the text that is being reported */
};

/* --- reporting ---------------------------------------------------------------------------- */

static struct str runtime_reply_read_text(struct runtime_reply *reply, struct json string) {
    buf_clear(&reply->room);
    json_text(string, &reply->room);
    return buf_str(&reply->room);
}

static void runtime_reply_say(struct runtime_reply *reply, struct str text) {
    if (!text.len) return;
    reply->said = true;
    reply_tell(&reply->base, &(struct reply_event){REPLY_TEXT, .text = text});
}

/* Take the code off a text such as "NOT_FOUND: no such city", the form in which we write
 * errors. */
static enum err_code take_code(struct str *text) {
    struct str rest, code = str_split(*text, ':', &rest);
    if (!rest.at || code.len > CODE_MAX_BYTES) return ERR_INTERNAL;
    enum err_code found = err_code_named(code);
    if (!str_equal(err_name(found), code)) return ERR_INTERNAL;
    *text = str_trim(rest);
    return found;
}

/* {"error": "..."} or {"error": {"code": "...", "message": "..."}} */
static bool runtime_reply_fail(struct runtime_reply *reply, struct json error) {
    enum err_code code = ERR_INTERNAL;
    struct buf text, safe;
    buf_init(&text, TEXT_MAX_BYTES);
    buf_init(&safe, ERROR_MAX_BYTES + 8);
    if (error.kind == JSON_OBJECT) {
        json_text(json_find(error, STR("code")), &text);
        if (text.len && text.len <= CODE_MAX_BYTES) code = err_code_named(buf_str(&text));
        buf_clear(&text);
        json_text(json_find(error, STR("message")), &text);
    } else {
        json_text(error, &text);
    }
    struct str said = str_trim(buf_str(&text));
    if (error.kind != JSON_OBJECT) code = take_code(&said);
    reply_append_safe(&safe, said, ERROR_MAX_BYTES);
    reply_fail(&reply->base, code, AGENT_FAILED, STR_FMT,
               STR_ARG(safe.len ? buf_str(&safe) : STR("it does not say why")));
    buf_done(&safe);
    buf_done(&text);
    return false;
}

static bool has(struct json value) {
    return !json_is_absent(value);
}

/* --- tokens and money --------------------------------------------------------------------- */

static int64_t count_in(struct json tokens, const char *key) {
    int64_t count;
    bool fine =
        json_i64(json_find(tokens, str_from(key)), &count) && count >= 0 && count <= COUNT_MAX;
    return fine ? count : TOKENS_UNKNOWN;
}

/* The fields that a sidecar adds to a response or to its last event. */
static void runtime_reply_take_usage(struct runtime_reply *reply, struct json object) {
    struct json tokens = json_find(object, STR("tokens"));
    struct json cost = json_find(object, STR("cost_usd"));
    struct json model = json_find(object, STR("model"));
    double dollars;
    if (model.kind == JSON_STRING) {
        buf_clear(&reply->model);
        buf_append(&reply->model,
                   str_head(runtime_reply_read_text(reply, model), MODEL_MAX_BYTES));
    }
    if (tokens.kind == JSON_OBJECT) {
        struct event_usage *usage = &reply->usage;
        usage->prompt = count_in(tokens, "input");
        usage->completion = count_in(tokens, "output");
        usage->total = count_in(tokens, "total");
        if (usage->total < 0 && usage->prompt >= 0 && usage->completion >= 0)
            usage->total = usage->prompt + usage->completion;
        reply->counted = true;
    }
    if (json_double(cost, &dollars) && dollars >= 0 && dollars <= DOLLARS_MAX) {
        reply->usage.cost_nano = (int64_t)(dollars * 1e9 + 0.5);
        reply->counted = true;
    }
}

/* --- own calls ---------------------------------------------------------------------------- */

/* Calls have no ids, so they are numbered in order. */
static struct str runtime_reply_number_of(size_t call, char room[24]) {
    return str_of(room, (size_t)snprintf(room, 24, "%zu", call));
}

static void runtime_reply_take_call(struct runtime_reply *reply, struct json call) {
    char room[24];
    struct json args = json_find(call, STR("args"));
    struct reply_event event = {
        .kind = REPLY_OWN_CALL,
        .call_id = runtime_reply_number_of(++reply->calls, room),
        .tool = runtime_reply_read_text(reply, json_find(call, STR("name"))),
        .args = args.kind == JSON_OBJECT ? args.raw : STR("{}")};
    reply_tell(&reply->base, &event);
}

/* A string often holds JSON; the listener checks that. */
static void runtime_reply_take_result(struct runtime_reply *reply, size_t call,
                                      struct json result) {
    char room[24];
    struct reply_event event = {.kind = REPLY_OWN_RESULT,
                                .call_id = runtime_reply_number_of(call, room),
                                .text = result.kind == JSON_STRING
                                            ? runtime_reply_read_text(reply, result)
                                            : result.raw,
                                .reason = STR_EMPTY};
    if (has(result)) reply_tell(&reply->base, &event);
}

/* Report the calls of `history` in order, without the first ones, which the stream has
 * reported. */
static void take_history(struct runtime_reply *reply, struct json history) {
    struct json_reader reader = json_enter(history);
    struct json call;
    size_t told = reply->calls, number = 0;
    while (history.kind == JSON_ARRAY && !reply->base.stopped &&
           json_next_item(&reader, &call)) {
        if (call.kind != JSON_OBJECT) continue;
        if (++number > told) runtime_reply_take_call(reply, call);
        runtime_reply_take_result(reply, number, json_find(call, STR("result")));
    }
}

/* --- a question --------------------------------------------------------------------------- */

static bool is_paused(struct json answer) {
    bool interrupted = false;
    struct json metadata = json_find(answer, STR("metadata"));
    if (json_bool(json_find(metadata, STR("interrupted")), &interrupted)) return interrupted;
    struct json status = json_find(json_find(answer, STR("output")), STR("status"));
    return json_is(status, STR("interrupted"));
}

/* The first value that is a string. */
static struct json first_text(const struct json *values, size_t count) {
    for (size_t i = 0; i < count; i++) {
        if (values[i].kind == JSON_STRING && !json_is(values[i], STR_EMPTY)) return values[i];
    }
    return (struct json){.kind = JSON_NONE};
}

static struct json thread_of(struct json answer) {
    struct json output = json_find(answer, STR("output"));
    const struct json names[] = {json_find(answer, STR("thread_id")),
                                 json_find(output, STR("thread_id")),
                                 json_find(answer, STR("session_id"))};
    return first_text(names, ARRAY_LEN(names));
}

/* LangGraph only reports which of its nodes wait. */
static void append_awaiting(struct json answer, struct buf *out) {
    struct json awaiting = json_find(json_find(answer, STR("output")), STR("awaiting"));
    struct json item;
    if (!has(awaiting))
        awaiting = json_find(json_find(answer, STR("metadata")), STR("awaiting"));
    struct json_reader reader = json_enter(awaiting);
    buf_append(out, STR("The agent waits for an answer"));
    for (size_t i = 0; awaiting.kind == JSON_ARRAY && json_next_item(&reader, &item); i++) {
        buf_append(out, i ? STR(", ") : STR(": "));
        json_text(item, out);
    }
}

static void runtime_reply_take_question(struct runtime_reply *reply, struct json answer) {
    struct json output = json_find(answer, STR("output"));
    struct json asked = json_find(json_find(answer, STR("metadata")), STR("approval"));
    const struct json texts[] = {output, json_find(output, STR("question")),
                                 json_find(asked, STR("question")),
                                 json_find(output, STR("message"))};
    struct json question = first_text(texts, ARRAY_LEN(texts)), thread = thread_of(answer);
    struct buf text, args;
    buf_init(&text, QUESTION_MAX_BYTES);
    buf_init(&args, thread.raw.len + KIB);
    if (question.kind == JSON_STRING) {
        json_text(question, &text);
    } else {
        append_awaiting(answer, &text);
    }
    struct json_writer w = json_writer(&args);
    json_open_object(&w);
    json_member_raw(&w, RUNTIME_THREAD, thread.kind == JSON_STRING ? thread.raw : STR("\"\""));
    json_close(&w);
    reply_tell(&reply->base, &(struct reply_event){REPLY_APPROVAL, .text = buf_str(&text),
                                                   .args = buf_str(&args)});
    buf_done(&args);
    buf_done(&text);
}

/* --- a whole answer ----------------------------------------------------------------------- */

/* The content of the last message in a graph's final state. */
static struct json last_content(struct json output) {
    struct json messages = json_find(output, STR("messages"));
    size_t count = messages.kind == JSON_ARRAY ? json_count(messages) : 0;
    struct json content = {.kind = JSON_NONE};
    if (count) content = json_find(json_at(messages, count - 1), STR("content"));
    return content.kind == JSON_STRING ? content : (struct json){.kind = JSON_NONE};
}

/* Text is reported unchanged, anything else as JSON. */
static void say_output(struct runtime_reply *reply, struct json output) {
    struct json content = output.kind == JSON_STRING ? output : last_content(output);
    if (content.kind == JSON_STRING) {
        runtime_reply_say(reply, runtime_reply_read_text(reply, content));
        return;
    }
    buf_clear(&reply->room);
    if (has(output) && json_compact(output.raw, &reply->room))
        runtime_reply_say(reply, buf_str(&reply->room));
}

/* The result at the end of a stream repeats its text, which is not reported again. */
static bool take_answer(struct runtime_reply *reply, struct json answer) {
    if (has(json_find(answer, STR("error"))))
        return runtime_reply_fail(reply, json_find(answer, STR("error")));
    reply->answered = true;
    take_history(reply, json_find(answer, STR("history")));
    runtime_reply_take_usage(reply, answer);
    if (is_paused(answer)) {
        runtime_reply_take_question(reply, answer);
    } else if (!reply->said) {
        say_output(reply, json_find(answer, STR("output")));
    }
    return true;
}

static bool runtime_reply_read(struct reply *base, struct json answer) {
    struct runtime_reply *reply = (struct runtime_reply *)base;
    bool known = has(json_find(answer, STR("output"))) ||
                 has(json_find(answer, STR("error"))) || is_paused(answer);
    if (!known)
        return reply_fail(base, ERR_INTERNAL, AGENT_PROTOCOL,
                          "its answer has no 'output', as the Runtime Contract wants it");
    return take_answer(reply, answer);
}

/* --- a stream ----------------------------------------------------------------------------- */

typedef bool runtime_event_fn(struct runtime_reply *reply, struct json data);

static bool runtime_reply_on_message(struct runtime_reply *reply, struct json data) {
    struct json error = json_find(data, STR("error"));
    const struct json texts[] = {json_find(data, STR("delta")), json_find(data, STR("text"))};
    if (has(error)) return runtime_reply_fail(reply, error);
    runtime_reply_say(reply,
                      runtime_reply_read_text(reply, first_text(texts, ARRAY_LEN(texts))));
    return true;
}

static bool on_step(struct runtime_reply *reply, struct json data) {
    struct json result = json_find(data, STR("result"));
    struct reply_event event = {
        .kind = REPLY_NOTE,
        .text = runtime_reply_read_text(reply, json_find(data, STR("description"))),
        .args = has(result) ? result.raw : STR_EMPTY,
    };
    if (event.text.len) reply_tell(&reply->base, &event);
    return true;
}

static bool on_tool_call(struct runtime_reply *reply, struct json data) {
    runtime_reply_take_call(reply, data);
    return true;
}

/* An extension: the contract has results only in `history`. It is the result of the latest
 * call. */
static bool on_tool_result(struct runtime_reply *reply, struct json data) {
    runtime_reply_take_result(reply, reply->calls, json_find(data, STR("result")));
    return true;
}

static bool runtime_reply_on_error(struct runtime_reply *reply, struct json data) {
    return runtime_reply_fail(reply, json_find(data, STR("error")));
}

static bool runtime_reply_on_done(struct runtime_reply *reply, struct json data) {
    runtime_reply_take_usage(reply, data);
    return true;
}

/* Other types of events are allowed and ignored. */
static const struct {
    struct str type;
    runtime_event_fn *take;
} events[] = {
    {STR_INIT("message"), runtime_reply_on_message}, {STR_INIT("step"), on_step},
    {STR_INIT("tool_call"), on_tool_call},           {STR_INIT("tool_result"), on_tool_result},
    {STR_INIT("error"), runtime_reply_on_error},     {STR_INIT("result"), take_answer},
    {STR_INIT("done"), runtime_reply_on_done},
};

static bool runtime_reply_feed(struct reply *base, const struct sse_event *event) {
    struct runtime_reply *reply = (struct runtime_reply *)base;
    struct json data;
    struct err e;
    size_t at = 0;
    if (base->over) return true;
    if (str_equal(event->data, STR("[DONE]"))) {
        base->over = base->finished = true;
        return true;
    }
    while (at < ARRAY_LEN(events) && !str_equal(event->type, events[at].type)) at++;
    if (at == ARRAY_LEN(events)) return true;
    if (!json_read(event->data, &data, &e))
        return reply_fail(base, ERR_INTERNAL, AGENT_PROTOCOL,
                          "an event of its stream is no JSON: %s", e.text);
    return events[at].take(reply, data);
}

/* --- the reader --------------------------------------------------------------------------- */

static struct reply *runtime_reply_new(reply_event_fn *on_reply, void *ctx) {
    struct runtime_reply *reply = MEM_NEW(struct runtime_reply);
    reply->base = (struct reply){.on_reply = on_reply, .ctx = ctx};
    reply->usage = USAGE_UNKNOWN;
    buf_init(&reply->model, KIB);
    buf_init(&reply->room, TEXT_MAX_BYTES);
    return &reply->base;
}

/* Some servers end without [DONE]. A stream without any content is not an answer. */
static enum reply_outcome runtime_reply_end(struct reply *base, struct str *ret_model) {
    struct runtime_reply *reply = (struct runtime_reply *)base;
    if (base->failure.reason) return OUTCOME_FAILED;
    if (!base->over && !reply->said && !reply->answered) {
        reply_fail(base, ERR_INTERNAL, AGENT_PROTOCOL, "its stream ended without an answer");
        return OUTCOME_FAILED;
    }
    reply->usage.model = *ret_model = buf_str(&reply->model);
    if (reply->counted)
        reply_tell(base, &(struct reply_event){REPLY_USAGE, .usage = &reply->usage});
    return OUTCOME_DONE;
}

static void runtime_reply_free(struct reply *base) {
    struct runtime_reply *reply = (struct runtime_reply *)base;
    buf_done(&reply->model);
    buf_done(&reply->room);
    free(reply);
}

const struct reply_reader runtime_reader = {
    .begin = runtime_reply_new,
    .feed = runtime_reply_feed,
    .read = runtime_reply_read,
    .end = runtime_reply_end,
    .free = runtime_reply_free,
};
