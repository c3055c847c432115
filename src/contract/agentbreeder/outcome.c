#include "contract/agentbreeder/outcome.h"

#include "base/arena.h"
#include "base/mem.h"
#include "contract/event_id.h"
#include "conversation/conversation.h"
#include "record/record.h"

#include <stdlib.h>
#include <time.h>

#define CALLS_MAX_BYTES (4 * MIB)
#define OUTPUT_MAX_BYTES (64 * MIB)

/* A tool call without a result so far. */
struct open_call {
    struct buf room; /* holds the three texts */
    struct str call_id, tool, args;
    int64_t at_ms;
    bool acts; /* it is not idempotent, and no human has yet to allow it */
};

void outcome_init(struct outcome *outcome) {
    *outcome = (struct outcome){.run = 0};
    buf_init(&outcome->history, CALLS_MAX_BYTES);
    acted_init(&outcome->acted);
}

void outcome_done(struct outcome *outcome) {
    for (size_t i = 0; i < outcome->open_call_count; i++)
        buf_done(&outcome->open_calls[i].room);
    free(outcome->open_calls);
    text_done(&outcome->session);
    text_done(&outcome->usage.model);
    buf_done(&outcome->history);
    acted_done(&outcome->acted);
}

/* A repeated request may omit the session. It is then taken from the run's first event. */
static void outcome_take_session(struct outcome *outcome, struct str session) {
    if (outcome->session.len || !session.len) return;
    outcome->session = text_copy(session);
}

void outcome_address(struct outcome *outcome, struct str session, bool wants_text,
                     bool names_thread) {
    outcome_take_session(outcome, session);
    outcome->wants_text = wants_text;
    outcome->names_thread = names_thread;
}

/* --- the tools of a run, for `history` ---------------------------------------------------- */

static void open_call(struct outcome *outcome, struct str call_id, struct str tool,
                      struct str args, int64_t at_ms, bool acts) {
    struct open_call opened = {
        .call_id = call_id, .tool = tool, .args = args, .at_ms = at_ms, .acts = acts};
    struct str *const texts[] = {&opened.call_id, &opened.tool, &opened.args};
    buf_keep_texts(&opened.room, texts, ARRAY_LEN(texts));
    size_t size = (outcome->open_call_count + 1) * sizeof(struct open_call);
    outcome->open_calls = mem_resize(outcome->open_calls, size);
    outcome->open_calls[outcome->open_call_count++] = opened;
}

static void forget_call(struct outcome *outcome, struct str call_id) {
    for (size_t i = 0; i < outcome->open_call_count; i++) {
        struct open_call *opened = &outcome->open_calls[i];
        if (!str_equal(opened->call_id, call_id)) continue;
        buf_done(&opened->room);
        *opened = outcome->open_calls[--outcome->open_call_count];
        return;
    }
}

/* 2026-11-21T15:58:00.123Z */
static void outcome_write_time(struct json_writer *json, const char *key, int64_t unix_ms) {
    time_t seconds = (time_t)(unix_ms / 1000);
    struct tm utc;
    gmtime_r(&seconds, &utc);
    char text[32];
    size_t len = strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &utc);
    struct buf out;
    buf_init(&out, 64);
    buf_append(&out, str_of(text, len));
    buf_printf(&out, ".%03dZ", (int)(unix_ms % 1000));
    json_member_str(json, key, buf_str(&out));
    buf_done(&out);
}

static void outcome_write_call(struct outcome *outcome, const struct open_call *opened,
                               const struct event *event, struct buf *out) {
    struct json_writer json = json_writer(out);
    json_open_object(&json);
    json_member_str(&json, "name", opened->tool);
    json_member_raw(&json, "args", opened->args);
    json_member_str(&json, "result", event->tool_result.result);
    json_member_i64(&json, "duration_ms", event->at_ms - opened->at_ms);
    outcome_write_time(&json, "started_at", outcome->started_unix_ms + opened->at_ms);
    json_close(&json);
}

/* A human has decided about a call. A reader who starts here has not seen the call itself, so
 * it is taken from the decision. */
static void open_decided(struct outcome *outcome, const struct event *event) {
    struct str call_id = event->tool_result.call_id, tool;
    struct json decision;
    struct err e;
    if (!str_starts(call_id, STR(APPROVAL_ID))) return;
    if (!json_read(event->tool_result.result, &decision, &e)) return;
    struct json args = json_find(decision, STR("args"));
    struct arena *arena = arena_new(64 * KIB);
    if (args.kind == JSON_OBJECT && json_str(json_find(decision, STR("tool")), arena, &tool)) {
        call_id = str_skip(call_id, strlen(APPROVAL_ID));
        forget_call(outcome, call_id);
        bool acts = !json_is(json_find(decision, STR("decision")), STR("refuse"));
        open_call(outcome, call_id, tool, args.raw, event->at_ms, acts);
    }
    arena_free(arena);
}

/* A call whose answer is lost has a result that says what is known (conversation/effect.h). */
static void note_acted(struct outcome *outcome, const struct open_call *opened,
                       const struct event *event) {
    enum acted_effect effect = event->tool_result.error ? ACTED_FAILED : ACTED_DONE;
    struct json result = {.kind = JSON_NONE}, known = {.kind = JSON_NONE};
    struct err e;
    if (event->tool_result.error && json_read(event->tool_result.result, &result, &e))
        known = json_find(result, STR("effect"));
    if (json_is(known, STR("none"))) return;
    if (json_is(known, STR("unknown"))) effect = ACTED_UNKNOWN;
    acted_add(&outcome->acted, opened->tool, opened->args, effect);
}

/* An entry that does not fit is left out entirely; half of one would not be JSON. */
static void outcome_close_call(struct outcome *outcome, const struct event *event) {
    for (size_t i = 0; i < outcome->open_call_count; i++) {
        struct open_call *opened = &outcome->open_calls[i];
        if (!str_equal(opened->call_id, event->tool_result.call_id)) continue;
        size_t len = outcome->history.len;
        if (len) buf_append_byte(&outcome->history, ',');
        outcome_write_call(outcome, opened, event, &outcome->history);
        if (!buf_ok(&outcome->history)) outcome->history.len = len;
        if (opened->acts) note_acted(outcome, opened, event);
        forget_call(outcome, opened->call_id);
        return;
    }
    open_decided(outcome, event);
}

/* --- usage, for a sidecar ------------------------------------------------------------------- */

static int64_t add_tokens(int64_t sum, int64_t more) {
    if (sum == TOKENS_UNKNOWN || more == TOKENS_UNKNOWN) return TOKENS_UNKNOWN;
    return usage_sum(sum, more);
}

/* A sum with an unknown part is unknown. */
static void note_usage(struct outcome *outcome, const struct event_usage *more) {
    if (!outcome->usage.known)
        outcome->usage.prompt = outcome->usage.completion = outcome->usage.total = 0;
    outcome->usage.known = true;
    outcome->usage.prompt = add_tokens(outcome->usage.prompt, more->prompt);
    outcome->usage.completion = add_tokens(outcome->usage.completion, more->completion);
    outcome->usage.total = add_tokens(outcome->usage.total, more->total);
    text_done(&outcome->usage.model);
    outcome->usage.model = text_copy(more->model);
}

static void write_count(struct json_writer *json, const char *name, int64_t tokens) {
    if (tokens != TOKENS_UNKNOWN) json_member_i64(json, name, tokens);
}

static void outcome_write_usage(const struct outcome *outcome, struct json_writer *json) {
    if (!outcome->tells_usage || !outcome->usage.known) return;
    json_member_object(json, "usage");
    write_count(json, "input_tokens", outcome->usage.prompt);
    write_count(json, "output_tokens", outcome->usage.completion);
    write_count(json, "total_tokens", outcome->usage.total);
    if (outcome->usage.model.len)
        json_member_str(json, "model", text_str(outcome->usage.model));
    json_close(json);
}

void outcome_note(struct outcome *outcome, const struct event *event) {
    /* A reader that joined later has not seen this event. */
    if (event->kind == EVENT_STARTED) {
        outcome->started_unix_ms = event->started.unix_ms;
        outcome_take_session(outcome, event->started.session);
    } else if (!outcome->started_unix_ms) {
        outcome->started_unix_ms =
            record_numbered_ms(outcome->run); /* the same for every reader */
    }
    if (event->kind == EVENT_TOOL_CALL)
        open_call(outcome, event->tool_call.call_id, event->tool_call.tool,
                  event->tool_call.args, event->at_ms,
                  !event->tool_call.idempotent && !event->tool_call.held);
    if (event->kind == EVENT_TOOL_RESULT) outcome_close_call(outcome, event);
    if (event->kind == EVENT_USAGE && outcome->tells_usage) note_usage(outcome, &event->usage);
}

/* --- the response object ------------------------------------------------------------------ */

static void write_joined(struct str turns, struct json_writer *json) {
    struct buf text;
    buf_init(&text, OUTPUT_MAX_BYTES);
    struct event_turn turn;
    while (event_turn_next(&turns, &turn)) {
        if (text.len) buf_append(&text, STR("\n\n"));
        buf_append(&text, turn.text);
    }
    json_member_str(json, "output", buf_str(&text));
    buf_done(&text);
}

/* Write the final replies in order, with a blank line between two agents. Mostly there is one. */
static void write_output(struct str turns, struct json_writer *json) {
    struct event_turn only;
    struct str rest = turns;
    bool first = event_turn_next(&rest, &only);
    if (first && rest.len == 0 && only.text.len <= OUTPUT_MAX_BYTES)
        json_member_str(json, "output", only.text);
    else
        write_joined(turns, json);
}

static void write_awaiting(const struct event *event, struct json_writer *json) {
    json_member_array(json, "awaiting");
    json_write_str(json, event->approval.tool.len ? event->approval.tool : event->agent);
    json_close(json);
}

/* Write the question, and its id for other routes: "<run>-<seq>". */
static void write_approval(const struct outcome *outcome, const struct event *event,
                           struct json_writer *json) {
    event_id_write(json, "approval_id", outcome->run, event->seq);
    json_member_str(json, "question", event->approval.question);
    if (event->approval.tool.len) json_member_str(json, "tool", event->approval.tool);
    if (event->approval.args.len) json_member_raw(json, "args", event->approval.args);
}

void outcome_write_approval(const struct outcome *outcome, const struct event *event,
                            struct buf *out) {
    struct json_writer json = json_writer(out);
    json_open_object(&json);
    write_approval(outcome, event, &json);
    json_close(&json);
}

/* A caller who sent text gets text, because the dashboard accepts nothing else. Others get
 * LangGraph's object. */
static void outcome_write_question(const struct outcome *outcome, const struct event *event,
                                   struct json_writer *json) {
    if (outcome->wants_text) {
        json_member_str(json, "output", event->approval.question);
        return;
    }
    json_member_object(json, "output");
    json_member_str(json, "status", STR("interrupted"));
    json_member_str(json, "thread_id", text_str(outcome->session));
    write_awaiting(event, json);
    json_member_str(json, "question", event->approval.question);
    json_close(json);
}

void outcome_write(const struct outcome *outcome, const struct event *event, struct buf *out) {
    bool paused = event->kind == EVENT_APPROVAL;
    struct json_writer json = json_writer(out);
    json_open_object(&json);
    if (paused) {
        outcome_write_question(outcome, event, &json);
    } else {
        write_output(event->done.turns, &json);
    }
    json_member_str(&json, "session_id", text_str(outcome->session));
    if (paused || outcome->names_thread) {
        json_member_str(&json, "thread_id", text_str(outcome->session));
    }
    json_member_object(&json, "metadata");
    json_member_bool(&json, "interrupted", paused);
    if (paused) {
        write_awaiting(event, &json);
        json_member_object(&json, "approval");
        write_approval(outcome, event, &json);
        json_close(&json);
    }
    outcome_write_usage(outcome, &json);
    json_close(&json);
    json_key(&json, STR("history"));
    json_open_array(&json);
    if (outcome->history.len) json_write_raw(&json, buf_str(&outcome->history));
    json_close(&json);
    json_close(&json);
}
