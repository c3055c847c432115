#include "contract/nimi/project.h"

#include "base/clock.h"
#include "provider/provider.h"

#include <stdio.h>

static const struct nimi_usage_stats unknown = {-1, -1, -1};

void projection_init(struct nimi_projection *projection, struct nimi_call *call) {
    *projection = (struct nimi_projection){
        .call = call, .usage = unknown, .finish = NIMI_FINISH_REASON_STOP};
    pieces_init(&projection->text);
    pieces_init(&projection->thinking);
}

void projection_done(struct nimi_projection *projection) {
    pieces_done(&projection->text);
    pieces_done(&projection->thinking);
}

/* --- one event ---------------------------------------------------------------------------- */

static void project_send_event(struct nimi_projection *projection,
                               const struct nimi_stream_scenario_event *event) {
    int64_t now = clock_unix_ms();
    const struct google_timestamp at = {.seconds = now / 1000,
                                        .nanos = (int32_t)(now % 1000) * 1000000};
    struct nimi_stream_scenario_event sent = *event;
    sent.sequence = ++projection->sequence;
    sent.trace_id = nimi_trace(projection->call);
    sent.timestamp = &at;
    struct buf *out = rpc_message_begin(projection->call->rpc);
    pb_encode(&nimi_stream_scenario_event_table, &sent, out);
    rpc_message_end(projection->call->rpc);
}

static void send_started(struct nimi_projection *projection) {
    const struct nimi_scenario_stream_started started = {.model_resolved = projection->model,
                                                         .route_decision = projection->route};
    project_send_event(projection, &(struct nimi_stream_scenario_event){
                                       .event_type = NIMI_STREAM_EVENT_STARTED,
                                       .which_payload = NIMI_STREAM_SCENARIO_EVENT_STARTED,
                                       .started = &started});
}

static void send_delta(struct nimi_projection *projection,
                       const struct nimi_scenario_stream_delta *delta,
                       const struct nimi_stream_frame *frame) {
    project_send_event(projection, &(struct nimi_stream_scenario_event){
                                       .event_type = NIMI_STREAM_EVENT_DELTA,
                                       .which_payload = NIMI_STREAM_SCENARIO_EVENT_DELTA,
                                       .delta = delta,
                                       .frame = frame});
}

static void send_text(struct nimi_projection *projection, struct str piece) {
    const struct nimi_text_stream_delta text = {.text = piece};
    const struct nimi_scenario_stream_delta delta = {
        .which_delta = NIMI_SCENARIO_STREAM_DELTA_TEXT, .text = &text};
    const struct nimi_stream_frame frame = {.text_delta = piece};
    send_delta(projection, &delta, projection->call->brief ? NULL : &frame);
}

static void send_thinking(struct nimi_projection *projection, struct str piece) {
    const struct nimi_reasoning_stream_delta text = {.text = piece};
    const struct nimi_scenario_stream_delta delta = {
        .which_delta = NIMI_SCENARIO_STREAM_DELTA_REASONING, .reasoning = &text};
    send_delta(projection, &delta, NULL);
}

static void send_audio(struct nimi_projection *projection, struct str type, struct str piece) {
    const struct nimi_artifact_stream_delta audio = {.chunk = piece, .mime_type = type};
    const struct nimi_scenario_stream_delta delta = {
        .which_delta = NIMI_SCENARIO_STREAM_DELTA_ARTIFACT, .artifact = &audio};
    const struct nimi_stream_frame frame = {.audio_chunk = piece};
    send_delta(projection, &delta, projection->call->brief ? NULL : &frame);
}

static void send_usage(struct nimi_projection *projection) {
    project_send_event(projection, &(struct nimi_stream_scenario_event){
                                       .event_type = NIMI_STREAM_EVENT_USAGE,
                                       .which_payload = NIMI_STREAM_SCENARIO_EVENT_USAGE,
                                       .usage = &projection->usage});
}

typedef void send_fn(struct nimi_projection *projection, struct str piece);

static void project_gather(struct nimi_projection *projection, struct pieces *pieces,
                           struct str text, send_fn *send_piece) {
    pieces_put(pieces, text);
    for (struct str piece; (piece = pieces_ready(pieces)).len;) {
        send_piece(projection, piece);
        pieces_sent(pieces, piece.len);
    }
}

static void flush(struct nimi_projection *projection, struct pieces *pieces,
                  send_fn *send_piece) {
    struct str rest = pieces_rest(pieces);
    if (rest.len == 0) return;
    send_piece(projection, rest);
    pieces_sent(pieces, rest.len);
}

/* --- the last event ----------------------------------------------------------------------- */

static void send_completed(struct nimi_projection *projection) {
    const struct nimi_scenario_stream_completed completed = {
        .finish_reason = projection->finish,
        .usage = &projection->usage,
        .stream_simulated = projection->simulated};
    const struct nimi_stream_frame frame = {.done = true, .usage = &projection->usage};
    project_send_event(projection, &(struct nimi_stream_scenario_event){
                                       .event_type = NIMI_STREAM_EVENT_COMPLETED,
                                       .which_payload = NIMI_STREAM_SCENARIO_EVENT_COMPLETED,
                                       .completed = &completed,
                                       .frame = &frame});
}

/* The real SDK shows only the number and, as text, the hint. So the hint includes the reason's
 * name. */
static void send_failed(struct nimi_projection *projection, const struct event *event) {
    struct fault fault;
    struct buf hint;
    projection_fault(event, &fault);
    buf_init(&hint, KIB);
    buf_printf(&hint, "%s: %s", reason_get(fault.reason)->name, fault.why.text);
    const struct nimi_scenario_stream_failed failed = {.reason_code = fault.reason,
                                                       .action_hint = buf_str(&hint)};
    const struct nimi_stream_frame frame = {
        .done = true, .usage = &projection->usage, .reason_code = fault.reason};
    struct nimi_stream_scenario_event last = {.event_type = NIMI_STREAM_EVENT_FAILED,
                                              .which_payload =
                                                  NIMI_STREAM_SCENARIO_EVENT_FAILED,
                                              .failed = &failed,
                                              .frame = &frame};
    project_send_event(projection, &last);
    buf_done(&hint);
}

void projection_fault(const struct event *event, struct fault *ret) {
    if (event->kind != EVENT_FAILED) {
        fault_set(ret, NIMI_AI_STREAM_BROKEN, STR_FMT, STR_ARG(event->cancelled.message));
        return;
    }
    fault_set(ret, reason_of_failure(event->failed.reason, event->failed.code), STR_FMT,
              STR_ARG(event->failed.message));
}

/* --- events ------------------------------------------------------------------------------- */

/* Finish reasons other than a normal stop. None of them is a failure. */
static const struct {
    struct str how;
    int reason;
} finishes[] = {
    {STR_INIT("tool_call"), NIMI_FINISH_REASON_TOOL_CALL},
    {STR_INIT("length"), NIMI_FINISH_REASON_LENGTH},
    {STR_INIT("content_filter"), NIMI_FINISH_REASON_CONTENT_FILTER},
};

static int finish_of(struct str how) {
    for (size_t i = 0; i < ARRAY_LEN(finishes); i++) {
        if (str_equal(finishes[i].how, how)) return finishes[i].reason;
    }
    return NIMI_FINISH_REASON_STOP;
}

void projection_note(struct nimi_projection *projection, const struct event *event) {
    if (event->kind == EVENT_USAGE) {
        projection->usage = (struct nimi_usage_stats){
            .input_tokens = event->usage.prompt,
            .output_tokens = event->usage.completion,
            .compute_ms = -1,
        };
    } else if (event->kind == EVENT_ITEM &&
               str_equal(event->item.type, STR(MODEL_CALL_FINISH))) {
        projection->finish = finish_of(event->item.bytes);
    } else if (event->kind == EVENT_STEP &&
               str_equal(event->step.description, STR(PROVIDER_WHOLE_NOTE))) {
        projection->simulated = true;
    }
}

void projection_send(struct nimi_projection *projection, const struct event *event) {
    projection_note(projection, event);
    if (event_is_terminal(event->kind)) {
        flush(projection, &projection->thinking, send_thinking);
        flush(projection, &projection->text, send_text);
    }
    switch (event->kind) {
    case EVENT_STARTED: send_started(projection); break;
    case EVENT_TEXT:
        project_gather(projection, &projection->text, event->text.text, send_text);
        break;
    case EVENT_THINKING:
        if (projection->shows_thinking)
            project_gather(projection, &projection->thinking, event->thinking.text,
                           send_thinking);
        break;
    case EVENT_AUDIO: send_audio(projection, event->audio.type, event->audio.bytes); break;
    case EVENT_USAGE:
        if (projection->tells_usage) send_usage(projection);
        break;
    case EVENT_DONE: send_completed(projection); break;
    case EVENT_FAILED:
    case EVENT_CANCELLED: send_failed(projection, event); break;
    default: break;
    }
}
