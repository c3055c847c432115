#include "toolserver/exchange.h"

#include "base/mem.h"
#include "wire/sse.h"

#include <stdlib.h>

#define ARENA_MAX_BYTES (16 * MIB)
#define BODY_MAX_BYTES (64 * MIB)
#define RETRY_MS "1000" /* after which a client whose stream broke comes back */

/* --- its life ----------------------------------------------------------------------------- */

static void exchange_free(struct toolserver_exchange *exchange) {
    LIST_EACH(&exchange->calls, link) {
        toolserver_call_free(CONTAINER_OF(link, struct toolserver_call, link));
    }
    list_remove(&exchange->link);
    arena_free(exchange->arena);
    buf_done(&exchange->body);
    free(exchange);
}

static void exchange_on_left(void *ctx) {
    struct toolserver_exchange *exchange = ctx;
    exchange->gone = true;
    LIST_EACH(&exchange->calls, link) {
        toolserver_call_left(CONTAINER_OF(link, struct toolserver_call, link));
    }
    exchange_free(exchange);
}

static void exchange_on_drained(void *ctx) {
    struct toolserver_exchange *exchange = ctx;
    LIST_EACH(&exchange->calls, link) {
        struct toolserver_call *call = CONTAINER_OF(link, struct toolserver_call, link);
        if (call->state == TOOLSERVER_CALL_RUNNING && call->watch->drained)
            call->watch->drained(call->ctx);
    }
}

static void exchange_on_closed(void *ctx) {
    exchange_free(ctx);
}

static const struct route_watch watch = {
    .left = exchange_on_left, .drained = exchange_on_drained, .closed = exchange_on_closed};

struct toolserver_exchange *toolserver_exchange_new(struct toolserver *server,
                                                    struct route_call *call,
                                                    const struct toolserver_caller *caller) {
    struct toolserver_exchange *exchange = MEM_NEW(struct toolserver_exchange);
    exchange->server = server;
    exchange->call = call;
    exchange->arena = arena_new(ARENA_MAX_BYTES);
    exchange->caller = *caller;
    exchange->reading = true;
    list_init(&exchange->calls);
    list_init(&exchange->link);
    list_append(&server->exchanges, &exchange->link);
    buf_init(&exchange->body, BODY_MAX_BYTES);
    route_watch(call, &watch, exchange);
    return exchange;
}

/* --- replies ------------------------------------------------------------------------------ */

static void exchange_reply(struct toolserver_exchange *exchange, int status, struct str type,
                           struct str body) {
    exchange->replied = true;
    route_reply(exchange->call, status, type, body);
}

void toolserver_exchange_empty(struct toolserver_exchange *exchange, int status) {
    exchange_reply(exchange, status, STR_EMPTY, STR_EMPTY);
}

void toolserver_exchange_refuse(struct toolserver_exchange *exchange, int status, struct str id,
                                int64_t code, struct str message, struct str data) {
    struct buf body;
    buf_init(&body, BODY_MAX_BYTES);
    jsonrpc_write_error_data(&body, id, code, message, data);
    exchange_reply(exchange, status, STR("application/json"), buf_str(&body));
    buf_done(&body);
}

void toolserver_exchange_stream(struct toolserver_exchange *exchange) {
    if (exchange->streams || exchange->replied || !exchange->accepts_events) return;
    exchange->streams = true;
    route_sse_begin(exchange->call);
}

void toolserver_exchange_prime(struct toolserver_exchange *exchange, struct str id) {
    struct buf *out = exchange->streams ? route_sse_out(exchange->call) : NULL;
    if (!out) return;
    size_t begin = out->len;
    buf_append(out, STR("retry: " RETRY_MS "\n"));
    sse_append(out, STR_EMPTY, id, STR_EMPTY);
    route_sse_wrote(exchange->call, begin);
}

/* Before the first answer is known, a batch of answers is begun. */
static void collect(struct toolserver_exchange *exchange, struct str message) {
    struct buf *body = &exchange->body;
    if (exchange->is_batch) buf_append_byte(body, body->len ? ',' : '[');
    buf_append(body, message);
}

void toolserver_exchange_send(struct toolserver_exchange *exchange, struct str id,
                              struct str message) {
    if (exchange->gone || exchange->replied) return;
    if (exchange->is_batch) toolserver_exchange_stream(exchange);
    if (exchange->streams) {
        route_sse_event(exchange->call, STR("message"), id, message);
    } else {
        collect(exchange, message);
    }
}

/* A stateless client reads in each result that it is whole. */
static void append_result(const struct toolserver_exchange *exchange, struct json id,
                          struct str result, struct buf *out) {
    struct buf whole;
    if (!exchange->stateless) {
        jsonrpc_write_result(out, id.raw, result);
        return;
    }
    buf_init(&whole, BODY_MAX_BYTES);
    buf_append(&whole, STR("{\"resultType\":\"complete\""));
    if (json_count(json_of(result)) > 0) buf_append_byte(&whole, ',');
    buf_append(&whole, str_skip(str_trim(result), 1));
    jsonrpc_write_result(out, id.raw, buf_str(&whole));
    buf_done(&whole);
}

void toolserver_exchange_result(struct toolserver_exchange *exchange, struct json id,
                                struct str result) {
    struct buf message;
    buf_init(&message, BODY_MAX_BYTES);
    append_result(exchange, id, result, &message);
    if (!buf_ok(&message)) {
        buf_clear(&message);
        jsonrpc_write_error(&message, id.raw, JSONRPC_INTERNAL_ERROR,
                            STR("the result is larger than a message may be"));
    }
    toolserver_exchange_send(exchange, STR_EMPTY, buf_str(&message));
    buf_done(&message);
}

void toolserver_exchange_error(struct toolserver_exchange *exchange, struct json id,
                               int64_t code, struct str message) {
    struct buf text;
    buf_init(&text, BODY_MAX_BYTES);
    jsonrpc_write_error(&text, id.raw, code, message);
    toolserver_exchange_send(exchange, STR_EMPTY, buf_str(&text));
    buf_done(&text);
}

/* Nothing was asked, or every request was cancelled: accepted. */
static void reply_collected(struct toolserver_exchange *exchange) {
    struct buf *body = &exchange->body;
    if (body->len == 0) {
        toolserver_exchange_empty(exchange, 202);
        return;
    }
    if (exchange->is_batch) buf_append_byte(body, ']');
    if (!buf_ok(body)) {
        toolserver_exchange_refuse(exchange, 500, STR("null"), JSONRPC_INTERNAL_ERROR,
                                   STR("the answers are larger than a body may be"), STR_EMPTY);
        return;
    }
    exchange_reply(exchange, 200, STR("application/json"), buf_str(body));
}

void toolserver_exchange_read(struct toolserver_exchange *exchange) {
    if (exchange->reading || exchange->pending || exchange->replied || exchange->gone) return;
    if (!exchange->streams) {
        reply_collected(exchange);
        return;
    }
    exchange->replied = true;
    route_sse_end(exchange->call);
}
