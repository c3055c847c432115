#include "toolserver/call.h"

#include "base/mem.h"
#include "toolserver/exchange.h"

#include <assert.h>
#include <stdlib.h>

#define RESULT_MAX_BYTES (64 * MIB)
#define EVENT_MAX_BYTES (64 * MIB)

const struct state toolserver_call_states[TOOLSERVER_CALL_STATE_COUNT] = {
    [TOOLSERVER_CALL_STARTING] = {"starting",
                                  TO(TOOLSERVER_CALL_RUNNING) | TO(TOOLSERVER_CALL_ANSWERED)},
    [TOOLSERVER_CALL_RUNNING] = {"running", TO(TOOLSERVER_CALL_ANSWERED) |
                                                TO(TOOLSERVER_CALL_CANCELLED) |
                                                TO(TOOLSERVER_CALL_LEFT)},
    [TOOLSERVER_CALL_ANSWERED] = {"answered", 0},
    [TOOLSERVER_CALL_CANCELLED] = {"cancelled", 0},
    [TOOLSERVER_CALL_LEFT] = {"left", 0},
};

/* The only function that writes call->state after toolserver_call_new(). */
static void call_move(struct toolserver_call *call, enum toolserver_call_state next) {
    assert(states_allow(toolserver_call_states, call->state, next));
    call->state = (uint8_t)next;
}

static bool call_is_open(const struct toolserver_call *call) {
    return call->state == TOOLSERVER_CALL_STARTING || call->state == TOOLSERVER_CALL_RUNNING;
}

/* --- its life ----------------------------------------------------------------------------- */

/* No answer is wanted any more. */
static void toolserver_call_on_cancel(void *ctx) {
    struct toolserver_call *call = ctx;
    struct toolserver_exchange *exchange = call->exchange;
    if (call->state != TOOLSERVER_CALL_RUNNING) return;
    toolserver_sessions_leave(exchange->server->sessions, &call->entry);
    call_move(call, TOOLSERVER_CALL_CANCELLED);
    exchange->pending--;
    call->watch->cancelled(call->ctx);
    toolserver_exchange_read(exchange);
}

struct toolserver_call *toolserver_call_new(struct toolserver_exchange *exchange,
                                            struct json id, struct json token) {
    struct toolserver_call *call = MEM_NEW(struct toolserver_call);
    call->exchange = exchange;
    call->id = id;
    call->token = token;
    list_append(&exchange->calls, &call->link);
    exchange->pending++;
    if (!exchange->session.len || !exchange->server->sessions) return call;
    call->entry = (struct toolserver_entry){
        .loop = exchange->server->loop, .cancel = toolserver_call_on_cancel, .ctx = call};
    toolserver_sessions_enter(exchange->server->sessions, exchange->session, id.raw,
                              &call->entry);
    return call;
}

void toolserver_call_free(struct toolserver_call *call) {
    list_remove(&call->link);
    toolserver_sessions_leave(call->exchange->server->sessions, &call->entry);
    free(call);
}

static void prime(struct toolserver_call *call);

void toolserver_call_started(struct toolserver_call *call) {
    struct toolserver_exchange *exchange = call->exchange;
    if (call->state != TOOLSERVER_CALL_STARTING) return;
    assert(call->watch);
    call_move(call, TOOLSERVER_CALL_RUNNING);
    if (call->resumes || (!call->tool.lasts && call->token.kind == JSON_NONE)) return;
    toolserver_exchange_stream(exchange);
    prime(call);
}

void toolserver_call_left(struct toolserver_call *call) {
    const struct toolserver_exchange *exchange = call->exchange;
    if (call->state != TOOLSERVER_CALL_RUNNING) return;
    bool resumable = call->run && exchange->streams && exchange->session.len > 0 &&
                     exchange->server->table->resume;
    call_move(call, TOOLSERVER_CALL_LEFT);
    call->watch->left(resumable, call->ctx);
}

/* --- what a tool reads -------------------------------------------------------------------- */

void toolserver_call_watch(struct toolserver_call *call,
                           const struct toolserver_call_watch *watch, void *ctx) {
    call->watch = watch;
    call->ctx = ctx;
}

const struct toolserver_caller *toolserver_call_caller(const struct toolserver_call *call) {
    return &call->exchange->caller;
}

struct route_call *toolserver_call_route(const struct toolserver_call *call) {
    return call->exchange->call;
}

struct loop *toolserver_call_loop(const struct toolserver_call *call) {
    return call->exchange->server->loop;
}

struct json toolserver_call_meta(const struct toolserver_call *call) {
    return call->meta;
}

struct arena *toolserver_call_arena(const struct toolserver_call *call) {
    return call->exchange->arena;
}

bool toolserver_call_wants_progress(const struct toolserver_call *call) {
    return call->token.kind != JSON_NONE && call->exchange->accepts_events;
}

/* --- what a tool says --------------------------------------------------------------------- */

void toolserver_call_set_run(struct toolserver_call *call, uint64_t run, uint64_t after_seq) {
    call->run = run;
    call->seq = after_seq;
}

void toolserver_call_resumed(struct toolserver_call *call) {
    toolserver_exchange_stream(call->exchange);
}

/* The id of the next event. Empty: the call cannot be resumed. */
static struct str event_id(const struct toolserver_call *call, struct buf *out) {
    const struct toolserver_exchange *exchange = call->exchange;
    bool resumable = call->run && exchange->session.len > 0 && !exchange->stateless &&
                     exchange->server->table->resume;
    const struct toolserver_cursor cursor = {call->run, call->seq, call->id, call->token};
    if (!resumable || !toolserver_cursor_write(&cursor, out)) return STR_EMPTY;
    return buf_str(out);
}

/* The first event has an id and no data, so that a client can come back before anything was
 * said. Clients of earlier versions read every event as a message, so they get none. */
static void prime(struct toolserver_call *call) {
    struct buf id;
    bool knows = call->exchange->version &&
                 str_equal(str_from(call->exchange->version), mcp_version_at(0));
    buf_init(&id, TOOLSERVER_CURSOR_MAX_BYTES);
    struct str text = event_id(call, &id);
    if (knows && text.len) toolserver_exchange_prime(call->exchange, text);
    buf_done(&id);
}

static void write_progress(const struct toolserver_call *call, uint64_t progress,
                           struct str message, struct str meta, struct buf *out) {
    struct json_writer w = json_writer(out);
    json_open_object(&w);
    json_member_raw(&w, "progressToken", call->token.raw);
    json_member_u64(&w, "progress", progress);
    if (message.len) json_member_str(&w, "message", message);
    if (meta.len) json_member_raw(&w, "_meta", meta);
    json_close(&w);
}

void toolserver_call_report(struct toolserver_call *call, uint64_t progress, struct str message,
                            struct str meta) {
    struct buf params, text, id;
    assert(call_is_open(call));
    if (call->run) call->seq = progress;
    if (!toolserver_call_wants_progress(call)) return;
    buf_init(&params, EVENT_MAX_BYTES);
    buf_init(&text, EVENT_MAX_BYTES);
    buf_init(&id, TOOLSERVER_CURSOR_MAX_BYTES);
    write_progress(call, progress, message, meta, &params);
    jsonrpc_write_notification(&text, "notifications/progress", buf_str(&params));
    toolserver_exchange_stream(call->exchange);
    if (buf_ok(&text))
        toolserver_exchange_send(call->exchange, event_id(call, &id), buf_str(&text));
    buf_done(&id);
    buf_done(&text);
    buf_done(&params);
}

void toolserver_call_heartbeat(struct toolserver_call *call) {
    if (call->exchange->streams) route_sse_comment(call->exchange->call, STR("keep-alive"));
}

/* The answer is the last thing that is said of it. */
static void call_close(struct toolserver_call *call) {
    struct toolserver_exchange *exchange = call->exchange;
    toolserver_sessions_leave(exchange->server->sessions, &call->entry);
    exchange->pending--;
    toolserver_exchange_read(exchange);
}

void toolserver_call_answer(struct toolserver_call *call, struct str result) {
    call_move(call, TOOLSERVER_CALL_ANSWERED);
    toolserver_exchange_result(call->exchange, call->id, result);
    call_close(call);
}

void toolserver_call_fail(struct toolserver_call *call, struct str text) {
    struct buf result;
    buf_init(&result, RESULT_MAX_BYTES);
    struct json_writer w = json_writer(&result);
    json_open_object(&w);
    json_member_array(&w, "content");
    json_open_object(&w);
    json_member_str(&w, "type", STR("text"));
    json_member_str(&w, "text", text);
    json_close(&w);
    json_close(&w);
    json_member_bool(&w, "isError", true);
    json_close(&w);
    toolserver_call_answer(call, buf_str(&result));
    buf_done(&result);
}

void toolserver_call_refuse(struct toolserver_call *call, int64_t code, struct str message) {
    struct toolserver_exchange *exchange = call->exchange;
    call_move(call, TOOLSERVER_CALL_ANSWERED);
    if (call->resumes && !exchange->streams) {
        toolserver_exchange_refuse(exchange, 404, call->id.raw, code, message, STR_EMPTY);
    } else {
        toolserver_exchange_error(exchange, call->id, code, message);
    }
    call_close(call);
}
