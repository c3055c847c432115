/* The events of a run as the answer of /invoke and /resume, and as the stream of /stream. */
#include "contract/agentbreeder/frames.h"
#include "contract/agentbreeder/inner.h"
#include "contract/agentbreeder/refusal.h"

#define RESULT_MAX_BYTES (64 * MIB)

static enum stream_verdict turn_judge(const struct event *event, void *ctx) {
    struct turn *turn = ctx;
    if (decide_compare(turn, event))
        return turn->repeat.differs || turn->repeat.over ? STREAM_FAILS : STREAM_GOES_ON;
    return stream_judge_question(event, ctx);
}

static void turn_note(struct turn *turn, const struct event *event) {
    turn->outcome.run = turn->http.run_id;
    outcome_note(&turn->outcome, event);
}

/* --- /invoke and /resume ------------------------------------------------------------------ */

static void invoke_project(const struct event *event, enum close_frame frame, void *ctx) {
    struct turn *turn = ctx;
    if (turn->repeat.seq) return;
    turn_note(turn, event);
    if (frame != FRAME_REPLY) return;
    struct buf body;
    buf_init(&body, RESULT_MAX_BYTES);
    outcome_write(&turn->outcome, event, &body);
    route_reply(turn->http.call, 200, STR("application/json"), buf_str(&body));
    buf_done(&body);
}

static void invoke_ended(struct close_ending ending, enum close_cause cause,
                         const struct event *last, void *ctx) {
    struct turn *turn = ctx;
    if (ending.status == ERR_NONE) return;
    http_turn_leave_run(&turn->http, cause);
    if (turn->http.gone) return;
    if (turn->repeat.differs || turn->repeat.over) {
        const struct route_failure failure = decide_difference(turn);
        route_fail(turn->http.call, &failure);
    } else if (last && last->kind == EVENT_FAILED) {
        refusal_of_run(turn->http.call, last->failed.code, last->failed.reason,
                       last->failed.message, &turn->outcome.acted);
    } else {
        refusal_of_run(
            turn->http.call, cause == CAUSE_STOPPING ? ERR_UNAVAILABLE : ending.status,
            err_name(ending.status), STR("the turn was cut short"), &turn->outcome.acted);
    }
}

const struct stream_wire turn_invoke_wire = {
    .judge = turn_judge,
    .project = invoke_project,
    .queued = http_turn_queued,
    .wake_at = http_turn_wake_at,
    .stalled_ms = http_turn_stalled_ms,
    .ended = invoke_ended,
};

/* --- /stream ------------------------------------------------------------------------------ */

/* The stream had begun before the decisions could be compared. */
static void report_difference(struct turn *turn) {
    if (!turn->repeat.differs && !turn->repeat.over) return;
    frame_error(turn->http.call, ERR_ABORTED, decide_difference(turn).message);
}

static void frame_failure(const struct turn *turn, enum err_code code, struct str message) {
    struct buf said;
    buf_init(&said, message.len + KIB);
    acted_say(&turn->outcome.acted, message, &said);
    frame_error(turn->http.call, code, buf_str(&said));
    buf_done(&said);
}

static void stream_project(const struct event *event, enum close_frame frame, void *ctx) {
    struct turn *turn = ctx;
    struct route_call *call = turn->http.call;
    (void)frame;
    if (turn->repeat.seq) {
        report_difference(turn);
        return;
    }
    turn_note(turn, event);
    if (seam_before(&turn->seam, event, SEAM_OF_STREAM))
        frame_object(call, STR_EMPTY, "delta", STR(SEAM_TEXT));
    switch (event->kind) {
    case EVENT_TEXT: frame_object(call, STR_EMPTY, "delta", event->text.text); break;
    case EVENT_TOOL_CALL: frame_tool_call(call, event); break;
    case EVENT_TOOL_RESULT:
        frame_step(call, event->agent,
                   event->tool_result.error ? STR("tool failed") : STR("tool answered"),
                   event->tool_result.result);
        break;
    case EVENT_STEP:
        frame_step(call, event->agent, event->step.description, event->step.result);
        break;
    case EVENT_APPROVAL:
        frame_approval(call, &turn->outcome, event);
        frame_result(call, &turn->outcome, event);
        break;
    case EVENT_DONE: frame_result(call, &turn->outcome, event); break;
    case EVENT_FAILED: frame_failure(turn, event->failed.code, event->failed.message); break;
    case EVENT_CANCELLED: frame_failure(turn, ERR_CANCELLED, event->cancelled.message); break;
    case EVENT_STARTED:
    case EVENT_THINKING:
    case EVENT_USAGE:
    case EVENT_AUDIO:
    case EVENT_ITEM:
    case EVENT_KIND_COUNT: break; /* not sent in this contract */
    }
}

/* A stretch of texts contains no seam, because other events come between two replies. */
static void stream_project_texts(struct str texts, size_t count, void *ctx) {
    struct turn *turn = ctx;
    struct event first = {.kind = EVENT_TEXT};
    (void)count;
    if (turn->repeat.seq) {
        report_difference(turn);
        return;
    }
    if (!event_next_text(&texts, &first.agent, &first.text.text)) return;
    turn_note(turn, &first);
    if (seam_before(&turn->seam, &first, SEAM_OF_STREAM))
        frame_object(turn->http.call, STR_EMPTY, "delta", STR(SEAM_TEXT));
    frame_deltas(turn->http.call, first.text.text, texts);
}

/* This contract's stream always ends with `[DONE]`, after success and after failure. */
static void stream_ended(struct close_ending ending, enum close_cause cause,
                         const struct event *last, void *ctx) {
    struct turn *turn = ctx;
    (void)last; /* a failure has been sent as an event already */
    if (!http_turn_may_end(&turn->http, ending, cause)) return;
    if (ending.status != ERR_NONE) {
        frame_error(turn->http.call, ending.status, STR("the turn was cut short"));
    }
    route_sse_event(turn->http.call, STR_EMPTY, STR_EMPTY, STR("[DONE]"));
    route_sse_end(turn->http.call);
}

const struct stream_wire turn_stream_wire = {
    .judge = turn_judge,
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
