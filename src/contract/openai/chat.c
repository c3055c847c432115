/* chat: a turn as a chat completion, whole or as chunks.
 *
 * Both are written from the same events. The calls that an agent makes of its own tools are not
 * shown: a client would take them for calls that it has to make. */
#include "base/mem.h"
#include "contract/openai/api_turn.h"
#include "record/record.h"
#include "stream/stream.h"

#define CHAT_MAX_BYTES (96 * MIB)

/* --- parts of both ------------------------------------------------------------------------ */

static void chat_write_head(const struct api_turn *turn, const char *object,
                            struct json_writer *json) {
    char room[48];
    struct buf id = {.at = room, .room = sizeof(room), .max_bytes = sizeof(room)};
    buf_append(&id, STR("chatcmpl-"));
    buf_append_u64(&id, turn->completion.run);
    json_member_str(json, "id", buf_str(&id));
    json_member_str(json, "object", str_from(object));
    json_member_i64(json, "created", record_numbered_ms(turn->completion.run) / 1000);
    json_member_str(json, "model", text_str(turn->completion.model));
}

static void chat_write_usage(const struct completion *completion, struct json_writer *json) {
    const struct event_usage *usage = &completion->usage;
    if (!completion_knows_usage(completion)) {
        json_member_null(json, "usage");
        return;
    }
    json_member_object(json, "usage");
    json_member_i64(json, "prompt_tokens", usage->prompt);
    json_member_i64(json, "completion_tokens", usage->completion);
    json_member_i64(json, "total_tokens", usage_sum(usage->prompt, usage->completion));
    json_member_object(json, "prompt_tokens_details");
    json_member_i64(json, "cached_tokens", usage->cached);
    json_close(json);
    json_member_object(json, "completion_tokens_details");
    json_member_i64(json, "reasoning_tokens", usage->thoughts);
    json_close(json);
    json_close(json);
}

/* --- one body ----------------------------------------------------------------------------- */

static void chat_write_message(const struct api_turn *turn, const struct event *last,
                               struct json_writer *json) {
    const struct completion *completion = &turn->completion;
    struct buf text;
    buf_init(&text, COMPLETION_TEXT_MAX_BYTES);
    completion_append_text(completion, last, &text);
    json_member_object(json, "message");
    json_member_str(json, "role", STR("assistant"));
    bool refused = completion_is_filtered(last);
    openai_member(json, "content", text.len || !completion->call_count, buf_str(&text));
    openai_member(json, "refusal", refused, refused ? completion_refusal(last) : STR_EMPTY);
    if (completion->reasoning.len)
        json_member_str(json, "reasoning_content", buf_str(&completion->reasoning));
    if (completion->call_count) {
        json_member_array(json, "tool_calls");
        json_write_raw(json, buf_str(&completion->calls));
        json_close(json);
    }
    json_close(json);
    buf_done(&text);
}

static void chat_reply(const struct api_turn *turn, const struct event *last) {
    struct route_json reply;
    struct json_writer *json = route_json_object(&reply, CHAT_MAX_BYTES);
    chat_write_head(turn, "chat.completion", json);
    json_member_array(json, "choices");
    json_open_object(json);
    json_member_i64(json, "index", 0);
    chat_write_message(turn, last, json);
    json_member_null(json, "logprobs");
    json_member_str(json, "finish_reason", completion_finish_reason(&turn->completion, last));
    json_close(json);
    json_close(json);
    chat_write_usage(&turn->completion, json);
    completion_write_weir(&turn->completion, last, json);
    route_json_reply(&reply, turn->base.http.call, 200);
}

static void whole_project(const struct event *event, enum close_frame frame, void *ctx) {
    struct api_turn *turn = ctx;
    api_turn_note(turn, event);
    if (frame == FRAME_REPLY) chat_reply(turn, event);
}

static void whole_ended(struct close_ending ending, enum close_cause cause,
                        const struct event *last, void *ctx) {
    struct api_turn *turn = ctx;
    if (ending.status == ERR_NONE) return;
    if (api_turn_ends_filtered(turn, ending.status, cause, last)) chat_reply(turn, last);
}

static const struct stream_wire whole_wire = {
    .judge = stream_judge_question,
    .project = whole_project,
    .queued = http_turn_queued,
    .wake_at = http_turn_wake_at,
    .stalled_ms = http_turn_stalled_ms,
    .ended = whole_ended,
};

/* --- chunks ------------------------------------------------------------------------------- */

#define DELTA_TAIL ",\"logprobs\":null,\"finish_reason\":null}]"

/* data: {"id":...,"choices":[{"index":0,"delta": */
static struct str chunk_head(struct api_turn *turn) {
    struct buf head;
    if (turn->head.len) return text_str(turn->head);
    buf_init(&head, 4 * KIB);
    buf_append(&head, STR("data: "));
    struct json_writer json = json_writer(&head);
    json_open_object(&json);
    chat_write_head(turn, "chat.completion.chunk", &json);
    json_member_array(&json, "choices");
    json_open_object(&json);
    json_member_i64(&json, "index", 0);
    json_key(&json, STR("delta"));
    turn->head = text_copy(buf_str(&head));
    buf_done(&head);
    return text_str(turn->head);
}

static struct str chunk_tail(const struct api_turn *turn) {
    return turn->wants_usage ? STR(DELTA_TAIL ",\"usage\":null}\n\n") : STR(DELTA_TAIL "}\n\n");
}

/* A chunk whose delta is {"key":"text"}. */
static void put_delta(struct api_turn *turn, struct str key, struct str text, struct buf *out) {
    buf_append(out, chunk_head(turn));
    buf_append(out, STR("{\""));
    buf_append(out, key);
    buf_append(out, STR("\":"));
    json_put_str(out, text);
    buf_append(out, STR("}"));
    buf_append(out, chunk_tail(turn));
}

/* The first chunk says who speaks. */
static void put_begin(struct api_turn *turn, struct buf *out) {
    if (turn->begun) return;
    turn->begun = true;
    buf_append(out, chunk_head(turn));
    buf_append(out, STR("{\"role\":\"assistant\",\"content\":\"\"}"));
    buf_append(out, chunk_tail(turn));
}

static void put_call(struct api_turn *turn, const struct event *event, struct buf *out) {
    buf_append(out, chunk_head(turn));
    struct json_writer json = json_writer(out);
    json_open_object(&json);
    json_member_array(&json, "tool_calls");
    json_open_object(&json);
    json_member_u64(&json, "index", turn->completion.call_count - 1);
    completion_write_call(event, &json);
    json_close(&json);
    json_close(&json);
    json_close(&json);
    buf_append(out, chunk_tail(turn));
}

static void openai_chat_put_text(struct api_turn *turn, struct str text, struct buf *out) {
    put_delta(turn, STR("content"), text, out);
}

/* What is only known at the end: a shaped answer, a question, a refusal. */
static void put_last_text(struct api_turn *turn, const struct event *last, struct buf *out) {
    struct buf text;
    buf_init(&text, COMPLETION_TEXT_MAX_BYTES);
    if (last->kind == EVENT_APPROVAL) {
        if (turn->completion.seam.speaker_count) buf_append(&text, STR(SEAM_TEXT));
        completion_append_question(last, &text);
    } else if (turn->completion.shaped && last->kind == EVENT_DONE &&
               !turn->completion.call_count) {
        completion_append_text(&turn->completion, last, &text);
    }
    if (text.len) openai_chat_put_text(turn, buf_str(&text), out);
    if (completion_is_filtered(last))
        put_delta(turn, STR("refusal"), completion_refusal(last), out);
    buf_done(&text);
}

static void put_usage(struct api_turn *turn, struct buf *out) {
    if (!turn->wants_usage) return;
    buf_append(out, STR("data: "));
    struct json_writer json = json_writer(out);
    json_open_object(&json);
    chat_write_head(turn, "chat.completion.chunk", &json);
    json_member_array(&json, "choices");
    json_close(&json);
    chat_write_usage(&turn->completion, &json);
    json_close(&json);
    buf_append(out, STR("\n\n"));
}

/* The chunk with the reason of the end has our own member too. */
static void put_finish(struct api_turn *turn, const struct event *last, struct buf *out) {
    put_last_text(turn, last, out);
    buf_append(out, chunk_head(turn));
    buf_append(out, STR("{},\"logprobs\":null,\"finish_reason\":"));
    json_put_str(out, completion_finish_reason(&turn->completion, last));
    buf_append(out, turn->wants_usage ? STR("}],\"usage\":null,") : STR("}],"));
    struct buf own;
    buf_init(&own, COMPLETION_TEXT_MAX_BYTES);
    struct json_writer json = json_writer(&own);
    json_open_object(&json);
    completion_write_weir(&turn->completion, last, &json);
    json_close(&json);
    buf_append(out, str_skip(buf_str(&own), 1)); /* without its brace */
    buf_append(out, STR("\n\n"));
    buf_done(&own);
    put_usage(turn, out);
    buf_append(out, STR("data: [DONE]\n\n"));
}

static void put_event(struct api_turn *turn, const struct event *event, bool seam,
                      struct buf *out) {
    switch (event->kind) {
    case EVENT_TEXT:
        if (turn->completion.shaped) break;
        if (seam) openai_chat_put_text(turn, STR(SEAM_TEXT), out);
        openai_chat_put_text(turn, event->text.text, out);
        break;
    case EVENT_THINKING:
        if (guest_turn_shows(&turn->base, event))
            put_delta(turn, STR("reasoning_content"), event->thinking.text, out);
        break;
    case EVENT_TOOL_CALL:
        if (event->tool_call.callers) put_call(turn, event, out);
        break;
    case EVENT_APPROVAL:
    case EVENT_DONE: put_finish(turn, event, out); break;
    case EVENT_FAILED:
        if (completion_is_filtered(event)) put_finish(turn, event, out);
        break;
    case EVENT_STARTED:
    case EVENT_TOOL_RESULT:
    case EVENT_USAGE:
    case EVENT_STEP:
    case EVENT_AUDIO:
    case EVENT_ITEM:
    case EVENT_CANCELLED:
    case EVENT_KIND_COUNT: break; /* not shown, or by chunks_ended() */
    }
}

static void chunks_project(const struct event *event, enum close_frame frame, void *ctx) {
    struct api_turn *turn = ctx;
    bool seam = api_turn_note(turn, event);
    struct buf *out = route_sse_out(turn->base.http.call);
    (void)frame;
    if (!out) return;
    size_t begin = out->len;
    put_begin(turn, out);
    put_event(turn, event, seam, out);
    route_sse_wrote(turn->base.http.call, begin);
}

/* A stretch of texts contains no seam, because other events come between two replies. */
static void chunks_project_texts(struct str texts, size_t count, void *ctx) {
    struct api_turn *turn = ctx;
    struct event first = {.kind = EVENT_TEXT};
    struct str rest = texts, agent, text;
    (void)count;
    if (!event_take_text(&rest, &first.agent, &first.text.text)) return;
    bool seam = api_turn_note(turn, &first);
    struct buf *out = route_sse_out(turn->base.http.call);
    if (!out || turn->completion.shaped) return;
    size_t begin = out->len;
    put_begin(turn, out);
    if (seam) openai_chat_put_text(turn, STR(SEAM_TEXT), out);
    while (event_next_text(&texts, &agent, &text)) openai_chat_put_text(turn, text, out);
    route_sse_wrote(turn->base.http.call, begin);
}

/* The libraries raise what they find under "error". */
static void chunks_fail(struct api_turn *turn, enum close_cause cause, enum err_code status,
                        const struct event *last) {
    struct str message;
    struct api_failure refusal = api_turn_failure(cause, status, last, &message);
    struct route_json out;
    struct json_writer *json = route_json_object(&out, 6 * message.len + KIB);
    json_key(json, STR("error"));
    api_error_write(json, &refusal, message, STR_EMPTY);
    route_json_event(&out, turn->base.http.call, STR_EMPTY);
}

static void chunks_ended(struct close_ending ending, enum close_cause cause,
                         const struct event *last, void *ctx) {
    struct api_turn *turn = ctx;
    if (!http_turn_may_end(&turn->base.http, ending, cause)) return;
    if (cause != CAUSE_FINISHED && !completion_is_filtered(last))
        chunks_fail(turn, cause, ending.status, last);
    route_sse_end(turn->base.http.call);
}

static const struct stream_wire chunks_wire = {
    .judge = stream_judge_question,
    .project = chunks_project,
    .project_texts = chunks_project_texts,
    .gather = http_turn_gather,
    .leave_now = http_turn_leave_now,
    .queued = http_turn_queued,
    .wake_at = http_turn_wake_at,
    .stalled_ms = http_turn_stalled_ms,
    .heartbeat = http_turn_heartbeat,
    .ended = chunks_ended,
};

/* --- the form ----------------------------------------------------------------------------- */

static bool chat_read(struct guest_turn *base, struct str body, struct guest_request *ret,
                      struct err *e) {
    struct api_turn *turn = api_turn_of(base);
    struct request_reading reading = {.arena = base->http.arena, .e = e};
    struct openai_request request;
    struct str session;
    if (!http_turn_keep(&base->http, route_header(base->http.call, STR("x-session-id")),
                        &session, e))
        return false;
    bool reads = chat_request_parse(&reading, body, session, &request);
    base->param = reading.param;
    if (!reads) return false;
    turn->wants_usage = request.wants_usage;
    *ret = request.turn;
    api_turn_expect(turn, ret);
    return true;
}

static void chat_ask_again(struct guest_turn *base, const struct event *question) {
    struct api_turn *turn = api_turn_of(base);
    api_turn_note_origin(turn);
    if (base->http.mode == CLOSE_SINGLE) {
        chat_reply(turn, question);
        return;
    }
    route_sse_begin(base->http.call);
    chunks_project(question, FRAME_DONE, turn);
    route_sse_end(base->http.call);
}

static const struct guest_form chat_form = {.contract = STR_INIT(OPENAI_CONTRACT),
                                            .read = chat_read,
                                            .whole = &whole_wire,
                                            .stream = &chunks_wire,
                                            .refuse = api_turn_refuse,
                                            .refuse_for = api_turn_refuse_for,
                                            .ask_again = chat_ask_again,
                                            .free = api_turn_free};

void openai_chat(struct route_call *call, void *ctx) {
    struct contract_caller caller;
    if (!guest_enter(call, ctx, &caller)) return;
    guest_turn_serve(&api_turn_new()->base, call, ctx, &chat_form, &caller);
}
