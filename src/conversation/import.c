#include "conversation/import.h"

#include "base/mem.h"
#include "conversation/import_content.h"

#include <stdlib.h>

/* --- places ------------------------------------------------------------------------------- */

/* A message that was read, and its position in the list. */
struct import_entry {
    struct message message;
    size_t index; /* in the list */
    size_t item;  /* of a call: its index in tool_calls */
    bool answered;
};

static struct import_entry *push(struct import_reading *reading, enum message_role role) {
    if (reading->count == reading->room) {
        reading->room = reading->room ? 2 * reading->room : 32;
        reading->entries =
            mem_resize(reading->entries, reading->room * sizeof(*reading->entries));
    }
    struct import_entry *entry = &reading->entries[reading->count++];
    *entry = (struct import_entry){.index = reading->index,
                                   .message = {.role = role,
                                               .agent = STR_EMPTY,
                                               .text = STR_EMPTY,
                                               .call_id = STR_EMPTY,
                                               .tool = STR_EMPTY,
                                               .parts = STR_EMPTY}};
    return entry;
}

/* Copy the text of a string to the arena, even if it could be borrowed from the list. */
static bool import_keep(struct json string, struct arena *arena, struct str *ret) {
    struct str text;
    return json_str(string, arena, &text) && arena_str(arena, text, ret);
}

/* --- calls -------------------------------------------------------------------------------- */

/* Arguments are an object, or a string with the object that a model wrote. */
static bool take_args(struct import_reading *reading, struct json args, struct str *ret) {
    *ret = STR("{}");
    if (json_is_absent(args)) return true;
    if (args.kind == JSON_STRING)
        return import_keep(args, reading->arena, ret) || import_too_large(reading);
    if (args.kind == JSON_OBJECT)
        return json_compact_copy(args, reading->arena, ret) || import_too_large(reading);
    return import_refuse(reading, "arguments must be an object or a string, not %s",
                         json_kind_name(args.kind));
}

static bool take_name(struct import_reading *reading, struct json value, const char *what,
                      struct str *ret) {
    if (value.kind != JSON_STRING || json_is(value, STR("")))
        return import_refuse(reading, "%s is missing", what);
    return import_keep(value, reading->arena, ret) || import_too_large(reading);
}

static bool read_call(struct import_reading *reading, struct json id, struct json name,
                      struct json args, size_t item) {
    struct message call = {.role = MESSAGE_TOOL_CALL};
    if (!take_name(reading, id, "the call's id", &call.call_id) ||
        !take_name(reading, name, "the called tool's name", &call.tool) ||
        !take_args(reading, args, &call.text))
        return false;
    struct import_entry *entry = push(reading, MESSAGE_TOOL_CALL);
    entry->message.call_id = call.call_id;
    entry->message.tool = call.tool;
    entry->message.text = call.text;
    entry->item = item;
    open_calls_add(&reading->open, call.call_id, reading->index, reading->count - 1);
    return true;
}

/* OpenAI's {"id","function":{"name","arguments"}}, LangChain's {"id","name","args"}. */
static bool read_calls(struct import_reading *reading, struct json calls) {
    struct json_reader reader = json_enter(calls);
    struct json call;
    if (!json_is_absent(calls) && calls.kind != JSON_ARRAY)
        return import_refuse(reading, "tool_calls must be an array, not %s",
                             json_kind_name(calls.kind));
    for (size_t i = 0; json_next_item(&reader, &call); i++) {
        struct json function = json_find(call, STR("function"));
        bool openai = function.kind == JSON_OBJECT;
        struct json holder = openai ? function : call;
        import_in_item(reading, "tool_calls", i);
        if (!read_call(reading, json_find(call, STR("id")), json_find(holder, STR("name")),
                       json_find(holder, openai ? STR("arguments") : STR("args")), i))
            return false;
    }
    import_in_message(reading);
    return true;
}

/* The ids under tool_calls, as they are written there. */
static struct map *listed_ids(struct json calls) {
    struct map *ids = map_new();
    struct json_reader reader = json_enter(calls);
    struct json call;
    while (json_next_item(&reader, &call)) {
        struct json id = json_find(call, STR("id"));
        (void)map_put(ids, id.raw, ids);
    }
    return ids;
}

static bool read_call_part(struct import_reading *reading, struct json part,
                           const struct map *listed, size_t item) {
    struct json id = json_find(part, STR("id"));
    if (!json_is(json_find(part, STR("type")), STR("tool_use"))) return true;
    if (map_find(listed, id.raw)) return true;
    import_in_item(reading, "content", item);
    return read_call(reading, id, json_find(part, STR("name")), json_find(part, STR("input")),
                     item);
}

/* Anthropic puts calls in the content; LangChain repeats each of them under tool_calls. */
static bool read_call_parts(struct import_reading *reading, struct json content,
                            struct json calls) {
    struct json_reader reader = json_enter(content);
    struct json part;
    bool fine = true;
    if (content.kind != JSON_ARRAY) return true;
    struct map *listed = listed_ids(calls);
    for (size_t i = 0; fine && json_next_item(&reader, &part); i++)
        fine = read_call_part(reading, part, listed, i);
    map_free(listed);
    if (fine) import_in_message(reading);
    return fine;
}

/* --- messages ----------------------------------------------------------------------------- */

static bool read_system(struct import_reading *reading, struct json from) {
    struct message message;
    if (!import_take_content(reading, json_find(from, STR("content")), STR("\n\n"),
                             PICTURES_REFUSED, &message))
        return false;
    push(reading, MESSAGE_SYSTEM)->message.text = message.text;
    return true;
}

static struct json calls_of(const struct import_reading *reading, struct json from) {
    bool agui = reading->form == IMPORT_AGUI;
    struct json calls = json_find(from, agui ? STR("toolCalls") : STR("tool_calls"));
    if (!json_is_absent(calls) && (calls.kind != JSON_ARRAY || json_count(calls))) return calls;
    return json_find(json_find(from, STR("additional_kwargs")), STR("tool_calls"));
}

static bool read_agent(struct import_reading *reading, struct json from) {
    struct json content = json_find(from, STR("content"));
    struct json calls = calls_of(reading, from);
    struct message message = {.text = STR_EMPTY};
    if (json_count(json_find(from, STR("invalid_tool_calls"))))
        return import_refuse(reading, "invalid_tool_calls cannot be taken; leave them out");
    if (!json_is_absent(content) &&
        !import_take_content(reading, content, STR_EMPTY, PICTURES_REFUSED, &message))
        return false;
    if (message.text.len) push(reading, MESSAGE_AGENT)->message.text = message.text;
    return read_calls(reading, calls) && read_call_parts(reading, content, calls);
}

/* A result must be a JSON object; any other value becomes a member of one. */
static bool wrap_result(struct import_reading *reading, struct message *result) {
    struct buf out;
    if (json_reads_as_object(result->text)) return true;
    buf_init(&out, IMPORT_MESSAGE_MAX_BYTES);
    struct json_writer writer = json_writer(&out);
    json_open_object(&writer);
    json_member_str(&writer, result->error ? "error" : "result", result->text);
    json_close(&writer);
    bool fits = buf_ok(&out) && arena_str(reading->arena, buf_str(&out), &result->text);
    buf_done(&out);
    return fits || import_too_large(reading);
}

/* AG-UI has a text of its own for what went wrong, beside the content. */
static bool add_error(struct import_reading *reading, struct json from,
                      struct message *result) {
    struct json error = json_find(from, STR("error"));
    struct str text = STR_EMPTY;
    if (reading->form != IMPORT_AGUI || error.kind != JSON_STRING) return true;
    if (!json_str(error, reading->arena, &text)) return import_too_large(reading);
    bool told = str_find(result->text, text) < result->text.len || !str_trim(text).len;
    return told || import_add_text(result, text, reading->arena) || import_too_large(reading);
}

/* `id_name` is what the id is called in this form of a result, `from`. */
static bool take_result(struct import_reading *reading, struct json from, const char *id_name,
                        struct json content, bool error) {
    struct message result = {.error = error, .text = STR_EMPTY, .parts = STR_EMPTY};
    if (!take_name(reading, json_find(from, str_from(id_name)), id_name, &result.call_id) ||
        !import_take_content(reading, content, STR("\n\n"), PICTURES_REFUSED, &result) ||
        !add_error(reading, from, &result) || !wrap_result(reading, &result))
        return false;
    size_t call = open_calls_answer(&reading->open, result.call_id);
    bool known = call != OPEN_CALLS_NONE;
    if (!known && !reading->goes_on)
        return import_refuse(reading, "no call '" STR_FMT "' before it waits for a result",
                             STR_ARG(str_head(result.call_id, IMPORT_SHOWN_BYTES)));
    struct str tool = known ? reading->entries[call].message.tool : STR_EMPTY;
    if (known) reading->entries[call].answered = true;
    struct message *message = &push(reading, MESSAGE_TOOL_RESULT)->message;
    message->call_id = result.call_id;
    message->text = result.text;
    message->error = result.error;
    message->tool = tool;
    return true;
}

static bool read_result(struct import_reading *reading, struct json from) {
    bool agui = reading->form == IMPORT_AGUI;
    bool failed = json_is(json_find(from, STR("status")), STR("error")) ||
                  (agui && !json_is_absent(json_find(from, STR("error"))));
    return take_result(reading, from, agui ? "toolCallId" : "tool_call_id",
                       json_find(from, STR("content")), failed);
}

/* --- users -------------------------------------------------------------------------------- */

/* Anthropic puts results into the next message of the user. */
static bool read_result_parts(struct import_reading *reading, struct json content) {
    struct json_reader reader = json_enter(content);
    struct json part;
    if (reading->form != IMPORT_BLOCKS || content.kind != JSON_ARRAY) return true;
    for (size_t i = 0; json_next_item(&reader, &part); i++) {
        struct json result = json_find(part, STR("content"));
        if (!json_is(json_find(part, STR("type")), STR("tool_result"))) continue;
        import_in_item(reading, "content", i);
        if (json_is_absent(result)) result = json_of(STR("\"\""));
        if (!take_result(reading, part, "tool_use_id", result,
                         json_find(part, STR("is_error")).kind == JSON_TRUE))
            return false;
    }
    import_in_message(reading);
    return true;
}

static bool read_user(struct import_reading *reading, struct json from) {
    struct message message = {.parts = STR_EMPTY};
    struct json content = json_find(from, STR("content"));
    size_t before = reading->count;
    bool fine = read_result_parts(reading, content) &&
                import_take_content(reading, content, STR("\n\n"), PICTURES_READ, &message);
    bool only_results =
        fine && reading->count > before && !message.text.len && !message.parts.len;
    if (!fine || only_results) return fine;
    struct import_entry *entry = push(reading, MESSAGE_USER);
    entry->message.text = message.text;
    entry->message.parts = message.parts;
    return true;
}

/* --- roles -------------------------------------------------------------------------------- */

/* AG-UI's messages about the run itself, which no model is shown. */
static bool is_aside(const struct import_reading *reading, struct str role) {
    return reading->form == IMPORT_AGUI &&
           (str_equal(role, STR("reasoning")) || str_equal(role, STR("activity")));
}

static const struct {
    struct str name, class; /* LangChain's class, without "Chunk" */
    bool (*read)(struct import_reading *reading, struct json from);
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
    if (json_is_absent(*ret_role)) *ret_role = json_find(from, STR("type"));
    if (json_is(*ret_role, STR("constructor")) && kwargs.kind == JSON_OBJECT) {
        *ret_role = json_at(id, json_count(id) ? json_count(id) - 1 : 0);
        return kwargs;
    }
    bool saved = data.kind == JSON_OBJECT && json_is_absent(json_find(from, STR("content")));
    return saved ? data : from;
}

static bool read_message(struct import_reading *reading, struct json from) {
    struct json role;
    struct str name = STR("user");
    if (from.kind != JSON_OBJECT)
        return import_refuse(reading, "a message must be an object, not %s",
                             json_kind_name(from.kind));
    struct json message = unwrap(from, &role);
    if (!json_is_absent(role) && role.kind != JSON_STRING)
        return import_refuse(reading, "role must be a string, not %s",
                             json_kind_name(role.kind));
    if (!json_is_absent(role) && !json_str(role, reading->arena, &name))
        return import_too_large(reading);
    if (name.len == 0) name = STR("user");
    if (is_aside(reading, name)) return true;
    for (size_t i = 0; i < ARRAY_LEN(roles); i++) {
        if (is_role(name, i)) return roles[i].read(reading, message);
    }
    return import_refuse(
        reading, "no role '" STR_FMT "'; messages are of user, assistant, system or tool",
        STR_ARG(str_head(name, IMPORT_SHOWN_BYTES)));
}

/* --- the whole list ----------------------------------------------------------------------- */

static bool check_answered(struct import_reading *reading) {
    for (size_t i = 0; i < reading->count; i++) {
        const struct import_entry *entry = &reading->entries[i];
        if (entry->message.role != MESSAGE_TOOL_CALL || entry->answered) continue;
        if (reading->form == IMPORT_AGUI)
            continue; /* a person was asked, and said something else */
        reading->index = entry->index;
        import_in_item(reading, "tool_calls", entry->item);
        return import_refuse(reading, "the call '" STR_FMT "' has no result in the list",
                             STR_ARG(str_head(entry->message.call_id, IMPORT_SHOWN_BYTES)));
    }
    return true;
}

static bool check_last(struct import_reading *reading, size_t list_count) {
    const struct import_entry *last =
        reading->count ? &reading->entries[reading->count - 1] : NULL;
    bool any_user = false;
    for (size_t i = 0; i < reading->count; i++)
        any_user = any_user || reading->entries[i].message.role == MESSAGE_USER;
    reading->index = list_count - 1;
    import_in_message(reading);
    if (!last || (last->index != reading->index && reading->form != IMPORT_AGUI))
        return import_refuse(reading, "the last message says nothing");
    if (last->message.role == MESSAGE_SYSTEM)
        return import_refuse(reading,
                             "the last message is a system message; the last one is what is "
                             "asked");
    if (!any_user && !reading->goes_on)
        return err_set(reading->e, ERR_INVALID_ARGUMENT, "messages: none is of a user");
    return true;
}

static bool read_all(struct import_reading *reading, struct json list) {
    struct json_reader reader = json_enter(list);
    struct json item;
    if (list.kind != JSON_ARRAY)
        return err_set(reading->e, ERR_INVALID_ARGUMENT, "messages must be an array, not %s",
                       json_kind_name(list.kind));
    size_t count = 0;
    for (; json_next_item(&reader, &item); count++) {
        reading->index = count;
        import_in_message(reading);
        if (!read_message(reading, item)) return false;
    }
    if (count == 0)
        return err_set(reading->e, ERR_INVALID_ARGUMENT, "messages is empty; nothing is asked");
    return check_answered(reading) && check_last(reading, count);
}

static bool import_hand_over(struct import_reading *reading, struct import *ret) {
    struct message *messages =
        arena_alloc(reading->arena, (reading->count + 1) * sizeof(struct message));
    if (!messages) return import_too_large(reading);
    for (size_t i = 0; i < reading->count; i++) messages[i] = reading->entries[i].message;
    *ret = (struct import){messages, reading->count};
    return true;
}

static bool import_read_list(struct import_reading *reading, struct json list,
                             struct import *ret) {
    open_calls_init(&reading->open);
    bool fine = read_all(reading, list) && import_hand_over(reading, ret);
    open_calls_done(&reading->open);
    free(reading->entries);
    return fine;
}

bool import_read(struct json list, struct arena *arena, struct import *ret, struct err *e) {
    struct import_reading reading = {.arena = arena, .e = e};
    return import_read_list(&reading, list, ret);
}

bool import_read_blocks(struct json list, bool goes_on, struct arena *arena, struct import *ret,
                        struct err *e) {
    struct import_reading reading = {
        .arena = arena, .e = e, .form = IMPORT_BLOCKS, .goes_on = goes_on};
    return import_read_list(&reading, list, ret);
}

bool import_read_agui(struct json list, struct arena *arena, struct import *ret,
                      struct err *e) {
    struct import_reading reading = {.arena = arena, .e = e, .form = IMPORT_AGUI};
    return import_read_list(&reading, list, ret);
}

bool import_read_next(struct json list, struct arena *arena, struct import *ret,
                      struct err *e) {
    struct import_reading reading = {.arena = arena, .e = e, .goes_on = true};
    return import_read_list(&reading, list, ret);
}

bool import_add_text(struct message *message, struct str text, struct arena *arena) {
    struct buf out;
    buf_init(&out, IMPORT_MESSAGE_MAX_BYTES);
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
