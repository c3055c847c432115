/* Any bytes as what a gRPC server says on HTTP/2, cut and paused as the first byte says. However
 * they read: a paused reader hears nothing, and each call has one end. */
#include "client/grpc_reply.h"

#include <assert.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct caller {
    struct h2_stream *stream;
    struct grpc_reply reply;
    unsigned pauses;
    bool paused, ended, broken;
};

static bool pauses_now(struct caller *caller) {
    caller->pauses = caller->pauses * 31 / 2;
    if (!(caller->pauses & 1)) return false;
    h2_stream_pause(caller->stream);
    return caller->paused = true;
}

static void on_field(struct str name, struct str value, void *ctx) {
    struct caller *caller = ctx;
    (void)grpc_reply_field(&caller->reply, name, value);
}

static void on_head(unsigned status, void *ctx) {
    struct caller *caller = ctx;
    struct err why;
    assert(!caller->ended);
    caller->broken = !grpc_reply_head(&caller->reply, status, &why);
}

static size_t on_body(struct str bytes, void *ctx) {
    struct caller *caller = ctx;
    struct str rest = bytes, message;
    struct err why;
    assert(!caller->paused && !caller->ended && bytes.len);
    do {
        enum grpc_step step = grpc_reply_next(&caller->reply, &rest, &message, &why);
        caller->broken = step == GRPC_BROKEN;
        if (step == GRPC_MORE) break;
    } while (!caller->broken && !pauses_now(caller));
    return caller->broken ? bytes.len : bytes.len - rest.len;
}

static void on_end(const struct h2_end *end, void *ctx) {
    struct caller *caller = ctx;
    struct grpc_call_end call_end;
    struct err why;
    assert(!caller->paused && !caller->ended);
    caller->ended = true;
    if (!caller->broken) grpc_reply_end(&caller->reply, end, &call_end, &why);
}

static const struct h2_events events = {on_field, on_head, on_body, NULL, on_end};

static void on_output(void *ctx) {
    (void)ctx;
}

static void begin(struct caller *caller, struct h2_session *session, unsigned pauses) {
    const struct h2_head head = {.method = STR("POST"),
                                 .scheme = STR("http"),
                                 .authority = STR("there"),
                                 .path = STR("/s/m")};
    *caller = (struct caller){.pauses = pauses};
    grpc_reply_init(&caller->reply, KIB);
    caller->stream = h2_stream_new(session, &head, &events, caller);
    assert(h2_stream_write(caller->stream, STR("\0\0\0\0\1x")));
    if (pauses & 2) h2_stream_finish(caller->stream);
}

static void go_on(struct caller *caller) {
    if (!caller->paused) return;
    caller->paused = false;
    h2_stream_resume(caller->stream);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size == 0) return 0;
    struct str rest = str_of(data + 1, size - 1);
    size_t piece = data[0] ? 1 + (size_t)data[0] % 61 : size;
    struct h2_session *session = h2_session_new(H2_ASKS_AT_ONCE, on_output, NULL);
    struct caller callers[3];
    struct err why;
    bool good = true;
    for (size_t i = 0; i < ARRAY_LEN(callers); i++)
        begin(&callers[i], session, data[0] * (unsigned)i);
    while (rest.len && good) {
        while (h2_session_pull(session).len) {
        }
        good = h2_session_feed(session, str_head(rest, piece), &why);
        rest = str_skip(rest, piece);
        for (size_t i = 0; i < ARRAY_LEN(callers); i++) go_on(&callers[i]);
    }
    if (good) err_set(&why, ERR_UNAVAILABLE, "over");
    h2_session_break(session, &why);
    h2_session_free(session);
    for (size_t i = 0; i < ARRAY_LEN(callers); i++) {
        while (!callers[i].ended) go_on(&callers[i]);
        grpc_reply_done(&callers[i].reply);
    }
    return 0;
}
