/* rpc: the headers and the framing of a call, as a hostile peer may send them.
 *
 *     path \n
 *     name: value \n ...
 *     \n
 *     then steps:  b LEN bytes   a piece of the body       e   its end
 *                  n  s  x       rpc_next, send, end       t   100 ms pass
 *                  r  R          the peer stops reading, reads on
 *                  l             it leaves                 any other byte: the turn ends
 *
 * First only the body counts: cut as the input cuts it and in one piece it must come to the
 * same messages and the same answer. Then all steps are taken, and the call must have opened
 * and closed equally often.
 */
#include "fake/exchange_fake.h"
#include "loop/loop.h"
#include "rpc/rpc.h"

#include <stdlib.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define MESSAGE_MAX_BYTES 512

static struct run {
    struct loop *loop;
    struct buf seen;
    struct rpc_call *call;
    bool asks;
    int opened, closed, told;
} run;

/* --- the handler ------------------------------------------------------------------------- */

static void must(bool holds) {
    if (!holds) abort();
}

static void *on_open(struct rpc_call *call, void *ctx) {
    run.opened++;
    run.call = call;
    buf_append(&run.seen, STR("open "));
    return ctx;
}

static void on_message(struct rpc_call *call, struct lent lent, void *ctx) {
    struct str message = lent_read(lent);
    (void)ctx;
    buf_append_u64(&run.seen, message.len);
    buf_append_byte(&run.seen, '[');
    buf_append(&run.seen, message);
    buf_append_byte(&run.seen, ']');
    if (run.asks) rpc_next(call);
}

static void on_half_closed(struct rpc_call *call, void *ctx) {
    (void)ctx;
    buf_append(&run.seen, STR(" half_closed"));
    if (!run.asks) return;
    rpc_send(call, STR("reply"));
    rpc_end(call, ERR_NONE, STR_EMPTY);
    run.call = NULL;
}

static void on_cancelled(struct rpc_call *call, enum rpc_cancel why, void *ctx) {
    (void)call;
    (void)ctx;
    run.told++;
    run.call = NULL;
    buf_append_u64(&run.seen, why);
}

static void on_closed(void *ctx) {
    (void)ctx;
    run.closed++;
    run.call = NULL;
}

static bool authenticate(struct rpc_call *call, void *ctx, struct rpc_identity *ret,
                         struct err *e) {
    (void)ctx;
    size_t count;
    struct str token = lent_read(rpc_metadata(call, STR("authorization"), &count));
    if (count > 1) return err_set(e, ERR_UNAUTHENTICATED, "invalid bearer token");
    *ret = (struct rpc_identity){count == 1, rpc_keep(call, token), STR_EMPTY};
    return true;
}

static const struct rpc_handler handler = {
    .open = on_open,
    .message = on_message,
    .half_closed = on_half_closed,
    .cancelled = on_cancelled,
    .closed = on_closed,
};

#define ROW(name_, kind_, established_)                                                        \
    {                                                                                          \
        .path = STR_INIT("/t.Probe/" name_), .kind = kind_, .handler = &handler,               \
        .established = established_, .auth = RPC_TOKEN, .request_max_bytes = MESSAGE_MAX_BYTES \
    }

static const struct rpc_method methods[] = {
    ROW("Unary", RPC_UNARY, RPC_BY_HANDLER),
    ROW("Upload", RPC_CLIENT_STREAM, RPC_BY_HANDLER),
    ROW("Feed", RPC_SERVER_STREAM, RPC_AT_ACCEPT),
    ROW("Talk", RPC_BIDI, RPC_AT_ACCEPT),
};

static const struct rpc_service service = {
    .name = STR_INIT("t.Probe"),
    .methods = methods,
    .method_count = ARRAY_LEN(methods),
    .authenticate = authenticate,
};

static void serve(struct exchange *exchange, void *ctx) {
    rpc_serve(ctx, exchange);
}

/* --- the peer ---------------------------------------------------------------------------- */

static struct exchange *begin(struct rpc_site *site, struct str *input) {
    char *path = str_dup(str_split(*input, '\n', input));
    struct exchange *x = fake_new(run.loop, "POST", path);
    free(path);
    for (int count = 0; input->at && count < FAKE_FIELDS_MAX; count++) {
        struct str line = str_split(*input, '\n', input);
        if (line.len == 0) break;
        size_t colon = str_find(line, STR(": "));
        char *name = str_dup(str_head(line, colon)),
             *value = str_dup(str_skip(line, colon + 2));
        fake_field(x, name, value);
        free(name);
        free(value);
    }
    fake_start(x, serve, site);
    return x;
}

static struct str piece(struct str *input) {
    size_t len = input->len ? (unsigned char)input->at[0] : 0;
    struct str bytes = str_head(str_skip(*input, 1), len);
    *input = str_skip(*input, 1 + len);
    return bytes;
}

/* Only what belongs to the body. */
static void send_body(struct exchange *x, struct str input, bool in_one) {
    struct buf all;
    buf_init(&all, 1 * MIB);
    bool ended = false;
    while (input.len && !ended) {
        char step = input.at[0];
        input = str_skip(input, 1);
        if (step == 'e') ended = true;
        if (step != 'b') continue;
        struct str bytes = piece(&input);
        if (in_one) {
            buf_append(&all, bytes);
        } else {
            fake_body(x, bytes);
            fake_settle(run.loop);
        }
    }
    if (in_one) fake_body(x, buf_str(&all));
    if (ended) fake_body_end(x);
    buf_done(&all);
}

static void take_step(struct exchange *x, char step, struct str *input, bool *ended) {
    switch (step) {
    case 'b': {
        struct str bytes = piece(input);
        if (!*ended) fake_body(x, bytes);
        break;
    }
    case 'e':
        if (!*ended) fake_body_end(x);
        *ended = true;
        break;
    case 'n':
        if (run.call) rpc_next(run.call);
        break;
    case 's':
        if (run.call) rpc_send(run.call, STR("some words"));
        break;
    case 'x':
        if (run.call) rpc_end(run.call, ERR_ABORTED, STR("enough"));
        run.call = NULL;
        break;
    case 't': loop_advance(run.loop, 100); break;
    case 'r': fake_stop_reading(x); break;
    case 'R': fake_read_all(x); break;
    case 'l': fake_leave(x); break;
    default: fake_settle(run.loop); break;
    }
}

/* --- runs -------------------------------------------------------------------------------- */

enum way { IN_PIECES, IN_ONE, ALL_STEPS };

/* What came of it is appended to `ret`. */
static void go(struct str input, enum way way, struct buf *ret) {
    run = (struct run){.loop = loop_new_fake(), .asks = way != ALL_STEPS};
    buf_init(&run.seen, 4 * MIB);
    struct rpc_site *site = rpc_site_new(run.loop, &service, 1);
    struct exchange *x = begin(site, &input);
    bool ended = false;
    if (way == ALL_STEPS) {
        while (input.len) {
            char step = input.at[0];
            input = str_skip(input, 1);
            take_step(x, step, &input, &ended);
        }
    } else {
        send_body(x, input, way == IN_ONE);
    }
    fake_leave(x);
    fake_settle(run.loop);

    must(fake_closed(x) && fake_unconsumed(x) == 0);
    must(run.opened <= 1 && run.closed == run.opened && run.told <= run.opened);
    buf_append(ret, buf_str(&run.seen));
    buf_append(ret, fake_trailers(x));
    if (fake_status(x) != 200 || !run.opened) buf_append(ret, fake_head(x));

    fake_free(x);
    rpc_site_free(site);
    loop_free(run.loop);
    buf_done(&run.seen);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct str input = str_of(data, size);
    struct buf pieces, one, steps;
    buf_init(&pieces, 8 * MIB);
    buf_init(&one, 8 * MIB);
    buf_init(&steps, 8 * MIB);
    go(input, IN_PIECES, &pieces);
    go(input, IN_ONE, &one);
    must(str_equal(buf_str(&pieces), buf_str(&one)));
    go(input, ALL_STEPS, &steps);
    buf_done(&pieces);
    buf_done(&one);
    buf_done(&steps);
    return 0;
}
