#include "wire/jsonrpc.h"

#include <stdio.h>

#define TAIL_BYTES 64 /* of a text, where an id may be */

/* --- reading ------------------------------------------------------------------------------ */

static bool jsonrpc_is_id(struct json id) {
    int64_t number;
    return id.kind == JSON_STRING || (id.kind == JSON_NUMBER && json_i64(id, &number));
}

static bool read_call(struct json value, struct jsonrpc *message, struct err *e) {
    message->params = json_find(value, STR("params"));
    message->kind = message->id.kind == JSON_NONE ? JSONRPC_NOTIFICATION : JSONRPC_REQUEST;
    if (message->method.kind != JSON_STRING)
        return err_set(e, ERR_MALFORMED, "JSON-RPC: the method is %s, not a string",
                       json_kind_name(message->method.kind));
    if (message->kind == JSONRPC_REQUEST && !jsonrpc_is_id(message->id))
        return err_set(e, ERR_MALFORMED, "JSON-RPC: the id of a request is %s",
                       json_kind_name(message->id.kind));
    return message->params.kind == JSON_NONE || message->params.kind == JSON_OBJECT ||
           err_set(e, ERR_MALFORMED, "JSON-RPC: the params are %s, not an object",
                   json_kind_name(message->params.kind));
}

static bool jsonrpc_read_error(struct json error, struct jsonrpc *message, struct err *e) {
    message->kind = JSONRPC_ERROR;
    message->message = json_find(error, STR("message"));
    message->data = json_find(error, STR("data"));
    if (message->id.kind != JSON_NULL && message->id.kind != JSON_NONE &&
        !jsonrpc_is_id(message->id))
        return err_set(e, ERR_MALFORMED, "JSON-RPC: the id of an error is %s",
                       json_kind_name(message->id.kind));
    if (!json_i64(json_find(error, STR("code")), &message->code))
        return err_set(e, ERR_MALFORMED, "JSON-RPC: an error without a whole number as code");
    return message->message.kind == JSON_STRING ||
           err_set(e, ERR_MALFORMED, "JSON-RPC: an error without a message");
}

static bool read_result(struct jsonrpc *message, struct err *e) {
    message->kind = JSONRPC_RESULT;
    return jsonrpc_is_id(message->id) ||
           err_set(e, ERR_MALFORMED, "JSON-RPC: the id of a result is %s",
                   json_kind_name(message->id.kind));
}

/* Of the members one at most may be other than null; a result alone may be null. */
static void drop_nulls(struct json *method, struct json *result, struct json *error) {
    bool alone = json_is_absent(*method) && json_is_absent(*error);
    if (method->kind == JSON_NULL) method->kind = JSON_NONE;
    if (error->kind == JSON_NULL) error->kind = JSON_NONE;
    if (result->kind == JSON_NULL && !alone) result->kind = JSON_NONE;
}

static bool jsonrpc_read_kind(struct json value, struct jsonrpc *message, struct err *e) {
    struct json error = json_find(value, STR("error"));
    drop_nulls(&message->method, &message->result, &error);
    bool has_result = message->result.kind != JSON_NONE;
    bool has_error = error.kind != JSON_NONE;
    if ((message->method.kind != JSON_NONE) + has_result + has_error != 1)
        return err_set(e, ERR_MALFORMED,
                       "JSON-RPC: a message has one of method, result and error");
    if (has_result) return read_result(message, e);
    return has_error ? jsonrpc_read_error(error, message, e) : read_call(value, message, e);
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
    if (!jsonrpc_read_kind(value, &message, e)) return false;
    *ret = message;
    return true;
}

static bool pass_message(struct json value, jsonrpc_message_fn *fn, void *ctx) {
    struct jsonrpc message;
    struct err e;
    return !jsonrpc_read(value, &message, &e) || fn(&message, ctx);
}

void jsonrpc_each(struct str text, struct buf *room, jsonrpc_message_fn *fn, void *ctx) {
    struct json value, item;
    struct err e;
    if (!json_read_mended(text, room, &value, &e)) return;
    if (value.kind != JSON_ARRAY) {
        pass_message(value, fn, ctx);
        return;
    }
    struct json_reader batch = json_enter(value);
    while (json_next_item(&batch, &item) && pass_message(item, fn, ctx)) {
    }
}

bool jsonrpc_is_number(struct json id, uint64_t number) {
    char room[24];
    int64_t sent;
    if (id.kind == JSON_NUMBER)
        return json_i64(id, &sent) && sent >= 0 && (uint64_t)sent == number;
    snprintf(room, sizeof(room), "%llu", (unsigned long long)number);
    return json_is(id, str_from(room));
}

bool jsonrpc_answers(const struct jsonrpc *message, uint64_t id) {
    bool is_answer = message->kind == JSONRPC_RESULT || message->kind == JSONRPC_ERROR;
    return is_answer && jsonrpc_is_number(message->id, id);
}

struct json jsonrpc_refused_id(struct json value) {
    struct json none = {.kind = JSON_NONE}, method = json_find(value, STR("method"));
    struct json id = json_find(value, STR("id"));
    return json_is_absent(method) ? id : none;
}

/* The number, or the string, that begins `text`. */
static struct json scalar_of(struct str text) {
    const char *end = text.at + text.len, *last = NULL;
    if (text.len && text.at[0] == '"') last = json_string_end(text.at, end);
    if (text.len && text.at[0] >= '0' && text.at[0] <= '9')
        last = json_number_end(text.at, end);
    return json_of(str_head(text, last ? (size_t)(last - text.at) : 0));
}

/* What follows the first `"id":` of `text`. */
static struct json id_in(struct str text) {
    static const struct str key = STR_INIT("\"id\"");
    struct str rest = str_trim(str_skip(text, str_find(text, key) + key.len));
    return scalar_of(str_starts(rest, STR(":")) ? str_trim(str_skip(rest, 1)) : STR_EMPTY);
}

/* The id at the end, as some write it. */
static struct json last_id(struct str text) {
    static const struct str before = STR_INIT("\"jsonrpc\":\"2.0\",\"id\":");
    struct str tail = text.len > TAIL_BYTES ? str_skip(text, text.len - TAIL_BYTES) : text;
    tail = str_skip(tail, str_find(tail, before));
    struct json id = id_in(tail);
    bool ends = str_equal(str_skip(tail, before.len + id.raw.len), STR("}"));
    return ends ? id : json_of(STR_EMPTY);
}

struct json jsonrpc_unread_id(struct str text) {
    struct str line = str_trim(text);
    size_t result = str_find(line, STR("\"result\"")), error = str_find(line, STR("\"error\""));
    size_t body = result < error ? result : error;
    bool calls = str_find(line, STR("\"method\"")) < line.len;
    if (calls || body == line.len || !str_starts(line, STR("{"))) return json_of(STR_EMPTY);
    struct json id = id_in(str_head(line, body));
    return id.kind == JSON_NONE ? last_id(line) : id;
}

/* --- writing ------------------------------------------------------------------------------ */

static struct json_writer jsonrpc_begin(struct buf *out) {
    struct json_writer w = json_writer(out);
    json_open_object(&w);
    json_member_str(&w, "jsonrpc", STR("2.0"));
    return w;
}

static void jsonrpc_end_call(struct json_writer *w, const char *method, struct str params) {
    json_member_str(w, "method", str_from(method));
    if (params.len) json_member_raw(w, "params", params);
    json_close(w);
}

void jsonrpc_write_request(struct buf *out, uint64_t id, const char *method,
                           struct str params) {
    struct json_writer w = jsonrpc_begin(out);
    json_member_u64(&w, "id", id);
    jsonrpc_end_call(&w, method, params);
}

void jsonrpc_write_notification(struct buf *out, const char *method, struct str params) {
    struct json_writer w = jsonrpc_begin(out);
    jsonrpc_end_call(&w, method, params);
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
