#include "contract/openai/response_input.h"

#include "provider/parts.h"
#include "wire/json.h"

#define INPUT_MAX_BYTES (64 * MIB)

void response_input_done(struct response_input *input) {
    arena_free(input->arena);
    *input = (struct response_input){.run = 0};
}

/* --- from events --------------------------------------------------------------------------- */

static struct arena *arena_of(struct response_input *input) {
    if (!input->arena) input->arena = arena_new(INPUT_MAX_BYTES);
    return input->arena;
}

static void response_input_take_text(struct response_input *input, struct str text) {
    struct message *message = ARENA_NEW(arena_of(input), struct message);
    if (!text.len || !message || !arena_str(input->arena, text, &message->text)) return;
    message->role = MESSAGE_USER;
    input->import = (struct import){message, 1};
}

/* The list has the text too. */
static void take_list(struct response_input *input, struct str bytes) {
    struct import import;
    struct err e;
    if (import_decode(bytes, arena_of(input), &import, &e)) input->import = import;
}

static void take_answer(struct response_input *input, const struct event *event) {
    struct json decision = json_find(json_of(event->tool_result.result), STR("decision"));
    if (!arena_str(arena_of(input), event->tool_result.call_id, &input->approval_id)) return;
    input->approved = decision.kind == JSON_STRING && !json_is(decision, STR("refuse"));
}

void response_input_take(struct response_input *input, const struct event *event) {
    bool decides = event->kind == EVENT_TOOL_RESULT && !input->import.count &&
                   str_starts(event->tool_result.call_id, STR(EVENT_APPROVAL_ID));
    if (event->kind == EVENT_STARTED) response_input_take_text(input, event->started.text);
    if (event->kind == EVENT_ITEM && str_starts(event->item.type, STR(BROUGHT_ITEM)))
        take_list(input, event->item.bytes);
    if (decides && !input->approval_id.len) take_answer(input, event);
}

/* --- ids ----------------------------------------------------------------------------------- */

static void append_id(uint64_t run, size_t index, struct buf *out) {
    buf_append(out, STR("in_"));
    buf_append_u64(out, run);
    buf_append_byte(out, '_');
    buf_append_u64(out, index);
}

bool response_input_read_id(struct str id, uint64_t run, size_t *ret_index) {
    uint64_t named, index;
    struct str rest;
    if (!str_starts(id, STR("in_"))) return false;
    struct str first = str_split(str_skip(id, STR("in_").len), '_', &rest);
    if (!str_to_u64(first, &named) || named != run || !rest.at || !str_to_u64(rest, &index))
        return false;
    *ret_index = (size_t)index;
    return true;
}

static void response_input_write_id(const struct response_input *input, const char *key,
                                    size_t index, struct json_writer *json) {
    char room[64];
    struct buf id = {.at = room, .room = sizeof(room), .max_bytes = sizeof(room)};
    append_id(input->run, index, &id);
    json_member_str(json, key, buf_str(&id));
}

/* --- items --------------------------------------------------------------------------------- */

static void write_text_part(struct json_writer *json, const char *type, struct json quoted,
                            struct str text) {
    json_open_object(json);
    json_member_str(json, "type", str_from(type));
    if (quoted.kind == JSON_STRING) {
        json_member_raw(json, "text", quoted.raw);
    } else {
        json_member_str(json, "text", text);
    }
    json_close(json);
}

static void write_picture(struct json_writer *json, const struct part *part) {
    json_open_object(json);
    json_member_str(json, "type", STR("input_image"));
    parts_put_url(json, "image_url", part);
    json_member_raw(json, "detail",
                    part->detail.kind == JSON_STRING ? part->detail.raw : STR("\"auto\""));
    json_close(json);
}

static void write_said(const struct message *message, struct json_writer *json) {
    static const struct json none = {.kind = JSON_NONE};
    const char *type = message->role == MESSAGE_AGENT ? "output_text" : "input_text";
    struct json_reader reader = parts_enter(message->parts);
    struct part part;
    json_member_str(json, "type", STR("message"));
    json_member_str(json, "role",
                    message->role == MESSAGE_AGENT    ? STR("assistant")
                    : message->role == MESSAGE_SYSTEM ? STR("system")
                                                      : STR("user"));
    json_member_array(json, "content");
    if (!message->parts.len) write_text_part(json, type, none, message->text);
    while (message->parts.len && parts_next(&reader, &part)) {
        if (part.kind == PART_TEXT) {
            write_text_part(json, type, part.text, STR_EMPTY);
        } else {
            write_picture(json, &part);
        }
    }
    json_close(json);
}

/* A run keeps the text of a result as an object. */
static void write_output(struct str kept, struct json_writer *json) {
    struct json object = json_of(kept);
    struct json text = json_find(object, STR("result"));
    if (text.kind == JSON_STRING && json_count(object) == 1) {
        json_member_raw(json, "output", text.raw);
    } else {
        json_member_str(json, "output", kept);
    }
}

static void write_call(const struct message *message, struct json_writer *json) {
    bool result = message->role == MESSAGE_TOOL_RESULT;
    json_member_str(json, "type", result ? STR("function_call_output") : STR("function_call"));
    json_member_str(json, "call_id", message->call_id);
    if (result) {
        write_output(message->text, json);
        return;
    }
    json_member_str(json, "name", message->tool);
    json_member_str(json, "arguments", message->text);
}

static void write_message(const struct response_input *input, size_t index,
                          struct json_writer *json) {
    const struct message *message = &input->import.messages[index];
    bool call = message->role == MESSAGE_TOOL_CALL || message->role == MESSAGE_TOOL_RESULT;
    json_open_object(json);
    response_input_write_id(input, "id", index, json);
    if (call) {
        write_call(message, json);
    } else {
        write_said(message, json);
    }
    json_member_str(json, "status", STR("completed"));
    json_close(json);
}

static void write_answer(const struct response_input *input, struct json_writer *json) {
    char room[64];
    struct buf question = {.at = room, .room = sizeof(room), .max_bytes = sizeof(room)};
    buf_append(&question, STR("mcpr_"));
    buf_append_u64(&question, input->run);
    buf_append_byte(&question, '_');
    buf_append_u64(&question, input->approval_seq);
    json_open_object(json);
    response_input_write_id(input, "id", 0, json);
    json_member_str(json, "type", STR("mcp_approval_response"));
    json_member_str(json, "approval_request_id", buf_str(&question));
    json_member_bool(json, "approve", input->approved);
    json_close(json);
}

/* --- the page ------------------------------------------------------------------------------ */

static size_t count_of(const struct response_input *input) {
    return input->import.count ? input->import.count : input->approval_id.len > 0;
}

/* The index of the `nth` item of all, in the page's order. */
static size_t index_of(const struct response_input_page *page, size_t count, size_t nth) {
    return page->ascending ? nth : count - 1 - nth;
}

static size_t first_of(const struct response_input_page *page, size_t count) {
    if (!page->has_after) return 0;
    if (page->after >= count) return count;
    return index_of(page, count, page->after) + 1;
}

void response_input_write(const struct response_input *input,
                          const struct response_input_page *page, struct json_writer *json) {
    size_t count = count_of(input), first = first_of(page, count), end = first + page->limit;
    if (end > count) end = count;
    json_open_object(json);
    json_member_str(json, "object", STR("list"));
    json_member_array(json, "data");
    for (size_t nth = first; nth < end; nth++) {
        if (input->import.count) {
            write_message(input, index_of(page, count, nth), json);
        } else {
            write_answer(input, json);
        }
    }
    json_close(json);
    if (first < end) {
        response_input_write_id(input, "first_id", index_of(page, count, first), json);
        response_input_write_id(input, "last_id", index_of(page, count, end - 1), json);
    } else {
        json_member_null(json, "first_id");
        json_member_null(json, "last_id");
    }
    json_member_bool(json, "has_more", end < count);
    json_close(json);
}
