#include "conversation/import.h"

#include "base/mem.h"
#include "conversation/image.h"

#include <stdio.h>
#include <stdlib.h>

/* Limit for one message, in addition to the arena's. */
#define CONTENT_MAX_BYTES (64 * MIB)

/* Bytes of the caller's input that an error quotes. */
#define SHOWN_BYTES 40

/* --- places ------------------------------------------------------------------------------- */

/* A message that was read, and its position in the list. */
struct entry {
    struct message message;
    size_t index; /* in the list */
    size_t item;  /* of a call: its index in tool_calls */
    bool answered;
};

struct reading {
    struct arena *arena;
    struct err *e;
    struct entry *entries;
    size_t count, room;
    size_t index;  /* of the current message */
    char part[32]; /* ".content[1]", or empty */
};

PRINTF_LIKE(2, 3) static bool refuse(struct reading *reading, const char *format, ...) {
    char text[ERR_TEXT_BYTES];
    va_list values;
    va_start(values, format);
    vsnprintf(text, sizeof(text), format, values);
    va_end(values);
    return err_set(reading->e, ERR_INVALID_ARGUMENT, "messages[%zu]%s: %s", reading->index,
                   reading->part, text);
}

static bool import_too_large(struct reading *reading) {
    return err_set(reading->e, ERR_RESOURCE_EXHAUSTED,
                   "the messages are larger than a turn may hold");
}

static void in_message(struct reading *reading) {
    reading->part[0] = '\0';
}

static void in_item(struct reading *reading, const char *member, size_t item) {
    snprintf(reading->part, sizeof(reading->part), ".%s[%zu]", member, item);
}

static struct entry *push(struct reading *reading, enum message_role role) {
    if (reading->count == reading->room) {
        reading->room = reading->room ? 2 * reading->room : 32;
        reading->entries =
            mem_resize(reading->entries, reading->room * sizeof(*reading->entries));
    }
    struct entry *entry = &reading->entries[reading->count++];
    *entry = (struct entry){.index = reading->index,
                            .message = {.role = role,
                                        .agent = STR_EMPTY,
                                        .text = STR_EMPTY,
                                        .call_id = STR_EMPTY,
                                        .tool = STR_EMPTY,
                                        .parts = STR_EMPTY}};
    return entry;
}

static bool is_absent(struct json value) {
    return value.kind == JSON_NONE || value.kind == JSON_NULL;
}

/* Copy the text of a string to the arena, even if it could be borrowed from the list. */
static bool import_keep(struct json string, struct arena *arena, struct str *ret) {
    struct str text;
    return json_str(string, arena, &text) && arena_str(arena, text, ret);
}

/* --- content ------------------------------------------------------------------------------ */

/* What is collected from the content of one message. */
struct content {
    struct buf text;  /* of the text parts */
    struct buf parts; /* all parts, in our form */
    struct json_writer writer;
    struct str between; /* separator of two text parts */
    size_t texts, images;
};

static void content_init(struct content *content, struct str between) {
    *content = (struct content){.between = between};
    buf_init(&content->text, CONTENT_MAX_BYTES);
    buf_init(&content->parts, CONTENT_MAX_BYTES);
}

static void content_done(struct content *content) {
    buf_done(&content->text);
    buf_done(&content->parts);
}

static bool add_text(struct reading *reading, struct content *content, struct json text) {
    if (text.kind != JSON_STRING)
        return refuse(reading, "text must be a string, not %s", json_kind_name(text.kind));
    if (content->texts++) buf_append(&content->text, content->between);
    json_text(text, &content->text);
    json_open_object(&content->writer);
    json_member_str(&content->writer, "type", STR("text"));
    json_member_raw(&content->writer, "text", text.raw);
    json_close(&content->writer);
    return true;
}

/* Count an image, or refuse it with its position. */
static bool added_image(struct reading *reading, struct content *content, bool written,
                        const struct err *why) {
    if (!written) return refuse(reading, "%s", why->text);
    content->images++;
    return true;
}

static bool add_url(struct reading *reading, struct content *content, struct json value,
                    struct json detail) {
    struct str url, closely = STR_EMPTY;
    struct err why;
    if (value.kind != JSON_STRING)
        return refuse(reading, "the image has neither bytes nor a URL; give a string");
    if (!json_str(value, reading->arena, &url)) return import_too_large(reading);
    if (detail.kind == JSON_STRING && !json_str(detail, reading->arena, &closely))
        return import_too_large(reading);
    bool written = image_put_url(&content->writer, url, closely, &why);
    return added_image(reading, content, written, &why);
}

static bool add_base64(struct reading *reading, struct content *content, struct json type,
                       struct json data) {
    struct str media_type, bytes;
    struct err why;
    if (type.kind != JSON_STRING || data.kind != JSON_STRING)
        return refuse(reading, "the image needs its media type and its bytes, as strings");
    if (!json_str(type, reading->arena, &media_type) || !json_str(data, reading->arena, &bytes))
        return import_too_large(reading);
    bool written = image_put_base64(&content->writer, media_type, bytes, STR_EMPTY, &why);
    return added_image(reading, content, written, &why);
}

/* --- parts -------------------------------------------------------------------------------- */

typedef bool part_fn(struct reading *reading, struct content *content, struct json part);

static bool text_part(struct reading *reading, struct content *content, struct json part) {
    return add_text(reading, content, json_find(part, STR("text")));
}

/* {"type":"image_url","image_url":{"url":...,"detail":...}}, or with the URL itself as
 * image_url; {"type":"input_image","image_url":"...","detail":...} */
static bool image_url_part(struct reading *reading, struct content *content, struct json part) {
    struct json image = json_find(part, STR("image_url"));
    struct json holder = image.kind == JSON_OBJECT ? image : part;
    struct json url = image.kind == JSON_OBJECT ? json_find(image, STR("url")) : image;
    return add_url(reading, content, url, json_find(holder, STR("detail")));
}

/* Anthropic's {"source":{"type":"base64","media_type","data"}} or {"type":"url","url"};
 * LangChain's own {"base64"|"data","mime_type"} or {"url"}. */
static bool image_part(struct reading *reading, struct content *content, struct json part) {
    struct json source = json_find(part, STR("source"));
    struct json holder = source.kind == JSON_OBJECT ? source : part;
    struct json url = json_find(holder, STR("url"));
    if (!is_absent(url)) return add_url(reading, content, url, (struct json){0});
    struct json type = json_find(holder, STR("media_type"));
    if (is_absent(type)) type = json_find(holder, STR("mime_type"));
    struct json data = json_find(holder, STR("data"));
    if (is_absent(data)) data = json_find(holder, STR("base64"));
    return add_base64(reading, content, type, data);
}

static const struct {
    struct str type;
    part_fn *read;
    bool picture;
} part_types[] = {
    {STR_INIT("text"), text_part, false},
    {STR_INIT("input_text"), text_part, false},
    {STR_INIT("output_text"), text_part, false},
    {STR_INIT("image_url"), image_url_part, true},
    {STR_INIT("input_image"), image_url_part, true},
    {STR_INIT("image"), image_part, true},
};

enum pictures { PICTURES_REFUSED, PICTURES_READ };

static bool refuse_type(struct reading *reading, struct json type) {
    struct str name = STR("(none)");
    if (type.kind == JSON_STRING && !json_str(type, reading->arena, &name))
        return import_too_large(reading);
    return refuse(reading, "a part of type '" STR_FMT "' cannot be taken here",
                  STR_ARG(str_head(name, SHOWN_BYTES)));
}

static bool add_part(struct reading *reading, struct content *content, struct json part,
                     enum pictures pictures) {
    if (part.kind == JSON_STRING) return add_text(reading, content, part);
    if (part.kind != JSON_OBJECT)
        return refuse(reading, "a part must be an object, not %s", json_kind_name(part.kind));
    struct json type = json_find(part, STR("type"));
    if (is_absent(type) && !is_absent(json_find(part, STR("text"))))
        return text_part(reading, content, part);
    for (size_t i = 0; i < ARRAY_LEN(part_types); i++) {
        if (!json_is(type, part_types[i].type)) continue;
        if (part_types[i].picture && pictures == PICTURES_REFUSED) break;
        return part_types[i].read(reading, content, part);
    }
    return refuse_type(reading, type);
}

/* Read a string, or an array of parts. Parts that are calls are read elsewhere. */
static bool add_content(struct reading *reading, struct content *content, struct json value,
                        enum pictures pictures) {
    struct json_reader reader = json_enter(value);
    struct json part;
    if (value.kind == JSON_STRING) return add_text(reading, content, value);
    if (value.kind != JSON_ARRAY)
        return refuse(reading, "content must be a string or an array of parts, not %s",
                      json_kind_name(value.kind));
    for (size_t i = 0; json_next_item(&reader, &part); i++) {
        if (json_is(json_find(part, STR("type")), STR("tool_use"))) continue;
        in_item(reading, "content", i);
        if (!add_part(reading, content, part, pictures)) return false;
    }
    in_message(reading);
    return true;
}

static bool take_content(struct reading *reading, struct json value, struct str between,
                         enum pictures pictures, struct message *ret) {
    struct content content;
    content_init(&content, between);
    content.writer = json_writer(&content.parts);
    json_open_array(&content.writer);
    bool fine = add_content(reading, &content, value, pictures);
    json_close(&content.writer);
    if (fine) {
        fine = buf_ok(&content.text) && buf_ok(&content.parts) &&
               arena_str(reading->arena, buf_str(&content.text), &ret->text) &&
               (content.images == 0 ||
                arena_str(reading->arena, buf_str(&content.parts), &ret->parts));
        if (!fine) import_too_large(reading);
    }
    content_done(&content);
    return fine;
}

/* --- calls -------------------------------------------------------------------------------- */

/* Arguments are an object, or a string with the object that a model wrote. */
static bool take_args(struct reading *reading, struct json args, struct str *ret) {
    *ret = STR("{}");
    if (is_absent(args)) return true;
    if (args.kind == JSON_STRING)
        return import_keep(args, reading->arena, ret) || import_too_large(reading);
    if (args.kind == JSON_OBJECT)
        return json_compact_copy(args, reading->arena, ret) || import_too_large(reading);
    return refuse(reading, "arguments must be an object or a string, not %s",
                  json_kind_name(args.kind));
}

static bool take_name(struct reading *reading, struct json value, const char *what,
                      struct str *ret) {
    if (value.kind != JSON_STRING || json_is(value, STR("")))
        return refuse(reading, "%s is missing", what);
    return import_keep(value, reading->arena, ret) || import_too_large(reading);
}

static bool read_call(struct reading *reading, struct json id, struct json name,
                      struct json args, size_t item) {
    struct message call = {.role = MESSAGE_TOOL_CALL};
    if (!take_name(reading, id, "the call's id", &call.call_id) ||
        !take_name(reading, name, "the called tool's name", &call.tool) ||
        !take_args(reading, args, &call.text))
        return false;
    struct entry *entry = push(reading, MESSAGE_TOOL_CALL);
    entry->message.call_id = call.call_id;
    entry->message.tool = call.tool;
    entry->message.text = call.text;
    entry->item = item;
    return true;
}

/* OpenAI's {"id","function":{"name","arguments"}}, LangChain's {"id","name","args"}. */
static bool read_calls(struct reading *reading, struct json calls) {
    struct json_reader reader = json_enter(calls);
    struct json call;
    if (!is_absent(calls) && calls.kind != JSON_ARRAY)
        return refuse(reading, "tool_calls must be an array, not %s",
                      json_kind_name(calls.kind));
    for (size_t i = 0; json_next_item(&reader, &call); i++) {
        struct json function = json_find(call, STR("function"));
        bool openai = function.kind == JSON_OBJECT;
        struct json holder = openai ? function : call;
        in_item(reading, "tool_calls", i);
        if (!read_call(reading, json_find(call, STR("id")), json_find(holder, STR("name")),
                       json_find(holder, openai ? STR("arguments") : STR("args")), i))
            return false;
    }
    in_message(reading);
    return true;
}

static bool is_call_listed(struct json calls, struct json id) {
    struct json_reader reader = json_enter(calls);
    struct json call;
    while (json_next_item(&reader, &call)) {
        if (str_equal(json_find(call, STR("id")).raw, id.raw)) return true;
    }
    return false;
}

/* Anthropic puts calls in the content; LangChain repeats each of them under tool_calls. */
static bool read_call_parts(struct reading *reading, struct json content, struct json calls) {
    struct json_reader reader = json_enter(content);
    struct json part;
    if (content.kind != JSON_ARRAY) return true;
    for (size_t i = 0; json_next_item(&reader, &part); i++) {
        struct json id = json_find(part, STR("id"));
        if (!json_is(json_find(part, STR("type")), STR("tool_use"))) continue;
        if (is_call_listed(calls, id)) continue;
        in_item(reading, "content", i);
        if (!read_call(reading, id, json_find(part, STR("name")), json_find(part, STR("input")),
                       i))
            return false;
    }
    in_message(reading);
    return true;
}

/* --- messages ----------------------------------------------------------------------------- */

static bool read_user(struct reading *reading, struct json from) {
    struct message message = {.parts = STR_EMPTY};
    if (!take_content(reading, json_find(from, STR("content")), STR("\n\n"), PICTURES_READ,
                      &message))
        return false;
    struct entry *entry = push(reading, MESSAGE_USER);
    entry->message.text = message.text;
    entry->message.parts = message.parts;
    return true;
}

static bool read_system(struct reading *reading, struct json from) {
    struct message message;
    if (!take_content(reading, json_find(from, STR("content")), STR("\n\n"), PICTURES_REFUSED,
                      &message))
        return false;
    push(reading, MESSAGE_SYSTEM)->message.text = message.text;
    return true;
}

static struct json calls_of(struct json from) {
    struct json calls = json_find(from, STR("tool_calls"));
    if (!is_absent(calls) && (calls.kind != JSON_ARRAY || json_count(calls))) return calls;
    return json_find(json_find(from, STR("additional_kwargs")), STR("tool_calls"));
}

static bool read_agent(struct reading *reading, struct json from) {
    struct json content = json_find(from, STR("content"));
    struct json calls = calls_of(from);
    struct message message = {.text = STR_EMPTY};
    if (json_count(json_find(from, STR("invalid_tool_calls"))))
        return refuse(reading, "invalid_tool_calls cannot be taken; leave them out");
    if (!is_absent(content) &&
        !take_content(reading, content, STR_EMPTY, PICTURES_REFUSED, &message))
        return false;
    if (message.text.len) push(reading, MESSAGE_AGENT)->message.text = message.text;
    return read_calls(reading, calls) && read_call_parts(reading, content, calls);
}

/* The newest call with this id that has no result yet, or NULL. */
static struct entry *open_call(struct reading *reading, struct str id) {
    for (size_t i = reading->count; i-- > 0;) {
        struct entry *entry = &reading->entries[i];
        bool call = entry->message.role == MESSAGE_TOOL_CALL;
        if (call && !entry->answered && str_equal(entry->message.call_id, id)) return entry;
    }
    return NULL;
}

/* If calls of one reply share an id, their results belong to them in order. */
static struct entry *first_open_call(struct reading *reading, struct str id) {
    struct entry *call = open_call(reading, id);
    while (call && call > reading->entries && call[-1].index == call->index &&
           call[-1].message.role == MESSAGE_TOOL_CALL && !call[-1].answered &&
           str_equal(call[-1].message.call_id, id))
        call--;
    return call;
}

static bool is_object(struct str text) {
    struct json value;
    struct err ignored;
    return json_read(text, &value, &ignored) && value.kind == JSON_OBJECT;
}

/* A result must be a JSON object; any other value becomes a member of one. */
static bool wrap_result(struct reading *reading, struct message *result) {
    struct buf out;
    if (is_object(result->text)) return true;
    buf_init(&out, CONTENT_MAX_BYTES);
    struct json_writer writer = json_writer(&out);
    json_open_object(&writer);
    json_member_str(&writer, result->error ? "error" : "result", result->text);
    json_close(&writer);
    bool fits = buf_ok(&out) && arena_str(reading->arena, buf_str(&out), &result->text);
    buf_done(&out);
    return fits || import_too_large(reading);
}

static bool read_result(struct reading *reading, struct json from) {
    struct message result = {.error = json_is(json_find(from, STR("status")), STR("error"))};
    if (!take_name(reading, json_find(from, STR("tool_call_id")), "tool_call_id",
                   &result.call_id) ||
        !take_content(reading, json_find(from, STR("content")), STR("\n\n"), PICTURES_REFUSED,
                      &result) ||
        !wrap_result(reading, &result))
        return false;
    struct entry *call = first_open_call(reading, result.call_id);
    if (!call)
        return refuse(reading, "no call '" STR_FMT "' before it waits for a result",
                      STR_ARG(str_head(result.call_id, SHOWN_BYTES)));
    call->answered = true;
    struct str tool = call->message.tool;
    struct message *message = &push(reading, MESSAGE_TOOL_RESULT)->message;
    message->call_id = result.call_id;
    message->text = result.text;
    message->error = result.error;
    message->tool = tool;
    return true;
}

/* --- roles -------------------------------------------------------------------------------- */

static const struct {
    struct str name, class; /* LangChain's class, without "Chunk" */
    bool (*read)(struct reading *reading, struct json from);
} roles[] = {
    {STR_INIT("user"), STR_INIT("HumanMessage"), read_user},
    {STR_INIT("human"), STR_INIT("HumanMessage"), read_user},
    {STR_INIT("assistant"), STR_INIT("AIMessage"), read_agent},
    {STR_INIT("ai"), STR_INIT("AIMessage"), read_agent},
    {STR_INIT("system"), STR_INIT("SystemMessage"), read_system},
    {STR_INIT("developer"), STR_INIT("SystemMessage"), read_system},
    {STR_INIT("tool"), STR_INIT("ToolMessage"), read_result},
};

static bool is_role(struct str name, size_t index) {
    if (str_equal(name, roles[index].name)) return true;
    if (str_ends(name, STR("Chunk"))) name = str_head(name, name.len - STR("Chunk").len);
    return str_equal(name, roles[index].class);
}

/* LangChain's forms of a message: {"type":"human","data":{...}} when saved, and
 * {"lc":1,"id":[..., "HumanMessage"],"kwargs":{...}} when serialised by a program. */
static struct json unwrap(struct json from, struct json *ret_role) {
    struct json data = json_find(from, STR("data")), kwargs = json_find(from, STR("kwargs"));
    struct json id = json_find(from, STR("id"));
    *ret_role = json_find(from, STR("role"));
    if (is_absent(*ret_role)) *ret_role = json_find(from, STR("type"));
    if (json_is(*ret_role, STR("constructor")) && kwargs.kind == JSON_OBJECT) {
        *ret_role = json_at(id, json_count(id) ? json_count(id) - 1 : 0);
        return kwargs;
    }
    bool saved = data.kind == JSON_OBJECT && is_absent(json_find(from, STR("content")));
    return saved ? data : from;
}

static bool read_message(struct reading *reading, struct json from) {
    struct json role;
    struct str name = STR("user");
    if (from.kind != JSON_OBJECT)
        return refuse(reading, "a message must be an object, not %s",
                      json_kind_name(from.kind));
    struct json message = unwrap(from, &role);
    if (!is_absent(role) && role.kind != JSON_STRING)
        return refuse(reading, "role must be a string, not %s", json_kind_name(role.kind));
    if (!is_absent(role) && !json_str(role, reading->arena, &name))
        return import_too_large(reading);
    if (name.len == 0) name = STR("user");
    for (size_t i = 0; i < ARRAY_LEN(roles); i++) {
        if (is_role(name, i)) return roles[i].read(reading, message);
    }
    return refuse(reading,
                  "no role '" STR_FMT "'; messages are of user, assistant, system or tool",
                  STR_ARG(str_head(name, SHOWN_BYTES)));
}

/* --- the whole list ----------------------------------------------------------------------- */

static bool check_answered(struct reading *reading) {
    for (size_t i = 0; i < reading->count; i++) {
        const struct entry *entry = &reading->entries[i];
        if (entry->message.role != MESSAGE_TOOL_CALL || entry->answered) continue;
        reading->index = entry->index;
        in_item(reading, "tool_calls", entry->item);
        return refuse(reading, "the call '" STR_FMT "' has no result in the list",
                      STR_ARG(str_head(entry->message.call_id, SHOWN_BYTES)));
    }
    return true;
}

static bool check_last(struct reading *reading, size_t list_count) {
    const struct entry *last = reading->count ? &reading->entries[reading->count - 1] : NULL;
    bool any_user = false;
    for (size_t i = 0; i < reading->count; i++)
        any_user = any_user || reading->entries[i].message.role == MESSAGE_USER;
    reading->index = list_count - 1;
    in_message(reading);
    if (!last || last->index != reading->index)
        return refuse(reading, "the last message says nothing");
    if (last->message.role == MESSAGE_SYSTEM)
        return refuse(reading, "the last message is a system message; the last one is what is "
                               "asked");
    if (!any_user)
        return err_set(reading->e, ERR_INVALID_ARGUMENT, "messages: none is of a user");
    return true;
}

static bool read_all(struct reading *reading, struct json list) {
    struct json_reader reader = json_enter(list);
    struct json item;
    if (list.kind != JSON_ARRAY)
        return err_set(reading->e, ERR_INVALID_ARGUMENT, "messages must be an array, not %s",
                       json_kind_name(list.kind));
    size_t count = 0;
    for (; json_next_item(&reader, &item); count++) {
        reading->index = count;
        in_message(reading);
        if (!read_message(reading, item)) return false;
    }
    if (count == 0)
        return err_set(reading->e, ERR_INVALID_ARGUMENT, "messages is empty; nothing is asked");
    return check_answered(reading) && check_last(reading, count);
}

static bool import_hand_over(struct reading *reading, struct import *ret) {
    struct message *messages =
        arena_alloc(reading->arena, (reading->count + 1) * sizeof(struct message));
    if (!messages) return import_too_large(reading);
    for (size_t i = 0; i < reading->count; i++) messages[i] = reading->entries[i].message;
    *ret = (struct import){messages, reading->count};
    return true;
}

bool import_read(struct json list, struct arena *arena, struct import *ret, struct err *e) {
    struct reading reading = {.arena = arena, .e = e};
    bool fine = read_all(&reading, list) && import_hand_over(&reading, ret);
    free(reading.entries);
    return fine;
}

bool import_add_text(struct message *message, struct str text, struct arena *arena) {
    struct buf out;
    buf_init(&out, CONTENT_MAX_BYTES);
    buf_append(&out, message->text);
    if (message->text.len) buf_append(&out, STR("\n\n"));
    buf_append(&out, text);
    bool fits = buf_ok(&out) && arena_str(arena, buf_str(&out), &message->text);
    if (fits && message->parts.len) {
        buf_clear(&out);
        buf_append(&out, str_head(message->parts, message->parts.len - 1));
        buf_append(&out, STR(",{\"type\":\"text\",\"text\":"));
        json_put_str(&out, text);
        buf_append(&out, STR("}]"));
        fits = buf_ok(&out) && arena_str(arena, buf_str(&out), &message->parts);
    }
    buf_done(&out);
    return fits;
}
