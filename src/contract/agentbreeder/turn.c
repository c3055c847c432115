#include "contract/agentbreeder/turn.h"

#include "base/mem.h"

#include <assert.h>
#include <stdlib.h>
#include <time.h>

#define ARENA_MAX_BYTES (32 * MIB)
#define RESULT_MAX_BYTES (64 * MIB)
#define HISTORY_MAX_BYTES_OUT (4 * MIB)

/* A tool call that has not been answered yet. */
struct open_call {
    struct str call_id, tool, args;
    int64_t at_ms;
};

/* --- failures ----------------------------------------------------------------------------- */

/* What a failed run answers on /invoke: the contract knows 500, and 503 for "try again". */
static void refuse_run(struct route_call *call, enum err_code code, struct str reason,
                       struct str message) {
    bool again = code == ERR_UNAVAILABLE;
    struct buf details;
    buf_init(&details, 4 * KIB);
    struct json_writer json = json_writer(&details);
    json_open_object(&json);
    json_member_str(&json, "status", err_name(code));
    json_member_str(&json, "reason", reason);
    json_close(&json);
    if (again) route_field(call, STR("retry-after"), STR("5"));
    route_fail(call, &(struct route_failure){again ? 503 : 500,
                                             again ? STR("UNAVAILABLE") : STR("INTERNAL_ERROR"),
                                             message, buf_str(&details)});
    buf_done(&details);
}

void turn_refuse(struct route_call *call, const struct err *why) {
    static const struct {
        enum err_code code;
        int status;
        struct str name;
    } known[] = {
        {ERR_MALFORMED, 400, STR_INIT("INVALID_INPUT")},
        {ERR_INVALID_ARGUMENT, 422, STR_INIT("INVALID_INPUT")},
        {ERR_ABORTED, 409, STR_INIT("SESSION_BUSY")},
        {ERR_FAILED_PRECONDITION, 409, STR_INIT("SESSION_WAITING")},
    };
    for (size_t i = 0; i < ARRAY_LEN(known); i++) {
        if (known[i].code != why->code) continue;
        route_fail(call, &(struct route_failure){known[i].status, known[i].name, err_text(why),
                                                 STR_EMPTY});
        return;
    }
    refuse_run(call, why->code, err_name(why->code), err_text(why));
}

/* --- the tools of a run, for `history` ---------------------------------------------------- */

static void open_call(struct turn *turn, const struct event *event) {
    size_t size = (turn->open_call_count + 1) * sizeof(struct open_call);
    struct open_call opened = {.at_ms = event->at_ms};
    if (!arena_str(turn->arena, event->tool_call.call_id, &opened.call_id)) return;
    if (!arena_str(turn->arena, event->tool_call.tool, &opened.tool)) return;
    if (!arena_str(turn->arena, event->tool_call.args, &opened.args)) return;
    turn->open_calls = mem_resize(turn->open_calls, size);
    turn->open_calls[turn->open_call_count++] = opened;
}

/* 2026-11-21T15:58:00.123Z */
static void write_time(struct json_writer *json, const char *key, int64_t unix_ms) {
    time_t seconds = (time_t)(unix_ms / 1000);
    struct tm utc;
    gmtime_r(&seconds, &utc);
    char text[32];
    size_t len = strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &utc);
    struct buf out;
    buf_init(&out, 64);
    buf_append(&out, str_of(text, len));
    buf_printf(&out, ".%03dZ", (int)(unix_ms % 1000));
    json_member_str(json, key, buf_str(&out));
    buf_done(&out);
}

static void close_call(struct turn *turn, const struct event *event) {
    for (size_t i = 0; i < turn->open_call_count; i++) {
        struct open_call *opened = &turn->open_calls[i];
        if (!str_equal(opened->call_id, event->tool_result.call_id)) continue;
        if (turn->history.len) buf_append_byte(&turn->history, ',');
        struct json_writer json = json_writer(&turn->history);
        json_open_object(&json);
        json_member_str(&json, "name", opened->tool);
        json_member_raw(&json, "args", opened->args);
        json_member_str(&json, "result", event->tool_result.result);
        json_member_i64(&json, "duration_ms", event->at_ms - opened->at_ms);
        write_time(&json, "started_at", turn->started_unix_ms + opened->at_ms);
        json_close(&json);
        *opened = turn->open_calls[--turn->open_call_count];
        return;
    }
}

void turn_note(struct turn *turn, const struct event *event) {
    if (event->kind == EVENT_STARTED) turn->started_unix_ms = event->started.unix_ms;
    if (event->kind == EVENT_TOOL_CALL) open_call(turn, event);
    if (event->kind == EVENT_TOOL_RESULT) close_call(turn, event);
}

/* --- results ------------------------------------------------------------------------------ */

/* The final replies, in order, a blank line between two agents. */
static void join_turns(struct str turns, struct buf *out) {
    struct event_turn turn;
    while (event_turn_next(&turns, &turn)) {
        if (out->len) buf_append(out, STR("\n\n"));
        buf_append(out, turn.text);
    }
}

static void write_pause(struct turn *turn, const struct event *event,
                        struct json_writer *json) {
    struct str awaiting = event->approval.tool.len ? event->approval.tool : event->agent;
    if (turn->request.wants_text) {
        json_member_str(json, "output", event->approval.question);
    } else {
        json_member_object(json, "output");
        json_member_str(json, "status", STR("interrupted"));
        json_member_str(json, "thread_id", turn->request.session);
        json_member_array(json, "awaiting");
        json_write_str(json, awaiting);
        json_close(json);
        json_member_str(json, "question", event->approval.question);
        json_close(json);
    }
    json_member_object(json, "metadata");
    json_member_bool(json, "interrupted", true);
    json_member_array(json, "awaiting");
    json_write_str(json, awaiting);
    json_close(json);
    json_close(json);
}

void turn_write_result(struct turn *turn, const struct event *event, struct buf *out) {
    bool paused = event->kind == EVENT_APPROVAL;
    struct json_writer json = json_writer(out);
    json_open_object(&json);
    if (paused) {
        write_pause(turn, event, &json);
    } else {
        struct buf text;
        buf_init(&text, RESULT_MAX_BYTES);
        join_turns(event->done.turns, &text);
        json_member_str(&json, "output", buf_str(&text));
        buf_done(&text);
    }
    json_member_str(&json, "session_id", turn->request.session);
    if (paused || turn->request.used_thread_id) {
        json_member_str(&json, "thread_id", turn->request.session);
    }
    json_key(&json, STR("history"));
    json_open_array(&json);
    if (turn->history.len) json_write_raw(&json, buf_str(&turn->history));
    json_close(&json);
    json_close(&json);
}

/* --- life --------------------------------------------------------------------------------- */

static void turn_free(struct turn *turn) {
    list_remove(&turn->link);
    stream_free(turn->stream);
    run_unref(turn->run);
    free(turn->open_calls);
    buf_done(&turn->history);
    arena_free(turn->arena);
    free(turn);
}

static enum stream_verdict judge(const struct event *event, void *ctx) {
    (void)ctx;
    return event->kind == EVENT_APPROVAL ? STREAM_FINISHES : stream_judge(event);
}

static size_t queued(void *ctx) {
    return route_queued(((struct turn *)ctx)->call);
}

static void wake_at(size_t low, void *ctx) {
    route_wake_at(((struct turn *)ctx)->call, low);
}

static uint64_t stalled_ms(void *ctx) {
    return route_stalled_ms(((struct turn *)ctx)->call);
}

/* The stream is over before its time: so is the run. */
static void cancel_run(struct turn *turn, enum close_cause cause) {
    run_cancel(turn->run,
               cause == CAUSE_LEFT ? STR("the caller left") : STR("the call was cut short"));
}

static void on_left(void *ctx) {
    struct turn *turn = ctx;
    turn->gone = true;
    stream_end(turn->stream, CAUSE_LEFT);
    turn_free(turn);
}

static void on_drained(void *ctx) {
    stream_drained(((struct turn *)ctx)->stream);
}

static void on_closed(void *ctx) {
    turn_free(ctx);
}

static const struct route_watch watch = {
    .left = on_left,
    .drained = on_drained,
    .closed = on_closed,
};

/* --- /invoke ------------------------------------------------------------------------------ */

static void invoke_project(const struct event *event, enum close_frame frame, void *ctx) {
    struct turn *turn = ctx;
    turn_note(turn, event);
    if (frame != FRAME_REPLY) return;
    struct buf body;
    buf_init(&body, RESULT_MAX_BYTES);
    turn_write_result(turn, event, &body);
    route_reply(turn->call, 200, STR("application/json"), buf_str(&body));
    buf_done(&body);
}

static void invoke_ended(struct close_ending ending, enum close_cause cause,
                         const struct event *last, void *ctx) {
    struct turn *turn = ctx;
    if (ending.status == ERR_NONE) return;
    cancel_run(turn, cause);
    if (turn->gone) return;
    if (last && last->kind == EVENT_FAILED) {
        refuse_run(turn->call, last->failed.code, last->failed.reason, last->failed.message);
    } else {
        refuse_run(turn->call, cause == CAUSE_STOPPING ? ERR_UNAVAILABLE : ending.status,
                   err_name(ending.status), STR("the turn was cut short"));
    }
}

static const struct stream_wire invoke_wire = {
    .judge = judge,
    .project = invoke_project,
    .queued = queued,
    .wake_at = wake_at,
    .stalled_ms = stalled_ms,
    .ended = invoke_ended,
};

/* --- /stream ------------------------------------------------------------------------------ */

static void send_object(struct turn *turn, struct str name, const char *key, struct str text) {
    struct buf data;
    buf_init(&data, 6 * text.len + KIB);
    struct json_writer json = json_writer(&data);
    json_open_object(&json);
    json_member_str(&json, key, text);
    json_close(&json);
    route_sse_event(turn->call, name, STR_EMPTY, buf_str(&data));
    buf_done(&data);
}

static void send_error(struct turn *turn, enum err_code code, struct str message) {
    struct buf text;
    buf_init(&text, message.len + 64);
    buf_printf(&text, "%s: ", err_kinds[code].name);
    buf_append(&text, message);
    send_object(turn, STR("error"), "error", buf_str(&text));
    buf_done(&text);
}

static void send_tool_call(struct turn *turn, const struct event *event) {
    struct buf data;
    buf_init(&data, event->tool_call.args.len + 6 * event->tool_call.tool.len + KIB);
    struct json_writer json = json_writer(&data);
    json_open_object(&json);
    json_member_str(&json, "name", event->tool_call.tool);
    json_member_raw(&json, "args", event->tool_call.args);
    json_close(&json);
    route_sse_event(turn->call, STR("tool_call"), STR_EMPTY, buf_str(&data));
    buf_done(&data);
}

static void send_step(struct turn *turn, struct str agent, struct str description,
                      struct str result) {
    struct buf data;
    buf_init(&data, 6 * (description.len + agent.len) + result.len + KIB);
    struct json_writer json = json_writer(&data);
    json_open_object(&json);
    json_member_str(&json, "description", description);
    if (result.len) json_member_raw(&json, "result", result);
    if (agent.len) json_member_str(&json, "agent", agent);
    json_close(&json);
    route_sse_event(turn->call, STR("step"), STR_EMPTY, buf_str(&data));
    buf_done(&data);
}

static void send_result(struct turn *turn, const struct event *event) {
    struct buf data;
    buf_init(&data, RESULT_MAX_BYTES);
    turn_write_result(turn, event, &data);
    route_sse_event(turn->call, STR("result"), STR_EMPTY, buf_str(&data));
    buf_done(&data);
}

static void stream_project(const struct event *event, enum close_frame frame, void *ctx) {
    struct turn *turn = ctx;
    (void)frame;
    turn_note(turn, event);
    switch (event->kind) {
    case EVENT_TEXT: send_object(turn, STR_EMPTY, "delta", event->text.text); break;
    case EVENT_TOOL_CALL: send_tool_call(turn, event); break;
    case EVENT_TOOL_RESULT:
        send_step(turn, event->agent,
                  event->tool_result.error ? STR("tool failed") : STR("tool answered"),
                  event->tool_result.result);
        break;
    case EVENT_STEP:
        send_step(turn, event->agent, event->step.description, event->step.result);
        break;
    case EVENT_APPROVAL:
    case EVENT_DONE: send_result(turn, event); break;
    case EVENT_FAILED: send_error(turn, event->failed.code, event->failed.message); break;
    case EVENT_CANCELLED: send_error(turn, ERR_CANCELLED, event->cancelled.message); break;
    case EVENT_STARTED:
    case EVENT_THINKING:
    case EVENT_USAGE:
    case EVENT_AUDIO:
    case EVENT_ITEM:
    case EVENT_KIND_COUNT: break; /* not on this wire */
    }
}

static void heartbeat(void *ctx) {
    route_sse_comment(((struct turn *)ctx)->call, STR("keep-alive"));
}

/* The transport close of this wire is `[DONE]`, after success and after failure. */
static void stream_ended(struct close_ending ending, enum close_cause cause,
                         const struct event *last, void *ctx) {
    struct turn *turn = ctx;
    (void)last; /* a failed run has been told as an event already */
    if (ending.status != ERR_NONE) cancel_run(turn, cause);
    if (turn->gone) return;
    if (cause == CAUSE_STALLED) {
        route_cut(turn->call);
        return;
    }
    if (ending.status != ERR_NONE) {
        send_error(turn, ending.status, STR("the turn was cut short"));
    }
    route_sse_event(turn->call, STR_EMPTY, STR_EMPTY, STR("[DONE]"));
    route_sse_end(turn->call);
}

static const struct stream_wire stream_wire = {
    .judge = judge,
    .project = stream_project,
    .queued = queued,
    .wake_at = wake_at,
    .stalled_ms = stalled_ms,
    .heartbeat = heartbeat,
    .ended = stream_ended,
};

/* --- the way in --------------------------------------------------------------------------- */

static bool start(struct turn *turn, enum close_mode mode, const struct stream_wire *wire,
                  struct err *e) {
    struct run_host *host = turn->desk->host;
    struct run_request request = {
        .name = {turn->desk->settings->workspace, turn->request.user, turn->request.session},
        .text = turn->request.text,
        .contract = STR("agentbreeder"),
        .policy = turn->desk->settings->busy,
    };
    if (session_is_parked(host->engine->sessions, &request.name)) {
        return err_set(e, ERR_FAILED_PRECONDITION,
                       "this session waits for a human's answer; resume it first");
    }
    if (!run_start(host, &request, &turn->run, e)) return false;
    struct stream_options options = {.loop = route_loop(turn->call),
                                     .journal = run_journal(turn->run),
                                     .mode = mode,
                                     .paces = true,
                                     .stall_ms = turn->desk->settings->stall_ms,
                                     .heartbeat_ms = turn->desk->settings->heartbeat_ms,
                                     .wire = wire,
                                     .ctx = turn};
    if (stream_open(&options, &turn->stream, e)) return true;
    run_cancel(turn->run, STR("the turn could not be followed"));
    return false;
}

static void begin(struct route_call *call, struct runtime_desk *desk, enum close_mode mode,
                  const struct stream_wire *wire) {
    struct turn *turn = MEM_NEW(struct turn);
    list_init(&turn->link);
    turn->call = call;
    turn->desk = desk;
    turn->arena = arena_new(ARENA_MAX_BYTES);
    buf_init(&turn->history, HISTORY_MAX_BYTES_OUT);
    struct err e;
    if (!runtime_request_parse(route_body(call), route_header(call, STR("x-session-id")),
                               turn->arena, &turn->request, &e) ||
        !start(turn, mode, wire, &e)) {
        turn_refuse(call, &e);
        turn_free(turn);
        return;
    }
    list_append(&desk->calls, &turn->link);
    if (mode == CLOSE_DONE) route_sse_begin(call);
    route_watch(call, &watch, turn);
}

void turn_invoke(struct route_call *call, void *ctx) {
    begin(call, ctx, CLOSE_SINGLE, &invoke_wire);
}

void turn_stream(struct route_call *call, void *ctx) {
    begin(call, ctx, CLOSE_DONE, &stream_wire);
}
