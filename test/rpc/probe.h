/* probe: a gRPC service that records what happens to it, and a client on fake exchanges.
 *
 * Every callback adds one word to probe.seen. The test sets in probe.script what the handler
 * does in each. Only one file of a program includes it, so everything is static.
 */
#ifndef WEIR_TEST_RPC_PROBE_H
#define WEIR_TEST_RPC_PROBE_H

#include "base/buf.h"
#include "fake/exchange_fake.h"
#include "helper/assert_str.h"
#include "rpc/rpc.h"
#include "wire/grpc.h"

struct probe {
    struct loop *loop;
    struct rpc_site *site;
    struct buf seen;
    struct rpc_call *call; /* the newest */
    struct str message;    /* the newest: lent, so it may not be looked at any more */

    /* What the handler does. */
    bool asks;       /* rpc_next() inside message() */
    bool echoes;     /* sends each message back */
    bool ends_ok;    /* rpc_end(OK) when half-closed */
    bool ends_early; /* rpc_end(ABORTED) in open() */
    bool ends_in_message;
    bool ends_at_stop;
    bool ends_too_large;                    /* rpc_end() in its own words */
    bool refuses;                           /* authenticate() says no */
    size_t sends_in_open;                   /* bytes of a message sent from open() */
    void (*in_open)(struct rpc_call *call); /* what else a test wants there */
};

static struct probe probe;

static void say(const char *word) {
    if (probe.seen.len) buf_append_byte(&probe.seen, ' ');
    buf_append(&probe.seen, str_from(word));
}

static void seen_is(const char *expected) {
    assert_str(buf_str(&probe.seen), expected);
    buf_clear(&probe.seen);
}

static void *probe_open(struct rpc_call *call, void *service_ctx) {
    assert_ptr_equal(service_ctx, &probe);
    probe.call = call;
    say("open");
    if (probe.in_open) probe.in_open(call);
    if (probe.sends_in_open) {
        char *bytes = calloc(1, probe.sends_in_open);
        rpc_send(call, str_of(bytes, probe.sends_in_open));
        free(bytes);
    }
    if (probe.ends_early) rpc_end(call, ERR_ABORTED, STR("not now"));
    return &probe;
}

static void probe_message(struct rpc_call *call, struct lent lent, void *ctx) {
    struct str message = lent_read(lent);
    assert_ptr_equal(ctx, &probe);
    probe.message = message;
    if (probe.seen.len) buf_append_byte(&probe.seen, ' ');
    buf_printf(&probe.seen, "[" STR_FMT "]", STR_ARG(message));
    if (probe.echoes) rpc_send(call, message);
    if (probe.asks) rpc_next(call);
    if (probe.ends_in_message) {
        rpc_end(call, ERR_FAILED_PRECONDITION, STR("enough"));
        /* Still lent, although the call is over. */
        if (message.len) assert_true(message.at[0] != '\0');
    }
}

static void probe_too_large(struct rpc_call *call, const struct err *why, void *ctx) {
    assert_ptr_equal(ctx, &probe);
    assert_int_equal(why->code, ERR_TOO_LARGE);
    if (!probe.ends_too_large) return;
    say("too_large");
    rpc_end(call, ERR_INVALID_ARGUMENT, STR("cut it in two"));
}

static void probe_half_closed(struct rpc_call *call, void *ctx) {
    assert_ptr_equal(ctx, &probe);
    say("half_closed");
    if (probe.ends_ok) rpc_end(call, ERR_NONE, STR_EMPTY);
}

static void probe_drained(struct rpc_call *call, void *ctx) {
    (void)call;
    assert_ptr_equal(ctx, &probe);
    say("drained");
}

static void probe_stopping(struct rpc_call *call, void *ctx) {
    assert_ptr_equal(ctx, &probe);
    say("stopping");
    if (probe.ends_at_stop) rpc_end(call, ERR_UNAVAILABLE, STR("dial again"));
}

static void probe_cancelled(struct rpc_call *call, enum rpc_cancel why, void *ctx) {
    static const char *const words[] = {"left", "deadline", "stalled", "stopped", "broken"};
    (void)call;
    assert_ptr_equal(ctx, &probe);
    say(words[why]);
}

static void probe_closed(void *ctx) {
    assert_ptr_equal(ctx, &probe);
    say("closed");
    probe.call = NULL;
}

static bool probe_authenticate(struct rpc_call *call, void *ctx, struct rpc_identity *ret,
                               struct err *e) {
    assert_ptr_equal(ctx, &probe);
    size_t count;
    struct str token = lent_read(rpc_metadata(call, STR("authorization"), &count));
    if (probe.refuses || count > 1)
        return err_set(e, ERR_UNAUTHENTICATED, "invalid bearer token");
    if (!token.at) return true;
    *ret = (struct rpc_identity){true, rpc_keep(call, token), rpc_keep(call, STR("w1"))};
    return true;
}

static const struct rpc_handler probe_handler = {
    .open = probe_open,
    .message = probe_message,
    .too_large = probe_too_large,
    .half_closed = probe_half_closed,
    .drained = probe_drained,
    .stopping = probe_stopping,
    .cancelled = probe_cancelled,
    .closed = probe_closed,
};

#define PROBE_MESSAGE_MAX_BYTES 1000
#define PROBE_BOUND_MS 5000

#define PROBE_ROW(name_, kind_, established_, auth_, deadline_)                                \
    {                                                                                          \
        .path = STR_INIT("/t.Probe/" name_), .kind = kind_, .handler = &probe_handler,         \
        .ends = CLOSE_SINGLE, .established = established_, .auth = auth_,                      \
        .deadline_ms = deadline_, .request_max_bytes = PROBE_MESSAGE_MAX_BYTES                 \
    }

static const struct rpc_method probe_methods[] = {
    PROBE_ROW("Unary", RPC_UNARY, RPC_BY_HANDLER, RPC_TOKEN, 0),
    PROBE_ROW("Upload", RPC_CLIENT_STREAM, RPC_BY_HANDLER, RPC_TOKEN, 0),
    PROBE_ROW("Feed", RPC_SERVER_STREAM, RPC_AT_ACCEPT, RPC_TOKEN, 0),
    PROBE_ROW("Talk", RPC_BIDI, RPC_AT_ACCEPT, RPC_TOKEN, 0),
    PROBE_ROW("Bounded", RPC_BIDI, RPC_BY_HANDLER, RPC_TOKEN, PROBE_BOUND_MS),
    PROBE_ROW("Open", RPC_UNARY, RPC_BY_HANDLER, RPC_OPEN, 0),
};

static const struct rpc_service probe_service = {
    .name = STR_INIT("t.Probe"),
    .methods = probe_methods,
    .method_count = ARRAY_LEN(probe_methods),
    .authenticate = probe_authenticate,
    .ctx = &probe,
};

static int probe_setup(void **state) {
    (void)state;
    probe = (struct probe){.loop = loop_new_fake()};
    probe.site = rpc_site_new(probe.loop, &probe_service, 1);
    buf_init(&probe.seen, 1 * MIB);
    return 0;
}

static int probe_teardown(void **state) {
    (void)state;
    rpc_site_free(probe.site);
    loop_free(probe.loop);
    buf_done(&probe.seen);
    return 0;
}

/* --- the client -------------------------------------------------------------------------- */

static void serve(struct exchange *exchange, void *ctx) {
    rpc_serve(ctx, exchange);
}

static struct exchange *request(const char *path) {
    struct exchange *x = fake_new(probe.loop, "POST", path);
    fake_field(x, "content-type", "application/grpc");
    fake_field(x, "te", "trailers");
    return x;
}

static void start(struct exchange *x) {
    fake_start(x, serve, probe.site);
}

static struct exchange *started(const char *path) {
    struct exchange *x = request(path);
    start(x);
    return x;
}

/* The bytes of the messages, which are separated by '|'. */
static struct str frames(struct buf *room, const char *messages) {
    struct str rest = str_from(messages);
    buf_init(room, 1 * MIB);
    while (rest.at) grpc_append_message(room, str_split(rest, '|', &rest));
    return buf_str(room);
}

__attribute__((unused)) static void send_messages(struct exchange *x, const char *messages) {
    struct buf room;
    fake_body(x, frames(&room, messages));
    buf_done(&room);
}

/* Let the turn end; all the response is out and the exchange gone. */
static void settle(void) {
    fake_settle(probe.loop);
}

__attribute__((unused)) static void sent_is(const struct exchange *x, const char *messages) {
    struct buf room;
    struct str expected = frames(&room, messages);
    assert_int_equal(fake_sent(x).len, expected.len);
    assert_memory_equal(fake_sent(x).at, expected.at, expected.len);
    buf_done(&room);
}

/* The response is trailers-only with this status and message. */
__attribute__((unused)) static void refused_with(const struct exchange *x, const char *status,
                                                 const char *message) {
    assert_int_equal(fake_status(x), 200);
    assert_true(fake_ended(x));
    assert_str(fake_trailers(x), "");
    assert_str(fake_sent(x), "");
    assert_str(fake_value(fake_head(x), "content-type"), "application/grpc");
    assert_str(fake_value(fake_head(x), "grpc-status"), status);
    assert_str(fake_value(fake_head(x), "grpc-message"), message);
}

/* The response had messages or at least a head; its trailers say this. */
static void ended_with(const struct exchange *x, const char *status, const char *message) {
    assert_int_equal(fake_status(x), 200);
    assert_true(fake_ended(x));
    assert_null(fake_value(fake_head(x), "grpc-status").at);
    assert_str(fake_value(fake_trailers(x), "grpc-status"), status);
    struct str said = fake_value(fake_trailers(x), "grpc-message");
    if (message) {
        assert_str(said, message);
    } else {
        assert_null(said.at);
    }
}

static void done(struct exchange *x) {
    settle();
    assert_true(fake_closed(x));
    assert_int_equal(fake_unconsumed(x), 0);
    fake_free(x);
}

#endif
