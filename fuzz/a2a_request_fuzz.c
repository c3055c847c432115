/* Any parameters of any A2A operation, in each dialect: what is read is text, and what it brings
 * for the agent is JSON where it must be.
 *
 *     one byte: operation and dialect · the parameters */
#include "base/utf8.h"
#include "contract/a2a/request.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* It can be put into headers, and is kept as it is. */
static void check_webhook(const struct webhook *webhook) {
    struct webhook_record record = {*webhook, STR("w"), A2A_1_0}, again;
    struct arena *arena = arena_new(1 * MIB);
    struct buf bytes;
    buf_init(&bytes, 1 * MIB);
    if (!webhook->id.len) record.webhook.id = STR("1");
    assert(str_find_byte(webhook->token, '\n') == webhook->token.len);
    assert(str_find_byte(webhook->credentials, '\r') == webhook->credentials.len);
    webhook_record_write(&record, &bytes);
    bool good = webhook_record_read(buf_str(&bytes), arena, &again);
    assert(good && str_equal(again.webhook.url, webhook->url));
    assert(str_equal(again.webhook.token, webhook->token));
    buf_done(&bytes);
    arena_free(arena);
}

static void check(const struct a2a_request *request) {
    struct json value;
    struct err e;
    assert(utf8_valid(request->text) && utf8_valid(request->context));
    if (request->extras.len) {
        bool good = json_read(request->extras, &value, &e);
        assert(good && value.kind == JSON_OBJECT);
    }
    if (request->pictured) {
        bool good = json_read(request->pictured->parts, &value, &e);
        assert(good && value.kind == JSON_ARRAY && json_count(value) > 0);
    }
    if (request->has_webhook) check_webhook(&request->webhook);
    assert(request->page_size >= 1 && request->page_size <= A2A_PAGE_MOST);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct a2a_request request;
    struct json params;
    struct err e;
    if (size == 0) return 0;
    enum a2a_operation operation = data[0] % (A2A_CARD + 1);
    enum a2a_dialect dialect = data[0] / 16 % A2A_DIALECT_COUNT;
    if (!json_read(str_of(data + 1, size - 1), &params, &e)) return 0;
    struct arena *arena = arena_new(1 * MIB);
    if (a2a_request_read(operation, dialect, params, arena, &request, &e)) {
        check(&request);
    } else {
        assert(e.code == ERR_INVALID_ARGUMENT || e.code == ERR_UNIMPLEMENTED ||
               e.code == ERR_RESOURCE_EXHAUSTED);
    }
    arena_free(arena);
    return 0;
}
