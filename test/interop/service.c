#include "interop/service.h"

#include "base/arena.h"
#include "base/mem.h"
#include "loop/loop.h"
#include "test/interop.pb.h"

#include <stdlib.h>

#define SERVICE "grpc.testing.TestService"
#define REQUEST_MAX_BYTES (4 * MIB)
#define DECODED_MAX_BYTES (8 * MIB)
#define RESPONSE_MAX_BYTES (16 * MIB)
#define QUEUE_HIGH_BYTES (256 * KIB)
#define QUEUE_LOW_BYTES (64 * KIB)
#define ECHO_MAX_BYTES (8 * KIB)

/* --- what several methods do -------------------------------------------------------------- */

static void count_open(size_t *opened) {
    ++*opened;
}

/* Two keys come back: one before the messages, one after them. */
static void echo_metadata(struct rpc_call *call) {
    struct str initial = STR("x-grpc-test-echo-initial");
    struct str trailing = STR("x-grpc-test-echo-trailing-bin");
    struct str value = lent_read(rpc_metadata_at(call, initial, 0));
    if (value.at) rpc_header(call, initial, value);

    struct buf bytes;
    struct err e;
    buf_init(&bytes, ECHO_MAX_BYTES);
    if (rpc_metadata_bin(call, trailing, 0, &bytes, &e))
        rpc_trailer(call, trailing, buf_str(&bytes));
    buf_done(&bytes);
}

static bool decode(struct rpc_call *call, const struct pb_message *type, struct lent message,
                   struct arena *arena, void *ret) {
    struct err e;
    if (pb_decode(type, message, arena, ret, &e)) return true;
    rpc_end(call, ERR_INTERNAL, err_text(&e));
    return false;
}

static void send(struct rpc_call *call, const struct pb_message *type, const void *message) {
    pb_encode(type, message, rpc_message_begin(call));
    rpc_message_end(call);
}

/* Whether the request came compressed or not, as its sender meant it to. */
static bool check_compressed(struct rpc_call *call, const struct interop_bool_value *expected) {
    if (!expected || expected->value == rpc_came_compressed(call)) return true;
    rpc_end(call, ERR_INVALID_ARGUMENT,
            expected->value ? STR("the request is not compressed")
                            : STR("the request is compressed"));
    return false;
}

static bool check_size(struct rpc_call *call, int32_t size) {
    if (size >= 0 && (size_t)size <= RESPONSE_MAX_BYTES) return true;
    rpc_end(call, ERR_INVALID_ARGUMENT, STR("no such response size"));
    return false;
}

static void end_as_told(struct rpc_call *call, const struct interop_echo_status *status) {
    bool known = status->code >= 0 && status->code <= ERR_UNAUTHENTICATED;
    rpc_end(call, known ? (enum err_code)status->code : ERR_UNKNOWN, status->message);
}

/* So many zero bytes. */
static struct str zeros(int32_t size) {
    static const char bytes[RESPONSE_MAX_BYTES];
    return str_of(bytes, (size_t)size);
}

/* --- EmptyCall and UnaryCall -------------------------------------------------------------- */

static void *simple_open(struct rpc_call *call, void *service_ctx) {
    count_open(service_ctx);
    echo_metadata(call);
    return service_ctx;
}

static void empty_message(struct rpc_call *call, struct lent message, void *ctx) {
    (void)message;
    (void)ctx;
    rpc_send(call, STR_EMPTY);
    rpc_end(call, ERR_NONE, STR_EMPTY);
}

static void answer(struct rpc_call *call, const struct interop_simple_request *request) {
    if (!check_compressed(call, request->expect_compressed)) return;
    if (!check_size(call, request->response_size)) return;
    if (request->response_status && request->response_status->code) {
        end_as_told(call, request->response_status);
        return;
    }
    if (request->response_compressed && request->response_compressed->value)
        rpc_compress(call, RPC_GZIP);
    struct interop_payload payload = {.body = zeros(request->response_size)};
    struct interop_simple_response response = {.payload = &payload};
    send(call, &interop_simple_response_table, &response);
    rpc_end(call, ERR_NONE, STR_EMPTY);
}

static void unary_message(struct rpc_call *call, struct lent message, void *ctx) {
    (void)ctx;
    struct interop_simple_request request;
    struct arena *arena = arena_new(DECODED_MAX_BYTES);
    if (decode(call, &interop_simple_request_table, message, arena, &request))
        answer(call, &request);
    arena_free(arena);
}

static const struct rpc_handler empty = {.open = simple_open, .message = empty_message};
static const struct rpc_handler unary = {.open = simple_open, .message = unary_message};

/* --- StreamingInputCall ------------------------------------------------------------------- */

static void *input_open(struct rpc_call *call, void *service_ctx) {
    count_open(service_ctx);
    echo_metadata(call);
    return mem_zero(1, sizeof(int32_t));
}

static void input_message(struct rpc_call *call, struct lent message, void *ctx) {
    int32_t *sum = ctx;
    struct interop_streaming_input_call_request request;
    struct arena *arena = arena_new(DECODED_MAX_BYTES);
    if (decode(call, &interop_streaming_input_call_request_table, message, arena, &request) &&
        check_compressed(call, request.expect_compressed)) {
        if (request.payload) *sum += (int32_t)request.payload->body.len;
        rpc_next(call);
    }
    arena_free(arena);
}

static void input_half_closed(struct rpc_call *call, void *ctx) {
    const int32_t *sum = ctx;
    struct interop_streaming_input_call_response response = {.aggregated_payload_size = *sum};
    send(call, &interop_streaming_input_call_response_table, &response);
    rpc_end(call, ERR_NONE, STR_EMPTY);
}

static const struct rpc_handler input = {
    .open = input_open,
    .message = input_message,
    .half_closed = input_half_closed,
    .closed = free,
};

/* --- the three that answer with a stream -------------------------------------------------- */

struct piece {
    int32_t size;
    uint64_t wait_ms;
    bool compressed;
};

struct output {
    struct rpc_call *call;
    struct piece *pieces; /* asked for and not yet sent, from `at` on */
    size_t at, count;
    struct timer timer;
    bool waited;      /* for the next piece */
    bool half_closed; /* end when all is sent */
    bool over;
};

static void on_timer(void *ctx);

static void *output_open(struct rpc_call *call, void *service_ctx) {
    struct output *output = MEM_NEW(struct output);
    count_open(service_ctx);
    output->call = call;
    timer_init(&output->timer, rpc_loop(call), on_timer, output);
    echo_metadata(call);
    return output;
}

static void end_output(struct output *output) {
    output->over = true;
    timer_stop(&output->timer);
}

/* Send what is due. Returns whether all is sent. */
static bool go_on(struct output *output) {
    while (output->at < output->count) {
        const struct piece *piece = &output->pieces[output->at];
        if (timer_waits(&output->timer)) return false;
        if (piece->wait_ms && !output->waited) {
            timer_start(&output->timer, piece->wait_ms);
            return false;
        }
        if (rpc_queued(output->call) > QUEUE_HIGH_BYTES) {
            rpc_wake_at(output->call, QUEUE_LOW_BYTES);
            return false;
        }
        struct interop_payload payload = {.body = zeros(piece->size)};
        struct interop_streaming_output_call_response response = {.payload = &payload};
        rpc_compress(output->call, piece->compressed ? RPC_GZIP : RPC_PLAIN);
        send(output->call, &interop_streaming_output_call_response_table, &response);
        output->waited = false;
        output->at++;
    }
    return true;
}

static void pump(struct output *output) {
    if (output->over || !go_on(output)) return;
    if (output->half_closed) {
        end_output(output);
        rpc_end(output->call, ERR_NONE, STR_EMPTY);
    } else {
        rpc_next(output->call);
    }
}

static void on_timer(void *ctx) {
    struct output *output = ctx;
    output->waited = true;
    pump(output);
}

static bool keep_pieces(struct output *output,
                        const struct interop_streaming_output_call_request *request) {
    size_t count = request->response_parameters_count;
    output->pieces =
        mem_resize(output->pieces, (output->count + count) * sizeof(struct piece) + 1);
    for (size_t i = 0; i < count; i++) {
        const struct interop_response_parameters *wanted = &request->response_parameters[i];
        if (!check_size(output->call, wanted->size)) return false;
        uint64_t wait_us = wanted->interval_us > 0 ? (uint64_t)wanted->interval_us : 0;
        bool compressed = wanted->compressed && wanted->compressed->value;
        if (compressed) rpc_compress(output->call, RPC_GZIP); /* the head will say so */
        output->pieces[output->count++] =
            (struct piece){wanted->size, (wait_us + 999) / 1000, compressed};
    }
    return true;
}

/* Returns whether the call goes on. */
static bool take_request(struct output *output, struct lent message) {
    struct interop_streaming_output_call_request request;
    struct arena *arena = arena_new(DECODED_MAX_BYTES);
    bool ok = decode(output->call, &interop_streaming_output_call_request_table, message, arena,
                     &request);
    if (ok && request.response_status && request.response_status->code) {
        end_as_told(output->call, request.response_status);
        ok = false;
    }
    ok = ok && keep_pieces(output, &request);
    arena_free(arena);
    if (!ok) end_output(output);
    return ok;
}

static void output_message(struct rpc_call *call, struct lent message, void *ctx) {
    (void)call;
    if (take_request(ctx, message)) pump(ctx);
}

static void collect_message(struct rpc_call *call, struct lent message, void *ctx) {
    if (take_request(ctx, message)) rpc_next(call);
}

static void output_half_closed(struct rpc_call *call, void *ctx) {
    struct output *output = ctx;
    (void)call;
    output->half_closed = true;
    pump(output);
}

static void output_drained(struct rpc_call *call, void *ctx) {
    (void)call;
    pump(ctx);
}

static void output_cancelled(struct rpc_call *call, enum rpc_cancel why, void *ctx) {
    (void)call;
    (void)why;
    end_output(ctx);
}

static void output_closed(void *ctx) {
    struct output *output = ctx;
    timer_stop(&output->timer);
    free(output->pieces);
    free(output);
}

static const struct rpc_handler output = {
    .open = output_open,
    .message = output_message,
    .half_closed = output_half_closed,
    .drained = output_drained,
    .cancelled = output_cancelled,
    .closed = output_closed,
};

static const struct rpc_handler collect = {
    .open = output_open,
    .message = collect_message,
    .half_closed = output_half_closed,
    .drained = output_drained,
    .cancelled = output_cancelled,
    .closed = output_closed,
};

/* --- the service -------------------------------------------------------------------------- */

#define ROW(name_, kind_, handler_, ends_)                                                     \
    {                                                                                          \
        .path = STR_INIT("/" SERVICE "/" name_), .kind = kind_, .handler = &(handler_),        \
        .ends = ends_, .established = RPC_BY_HANDLER, .auth = RPC_OPEN,                        \
        .request_max_bytes = REQUEST_MAX_BYTES                                                 \
    }

/* clang-format off */
static const struct rpc_method methods[] = {
    ROW("EmptyCall",           RPC_UNARY,         empty,   CLOSE_SINGLE),
    ROW("UnaryCall",           RPC_UNARY,         unary,   CLOSE_SINGLE),
    ROW("StreamingInputCall",  RPC_CLIENT_STREAM, input,   CLOSE_SINGLE),
    ROW("StreamingOutputCall", RPC_SERVER_STREAM, output,  CLOSE_SUBSCRIPTION),
    ROW("FullDuplexCall",      RPC_BIDI,          output,  CLOSE_SUBSCRIPTION),
    ROW("HalfDuplexCall",      RPC_BIDI,          collect, CLOSE_SUBSCRIPTION),
};
/* clang-format on */

struct rpc_service interop_service(size_t *opened) {
    return (struct rpc_service){
        .name = STR(SERVICE),
        .methods = methods,
        .method_count = ARRAY_LEN(methods),
        .ctx = opened,
    };
}
