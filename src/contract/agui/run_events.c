#include "contract/agui/run_events.h"

#include "base/mem.h"
#include "contract/event_id.h"
#include "conversation/conversation.h"
#include "route/route_json.h"
#include "tool/computed.h"

#include <stdlib.h>

#define EVENT_MAX_BYTES (64 * MIB)
#define PENDING_MAX_BYTES (1 * MIB)
#define USAGE_MAX_BYTES (1 * MIB)
#define MESSAGE_ID_BYTES 64

void run_events_init(struct run_events *events, struct route_call *call) {
    *events = (struct run_events){.call = call};
    buf_init(&events->pending, PENDING_MAX_BYTES);
    buf_init(&events->usage, USAGE_MAX_BYTES);
}

static void noted_done(struct noted_call *noted) {
    text_done(&noted->id);
    text_done(&noted->args);
}

void run_events_done(struct run_events *events) {
    text_done(&events->thread);
    text_done(&events->run);
    text_done(&events->step);
    for (size_t i = 0; i < events->noted_count; i++) noted_done(&events->noted[i]);
    free(events->noted);
    buf_done(&events->pending);
    buf_done(&events->usage);
}

/* --- one event ---------------------------------------------------------------------------- */

static void open_event(struct route_json *writing, const char *type) {
    json_member_str(route_json_object(writing, EVENT_MAX_BYTES), "type", str_from(type));
}

static void send_event(struct run_events *events, struct route_json *writing) {
    route_json_event(writing, events->call, STR_EMPTY);
}

/* An event with one member more; a NULL key: none. */
static void send_with(struct run_events *events, const char *type, const char *key,
                      struct str text) {
    struct route_json writing;
    open_event(&writing, type);
    if (key) json_member_str(&writing.w, key, text);
    send_event(events, &writing);
}

static void write_run(const struct run_events *events, struct json_writer *json) {
    json_member_str(json, "threadId", text_str(events->thread));
    json_member_str(json, "runId", text_str(events->run));
}

/* --- messages and steps ------------------------------------------------------------------- */

/* The id of the newest message. */
static struct str message_id(const struct run_events *events, char room[MESSAGE_ID_BYTES]) {
    struct buf id = {.at = room, .room = MESSAGE_ID_BYTES, .max_bytes = MESSAGE_ID_BYTES};
    buf_append(&id, STR("msg-"));
    event_id_put(&id, events->run_id, events->messages);
    return buf_str(&id);
}

static void close_message(struct run_events *events) {
    char room[MESSAGE_ID_BYTES];
    struct str id = message_id(events, room);
    if (events->open == MESSAGE_OF_TEXT) {
        send_with(events, "TEXT_MESSAGE_END", "messageId", id);
    } else if (events->open == MESSAGE_OF_REASONING) {
        send_with(events, "REASONING_MESSAGE_END", "messageId", id);
        send_with(events, "REASONING_END", "messageId", id);
    }
    events->open = MESSAGE_CLOSED;
}

static void close_step(struct run_events *events) {
    close_message(events);
    if (events->step.len)
        send_with(events, "STEP_FINISHED", "stepName", text_str(events->step));
    text_done(&events->step);
}

static void enter_step(struct run_events *events, struct str agent) {
    if (!agent.len || str_equal(agent, text_str(events->step))) return;
    close_step(events);
    events->step = text_copy(agent);
    send_with(events, "STEP_STARTED", "stepName", agent);
}

static void open_message(struct run_events *events, enum open_message kind) {
    char room[MESSAGE_ID_BYTES];
    struct route_json writing;
    if (events->open == kind) return;
    close_message(events);
    events->open = kind;
    events->messages++;
    struct str id = message_id(events, room);
    if (kind == MESSAGE_OF_REASONING) send_with(events, "REASONING_START", "messageId", id);
    open_event(&writing,
               kind == MESSAGE_OF_TEXT ? "TEXT_MESSAGE_START" : "REASONING_MESSAGE_START");
    json_member_str(&writing.w, "messageId", id);
    json_member_str(&writing.w, "role",
                    kind == MESSAGE_OF_TEXT ? STR("assistant") : STR("reasoning"));
    if (kind == MESSAGE_OF_TEXT && events->step.len)
        json_member_str(&writing.w, "name", text_str(events->step));
    send_event(events, &writing);
}

static void add_to_message(struct run_events *events, enum open_message kind, struct str text) {
    char room[MESSAGE_ID_BYTES];
    struct route_json writing;
    open_message(events, kind);
    open_event(&writing,
               kind == MESSAGE_OF_TEXT ? "TEXT_MESSAGE_CONTENT" : "REASONING_MESSAGE_CONTENT");
    json_member_str(&writing.w, "messageId", message_id(events, room));
    json_member_str(&writing.w, "delta", text);
    send_event(events, &writing);
}

/* --- calls -------------------------------------------------------------------------------- */

static bool is_transfer(const struct event *event) {
    return str_equal(event->tool_call.tool, STR(TRANSFER_TOOL));
}

static void note_call(struct run_events *events, struct str id, struct str args) {
    size_t count = events->noted_count + 1;
    events->noted = mem_resize(events->noted, count * sizeof(*events->noted));
    events->noted[events->noted_count] = (struct noted_call){text_copy(id), text_copy(args)};
    events->noted_count = count;
}

/* The call that this is the result of, for the caller to end. Each has one. */
static bool take_noted(struct run_events *events, struct str id, struct noted_call *ret) {
    for (size_t i = 0; i < events->noted_count; i++) {
        if (!str_equal(text_str(events->noted[i].id), id)) continue;
        *ret = events->noted[i];
        events->noted[i] = events->noted[--events->noted_count];
        return true;
    }
    return false;
}

static void show_call(struct run_events *events, const struct event *event) {
    struct str id = event->tool_call.call_id;
    struct route_json writing;
    close_message(events);
    if (is_transfer(event)) { /* a step begins with the other agent's words */
        note_call(events, id, STR_EMPTY);
        return;
    }
    if (str_equal(event->tool_call.tool, STR(STATE_WRITE_TOOL)))
        note_call(events, id, event->tool_call.args);
    open_event(&writing, "TOOL_CALL_START");
    json_member_str(&writing.w, "toolCallId", id);
    json_member_str(&writing.w, "toolCallName", event->tool_call.tool);
    send_event(events, &writing);
    open_event(&writing, "TOOL_CALL_ARGS");
    json_member_str(&writing.w, "toolCallId", id);
    json_member_str(&writing.w, "delta", event->tool_call.args);
    send_event(events, &writing);
    send_with(events, "TOOL_CALL_END", "toolCallId", id);
    if (!event->tool_call.callers) return;
    if (events->pending.len) buf_append_byte(&events->pending, ',');
    json_put_str(&events->pending, id);
}

/* "a/b" as a step of a JSON pointer: "/a~1b". */
static void write_path(struct json_writer *json, struct json key) {
    struct buf name, path;
    buf_init(&name, key.raw.len + 1);
    buf_init(&path, 2 * key.raw.len + 2);
    json_text(key, &name);
    buf_append_byte(&path, '/');
    for (size_t i = 0; i < name.len; i++) {
        if (name.at[i] == '~' || name.at[i] == '/') {
            buf_append(&path, name.at[i] == '~' ? STR("~0") : STR("~1"));
        } else {
            buf_append_byte(&path, name.at[i]);
        }
    }
    json_member_str(json, "path", buf_str(&path));
    buf_done(&path);
    buf_done(&name);
}

/* `add` replaces a member that is there. */
static void write_delta(struct json_writer *json, struct json state) {
    struct json_reader reader = json_enter(state);
    struct json key, value;
    json_member_array(json, "delta");
    while (json_next_member(&reader, &key, &value)) {
        json_open_object(json);
        json_member_str(json, "op", STR("add"));
        write_path(json, key);
        json_member_raw(json, "value", value.raw);
        json_close(json);
    }
    json_close(json);
}

/* A client without a state gets one, which is changed from then on. */
static void show_state(struct run_events *events, struct str args) {
    struct route_json writing;
    struct json state = json_find(json_of(args), STR("state"));
    if (state.kind != JSON_OBJECT) return;
    open_event(&writing, events->has_state ? "STATE_DELTA" : "STATE_SNAPSHOT");
    if (events->has_state) {
        write_delta(&writing.w, state);
    } else {
        json_member_raw(&writing.w, "snapshot", state.raw);
    }
    events->has_state = true;
    send_event(events, &writing);
}

static void write_result(struct run_events *events, const struct event *event) {
    char room[MESSAGE_ID_BYTES];
    struct route_json writing;
    events->messages++;
    open_event(&writing, "TOOL_CALL_RESULT");
    json_member_str(&writing.w, "messageId", message_id(events, room));
    json_member_str(&writing.w, "toolCallId", event->tool_result.call_id);
    json_member_str(&writing.w, "content", event->tool_result.result);
    json_member_str(&writing.w, "role", STR("tool"));
    send_event(events, &writing);
}

/* A person's decision about a call names its arguments: an answer that begins after the question
 * has not seen the call, and a person may have changed them. */
static void note_decided(struct run_events *events, const struct event *event) {
    struct json decided = json_of(event->tool_result.result);
    struct json tool = json_find(decided, STR("tool")), args = json_find(decided, STR("args"));
    struct str id = str_skip(event->tool_result.call_id, strlen(EVENT_APPROVAL_ID));
    struct noted_call old = {.args = {.len = 0}};
    if (!json_is(tool, STR(STATE_WRITE_TOOL))) return;
    (void)take_noted(events, id, &old);
    noted_done(&old);
    note_call(events, id, args.raw);
}

/* The result of a transfer, and a person's decision, do not belong to a call that was shown. */
static void show_result(struct run_events *events, const struct event *event) {
    struct str id = event->tool_result.call_id;
    struct noted_call noted = {.args = {.len = 0}};
    if (str_starts(id, STR(EVENT_APPROVAL_ID))) note_decided(events, event);
    bool is_noted = take_noted(events, id, &noted);
    close_message(events);
    if (noted.args.len) {
        write_result(events, event);
        if (!event->tool_result.error) show_state(events, text_str(noted.args));
    } else if (!is_noted && !str_starts(id, STR(EVENT_APPROVAL_ID))) {
        write_result(events, event);
    }
    noted_done(&noted);
}

/* --- others ------------------------------------------------------------------------------- */

static void show_note(struct run_events *events, const struct event *event) {
    struct route_json writing;
    open_event(&writing, "CUSTOM");
    json_member_str(&writing.w, "name", STR("weir.step"));
    json_member_object(&writing.w, "value");
    json_member_str(&writing.w, "description", event->step.description);
    if (event->step.result.len) {
        json_key(&writing.w, STR("result"));
        json_compact(event->step.result, &writing.text);
    }
    json_close(&writing.w);
    send_event(events, &writing);
}

static void write_tokens(struct json_writer *json, const char *key, int64_t tokens) {
    if (tokens != TOKENS_UNKNOWN) json_member_i64(json, key, tokens);
}

static void note_usage(struct run_events *events, const struct event_usage *usage) {
    struct json_writer json = json_writer(&events->usage);
    if (events->usage.len) buf_append_byte(&events->usage, ',');
    json_open_object(&json);
    if (usage->model.len) json_member_str(&json, "model", usage->model);
    write_tokens(&json, "inputTokens", usage->prompt);
    write_tokens(&json, "outputTokens", usage->completion);
    write_tokens(&json, "totalTokens", usage->total);
    write_tokens(&json, "reasoningTokens", usage->thoughts);
    write_tokens(&json, "cachedInputTokens", usage->cached);
    json_close(&json);
}

/* RUN_STARTED, once. */
static void run_events_start(struct run_events *events) {
    struct route_json writing;
    if (events->started) return;
    events->started = true;
    open_event(&writing, "RUN_STARTED");
    write_run(events, &writing.w);
    json_member_str(&writing.w, "protocolVersion", STR("1.0"));
    send_event(events, &writing);
}

void run_events_show(struct run_events *events, const struct event *event) {
    run_events_start(events);
    switch (event->kind) {
    case EVENT_TEXT:
        enter_step(events, event->agent);
        add_to_message(events, MESSAGE_OF_TEXT, event->text.text);
        break;
    case EVENT_THINKING:
        enter_step(events, event->agent);
        add_to_message(events, MESSAGE_OF_REASONING, event->thinking.text);
        break;
    case EVENT_TOOL_CALL:
        enter_step(events, event->agent);
        show_call(events, event);
        break;
    case EVENT_TOOL_RESULT: show_result(events, event); break;
    case EVENT_STEP: show_note(events, event); break;
    case EVENT_USAGE:
        close_message(events);
        note_usage(events, &event->usage);
        break;
    case EVENT_STARTED:
    case EVENT_AUDIO:
    case EVENT_ITEM:
    case EVENT_APPROVAL:
    case EVENT_DONE:
    case EVENT_FAILED:
    case EVENT_CANCELLED:
    case EVENT_KIND_COUNT: break; /* not shown, or by run_events_finish() */
    }
}

void run_events_show_texts(struct run_events *events, struct str texts) {
    struct str agent, text;
    run_events_start(events);
    while (event_next_text(&texts, &agent, &text)) {
        enter_step(events, agent);
        add_to_message(events, MESSAGE_OF_TEXT, text);
    }
}

/* --- the end ------------------------------------------------------------------------------ */

static void write_usage(const struct run_events *events, struct json_writer *json) {
    if (!events->usage.len || !buf_ok(&events->usage)) return;
    json_member_array(json, "usage");
    json_write_raw(json, buf_str(&events->usage));
    json_close(json);
}

static void write_interrupt(const struct run_events *events, const struct event *event,
                            struct json_writer *json) {
    struct str guarded = event->approval.guards;
    json_open_object(json);
    event_id_write(json, "id", events->run_id, event->seq);
    json_member_str(json, "reason", guarded.len ? STR("tool_call") : STR("input_required"));
    json_member_str(json, "message", event->approval.question);
    if (guarded.len) {
        json_member_str(json, "toolCallId", guarded);
        json_member_raw(json, "responseSchema",
                        STR("{\"type\":\"object\",\"properties\":{\"approved\":{\"type\":"
                            "\"boolean\"}},\"required\":[\"approved\"]}"));
    }
    if (event->approval.tool.len) {
        json_member_object(json, "metadata");
        json_member_str(json, "tool", event->approval.tool);
        if (event->approval.args.len) json_member_raw(json, "args", event->approval.args);
        json_close(json);
    }
    json_close(json);
}

static void write_outcome(const struct run_events *events, const struct event *last,
                          struct json_writer *json) {
    json_member_object(json, "outcome");
    if (last->kind == EVENT_APPROVAL) {
        json_member_str(json, "type", STR("interrupt"));
        json_member_array(json, "interrupts");
        write_interrupt(events, last, json);
        json_close(json);
    } else if (last->kind == EVENT_CANCELLED) {
        json_member_str(json, "type", STR("cancelled"));
    } else {
        json_member_str(json, "type", STR("success"));
        if (events->pending.len && buf_ok(&events->pending)) {
            json_member_array(json, "pendingToolCallIds");
            json_write_raw(json, buf_str(&events->pending));
            json_close(json);
        }
    }
    json_close(json);
}

void run_events_finish(struct run_events *events, const struct event *last) {
    struct route_json writing;
    run_events_start(events);
    close_step(events);
    open_event(&writing, "RUN_FINISHED");
    write_run(events, &writing.w);
    write_outcome(events, last, &writing.w);
    write_usage(events, &writing.w);
    send_event(events, &writing);
}

void run_events_fail(struct run_events *events, struct str code, struct str message) {
    struct route_json writing;
    run_events_start(events);
    close_step(events);
    open_event(&writing, "RUN_ERROR");
    json_member_str(&writing.w, "message", message);
    json_member_str(&writing.w, "code", code);
    write_usage(events, &writing.w);
    send_event(events, &writing);
}
