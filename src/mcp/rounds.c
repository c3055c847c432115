#include "mcp/rounds.h"

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
