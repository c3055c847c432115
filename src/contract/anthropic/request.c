#include "contract/anthropic/request.h"

#include "contract/caller_options.h"
#include "conversation/import.h"
#include "schema/schema.h"

#include <string.h>

#define SYSTEM_MAX_BYTES (16 * MIB)

enum key {
    MODEL,
    MESSAGES,
    MAX_TOKENS,
    SYSTEM,
    STREAM,
    TOOLS,
    TOOL_CHOICE,
    METADATA,
    OUTPUT_CONFIG,
    OUTPUT_FORMAT,
    KEYS
};

static const struct str keys[KEYS] = {STR_INIT("model"),         STR_INIT("messages"),
                                      STR_INIT("max_tokens"),    STR_INIT("system"),
                                      STR_INIT("stream"),        STR_INIT("tools"),
                                      STR_INIT("tool_choice"),   STR_INIT("metadata"),
                                      STR_INIT("output_config"), STR_INIT("output_format")};

/* Read twice by two readers they would mean two things. */
static const char *const once[] = {"model",         "messages", "system",      "stream",
                                   "tools",         "metadata", "tool_choice", "output_config",
                                   "output_format", NULL};

static bool too_large(struct err *e) {
    return err_set(e, ERR_TOO_LARGE, "the request is larger than a turn may hold");
}

static bool take_text(struct json value, const char *place, struct arena *arena,
                      struct str *ret, struct err *e) {
    if (json_is_absent(value)) return true;
    if (value.kind != JSON_STRING)
        return err_set(e, ERR_INVALID_ARGUMENT, "%s: must be a string, not %s", place,
                       json_kind_name(value.kind));
    return json_str(value, arena, ret) || too_large(e);
}

static bool take_flag(struct json value, const char *place, bool *ret, struct err *e) {
    return json_is_absent(value) || json_bool(value, ret) ||
           err_set(e, ERR_INVALID_ARGUMENT, "%s: must be true or false, not %s", place,
                   json_kind_name(value.kind));
}

/* --- instructions ------------------------------------------------------------------------- */

/* A text, or an array of text blocks. */
static bool take_system(struct json value, struct arena *arena, struct str *ret,
                        struct err *e) {
    struct json_reader reader = json_enter(value);
    struct json block;
    struct buf text;
    if (value.kind != JSON_ARRAY) return take_text(value, "system", arena, ret, e);
    buf_init(&text, SYSTEM_MAX_BYTES);
    bool fine = true;
    for (size_t i = 0; fine && json_next_item(&reader, &block); i++) {
        struct json words = json_find(block, STR("text"));
        if (i) buf_append(&text, STR("\n\n"));
        fine = words.kind == JSON_STRING;
        if (fine) json_text(words, &text);
        if (!fine)
            err_set(e, ERR_INVALID_ARGUMENT, "system.%zu: must be a block of type text", i);
    }
    if (fine && !(buf_ok(&text) && arena_str(arena, buf_str(&text), ret))) fine = too_large(e);
    buf_done(&text);
    return fine;
}

/* --- messages ----------------------------------------------------------------------------- */

/* The caller's instructions come first in the conversation; the agent keeps its own. */
static bool precede(struct str system, struct import *import, struct arena *arena) {
    if (str_trim(system).len == 0) return true;
    struct message *messages = arena_alloc(arena, (import->count + 1) * sizeof(struct message));
    if (!messages) return false;
    messages[0] = (struct message){.role = MESSAGE_SYSTEM, .text = system};
    memcpy(messages + 1, import->messages, import->count * sizeof(struct message));
    *import = (struct import){messages, import->count + 1};
    return true;
}

static bool take_messages(struct json list, struct str system, struct arena *arena,
                          struct guest_request *ret, struct err *e) {
    struct import import;
    if (list.kind == JSON_NONE)
        return err_set(e, ERR_INVALID_ARGUMENT, "messages: field required");
    if (!import_read_blocks(list, arena, &import, e)) {
        if (e->code == ERR_RESOURCE_EXHAUSTED) e->code = ERR_TOO_LARGE;
        return false;
    }
    if (!precede(system, &import, arena)) return too_large(e);
    const struct message *last = &import.messages[import.count - 1];
    if (last->role == MESSAGE_USER) ret->text = last->text;
    ret->messages = import.messages;
    ret->message_count = import.count;
    return true;
}

/* --- tools -------------------------------------------------------------------------------- */

static bool read_tool(struct json from, size_t index, struct arena *arena,
                      struct tool_offer *ret, struct err *e) {
    struct json type = json_find(from, STR("type"));
    struct json schema = json_find(from, STR("input_schema"));
    struct err why;
    if (from.kind != JSON_OBJECT)
        return err_set(e, ERR_INVALID_ARGUMENT, "tools.%zu: must be an object, not %s", index,
                       json_kind_name(from.kind));
    if (!json_is_absent(type) && !json_is(type, STR("custom")))
        return err_set(e, ERR_INVALID_ARGUMENT,
                       "tools.%zu.type: tools that Anthropic's servers run do not exist here; "
                       "give the agent one, or send a tool of your own",
                       index);
    if (schema.kind != JSON_OBJECT)
        return err_set(e, ERR_INVALID_ARGUMENT,
                       "tools.%zu.input_schema: must be a JSON Schema, which is an object",
                       index);
    *ret = (struct tool_offer){.name = STR_EMPTY, .description = STR_EMPTY};
    if (!take_text(json_find(from, STR("name")), "name", arena, &ret->name, &why) ||
        !take_text(json_find(from, STR("description")), "description", arena, &ret->description,
                   &why))
        return err_set(e, why.code, "tools.%zu.%s", index, why.text);
    return json_compact_copy(schema, arena, &ret->parameters) || too_large(e);
}

static bool take_tools(struct json list, struct arena *arena, struct guest_request *ret,
                       struct err *e) {
    struct json_reader reader = json_enter(list);
    struct json item;
    if (json_is_absent(list)) return true;
    if (list.kind != JSON_ARRAY)
        return err_set(e, ERR_INVALID_ARGUMENT, "tools: must be an array, not %s",
                       json_kind_name(list.kind));
    struct tool_offer *tools = arena_alloc(arena, (json_count(list) + 1) * sizeof(*tools));
    if (!tools) return too_large(e);
    for (size_t i = 0; json_next_item(&reader, &item); i++) {
        if (!read_tool(item, i, arena, &tools[i], e)) return false;
        ret->tool_count = i + 1;
    }
    ret->tools = tools;
    return true;
}

static bool take_choice(struct json choice, struct arena *arena, struct guest_request *ret,
                        struct err *e) {
    struct json type = json_find(choice, STR("type"));
    if (json_is_absent(choice) || json_is(type, STR("auto"))) return true;
    if (json_is(type, STR("none"))) {
        ret->tool_count = 0;
        return true;
    }
    if (json_is(type, STR("any"))) {
        ret->tool_choice = STR(TOOL_CHOICE_REQUIRED);
        return true;
    }
    if (!json_is(type, STR("tool")))
        return err_set(e, ERR_INVALID_ARGUMENT,
                       "tool_choice.type: must be auto, any, tool or none");
    struct json name = json_find(choice, STR("name"));
    if (json_is_absent(name))
        return err_set(e, ERR_INVALID_ARGUMENT, "tool_choice.name: field required");
    return take_text(name, "tool_choice.name", arena, &ret->tool_choice, e);
}

/* --- the shape of the answer -------------------------------------------------------------- */

/* {"type":"json_schema","schema":{...}} */
static bool take_format(struct json format, const char *place, struct guest_request *ret,
                        struct err *e) {
    struct json type = json_find(format, STR("type"));
    struct json value = json_find(format, STR("schema"));
    struct schema *schema;
    struct err why;
    if (json_is_absent(format)) return true;
    if (!json_is(type, STR("json_schema")) || value.kind != JSON_OBJECT)
        return err_set(e, ERR_INVALID_ARGUMENT,
                       "%s: must have the type json_schema, and a schema, which is an object",
                       place);
    if (!schema_read(value.raw, &schema, &why))
        return err_set(e, ERR_INVALID_ARGUMENT, "%s.schema: cannot be used: %s", place,
                       why.text);
    schema_free(schema);
    ret->schema = value.raw;
    return true;
}

/* The beta of this API had `output_format`. */
static bool take_formats(struct json config, struct json beta, struct guest_request *ret,
                         struct err *e) {
    return take_format(beta, "output_format", ret, e) &&
           take_format(json_find(config, STR("format")), "output_config.format", ret, e);
}

/* --- the body ----------------------------------------------------------------------------- */

#define AT(member) offsetof(struct model_options, member)

static const struct caller_option reply_options[] = {
    {"max_tokens", CALLER_LONGEST, 0, 0, 0},
    {"temperature", CALLER_NUMBER, AT(temperature), 0, 1},
    {"top_p", CALLER_NUMBER, AT(top_p), 0, 1},
    {"top_k", CALLER_COUNT, AT(top_k), 0, 0},
    {"stop_sequences", CALLER_STOPS, 0, 0, 0},
};

static bool take_options(struct json body, struct json max_tokens, bool counts,
                         struct arena *arena, struct guest_request *ret, struct err *e) {
    const char *name;
    if (json_is_absent(max_tokens) && !counts)
        return err_set(e, ERR_INVALID_ARGUMENT, "max_tokens: field required");
    return caller_options_take(reply_options, ARRAY_LEN(reply_options), body, arena,
                               &ret->options, &name, e);
}

bool messages_request_parse(struct str body, bool counts, struct arena *arena,
                            struct guest_request *ret, struct err *e) {
    struct json whole, found[KEYS];
    struct str system = STR_EMPTY;
    *ret = (struct guest_request){.brought = BROUGHT_WHOLE};
    if (!json_read(body, &whole, e)) return false;
    if (whole.kind != JSON_OBJECT)
        return err_set(e, ERR_INVALID_ARGUMENT, "the body must be an object, not %s",
                       json_kind_name(whole.kind));
    if (!json_check_once(whole, once, e)) return false;
    json_find_each(whole, keys, KEYS, found);
    if (found[MODEL].kind == JSON_NONE)
        return err_set(e, ERR_INVALID_ARGUMENT, "model: field required; it names an agent");
    return take_text(found[MODEL], "model", arena, &ret->agent, e) &&
           take_options(whole, found[MAX_TOKENS], counts, arena, ret, e) &&
           take_flag(found[STREAM], "stream", &ret->streams, e) &&
           take_system(found[SYSTEM], arena, &system, e) &&
           take_tools(found[TOOLS], arena, ret, e) &&
           take_choice(found[TOOL_CHOICE], arena, ret, e) &&
           take_formats(found[OUTPUT_CONFIG], found[OUTPUT_FORMAT], ret, e) &&
           take_text(json_find(found[METADATA], STR("user_id")), "metadata.user_id", arena,
                     &ret->user, e) &&
           take_messages(found[MESSAGES], system, arena, ret, e);
}
