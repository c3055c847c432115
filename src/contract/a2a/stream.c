/* The events of a run: as one task when it is over or waits, and as updates of it. */
#include "contract/a2a/door.h"
#include "route/route_json.h"
#include "wire/event_json.h"

#define FRAME_MAX_BYTES (192 * MIB)
#define UPDATE_MAX_BYTES (64 * MIB)

/* --- updates ------------------------------------------------------------------------------ */

/* What a frame is in each version: 0.3 names its kind inside, 1.0 outside. */
struct frame_kind {
    const char *kind, *member;
};

static const struct frame_kind task_frame = {NULL, "task"},
                               status_frame = {"status-update", "statusUpdate"},
                               artifact_frame = {"artifact-update", "artifactUpdate"};

/* Up to where the object of this kind stands. */
static void frame_begin(const struct a2a_call *call, const struct frame_kind *kind,
                        struct route_json *frame) {
    struct json_writer *w = route_json_begin(frame, FRAME_MAX_BYTES);
    if (call->binding == A2A_JSONRPC) {
        json_open_object(w);
        json_member_str(w, "jsonrpc", STR("2.0"));
        json_member_raw(w, "id", call->id.len ? text_str(call->id) : STR("null"));
        json_key(w, STR("result"));
    }
    if (call->dialect == A2A_1_0) {
        json_open_object(w);
        json_key(w, str_from(kind->member));
    }
    if (!kind->kind) return; /* a task opens its own object */
    json_open_object(w);
    if (call->dialect == A2A_0_3) json_member_str(w, "kind", str_from(kind->kind));
    a2a_task_write_names(&call->task, w);
}

static void frame_send(struct a2a_call *call, struct route_json *frame) {
    route_json_event(frame, call->http.call, STR_EMPTY);
}

static void send_task(struct a2a_call *call) {
    const struct a2a_view view = {call->dialect, call->request.history_max, true};
    struct route_json frame;
    frame_begin(call, &task_frame, &frame);
    a2a_task_write(&call->task, &view, &frame.w);
    frame_send(call, &frame);
}

static void send_status(struct a2a_call *call) {
    bool final =
        call->task.state == A2A_INPUT_REQUIRED || a2a_state_is_terminal(call->task.state);
    struct route_json frame;
    frame_begin(call, &status_frame, &frame);
    a2a_task_write_status(&call->task, call->dialect, &frame.w);
    if (call->dialect == A2A_0_3) json_member_bool(&frame.w, "final", final);
    frame_send(call, &frame);
}

static void send_step(struct a2a_call *call, uint64_t seq, struct str data) {
    struct route_json frame;
    frame_begin(call, &status_frame, &frame);
    a2a_task_write_step(&call->task, call->dialect, seq, data, &frame.w);
    if (call->dialect == A2A_0_3) json_member_bool(&frame.w, "final", false);
    frame_send(call, &frame);
}

static void send_chunk(struct a2a_call *call, struct str text, bool append, bool last) {
    struct route_json frame;
    frame_begin(call, &artifact_frame, &frame);
    json_key(&frame.w, STR("artifact"));
    a2a_artifact_write(text, call->dialect, &frame.w);
    json_member_bool(&frame.w, "append", append);
    json_member_bool(&frame.w, "lastChunk", last);
    frame_send(call, &frame);
}

/* --- the agent's own work ----------------------------------------------------------------- */

static void write_call(const struct event *event, struct json_writer *w) {
    json_member_object(w, "toolCall");
    json_member_str(w, "id", event->tool_call.call_id);
    json_member_str(w, "tool", event->tool_call.tool);
    event_json_document(w, "args", event->tool_call.args);
    json_close(w);
}

static void write_result(const struct event *event, struct json_writer *w) {
    json_member_object(w, "toolResult");
    json_member_str(w, "id", event->tool_result.call_id);
    json_member_bool(w, "error", event->tool_result.error);
    json_member_raw(w, "result", event->tool_result.result);
    json_close(w);
}

static void write_step(const struct event *event, struct json_writer *w) {
    json_member_object(w, "step");
    json_member_str(w, "description", event->step.description);
    if (event->step.result.len) json_member_raw(w, "result", event->step.result);
    json_close(w);
}

static void send_work(struct a2a_call *call, const struct event *event) {
    struct buf data;
    buf_init(&data, UPDATE_MAX_BYTES);
    struct json_writer w = json_writer(&data);
    json_open_object(&w);
    json_member_str(&w, "agent", event->agent);
    if (event->kind == EVENT_TOOL_CALL) write_call(event, &w);
    if (event->kind == EVENT_TOOL_RESULT) write_result(event, &w);
    if (event->kind == EVENT_STEP) write_step(event, &w);
    json_close(&w);
    if (buf_ok(&data)) send_step(call, event->seq, buf_str(&data));
    buf_done(&data);
}

/* --- reading ------------------------------------------------------------------------------ */

/* A question that was answered since ends nothing. What comes after the one that waits, words that
 * decided nothing, ends a subscription to what was there; after a decision everything is read on. */
static enum stream_verdict a2a_judge(const struct event *event, void *ctx) {
    const struct a2a_call *call = ctx;
    bool past = event->seq < call->from;
    bool waits = call->operation == A2A_SUBSCRIBE && call->task.state == A2A_INPUT_REQUIRED;
    bool at_once = call->request.immediately && call->http.mode == CLOSE_SINGLE;
    if (at_once && !past) return STREAM_FINISHES;
    if (event->kind == EVENT_APPROVAL) return past ? STREAM_GOES_ON : STREAM_FINISHES;
    bool beside = event->kind == EVENT_ITEM && waits;
    if (beside && !call->shown && event->seq == call->from) return STREAM_FINISHES;
    return stream_judge(event);
}

/* True: a blank line comes before its text. */
static bool note(struct a2a_call *call, const struct event *event) {
    call->task.run = call->http.run_id;
    return a2a_task_note(&call->task, event, event->seq);
}

static void task_project(const struct event *event, enum close_frame frame, void *ctx) {
    struct a2a_call *call = ctx;
    (void)note(call, event);
    if (frame == FRAME_REPLY) a2a_reply_task(call);
}

static void task_ended(struct close_ending ending, enum close_cause cause,
                       const struct event *last, void *ctx) {
    struct a2a_call *call = ctx;
    if (ending.status == ERR_NONE) return;
    http_turn_leave_run(&call->http, cause);
    if (call->http.gone) return;
    if (last && event_is_terminal(last->kind)) {
        (void)note(call, last);
        a2a_reply_task(call);
    } else {
        a2a_fail(call, A2A_ERROR_UNAVAILABLE,
                 STR("the call was cut short: the server stops; ask for the task later"));
    }
}

const struct stream_wire a2a_task_wire = {
    .judge = a2a_judge,
    .project = task_project,
    .queued = http_turn_queued,
    .wake_at = http_turn_wake_at,
    .stalled_ms = http_turn_stalled_ms,
    .ended = task_ended,
};

/* --- streaming ---------------------------------------------------------------------------- */

/* `had`: bytes of the artifact before this event. */
static void send_end(struct a2a_call *call, size_t had) {
    struct str unsent = had ? STR_EMPTY : buf_str(&call->task.answer);
    if (call->task.state == A2A_COMPLETED && call->task.said)
        send_chunk(call, unsent, had > 0, true);
    send_status(call);
}

static void send_text(struct a2a_call *call, struct str text, bool append, bool seam) {
    struct buf joined;
    buf_init(&joined, text.len + sizeof(SEAM_TEXT));
    if (seam) buf_append(&joined, STR(SEAM_TEXT));
    buf_append(&joined, text);
    send_chunk(call, buf_str(&joined), append, false);
    buf_done(&joined);
}

static void send_update(struct a2a_call *call, const struct event *event, size_t had,
                        bool seam) {
    switch (event->kind) {
    case EVENT_TEXT: send_text(call, event->text.text, had > 0, seam); break;
    case EVENT_TOOL_CALL:
    case EVENT_TOOL_RESULT:
    case EVENT_STEP: send_work(call, event); break;
    case EVENT_APPROVAL:
    case EVENT_DONE:
    case EVENT_FAILED:
    case EVENT_CANCELLED: send_end(call, had); break;
    default: break; /* not shown in this protocol */
    }
}

/* What the task has said stands in it; what comes from now on is sent on. */
static void show(struct a2a_call *call) {
    call->shown = true;
    send_task(call);
    call->task.passes_on = true;
    buf_release(&call->task.answer);
}

static void stream_project(const struct event *event, enum close_frame frame, void *ctx) {
    struct a2a_call *call = ctx;
    size_t had = call->task.said;
    bool last = frame != FRAME_DATA;
    bool seam = note(call, event);
    call->seq = event->seq;
    if (call->shown) {
        send_update(call, event, had, seam);
        return;
    }
    if (event->seq < call->from && !last) return;
    show(call);
    if (last) send_status(call);
}

/* Texts that come together are one chunk. */
static void stream_project_texts(struct str texts, size_t count, void *ctx) {
    struct a2a_call *call = ctx;
    struct event event = {.kind = EVENT_TEXT};
    struct buf joined;
    size_t had = call->task.said;
    (void)count;
    buf_init(&joined, 2 * texts.len + KIB);
    while (event_take_text(&texts, &event.agent, &event.text.text)) {
        event.seq = ++call->seq;
        bool seam = note(call, &event);
        if (call->shown && seam) buf_append(&joined, STR(SEAM_TEXT));
        if (call->shown) buf_append(&joined, event.text.text);
        if (call->shown || event.seq < call->from) continue;
        show(call);
        had = call->task.said;
    }
    if (joined.len) send_chunk(call, buf_str(&joined), had > 0, false);
    buf_done(&joined);
}

static void stream_ended(struct close_ending ending, enum close_cause cause,
                         const struct event *last, void *ctx) {
    struct a2a_call *call = ctx;
    struct buf data;
    (void)last; /* a failure is a state, and has been sent */
    if (!http_turn_may_end(&call->http, ending, cause)) return;
    if (ending.status != ERR_NONE) {
        buf_init(&data, 64 * KIB);
        a2a_write_failure(call, A2A_ERROR_UNAVAILABLE,
                          STR("the stream was cut short: the server stops; subscribe later"),
                          &data);
        route_sse_event(call->http.call, call->binding == A2A_REST ? STR("error") : STR_EMPTY,
                        STR_EMPTY, buf_str(&data));
        buf_done(&data);
    }
    route_sse_end(call->http.call);
}

const struct stream_wire a2a_stream_wire = {
    .judge = a2a_judge,
    .project = stream_project,
    .project_texts = stream_project_texts,
    .gather = http_turn_gather,
    .leave_now = http_turn_leave_now,
    .queued = http_turn_queued,
    .wake_at = http_turn_wake_at,
    .stalled_ms = http_turn_stalled_ms,
    .heartbeat = http_turn_heartbeat,
    .ended = stream_ended,
};

void a2a_stream_task(struct a2a_call *call) {
    struct http_turn *http = &call->http;
    http_turn_name_run(http, call->task.run);
    route_sse_begin(http->call);
    send_task(call);
    send_status(call);
    route_sse_end(http->call);
    http_turn_end(http);
}
