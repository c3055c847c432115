#include "agent/process_turn.h"

#include "wire/json.h"

/* --- the calls of this turn --------------------------------------------------------------- */

static bool process_turn_is_call(const struct provider_request *request, size_t i) {
    const struct message *message = &request->messages[i];
    return i > request->turn_start && message->role == MESSAGE_TOOL_CALL &&
           str_equal(message->agent, request->agent);
}

/* The first result with the call's id after the call. */
static const struct message *result_of(const struct provider_request *request, size_t call) {
    struct str id = request->messages[call].call_id;
    for (size_t i = call + 1; i < request->message_count; i++) {
        const struct message *message = &request->messages[i];
        if (message->role == MESSAGE_TOOL_RESULT && str_equal(message->call_id, id))
            return message;
    }
    return NULL;
}

size_t process_turn_calls(const struct provider_request *request) {
    size_t count = 0;
    for (size_t i = 0; i < request->message_count; i++)
        count += process_turn_is_call(request, i);
    return count;
}

/* Write JSON on one line, and any other text as a string. */
static void process_turn_write_value(struct json_writer *json, const char *key,
                                     struct str text) {
    struct json value;
    struct err none;
    struct buf compact;
    if (!json_read(text, &value, &none)) {
        json_member_str(json, key, text);
        return;
    }
    buf_init(&compact, text.len);
    json_compact(value.raw, &compact);
    json_member_raw(json, key, buf_str(&compact));
    buf_done(&compact);
}

static void process_turn_write_result(struct json_writer *json, const struct message *result) {
    process_turn_write_value(json, "result", result ? result->text : STR("null"));
    json_member_bool(json, "error", result && result->error);
}

static void write_calls(struct json_writer *json, const struct provider_request *request) {
    json_member_array(json, "calls");
    for (size_t i = 0; i < request->message_count; i++) {
        if (!process_turn_is_call(request, i)) continue;
        json_open_object(json);
        json_member_str(json, "tool", request->messages[i].tool);
        process_turn_write_value(json, "args", request->messages[i].text);
        process_turn_write_result(json, result_of(request, i));
        json_close(json);
    }
    json_close(json);
}

/* --- messages and tools ------------------------------------------------------------------- */

static void process_turn_write_message(struct json_writer *json,
                                       const struct message *message) {
    static const char *const roles[] = {
        [MESSAGE_USER] = "user",           [MESSAGE_AGENT] = "assistant",
        [MESSAGE_TOOL_CALL] = "tool_call", [MESSAGE_TOOL_RESULT] = "tool_result",
        [MESSAGE_SYSTEM] = "system",
    };
    if (message->role == MESSAGE_OPAQUE) return; /* only its own provider can read it */
    json_open_object(json);
    json_member_str(json, "role", str_from(roles[message->role]));
    if (message->agent.len) json_member_str(json, "agent", message->agent);
    if (message->call_id.len) json_member_str(json, "call", message->call_id);
    if (message->tool.len) json_member_str(json, "tool", message->tool);
    if (message->role == MESSAGE_TOOL_CALL) {
        process_turn_write_value(json, "args", message->text);
    } else if (message->role == MESSAGE_TOOL_RESULT) {
        process_turn_write_result(json, message);
    } else {
        json_member_str(json, "text", message->text);
    }
    if (message->parts.len) process_turn_write_value(json, "parts", message->parts);
    json_close(json);
}

static void write_tool(struct json_writer *json, const struct tool_offer *tool) {
    json_open_object(json);
    json_member_str(json, "name", tool->name);
    json_member_str(json, "description", tool->description);
    process_turn_write_value(json, "parameters",
                             tool->parameters.len ? tool->parameters : STR("{}"));
    json_close(json);
}

/* What the caller sent in addition; {} if there was nothing. */
static void write_extras(struct json_writer *json, struct str extras) {
    static const char *const keys[] = {"config", "metadata"};
    struct json all = extras.len ? json_of(extras) : (struct json){.kind = JSON_NONE};
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        struct json found = json_find(all, str_from(keys[i]));
        bool object = found.kind == JSON_OBJECT;
        json_member_raw(json, keys[i], object ? found.raw : STR("{}"));
    }
}

/* --- the lines ---------------------------------------------------------------------------- */

static struct json_writer open_line(struct buf *out, const char *type, struct str turn) {
    struct json_writer json = json_writer(out);
    json_open_object(&json);
    json_member_str(&json, "type", str_from(type));
    json_member_str(&json, "turn", turn);
    return json;
}

static bool close_line(struct json_writer *json, struct buf *out) {
    json_close(json);
    return buf_append_byte(out, '\n');
}

static void write_trace(struct json_writer *json, const struct trace_context *trace) {
    char parent[TRACE_PARENT_BYTES + 1];
    trace_context_write(trace, parent);
    json_member_str(json, "traceparent", str_from(parent));
    if (trace->state.len) json_member_str(json, "tracestate", trace->state);
}

/* As the caller wrote it, where that was more than a text. */
static void write_input(struct json_writer *json, const struct provider_request *request) {
    bool asked = request->turn_start < request->message_count;
    struct str extras = request->extras;
    struct json sent = {.kind = JSON_NONE};
    if (extras.len) sent = json_find(json_of(extras), STR("input"));
    if (asked && sent.kind != JSON_NONE)
        json_member_raw(json, "input", sent.raw);
    else
        json_member_str(json, "input",
                        asked ? request->messages[request->turn_start].text : STR_EMPTY);
}

bool process_turn_append(const struct provider_request *request, struct str turn,
                         struct buf *out) {
    struct json_writer json = open_line(out, "turn", turn);
    json_member_str(&json, "agent", request->agent);
    json_member_str(&json, "workspace", request->workspace);
    json_member_str(&json, "user", request->user);
    json_member_str(&json, "session", request->session);
    if (request->trace) write_trace(&json, request->trace);
    json_member_str(&json, "model", request->model);
    json_member_str(&json, "instructions", request->system);
    write_input(&json, request);
    json_member_array(&json, "messages");
    for (size_t i = 0; i < request->message_count; i++)
        process_turn_write_message(&json, &request->messages[i]);
    json_close(&json);
    write_calls(&json, request);
    write_extras(&json, request->extras);
    json_member_array(&json, "tools");
    for (size_t i = 0; i < request->tool_count; i++) write_tool(&json, &request->tools[i]);
    json_close(&json);
    return close_line(&json, out);
}

bool process_turn_results(const struct provider_request *request, struct str turn, size_t from,
                          struct buf *out) {
    size_t number = 0;
    for (size_t i = 0; i < request->message_count; i++) {
        if (!process_turn_is_call(request, i) || number++ < from) continue;
        struct json_writer json = open_line(out, "result", turn);
        process_turn_write_result(&json, result_of(request, i));
        if (!close_line(&json, out)) return false;
    }
    return buf_ok(out);
}

bool process_turn_cancel(struct str turn, struct buf *out) {
    struct json_writer json = open_line(out, "cancel", turn);
    return close_line(&json, out);
}
