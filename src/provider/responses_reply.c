/* Reads an answer of the Responses API. */
#include "provider/body.h"
#include "provider/gather.h"

enum like { LIKE_TEXT, LIKE_THINKING, LIKE_ARGS };

/* What differs from one delta to the next: its text, and two members that say nothing to us. */
enum { DELTA_TEXT, DELTA_NUMBER, DELTA_PADDING, DELTA_VALUES };
static const struct str delta_keys[DELTA_VALUES] = {
    /* clang-format off */
    [DELTA_TEXT]    = STR_INIT("delta"),
    [DELTA_NUMBER]  = STR_INIT("sequence_number"),
    [DELTA_PADDING] = STR_INIT("obfuscation"), /* against guessing words from lengths */
    /* clang-format on */
};

struct responses_reply {
    struct reply base;
    struct gather gather;
    enum gather_end state; /* according to the last event */
    bool part_said;        /* the open part has had a delta */
    bool text_said;        /* any part has had one */
    bool item_done;        /* a complete item has arrived */
    bool encrypted;        /* there is reasoning to send back */
    struct buf items;      /* complete items so far, each followed by a comma */
    enum like like;        /* what the template carries */
    size_t like_call;      /* whose arguments */
};

/* --- text --------------------------------------------------------------------------------- */

static void lend_text(struct responses_reply *reply, struct json text) {
    if (text.kind != JSON_STRING) return;
    reply->part_said = reply->text_said = true;
    gather_lend(&reply->gather, &reply->base, REPLY_TEXT, text);
}

static void lend_thinking(struct responses_reply *reply, struct json text) {
    gather_lend(&reply->gather, &reply->base, REPLY_THINKING, text);
}

/* Make the event a template, and return the text of its delta. What it is must be in its own data
 * and not only in the name before it. */
static struct json keep_delta(struct responses_reply *reply, struct json event,
                              enum like like) {
    struct json at[DELTA_VALUES];
    json_find_each(event, delta_keys, DELTA_VALUES, at);
    reply->like = like;
    if (json_find(event, STR("type")).kind == JSON_STRING)
        json_template_keep(&reply->base.like, event.raw, at, DELTA_VALUES);
    return at[DELTA_TEXT];
}

static bool on_text_delta(struct responses_reply *reply, struct json event) {
    lend_text(reply, keep_delta(reply, event, LIKE_TEXT));
    return true;
}

/* Repeats the whole text; used for servers that send no deltas. */
static bool on_text_done(struct responses_reply *reply, struct json event) {
    if (!reply->part_said) lend_text(reply, json_find(event, STR("text")));
    return true;
}

static bool on_part_added(struct responses_reply *reply, struct json event) {
    (void)event;
    reply->part_said = false;
    return true;
}

static bool on_refusal_delta(struct responses_reply *reply, struct json event) {
    json_text(json_find(event, STR("delta")), &reply->gather.refusal);
    return true;
}

static bool on_refusal_done(struct responses_reply *reply, struct json event) {
    gather_replace(&reply->gather.refusal, json_find(event, STR("refusal")));
    return true;
}

static bool on_thinking_delta(struct responses_reply *reply, struct json event) {
    lend_thinking(reply, keep_delta(reply, event, LIKE_THINKING));
    return true;
}

/* A summary consists of paragraphs. */
static bool on_summary_part(struct responses_reply *reply, struct json event) {
    int64_t index;
    bool further = json_i64(json_find(event, STR("summary_index")), &index) && index > 0;
    if (further)
        reply_tell(&reply->base, &(struct reply_event){REPLY_THINKING, .text = STR("\n\n")});
    return true;
}

/* --- items -------------------------------------------------------------------------------- */

/* The call that an event refers to: by its index in the output, else by its item. */
static struct gathered_call *responses_reply_call_of(struct gather *gather, int64_t index,
                                                     struct json item) {
    for (size_t i = 0; i < gather->call_count; i++) {
        struct gathered_call *call = &gather->calls[i];
        if (index != CALL_INDEX_NONE ? call->index == index
                                     : json_is(item, buf_str(&call->item)))
            return call;
    }
    return NULL;
}

static int64_t responses_reply_index_of(struct json event) {
    return gather_count(event, "output_index"); /* negative: none was given */
}

static void responses_reply_take_call(struct responses_reply *reply, int64_t index,
                                      struct json item) {
    struct gather *gather = &reply->gather;
    struct json id = json_find(item, STR("id"));
    struct gathered_call *call = responses_reply_call_of(gather, index, id);
    if (!call) call = gather_call(gather, index);
    if (!call) return; /* too many calls */
    gather_replace(&call->item, id);
    gather_replace(&call->id, json_find(item, STR("call_id")));
    gather_replace(&call->tool, json_find(item, STR("name")));
    gather_replace(&call->args, json_find(item, STR("arguments")));
}

static bool is_call(struct json item) {
    return json_is(json_find(item, STR("type")), STR("function_call"));
}

static bool on_item_added(struct responses_reply *reply, struct json event) {
    struct json item = json_find(event, STR("item"));
    reply->part_said = false;
    if (is_call(item)) responses_reply_take_call(reply, responses_reply_index_of(event), item);
    return true;
}

/* Keep `item` for the opaque message. Unencrypted reasoning is left out: the API would look for
 * it in its own store, where nothing was stored. */
static void keep_item(struct responses_reply *reply, struct json item) {
    bool reasoning = json_is(json_find(item, STR("type")), STR("reasoning"));
    struct json content = json_find(item, STR("encrypted_content"));
    bool encrypted = content.kind == JSON_STRING && !json_is(content, STR_EMPTY);
    if (item.kind != JSON_OBJECT || (reasoning && !encrypted)) return;
    if (reasoning) reply->encrypted = true;
    if (json_compact(item.raw, &reply->items)) buf_append_byte(&reply->items, ',');
}

static void responses_reply_take_item(struct responses_reply *reply, int64_t index,
                                      struct json item) {
    reply->item_done = true;
    keep_item(reply, item);
    if (is_call(item)) responses_reply_take_call(reply, index, item);
}

static bool on_item_done(struct responses_reply *reply, struct json event) {
    responses_reply_take_item(reply, responses_reply_index_of(event),
                              json_find(event, STR("item")));
    return true;
}

static struct gathered_call *call_in(struct responses_reply *reply, struct json event) {
    return responses_reply_call_of(&reply->gather, responses_reply_index_of(event),
                                   json_find(event, STR("item_id")));
}

static bool on_args_delta(struct responses_reply *reply, struct json event) {
    struct gathered_call *call = call_in(reply, event);
    if (!call) return true;
    reply->like_call = (size_t)(call - reply->gather.calls);
    json_text(keep_delta(reply, event, LIKE_ARGS), &call->args);
    return true;
}

static bool on_args_done(struct responses_reply *reply, struct json event) {
    struct gathered_call *call = call_in(reply, event);
    if (call) gather_replace(&call->args, json_find(event, STR("arguments")));
    return true;
}

/* --- the response itself ------------------------------------------------------------------ */

static void responses_reply_take_usage(struct responses_reply *reply, struct json usage) {
    struct event_usage *seen = &reply->gather.usage;
    if (usage.kind != JSON_OBJECT) return;
    reply->gather.usage_seen = true;
    seen->prompt = gather_count(usage, "input_tokens");
    seen->completion = gather_count(usage, "output_tokens");
    seen->total = gather_count(usage, "total_tokens");
    seen->cached = gather_count(json_find(usage, STR("input_tokens_details")), "cached_tokens");
    seen->thoughts =
        gather_count(json_find(usage, STR("output_tokens_details")), "reasoning_tokens");
}

static void responses_reply_take_head(struct responses_reply *reply, struct json response) {
    gather_replace(&reply->gather.model, json_find(response, STR("model")));
    responses_reply_take_usage(reply, json_find(response, STR("usage")));
}

static struct json take_response(struct responses_reply *reply, struct json event) {
    struct json response = json_find(event, STR("response"));
    responses_reply_take_head(reply, response);
    return response;
}

static bool responses_reply_on_created(struct responses_reply *reply, struct json event) {
    take_response(reply, event);
    return true;
}

/* For servers that send the output only at the end, and for an answer that is not streamed. */
static void take_output(struct responses_reply *reply, struct json response) {
    struct json output = json_find(response, STR("output")), item, part;
    bool items = !reply->item_done && !reply->gather.call_count, text = !reply->text_said;
    struct json_reader reader = json_enter(output), parts;
    for (int64_t i = 0; output.kind == JSON_ARRAY && json_next_item(&reader, &item); i++) {
        if (items) responses_reply_take_item(reply, i, item);
        bool message = json_is(json_find(item, STR("type")), STR("message"));
        parts = json_enter(json_find(item, STR("content")));
        while (message && parts.kind == JSON_ARRAY && json_next_item(&parts, &part)) {
            if (text) lend_text(reply, json_find(part, STR("text")));
            gather_replace(&reply->gather.refusal, json_find(part, STR("refusal")));
        }
    }
}

static bool on_completed(struct responses_reply *reply, struct json event) {
    struct json response = take_response(reply, event);
    reply->state = GATHER_FINISHED;
    take_output(reply, response);
    return true;
}

static void take_cut(struct responses_reply *reply, struct json response) {
    struct json details = json_find(response, STR("incomplete_details"));
    bool filtered = json_is(json_find(details, STR("reason")), STR("content_filter"));
    reply->state = filtered ? GATHER_FILTERED : GATHER_CUT;
}

static bool on_incomplete(struct responses_reply *reply, struct json event) {
    take_cut(reply, take_response(reply, event));
    return true;
}

static bool responses_reply_on_failed(struct responses_reply *reply, struct json event) {
    reply_failure_of(responses_dialect.title, 0, json_find(event, STR("response")),
                     &reply->base.failure);
    return false;
}

static bool responses_reply_on_error(struct responses_reply *reply, struct json event) {
    reply_failure_of(responses_dialect.title, 0, event, &reply->base.failure);
    return false;
}

static const struct {
    struct str type;
    bool (*take)(struct responses_reply *reply, struct json event);
} events[] = {
    /* clang-format off */
    {STR_INIT("response.created"),                       responses_reply_on_created},
    {STR_INIT("response.in_progress"),                   responses_reply_on_created},
    {STR_INIT("response.output_item.added"),             on_item_added},
    {STR_INIT("response.output_item.done"),              on_item_done},
    {STR_INIT("response.content_part.added"),            on_part_added},
    {STR_INIT("response.output_text.delta"),             on_text_delta},
    {STR_INIT("response.output_text.done"),              on_text_done},
    {STR_INIT("response.refusal.delta"),                 on_refusal_delta},
    {STR_INIT("response.refusal.done"),                  on_refusal_done},
    {STR_INIT("response.function_call_arguments.delta"), on_args_delta},
    {STR_INIT("response.function_call_arguments.done"),  on_args_done},
    {STR_INIT("response.reasoning_summary_part.added"),  on_summary_part},
    {STR_INIT("response.reasoning_summary_text.delta"),  on_thinking_delta},
    {STR_INIT("response.reasoning_text.delta"),          on_thinking_delta},
    {STR_INIT("response.completed"),                     on_completed},
    {STR_INIT("response.incomplete"),                    on_incomplete},
    {STR_INIT("response.failed"),                        responses_reply_on_failed},
    {STR_INIT("error"),                                  responses_reply_on_error},
    /* clang-format on */
};

/* --- the dialect's functions -------------------------------------------------------------- */

#define AT(buffer) offsetof(struct responses_reply, buffer)
static const size_t bufs[] = {AT(items)};
static const struct reply_layout layout = {sizeof(struct responses_reply), bufs,
                                           ARRAY_LEN(bufs)};

static struct reply *responses_reply_new(reply_event_fn *on_reply, void *ctx) {
    struct responses_reply *reply = reply_new(&layout, on_reply, ctx);
    gather_init(&reply->gather);
    return &reply->base;
}

static void responses_reply_free(struct reply *base) {
    if (base) gather_done(&((struct responses_reply *)base)->gather);
    reply_free(base);
}

/* The type is in the data; some servers give it only as the event's name. */
static bool responses_reply_take_event(struct responses_reply *reply, struct str name,
                                       struct json event) {
    struct json type = json_find(event, STR("type"));
    for (size_t i = 0; i < ARRAY_LEN(events); i++) {
        bool named = type.kind == JSON_STRING ? json_is(type, events[i].type)
                                              : str_equal(name, events[i].type);
        if (named) return events[i].take(reply, event);
    }
    bool error = type.kind == JSON_NONE && json_find(event, STR("error")).kind == JSON_OBJECT;
    return !error || responses_reply_on_error(reply, event); /* in the form that proxies use */
}

/* An event that differs from the one before only in its delta. */
static bool responses_reply_take_like(struct responses_reply *reply, struct str data) {
    struct json at[DELTA_VALUES] = {{.kind = JSON_NONE}};
    if (!json_template_match(&reply->base.like, data, at)) return false;
    switch (reply->like) {
    case LIKE_TEXT: lend_text(reply, at[DELTA_TEXT]); break;
    case LIKE_THINKING: lend_thinking(reply, at[DELTA_TEXT]); break;
    case LIKE_ARGS:
        json_text(at[DELTA_TEXT], &reply->gather.calls[reply->like_call].args);
        break;
    }
    return true;
}

static bool responses_reply_feed(struct reply *base, const struct sse_event *event) {
    struct responses_reply *reply = (struct responses_reply *)base;
    struct str data = str_trim(event->data);
    struct json value;
    struct err e;
    if (str_equal(data, STR("[DONE]"))) base->over = true;
    if (base->over || data.len == 0) return true;
    if (responses_reply_take_like(reply, data)) return true;
    json_template_forget(&base->like);
    if (!json_read(data, &value, &e))
        return reply_fail(base, ERR_UNAVAILABLE, PROVIDER_BROKEN,
                          "the provider sent an event that is no JSON");
    bool goes_on = responses_reply_take_event(reply, event->type, value);
    base->over = reply->state != GATHER_OPEN;
    return goes_on;
}

/* A whole answer has the form of the last event's "response". */
static bool responses_reply_read(struct reply *base, struct json answer) {
    struct responses_reply *reply = (struct responses_reply *)base;
    struct json status = json_find(answer, STR("status"));
    if (json_is(status, STR("failed")) || json_find(answer, STR("error")).kind == JSON_OBJECT) {
        reply_failure_of(responses_dialect.title, 0, answer, &base->failure);
        return false;
    }
    responses_reply_take_head(reply, answer);
    take_output(reply, answer);
    if (json_is(status, STR("incomplete"))) take_cut(reply, answer);
    /* Servers that imitate OpenAI may leave out the status. */
    bool output = json_find(answer, STR("output")).kind == JSON_ARRAY;
    bool done = status.kind == JSON_NONE ? output : json_is(status, STR("completed"));
    if (done) reply->state = GATHER_FINISHED;
    return true;
}

/* Whether the items can be sent back. They cannot if the listener must rename or repair a call,
 * because its result would not match; and the API refuses incomplete arguments. */
static bool calls_can_go_back(const struct gather *gather) {
    if (gather->calls_full) return false;
    for (size_t i = 0; i < gather->call_count; i++) {
        struct str id = buf_str(&gather->calls[i].id);
        if (id.len == 0 || id.len > CALL_ID_LONG_MAX_BYTES) return false;
        if (gather->calls[i].tool.len == 0) return false;
        if (!json_reads_as_object(buf_str(&gather->calls[i].args))) return false;
        for (size_t j = 0; j < i; j++) {
            if (str_equal(buf_str(&gather->calls[j].id), id)) return false;
        }
    }
    return true;
}

static void responses_reply_write_opaque(struct responses_reply *reply) {
    struct buf *out = &reply->gather.opaque;
    if (!reply->encrypted || !buf_ok(&reply->items)) return;
    if (!calls_can_go_back(&reply->gather)) return;
    buf_append_byte(out, '[');
    buf_append(out, str_head(buf_str(&reply->items), reply->items.len - 1)); /* no comma */
    buf_append_byte(out, ']');
    if (!buf_ok(out)) buf_clear(out);
}

static enum reply_outcome responses_reply_end(struct reply *base, struct str *ret_model) {
    struct responses_reply *reply = (struct responses_reply *)base;
    enum reply_outcome outcome = gather_outcome(&reply->gather, base, reply->state);
    if (outcome == OUTCOME_FAILED) {
        gather_tell_usage(&reply->gather, base);
        return OUTCOME_FAILED;
    }
    if (outcome == OUTCOME_DONE)
        responses_reply_write_opaque(reply); /* a cut item may be incomplete */
    *ret_model = buf_str(&reply->gather.model);
    gather_tell(&reply->gather, base, STR("openai-responses"), outcome);
    return outcome;
}

const struct reply_reader responses_reader = {
    .begin = responses_reply_new,
    .feed = responses_reply_feed,
    .read = responses_reply_read,
    .end = responses_reply_end,
    .free = responses_reply_free,
};
