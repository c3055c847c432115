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
