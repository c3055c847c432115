/* What is read as a message reads the same after it was written once more. */
#include "wire/jsonrpc.h"

#include <assert.h>

static void same(struct json a, struct json b) {
    assert(a.kind == b.kind);
    if (a.kind != JSON_NONE) assert(str_equal(a.raw, b.raw));
}

static void rewrite(const struct jsonrpc *message, struct buf *method, struct buf *out) {
    switch (message->kind) {
    case JSONRPC_REQUEST: break; /* ours have numbers as ids */
    case JSONRPC_NOTIFICATION:
        if (str_find_byte(buf_str(method), '\0') < method->len) return;
        buf_append_byte(method, '\0');
        jsonrpc_write_notification(out, method->at, message->params.raw);
        break;
    case JSONRPC_RESULT: jsonrpc_write_result(out, message->id.raw, message->result.raw); break;
    case JSONRPC_ERROR:
        if (message->id.kind == JSON_NONE) return;
        jsonrpc_write_error(out, message->id.raw, message->code, buf_str(method));
        break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct json value, again;
    struct jsonrpc message, second;
    struct err e;
    struct json unread = jsonrpc_unread_id(str_of(data, size));
    assert(unread.kind == JSON_NONE || unread.kind == JSON_STRING ||
           unread.kind == JSON_NUMBER);
    if (!json_read(str_of(data, size), &value, &e) || !jsonrpc_read(value, &message, &e))
        return 0;
    struct buf text, out;
    buf_init(&text, size + 1);
    buf_init(&out, 8 * size + 256);
    json_text(message.kind == JSONRPC_ERROR ? message.message : message.method, &text);
    rewrite(&message, &text, &out);
    if (out.len) {
        assert(buf_ok(&out) && json_read(buf_str(&out), &again, &e));
        assert(jsonrpc_read(again, &second, &e));
        assert(second.kind == message.kind && second.code == message.code);
        same(message.id, second.id);
        same(message.params, second.params);
        same(message.result, second.result);
    }
    assert(!jsonrpc_answers(&message, UINT64_MAX) || message.id.kind == JSON_STRING);
    buf_done(&text);
    buf_done(&out);
    return 0;
}
