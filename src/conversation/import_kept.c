/* Stores an imported conversation in a run, and reads it back. */
#include "conversation/import.h"

#include "provider/parts.h"

static const struct str kept_roles[] = {
    [MESSAGE_USER] = STR_INIT("user"),
    [MESSAGE_AGENT] = STR_INIT("agent"),
    [MESSAGE_TOOL_CALL] = STR_INIT("tool_call"),
    [MESSAGE_TOOL_RESULT] = STR_INIT("tool_result"),
    [MESSAGE_OPAQUE] = STR_INIT("opaque"),
    [MESSAGE_SYSTEM] = STR_INIT("system"),
};

static void put_field(struct json_writer *writer, const char *key, struct str value) {
    if (value.len) json_member_str(writer, key, value);
}

bool import_append(const struct message *messages, size_t count, struct buf *out) {
    struct json_writer writer = json_writer(out);
    json_open_array(&writer);
    for (size_t i = 0; i < count; i++) {
        const struct message *message = &messages[i];
        json_open_object(&writer);
        json_member_str(&writer, "role", kept_roles[message->role]);
        put_field(&writer, "agent", message->agent);
        put_field(&writer, "call_id", message->call_id);
        put_field(&writer, "tool", message->tool);
        put_field(&writer, "text", message->text);
        put_field(&writer, "heard_by", message->heard_by);
        if (message->parts.len) json_member_raw(&writer, "parts", message->parts);
        if (message->error) json_member_bool(&writer, "error", true);
        if (message->instructions) json_member_bool(&writer, "instructions", true);
        json_close(&writer);
    }
    json_close(&writer);
    return buf_ok(out);
}

enum kept { KEPT_FINE, KEPT_WRONG, KEPT_FULL };

static enum kept read_kept_text(struct json value, struct arena *arena, struct str *ret) {
    if (value.kind == JSON_NONE) return KEPT_FINE;
    if (value.kind != JSON_STRING) return KEPT_WRONG;
    return json_str(value, arena, ret) ? KEPT_FINE : KEPT_FULL;
}

static bool read_kept_role(struct json value, enum message_role *ret) {
    for (size_t i = 0; i < ARRAY_LEN(kept_roles); i++) {
        if (!json_is(value, kept_roles[i])) continue;
        *ret = (enum message_role)i;
        return true;
    }
    return false;
}

static bool read_kept_flag(struct json value, bool *ret) {
    return value.kind == JSON_NONE || json_bool(value, ret);
}

static enum kept read_kept(struct json from, struct arena *arena, struct message *ret) {
    enum { ROLE, AGENT, CALL_ID, TOOL, TEXT, HEARD_BY, PARTS, ERROR, INSTRUCTIONS };
    static const struct str keys[] = {
        [ROLE] = STR_INIT("role"),
        [AGENT] = STR_INIT("agent"),
        [CALL_ID] = STR_INIT("call_id"),
        [TOOL] = STR_INIT("tool"),
        [TEXT] = STR_INIT("text"),
        [HEARD_BY] = STR_INIT("heard_by"),
        [PARTS] = STR_INIT("parts"),
        [ERROR] = STR_INIT("error"),
        [INSTRUCTIONS] = STR_INIT("instructions"),
    };
    struct json found[ARRAY_LEN(keys)];
    struct err ignored;
    *ret = (struct message){.agent = STR_EMPTY,
                            .text = STR_EMPTY,
                            .call_id = STR_EMPTY,
                            .tool = STR_EMPTY,
                            .heard_by = STR_EMPTY,
                            .parts = STR_EMPTY};
    json_find_each(from, keys, ARRAY_LEN(keys), found);
    if (!read_kept_role(found[ROLE], &ret->role)) return KEPT_WRONG;
    struct str *const texts[] = {&ret->agent, &ret->call_id, &ret->tool, &ret->text,
                                 &ret->heard_by};
    for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
        enum kept kept = read_kept_text(found[AGENT + i], arena, texts[i]);
        if (kept != KEPT_FINE) return kept;
    }
    if (!read_kept_flag(found[ERROR], &ret->error) ||
        !read_kept_flag(found[INSTRUCTIONS], &ret->instructions))
        return KEPT_WRONG;
    if (found[PARTS].kind == JSON_NONE) return KEPT_FINE;
    if (!parts_check(found[PARTS], &ignored)) return KEPT_WRONG;
    ret->parts = found[PARTS].raw;
    return KEPT_FINE;
}

static bool kept_too_large(struct err *e) {
    return err_set(e, ERR_RESOURCE_EXHAUSTED,
                   "the kept messages are larger than a turn may hold");
}

bool import_decode(struct str bytes, struct arena *arena, struct import *ret, struct err *e) {
    struct json list, item;
    struct str text;
    if (!arena_str(arena, bytes, &text)) return kept_too_large(e);
    if (!json_read(text, &list, e) || list.kind != JSON_ARRAY)
        return err_set(e, ERR_DATA_LOSS, "the kept messages are no list");
    size_t count = json_count(list);
    struct message *messages = arena_alloc(arena, (count + 1) * sizeof(struct message));
    if (!messages) return kept_too_large(e);
    struct json_reader reader = json_enter(list);
    for (size_t i = 0; json_next_item(&reader, &item); i++) {
        switch (read_kept(item, arena, &messages[i])) {
        case KEPT_FINE: break;
        case KEPT_WRONG:
            return err_set(e, ERR_DATA_LOSS, "kept message %zu is not a message", i);
        case KEPT_FULL: return kept_too_large(e);
        }
    }
    *ret = (struct import){messages, count};
    return true;
}
