#include "mcp/rounds.h"

/* The reply to a request of the server; nobody is really asked. False: it cannot be
 * answered. */
static bool write_input(struct json request, struct json_writer *w, struct err *e) {
    struct json method = json_find(request, STR("method"));
    if (json_is(method, STR("elicitation/create"))) {
        json_write_raw(w, STR("{\"action\":\"cancel\"}"));
    } else if (json_is(method, STR("roots/list"))) {
        json_write_raw(w, STR("{\"roots\":[]}"));
    } else {
        return err_set(e, ERR_UNIMPLEMENTED,
                       "the MCP server asks for " STR_FMT ", which it does not get here",
                       STR_ARG(str_head(method.raw, 80)));
    }
    return true;
}

static bool write_inputs(struct json requests, struct json_writer *w, struct err *e) {
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
        if (!write_input(request, w, e)) return false;
    }
    json_close(w);
    return true;
}

bool mcp_write_round(struct str params, struct json result, struct buf *out, struct err *e) {
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
    if (!write_inputs(json_find(result, STR("inputRequests")), &w, e)) return false;
    if (state.kind != JSON_NONE) json_member_raw(&w, "requestState", state.raw);
    json_close(&w);
    return true;
}
