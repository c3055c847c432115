#include "sidecar/programs.h"

#include "base/clock.h"
#include "base/list.h"
#include "base/log.h"
#include "base/mem.h"
#include "mcp/pipe.h"
#include "server/exchange_trace.h"
#include "sidecar/program_meta.h"
#include "sidecar/refusal.h"
#include "sidecar/request_span.h"
#include "wire/jsonrpc.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>

#define MESSAGE_MAX_BYTES PIPE_LINE_MAX_BYTES

/* clang-format off */
const struct state program_states[PROGRAM_STATE_COUNT] = {
    [PROGRAM_COLD]     = {"cold",     TO(PROGRAM_GREETING)},
    [PROGRAM_GREETING] = {"greeting", TO(PROGRAM_READY) | TO(PROGRAM_COLD)},
    [PROGRAM_READY]    = {"ready",    TO(PROGRAM_COLD)},
};
/* clang-format on */

struct tool_program {
    struct tool_program_options options;
    struct mcp_pipe *pipe;
    enum program_state state;
    struct list asks;
    uint64_t last_id;
    struct text hello;    /* the params of the last `initialize` that it took; or no text */
    struct text trying;   /* those of the one under way */
    uint64_t greeting_id; /* ours, of that one */
    struct text greeting; /* its result */
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
    bool waits;       /* until the program is initialized */
    struct text line; /* what it is sent then */
    struct holding holding;
    struct timer late;
    struct trace trace;
    struct text state; /* its tracestate */
    uint64_t began_us;
};

/* The only function that writes program->state. */
static void program_move(struct tool_program *program, enum program_state next) {
    assert(states_allow(program_states, program->state, next));
    program->state = next;
}

/* --- answers ---------------------------------------------------------------------------------- */

static void programs_report_span(const struct ask *ask, int status) {
    request_span_part(&ask->trace,
                      &(struct part_span){.operation = SPAN_NAME("mcp"),
                                          .what = ask->program->options.name,
                                          .kind = SPAN_CLIENT,
                                          .self = ask->trace.call,
                                          .by_agent = true,
                                          .took_us = clock_mono_us() - ask->began_us,
                                          .status = status});
}

static void programs_ask_end(struct ask *ask, int status) {
    programs_report_span(ask, status);
    timer_stop(&ask->late);
    ask->ours = 0;
    ask->waits = false;
    ask->answered = true;
}

static void programs_answer(struct ask *ask, int status, struct str body) {
    programs_ask_end(ask, status);
    if (ask->exchange)
        refusal_reply(ask->exchange, status, STR("application/json"), body, STR_EMPTY);
}

static void programs_refuse(struct ask *ask, int status, struct str code, struct str message) {
    programs_ask_end(ask, status);
    if (ask->exchange)
        refusal_send(ask->exchange, &(struct refusal){.status = status,
                                                      .code = code,
                                                      .message = message,
                                                      .retry_after_s = status == 503 ? 1 : 0});
}

static void refuse_down(struct ask *ask, struct str why) {
    programs_refuse(ask, 502, STR("UPSTREAM_UNREACHABLE"), why);
}

static void answer_error(struct ask *ask, int64_t code, const char *message) {
    struct buf out;
    buf_init(&out, 16 * KIB);
    struct str id = ask->id.len ? text_str(ask->id) : STR("null");
    jsonrpc_write_error(&out, id, code, str_from(message));
    programs_answer(ask, 400, buf_str(&out));
    buf_done(&out);
}

/* The program's message, with the client's id in place of ours. */
static void programs_answer_with(struct ask *ask, struct json message) {
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
    programs_answer(ask, 200, buf_str(&out));
    buf_done(&out);
}

/* --- the program ------------------------------------------------------------------------------ */

static struct ask *ask_of(const struct tool_program *program, struct json id) {
    LIST_EACH(&program->asks, link) {
        struct ask *ask = CONTAINER_OF(link, struct ask, link);
        if (ask->ours && jsonrpc_is_number(id, ask->ours)) return ask;
    }
    return NULL;
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

/* Append a message for the program; `id` 0 for a notification. A line has no line breaks. */
static void write_line(struct buf *out, struct str method, struct str params, uint64_t id) {
    struct json_writer json = json_writer(out);
    json_open_object(&json);
    json_member_str(&json, "jsonrpc", STR("2.0"));
    if (id) json_member_u64(&json, "id", id);
    json_member_raw(&json, "method", method);
    if (params.len) {
        struct buf compact;
        buf_init(&compact, 2 * MESSAGE_MAX_BYTES);
        json_compact(params, &compact);
        json_member_raw(&json, "params", buf_str(&compact));
        buf_done(&compact);
    }
    json_close(&json);
}

static bool programs_tell(struct tool_program *program, struct str method, struct str params,
                          uint64_t id) {
    struct buf line;
    buf_init(&line, 2 * MESSAGE_MAX_BYTES);
    write_line(&line, method, params, id);
    bool sent = pipe_send(program->pipe, buf_str(&line));
    buf_done(&line);
    return sent;
}

/* --- initializing ----------------------------------------------------------------------------- */

static bool greet(struct tool_program *program, struct str params, struct err *e) {
    struct text trying = text_copy(params);
    if (!pipe_start(program->pipe, e)) {
        text_done(&trying);
        return false;
    }
    text_done(&program->trying);
    program->trying = trying;
    program->greeting_id = ++program->last_id;
    program_move(program, PROGRAM_GREETING);
    if (!programs_tell(program, STR("\"initialize\""), text_str(trying), program->greeting_id))
        pipe_fail(program->pipe, "reads no more");
    return program->state == PROGRAM_GREETING ||
           err_set(e, ERR_UNAVAILABLE, "the MCP server takes no more");
}

static void answer_greeting(struct ask *ask) {
    struct buf out;
    buf_init(&out, 2 * MESSAGE_MAX_BYTES);
    jsonrpc_write_result(&out, text_str(ask->id), text_str(ask->program->greeting));
    programs_answer(ask, 200, buf_str(&out));
    buf_done(&out);
}

/* What has waited goes on. */
static void release(struct ask *ask) {
    ask->waits = false;
    if (ask->greets)
        answer_greeting(ask);
    else if (!pipe_send(ask->program->pipe, text_str(ask->line)))
        refuse_down(ask, STR("the MCP server takes no more"));
    text_done(&ask->line);
}

static void end_greeting(struct tool_program *program, struct json message) {
    struct json result = json_find(message, STR("result"));
    bool good = result.kind == JSON_OBJECT;
    program_move(program, good ? PROGRAM_READY : PROGRAM_COLD);
    if (good) {
        text_done(&program->hello);
        program->hello = program->trying;
        program->trying = (struct text){0};
        text_done(&program->greeting);
        program->greeting = text_copy(result.raw);
        if (!programs_tell(program, STR("\"notifications/initialized\""), STR_EMPTY, 0))
            log_debug("an MCP server was not told that it is initialized");
    }
    LIST_EACH(&program->asks, link) {
        struct ask *ask = CONTAINER_OF(link, struct ask, link);
        if (!ask->waits) continue;
        if (good)
            release(ask);
        else if (ask->greets)
            programs_answer_with(ask, message);
        else
            refuse_down(ask, STR("the MCP server was started again, and refused `initialize`"));
    }
}

static bool is_greeting(const struct tool_program *program, struct json id) {
    return program->state == PROGRAM_GREETING && jsonrpc_is_number(id, program->greeting_id);
}

/* A request whose answer cannot be read would only wait for its time limit. */
static void on_unreadable(struct tool_program *program, struct json value,
                          const struct err *why) {
    struct json id = jsonrpc_refused_id(value);
    struct ask *ask = ask_of(program, id);
    struct err said = *why;
    err_add(&said, "the MCP server's message cannot be read");
    log_often(LOG_WARNING, "'" STR_FMT "': %s", STR_ARG(program->options.name), said.text);
    if (is_greeting(program, id))
        pipe_fail(program->pipe, "answered `initialize` with what cannot be read");
    else if (ask && !ask->waits)
        programs_refuse(ask, 502, STR("UPSTREAM_INVALID"), err_text(&said));
}

static void programs_on_message(struct json value, void *ctx) {
    struct tool_program *program = ctx;
    struct jsonrpc message;
    struct err e;
    if (!jsonrpc_read(value, &message, &e)) {
        on_unreadable(program, value, &e);
        return;
    }
    if (message.kind == JSONRPC_REQUEST) {
        answer_program(program, &message);
        return;
    }
    if (message.kind == JSONRPC_NOTIFICATION) return;
    if (is_greeting(program, message.id)) {
        end_greeting(program, value);
        return;
    }
    struct ask *ask = ask_of(program, message.id);
    if (ask && !ask->waits) programs_answer_with(ask, value);
}

static void on_down(const struct err *why, void *ctx) {
    struct tool_program *program = ctx;
    if (program->state != PROGRAM_COLD) program_move(program, PROGRAM_COLD);
    LIST_EACH(&program->asks, link) {
        struct ask *ask = CONTAINER_OF(link, struct ask, link);
        if (ask->ours) refuse_down(ask, err_text(why));
    }
}

/* --- messages of clients ---------------------------------------------------------------------- */

/* The program need not answer it any more. */
static void cancel(const struct ask *ask, const char *why) {
    struct buf out;
    if (!ask->ours || ask->waits) return;
    buf_init(&out, 2 * KIB);
    buf_printf(&out, "{\"requestId\":%llu,\"reason\":\"%s\"}", (unsigned long long)ask->ours,
               why);
    if (!programs_tell(ask->program, STR("\"notifications/cancelled\""), buf_str(&out), 0))
        log_debug("an MCP server was not told of a cancellation");
    buf_done(&out);
}

/* A program that does not initialize in time is ended, so that the next request starts another
 * one. */
static void on_late(void *ctx) {
    struct ask *ask = ctx;
    struct tool_program *program = ask->program;
    bool waited = ask->waits;
    cancel(ask, "it took too long");
    programs_refuse(ask, 504, STR("UPSTREAM_TIMEOUT"),
                    STR("the MCP server did not answer in time"));
    if (waited && program->state == PROGRAM_GREETING)
        pipe_fail(program->pipe, "did not answer `initialize` in time");
}

static void refuse_full(struct ask *ask) {
    programs_refuse(ask, 503, STR("UNAVAILABLE"), STR("too much is in memory now: bodies_max"));
}

/* Keep a request until the program is initialized. */
static void wait(struct ask *ask, struct str line) {
    ask->waits = true;
    if (ask->greets) return;
    if (holding_add(&ask->holding, line.len))
        ask->line = text_copy(line);
    else
        refuse_full(ask);
}

/* What the program must be initialized with before it gets this request; at == NULL: it is, or
 * its clients do without. */
static struct str hello_for(const struct ask *ask, const struct jsonrpc *message) {
    const struct tool_program *program = ask->program;
    if (program->state != PROGRAM_COLD) return (struct str){NULL, 0};
    if (ask->greets) return message->params.raw.len ? message->params.raw : STR("{}");
    return program->hello.len ? text_str(program->hello) : (struct str){NULL, 0};
}

static void pass(struct ask *ask, struct str line, struct str hello) {
    struct tool_program *program = ask->program;
    struct err e;
    bool good = hello.at ? greet(program, hello, &e) : pipe_start(program->pipe, &e);
    if (ask->answered)
        return; /* the program went down meanwhile, and all that it had were refused */
    if (!good)
        refuse_down(ask, err_text(&e));
    else if (program->state == PROGRAM_GREETING)
        wait(ask, line);
    else if (!pipe_send(program->pipe, line))
        refuse_down(ask, STR("the MCP server takes no more"));
}

/* --- the trace of a request --- */

static void read_state(struct ask *ask) {
    struct trace_context *said = exchange_trace(ask->exchange);
    if (said) ask->state = text_copy(said->state);
    free(said);
}

/* What `_meta` says goes before the headers. */
static void read_meta(struct ask *ask, struct json params) {
    char parent[TRACE_PARENT_BYTES + 1];
    struct trace_state state;
    if (!program_meta_read(params, parent, &state)) return;
    trace_begin(&ask->trace, STR_EMPTY, str_from(parent));
    text_done(&ask->state);
    ask->state = text_copy(trace_state_str(&state));
}

/* The program gets the span of this call; where there is none, what the agent said. */
static bool has_trace(struct ask *ask) {
    if (request_span_wanted(&ask->trace)) {
        request_span_fork(&ask->trace);
        return true;
    }
    memcpy(ask->trace.call, ask->trace.parent, sizeof(ask->trace.call));
    return ask->trace.parent[0] != 0;
}

/* Params of one that initializes are kept, and belong to more than one request. */
static void write_request(struct ask *ask, const struct jsonrpc *message, struct buf *line) {
    char parent[TRACE_PARENT_BYTES + 1];
    struct buf params;
    read_meta(ask, message->params);
    if (!has_trace(ask) || ask->greets) {
        write_line(line, message->method.raw, message->params.raw, ask->ours);
        return;
    }
    trace_write_parent(&ask->trace, parent);
    buf_init(&params, 2 * MESSAGE_MAX_BYTES);
    program_meta_write(message->params, str_from(parent), text_str(ask->state), &params);
    write_line(line, message->method.raw, buf_str(&params), ask->ours);
    buf_done(&params);
}

static void request(struct ask *ask, const struct jsonrpc *message) {
    struct tool_program *program = ask->program;
    struct buf line;
    ask->id = text_copy(message->id.raw);
    ask->greets = json_is(message->method, STR("initialize"));
    if (ask->greets && program->state == PROGRAM_READY) {
        answer_greeting(ask);
        return;
    }
    ask->ours = ++program->last_id;
    if (program->options.answer_ms) timer_start(&ask->late, program->options.answer_ms);
    buf_init(&line, 2 * MESSAGE_MAX_BYTES);
    write_request(ask, message, &line);
    pass(ask, buf_str(&line), hello_for(ask, message));
    buf_done(&line);
}

/* The ids in a client's cancellation are not the program's; a client cancels by leaving. That the
 * program is initialized it has heard from us. What concerns a program that has ended does not
 * concern the next one. */
static void notify(struct ask *ask, const struct jsonrpc *message) {
    struct tool_program *program = ask->program;
    struct err e;
    bool wanted = !json_is(message->method, STR("notifications/cancelled")) &&
                  !json_is(message->method, STR("notifications/initialized"));
    bool knows = program->state == PROGRAM_READY ||
                 (program->state == PROGRAM_COLD && !program->hello.len);
    if (wanted && knows && pipe_start(program->pipe, &e))
        (void)programs_tell(program, message->method.raw, message->params.raw, 0);
    programs_answer(ask, 202, STR_EMPTY);
}

static void programs_take(struct ask *ask) {
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
        programs_answer(ask, 202, STR_EMPTY);
    }
}

/* --- exchanges -------------------------------------------------------------------------------- */

static void programs_on_body(struct exchange *exchange, struct lent bytes, void *ctx) {
    struct ask *ask = ctx;
    struct str read = lent_read(bytes);
    exchange_consumed(exchange, read.len);
    if (ask->answered) return;
    if (!holding_add(&ask->holding, read.len)) {
        refuse_full(ask);
        return;
    }
    if (buf_append(&ask->body, read)) return;
    programs_refuse(ask, 413, STR("PAYLOAD_TOO_LARGE"), STR("the message is too large"));
}

static void programs_on_body_end(struct exchange *exchange, void *ctx) {
    struct ask *ask = ctx;
    (void)exchange;
    if (!ask->answered) programs_take(ask);
    buf_release(&ask->body);
}

static void programs_on_closed(struct exchange *exchange, enum exchange_close how, void *ctx) {
    struct ask *ask = ctx;
    (void)exchange;
    (void)how;
    ask->exchange = NULL;
    cancel(ask, "the client left");
    timer_stop(&ask->late);
    list_remove(&ask->link);
    text_done(&ask->id);
    text_done(&ask->line);
    text_done(&ask->state);
    holding_end(&ask->holding);
    buf_done(&ask->body);
    free(ask);
}

void program_ask(struct tool_program *program, struct exchange *exchange) {
    static const struct exchange_events events = {programs_on_body, programs_on_body_end, NULL,
                                                  programs_on_closed};
    struct ask *ask = MEM_NEW(struct ask);
    ask->program = program;
    ask->exchange = exchange;
    ask->began_us = clock_mono_us();
    trace_begin_request(&ask->trace, exchange);
    read_state(ask);
    ask->holding.held = program->options.held;
    buf_init(&ask->body, MESSAGE_MAX_BYTES);
    timer_init(&ask->late, program->options.loop, on_late, ask);
    list_append(&program->asks, &ask->link);
    exchange_accept(exchange, &events, ask);
    if (!str_equal(exchange_method(exchange), STR("POST")))
        programs_refuse(ask, 405, STR("METHOD_NOT_ALLOWED"), STR("send messages with POST"));
}

/* --- life ------------------------------------------------------------------------------------- */

struct tool_program *program_new(const struct tool_program_options *options) {
    static const struct pipe_events events = {.on_message = programs_on_message,
                                              .on_down = on_down};
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
    text_done(&program->hello);
    text_done(&program->trying);
    text_done(&program->greeting);
    free(program);
}
