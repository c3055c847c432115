#include "contract/completion.h"

#include "contract/event_id.h"
#include "provider/dialect.h"
#include "turn/guarded.h"
#include "wire/event_json.h"

#define CALLS_MAX_BYTES (16 * MIB)

void completion_init(struct completion *completion) {
    *completion = (struct completion){.run = 0};
    buf_init(&completion->reply, COMPLETION_TEXT_MAX_BYTES);
    buf_init(&completion->reasoning, COMPLETION_TEXT_MAX_BYTES);
    buf_init(&completion->calls, CALLS_MAX_BYTES);
}

void completion_done(struct completion *completion) {
    text_done(&completion->model);
    text_done(&completion->session);
    text_done(&completion->stop);
    buf_done(&completion->reply);
    buf_done(&completion->reasoning);
    buf_done(&completion->calls);
}

/* --- events ------------------------------------------------------------------------------- */

static void add_tokens(int64_t *sum, int64_t more) {
    *sum = *sum == TOKENS_UNKNOWN || more == TOKENS_UNKNOWN ? TOKENS_UNKNOWN
                                                            : usage_sum(*sum, more);
}

/* Details that a provider does not report are none. */
static void add_details(int64_t *sum, int64_t more) {
    *sum = usage_sum(*sum, more == TOKENS_UNKNOWN ? 0 : more);
}

static void note_usage(struct completion *completion, const struct event_usage *more) {
    struct event_usage *sums = &completion->usage;
    if (!completion->usage_known) *sums = (struct event_usage){.prompt = 0};
    completion->usage_known = true;
    add_tokens(&sums->prompt, more->prompt);
    add_tokens(&sums->completion, more->completion);
    add_details(&sums->cached, more->cached);
    add_details(&sums->thoughts, more->thoughts);
}

void completion_write_call(const struct event *event, struct json_writer *json) {
    json_member_str(json, "id", event->tool_call.call_id);
    json_member_str(json, "type", STR("function"));
    json_member_object(json, "function");
    json_member_str(json, "name", event->tool_call.tool);
    json_member_str(json, "arguments", event->tool_call.args);
    json_close(json);
}

static void note_call(struct completion *completion, const struct event *event) {
    struct json_writer json = json_writer(&completion->calls);
    if (completion->call_count++) buf_append_byte(&completion->calls, ',');
    json_open_object(&json);
    completion_write_call(event, &json);
    json_close(&json);
}

static void note_started(struct completion *completion, const struct event *event) {
    if (completion->model.len == 0) completion->model = text_copy(event->agent);
    if (completion->session.len == 0) completion->session = text_copy(event->started.session);
}

static void note_text(struct completion *completion, bool seam, struct str text) {
    if (seam) buf_clear(&completion->reply);
    buf_append(&completion->reply, text);
}

static void note_end(struct completion *completion, bool cut, struct str stop) {
    struct buf text;
    buf_init(&text, stop.len + 1);
    completion->cut = cut;
    text_done(&completion->stop);
    if (stop.len) json_text(json_of(stop), &text);
    completion->stop = text_copy(buf_str(&text));
    buf_done(&text);
}

static void note_step(struct completion *completion, const struct event *event) {
    bool cut = str_equal(event->step.description, STR(PROVIDER_CUT_NOTE));
    bool stopped = str_equal(event->step.description, STR(PROVIDER_STOP_NOTE));
    if (cut || stopped) note_end(completion, cut, event->step.result);
}

bool completion_note(struct completion *completion, const struct event *event) {
    bool seam = seam_before(&completion->seam, event, SEAM_OF_STREAM);
    switch (event->kind) {
    case EVENT_STARTED: note_started(completion, event); break;
    case EVENT_TEXT:
        if (seam) note_end(completion, false, STR_EMPTY);
        if (completion->keeps_text) note_text(completion, seam, event->text.text);
        break;
    case EVENT_THINKING:
        if (completion->keeps_text) buf_append(&completion->reasoning, event->thinking.text);
        break;
    case EVENT_TOOL_CALL:
        if (event->tool_call.callers) note_call(completion, event);
        break;
    case EVENT_STEP: note_step(completion, event); break;
    case EVENT_USAGE: note_usage(completion, &event->usage); break;
    case EVENT_TOOL_RESULT: note_end(completion, false, STR_EMPTY); break; /* a next reply */
    case EVENT_AUDIO:
    case EVENT_APPROVAL:
    case EVENT_ITEM:
    case EVENT_DONE:
    case EVENT_FAILED:
    case EVENT_CANCELLED:
    case EVENT_KIND_COUNT: break;
    }
    return seam;
}

bool completion_knows_usage(const struct completion *completion) {
    return completion->usage_known && completion->usage.prompt != TOKENS_UNKNOWN &&
           completion->usage.completion != TOKENS_UNKNOWN;
}

/* --- the end ------------------------------------------------------------------------------ */

void completion_append_question(const struct event *event, struct buf *out) {
    buf_append(out, event->approval.question);
    if (event->approval.guards.len) buf_append(out, STR("\n\nAnswer yes or no."));
}

/* The final replies, with a blank line between two agents. Of a shaped answer the last one is
 * the JSON. */
static void append_turns(const struct completion *completion, struct str turns,
                         struct buf *out) {
    struct event_turn turn;
    size_t begin = out->len;
    while (event_turn_next(&turns, &turn)) {
        if (completion->shaped) out->len = begin;
        if (out->len > begin) buf_append(out, STR(SEAM_TEXT));
        buf_append(out, turn.text);
    }
}

void completion_append_text(const struct completion *completion, const struct event *last,
                            struct buf *out) {
    if (last->kind == EVENT_APPROVAL) {
        if (completion->reply.len) {
            buf_append(out, buf_str(&completion->reply));
            buf_append(out, STR(SEAM_TEXT));
        }
        completion_append_question(last, out);
    } else if (last->kind == EVENT_DONE && !completion->call_count) {
        append_turns(completion, last->done.turns, out);
    } else {
        buf_append(out, buf_str(&completion->reply));
    }
}

bool completion_is_filtered(const struct event *last) {
    return last && last->kind == EVENT_FAILED &&
           (str_equal(last->failed.reason, STR(GUARDRAIL_BLOCKED)) ||
            str_equal(last->failed.reason, STR(MODEL_REFUSED)));
}

struct str completion_refusal(const struct event *last) {
    struct str message = last->failed.message, saying = STR(MODEL_REFUSED_SAYING);
    return str_starts(message, saying) ? str_skip(message, saying.len) : message;
}

struct str completion_finish_reason(const struct completion *completion,
                                    const struct event *last) {
    if (completion_is_filtered(last)) return STR("content_filter");
    if (last->kind == EVENT_DONE && completion->call_count) return STR("tool_calls");
    return last->kind == EVENT_DONE && completion->cut ? STR("length") : STR("stop");
}

/* --- our own member ----------------------------------------------------------------------- */

/* On one line, as a frame is. */
static void write_compact(struct json_writer *json, struct str raw) {
    struct buf out;
    buf_init(&out, raw.len + 1);
    json_compact(raw, &out);
    json_write_raw(json, buf_str(&out));
    buf_done(&out);
}

static void write_approval(const struct completion *completion, const struct event *event,
                           struct json_writer *json) {
    json_member_object(json, "approval");
    event_id_write(json, "id", completion->run, event->seq);
    json_member_str(json, "question", event->approval.question);
    if (event->approval.tool.len) json_member_str(json, "tool", event->approval.tool);
    if (event->approval.args.len) {
        json_key(json, STR("args"));
        write_compact(json, event->approval.args);
    }
    json_close(json);
}

void completion_write_weir(const struct completion *completion, const struct event *last,
                           struct json_writer *json) {
    json_member_object(json, "weir");
    event_json_id(json, "run", completion->run);
    json_member_str(json, "session", text_str(completion->session));
    if (last && last->kind == EVENT_APPROVAL) write_approval(completion, last, json);
    json_close(json);
}
