#include "provider/gather.h"

#include "base/mem.h"

#include <stdlib.h>

#define REFUSAL_SHOWN_BYTES 300

void gather_init(struct gather *gather) {
    *gather = (struct gather){.usage = USAGE_UNKNOWN};
    struct buf *const bufs[] = {&gather->model, &gather->refusal, &gather->opaque,
                                &gather->text};
    for (size_t i = 0; i < ARRAY_LEN(bufs); i++) buf_init(bufs[i], REPLY_MAX_BYTES);
}

void gather_done(struct gather *gather) {
    for (size_t i = 0; i < gather->call_count; i++) {
        struct gathered_call *call = &gather->calls[i];
        buf_done(&call->item);
        buf_done(&call->id);
        buf_done(&call->tool);
        buf_done(&call->args);
    }
    free(gather->calls);
    buf_done(&gather->model);
    buf_done(&gather->refusal);
    buf_done(&gather->opaque);
    buf_done(&gather->text);
}

struct gathered_call *gather_call(struct gather *gather, int64_t index) {
    gather->calls_full |= gather->call_count == GATHER_CALLS_MAX;
    if (gather->calls_full) return NULL;
    size_t count = ++gather->call_count;
    gather->calls = mem_resize(gather->calls, count * sizeof *gather->calls);
    struct gathered_call *call = &gather->calls[count - 1];
    call->index = index;
    buf_init(&call->item, REPLY_MAX_BYTES);
    buf_init(&call->id, REPLY_MAX_BYTES);
    buf_init(&call->tool, REPLY_MAX_BYTES);
    buf_init(&call->args, REPLY_MAX_BYTES);
    return call;
}

/* --- values ------------------------------------------------------------------------------- */

void gather_replace(struct buf *out, struct json string) {
    if (string.kind != JSON_STRING || json_is(string, STR_EMPTY)) return;
    buf_clear(out);
    json_text(string, out);
}

/* The text of `string`: as it stands where nothing is escaped, else in the gather's buffer. */
static struct str lent_text(struct gather *gather, struct json string) {
    struct str inner = str_of(string.raw.at + 1, string.raw.len - 2);
    if (inner.len <= REPLY_MAX_BYTES && str_find_byte(inner, '\\') == inner.len) return inner;
    buf_clear(&gather->text);
    return json_text(string, &gather->text) ? buf_str(&gather->text) : STR_EMPTY;
}

void gather_lend(struct gather *gather, struct reply *reply, enum reply_kind kind,
                 struct json string) {
    if (reply->stopped || string.kind != JSON_STRING) return;
    struct str text = lent_text(gather, string);
    if (text.len) reply_tell(reply, &(struct reply_event){kind, .text = text});
}

int64_t gather_count(struct json object, const char *key) {
    int64_t count;
    if (!json_i64(json_find(object, str_from(key)), &count)) return TOKENS_UNKNOWN;
    return count < 0 ? TOKENS_UNKNOWN : count;
}

/* --- the end ------------------------------------------------------------------------------ */

/* The call's id; empty when an earlier call has the same one. */
static struct str own_id(const struct gather *gather, size_t index) {
    struct str id = buf_str(&gather->calls[index].id);
    for (size_t i = 0; i < index; i++) {
        if (str_equal(buf_str(&gather->calls[i].id), id)) return STR_EMPTY;
    }
    return id;
}

static void tell_calls(struct gather *gather, struct reply *reply, enum reply_outcome outcome) {
    for (size_t i = 0; i < gather->call_count && !reply->stopped; i++) {
        const struct gathered_call *call = &gather->calls[i];
        if (outcome == OUTCOME_CUT && !json_reads_as_object(buf_str(&call->args))) continue;
        reply_tell(reply, &(struct reply_event){REPLY_TOOL_CALL, .call_id = own_id(gather, i),
                                                .tool = buf_str(&call->tool),
                                                .args = buf_str(&call->args)});
    }
    reply->calls_passed_over = gather->calls_full;
}

static void tell_usage(struct gather *gather, struct reply *reply) {
    gather->usage.model = buf_str(&gather->model);
    reply_tell(reply, &(struct reply_event){REPLY_USAGE, .usage = &gather->usage});
}

void gather_tell(struct gather *gather, struct reply *reply, struct str dialect,
                 enum reply_outcome outcome) {
    tell_calls(gather, reply, outcome);
    if (gather->opaque.len)
        reply_tell(reply, &(struct reply_event){REPLY_OPAQUE, .dialect = dialect,
                                                .text = buf_str(&gather->opaque)});
    tell_usage(gather, reply);
}

void gather_tell_usage(struct gather *gather, struct reply *reply) {
    if (gather->usage_seen) tell_usage(gather, reply);
}

/* Fail the reply with the model's own refusal, or with `otherwise` if it gave none. */
static bool gather_refused(struct gather *gather, struct reply *reply, const char *otherwise) {
    if (gather->refusal.len == 0)
        return reply_fail(reply, ERR_PERMISSION_DENIED, MODEL_REFUSED, "%s", otherwise);
    struct buf said;
    buf_init(&said, KIB);
    reply_append_safe(&said, buf_str(&gather->refusal), REFUSAL_SHOWN_BYTES);
    reply_fail(reply, ERR_PERMISSION_DENIED, MODEL_REFUSED, MODEL_REFUSED_SAYING STR_FMT,
               STR_ARG(buf_str(&said)));
    reply->failure.said = true;
    buf_done(&said);
    return false;
}

enum reply_outcome gather_outcome(struct gather *gather, struct reply *reply,
                                  enum gather_end end) {
    if (end == GATHER_OPEN) {
        reply_fail(reply, ERR_UNAVAILABLE, PROVIDER_BROKEN,
                   "the provider's answer ended before it was complete");
        return OUTCOME_FAILED;
    }
    if (end == GATHER_FILTERED || gather->refusal.len) {
        gather_refused(gather, reply, "the provider's content filter cut the answer");
        return OUTCOME_FAILED;
    }
    return end == GATHER_CUT ? OUTCOME_CUT : OUTCOME_DONE;
}
