#include "wire/event_json.h"

#include "wire/base64.h"
#include "wire/json.h"

void event_json_count(struct json_writer *json, const char *key, int64_t count) {
    if (count == TOKENS_UNKNOWN) {
        json_member_null(json, key);
    } else {
        json_member_i64(json, key, count);
    }
}

void event_json_document(struct json_writer *json, const char *key, struct str text) {
    struct json document;
    struct err e;
    if (json_read(text, &document, &e)) {
        json_member_raw(json, key, document.raw);
    } else {
        json_member_str(json, key, text);
    }
}

static void write_bytes(struct json_writer *json, const char *key, struct str bytes) {
    struct buf text;
    buf_init(&text, 2 * bytes.len + 8);
    base64_encode(&text, bytes, BASE64_STANDARD, BASE64_PADDED);
    json_member_str(json, key, buf_str(&text));
    buf_done(&text);
}

void event_json_id(struct json_writer *json, const char *key, uint64_t id) {
    char room[24];
    struct buf text = {.at = room, .room = sizeof(room), .max_bytes = sizeof(room)};
    buf_append_u64(&text, id);
    json_member_str(json, key, buf_str(&text));
}

static bool is_shown(const struct event_usage *usage, const struct usage_field *field) {
    switch (field->shown) {
    case USAGE_ALWAYS: return true;
    case USAGE_ABOVE_ZERO: return usage_get(usage, field) > 0;
    case USAGE_WHEN_ESTIMATED: return usage->estimated;
    case USAGE_NEVER: return false;
    }
    return false;
}

static void write_usage(struct json_writer *json, const struct event_usage *usage) {
    json_member_str(json, "model", usage->model);
    for (size_t i = 0; i < USAGE_FIELD_COUNT; i++) {
        const struct usage_field *field = &usage_fields[i];
        if (is_shown(usage, field))
            event_json_count(json, field->event_name, usage_get(usage, field));
    }
}

static void write_turns(struct json_writer *json, struct str turns) {
    struct event_turn turn;
    json_member_array(json, "turns");
    while (event_turn_next(&turns, &turn)) {
        json_open_object(json);
        json_member_str(json, "agent", turn.agent);
        json_member_str(json, "text", turn.text);
        json_close(json);
    }
    json_close(json);
}

static void write_fields(struct json_writer *json, const struct event *event) {
    switch (event->kind) {
    case EVENT_STARTED:
        json_member_str(json, "workspace", event->started.workspace);
        json_member_str(json, "user", event->started.user);
        json_member_str(json, "session", event->started.session);
        json_member_str(json, "text", event->started.text);
        json_member_str(json, "contract", event->started.contract);
        if (event->started.parent) event_json_id(json, "parent", event->started.parent);
        json_member_i64(json, "unix_ms", event->started.unix_ms);
        if (event->started.extras.len)
            event_json_document(json, "extras", event->started.extras);
        if (event->started.trace.len) json_member_str(json, "trace", event->started.trace);
        if (event->started.options.len)
            event_json_document(json, "options", event->started.options);
        break;
    case EVENT_TEXT: json_member_str(json, "text", event->text.text); break;
    case EVENT_THINKING: json_member_str(json, "text", event->thinking.text); break;
    case EVENT_TOOL_CALL:
        json_member_str(json, "call_id", event->tool_call.call_id);
        json_member_str(json, "tool", event->tool_call.tool);
        event_json_document(json, "args", event->tool_call.args);
        if (event->tool_call.held) json_member_bool(json, "held", true);
        if (event->tool_call.callers) json_member_bool(json, "callers", true);
        break;
    case EVENT_TOOL_RESULT:
        json_member_str(json, "call_id", event->tool_result.call_id);
        event_json_document(json, "result", event->tool_result.result);
        json_member_bool(json, "error", event->tool_result.error);
        if (event->tool_result.error)
            json_member_str(json, "message", event->tool_result.message);
        break;
    case EVENT_USAGE: write_usage(json, &event->usage); break;
    case EVENT_STEP:
        json_member_str(json, "description", event->step.description);
        if (event->step.result.len) event_json_document(json, "result", event->step.result);
        break;
    case EVENT_AUDIO:
    case EVENT_ITEM:
        json_member_str(json, "content_type", event->item.type);
        write_bytes(json, "bytes", event->item.bytes);
        break;
    case EVENT_APPROVAL:
        json_member_str(json, "call_id", event->approval.call_id);
        json_member_str(json, "question", event->approval.question);
        json_member_str(json, "tool", event->approval.tool);
        event_json_document(json, "args", event->approval.args);
        if (event->approval.guards.len) json_member_str(json, "guards", event->approval.guards);
        break;
    case EVENT_DONE:
        json_member_str(json, "model", event->done.model);
        write_turns(json, event->done.turns);
        break;
    case EVENT_FAILED:
        json_member_str(json, "code", err_name(event->failed.code));
        json_member_str(json, "reason", event->failed.reason);
        json_member_str(json, "message", event->failed.message);
        break;
    case EVENT_CANCELLED:
        json_member_str(json, "message", event->cancelled.message);
        if (event->cancelled.left) json_member_bool(json, "left", true);
        break;
    case EVENT_KIND_COUNT: break;
    }
}

bool event_to_json(const struct event *event, struct buf *out) {
    struct json_writer json = json_writer(out);
    json_open_object(&json);
    json_member_u64(&json, "seq", event->seq);
    json_member_i64(&json, "at_ms", event->at_ms);
    json_member_str(&json, "type", event_kind_name(event->kind));
    json_member_str(&json, "agent", event->agent);
    write_fields(&json, event);
    json_close(&json);
    return buf_ok(out);
}
