#include "contract/agentbreeder/turn.h"

#include "base/mem.h"
#include "contract/agentbreeder/outcome.h"
#include "contract/agentbreeder/request.h"
#include "run/directory.h"
#include "stream/stream.h"

#include <stdlib.h>

#define ARENA_MAX_BYTES (32 * MIB)
#define RESULT_MAX_BYTES (64 * MIB)

/* One /invoke, /stream or /resume, from the checked request to the last byte. */
struct turn {
    struct list link; /* in desk->calls */
    struct route_call *call;
    struct runtime_desk *desk;
    struct stream *stream;
    struct run *run;  /* that this call started; NULL: it goes on with another one's */
    uint64_t resumed; /* that run's id */
    bool gone;        /* the peer left: nothing more is sent */
    struct outcome outcome;
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

/* Answer a failure that came before the turn was established. */
static void refuse(struct route_call *call, const struct err *why) {
    static const struct {
        enum err_code code;
        int status;
        struct str name;
    } known[] = {
        {ERR_MALFORMED, 400, STR_INIT("INVALID_INPUT")},
        {ERR_INVALID_ARGUMENT, 422, STR_INIT("INVALID_INPUT")},
        {ERR_NOT_FOUND, 404, STR_INIT("THREAD_NOT_FOUND")},
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

/* --- life --------------------------------------------------------------------------------- */

static struct turn *turn_new(struct route_call *call, struct runtime_desk *desk) {
    struct turn *turn = MEM_NEW(struct turn);
    list_init(&turn->link);
    turn->call = call;
    turn->desk = desk;
    outcome_init(&turn->outcome);
    return turn;
}

static void turn_free(struct turn *turn) {
    list_remove(&turn->link);
    stream_free(turn->stream);
    run_unref(turn->run);
    outcome_done(&turn->outcome);
    free(turn);
}

static struct session_table *sessions_of(const struct turn *turn) {
    return turn->desk->host->engine->sessions;
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
    struct str why =
        cause == CAUSE_LEFT ? STR("the caller left") : STR("the call was cut short");
    if (turn->run) {
        run_cancel(turn->run, why);
    } else {
        directory_cancel(session_table_directory(sessions_of(turn)), turn->resumed, why);
    }
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

/* --- /invoke and /resume ------------------------------------------------------------------ */

static void invoke_project(const struct event *event, enum close_frame frame, void *ctx) {
    struct turn *turn = ctx;
    outcome_note(&turn->outcome, event);
    if (frame != FRAME_REPLY) return;
    struct buf body;
    buf_init(&body, RESULT_MAX_BYTES);
    outcome_write(&turn->outcome, event, &body);
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
    outcome_write(&turn->outcome, event, &data);
    route_sse_event(turn->call, STR("result"), STR_EMPTY, buf_str(&data));
    buf_done(&data);
}

static void stream_project(const struct event *event, enum close_frame frame, void *ctx) {
    struct turn *turn = ctx;
    (void)frame;
    outcome_note(&turn->outcome, event);
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

/* Read the journal (borrowed) for the caller, and tell him whose it is. */
static bool follow(struct turn *turn, struct journal *journal, uint64_t after_seq,
                   enum close_mode mode, const struct stream_wire *wire, struct err *e) {
    char digits[24];
    struct buf id = {.at = digits, .room = sizeof(digits), .max_bytes = sizeof(digits)};
    buf_append_u64(&id, journal_run(journal));
    route_field(turn->call, STR("x-weir-run-id"), buf_str(&id));
    struct stream_options options = {.loop = route_loop(turn->call),
                                     .journal = journal,
                                     .after_seq = after_seq,
                                     .mode = mode,
                                     .paces = turn->run != NULL,
                                     .stall_ms = turn->desk->settings->stall_ms,
                                     .heartbeat_ms = turn->desk->settings->heartbeat_ms,
                                     .wire = wire,
                                     .ctx = turn};
    if (stream_open(&options, &turn->stream, e)) return true;
    cancel_run(turn, CAUSE_STOPPING);
    return false;
}

/* Heads and body of the request are not needed any more: what of them is, was copied. */
static void established(struct turn *turn, enum close_mode mode) {
    list_append(&turn->desk->calls, &turn->link);
    if (mode == CLOSE_DONE) route_sse_begin(turn->call);
    route_forget(turn->call);
    route_watch(turn->call, &watch, turn);
}

static bool start(struct turn *turn, const struct runtime_request *request,
                  enum close_mode mode, const struct stream_wire *wire, struct err *e) {
    struct run_host *host = turn->desk->host;
    struct run_request asked = {
        .name = {turn->desk->settings->workspace, request->user, request->session},
        .text = request->text,
        .contract = STR("agentbreeder"),
        .policy = turn->desk->settings->busy,
    };
    if (session_is_parked(sessions_of(turn), &asked.name)) {
        return err_set(e, ERR_FAILED_PRECONDITION,
                       "this session waits for a human's answer; resume it first");
    }
    outcome_address(&turn->outcome, request->session, request->wants_text,
                    request->used_thread_id);
    return run_start(host, &asked, &turn->run, e) &&
           follow(turn, run_journal(turn->run), 0, mode, wire, e);
}

static void begin(struct route_call *call, struct runtime_desk *desk, enum close_mode mode,
                  const struct stream_wire *wire) {
    struct turn *turn = turn_new(call, desk);
    struct arena *arena = arena_new(ARENA_MAX_BYTES);
    struct runtime_request request;
    struct err e;
    if (runtime_request_parse(route_body(call), route_header(call, STR("x-session-id")), arena,
                              &request, &e) &&
        start(turn, &request, mode, wire, &e)) {
        established(turn, mode);
    } else {
        refuse(call, &e);
        turn_free(turn);
    }
    arena_free(arena);
}

void turn_invoke(struct route_call *call, void *ctx) {
    begin(call, ctx, CLOSE_SINGLE, &invoke_wire);
}

void turn_stream(struct route_call *call, void *ctx) {
    begin(call, ctx, CLOSE_DONE, &stream_wire);
}

/* The thread's run goes on with the human's words, and its caller is now this one. */
static bool resume(struct turn *turn, const struct resume_request *request, struct err *e) {
    struct session_name name = {turn->desk->settings->workspace, ANY_USER, request->thread};
    struct journal *journal;
    uint64_t seq;
    if (!session_answer_parked(sessions_of(turn), &name, request->text, &journal, &seq)) {
        return err_set(e, ERR_NOT_FOUND,
                       "no run of this thread waits for a human: it is unknown here, done, or "
                       "has been answered");
    }
    outcome_address(&turn->outcome, request->thread, request->wants_text, true);
    turn->resumed = journal_run(journal);
    bool followed = follow(turn, journal, seq, CLOSE_SINGLE, &invoke_wire, e);
    journal_unref(journal);
    return followed;
}

void turn_resume(struct route_call *call, void *ctx) {
    struct turn *turn = turn_new(call, ctx);
    struct arena *arena = arena_new(ARENA_MAX_BYTES);
    struct resume_request request;
    struct err e;
    if (resume_request_parse(route_body(call), arena, &request, &e) &&
        resume(turn, &request, &e)) {
        established(turn, CLOSE_SINGLE);
    } else {
        refuse(call, &e);
        turn_free(turn);
    }
    arena_free(arena);
}

void turn_cut_all(struct runtime_desk *desk) {
    LIST_EACH(&desk->calls, link) {
        struct turn *turn = CONTAINER_OF(link, struct turn, link);
        stream_end(turn->stream, CAUSE_STOPPING);
    }
}
