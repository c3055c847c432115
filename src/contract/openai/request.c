#include "contract/openai/request.h"

#include "base/id.h"
#include "schema/schema.h"

#define SHOWN_BYTES 80

bool request_read_body(struct request_reading *reading, struct str text,
                       const char *const *keys, struct json *ret) {
    if (text.len == 0)
        return err_set(reading->e, ERR_MALFORMED, "the body is empty; send a JSON object");
    if (!json_read(text, ret, reading->e)) return false;
    if (ret->kind == JSON_OBJECT) return json_check_once(*ret, keys, reading->e);
    return err_set(reading->e, ERR_MALFORMED, "the body must be a JSON object, not %s",
                   json_kind_name(ret->kind));
}

/* --- the shape of the answer -------------------------------------------------------------- */

static bool take_schema(struct request_reading *reading, struct json value, const char *param,
                        struct str *ret) {
    struct schema *schema;
    struct err why;
    if (value.kind != JSON_OBJECT)
        return request_refuse(reading, param, "a json_schema needs its schema, an object");
    if (!schema_read(value.raw, &schema, &why))
        return request_refuse(reading, param, "the schema cannot be used: %s", why.text);
    schema_free(schema);
    *ret = value.raw;
    return true;
}

bool request_take_format(struct request_reading *reading, struct json value, const char *param,
                         struct guest_request *ret) {
    bool strict = false;
    struct json type = json_find(value, STR("type"));
    struct json holder = json_find(value, STR("json_schema"));
    if (json_is_absent(value) || json_is(type, STR("text"))) return true;
    if (json_is(type, STR("json_object"))) {
        ret->schema = STR("{\"type\":\"object\"}");
        return true;
    }
    if (!json_is(type, STR("json_schema")))
        return request_refuse(reading, param,
                              "its type must be text, json_object or json_schema");
    if (holder.kind != JSON_OBJECT) holder = value;
    if (!request_take_bool(reading, json_find(holder, STR("strict")), param, &strict))
        return false;
    ret->schema_loose = !strict;
    return take_schema(reading, json_find(holder, STR("schema")), param, &ret->schema);
}

/* --- tools -------------------------------------------------------------------------------- */

static bool take_tool(struct request_reading *reading, struct json value, size_t index,
                      struct tool_offer *ret) {
    struct json type = json_find(value, STR("type"));
    struct json holder = json_find(value, STR("function"));
    struct json parameters;
    (void)index;
    if (value.kind != JSON_OBJECT || !json_is(type, STR("function")))
        return request_refuse(reading, "tools",
                              "only tools of the type \"function\" can be brought; what the "
                              "agent can do besides is its own configuration");
    if (holder.kind != JSON_OBJECT) holder = value;
    *ret = (struct tool_offer){STR_EMPTY, STR_EMPTY, STR_EMPTY};
    if (!request_take_text(reading, json_find(holder, STR("name")), "tools", &ret->name) ||
        !request_take_text(reading, json_find(holder, STR("description")), "tools",
                           &ret->description))
        return false;
    if (ret->name.len == 0) return request_refuse(reading, "tools", "a function has no name");
    parameters = json_find(holder, STR("parameters"));
    if (json_is_absent(parameters)) return true;
    if (parameters.kind != JSON_OBJECT)
        return request_refuse(
            reading, "tools", "the parameters of '" STR_FMT "' must be an object, not %s",
            STR_ARG(str_head(ret->name, SHOWN_BYTES)), json_kind_name(parameters.kind));
    ret->parameters = parameters.raw;
    return true;
}

static bool take_choice(struct request_reading *reading, struct json choice,
                        struct guest_request *ret) {
    struct json function = json_find(choice, STR("function"));
    struct json holder = function.kind == JSON_OBJECT ? function : choice;
    if (json_is_absent(choice) || json_is(choice, STR("auto"))) return true;
    if (json_is(choice, STR("none"))) {
        ret->tool_count = 0;
        return true;
    }
    if (json_is(choice, STR("required"))) {
        ret->tool_choice = STR(TOOL_CHOICE_REQUIRED);
        return ret->tool_count ||
               request_refuse(reading, "tool_choice", "required, but there are no tools");
    }
    if (choice.kind == JSON_OBJECT && json_is(json_find(choice, STR("type")), STR("function")))
        return request_take_text(reading, json_find(holder, STR("name")), "tool_choice",
                                 &ret->tool_choice);
    return request_refuse(reading, "tool_choice",
                          "must be none, auto, required or one function");
}

bool request_take_tools(struct request_reading *reading, struct json tools, struct json choice,
                        struct guest_request *ret) {
    ret->args_as_text = !json_is_absent(tools);
    return request_take_tool_list(reading, tools, take_tool, ret) &&
           take_choice(reading, choice, ret);
}

/* --- metadata ----------------------------------------------------------------------------- */

static bool take_extras(struct request_reading *reading, struct json metadata,
                        struct guest_request *ret) {
    struct buf out;
    buf_init(&out, 2 * metadata.raw.len + KIB);
    buf_append(&out, STR("{\"metadata\":"));
    json_compact(metadata.raw, &out);
    buf_append(&out, STR("}"));
    bool fits = buf_ok(&out) && arena_str(reading->arena, buf_str(&out), &ret->extras);
    buf_done(&out);
    return fits || request_too_large(reading);
}

bool request_take_metadata(struct request_reading *reading, struct json metadata,
                           struct str header_session, struct guest_request *ret) {
    if (!json_is_absent(metadata)) {
        if (metadata.kind != JSON_OBJECT)
            return request_refuse(reading, "metadata", "must be an object, not %s",
                                  json_kind_name(metadata.kind));
        if (!request_take_text(reading, json_find(metadata, STR("session_id")),
                               "metadata.session_id", &ret->session) ||
            !take_extras(reading, metadata, ret))
            return false;
    }
    if (ret->session.len == 0 && header_session.len) ret->session = header_session;
    if (ret->session.len) ret->brought = BROUGHT_MERGE;
    return ret->session.len == 0 || id_check("session_id", ret->session, reading->e);
}

/* --- messages ----------------------------------------------------------------------------- */

bool request_take_messages(struct request_reading *reading, struct json list, const char *param,
                           bool goes_on, struct guest_request *ret) {
    struct import import;
    bool reads = goes_on ? import_read_next(list, reading->arena, &import, reading->e)
                         : import_read(list, reading->arena, &import, reading->e);
    if (!reads) {
        reading->param = str_from(param);
        if (reading->e->code == ERR_RESOURCE_EXHAUSTED) reading->e->code = ERR_TOO_LARGE;
        return false;
    }
    size_t i = import.count - 1;
    while (i > 0 && import.messages[i].role != MESSAGE_USER) i--;
    bool said = import.messages[i].role == MESSAGE_USER;
    ret->messages = import.messages;
    ret->message_count = import.count;
    ret->text = said ? import.messages[i].text : STR_EMPTY;
    return true;
}
