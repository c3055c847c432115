/* Reads an answer of Chat Completions. */
#include "provider/gather.h"

struct openai_reply {
    struct reply base;
    struct gather gather;
    enum gather_end state; /* how the stream ends, as far as known */
    struct buf reasoning;  /* reasoning_content so far */
    bool reasoning_seen;   /* it was a string, perhaps an empty one */
    struct buf details;    /* reasoning_details so far: items, each followed by a comma */
    int64_t like_index;    /* of the call whose arguments the template carries */
};

/* What a chunk says, if it is nothing but texts: values that differ in the next such chunk. */
enum {
    LIKE_CONTENT,
    LIKE_PLAIN,
    LIKE_REASONING,
    LIKE_ARGS,
    LIKE_CREATED, /* two members that say nothing to us, and often differ */
    LIKE_PADDING,
    LIKE_VALUES
};
_Static_assert(LIKE_VALUES <= JSON_TEMPLATE_VALUES_MAX, "a template has room for them");

struct likeness {
    bool texts_only;
    size_t choices;
    struct json values[LIKE_VALUES];
    int64_t call_index;
};

/* --- reasoning ---------------------------------------------------------------------------- */

/* The member of an item of reasoning_details whose text grows over several items. The other
 * members come once. */
static const char *text_member(struct json detail) {
    struct json type = json_find(detail, STR("type"));
    if (json_is(type, STR("reasoning.text"))) return "text";
    return json_is(type, STR("reasoning.summary")) ? "summary" : NULL;
}

static bool openai_reply_goes_on(struct json detail, struct json next) {
    const char *member = text_member(detail), *next_member = text_member(next);
    struct json index = json_find(detail, STR("index"));
    return member && member == next_member &&
           str_equal(index.raw, json_find(next, STR("index")).raw);
}

/* Write `first` and the pieces that continue it as one item; the reader moves past them. */
static void openai_reply_put_detail(struct json_writer *w, struct json first,
                                    struct json_reader *rest) {
    const char *member = text_member(first);
    struct json_reader ahead = *rest;
    struct json next;
    if (!member || !json_next_item(&ahead, &next) || !openai_reply_goes_on(first, next)) {
        json_write_raw(w, first.raw);
        return;
    }
    static const char *const once[] = {"id", "format", "index", "signature"};
    struct str found[ARRAY_LEN(once)] = {{0}};
    struct buf text;
    buf_init(&text, REPLY_MAX_BYTES);
    for (struct json piece = first;;) {
        json_text(json_find(piece, str_from(member)), &text);
        for (size_t i = 0; i < ARRAY_LEN(once); i++) {
            struct json value = json_find(piece, str_from(once[i]));
            if (value.kind != JSON_NONE && (value.kind != JSON_NULL || !found[i].len))
                found[i] = value.raw;
        }
        ahead = *rest;
        if (!json_next_item(&ahead, &next) || !openai_reply_goes_on(first, next)) break;
        *rest = ahead;
        piece = next;
    }
    json_open_object(w);
    json_member_raw(w, "type", json_find(first, STR("type")).raw);
    json_member_str(w, member, buf_str(&text));
    for (size_t i = 0; i < ARRAY_LEN(once); i++) {
        if (found[i].len) json_member_raw(w, once[i], found[i]);
    }
    json_close(w);
    buf_done(&text);
}

static void put_details(struct json_writer *w, struct str items) {
    struct buf list;
    struct json all, detail;
    struct err e;
    buf_init(&list, REPLY_MAX_BYTES + 2);
    buf_append_byte(&list, '[');
    buf_append(&list, str_head(items, items.len - 1)); /* without the final comma */
    buf_append_byte(&list, ']');
    json_member_array(w, "reasoning_details");
    if (buf_ok(&list) && json_read(buf_str(&list), &all, &e)) {
        struct json_reader reader = json_enter(all);
        while (json_next_item(&reader, &detail)) openai_reply_put_detail(w, detail, &reader);
    }
    json_close(w);
    buf_done(&list);
}

/* Write what the next request must send back. DeepSeek refuses a message with calls without its
 * reasoning, even an empty one; its older models refuse reasoning in any other message. */
static void openai_reply_write_opaque(struct openai_reply *reply) {
    struct gather *gather = &reply->gather;
    bool wanted = reply->reasoning_seen && gather->call_count > 0;
    if (!reply->details.len && !wanted) return;
    struct json_writer w = json_writer(&gather->opaque);
    json_open_object(&w);
    if (reply->details.len) {
        put_details(&w, buf_str(&reply->details));
    } else {
        json_member_str(&w, "reasoning_content", buf_str(&reply->reasoning));
    }
    json_close(&w);
    if (!buf_ok(&gather->opaque)) buf_clear(&gather->opaque);
}

/* Report only one of them: OpenRouter sends the same text twice, and vLLM renamed its field. */
static void take_reasoning(struct openai_reply *reply, struct json plain, struct json content,
                           struct json details) {
    struct json detail;
    bool has_reasoning = plain.kind == JSON_STRING || content.kind == JSON_STRING;
    if (!has_reasoning && details.kind != JSON_ARRAY) return;
    if (content.kind == JSON_STRING) {
        reply->reasoning_seen = true;
        json_text(content, &reply->reasoning);
    }
    struct json_reader reader = json_enter(details);
    while (details.kind == JSON_ARRAY && json_next_item(&reader, &detail)) {
        const char *member = text_member(detail);
        if (json_compact(detail.raw, &reply->details)) buf_append_byte(&reply->details, ',');
        if (member && !has_reasoning)
            gather_lend(&reply->gather, &reply->base, REPLY_THINKING,
                        json_find(detail, str_from(member)));
    }
    bool plain_says = plain.kind == JSON_STRING && !json_is(plain, STR_EMPTY);
    gather_lend(&reply->gather, &reply->base, REPLY_THINKING, plain_says ? plain : content);
}

/* --- text --------------------------------------------------------------------------------- */

/* Mistral's reasoning models send content in parts: text, and thinking that contains texts. */
static void take_parts(struct openai_reply *reply, struct json parts) {
    struct json_reader reader = json_enter(parts), inner;
    struct json part, piece;
    while (json_next_item(&reader, &part)) {
        gather_lend(&reply->gather, &reply->base, REPLY_TEXT, json_find(part, STR("text")));
        struct json thinking = json_find(part, STR("thinking"));
        inner = json_enter(thinking);
        while (thinking.kind == JSON_ARRAY && json_next_item(&inner, &piece))
            gather_lend(&reply->gather, &reply->base, REPLY_THINKING,
                        json_find(piece, STR("text")));
    }
}

static void openai_reply_take_content(struct openai_reply *reply, struct json content) {
    if (content.kind == JSON_ARRAY) {
        take_parts(reply, content);
    } else {
        gather_lend(&reply->gather, &reply->base, REPLY_TEXT, content);
    }
}

/* --- calls -------------------------------------------------------------------------------- */

/* A piece of a call. */
struct fragment {
    int64_t index; /* CALL_INDEX_NONE: none was given */
    struct json id, name, args;
};

static bool says(struct json string) {
    return string.kind == JSON_STRING && !json_is(string, STR_EMPTY);
}

/* Whether `fragment` really continues `call`, which has the same index or is the newest. Ollama
 * and Gemini number complete calls 0, 0, 0, or send no ids. So a new id begins a new call, and
 * so does a name after complete arguments. */
static bool goes_on_with(const struct gathered_call *call, const struct fragment *fragment) {
    if (says(fragment->id) && call->id.len) return json_is(fragment->id, buf_str(&call->id));
    return !says(fragment->name) || !json_reads_as_object(buf_str(&call->args));
}

static struct gathered_call *openai_reply_call_of(struct gather *gather,
                                                  const struct fragment *fragment) {
    for (size_t i = gather->call_count; i-- > 0;) {
        struct gathered_call *call = &gather->calls[i];
        bool counted = fragment->index != CALL_INDEX_NONE;
        if (counted && call->index != fragment->index) continue;
        if (goes_on_with(call, fragment)) return call;
        if (!says(fragment->id)) return NULL; /* without an id: the newest or none */
    }
    return NULL;
}

/* Arguments with an index of their own begin a call too, even without a name. */
static bool begins_call(const struct fragment *fragment) {
    bool placed = fragment->index != CALL_INDEX_NONE;
    bool argues = says(fragment->args) || fragment->args.kind == JSON_OBJECT;
    return says(fragment->id) || says(fragment->name) || (placed && argues);
}

static void openai_reply_take_call(struct openai_reply *reply,
                                   const struct fragment *fragment) {
    struct gather *gather = &reply->gather;
    struct gathered_call *call = openai_reply_call_of(gather, fragment);
    if (!call && begins_call(fragment)) call = gather_call(gather, fragment->index);
    if (!call) return; /* nothing to continue, or too many calls */
    gather_replace(&call->id, fragment->id);
    gather_replace(&call->tool, fragment->name);
    if (fragment->args.kind == JSON_OBJECT) {
        json_compact(fragment->args.raw, &call->args);
    } else {
        json_text(fragment->args, &call->args);
    }
}

static struct fragment fragment_of(struct json item) {
    struct json function = json_find(item, STR("function"));
    struct fragment fragment = {.index = CALL_INDEX_NONE,
                                .id = json_find(item, STR("id")),
                                .name = json_find(function, STR("name")),
                                .args = json_find(function, STR("arguments"))};
    int64_t index;
    if (json_i64(json_find(item, STR("index")), &index) && index >= 0) fragment.index = index;
    return fragment;
}

/* More arguments of one call are a text; all other calls are not. */
static void compare_call(struct likeness *like, const struct fragment *fragment) {
    bool more = !says(fragment->id) && !says(fragment->name);
    bool first = like->values[LIKE_ARGS].kind == JSON_NONE;
    like->texts_only &= more && first && fragment->args.kind == JSON_STRING;
    like->values[LIKE_ARGS] = fragment->args;
    like->call_index = fragment->index;
}

/* `old` is function_call, which the API had before a reply could have several calls. */
static void take_calls(struct openai_reply *reply, struct json calls, struct json old,
                       struct likeness *like) {
    struct json item;
    struct json_reader reader = json_enter(calls);
    while (calls.kind == JSON_ARRAY && json_next_item(&reader, &item)) {
        struct fragment fragment = fragment_of(item);
        openai_reply_take_call(reply, &fragment);
        compare_call(like, &fragment);
    }
    if (old.kind != JSON_OBJECT) return;
    like->texts_only = false;
    openai_reply_take_call(reply, &(struct fragment){.index = CALL_INDEX_NONE,
                                                     .name = json_find(old, STR("name")),
                                                     .args = json_find(old, STR("arguments"))});
}

/* --- usage -------------------------------------------------------------------------------- */

static void openai_reply_take_usage(struct openai_reply *reply, struct json usage) {
    struct event_usage *seen = &reply->gather.usage;
    if (usage.kind != JSON_OBJECT) return;
    reply->gather.usage_seen = true;
    seen->prompt = gather_count(usage, "prompt_tokens");
    seen->completion = gather_count(usage, "completion_tokens");
    seen->total = gather_count(usage, "total_tokens");
    if (seen->total == TOKENS_UNKNOWN && seen->prompt >= 0 && seen->completion >= 0 &&
        seen->prompt <= INT64_MAX - seen->completion)
        seen->total = seen->prompt + seen->completion;
    seen->cached =
        gather_count(json_find(usage, STR("prompt_tokens_details")), "cached_tokens");
    if (seen->cached == TOKENS_UNKNOWN) /* DeepSeek */
        seen->cached = gather_count(usage, "prompt_cache_hit_tokens");
    seen->thoughts =
        gather_count(json_find(usage, STR("completion_tokens_details")), "reasoning_tokens");
}

/* --- a chunk ------------------------------------------------------------------------------ */

static void take_finish(struct openai_reply *reply, struct json finish) {
    if (!says(finish)) return;
    reply->base.finished = true;
    reply->state = GATHER_FINISHED;
    if (json_is(finish, STR("length"))) reply->state = GATHER_CUT;
    if (json_is(finish, STR("content_filter"))) reply->state = GATHER_FILTERED;
}

/* A chunk arrives for every token, so its members are found in one walk. */
enum {
    DELTA_CONTENT,
    DELTA_PLAIN,
    DELTA_REASONING,
    DELTA_DETAILS,
    DELTA_REFUSAL,
    DELTA_CALLS,
    DELTA_OLD_CALL,
    DELTA_KEYS
};
static const struct str delta_keys[DELTA_KEYS] = {
    /* clang-format off */
    [DELTA_CONTENT]   = STR_INIT("content"),
    [DELTA_PLAIN]     = STR_INIT("reasoning"),
    [DELTA_REASONING] = STR_INIT("reasoning_content"),
    [DELTA_DETAILS]   = STR_INIT("reasoning_details"),
    [DELTA_REFUSAL]   = STR_INIT("refusal"),
    [DELTA_CALLS]     = STR_INIT("tool_calls"),
    [DELTA_OLD_CALL]  = STR_INIT("function_call"),
    /* clang-format on */
};

static void take_delta(struct openai_reply *reply, struct json delta, struct likeness *like) {
    struct json at[DELTA_KEYS];
    json_find_each(delta, delta_keys, DELTA_KEYS, at);
    take_reasoning(reply, at[DELTA_PLAIN], at[DELTA_REASONING], at[DELTA_DETAILS]);
    openai_reply_take_content(reply, at[DELTA_CONTENT]);
    json_text(at[DELTA_REFUSAL], &reply->gather.refusal);
    like->texts_only &= at[DELTA_DETAILS].kind != JSON_ARRAY &&
                        at[DELTA_CONTENT].kind != JSON_ARRAY &&
                        at[DELTA_REFUSAL].kind != JSON_STRING;
    like->values[LIKE_CONTENT] = at[DELTA_CONTENT];
    like->values[LIKE_PLAIN] = at[DELTA_PLAIN];
    like->values[LIKE_REASONING] = at[DELTA_REASONING];
    take_calls(reply, at[DELTA_CALLS], at[DELTA_OLD_CALL], like);
}

enum { CHOICE_INDEX, CHOICE_DELTA, CHOICE_MESSAGE, CHOICE_FINISH, CHOICE_USAGE, CHOICE_KEYS };
static const struct str choice_keys[CHOICE_KEYS] = {
    /* clang-format off */
    [CHOICE_INDEX]   = STR_INIT("index"),
    [CHOICE_DELTA]   = STR_INIT("delta"),
    [CHOICE_MESSAGE] = STR_INIT("message"),
    [CHOICE_FINISH]  = STR_INIT("finish_reason"),
    [CHOICE_USAGE]   = STR_INIT("usage"),
    /* clang-format on */
};

static bool openai_reply_take_choice(struct openai_reply *reply, struct json choice,
                                     struct likeness *like) {
    int64_t index;
    struct json at[CHOICE_KEYS];
    json_find_each(choice, choice_keys, CHOICE_KEYS, at);
    if (json_i64(at[CHOICE_INDEX], &index) && index != 0) return true;
    bool streamed = at[CHOICE_DELTA].kind == JSON_OBJECT;
    take_delta(reply, at[streamed ? CHOICE_DELTA : CHOICE_MESSAGE], like);
    openai_reply_take_usage(reply, at[CHOICE_USAGE]); /* Moonshot */
    struct json finish = at[CHOICE_FINISH];
    like->texts_only &= at[CHOICE_USAGE].kind != JSON_OBJECT && !says(finish);
    if (json_is(finish, STR("error")))
        return reply_fail(&reply->base, ERR_UNAVAILABLE, PROVIDER_ERROR,
                          "the provider ended its answer with an error");
    if (json_is(finish, STR("insufficient_system_resource"))) /* DeepSeek */
        return reply_fail(&reply->base, ERR_UNAVAILABLE, PROVIDER_OVERLOADED,
                          "the provider had no room to finish its answer");
    take_finish(reply, finish);
    return true;
}

enum {
    CHUNK_ERROR,
    CHUNK_OBJECT,
    CHUNK_MODEL,
    CHUNK_GROQ,
    CHUNK_USAGE,
    CHUNK_CHOICES,
    CHUNK_CREATED,
    CHUNK_PADDING,
    CHUNK_KEYS
};
static const struct str chunk_keys[CHUNK_KEYS] = {
    /* clang-format off */
    [CHUNK_ERROR]   = STR_INIT("error"),
    [CHUNK_OBJECT]  = STR_INIT("object"),
    [CHUNK_MODEL]   = STR_INIT("model"),
    [CHUNK_GROQ]    = STR_INIT("x_groq"),
    [CHUNK_USAGE]   = STR_INIT("usage"),
    [CHUNK_CHOICES] = STR_INIT("choices"),
    [CHUNK_CREATED] = STR_INIT("created"),
    [CHUNK_PADDING] = STR_INIT("obfuscation"), /* against guessing words from lengths */
    /* clang-format on */
};

/* Either {"error":...} or vLLM's {"object":"error","message":...}. */
static bool openai_reply_is_error(struct str event, const struct json *at) {
    struct json error = at[CHUNK_ERROR];
    return says(error) || error.kind == JSON_OBJECT || str_equal(event, STR("error")) ||
           json_is(at[CHUNK_OBJECT], STR("error"));
}

static bool take_chunk(struct openai_reply *reply, struct str event, struct json chunk,
                       struct likeness *like) {
    struct json at[CHUNK_KEYS], choice;
    if (chunk.kind == JSON_ARRAY) chunk = json_at(chunk, 0); /* Gemini wraps its errors */
    json_find_each(chunk, chunk_keys, CHUNK_KEYS, at);
    if (openai_reply_is_error(event, at)) {
        reply_failure_of(openai_dialect.title, 0, chunk, &reply->base.failure);
        return false;
    }
    gather_replace(&reply->gather.model, at[CHUNK_MODEL]);
    struct json groq = json_find(at[CHUNK_GROQ], STR("usage"));
    openai_reply_take_usage(reply, groq);
    openai_reply_take_usage(reply, at[CHUNK_USAGE]);
    *like = (struct likeness){.texts_only = groq.kind != JSON_OBJECT &&
                                            at[CHUNK_USAGE].kind != JSON_OBJECT};
    like->values[LIKE_CREATED] = at[CHUNK_CREATED];
    like->values[LIKE_PADDING] = at[CHUNK_PADDING];
    struct json_reader reader = json_enter(at[CHUNK_CHOICES]);
    while (at[CHUNK_CHOICES].kind == JSON_ARRAY && json_next_item(&reader, &choice)) {
        like->choices++;
        if (!openai_reply_take_choice(reply, choice, like)) return false;
    }
    return true;
}

/* Read a chunk that may be the template of the next ones. */
static bool take_new_chunk(struct openai_reply *reply, struct str event, struct json chunk) {
    struct likeness like;
    if (!take_chunk(reply, event, chunk, &like)) return false;
    if (!like.texts_only || like.choices != 1) return true;
    json_template_keep(&reply->base.like, chunk.raw, like.values, LIKE_VALUES);
    reply->like_index = like.call_index;
    return true;
}

/* A chunk that differs from the one before only in its texts. */
static bool openai_reply_take_like(struct openai_reply *reply, struct str data) {
    static const struct json none = {.kind = JSON_NONE};
    struct json at[LIKE_VALUES] = {{.kind = JSON_NONE}};
    if (!json_template_match(&reply->base.like, data, at)) return false;
    take_reasoning(reply, at[LIKE_PLAIN], at[LIKE_REASONING], none);
    openai_reply_take_content(reply, at[LIKE_CONTENT]);
    if (at[LIKE_ARGS].kind == JSON_STRING)
        openai_reply_take_call(
            reply, &(struct fragment){.index = reply->like_index, .args = at[LIKE_ARGS]});
    return true;
}

/* --- the dialect's functions -------------------------------------------------------------- */

#define AT(buffer) offsetof(struct openai_reply, buffer)
static const size_t bufs[] = {AT(reasoning), AT(details)};
static const struct reply_layout layout = {sizeof(struct openai_reply), bufs, ARRAY_LEN(bufs)};

static struct reply *openai_reply_new(reply_event_fn *on_reply, void *ctx) {
    struct openai_reply *reply = reply_new(&layout, on_reply, ctx);
    gather_init(&reply->gather);
    return &reply->base;
}

static void openai_reply_free(struct reply *base) {
    if (base) gather_done(&((struct openai_reply *)base)->gather);
    reply_free(base);
}

static bool openai_reply_feed(struct reply *base, const struct sse_event *event) {
    struct openai_reply *reply = (struct openai_reply *)base;
    struct str data = str_trim(event->data);
    struct json chunk;
    struct err e;
    if (base->over || data.len == 0) return true;
    bool error = str_equal(event->type, STR("error"));
    if (!error && openai_reply_take_like(reply, data)) return true;
    json_template_forget(&base->like);
    if (str_equal(data, STR("[DONE]"))) {
        if (reply->state == GATHER_OPEN) reply->state = GATHER_FINISHED;
        base->over = true;
        return true;
    }
    if (!json_read(data, &chunk, &e))
        return reply_fail(base, ERR_UNAVAILABLE, PROVIDER_BROKEN,
                          "the provider sent an event that is no JSON");
    return take_new_chunk(reply, event->type, chunk);
}

/* A whole answer is one chunk whose choices have messages instead of deltas. */
static bool openai_reply_read(struct reply *base, struct json answer) {
    struct openai_reply *reply = (struct openai_reply *)base;
    struct likeness like;
    if (!take_chunk(reply, STR_EMPTY, answer, &like)) return false;
    bool whole = json_count(json_find(answer, STR("choices"))) > 0;
    if (whole && reply->state == GATHER_OPEN) reply->state = GATHER_FINISHED;
    return true;
}

static enum reply_outcome openai_reply_end(struct reply *base, struct str *ret_model) {
    struct openai_reply *reply = (struct openai_reply *)base;
    enum reply_outcome outcome = gather_outcome(&reply->gather, base, reply->state);
    if (outcome == OUTCOME_FAILED) {
        gather_tell_usage(&reply->gather, base);
        return OUTCOME_FAILED;
    }
    openai_reply_write_opaque(reply);
    *ret_model = buf_str(&reply->gather.model);
    gather_tell(&reply->gather, base, STR("openai"), outcome);
    return outcome;
}

const struct reply_reader openai_reader = {
    .begin = openai_reply_new,
    .feed = openai_reply_feed,
    .read = openai_reply_read,
    .end = openai_reply_end,
    .free = openai_reply_free,
};
