/* Answers in one piece: results and errors, in the envelope of the binding. */
#include "contract/a2a/door.h"

#include "wire/jsonrpc.h"

#define RESULT_MAX_BYTES (192 * MIB)
#define FAILURE_MAX_BYTES (64 * KIB)
#define ERROR_INFO STR("type.googleapis.com/google.rpc.ErrorInfo")
#define DOMAIN STR("a2a-protocol.org")
#define BREEDER_FAILED (-32000)

static struct str id_of(const struct a2a_call *call) {
    return call->id.len ? text_str(call->id) : STR("null");
}

/* --- results ------------------------------------------------------------------------------ */

static void write_result(const struct a2a_call *call, struct str result, struct buf *out) {
    struct json_writer w = json_writer(out);
    if (call->binding == A2A_REST) {
        buf_append(out, result);
        return;
    }
    json_open_object(&w);
    json_member_str(&w, "jsonrpc", STR("2.0"));
    json_member_raw(&w, "id", id_of(call));
    json_member_raw(&w, "result", result);
    if (call->dialect == A2A_BREEDER) json_member_null(&w, "error");
    json_close(&w);
}

static struct str content_type(const struct a2a_call *call) {
    return call->binding == A2A_REST ? STR("application/a2a+json") : STR("application/json");
}

/* Once the run is read, the call ends when the reply has been sent. */
static void end_if_open(struct a2a_call *call, bool established) {
    if (!established) http_turn_end(&call->http);
}

void a2a_reply(struct a2a_call *call, const struct buf *result) {
    struct buf body;
    bool established = !call->http.arena;
    if (!buf_ok(result)) {
        a2a_fail(call, A2A_ERROR_INTERNAL, STR("the answer is larger than a reply may be"));
        return;
    }
    buf_init(&body, RESULT_MAX_BYTES + KIB);
    write_result(call, buf_str(result), &body);
    route_reply(call->http.call, 200, content_type(call), buf_str(&body));
    buf_done(&body);
    end_if_open(call, established);
}

static void write_task(const struct a2a_call *call, struct buf *out) {
    const struct a2a_view view = {call->dialect, call->request.history_max, true};
    bool wrapped = call->dialect == A2A_1_0 && call->operation == A2A_SEND;
    struct json_writer w = json_writer(out);
    if (call->dialect == A2A_BREEDER) {
        json_open_object(&w);
        a2a_task_write_flat(&call->task, &w);
        json_close(&w);
        return;
    }
    if (wrapped) json_open_object(&w);
    if (wrapped) json_key(&w, STR("task"));
    a2a_task_write(&call->task, &view, &w);
    if (wrapped) json_close(&w);
}

/* A task that failed is a result in A2A, but an error in AgentBreeder's dialect. */
void a2a_reply_task(struct a2a_call *call) {
    enum a2a_state state = call->task.state;
    struct buf result;
    bool failed = a2a_state_is_terminal(state) && state != A2A_COMPLETED;
    if (call->dialect == A2A_BREEDER && failed && call->operation == A2A_SEND) {
        a2a_fail(call, A2A_ERROR_INTERNAL, text_str(call->task.note.text));
        return;
    }
    buf_init(&result, RESULT_MAX_BYTES);
    write_task(call, &result);
    a2a_reply(call, &result);
    buf_done(&result);
}

/* --- errors ------------------------------------------------------------------------------- */

static void write_info(struct json_writer *w, const char *key, struct str reason) {
    json_member_array(w, key);
    json_open_object(w);
    json_member_str(w, "@type", ERROR_INFO);
    json_member_str(w, "reason", reason);
    json_member_str(w, "domain", DOMAIN);
    json_close(w);
    json_close(w);
}

static void write_status(struct json_writer *w, int status, struct str grpc, struct str reason,
                         struct str message) {
    json_open_object(w);
    json_member_object(w, "error");
    json_member_i64(w, "code", status);
    json_member_str(w, "status", grpc);
    json_member_str(w, "message", message);
    write_info(w, "details", reason);
    json_close(w);
    json_close(w);
}

static void write_rpc_error(const struct a2a_call *call, const struct a2a_error_row *row,
                            struct str message, struct json_writer *w) {
    bool breeder = call->dialect == A2A_BREEDER;
    int64_t code = breeder && row->code == JSONRPC_INTERNAL_ERROR ? BREEDER_FAILED : row->code;
    json_open_object(w);
    json_member_str(w, "jsonrpc", STR("2.0"));
    json_member_raw(w, "id", id_of(call));
    if (breeder) json_member_null(w, "result");
    json_member_object(w, "error");
    json_member_i64(w, "code", code);
    json_member_str(w, "message", message);
    if (call->dialect == A2A_1_0) write_info(w, "data", row->reason);
    json_close(w);
    json_close(w);
}

void a2a_write_failure(const struct a2a_call *call, enum a2a_error error, struct str message,
                       struct buf *out) {
    const struct a2a_error_row *row = a2a_error_row(error);
    struct json_writer w = json_writer(out);
    if (call->binding == A2A_REST) {
        write_status(&w, row->status, row->grpc, row->reason, message);
    } else {
        write_rpc_error(call, row, message, &w);
    }
}

static int status_of(const struct a2a_call *call, const struct a2a_error_row *row) {
    if (call->binding == A2A_REST) return row->status;
    return call->dialect == A2A_BREEDER ? row->breeder_status : 200;
}

void a2a_fail(struct a2a_call *call, enum a2a_error error, struct str message) {
    struct http_turn *http = &call->http;
    bool established = !http->arena;
    int status = status_of(call, a2a_error_row(error));
    struct buf body;
    buf_init(&body, FAILURE_MAX_BYTES + 6 * message.len);
    a2a_write_failure(call, error, message, &body);
    if (status == 503) route_field(http->call, STR("retry-after"), STR("5"));
    route_reply(http->call, status, content_type(call), buf_str(&body));
    buf_done(&body);
    end_if_open(call, established);
}

void a2a_refuse(struct http_turn *http, const struct err *why) {
    struct a2a_call *call = CONTAINER_OF(http, struct a2a_call, http);
    enum a2a_error error = a2a_error_of(why->code);
    struct buf body;
    buf_init(&body, FAILURE_MAX_BYTES);
    a2a_write_failure(call, error, err_text(why), &body);
    int status = why->retry_after_ms ? 429 : status_of(call, a2a_error_row(error));
    route_retry_after(http->call, why);
    route_reply(http->call, status, content_type(call), buf_str(&body));
    buf_done(&body);
}

void a2a_failure_body(const struct route_failure *failure, struct buf *out) {
    static const struct {
        int status;
        struct str grpc;
    } names[] = {{401, STR_INIT("UNAUTHENTICATED")},    {403, STR_INIT("PERMISSION_DENIED")},
                 {404, STR_INIT("NOT_FOUND")},          {405, STR_INIT("UNIMPLEMENTED")},
                 {408, STR_INIT("DEADLINE_EXCEEDED")},  {413, STR_INIT("RESOURCE_EXHAUSTED")},
                 {429, STR_INIT("RESOURCE_EXHAUSTED")}, {500, STR_INIT("INTERNAL")},
                 {503, STR_INIT("UNAVAILABLE")}};
    struct str grpc = STR("INVALID_ARGUMENT");
    struct json_writer w = json_writer(out);
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        if (names[i].status == failure->status) grpc = names[i].grpc;
    }
    write_status(&w, failure->status, grpc, failure->code, failure->message);
}
