#include "sidecar/programs.h"

#include "base/list.h"
#include "base/log.h"
#include "base/mem.h"
#include "mcp/pipe.h"
#include "sidecar/refusal.h"
#include "wire/jsonrpc.h"

#include <stdlib.h>

#define MESSAGE_MAX_BYTES PIPE_LINE_MAX_BYTES

struct tool_program {
    struct tool_program_options options;
    struct mcp_pipe *pipe;
    struct list asks;
    uint64_t last_id;
    struct text greeting; /* the result of `initialize`; no text: it was not greeted */
    bool initialized;     /* it was told that its greeting was received */
};

/* One request of a client. */
struct ask {
    struct list link;
    struct tool_program *program;
    struct exchange *exchange; /* NULL: closed */
    struct buf body;
    struct text id; /* the client's, as JSON */
    uint64_t ours;  /* 0: the program does not have it */
    bool greets, answered;
    struct timer late;
};

/* --- answers ---------------------------------------------------------------------------------- */

static void ask_end(struct ask *ask) {
    timer_stop(&ask->late);
    ask->ours = 0;
    ask->answered = true;
}

static void answer(struct ask *ask, int status, struct str body) {
    ask_end(ask);
    if (ask->exchange)
        refusal_reply(ask->exchange, status, STR("application/json"), body, STR_EMPTY);
}

static void refuse(struct ask *ask, int status, struct str code, struct str message) {
    ask_end(ask);
    if (ask->exchange)
        refusal_send(ask->exchange,
                     &(struct refusal){.status = status, .code = code, .message = message});
}

static void answer_error(struct ask *ask, int64_t code, const char *message) {
    struct buf out;
    buf_init(&out, 16 * KIB);
    struct str id = ask->id.len ? text_str(ask->id) : STR("null");
    jsonrpc_write_error(&out, id, code, str_from(message));
    answer(ask, 400, buf_str(&out));
    buf_done(&out);
}

/* The program's message, with the client's id in place of ours. */
static void answer_with(struct ask *ask, struct json message) {
    struct buf out;
    struct json error = json_find(message, STR("error"));
    bool failed = error.kind == JSON_OBJECT;
    struct json result = failed ? error : json_find(message, STR("result"));
    buf_init(&out, 2 * MESSAGE_MAX_BYTES);
    struct json_writer json = json_writer(&out);
    json_open_object(&json);
    json_member_str(&json, "jsonrpc", STR("2.0"));
    json_member_raw(&json, "id", text_str(ask->id));
    json_member_raw(&json, failed ? "error" : "result", result.raw);
    json_close(&json);
    answer(ask, 200, buf_str(&out));
    buf_done(&out);
}

/* --- the program ------------------------------------------------------------------------------ */

static struct ask *ask_of(const struct tool_program *program, struct json id) {
    int64_t number;
    if (!json_i64(id, &number) || number <= 0) return NULL;
    LIST_EACH(&program->asks, link) {
        struct ask *ask = CONTAINER_OF(link, struct ask, link);
        if (ask->ours == (uint64_t)number) return ask;
    }
    return NULL;
}

static void keep_greeting(struct tool_program *program, struct json message) {
    struct json result = json_find(message, STR("result"));
    if (result.kind != JSON_OBJECT || program->greeting.len) return;
    program->greeting = text_copy(result.raw);
}

/* What a program asks its client: there is none that it could reach. */
static void answer_program(struct tool_program *program, const struct jsonrpc *message) {
    struct buf out;
    buf_init(&out, 16 * KIB);
    if (json_is(message->method, STR("ping")))
        jsonrpc_write_result(&out, message->id.raw, STR("{}"));
    else
        jsonrpc_write_error(&out, message->id.raw, JSONRPC_METHOD_NOT_FOUND,
                            STR("the client does not offer this"));
    if (!pipe_send(program->pipe, buf_str(&out))) pipe_fail(program->pipe, "reads no more");
    buf_done(&out);
}

static void on_message(struct json value, void *ctx) {
    struct tool_program *program = ctx;
    struct jsonrpc message;
    struct err e;
    if (!jsonrpc_read(value, &message, &e)) return;
    if (message.kind == JSONRPC_REQUEST) {
        answer_program(program, &message);
        return;
    }
    struct ask *ask = message.kind == JSONRPC_NOTIFICATION ? NULL : ask_of(program, message.id);
    if (!ask) return;
    if (ask->greets) keep_greeting(program, value);
    answer_with(ask, value);
}

static void fail_all(struct tool_program *program, const struct err *why) {
    LIST_EACH(&program->asks, link) {
        struct ask *ask = CONTAINER_OF(link, struct ask, link);
        if (ask->ours) refuse(ask, 502, STR("UPSTREAM_UNREACHABLE"), err_text(why));
    }
}

static void on_down(const struct err *why, void *ctx) {
    struct tool_program *program = ctx;
    text_done(&program->greeting);
    program->initialized = false;
    fail_all(program, why);
}

/* Send a message of a client: `id` 0 for a notification. */
static bool tell(struct tool_program *program, const struct jsonrpc *message, uint64_t id) {
    struct buf out;
    buf_init(&out, 2 * MESSAGE_MAX_BYTES);
    struct json_writer json = json_writer(&out);
    json_open_object(&json);
    json_member_str(&json, "jsonrpc", STR("2.0"));
    if (id) json_member_u64(&json, "id", id);
    json_member_raw(&json, "method", message->method.raw);
    if (message->params.kind != JSON_NONE) {
        struct buf params;
        buf_init(&params, MESSAGE_MAX_BYTES);
        json_compact(message->params.raw, &params); /* a line has no line breaks */
        json_member_raw(&json, "params", buf_str(&params));
        buf_done(&params);
    }
    json_close(&json);
    bool sent = pipe_send(program->pipe, buf_str(&out));
    buf_done(&out);
    return sent;
}

/* --- messages of clients ---------------------------------------------------------------------- */

static void on_late(void *ctx) {
    struct ask *ask = ctx;
    refuse(ask, 504, STR("UPSTREAM_TIMEOUT"), STR("the MCP server did not answer in time"));
}

static void request(struct ask *ask, const struct jsonrpc *message) {
    struct tool_program *program = ask->program;
    struct err e;
    ask->id = text_copy(message->id.raw);
    ask->greets = json_is(message->method, STR("initialize"));
    if (ask->greets && program->greeting.len) {
        struct buf out;
        buf_init(&out, 2 * MESSAGE_MAX_BYTES);
        jsonrpc_write_result(&out, text_str(ask->id), text_str(program->greeting));
        answer(ask, 200, buf_str(&out));
        buf_done(&out);
        return;
    }
    if (!pipe_start(program->pipe, &e)) {
        refuse(ask, 502, STR("UPSTREAM_UNREACHABLE"), err_text(&e));
        return;
    }
    ask->ours = ++program->last_id;
    if (program->options.answer_ms) timer_start(&ask->late, program->options.answer_ms);
    if (!tell(program, message, ask->ours))
        refuse(ask, 502, STR("UPSTREAM_UNREACHABLE"), STR("the MCP server takes no more"));
}

/* The ids in a client's cancellation are not the program's; a client cancels by leaving. */
static void notify(struct ask *ask, const struct jsonrpc *message) {
    struct tool_program *program = ask->program;
    struct err e;
    bool initialized = json_is(message->method, STR("notifications/initialized"));
    bool wanted = !json_is(message->method, STR("notifications/cancelled")) &&
                  !(initialized && program->initialized);
    program->initialized |= initialized;
    if (wanted && pipe_start(program->pipe, &e)) (void)tell(program, message, 0);
    answer(ask, 202, STR_EMPTY);
}

static void take(struct ask *ask) {
    struct json value;
    struct jsonrpc message;
    struct err e;
    if (!json_read(buf_str(&ask->body), &value, &e)) {
        answer_error(ask, JSONRPC_PARSE_ERROR, e.text);
    } else if (!jsonrpc_read(value, &message, &e)) {
        answer_error(ask, JSONRPC_INVALID_REQUEST, e.text);
    } else if (message.kind == JSONRPC_REQUEST) {
        request(ask, &message);
    } else if (message.kind == JSONRPC_NOTIFICATION) {
        notify(ask, &message);
    } else {
        answer(ask, 202, STR_EMPTY);
    }
}

/* --- exchanges -------------------------------------------------------------------------------- */

static void on_body(struct exchange *exchange, struct lent bytes, void *ctx) {
    struct ask *ask = ctx;
    struct str read = lent_read(bytes);
    exchange_consumed(exchange, read.len);
    if (ask->answered || buf_append(&ask->body, read)) return;
    refuse(ask, 413, STR("PAYLOAD_TOO_LARGE"), STR("the message is too large"));
}

static void on_body_end(struct exchange *exchange, void *ctx) {
    struct ask *ask = ctx;
    (void)exchange;
    if (!ask->answered) take(ask);
    buf_release(&ask->body);
}

static void cancel(const struct ask *ask) {
    struct buf params;
    if (!ask->ours || ask->greets) return;
    buf_init(&params, 1 * KIB);
    buf_printf(&params, "{\"requestId\":%llu,\"reason\":\"the client left\"}",
               (unsigned long long)ask->ours);
    struct buf out;
    buf_init(&out, 2 * KIB);
    jsonrpc_write_notification(&out, "notifications/cancelled", buf_str(&params));
    bool sent = pipe_send(ask->program->pipe, buf_str(&out));
    if (!sent) log_debug("an MCP server was not told that its client left");
    buf_done(&out);
    buf_done(&params);
}

static void on_closed(struct exchange *exchange, enum exchange_close how, void *ctx) {
    struct ask *ask = ctx;
    (void)exchange;
    (void)how;
    ask->exchange = NULL;
    cancel(ask);
    timer_stop(&ask->late);
    list_remove(&ask->link);
    text_done(&ask->id);
    buf_done(&ask->body);
    free(ask);
}

void program_ask(struct tool_program *program, struct exchange *exchange) {
    static const struct exchange_events events = {on_body, on_body_end, NULL, on_closed};
    struct ask *ask = MEM_NEW(struct ask);
    ask->program = program;
    ask->exchange = exchange;
    buf_init(&ask->body, MESSAGE_MAX_BYTES);
    timer_init(&ask->late, program->options.loop, on_late, ask);
    list_append(&program->asks, &ask->link);
    exchange_accept(exchange, &events, ask);
    if (!str_equal(exchange_method(exchange), STR("POST")))
        refuse(ask, 405, STR("METHOD_NOT_ALLOWED"), STR("send messages with POST"));
}

/* --- life ------------------------------------------------------------------------------------- */

struct tool_program *program_new(const struct tool_program_options *options) {
    static const struct pipe_events events = {on_message, on_down};
    struct tool_program *program = MEM_NEW(struct tool_program);
    program->options = *options;
    list_init(&program->asks);
    program->pipe = pipe_new(&(struct pipe_options){.loop = options->loop,
                                                    .name = options->name,
                                                    .args = options->args,
                                                    .environment = options->environment},
                             &events, program);
    return program;
}

void program_free(struct tool_program *program) {
    if (!program) return;
    pipe_free(program->pipe);
    text_done(&program->greeting);
    free(program);
}
