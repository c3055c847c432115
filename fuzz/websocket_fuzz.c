/* The first byte says how the rest is cut into pieces and which role reads it; cutting must
 * change neither the messages nor the fault. The messages must come out the same after they
 * were written and read once more. */
#include "wire/websocket.h"

#include "base/utf8.h"

#include <assert.h>

#define MAX_BYTES 512

struct seen {
    struct buf text, stream; /* what was reported; the same, written again */
    enum websocket_role role;
};

static void take(const struct websocket_message *message, void *ctx) {
    struct seen *seen = ctx;
    assert(message->data.len <= MAX_BYTES);
    buf_printf(&seen->text, "%d %u %zu:", message->kind, message->code, message->data.len);
    buf_append(&seen->text, message->data);
    if (message->kind == WEBSOCKET_CLOSE) {
        assert(utf8_valid(message->data));
        websocket_append_close(&seen->stream, seen->role, message->code, message->data);
        return;
    }
    assert(message->kind != WEBSOCKET_TEXT || utf8_valid(message->data));
    websocket_append(&seen->stream, seen->role, message->kind, message->data);
}

static int read_all(struct str bytes, size_t piece, enum websocket_role role,
                    struct seen *seen) {
    struct err e;
    int fault = 0;
    struct websocket *websocket = websocket_new(role, MAX_BYTES, take, seen);
    for (; bytes.len && !fault; bytes = str_skip(bytes, piece)) {
        if (!websocket_feed(websocket, str_head(bytes, piece), &e))
            fault = (int)websocket_fault(websocket);
    }
    websocket_free(websocket);
    return fault;
}

static void seen_init(struct seen *seen, size_t room, enum websocket_role role) {
    buf_init(&seen->text, room);
    buf_init(&seen->stream, room);
    seen->role = role;
}

static void seen_done(struct seen *seen) {
    buf_done(&seen->text);
    buf_done(&seen->stream);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct err e;
    if (size < 1 || size > 65536 || !websocket_load(&e)) return 0;
    struct str input = str_of(data + 1, size - 1);
    enum websocket_role role = data[0] & 1 ? WEBSOCKET_SERVER : WEBSOCKET_CLIENT;
    enum websocket_role other = data[0] & 1 ? WEBSOCKET_CLIENT : WEBSOCKET_SERVER;
    size_t room = 64 * (size + 64);
    struct seen whole, cut, again;
    seen_init(&whole, room, other);
    seen_init(&cut, room, other);
    seen_init(&again, room, other);

    int fault = read_all(input, input.len, role, &whole);
    assert(read_all(input, data[0] / 2 % 16 + 1U, role, &cut) == fault);
    assert(str_equal(buf_str(&whole.text), buf_str(&cut.text)));
    assert(read_all(buf_str(&whole.stream), whole.stream.len, role, &again) == 0);
    assert(str_equal(buf_str(&whole.text), buf_str(&again.text)));

    seen_done(&whole);
    seen_done(&cut);
    seen_done(&again);
    return 0;
}
