/* anthropic_reply: reads a streamed answer of the Messages API.
 *
 *     message_start ─▶ content_block_start ─▶ content_block_delta ... ─▶ content_block_stop
 *                        ▲ next block, or ─▶ message_delta (why it stopped) ─▶ message_stop
 *
 * A tool call is reported when the next block begins or the stop reason is known, not when its
 * own block ends: an answer that reaches its token limit may break off inside the arguments and
 * still end the block, and an incomplete call must not be made.
 *
 * Source   Messages API 2023-06-01, "Streaming messages", "Handling stop reasons". */
#include "provider/dialect.h"

#include "wire/json.h"

enum block {
    BLOCK_NONE, /* no block is open, or one that is ignored */
    BLOCK_TEXT,
    BLOCK_THINKING,
    BLOCK_REDACTED,
    BLOCK_CALL,
};

struct delta;

struct stop_reason {
    struct str name;
    enum reply_outcome outcome;
};

static const struct stop_reason stop_reasons[] = {
    /* clang-format off */
    {STR_INIT("end_turn"),                      OUTCOME_DONE},
    {STR_INIT("tool_use"),                      OUTCOME_DONE},
    {STR_INIT("stop_sequence"),                 OUTCOME_DONE},
    {STR_INIT("max_tokens"),                    OUTCOME_CUT},
    {STR_INIT("model_context_window_exceeded"), OUTCOME_CUT},
    {STR_INIT("pause_turn"),                    OUTCOME_CUT}, /* by the vendor's own tools */
    {STR_INIT("refusal"),                       OUTCOME_FAILED},
    /* clang-format on */
};

struct anthropic_reply {
    struct reply base;
    struct buf model;

    enum block open;
    struct buf text;           /* of the open block: text or thinking */
    struct buf signature;      /* of thinking */
    struct buf id, name, args; /* of a call */
    bool call_waits;           /* its block has ended and it is not reported yet */
    const struct delta *like;  /* what the template carries */
    struct buf content;        /* the blocks so far, in the form to send back: "{...},{...}" */
    bool thought, called;      /* `content` has thinking; it has calls */
    struct buf ids;            /* of the calls in `content`, each between two line breaks */
    bool unfit; /* `content` cannot be sent back: a call has no name, or no id of its own */

    bool stopping; /* a stop reason has arrived */
    const struct stop_reason *stop;
    struct buf stop_name, stop_why; /* as received; the explanation of a refusal */

    /* As this API counts: `prompt` excludes tokens read from or written to a cache, and
     * `cache_write` includes those written for an hour. */
    struct event_usage usage;
};

/* --- creation ----------------------------------------------------------------------------- */

#define AT(buffer) offsetof(struct anthropic_reply, buffer)
static const size_t bufs[] = {AT(model),     AT(text),    AT(signature), AT(id),
                              AT(name),      AT(args),    AT(content),   AT(ids),
                              AT(stop_name), AT(stop_why)};
static const struct reply_layout layout = {sizeof(struct anthropic_reply), bufs,
                                           ARRAY_LEN(bufs)};

static struct reply *anthropic_reply_new(reply_event_fn *on_reply, void *ctx) {
    struct anthropic_reply *reply = reply_new(&layout, on_reply, ctx);
    reply->usage = USAGE_UNKNOWN;
    return &reply->base;
}

static void anthropic_reply_set(struct buf *buf, struct json string) {
    buf_clear(buf);
    json_text(string, buf);
}

/* --- blocks to send back ------------------------------------------------------------------ */

static struct json_writer anthropic_reply_add_block(struct anthropic_reply *reply,
                                                    struct str type) {
    if (reply->content.len) buf_append_byte(&reply->content, ',');
    struct json_writer w = json_writer(&reply->content);
    json_open_object(&w);
    json_member_str(&w, "type", type);
    return w;
}

/* An empty text block would be refused when it is sent back. */
static void anthropic_reply_keep_text(struct anthropic_reply *reply) {
    if (reply->text.len == 0) return;
    struct json_writer w = anthropic_reply_add_block(reply, STR("text"));
    json_member_str(&w, "text", buf_str(&reply->text));
    json_close(&w);
}

static void keep_thinking(struct anthropic_reply *reply) {
    struct json_writer w = anthropic_reply_add_block(reply, STR("thinking"));
    json_member_str(&w, "thinking", buf_str(&reply->text));
    json_member_str(&w, "signature", buf_str(&reply->signature));
    json_close(&w);
    reply->thought = true;
}

/* The listener gives a new id to a call without one, and to the second of two with the same id.
 * The block kept here would then not match the result. */
static void note_id(struct anthropic_reply *reply) {
    struct buf line;
    buf_init(&line, REPLY_MAX_BYTES);
    buf_printf(&line, "\n" STR_FMT "\n", STR_ARG(buf_str(&reply->id)));
    bool twice = str_find(buf_str(&reply->ids), buf_str(&line)) < reply->ids.len;
    if (twice || reply->id.len == 0 || reply->name.len == 0) reply->unfit = true;
    buf_append(&reply->ids, buf_str(&line));
    buf_done(&line);
}

static void keep_call(struct anthropic_reply *reply, bool object) {
    note_id(reply);
    struct json_writer w = anthropic_reply_add_block(reply, STR("tool_use"));
    json_member_str(&w, "id", buf_str(&reply->id));
    json_member_str(&w, "name", buf_str(&reply->name));
    json_member_raw(&w, "input", object ? buf_str(&reply->args) : STR("{}"));
    json_close(&w);
    reply->called = true;
}

/* --- reporting ---------------------------------------------------------------------------- */

/* Append `text` to the block and report the new part. */
static void anthropic_reply_tell(struct anthropic_reply *reply, enum reply_kind kind,
                                 struct json text) {
    size_t before = reply->text.len;
    if (!json_text(text, &reply->text)) return;
    struct str news = str_skip(buf_str(&reply->text), before);
    if (news.len) reply_tell(&reply->base, &(struct reply_event){kind, .text = news});
}

/* Report the call whose block ended last. Missing arguments become {}. If the reply was cut
 * there, the call is reported only when its arguments are a complete object. */
static void tell_call(struct anthropic_reply *reply) {
    if (!reply->call_waits) return;
    reply->call_waits = false;
    bool cut = reply->stopping && reply->stop && reply->stop->outcome == OUTCOME_CUT;
    if (!cut && str_trim(buf_str(&reply->args)).len == 0) {
        buf_clear(&reply->args);
        buf_append(&reply->args, STR("{}"));
    }
    struct json args;
    bool object = json_read_object(buf_str(&reply->args), &args);
    if (cut && !object) return;
    keep_call(reply, object);
    reply_tell(&reply->base, &(struct reply_event){
                                 REPLY_TOOL_CALL, .call_id = buf_str(&reply->id),
                                 .tool = buf_str(&reply->name), .args = buf_str(&reply->args)});
}

/* --- blocks ------------------------------------------------------------------------------- */

static void end_block(struct anthropic_reply *reply) {
    switch (reply->open) {
    case BLOCK_TEXT: anthropic_reply_keep_text(reply); break;
    case BLOCK_THINKING: keep_thinking(reply); break;
    case BLOCK_CALL: reply->call_waits = true; break;
    case BLOCK_NONE:
    case BLOCK_REDACTED: break; /* kept whole when the block began */
    }
    reply->open = BLOCK_NONE;
}

static void begin_text(struct anthropic_reply *reply, struct json block) {
    buf_clear(&reply->text);
    anthropic_reply_tell(reply, REPLY_TEXT, json_find(block, STR("text")));
}

static void begin_thinking(struct anthropic_reply *reply, struct json block) {
    buf_clear(&reply->text);
    anthropic_reply_set(&reply->signature, json_find(block, STR("signature")));
    anthropic_reply_tell(reply, REPLY_THINKING, json_find(block, STR("thinking")));
}

static void begin_redacted(struct anthropic_reply *reply, struct json block) {
    struct json_writer w = anthropic_reply_add_block(reply, STR("redacted_thinking"));
    struct json data = json_find(block, STR("data"));
    json_member_raw(&w, "data", data.kind == JSON_STRING ? data.raw : STR("\"\""));
    json_close(&w);
    reply->thought = true;
}

static void begin_call(struct anthropic_reply *reply, struct json block) {
    anthropic_reply_set(&reply->id, json_find(block, STR("id")));
    anthropic_reply_set(&reply->name, json_find(block, STR("name")));
    buf_clear(&reply->args);
    struct json input = json_find(block, STR("input"));
    if (json_count(input)) json_compact(input.raw, &reply->args);
}

/* Blocks of other types (tools that run at the vendor, and their results) are ignored. */
static const struct {
    struct str type;
    enum block kind;
    void (*begin)(struct anthropic_reply *reply, struct json block);
} blocks[] = {
    {STR_INIT("text"), BLOCK_TEXT, begin_text},
    {STR_INIT("thinking"), BLOCK_THINKING, begin_thinking},
    {STR_INIT("redacted_thinking"), BLOCK_REDACTED, begin_redacted},
    {STR_INIT("tool_use"), BLOCK_CALL, begin_call},
};

static void begin_block(struct anthropic_reply *reply, struct json block) {
    struct json type = json_find(block, STR("type"));
    end_block(reply);
    tell_call(reply);
    for (size_t i = 0; i < ARRAY_LEN(blocks); i++) {
        if (!json_is(type, blocks[i].type)) continue;
        reply->open = blocks[i].kind;
        blocks[i].begin(reply, block);
    }
}

static bool on_block_start(struct anthropic_reply *reply, struct json event) {
    begin_block(reply, json_find(event, STR("content_block")));
    return true;
}

static bool on_block_stop(struct anthropic_reply *reply, struct json event) {
    (void)event;
    end_block(reply);
    return true;
}

static void anthropic_reply_add_text(struct anthropic_reply *reply, struct json text) {
    anthropic_reply_tell(reply, REPLY_TEXT, text);
}

static void add_thinking(struct anthropic_reply *reply, struct json text) {
    anthropic_reply_tell(reply, REPLY_THINKING, text);
}

static void add_signature(struct anthropic_reply *reply, struct json text) {
    json_text(text, &reply->signature);
}

static void add_args(struct anthropic_reply *reply, struct json text) {
    json_text(text, &reply->args);
}

/* A delta counts only in a block of its own kind. Others (citations) are ignored. */
static const struct delta {
    struct str type;
    enum block kind;
    struct str member; /* with the text to add */
    void (*add)(struct anthropic_reply *reply, struct json text);
} deltas[] = {
    {STR_INIT("text_delta"), BLOCK_TEXT, STR_INIT("text"), anthropic_reply_add_text},
    {STR_INIT("thinking_delta"), BLOCK_THINKING, STR_INIT("thinking"), add_thinking},
    {STR_INIT("signature_delta"), BLOCK_THINKING, STR_INIT("signature"), add_signature},
    {STR_INIT("input_json_delta"), BLOCK_CALL, STR_INIT("partial_json"), add_args},
};

static const struct delta *delta_of(const struct anthropic_reply *reply, struct json type) {
    for (size_t i = 0; i < ARRAY_LEN(deltas); i++) {
        if (reply->open == deltas[i].kind && json_is(type, deltas[i].type)) return &deltas[i];
    }
    return NULL;
}

static bool on_block_delta(struct anthropic_reply *reply, struct json event) {
    struct json object = json_find(event, STR("delta"));
    const struct delta *delta = delta_of(reply, json_find(object, STR("type")));
    if (!delta) return true;
    struct json text = json_find(object, delta->member);
    delta->add(reply, text);
    reply->like = delta;
    json_template_keep(&reply->base.like, event.raw, &text, 1);
    return true;
}

/* An event that differs from the one before only in the text of its delta. */
static bool anthropic_reply_take_like(struct anthropic_reply *reply, struct str data) {
    struct json text;
    if (!json_template_match(&reply->base.like, data, &text)) return false;
    reply->like->add(reply, text);
    return true;
}

/* --- the message -------------------------------------------------------------------------- */

static void take_prompt_tokens(struct anthropic_reply *reply, struct json usage) {
    reply_take_tokens(usage, STR("input_tokens"), &reply->usage.prompt);
    reply_take_tokens(usage, STR("cache_creation_input_tokens"), &reply->usage.cache_write);
    reply_take_tokens(json_find(usage, STR("cache_creation")), STR("ephemeral_1h_input_tokens"),
                      &reply->usage.cache_write_hour);
    reply_take_tokens(usage, STR("cache_read_input_tokens"), &reply->usage.cached);
}

/* The head's output_tokens are only the first few, so they are ignored. */
static void anthropic_reply_take_head(struct anthropic_reply *reply, struct json message) {
    anthropic_reply_set(&reply->model, json_find(message, STR("model")));
    take_prompt_tokens(reply, json_find(message, STR("usage")));
}

static bool on_message_start(struct anthropic_reply *reply, struct json event) {
    anthropic_reply_take_head(reply, json_find(event, STR("message")));
    return true;
}

static void anthropic_reply_take_usage(struct anthropic_reply *reply, struct json usage) {
    take_prompt_tokens(reply, usage);
    reply_take_tokens(usage, STR("output_tokens"), &reply->usage.completion);
    reply_take_tokens(json_find(usage, STR("output_tokens_details")), STR("thinking_tokens"),
                      &reply->usage.thoughts);
}

static void tell_stop(struct anthropic_reply *reply, struct json sequence) {
    if (sequence.kind != JSON_STRING || reply->base.stopped) return;
    reply->base.on_reply(&(struct reply_event){REPLY_NOTE, .text = STR(PROVIDER_STOP_NOTE),
                                               .args = sequence.raw},
                         reply->base.ctx);
}

/* `object` holds stop_reason and its details. */
static void take_stop(struct anthropic_reply *reply, struct json object) {
    struct json reason = json_find(object, STR("stop_reason"));
    if (reason.kind != JSON_STRING) return;
    reply->stopping = reply->base.finished = true;
    reply->stop = NULL;
    anthropic_reply_set(&reply->stop_name, reason);
    anthropic_reply_set(&reply->stop_why,
                        json_find(json_find(object, STR("stop_details")), STR("explanation")));
    for (size_t i = 0; i < ARRAY_LEN(stop_reasons); i++) {
        if (json_is(reason, stop_reasons[i].name)) reply->stop = &stop_reasons[i];
    }
    end_block(reply);
    tell_call(reply);
    tell_stop(reply, json_find(object, STR("stop_sequence")));
}

static bool on_message_delta(struct anthropic_reply *reply, struct json event) {
    anthropic_reply_take_usage(reply, json_find(event, STR("usage")));
    take_stop(reply, json_find(event, STR("delta")));
    return true;
}

static bool on_message_stop(struct anthropic_reply *reply, struct json event) {
    (void)event;
    reply->base.over = true;
    return true;
}

static bool anthropic_reply_on_error(struct anthropic_reply *reply, struct json event) {
    reply_failure_of("Anthropic", 0, event, &reply->base.failure);
    return false;
}

static const struct {
    struct str type;
    bool (*take)(struct anthropic_reply *reply, struct json event);
} events[] = {
    {STR_INIT("message_start"), on_message_start},
    {STR_INIT("content_block_start"), on_block_start},
    {STR_INIT("content_block_delta"), on_block_delta},
    {STR_INIT("content_block_stop"), on_block_stop},
    {STR_INIT("message_delta"), on_message_delta},
    {STR_INIT("message_stop"), on_message_stop},
    {STR_INIT("error"), anthropic_reply_on_error},
};

/* Events with other names are not parsed at all. */
static bool is_for_us(struct str type) {
    if (str_equal(type, STR("message"))) return true;
    for (size_t i = 0; i < ARRAY_LEN(events); i++) {
        if (str_equal(type, events[i].type)) return true;
    }
    return false;
}

static bool anthropic_reply_take_event(struct anthropic_reply *reply, struct json event) {
    struct json type = json_find(event, STR("type"));
    for (size_t i = 0; i < ARRAY_LEN(events); i++) {
        if (json_is(type, events[i].type)) return events[i].take(reply, event);
    }
    return true;
}

static bool anthropic_reply_feed(struct reply *base, const struct sse_event *event) {
    struct anthropic_reply *reply = (struct anthropic_reply *)base;
    struct err e;
    struct json json;
    if (base->stopped || base->over || !is_for_us(event->type)) return true;
    base->over = str_equal(event->data, STR("[DONE]")); /* some gateways add it */
    if (base->over) return true;
    if (anthropic_reply_take_like(reply, event->data))
        return reply_check_size(base, "Anthropic");
    json_template_forget(&base->like);
    if (!json_read(event->data, &json, &e))
        return reply_fail(base, ERR_UNAVAILABLE, PROVIDER_BROKEN,
                          "Anthropic sent an event that is no JSON: %s", e.text);
    return anthropic_reply_take_event(reply, json) && reply_check_size(base, "Anthropic");
}

/* An answer that was not streamed: one object with all that a stream's events hold. */
static bool anthropic_reply_read(struct reply *base, struct json answer) {
    struct anthropic_reply *reply = (struct anthropic_reply *)base;
    struct json content = json_find(answer, STR("content")), block;
    if (json_find(answer, STR("error")).kind == JSON_OBJECT)
        return anthropic_reply_on_error(reply, answer);
    anthropic_reply_take_head(reply, answer);
    anthropic_reply_take_usage(reply, json_find(answer, STR("usage")));
    struct json_reader reader = json_enter(content);
    while (content.kind == JSON_ARRAY && json_next_item(&reader, &block))
        begin_block(reply, block);
    take_stop(reply, answer);
    return reply_check_size(base, "Anthropic");
}

/* --- the end ------------------------------------------------------------------------------ */

static int64_t anthropic_reply_known(int64_t tokens) {
    return tokens == TOKENS_UNKNOWN ? 0 : tokens;
}

/* input_tokens excludes tokens read from or written to a cache; event_usage includes them. */
static void anthropic_reply_tell_usage(struct anthropic_reply *reply) {
    const struct event_usage *counted = &reply->usage;
    struct event_usage usage = *counted;
    usage.model = buf_str(&reply->model);
    if (anthropic_reply_known(counted->cache_write_hour) >
        anthropic_reply_known(counted->cache_write)) /* cannot be */
        usage.cache_write_hour = TOKENS_UNKNOWN;
    usage.cache_write -= anthropic_reply_known(usage.cache_write_hour);
    if (counted->prompt != TOKENS_UNKNOWN)
        usage.prompt += anthropic_reply_known(counted->cache_write) +
                        anthropic_reply_known(counted->cached);
    if (counted->prompt != TOKENS_UNKNOWN && counted->completion != TOKENS_UNKNOWN)
        usage.total = usage.prompt + usage.completion;
    reply_tell(&reply->base, &(struct reply_event){REPLY_USAGE, .usage = &usage});
}

/* Signed thinking is needed again only in a round of tool calls. */
static void tell_opaque(struct anthropic_reply *reply) {
    if (!reply->thought || !reply->called || reply->unfit || reply->base.stopped) return;
    reply_tell_opaque(&reply->base, "anthropic", &reply->content);
}

static void anthropic_reply_fail_refused(struct anthropic_reply *reply) {
    struct buf why;
    buf_init(&why, ERR_TEXT_BYTES);
    reply_append_safe(&why, buf_str(&reply->stop_why), 300);
    reply->base.failure.said = why.len > 0;
    reply_fail(&reply->base, ERR_PERMISSION_DENIED, MODEL_REFUSED, "%s" STR_FMT,
               why.len ? MODEL_REFUSED_SAYING : "the model refused to answer",
               STR_ARG(buf_str(&why)));
    buf_done(&why);
}

static void fail_unknown_stop(struct anthropic_reply *reply) {
    struct buf name;
    buf_init(&name, ERR_TEXT_BYTES);
    reply_append_safe(&name, buf_str(&reply->stop_name), 60);
    reply_fail(&reply->base, ERR_UNAVAILABLE, PROVIDER_BROKEN,
               "Anthropic stopped for a reason that is not known here: '" STR_FMT "'",
               STR_ARG(buf_str(&name)));
    buf_done(&name);
}

static enum reply_outcome anthropic_reply_end(struct reply *base, struct str *ret_model) {
    struct anthropic_reply *reply = (struct anthropic_reply *)base;
    *ret_model = buf_str(&reply->model);
    bool fails = !reply->stop || reply->stop->outcome == OUTCOME_FAILED;
    bool counted =
        reply->usage.prompt != TOKENS_UNKNOWN || reply->usage.completion != TOKENS_UNKNOWN;
    if (counted || !fails) anthropic_reply_tell_usage(reply);
    if (!reply->stopping) {
        reply_fail(base, ERR_UNAVAILABLE, PROVIDER_BROKEN,
                   "Anthropic's answer broke off before its end; ask again");
        return OUTCOME_FAILED;
    }
    if (!reply->stop) {
        fail_unknown_stop(reply);
        return OUTCOME_FAILED;
    }
    if (reply->stop->outcome == OUTCOME_FAILED) {
        anthropic_reply_fail_refused(reply);
        return OUTCOME_FAILED;
    }
    tell_opaque(reply);
    return reply->stop->outcome;
}

const struct reply_reader anthropic_reader = {
    .begin = anthropic_reply_new,
    .feed = anthropic_reply_feed,
    .read = anthropic_reply_read,
    .end = anthropic_reply_end,
    .free = reply_free,
};
