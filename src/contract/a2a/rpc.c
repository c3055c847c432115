/* The JSON-RPC binding: POST /a2a. */
#include "contract/a2a/door.h"

#include "wire/jsonrpc.h"

#define NAME_MAX_BYTES 80

static void fail_with(struct a2a_call *call, enum a2a_error error, struct err *e) {
    a2a_fail(call, error, err_text(e));
}

/* AgentBreeder's clients say `task_id` where those of 0.3 say `id`. */
static enum a2a_dialect dialect_of(const struct a2a_method *method, struct json params) {
    bool shared = str_equal(method->name, STR("tasks/get")) ||
                  str_equal(method->name, STR("tasks/cancel"));
    bool breeder = json_find(params, STR("id")).kind == JSON_NONE &&
                   json_find(params, STR("task_id")).kind != JSON_NONE;
    return shared && breeder ? A2A_BREEDER : method->dialect;
}

static void refuse_method(struct a2a_call *call, struct str name) {
    struct buf message;
    buf_init(&message, KIB);
    buf_append(&message, STR("there is no method '"));
    buf_append(&message, str_head(name, NAME_MAX_BYTES));
    buf_append(&message, STR("'; A2A 1.0 has SendMessage and SendStreamingMessage, 0.3 has "
                             "message/send and message/stream"));
    a2a_fail(call, A2A_ERROR_METHOD_NOT_FOUND, buf_str(&message));
    buf_done(&message);
}

/* False: the call has been refused. */
static bool check_version(struct a2a_call *call, const struct a2a_method *method) {
    struct str header = lent_read(route_header(call->http.call, STR("a2a-version")));
    enum a2a_version version = a2a_version_read(header);
    if (version == A2A_VERSION_OTHER) {
        a2a_fail(call, A2A_ERROR_VERSION,
                 STR("this A2A-Version is not spoken here; send 1.0 or 0.3"));
        return false;
    }
    if (a2a_version_speaks(version, call->dialect)) return true;
    refuse_method(call, method->name);
    return false;
}

static void serve(struct a2a_call *call, const struct jsonrpc *message) {
    struct err e;
    struct str name = STR_EMPTY;
    if (!json_str(message->method, call->http.arena, &name)) name = STR_EMPTY;
    const struct a2a_method *method = a2a_method_find(name);
    if (!method) {
        refuse_method(call, name);
        return;
    }
    call->dialect = dialect_of(method, message->params);
    call->operation = method->operation;
    if (call->dialect == A2A_BREEDER && call->operation == A2A_CANCEL) {
        refuse_method(call, name);
        return;
    }
    if (!check_version(call, method) || a2a_refuse_webhooks(call)) return;
    if (!a2a_request_read(call->operation, call->dialect, message->params, call->http.arena,
                          &call->request, &e)) {
        fail_with(call, a2a_error_of(e.code), &e);
        return;
    }
    a2a_call_enter(call);
}

void a2a_rpc(struct route_call *route, void *ctx) {
    struct a2a_call *call = a2a_call_new(route, ctx, A2A_JSONRPC);
    struct jsonrpc message = {.kind = JSONRPC_REQUEST};
    struct json value;
    struct str body;
    struct err e;
    if (!call) return;
    a2a_request_init(&call->request);
    if (!http_turn_keep(&call->http, route_body(route), &body, &e)) {
        fail_with(call, A2A_ERROR_INTERNAL, &e);
    } else if (!json_read(body, &value, &e)) {
        fail_with(call, A2A_ERROR_PARSE, &e);
    } else if (!jsonrpc_read(value, &message, &e)) {
        fail_with(call, A2A_ERROR_INVALID_REQUEST, &e);
    } else if (message.kind != JSONRPC_REQUEST) {
        a2a_fail(call, A2A_ERROR_INVALID_REQUEST,
                 STR("a request needs an id, and a method: nothing is sent without an answer"));
    } else {
        call->id = text_copy(message.id.raw);
        if (a2a_take_agent(call)) serve(call, &message);
    }
}
