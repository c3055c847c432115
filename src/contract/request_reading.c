#include "contract/request_reading.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

bool request_refuse(struct request_reading *reading, const char *param, const char *format,
                    ...) {
    char text[ERR_TEXT_BYTES];
    va_list values;
    va_start(values, format);
    vsnprintf(text, sizeof(text), format, values);
    va_end(values);
    reading->param = str_from(param);
    return err_set(reading->e, ERR_INVALID_ARGUMENT, "%s: %s", param, text);
}

bool request_too_large(struct request_reading *reading) {
    return err_set(reading->e, ERR_TOO_LARGE, "the request is larger than a turn may hold");
}

bool request_take_text(struct request_reading *reading, struct json value, const char *param,
                       struct str *ret) {
    if (json_is_absent(value)) return true;
    if (value.kind != JSON_STRING)
        return request_refuse(reading, param, "must be a string, not %s",
                              json_kind_name(value.kind));
    return json_str(value, reading->arena, ret) || request_too_large(reading);
}

bool request_take_bool(struct request_reading *reading, struct json value, const char *param,
                       bool *ret) {
    if (json_is_absent(value) || json_bool(value, ret)) return true;
    return request_refuse(reading, param, "must be true or false, not %s",
                          json_kind_name(value.kind));
}

bool request_take_options(struct request_reading *reading, struct json body,
                          const struct caller_option *table, size_t count,
                          struct guest_request *ret) {
    const char *name = "";
    if (caller_options_take(table, count, body, reading->arena, &ret->options, &name,
                            reading->e))
        return true;
    reading->param = str_from(name);
    return false;
}

bool request_take_tool_list(struct request_reading *reading, struct json list,
                            request_tool_fn *take, struct guest_request *ret) {
    struct json_reader reader = json_enter(list);
    struct json item;
    if (json_is_absent(list)) return true;
    if (list.kind != JSON_ARRAY)
        return request_refuse(reading, "tools", "must be an array, not %s",
                              json_kind_name(list.kind));
    struct tool_offer *tools =
        arena_alloc(reading->arena, (json_count(list) + 1) * sizeof(*tools));
    if (!tools) return request_too_large(reading);
    for (size_t i = 0; json_next_item(&reader, &item); i++) {
        if (!take(reading, item, i, &tools[i])) return false;
        ret->tool_count = i + 1;
    }
    ret->tools = tools;
    return true;
}

bool request_take_instructions(struct request_reading *reading, struct str text,
                               struct guest_request *ret) {
    size_t count = ret->message_count;
    if (!str_trim(text).len) return true;
    struct message *messages = arena_alloc(reading->arena, (count + 1) * sizeof(*messages));
    if (!messages) return request_too_large(reading);
    messages[0] = (struct message){.role = MESSAGE_SYSTEM, .instructions = true, .text = text};
    memcpy(messages + 1, ret->messages, count * sizeof(*messages));
    ret->messages = messages;
    ret->message_count = count + 1;
    return true;
}

bool request_take_conversation(struct request_reading *reading, bool reads,
                               const struct import *import, struct str first,
                               struct guest_request *ret) {
    if (!reads) {
        if (reading->e->code == ERR_RESOURCE_EXHAUSTED) reading->e->code = ERR_TOO_LARGE;
        return false;
    }
    const struct message *last = &import->messages[import->count - 1];
    if (last->role == MESSAGE_USER) ret->text = last->text;
    ret->messages = import->messages;
    ret->message_count = import->count;
    return request_take_instructions(reading, first, ret);
}
