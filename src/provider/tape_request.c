/* Writes a request in the form used in recordings. */
#include "provider/tape.h"

#include "base/mem.h"

#include <stdlib.h>

/* --- ids of calls ------------------------------------------------------------------------- */

/* Vendors and runs choose new call ids each time. Only the pairing of calls and results
 * matters. */
struct ids {
    struct str *seen;
    size_t count;
};

static size_t number_of(struct ids *ids, struct str id) {
    for (size_t i = 0; i < ids->count; i++) {
        if (str_equal(ids->seen[i], id)) return i + 1;
    }
    ids->seen[ids->count++] = id;
    return ids->count;
}

/* --- parts -------------------------------------------------------------------------------- */

static const struct {
    const char *name, *text; /* the name of its text member */
} roles[] = {
    [MESSAGE_USER] = {"user", "text"},
    [MESSAGE_AGENT] = {"agent", "text"},
    [MESSAGE_TOOL_CALL] = {"tool_call", "args"},
    [MESSAGE_TOOL_RESULT] = {"tool_result", "result"},
    [MESSAGE_OPAQUE] = {"opaque", "bytes"},
    [MESSAGE_SYSTEM] = {"system", "text"},
};

static void put_message(struct json_writer *writer, const struct message *message,
                        struct ids *ids) {
    json_open_object(writer);
    json_member_str(writer, "role", str_from(roles[message->role].name));
    if (message->agent.len) json_member_str(writer, "agent", message->agent);
    if (message->call_id.len) json_member_u64(writer, "call", number_of(ids, message->call_id));
    if (message->tool.len) json_member_str(writer, "tool", message->tool);
    if (message->error) json_member_bool(writer, "error", true);
    if (strcmp(roles[message->role].text, "text") == 0) {
        json_member_str(writer, "text", message->text);
    } else {
        tape_put(writer, roles[message->role].text, message->text);
    }
    if (message->parts.len) tape_put(writer, "parts", message->parts);
    json_close(writer);
}

static void put_messages(struct json_writer *writer, const struct provider_request *request) {
    struct ids ids = {.seen = mem_zero(request->message_count + 1, sizeof(struct str))};
    json_member_array(writer, "messages");
    for (size_t i = 0; i < request->message_count; i++)
        put_message(writer, &request->messages[i], &ids);
    json_close(writer);
    free(ids.seen);
}

static void tape_request_put_tools(struct json_writer *writer,
                                   const struct provider_request *request) {
    json_member_array(writer, "tools");
    for (size_t i = 0; i < request->tool_count; i++) {
        const struct tool_offer *tool = &request->tools[i];
        json_open_object(writer);
        json_member_str(writer, "name", tool->name);
        json_member_str(writer, "description", tool->description);
        tape_put(writer, "parameters", tool->parameters);
        json_close(writer);
    }
    json_close(writer);
    if (request->tool_choice.len) json_member_str(writer, "tool_choice", request->tool_choice);
}

static void tape_request_put_options(struct json_writer *writer,
                                     const struct model_options *options) {
    json_member_object(writer, "options");
    model_options_write(options, writer);
    json_close(writer);
}

/* --- the whole request -------------------------------------------------------------------- */

void tape_put_request(const struct provider_request *request, struct buf *out) {
    struct json_writer writer = json_writer(out);
    json_open_object(&writer);
    json_member_str(&writer, "agent", request->agent);
    json_member_str(&writer, "model", request->model);
    json_member_str(&writer, "system", request->system);
    put_messages(&writer, request);
    json_member_u64(&writer, "turn_start", request->turn_start);
    tape_request_put_tools(&writer, request);
    if (request->options) tape_request_put_options(&writer, request->options);
    if (request->schema.len) tape_put(&writer, "schema", request->schema);
    json_close(&writer);
}
