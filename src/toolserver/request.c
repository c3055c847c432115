#include "toolserver/request.h"

#include "toolserver/cursor.h"

#define META(name) STR("io.modelcontextprotocol/" name)

static const struct {
    const char *name;
    enum toolserver_method method;
} requests[] = {
    {"initialize", TOOLSERVER_INITIALIZE},
    {"server/discover", TOOLSERVER_DISCOVER},
    {"ping", TOOLSERVER_PING},
    {"tools/list", TOOLSERVER_LIST},
    {"tools/call", TOOLSERVER_CALL},
};

static enum toolserver_method request_method_of(const struct jsonrpc *message) {
    if (message->kind == JSONRPC_NOTIFICATION &&
        json_is(message->method, STR("notifications/cancelled")))
        return TOOLSERVER_CANCELLED;
    if (message->kind != JSONRPC_REQUEST) return TOOLSERVER_NOTE;
    for (size_t i = 0; i < ARRAY_LEN(requests); i++) {
        if (json_is(message->method, str_from(requests[i].name))) return requests[i].method;
    }
    return TOOLSERVER_UNKNOWN;
}

static bool request_is_id(struct json value) {
    int64_t number;
    return value.kind == JSON_STRING || (value.kind == JSON_NUMBER && json_i64(value, &number));
}

static bool check_len(const char *what, struct json value, struct err *e) {
    return value.raw.len <= TOOLSERVER_ID_MAX_BYTES ||
           err_set(e, ERR_MALFORMED, "JSON-RPC: the %s is longer than %d bytes", what,
                   TOOLSERVER_ID_MAX_BYTES);
}

/* Of a member that is given twice, one reader takes the first and another the last. */
static bool request_check_keys(struct json value, struct err *e) {
    static const char *const outer[] = {"jsonrpc", "id", "method", "params", NULL};
    static const char *const inner[] = {"_meta",  "name",      "arguments",
                                        "cursor", "requestId", NULL};
    return json_check_once(value, outer, e) &&
           json_check_once(json_find(value, STR("params")), inner, e);
}

bool toolserver_request_read(struct json value, struct toolserver_request *ret, struct err *e) {
    struct jsonrpc message;
    if (!jsonrpc_read(value, &message, e) || !request_check_keys(value, e)) return false;
    struct toolserver_request request = {.method = request_method_of(&message),
                                         .id = message.id,
                                         .name = message.method,
                                         .params = message.params};
    struct json meta = json_find(message.params, STR("_meta"));
    struct json token = json_find(meta, STR("progressToken"));
    if (request_is_id(token)) request.token = token;
    request.version = json_find(meta, META("protocolVersion"));
    request.cancels = json_find(message.params, STR("requestId"));
    if (!check_len("id of a request", request.id, e) ||
        !check_len("progressToken", request.token, e))
        return false;
    *ret = request;
    return true;
}

struct str toolserver_request_id(struct json value) {
    struct json id = json_find(value, STR("id"));
    return request_is_id(id) && id.raw.len <= TOOLSERVER_ID_MAX_BYTES ? id.raw : STR("null");
}

bool toolserver_request_check_meta(const struct toolserver_request *request, struct err *e) {
    struct json meta = json_find(request->params, STR("_meta"));
    if (request->version.kind != JSON_STRING)
        return err_set(e, ERR_INVALID_ARGUMENT,
                       "params._meta needs io.modelcontextprotocol/protocolVersion, a string");
    return json_find(meta, META("clientCapabilities")).kind == JSON_OBJECT ||
           err_set(e, ERR_INVALID_ARGUMENT,
                   "params._meta needs io.modelcontextprotocol/clientCapabilities, an object");
}
