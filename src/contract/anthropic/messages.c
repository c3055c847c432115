#include "contract/anthropic/messages.h"

#include "base/mem.h"
#include "contract/anthropic/blocks.h"
#include "contract/anthropic/message_error.h"
#include "contract/anthropic/request.h"
#include "contract/completion.h"
#include "route/route_json.h"

#include <stdlib.h>

#define MESSAGE_MAX_BYTES (128 * MIB)
#define BYTES_A_TOKEN 4

struct message_turn {
    struct guest_turn base;
    struct completion completion;
    struct blocks blocks;
    bool begun; /* message_start is out */
};

/* --- the message -------------------------------------------------------------------------- */

static int64_t known(int64_t tokens) {
    return tokens == TOKENS_UNKNOWN ? 0 : tokens;
}

/* The counts must be numbers; what no provider reported is 0. */
static void write_usage(struct json_writer *json, const struct completion *completion) {
    const struct event_usage *usage = &completion->usage;
    int64_t cached = known(usage->cached), input = known(usage->prompt) - cached;
    json_member_object(json, "usage");
    json_member_i64(json, "input_tokens", input > 0 ? input : 0);
    json_member_i64(json, "cache_creation_input_tokens", 0);
    json_member_i64(json, "cache_read_input_tokens", cached);
    json_member_i64(json, "output_tokens", known(usage->completion));
    json_close(json);
}

static struct str stop_reason(const struct completion *completion, const struct event *last) {
    if (completion_is_filtered(last)) return STR("refusal");
    if (last->kind == EVENT_DONE && completion->call_count) return STR("tool_use");
    if (last->kind == EVENT_DONE && completion->stop.len) return STR("stop_sequence");
    return last->kind == EVENT_DONE && completion->cut ? STR("max_tokens") : STR("end_turn");
}

static void write_stop(const struct completion *completion, const struct event *last,
                       struct json_writer *json) {
    struct str reason = stop_reason(completion, last);
    json_member_str(json, "stop_reason", reason);
    if (str_equal(reason, STR("stop_sequence"))) {
        json_member_str(json, "stop_sequence", text_str(completion->stop));
    } else {
        json_member_null(json, "stop_sequence");
    }
}

/* {"id","type","role","model","content":[...] */
static void write_head(const struct message_turn *turn, struct str content,
                       struct json_writer *json) {
    char room[32];
    struct buf id = {.at = room, .room = sizeof(room), .max_bytes = sizeof(room)};
    buf_append(&id, STR("msg_"));
    buf_append_u64(&id, turn->base.http.run_id);
    json_open_object(json);
    json_member_str(json, "id", buf_str(&id));
    json_member_str(json, "type", STR("message"));
    json_member_str(json, "role", STR("assistant"));
    json_member_str(json, "model", text_str(turn->completion.model));
    json_member_array(json, "content");
    if (content.len) json_write_raw(json, content);
    json_close(json);
}

/* What is known at the end only: a question, a refusal. */
static void add_last_text(struct message_turn *turn, const struct event *last) {
    struct buf text;
    buf_init(&text, COMPLETION_TEXT_MAX_BYTES);
    bool asks = last->kind == EVENT_APPROVAL, refuses = completion_is_filtered(last);
    if ((asks || refuses) && turn->completion.seam.speaker_count)
        buf_append(&text, STR(SEAM_TEXT));
    if (asks) completion_append_question(last, &text);
    if (refuses) buf_append(&text, completion_refusal(last));
    if (text.len) blocks_add(&turn->blocks, BLOCK_TEXT, buf_str(&text));
    blocks_end(&turn->blocks);
    buf_done(&text);
}

/* Note the event, and show what it says. */
static void message_note(struct message_turn *turn, const struct event *event) {
    struct blocks *blocks = &turn->blocks;
    bool shown = event->kind != EVENT_THINKING || guest_turn_shows(&turn->base, event);
    turn->completion.run = turn->base.http.run_id;
    if (!turn->completion.session.len)
        turn->completion.session = text_copy(text_str(turn->base.session));
    if (!shown) return;
    bool seam = completion_note(&turn->completion, event);
    if (seam) blocks_add(blocks, BLOCK_TEXT, STR(SEAM_TEXT));
    if (event->kind == EVENT_TEXT) blocks_add(blocks, BLOCK_TEXT, event->text.text);
    if (event->kind == EVENT_THINKING) blocks_add(blocks, BLOCK_THINKING, event->thinking.text);
    if (event->kind == EVENT_TOOL_CALL && event->tool_call.callers)
        blocks_add_call(blocks, event);
}

/* --- one body ----------------------------------------------------------------------------- */

static void message_reply(struct message_turn *turn, const struct event *last) {
    struct buf body;
    add_last_text(turn, last);
    buf_init(&body, MESSAGE_MAX_BYTES);
    struct json_writer json = json_writer(&body);
    write_head(turn, buf_str(&turn->blocks.array), &json);
    write_stop(&turn->completion, last, &json);
    write_usage(&json, &turn->completion);
    completion_write_weir(&turn->completion, last, &json);
    json_close(&json);
    if (buf_ok(&body) && buf_ok(&turn->blocks.array)) {
        route_reply(turn->base.http.call, 200, STR("application/json"), buf_str(&body));
    } else {
        message_error_answer(
            turn->base.http.call, (struct api_failure){.status = 500},
            STR("the answer is larger than a response may be; read it as a stream"));
    }
    buf_done(&body);
}

static void whole_project(const struct event *event, enum close_frame frame, void *ctx) {
    struct message_turn *turn = ctx;
    message_note(turn, event);
    if (frame == FRAME_REPLY) message_reply(turn, event);
}

static struct api_failure failure_of(enum close_cause cause, enum err_code status,
                                     const struct event *last, struct str *ret_message) {
    struct str reason;
    enum err_code code = guest_turn_failure(cause, status, last, &reason, ret_message);
    *ret_message = message_error_sentence(reason, *ret_message);
    return api_failure_of_run(code, reason,
                              last && last->kind == EVENT_FAILED && last->failed.acted);
}

static void whole_ended(struct close_ending ending, enum close_cause cause,
                        const struct event *last, void *ctx) {
    struct message_turn *turn = ctx;
    struct str message;
    if (ending.status == ERR_NONE) return;
    http_turn_leave_run(&turn->base.http, cause);
    if (turn->base.http.gone) return;
    if (completion_is_filtered(last)) {
        message_reply(turn, last);
    } else {
        struct api_failure error = failure_of(cause, ending.status, last, &message);
        message_error_answer(turn->base.http.call, error, message);
    }
}

static const struct stream_wire whole_wire = {
    .judge = stream_judge_question,
    .project = whole_project,
    .queued = http_turn_queued,
    .wake_at = http_turn_wake_at,
    .stalled_ms = http_turn_stalled_ms,
    .ended = whole_ended,
};

/* --- a stream ----------------------------------------------------------------------------- */

static void send_start(struct message_turn *turn) {
    struct route_json event;
    if (turn->begun) return;
    turn->begun = true;
    turn->blocks.call = turn->base.http.call;
    struct json_writer *json = route_json_object(&event, 64 * KIB);
    json_member_str(json, "type", STR("message_start"));
    json_key(json, STR("message"));
    write_head(turn, STR_EMPTY, json);
    json_member_null(json, "stop_reason");
    json_member_null(json, "stop_sequence");
    write_usage(json, &turn->completion);
    route_json_event(&event, turn->base.http.call, STR("message_start"));
}

static void send_end(struct message_turn *turn, const struct event *last) {
    struct route_call *call = turn->base.http.call;
    struct route_json event;
    add_last_text(turn, last);
    struct json_writer *json = route_json_object(&event, MESSAGE_MAX_BYTES);
    json_member_str(json, "type", STR("message_delta"));
    json_member_object(json, "delta");
    write_stop(&turn->completion, last, json);
    json_close(json);
    write_usage(json, &turn->completion);
    completion_write_weir(&turn->completion, last, json);
    route_json_event(&event, call, STR("message_delta"));
    route_sse_event(call, STR("message_stop"), STR_EMPTY, STR("{\"type\":\"message_stop\"}"));
}

/* The first event of the run says which agent speaks, if the caller did not. */
static void events_project(const struct event *event, enum close_frame frame, void *ctx) {
    struct message_turn *turn = ctx;
    (void)frame;
    if (event->kind == EVENT_STARTED) {
        message_note(turn, event);
        send_start(turn);
        return;
    }
    send_start(turn);
    message_note(turn, event);
    if (event->kind == EVENT_DONE || event->kind == EVENT_APPROVAL ||
        completion_is_filtered(event))
        send_end(turn, event);
}

/* A stretch of texts contains no seam, because other events come between two replies. */
static void events_project_texts(struct str texts, size_t count, void *ctx) {
    struct message_turn *turn = ctx;
    struct event first = {.kind = EVENT_TEXT};
    struct str rest = texts;
    (void)count;
    if (!event_take_text(&rest, &first.agent, &first.text.text)) return;
    send_start(turn);
    if (completion_note(&turn->completion, &first))
        blocks_add(&turn->blocks, BLOCK_TEXT, STR(SEAM_TEXT));
    blocks_add_texts(&turn->blocks, texts);
}

static void events_heartbeat(void *ctx) {
    struct message_turn *turn = ctx;
    route_sse_event(turn->base.http.call, STR("ping"), STR_EMPTY, STR("{\"type\":\"ping\"}"));
}

static void events_ended(struct close_ending ending, enum close_cause cause,
                         const struct event *last, void *ctx) {
    struct message_turn *turn = ctx;
    struct str message;
    struct buf data;
    if (!http_turn_may_end(&turn->base.http, ending, cause)) return;
    if (cause != CAUSE_FINISHED && !completion_is_filtered(last)) {
        struct api_failure error = failure_of(cause, ending.status, last, &message);
        buf_init(&data, 6 * message.len + KIB);
        message_error_write(error.status, message, &data);
        route_sse_event(turn->base.http.call, STR("error"), STR_EMPTY, buf_str(&data));
        buf_done(&data);
    }
    route_sse_end(turn->base.http.call);
}

static const struct stream_wire events_wire = {
    .judge = stream_judge_question,
    .project = events_project,
    .project_texts = events_project_texts,
    .gather = http_turn_gather,
    .leave_now = http_turn_leave_now,
    .queued = http_turn_queued,
    .wake_at = http_turn_wake_at,
    .stalled_ms = http_turn_stalled_ms,
    .heartbeat = events_heartbeat,
    .ended = events_ended,
};

/* --- the form ----------------------------------------------------------------------------- */

static struct message_turn *message_turn_of(struct guest_turn *base) {
    return CONTAINER_OF(base, struct message_turn, base);
}

static bool form_read(struct guest_turn *base, struct str body, struct guest_request *ret,
                      struct err *e) {
    struct message_turn *turn = message_turn_of(base);
    struct str session;
    if (!http_turn_keep(&base->http, route_header(base->http.call, STR("x-session-id")),
                        &session, e))
        return false;
    enum messages_use use = session.len ? MESSAGES_GO_ON : MESSAGES_WHOLE;
    if (!messages_request_parse(body, use, base->http.arena, ret, e)) return false;
    if (session.len) {
        ret->session = session;
        ret->brought = BROUGHT_MERGE;
    }
    if (ret->agent.len) turn->completion.model = text_copy(ret->agent);
    return true;
}

static void form_refuse(struct guest_turn *base, const struct err *why) {
    message_error_of_request(base->http.call, why);
}

static void form_refuse_for(struct guest_turn *base, enum guest_refusal why) {
    static const struct str texts[] = {
        [GUEST_KEY_REUSED] =
            STR_INIT("this idempotency key was used for another request; send a "
                     "new key, or the same body as then"),
        [GUEST_SEVERAL] =
            STR_INIT("several runs of this session wait for a person's answer; give "
                     "it at /weir/v1/approvals, where each has an id"),
        [GUEST_NO_QUESTION] = STR_INIT("no run of this session waits for an answer"),
    };
    message_error_answer(base->http.call, (struct api_failure){.status = 409}, texts[why]);
}

static void form_ask_again(struct guest_turn *base, const struct event *question) {
    struct message_turn *turn = message_turn_of(base);
    turn->completion.session = text_copy(text_str(base->session));
    turn->completion.run = base->http.run_id;
    if (!base->request.streams) {
        message_reply(turn, question);
        return;
    }
    route_sse_begin(base->http.call);
    send_start(turn);
    send_end(turn, question);
    route_sse_end(base->http.call);
}

static void form_free(struct guest_turn *base) {
    struct message_turn *turn = message_turn_of(base);
    completion_done(&turn->completion);
    blocks_done(&turn->blocks);
    free(turn);
}

static const struct guest_form form = {.contract = STR_INIT(ANTHROPIC_CONTRACT),
                                       .read = form_read,
                                       .whole = &whole_wire,
                                       .stream = &events_wire,
                                       .refuse = form_refuse,
                                       .refuse_for = form_refuse_for,
                                       .ask_again = form_ask_again,
                                       .free = form_free};

void messages_create(struct route_call *call, void *ctx) {
    struct contract_caller caller;
    if (!guest_enter(call, ctx, &caller)) return;
    struct message_turn *turn = MEM_NEW(struct message_turn);
    completion_init(&turn->completion);
    blocks_init(&turn->blocks);
    guest_turn_serve(&turn->base, call, ctx, &form, &caller);
}

/* --- counting ----------------------------------------------------------------------------- */

/* An estimate: only a model's own server knows. */
static int64_t estimate(const struct guest_request *request) {
    size_t bytes = 0;
    for (size_t i = 0; i < request->message_count; i++)
        bytes += request->messages[i].text.len + request->messages[i].tool.len;
    for (size_t i = 0; i < request->tool_count; i++)
        bytes += request->tools[i].name.len + request->tools[i].description.len +
                 request->tools[i].parameters.len;
    return (int64_t)((bytes + BYTES_A_TOKEN - 1) / BYTES_A_TOKEN);
}

static bool count(struct route_call *call, const struct guest *guest, struct arena *arena,
                  int64_t *ret, struct err *e) {
    struct guest_request request;
    const struct engine *engine = guest->site.host->engine;
    struct str body = lent_read(route_body(call));
    if (!messages_request_parse(body, MESSAGES_COUNTED, arena, &request, e)) return false;
    if (request.agent.len && !engine_agent(engine, request.agent))
        return engine_refuse_agent(engine, request.agent, e);
    *ret = estimate(&request);
    return true;
}

void messages_count_tokens(struct route_call *call, void *ctx) {
    struct contract_caller caller;
    char room[64];
    struct buf body = {.at = room, .room = sizeof(room), .max_bytes = sizeof(room)};
    struct err e;
    int64_t tokens = 0;
    if (!guest_enter(call, ctx, &caller)) return;
    struct arena *arena = arena_new(32 * MIB);
    if (count(call, ctx, arena, &tokens, &e)) {
        buf_printf(&body, "{\"input_tokens\":%lld}", (long long)tokens);
        route_reply(call, 200, STR("application/json"), buf_str(&body));
    } else {
        message_error_answer(call, api_failure_of_code(e.code), err_text(&e));
    }
    arena_free(arena);
}
