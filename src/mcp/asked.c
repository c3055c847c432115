#include "mcp/asked.h"

static bool has_default(struct json properties, struct json name) {
    struct buf text;
    buf_init(&text, SIZE_MAX);
    bool has =
        name.kind == JSON_STRING && json_text(name, &text) &&
        json_find(json_find(properties, buf_str(&text)), STR("default")).kind != JSON_NONE;
    buf_done(&text);
    return has;
}

static bool can_accept(struct json params) {
    struct json name, mode = json_find(params, STR("mode"));
    struct json schema = json_find(params, STR("requestedSchema"));
    struct json required = json_find(schema, STR("required"));
    bool is_form = mode.kind == JSON_NONE || json_is(mode, STR("form"));
    if (!is_form || schema.kind != JSON_OBJECT) return false;
    if (required.kind != JSON_ARRAY) return required.kind == JSON_NONE;
    struct json_reader names = json_enter(required);
    while (json_next_item(&names, &name)) {
        if (!has_default(json_find(schema, STR("properties")), name)) return false;
    }
    return true;
}

/* Keys are copied as they were written. */
static void write_defaults(struct json properties, struct buf *out) {
    struct json key, property;
    struct json_reader members = json_enter(properties);
    bool first = true;
    buf_append_byte(out, '{');
    while (properties.kind == JSON_OBJECT && json_next_member(&members, &key, &property)) {
        struct json value = json_find(property, STR("default"));
        if (value.kind == JSON_NONE) continue;
        if (!first) buf_append_byte(out, ',');
        first = false;
        buf_append(out, key.raw);
        buf_append_byte(out, ':');
        buf_append(out, value.raw);
    }
    buf_append_byte(out, '}');
}

static void reply_to_question(struct json params, enum mcp_elicitation elicitation,
                              struct buf *out) {
    struct json properties =
        json_find(json_find(params, STR("requestedSchema")), STR("properties"));
    if (elicitation != MCP_ELICITATION_DEFAULTS || !can_accept(params)) {
        buf_append(out, STR("{\"action\":\"cancel\"}"));
        return;
    }
    buf_append(out, STR("{\"action\":\"accept\",\"content\":"));
    write_defaults(properties, out);
    buf_append_byte(out, '}');
}

bool mcp_reply(struct json method, struct json params, enum mcp_elicitation elicitation,
               struct buf *out) {
    if (json_is(method, STR("ping"))) {
        buf_append(out, STR("{}"));
    } else if (json_is(method, STR("elicitation/create"))) {
        reply_to_question(params, elicitation, out);
    } else {
        return false;
    }
    return true;
}

void mcp_write_capabilities(struct json_writer *w, enum mcp_elicitation elicitation) {
    if (elicitation != MCP_ELICITATION_DEFAULTS) return;
    json_member_object(w, "elicitation");
    json_member_object(w, "form");
    json_close(w);
    json_close(w);
}

/* --- a stateless server that needs more before it answers --------------------------------- */

/* The reply to a request of the server. False: it cannot be answered. */
static bool write_input(struct json request, enum mcp_elicitation elicitation,
                        struct json_writer *w, struct err *e) {
    struct json method = json_find(request, STR("method"));
    struct buf reply;
    buf_init(&reply, SIZE_MAX);
    bool roots = json_is(method, STR("roots/list"));
    bool answered =
        roots || mcp_reply(method, json_find(request, STR("params")), elicitation, &reply);
    if (answered) json_write_raw(w, roots ? STR("{\"roots\":[]}") : buf_str(&reply));
    buf_done(&reply);
    return answered ||
           err_set(e, ERR_UNIMPLEMENTED,
                   "the MCP server asks for " STR_FMT ", which it does not get here",
                   STR_ARG(str_head(method.raw, 80)));
}

static bool write_inputs(struct json requests, enum mcp_elicitation elicitation,
                         struct json_writer *w, struct err *e) {
    struct json key, request;
    struct json_reader members = json_enter(requests);
    if (requests.kind != JSON_OBJECT) return true;
    json_member_object(w, "inputResponses");
    while (json_next_member(&members, &key, &request)) {
        struct buf name;
        buf_init(&name, SIZE_MAX);
        json_text(key, &name);
        json_key(w, buf_str(&name));
        buf_done(&name);
        if (!write_input(request, elicitation, w, e)) return false;
    }
    json_close(w);
    return true;
}

bool mcp_write_round(struct str params, struct json result, enum mcp_elicitation elicitation,
                     struct buf *out, struct err *e) {
    struct json key, value, state = json_find(result, STR("requestState"));
    struct json_reader members = json_enter(json_of(params));
    struct json_writer w = json_writer(out);
    json_open_object(&w);
    while (json_next_member(&members, &key, &value)) {
        if (json_is(key, STR("inputResponses")) || json_is(key, STR("requestState"))) continue;
        struct buf name;
        buf_init(&name, SIZE_MAX);
        json_text(key, &name);
        json_key(&w, buf_str(&name));
        buf_done(&name);
        json_write_raw(&w, value.raw);
    }
    if (!write_inputs(json_find(result, STR("inputRequests")), elicitation, &w, e))
        return false;
    if (state.kind != JSON_NONE) json_member_raw(&w, "requestState", state.raw);
    json_close(&w);
    return true;
}
