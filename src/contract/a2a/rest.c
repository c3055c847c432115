/* The HTTP+JSON binding of A2A 1.0: its paths, and its query as the params that JSON-RPC has. */
#include "contract/a2a/door.h"

#define QUERY_MAX_BYTES (16 * KIB)

/* --- parameters --------------------------------------------------------------------------- */

static const struct {
    const char *name;
    bool flag; /* true and false are JSON's, all else is a string */
} parameters[] = {
    {"contextId", false},           {"status", false},        {"pageSize", false},
    {"pageToken", false},           {"historyLength", false}, {"includeArtifacts", true},
    {"statusTimestampAfter", false}};

static void write_parameter(struct json_writer *w, const char *name, bool flag,
                            struct str value) {
    bool is_flag = flag && (str_equal(value, STR("true")) || str_equal(value, STR("false")));
    if (value.len == 0) return;
    if (is_flag) {
        json_member_raw(w, name, value);
    } else {
        json_member_str(w, name, value);
    }
}

/* {"id":"7","historyLength":"3"} */
static bool read_query(struct a2a_call *call, struct str id, struct json *ret, struct err *e) {
    struct buf text, value;
    struct str kept;
    buf_init(&text, QUERY_MAX_BYTES);
    buf_init(&value, QUERY_MAX_BYTES);
    struct json_writer w = json_writer(&text);
    const char *bad = NULL;
    json_open_object(&w);
    if (id.len) json_member_str(&w, "id", id);
    for (size_t i = 0; i < ARRAY_LEN(parameters); i++) {
        const char *name = parameters[i].name;
        buf_clear(&value);
        enum query_value found = route_query(call->http.call, str_from(name), &value);
        if (found == QUERY_READ) write_parameter(&w, name, parameters[i].flag, buf_str(&value));
        if (found == QUERY_BAD) bad = name;
    }
    json_close(&w);
    bool fits = buf_ok(&text) && arena_str(call->http.arena, buf_str(&text), &kept);
    buf_done(&value);
    buf_done(&text);
    if (bad)
        return err_set(e, ERR_INVALID_ARGUMENT,
                       "the parameter %s is not valid text, or too long", bad);
    if (!fits) return err_set(e, ERR_INVALID_ARGUMENT, "the query is too long");
    *ret = json_of(kept);
    return true;
}

static bool read_body(struct a2a_call *call, struct json *ret, struct err *e) {
    struct str body;
    return http_turn_keep(&call->http, route_body(call->http.call), &body, e) &&
           json_read(body, ret, e);
}

/* --- one call ----------------------------------------------------------------------------- */

/* NULL: refused. */
static struct a2a_call *rest_new(struct route_call *route, void *ctx,
                                 enum a2a_operation operation) {
    struct a2a_call *call = a2a_call_new(route, ctx, A2A_REST);
    if (!call) return NULL;
    struct str header = lent_read(route_header(route, STR("a2a-version")));
    enum a2a_version version = a2a_version_read(header);
    a2a_request_init(&call->request);
    call->operation = operation;
    if (version == A2A_VERSION_OTHER || version == A2A_VERSION_0_3) {
        a2a_fail(call, A2A_ERROR_VERSION,
                 STR("these paths speak A2A 1.0; send A2A-Version: 1.0, or JSON-RPC to /a2a"));
        return NULL;
    }
    return a2a_take_agent(call) && !a2a_refuse_webhooks(call) ? call : NULL;
}

static void rest_refuse(struct a2a_call *call, const struct err *e) {
    a2a_fail(call, e->code == ERR_MALFORMED ? A2A_ERROR_INVALID_REQUEST : a2a_error_of(e->code),
             err_text(e));
}

static void rest_enter(struct a2a_call *call, bool read, struct json params, struct err *e) {
    if (read && a2a_request_read(call->operation, A2A_1_0, params, call->http.arena,
                                 &call->request, e)) {
        a2a_call_enter(call);
    } else {
        rest_refuse(call, e);
    }
}

/* The task of the path; a name that is no task's is the name of none. */
static void name_task(struct a2a_call *call) {
    struct buf id;
    buf_init(&id, KIB);
    bool fine = route_parameter_text(call->http.call, STR("id"), &id);
    call->request.names_task = true;
    call->request.task = fine ? a2a_task_id(buf_str(&id)) : 0;
    buf_done(&id);
}

static void rest_send(struct route_call *route, void *ctx, enum a2a_operation operation) {
    struct a2a_call *call = rest_new(route, ctx, operation);
    struct json params = {0};
    struct err e = {0};
    if (!call) return;
    bool read = read_body(call, &params, &e);
    rest_enter(call, read, params, &e);
}

static void rest_ask(struct a2a_call *call, struct str id) {
    struct json params = {0};
    struct err e = {0};
    bool read = read_query(call, id, &params, &e);
    rest_enter(call, read, params, &e);
}

/* "7:cancel" */
static void rest_task(struct route_call *route, void *ctx, bool posts) {
    struct a2a_call *call = rest_new(route, ctx, A2A_GET);
    struct buf name;
    struct str verb = STR_EMPTY;
    if (!call) return;
    buf_init(&name, KIB);
    bool fine = route_parameter_text(route, STR("id"), &name);
    struct str id = str_split(buf_str(&name), ':', &verb);
    bool cancels = posts && str_equal(verb, STR("cancel"));
    bool follows = str_equal(verb, STR("subscribe"));
    bool gets = !posts && verb.len == 0;
    if (cancels) call->operation = A2A_CANCEL;
    if (follows) call->operation = A2A_SUBSCRIBE;
    if (fine && (cancels || follows || gets)) {
        rest_ask(call, id);
    } else {
        a2a_fail(call, A2A_ERROR_METHOD_NOT_FOUND,
                 STR("there is no such operation; a task has GET /tasks/{id}, POST "
                     "/tasks/{id}:cancel and /tasks/{id}:subscribe"));
    }
    buf_done(&name);
}

/* --- the routes --------------------------------------------------------------------------- */

void a2a_rest_send(struct route_call *route, void *ctx) {
    rest_send(route, ctx, A2A_SEND);
}

void a2a_rest_stream(struct route_call *route, void *ctx) {
    rest_send(route, ctx, A2A_STREAM);
}

void a2a_rest_get(struct route_call *route, void *ctx) {
    rest_task(route, ctx, false);
}

void a2a_rest_post(struct route_call *route, void *ctx) {
    rest_task(route, ctx, true);
}

static void rest_other(struct route_call *route, void *ctx, enum a2a_operation operation) {
    struct a2a_call *call = rest_new(route, ctx, operation);
    if (call) rest_ask(call, STR_EMPTY);
}

void a2a_rest_list(struct route_call *route, void *ctx) {
    rest_other(route, ctx, A2A_LIST);
}

/* Its body need not repeat the task that the path names. */
void a2a_rest_put_webhook(struct route_call *route, void *ctx) {
    struct a2a_call *call = rest_new(route, ctx, A2A_WEBHOOK_PUT);
    struct json object = {0};
    struct err e = {0};
    if (!call) return;
    call->request.has_webhook = true;
    if (read_body(call, &object, &e) &&
        webhook_read(A2A_1_0, object, call->http.arena, &call->request.webhook, &e)) {
        name_task(call);
        a2a_call_enter(call);
    } else {
        rest_refuse(call, &e);
    }
}

static void rest_webhooks(struct route_call *route, void *ctx, enum a2a_operation operation) {
    struct a2a_call *call = rest_new(route, ctx, operation);
    struct buf id;
    if (!call) return;
    buf_init(&id, KIB);
    bool named = route_parameter_text(route, STR("config"), &id) &&
                 arena_str(call->http.arena, buf_str(&id), &call->request.webhook_id);
    buf_done(&id);
    if (!named) call->request.webhook_id = STR_EMPTY;
    name_task(call);
    a2a_call_enter(call);
}

void a2a_rest_get_webhook(struct route_call *route, void *ctx) {
    rest_webhooks(route, ctx, A2A_WEBHOOK_GET);
}

void a2a_rest_list_webhooks(struct route_call *route, void *ctx) {
    rest_webhooks(route, ctx, A2A_WEBHOOK_LIST);
}

void a2a_rest_delete_webhook(struct route_call *route, void *ctx) {
    rest_webhooks(route, ctx, A2A_WEBHOOK_DELETE);
}

void a2a_rest_card(struct route_call *route, void *ctx) {
    rest_other(route, ctx, A2A_CARD);
}
