#include "fake/websocket_call_fake.h"

#include "base/mem.h"
#include "base/text.h"

#include <assert.h>
#include <stdlib.h>

struct websocket_call {
    struct websocket_sink sink;
    void *ctx;
    bool paused;
};

static struct websocket_call *now;
static size_t ever, unsent;
static struct text url;
static struct buf sent, told;

struct websocket_call *websocket_call_start(struct http_pool *pool, struct loop *loop,
                                            const struct websocket_request *request,
                                            const struct websocket_sink *sink, void *ctx) {
    (void)pool, (void)loop;
    assert(!now);
    fake_websocket_done();
    now = MEM_NEW(struct websocket_call);
    *now = (struct websocket_call){.sink = *sink, .ctx = ctx};
    url = text_copy(request->url);
    buf_init(&sent, MIB);
    buf_init(&told, MIB);
    ever++;
    unsent = 0;
    return now;
}

bool websocket_call_send(struct websocket_call *call, struct str text) {
    assert(call == now);
    buf_append(&sent, text);
    return buf_append_byte(&sent, '\n');
}

size_t websocket_call_unsent(const struct websocket_call *call) {
    assert(call == now);
    return unsent;
}

void websocket_call_pause(struct websocket_call *call) {
    assert(call == now);
    call->paused = true;
}

void websocket_call_resume(struct websocket_call *call) {
    assert(call == now);
    call->paused = false;
}

void websocket_call_free(struct websocket_call *call) {
    if (!call) return;
    assert(call == now);
    free(now);
    now = NULL;
}

struct websocket_call *fake_websocket(void) {
    return now;
}

size_t fake_websockets_ever(void) {
    return ever;
}

struct str fake_websocket_url(void) {
    return text_str(url);
}

struct str fake_websocket_sent(void) {
    buf_clear(&told);
    buf_append(&told, buf_str(&sent));
    buf_clear(&sent);
    return buf_str(&told);
}

void fake_websocket_waits(size_t bytes) {
    unsent = bytes;
    if (!bytes && now->sink.on_sent) now->sink.on_sent(now->ctx);
}

bool fake_websocket_paused(void) {
    return now && now->paused;
}

void fake_websocket_open(void) {
    now->sink.on_open(now->ctx);
}

/* A copy that is gone afterwards, so a sanitizer sees who kept it. */
void fake_websocket_say(const char *text) {
    struct text copy = text_copy(str_from(text));
    assert(now);
    now->sink.on_message(text_str(copy), WEBSOCKET_TEXT, now->ctx);
    text_done(&copy);
}

void fake_websocket_end(const struct websocket_end *end) {
    struct websocket_call *call = now;
    assert(call);
    now = NULL;
    call->sink.on_end(end, call->ctx);
    free(call);
}

void fake_websocket_done(void) {
    text_done(&url);
    buf_done(&sent);
    buf_done(&told);
}
