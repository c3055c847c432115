#include "wire/jsonrpc.h"

/* --- reading ------------------------------------------------------------------------------ */

static bool is_id(struct json id) {
    int64_t number;
    return id.kind == JSON_STRING || (id.kind == JSON_NUMBER && json_i64(id, &number));
}

static bool read_call(struct json value, struct jsonrpc *message, struct err *e) {
    message->params = json_find(value, STR("params"));
    message->kind = message->id.kind == JSON_NONE ? JSONRPC_NOTIFICATION : JSONRPC_REQUEST;
    if (message->method.kind != JSON_STRING)
        return err_set(e, ERR_MALFORMED, "JSON-RPC: the method is %s, not a string",
                       json_kind_name(message->method.kind));
    if (message->kind == JSONRPC_REQUEST && !is_id(message->id))
        return err_set(e, ERR_MALFORMED, "JSON-RPC: the id of a request is %s",
                       json_kind_name(message->id.kind));
    return message->params.kind == JSON_NONE || message->params.kind == JSON_OBJECT ||
           err_set(e, ERR_MALFORMED, "JSON-RPC: the params are %s, not an object",
                   json_kind_name(message->params.kind));
}

static bool read_error(struct json error, struct jsonrpc *message, struct err *e) {
    message->kind = JSONRPC_ERROR;
    message->message = json_find(error, STR("message"));
    message->data = json_find(error, STR("data"));
    if (message->id.kind != JSON_NULL && message->id.kind != JSON_NONE && !is_id(message->id))
        return err_set(e, ERR_MALFORMED, "JSON-RPC: the id of an error is %s",
                       json_kind_name(message->id.kind));
    if (!json_i64(json_find(error, STR("code")), &message->code))
        return err_set(e, ERR_MALFORMED, "JSON-RPC: an error without a whole number as code");
    return message->message.kind == JSON_STRING ||
           err_set(e, ERR_MALFORMED, "JSON-RPC: an error without a message");
}

static bool read_result(struct jsonrpc *message, struct err *e) {
    message->kind = JSONRPC_RESULT;
    return is_id(message->id) || err_set(e, ERR_MALFORMED, "JSON-RPC: the id of a result is %s",
                                         json_kind_name(message->id.kind));
}

static bool read_kind(struct json value, struct jsonrpc *message, struct err *e) {
    struct json error = json_find(value, STR("error"));
    bool has_result = message->result.kind != JSON_NONE;
    bool has_error = error.kind != JSON_NONE;
    if ((message->method.kind != JSON_NONE) + has_result + has_error != 1)
        return err_set(e, ERR_MALFORMED,
                       "JSON-RPC: a message has one of method, result and error");
    if (has_result) return read_result(message, e);
    return has_error ? read_error(error, message, e) : read_call(value, message, e);
}

bool jsonrpc_read(struct json value, struct jsonrpc *ret, struct err *e) {
    if (value.kind != JSON_OBJECT)
        return err_set(e, ERR_MALFORMED, "JSON-RPC: expected an object, got %s",
                       json_kind_name(value.kind));
    if (!json_is(json_find(value, STR("jsonrpc")), STR("2.0")))
        return err_set(e, ERR_MALFORMED,
                       "JSON-RPC: a message does not say \"jsonrpc\":\"2.0\"");
    struct jsonrpc message = {.id = json_find(value, STR("id")),
                              .method = json_find(value, STR("method")),
                              .result = json_find(value, STR("result"))};
    if (!read_kind(value, &message, e)) return false;
    *ret = message;
    return true;
}

static bool pass_message(struct json value, jsonrpc_message_fn *fn, void *ctx) {
    struct jsonrpc message;
    struct err e;
    return !jsonrpc_read(value, &message, &e) || fn(&message, ctx);
}

void jsonrpc_each(struct str text, jsonrpc_message_fn *fn, void *ctx) {
    struct json value, item;
    struct err e;
    if (!json_read(text, &value, &e)) return;
    if (value.kind != JSON_ARRAY) {
        pass_message(value, fn, ctx);
        return;
    }
    struct json_reader batch = json_enter(value);
    while (json_next_item(&batch, &item) && pass_message(item, fn, ctx)) {
    }
}

bool jsonrpc_answers(const struct jsonrpc *message, uint64_t id) {
    int64_t number;
    bool is_answer = message->kind == JSONRPC_RESULT || message->kind == JSONRPC_ERROR;
    return is_answer && json_i64(message->id, &number) && number >= 0 && (uint64_t)number == id;
}

/* --- writing ------------------------------------------------------------------------------ */

static struct json_writer jsonrpc_begin(struct buf *out) {
    struct json_writer w = json_writer(out);
    json_open_object(&w);
    json_member_str(&w, "jsonrpc", STR("2.0"));
    return w;
}

static void end_call(struct json_writer *w, const char *method, struct str params) {
    json_member_str(w, "method", str_from(method));
    if (params.len) json_member_raw(w, "params", params);
    json_close(w);
}

void jsonrpc_write_request(struct buf *out, uint64_t id, const char *method,
                           struct str params) {
    struct json_writer w = jsonrpc_begin(out);
    json_member_u64(&w, "id", id);
    end_call(&w, method, params);
}

void jsonrpc_write_notification(struct buf *out, const char *method, struct str params) {
    struct json_writer w = jsonrpc_begin(out);
    end_call(&w, method, params);
}

void jsonrpc_write_result(struct buf *out, struct str id, struct str result) {
    struct json_writer w = jsonrpc_begin(out);
    json_member_raw(&w, "id", id);
    json_member_raw(&w, "result", result);
    json_close(&w);
}

void jsonrpc_write_error(struct buf *out, struct str id, int64_t code, struct str message) {
    jsonrpc_write_error_data(out, id, code, message, STR_EMPTY);
}

void jsonrpc_write_error_data(struct buf *out, struct str id, int64_t code, struct str message,
                              struct str data) {
    struct json_writer w = jsonrpc_begin(out);
    json_member_raw(&w, "id", id);
    json_member_object(&w, "error");
    json_member_i64(&w, "code", code);
    json_member_str(&w, "message", message);
    if (data.len) json_member_raw(&w, "data", data);
    json_close(&w);
    json_close(&w);
}
