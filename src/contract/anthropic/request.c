#include "contract/anthropic/request.h"

#include "contract/request_reading.h"
#include "schema/schema.h"

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

/* --- instructions ------------------------------------------------------------------------- */

/* A text, or an array of text blocks. */
static bool take_system(struct request_reading *reading, struct json value, struct str *ret) {
    struct json_reader reader = json_enter(value);
    struct json block;
    struct buf text;
    if (value.kind != JSON_ARRAY) return request_take_text(reading, value, "system", ret);
    buf_init(&text, SYSTEM_MAX_BYTES);
    bool fine = true;
    for (size_t i = 0; fine && json_next_item(&reader, &block); i++) {
        struct json words = json_find(block, STR("text"));
        if (i) buf_append(&text, STR("\n\n"));
        fine = words.kind == JSON_STRING;
        if (fine) json_text(words, &text);
        if (!fine)
            err_set(reading->e, ERR_INVALID_ARGUMENT,
                    "system.%zu: must be a block of type text", i);
    }
    if (fine && !(buf_ok(&text) && arena_str(reading->arena, buf_str(&text), ret)))
        fine = request_too_large(reading);
    buf_done(&text);
    return fine;
}

/* --- messages ----------------------------------------------------------------------------- */

/* The caller's instructions come first in the conversation; the agent keeps its own. */
static bool take_messages(struct request_reading *reading, struct json list,
                          enum messages_use use, struct str system, struct guest_request *ret) {
    struct import import;
    bool goes_on = use == MESSAGES_GO_ON;
    if (list.kind == JSON_NONE) return request_refuse(reading, "messages", "field required");
    bool reads = import_read_blocks(list, goes_on, reading->arena, &import, reading->e);
    return request_take_conversation(reading, reads, &import, system, ret);
}

/* --- tools -------------------------------------------------------------------------------- */

static bool take_tool(struct request_reading *reading, struct json from, size_t index,
                      struct tool_offer *ret) {
    struct json type = json_find(from, STR("type"));
    struct json schema = json_find(from, STR("input_schema"));
    struct err why, *e = reading->e;
    struct request_reading inner = {.arena = reading->arena, .e = &why};
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
    if (!request_take_text(&inner, json_find(from, STR("name")), "name", &ret->name) ||
        !request_take_text(&inner, json_find(from, STR("description")), "description",
                           &ret->description))
        return err_set(e, why.code, "tools.%zu.%s", index, why.text);
    return json_compact_copy(schema, reading->arena, &ret->parameters) ||
           request_too_large(reading);
}

static bool take_choice(struct request_reading *reading, struct json choice,
                        struct guest_request *ret) {
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
        return request_refuse(reading, "tool_choice.type", "must be auto, any, tool or none");
    struct json name = json_find(choice, STR("name"));
    if (json_is_absent(name))
        return request_refuse(reading, "tool_choice.name", "field required");
    return request_take_text(reading, name, "tool_choice.name", &ret->tool_choice);
}

/* --- the shape of the answer -------------------------------------------------------------- */

/* {"type":"json_schema","schema":{...}} */
static bool take_format(struct request_reading *reading, struct json format, const char *place,
                        struct guest_request *ret) {
    struct json type = json_find(format, STR("type"));
    struct json value = json_find(format, STR("schema"));
    struct schema *schema;
    struct err why;
    if (json_is_absent(format)) return true;
    if (!json_is(type, STR("json_schema")) || value.kind != JSON_OBJECT)
        return request_refuse(
            reading, place, "must have the type json_schema, and a schema, which is an object");
    if (!schema_read(value.raw, &schema, &why))
        return err_set(reading->e, ERR_INVALID_ARGUMENT, "%s.schema: cannot be used: %s", place,
                       why.text);
    schema_free(schema);
    ret->schema = value.raw;
    return true;
}

/* The beta of this API had `output_format`. */
static bool take_formats(struct request_reading *reading, struct json config, struct json beta,
                         struct guest_request *ret) {
    return take_format(reading, beta, "output_format", ret) &&
           take_format(reading, json_find(config, STR("format")), "output_config.format", ret);
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

static bool take_options(struct request_reading *reading, struct json body,
                         struct json max_tokens, enum messages_use use,
                         struct guest_request *ret) {
    if (json_is_absent(max_tokens) && use != MESSAGES_COUNTED)
        return request_refuse(reading, "max_tokens", "field required");
    return request_take_options(reading, body, reply_options, ARRAY_LEN(reply_options), ret);
}

bool messages_request_parse(struct str body, enum messages_use use, struct arena *arena,
                            struct guest_request *ret, struct err *e) {
    struct request_reading reading = {.arena = arena, .e = e};
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
        return request_refuse(&reading, "model", "field required; it names an agent");
    return request_take_text(&reading, found[MODEL], "model", &ret->agent) &&
           take_options(&reading, whole, found[MAX_TOKENS], use, ret) &&
           request_take_bool(&reading, found[STREAM], "stream", &ret->streams) &&
           take_system(&reading, found[SYSTEM], &system) &&
           request_take_tool_list(&reading, found[TOOLS], take_tool, ret) &&
           take_choice(&reading, found[TOOL_CHOICE], ret) &&
           take_formats(&reading, found[OUTPUT_CONFIG], found[OUTPUT_FORMAT], ret) &&
           request_take_text(&reading, json_find(found[METADATA], STR("user_id")),
                             "metadata.user_id", &ret->user) &&
           take_messages(&reading, found[MESSAGES], use, system, ret);
}
