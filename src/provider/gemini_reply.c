/* gemini_reply: reads a streamed answer of generateContent.
 *
 * Every event is a whole response with the next parts of the answer. There is no last event,
 * only a finishReason in one of them, and counts that grow until the stream ends.
 *
 * Source   Gemini API v1beta, GenerateContentResponse; "Thought signatures". */
#include "provider/dialect.h"

#include "wire/json.h"

/* The finish reasons that are not failures, and the refusals. All others, including
 * future ones, are failures of the model: its output is not an answer. */
static const struct finish {
    struct str name;
    enum reply_outcome outcome;
} finishes[] = {
    /* clang-format off */
    {STR_INIT("STOP"),                     OUTCOME_DONE},
    {STR_INIT("FUNCTION_CALL"),            OUTCOME_DONE}, /* from servers that imitate Gemini */
    {STR_INIT("MAX_TOKENS"),               OUTCOME_CUT},
    {STR_INIT("SAFETY"),                   OUTCOME_FAILED},
    {STR_INIT("RECITATION"),               OUTCOME_FAILED},
    {STR_INIT("LANGUAGE"),                 OUTCOME_FAILED},
    {STR_INIT("BLOCKLIST"),                OUTCOME_FAILED},
    {STR_INIT("PROHIBITED_CONTENT"),       OUTCOME_FAILED},
    {STR_INIT("SPII"),                     OUTCOME_FAILED},
    {STR_INIT("MODEL_ARMOR"),              OUTCOME_FAILED},
    {STR_INIT("IMAGE_SAFETY"),             OUTCOME_FAILED},
    {STR_INIT("IMAGE_PROHIBITED_CONTENT"), OUTCOME_FAILED},
    {STR_INIT("IMAGE_RECITATION"),         OUTCOME_FAILED},
    /* clang-format on */
};

struct gemini_reply {
    struct reply base;
    struct buf model;
    struct buf text; /* of one part */
    struct buf call_id, name, args;
    struct buf parts;       /* in the form to send back: "{...},{...}" */
    bool is_signed, called; /* one of the parts has a signature; is a call */
    bool unfit;             /* a call has no name: the parts cannot be sent back */

    struct buf finish_name, finish_why; /* as received */
    struct buf blocked;                 /* why the prompt was refused */

    struct event_usage usage; /* as this API counts */
};

/* --- creation ----------------------------------------------------------------------------- */

#define AT(buffer) offsetof(struct gemini_reply, buffer)
static const size_t bufs[] = {AT(model), AT(text),        AT(call_id),    AT(name),   AT(args),
                              AT(parts), AT(finish_name), AT(finish_why), AT(blocked)};
static const struct reply_layout layout = {sizeof(struct gemini_reply), bufs, ARRAY_LEN(bufs)};

static struct reply *gemini_reply_new(reply_event_fn *on_reply, void *ctx) {
    struct gemini_reply *reply = reply_new(&layout, on_reply, ctx);
    reply->usage = USAGE_UNKNOWN;
    return &reply->base;
}

/* Replace the contents of `buf`, if `string` is a string. */
static void gemini_reply_set(struct buf *buf, struct json string) {
    if (string.kind != JSON_STRING) return;
    buf_clear(buf);
    json_text(string, buf);
}

/* --- parts -------------------------------------------------------------------------------- */

static void gemini_reply_take_text(struct gemini_reply *reply, struct json part) {
    bool thought = json_find(part, STR("thought")).kind == JSON_TRUE;
    buf_clear(&reply->text);
    gemini_reply_set(&reply->text, json_find(part, STR("text")));
    if (reply->text.len == 0) return;
    reply_tell(&reply->base, &(struct reply_event){thought ? REPLY_THINKING : REPLY_TEXT,
                                                   .text = buf_str(&reply->text)});
}

/* A call arrives whole, mostly without an id; the listener then gives it one. */
static void gemini_reply_take_call(struct gemini_reply *reply, struct json part) {
    struct json call = json_find(part, STR("functionCall"));
    if (call.kind != JSON_OBJECT) return;
    struct json args = json_find(call, STR("args"));
    bool any = !json_is_absent(args);
    buf_clear(&reply->call_id);
    buf_clear(&reply->name);
    buf_clear(&reply->args);
    gemini_reply_set(&reply->call_id, json_find(call, STR("id")));
    gemini_reply_set(&reply->name, json_find(call, STR("name")));
    json_compact(any ? args.raw : STR("{}"), &reply->args);
    reply->called = true;
    if (reply->name.len == 0) reply->unfit = true;
    reply_tell(&reply->base, &(struct reply_event){
                                 REPLY_TOOL_CALL, .call_id = buf_str(&reply->call_id),
                                 .tool = buf_str(&reply->name), .args = buf_str(&reply->args)});
}

/* Keep each part as received. Parts are never merged, because a signature belongs to its
 * part. */
static void keep_part(struct gemini_reply *reply, struct json part) {
    if (part.kind != JSON_OBJECT) return;
    if (reply->parts.len) buf_append_byte(&reply->parts, ',');
    json_compact(part.raw, &reply->parts);
    if (json_find(part, STR("thoughtSignature")).kind == JSON_STRING) reply->is_signed = true;
}

/* A finish reason ends the answer. Older models send one in every response of a stream, so
 * parts in a response that has another one still belong to the answer. */
static void take_candidate(struct gemini_reply *reply, struct json candidate) {
    struct json parts = json_find(json_find(candidate, STR("content")), STR("parts")), part;
    struct json finish = json_find(candidate, STR("finishReason"));
    if (reply->base.finished && finish.kind != JSON_STRING) return;
    for (struct json_reader at = json_enter(parts); json_next_item(&at, &part);) {
        keep_part(reply, part);
        gemini_reply_take_text(reply, part);
        gemini_reply_take_call(reply, part);
    }
    gemini_reply_set(&reply->finish_name, finish);
    gemini_reply_set(&reply->finish_why, json_find(candidate, STR("finishMessage")));
    if (reply->finish_name.len) reply->base.finished = true;
}

/* --- responses ---------------------------------------------------------------------------- */

/* Counts are totals of the reply so far, so the latest replaces the earlier one. */
static void gemini_reply_take_usage(struct event_usage *into, struct json usage) {
    reply_take_tokens(usage, STR("promptTokenCount"), &into->prompt);
    reply_take_tokens(usage, STR("candidatesTokenCount"), &into->completion);
    reply_take_tokens(usage, STR("totalTokenCount"), &into->total);
    reply_take_tokens(usage, STR("toolUsePromptTokenCount"), &into->tool_use);
    reply_take_tokens(usage, STR("thoughtsTokenCount"), &into->thoughts);
    reply_take_tokens(usage, STR("cachedContentTokenCount"), &into->cached);
}

static bool take_response(struct gemini_reply *reply, struct json response) {
    if (json_find(response, STR("error")).kind == JSON_OBJECT) {
        reply_failure_of("Gemini", 0, response, &reply->base.failure);
        return false;
    }
    gemini_reply_set(&reply->model, json_find(response, STR("modelVersion")));
    gemini_reply_take_usage(&reply->usage, json_find(response, STR("usageMetadata")));
    struct json feedback = json_find(response, STR("promptFeedback"));
    gemini_reply_set(&reply->blocked, json_find(feedback, STR("blockReason")));
    take_candidate(reply, json_at(json_find(response, STR("candidates")), 0));
    return reply_check_size(&reply->base, "Gemini");
}

/* Errors come in an array, and so do whole answers of servers that cannot send events. */
static bool gemini_reply_read(struct reply *base, struct json answer) {
    struct gemini_reply *reply = (struct gemini_reply *)base;
    struct json item;
    if (answer.kind != JSON_ARRAY) return take_response(reply, answer);
    for (struct json_reader at = json_enter(answer); json_next_item(&at, &item);) {
        if (!take_response(reply, item)) return false;
    }
    return true;
}

static bool gemini_reply_feed(struct reply *base, const struct sse_event *event) {
    struct err e;
    struct json json;
    if (base->stopped || base->over) return true;
    base->over = str_equal(event->data, STR("[DONE]")); /* some gateways add it */
    if (base->over) return true;
    if (!json_read(event->data, &json, &e))
        return reply_fail(base, ERR_UNAVAILABLE, PROVIDER_BROKEN,
                          "Gemini sent an event that is no JSON: %s", e.text);
    return gemini_reply_read(base, json);
}

/* --- the end ------------------------------------------------------------------------------ */

/* The sum of the known counts; this API leaves out zeros. */
static int64_t sum(int64_t a, int64_t b) {
    if (a == TOKENS_UNKNOWN) return b;
    return b == TOKENS_UNKNOWN ? a : a + b;
}

/* This API counts thoughts separately from the answer, and tokens read by its own tools
 * separately from the prompt. event_usage includes them in completion and prompt. */
static void gemini_reply_tell_usage(const struct gemini_reply *reply) {
    struct event_usage usage = reply->usage;
    usage.model = buf_str(&reply->model);
    usage.prompt = sum(usage.prompt, usage.tool_use);
    usage.completion = sum(usage.completion, usage.thoughts);
    reply_tell(&reply->base, &(struct reply_event){REPLY_USAGE, .usage = &usage});
}

/* Signatures are needed again only in a round of tool calls. */
static void tell_opaque(struct gemini_reply *reply) {
    if (!reply->is_signed || !reply->called || reply->unfit || reply->base.stopped) return;
    reply_tell_opaque(&reply->base, "gemini", &reply->parts);
}

/* "SAFETY", or "MALFORMED_FUNCTION_CALL: print(...)". */
static void gemini_reply_say(struct buf *out, const struct buf *name, const struct buf *why) {
    reply_append_safe(out, buf_str(name), 60);
    if (why->len) buf_append(out, STR(": "));
    reply_append_safe(out, buf_str(why), 240);
}

static enum reply_outcome gemini_reply_fail_refused(struct gemini_reply *reply) {
    struct buf why;
    buf_init(&why, ERR_TEXT_BYTES);
    gemini_reply_say(&why, &reply->finish_name, &reply->finish_why);
    reply_fail(&reply->base, ERR_PERMISSION_DENIED, MODEL_REFUSED,
               "the model refused to answer (" STR_FMT ")", STR_ARG(buf_str(&why)));
    buf_done(&why);
    return OUTCOME_FAILED;
}

static enum reply_outcome fail_blocked(struct gemini_reply *reply) {
    struct buf why;
    buf_init(&why, ERR_TEXT_BYTES);
    reply_append_safe(&why, buf_str(&reply->blocked), 60);
    reply_fail(&reply->base, ERR_PERMISSION_DENIED, MODEL_REFUSED,
               "Gemini blocked the question (" STR_FMT ")", STR_ARG(buf_str(&why)));
    buf_done(&why);
    return OUTCOME_FAILED;
}

static enum reply_outcome fail_unfinished(struct gemini_reply *reply) {
    struct buf why;
    buf_init(&why, ERR_TEXT_BYTES);
    gemini_reply_say(&why, &reply->finish_name, &reply->finish_why);
    reply_fail(&reply->base, ERR_UNAVAILABLE, PROVIDER_ERROR,
               "the model could not finish its answer (" STR_FMT "); ask again",
               STR_ARG(buf_str(&why)));
    buf_done(&why);
    return OUTCOME_FAILED;
}

static const struct finish *find_finish(const struct gemini_reply *reply) {
    for (size_t i = 0; i < ARRAY_LEN(finishes); i++) {
        if (str_equal(buf_str(&reply->finish_name), finishes[i].name)) return &finishes[i];
    }
    return NULL;
}

static enum reply_outcome gemini_reply_end(struct reply *base, struct str *ret_model) {
    struct gemini_reply *reply = (struct gemini_reply *)base;
    const struct finish *finish = find_finish(reply);
    *ret_model = buf_str(&reply->model);
    bool fails = !finish || finish->outcome == OUTCOME_FAILED;
    if (reply->usage.prompt != TOKENS_UNKNOWN || !fails) gemini_reply_tell_usage(reply);

    if (finish && finish->outcome == OUTCOME_FAILED) return gemini_reply_fail_refused(reply);
    if (!finish && reply->finish_name.len) return fail_unfinished(reply);
    if (!finish && reply->blocked.len) return fail_blocked(reply);
    if (!finish) {
        reply_fail(base, ERR_UNAVAILABLE, PROVIDER_BROKEN,
                   "Gemini's answer broke off before its end; ask again");
        return OUTCOME_FAILED;
    }
    tell_opaque(reply);
    return finish->outcome;
}

const struct reply_reader gemini_reader = {
    .begin = gemini_reply_new,
    .feed = gemini_reply_feed,
    .read = gemini_reply_read,
    .end = gemini_reply_end,
    .free = reply_free,
};
