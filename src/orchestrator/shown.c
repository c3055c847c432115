#include "orchestrator/shown.h"

#include "base/utf8.h"
#include "wire/moment.h"

#define SECOND_US 1000000

void shown_time(struct buf *out, int64_t unix_us) {
    struct buf whole;
    int64_t part = unix_us % SECOND_US;
    if (part < 0) part += SECOND_US;
    buf_init(&whole, 64);
    (void)moment_put(&whole, (unix_us - part) / SECOND_US, 0);
    buf_printf(out, STR_FMT ".%06dZ", STR_ARG(str_head(buf_str(&whole), 19)), (int)part);
    buf_done(&whole);
}

static void member_time(struct json_writer *writer, const char *key, int64_t unix_us) {
    struct buf text;
    buf_init(&text, 64);
    shown_time(&text, unix_us);
    json_member_str(writer, key, buf_str(&text));
    buf_done(&text);
}

static void member_if_any(struct json_writer *writer, const char *key, struct str text) {
    if (text.len) json_member_str(writer, key, text);
}

/* --- messages ----------------------------------------------------------------------------------- */

static void put_agent(struct json_writer *writer, const struct turn_agent *agent,
                      enum agent_status status) {
    json_member_object(writer, "agent");
    json_member_str(writer, "id", agent->id);
    json_member_str(writer, "workspace_id", agent->workspace);
    json_member_str(writer, "name", agent->name);
    json_member_str(writer, "role", agent->role);
    json_member_str(writer, "slug", agent->slug);
    json_member_str(writer, "avatar", agent->avatar);
    json_member_str(writer, "description", agent->description);
    json_member_str(writer, "status", agent_status_name(status));
    member_time(writer, "created_at", agent->created_us);
    member_time(writer, "updated_at", agent->updated_us);
    json_close(writer);
}

void shown_message(struct json_writer *writer, const struct shown_message *message) {
    json_open_object(writer);
    json_member_str(writer, "id", message->id);
    json_member_str(writer, "conversation_id", message->conversation);
    json_member_str(writer, "role", message->role);
    json_member_raw(writer, "content", message->content);
    json_member_str(writer, "status", message->status);
    member_time(writer, "created_at", message->created_us);
    member_time(writer, "updated_at", message->updated_us);
    json_member_raw(writer, "attachments",
                    message->attachments.len ? message->attachments : STR("[]"));
    member_if_any(writer, "local_id", message->local_id);
    if (message->agent) put_agent(writer, message->agent, message->agent_status);
    json_close(writer);
}

void shown_message_event(struct buf *out, const struct shown_message *message) {
    struct json_writer writer = json_writer(out);
    json_open_object(&writer);
    json_key(&writer, STR("message"));
    shown_message(&writer, message);
    json_close(&writer);
}

/* --- contents -------------------------------------------------------------------------------- */

void shown_text_content(struct buf *out, struct str text) {
    struct json_writer writer = json_writer(out);
    json_open_object(&writer);
    json_member_str(&writer, "type", STR("text"));
    json_member_str(&writer, "text", text);
    json_close(&writer);
}

void shown_tool_content(struct buf *out, const struct turn_tool *tool) {
    struct json_writer writer = json_writer(out);
    json_open_object(&writer);
    json_member_str(&writer, "type", STR("tool_status"));
    json_member_str(&writer, "tool", text_str(tool->tool));
    json_member_str(&writer, "state", turn_tool_state_name(tool->state));
    member_if_any(&writer, "query", text_str(tool->query));
    if (tool->args.len) json_member_raw(&writer, "args", text_str(tool->args));
    json_close(&writer);
}

static void put_person(struct json_writer *writer, const char *key,
                       const struct turn_agent *agent) {
    if (!agent) {
        json_member_null(writer, key);
        return;
    }
    json_member_object(writer, key);
    json_member_str(writer, "id", agent->id);
    json_member_str(writer, "name", agent->name);
    json_member_str(writer, "role", agent->role);
    json_member_str(writer, "slug", agent->slug);
    json_member_str(writer, "avatar", agent->avatar);
    json_member_str(writer, "status", agent_status_name(AGENT_ONLINE));
    json_close(writer);
}

static void put_preview(struct json_writer *writer, const char *key, struct str text) {
    struct buf preview;
    size_t len = utf8_head(text, TURN_PREVIEW_CHARACTERS);
    buf_init(&preview, KIB);
    buf_append(&preview, str_head(text, len));
    if (len < text.len) buf_append(&preview, STR("..."));
    member_if_any(writer, key, buf_str(&preview));
    buf_done(&preview);
}

void shown_delegation_content(struct buf *out, struct str text, const struct turn_agent *from,
                              const struct turn_agent *to, struct str status,
                              struct str delegated) {
    struct json_writer writer = json_writer(out);
    json_open_object(&writer);
    json_member_str(&writer, "type", STR("delegation"));
    json_member_str(&writer, "text", text);
    put_person(&writer, "from", from);
    put_person(&writer, "to", to);
    json_member_str(&writer, "status", status);
    put_preview(&writer, "task_preview", delegated);
    json_close(&writer);
}

/* --- events ------------------------------------------------------------------------------------ */

void shown_chunk(struct buf *out, const struct turn_part *part, struct str conversation,
                 struct str text) {
    struct json_writer writer = json_writer(out);
    json_open_object(&writer);
    json_member_str(&writer, "message_id", uuid_str(&part->id));
    json_member_str(&writer, "conversation_id", conversation);
    json_member_str(&writer, "agent_id", part->agent->id);
    json_member_str(&writer, "chunk", text);
    json_close(&writer);
}

void shown_done(struct buf *out, const struct turn_part *part, struct str conversation) {
    struct json_writer writer = json_writer(out);
    json_open_object(&writer);
    json_member_str(&writer, "message_id", uuid_str(&part->id));
    json_member_str(&writer, "conversation_id", conversation);
    json_member_str(&writer, "agent_id", part->agent->id);
    json_member_str(&writer, "status", message_status_name(part->status));
    json_close(&writer);
}

void shown_message_status(struct buf *out, struct str message, struct str conversation,
                          struct str local_id, enum message_status status) {
    struct json_writer writer = json_writer(out);
    json_open_object(&writer);
    json_member_str(&writer, "message_id", message);
    json_member_str(&writer, "conversation_id", conversation);
    json_member_str(&writer, "status", message_status_name(status));
    member_if_any(&writer, "local_id", local_id);
    json_close(&writer);
}

void shown_agent_status(struct buf *out, struct str agent, struct str conversation,
                        enum agent_status status) {
    struct json_writer writer = json_writer(out);
    json_open_object(&writer);
    json_member_str(&writer, "agent_id", agent);
    json_member_str(&writer, "status", agent_status_name(status));
    member_if_any(&writer, "conversation_id", conversation);
    json_close(&writer);
}

void shown_tool(struct buf *out, const struct turn_part *part, struct str conversation,
                const struct turn_tool *tool, int64_t now_us) {
    struct json_writer writer = json_writer(out);
    json_open_object(&writer);
    json_member_str(&writer, "agent_id", part->agent->id);
    json_member_str(&writer, "conversation_id", conversation);
    json_member_str(&writer, "tool", text_str(tool->tool));
    json_member_str(&writer, "status",
                    tool->state == TURN_TOOL_RUNNING ? STR("running") : STR("done"));
    member_if_any(&writer, "call_id", text_str(tool->call_id));
    member_if_any(&writer, "query", text_str(tool->query));
    if (tool->args.len) json_member_raw(&writer, "args", text_str(tool->args));
    member_time(&writer, "created_at", now_us);
    json_close(&writer);
}

void shown_delegation(struct buf *out, const struct shown_delegation *delegation) {
    struct json_writer writer = json_writer(out);
    json_open_object(&writer);
    put_person(&writer, "from", delegation->from);
    put_person(&writer, "to", delegation->to);
    json_member_str(&writer, "conversation_id", delegation->conversation);
    json_member_str(&writer, "status", delegation->status);
    member_if_any(&writer, "message_id", delegation->message);
    put_preview(&writer, "message_preview", delegation->preview);
    member_time(&writer, "created_at", delegation->now_us);
    json_close(&writer);
}

/* On this wire an unknown count is 0. */
static int64_t counted(int64_t tokens) {
    return tokens > 0 ? tokens : 0;
}

void shown_usage(struct buf *out, struct str agent, struct str conversation, struct str message,
                 const struct event_usage *usage) {
    struct json_writer writer = json_writer(out);
    json_open_object(&writer);
    json_member_str(&writer, "agent_id", agent);
    json_member_str(&writer, "conversation_id", conversation);
    json_member_str(&writer, "message_id", message);
    json_member_str(&writer, "model", usage->model);
    json_member_i64(&writer, "prompt_tokens", counted(usage->prompt));
    json_member_i64(&writer, "completion_tokens", counted(usage->completion));
    json_member_i64(&writer, "total_tokens", counted(usage->total));
    json_member_i64(&writer, "call_sequence", usage->call_sequence);
    json_close(&writer);
}
