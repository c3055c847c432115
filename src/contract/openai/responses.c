/* responses: a turn as a response, whole, as typed events, or in the background. */
#include "contract/openai/responses.h"

#include "base/mem.h"
#include "contract/openai/responses_request.h"
#include "session/asked.h"
#include "stream/stream.h"

#include <stdlib.h>

#define RESPONSE_MAX_BYTES (192 * MIB)

/* --- its own part of a turn --------------------------------------------------------------- */

struct api_turn *responding_new(void) {
    struct api_turn *turn = api_turn_new();
    struct responding *own = MEM_NEW(struct responding);
    response_init(&own->response, &turn->completion);
    buf_init(&own->body, RESPONSE_MAX_BYTES);
    run_summary_init(&own->summary, 0);
    turn->own = own;
    return turn;
}

void responding_free(struct guest_turn *base) {
    struct responding *own = responding_of(api_turn_of(base));
    run_head_cancel(own->head);
    asked_cancel(own->asked);
    run_scan_cancel(own->scan);
    run_summary_done(&own->summary);
    response_done(&own->response);
    response_input_done(&own->input);
    buf_done(&own->body);
    free(own);
    api_turn_free(base);
}

/* On one line, as each event of a stream is. */
static struct text copy_compact(struct str raw) {
    struct buf out;
    buf_init(&out, raw.len + 1);
    if (raw.len) json_compact(raw, &out);
    struct text copy = text_copy(buf_str(&out));
    buf_done(&out);
    return copy;
}

/* What a later request has to know of this one, beside the caller's metadata. */
static bool keep_extras(struct arena *arena, const struct responses_request *request,
                        struct str *ret, struct err *e) {
    struct buf out;
    bool metadata = request->metadata.len > 0;
    buf_init(&out, 2 * request->metadata.len + 4 * KIB);
    struct json_writer json = json_writer(&out);
    json_open_object(&json);
    if (metadata) json_member_raw(&json, "metadata", request->metadata);
    json_member_object(&json, OPENAI_CONTRACT);
    json_member_bool(&json, "store", request->store);
    json_member_bool(&json, "shaped", request->common.schema.len > 0);
    json_member_bool(&json, "background", request->background);
    if (request->previous.len) json_member_str(&json, "previous", request->previous);
    json_close(&json);
    json_close(&json);
    struct json whole = {0};
    bool fits = buf_ok(&out) && json_read(buf_str(&out), &whole, e) &&
                json_compact_copy(whole, arena, ret);
    buf_done(&out);
    return fits || err_set(e, ERR_TOO_LARGE, "the request is larger than a turn may hold");
}

static void openai_responses_take_request(struct api_turn *turn,
                                          const struct responses_request *request) {
    struct responding *own = responding_of(turn);
    own->previous_run = request->previous_run;
    own->response.background = request->background;
    own->response.previous = text_copy(request->previous);
    own->response.metadata = copy_compact(request->metadata);
    if (request->background)
        turn->base.http.leaving = (struct leaving){.how = LEAVING_DETACHES};
}

static bool responses_read(struct guest_turn *base, struct str body, struct guest_request *ret,
                           struct err *e) {
    struct arena *arena = base->http.arena;
    struct request_reading reading = {.arena = arena, .e = e};
    struct responses_request request;
    struct str session;
    if (!http_turn_keep(&base->http, route_header(base->http.call, STR("x-session-id")),
                        &session, e))
        return false;
    bool reads = responses_request_parse(&reading, body, session, &request);
    base->param = reading.param;
    if (!reads) return false;
    *ret = request.common;
    ret->promised = request.background;
    openai_responses_take_request(api_turn_of(base), &request);
    api_turn_expect(api_turn_of(base), ret);
    return keep_extras(arena, &request, &ret->extras, e);
}

/* --- the response before it --------------------------------------------------------------- */

bool responding_owns(const struct api_turn *turn, const struct event *started) {
    const struct http_turn *http = &turn->base.http;
    struct json extras = json_of(started->started.extras);
    struct json own = json_find(extras, STR(OPENAI_CONTRACT));
    struct json store = json_find(own, STR("store"));
    return str_equal(started->started.workspace, http->workspace) &&
           (!turn->base.user_proved || str_equal(started->started.user, http->user)) &&
           str_equal(started->started.contract, STR(OPENAI_CONTRACT)) &&
           store.kind == JSON_TRUE;
}

static void refuse_previous(struct api_turn *turn) {
    api_turn_refuse_as(
        turn, 404, STR("previous_response_not_found"),
        STR("there is no such response to go on from; it was not stored, or belongs "
            "to another caller"),
        STR("previous_response_id"));
}

/* The conversation of the earlier response goes on, with the agent that it asked. Its user is the
 * one whose idempotency keys count, so that a repeat finds what this request began. */
static bool take_previous(struct api_turn *turn, const struct event *started) {
    struct arena *arena = turn->base.http.arena;
    struct guest_request *request = &turn->base.request;
    if (!request->agent.len && started->agent.len) {
        if (!arena_str(arena, started->agent, &request->agent)) return false;
        turn->completion.model = text_copy(started->agent);
    }
    request->brought = BROUGHT_MERGE;
    return arena_str(arena, started->started.session, &request->session) &&
           arena_str(arena, started->started.user, &turn->base.http.user);
}

static void on_previous(const struct event *started, const struct err *failed, void *ctx) {
    struct api_turn *turn = ctx;
    responding_of(turn)->head = NULL;
    if (failed) {
        http_turn_give_up(&turn->base.http, failed);
    } else if (!started || !responding_owns(turn, started)) {
        refuse_previous(turn);
    } else if (!take_previous(turn, started)) {
        api_turn_refuse_as(turn, 413, STR("request_too_large"),
                           STR("the request is larger than a turn may hold"), STR_EMPTY);
    } else {
        http_turn_enter(&turn->base.http);
    }
}

static void responses_prepare(struct guest_turn *base) {
    struct api_turn *turn = api_turn_of(base);
    struct responding *own = responding_of(turn);
    if (!own->previous_run) {
        http_turn_enter(&base->http);
        return;
    }
    http_turn_watch(&base->http);
    own->head = run_head_look(http_turn_sessions(&base->http), route_loop(base->http.call),
                              own->previous_run, on_previous, turn);
}

static void refuse_superseded(struct api_turn *turn) {
    api_turn_refuse_as(turn, 400, STR(PREVIOUS_SUPERSEDED),
                       STR("the conversation went on after this response; go on from its "
                           "newest one, or send the whole list as input"),
                       STR("previous_response_id"));
}

/* Whether the run with this first event went on from the same response, or from an earlier one: it was
 * superseded then. */
static bool is_no_later(const struct api_turn *turn, const struct event *started) {
    struct json extras = json_of(started->started.extras);
    struct json previous = json_find(json_find(extras, STR(OPENAI_CONTRACT)), STR("previous"));
    struct str id;
    uint64_t run, seq;
    return json_str(previous, turn->base.http.arena, &id) && response_read_id(id, &run, &seq) &&
           run <= responding_of(turn)->previous_run;
}

/* The newest run is later, but may not count: it ran inside another one, which its caller may know as the
 * newest, or it had no outcome, and its caller may only know the response before it. If that one went on from
 * a later one, something came between. What else may have come is seen when the turn has its session. */
static void on_later(const struct event *started, const struct err *failed, void *ctx) {
    struct api_turn *turn = ctx;
    struct responding *own = responding_of(turn);
    own->head = NULL;
    bool inside = started && started->started.parent;
    if (failed) {
        http_turn_give_up(&turn->base.http, failed);
    } else if (inside || (started && own->newest_vain && is_no_later(turn, started))) {
        guest_turn_go_on(&turn->base, own->mark);
    } else {
        refuse_superseded(turn);
    }
}

static void on_newest(const struct asked_result *result, const struct err *failed, void *ctx) {
    struct api_turn *turn = ctx;
    struct responding *own = responding_of(turn);
    bool later = result->run > own->previous_run;
    own->asked = NULL;
    own->newest_vain = result->ended == EVENT_FAILED || result->ended == EVENT_CANCELLED;
    turn->base.request.newest_known = own->previous_run;
    if (failed) {
        http_turn_give_up(&turn->base.http, failed);
    } else if (!later) {
        guest_turn_go_on(&turn->base, own->mark);
    } else {
        own->head =
            run_head_look(http_turn_sessions(&turn->base.http),
                          route_loop(turn->base.http.call), result->run, on_later, turn);
    }
}

static void responses_begin(struct guest_turn *base, uint64_t mark) {
    struct api_turn *turn = api_turn_of(base);
    struct responding *own = responding_of(turn);
    if (!own->previous_run) {
        guest_turn_go_on(base, mark);
        return;
    }
    own->mark = mark;
    own->asked = asked_look(&(struct asked_options){
        .loop = route_loop(base->http.call),
        .sessions = http_turn_sessions(&base->http),
        .name = {base->http.workspace, base->http.user, base->request.session},
        .on_answer = on_newest,
        .ctx = turn});
}

/* --- one body ----------------------------------------------------------------------------- */

void responding_write(const struct api_turn *turn, const struct event *last, struct buf *out) {
    struct json_writer json = json_writer(out);
    response_write(&responding_of(turn)->response, last, &json);
}

void responding_reply(const struct api_turn *turn, const struct event *last) {
    struct route_json reply;
    response_write(&responding_of(turn)->response, last,
                   route_json_begin(&reply, RESPONSE_MAX_BYTES));
    route_json_reply(&reply, turn->base.http.call, 200);
}

void responding_note(struct api_turn *turn, const struct event *event) {
    struct responding *own = responding_of(turn);
    api_turn_note(turn, event);
    if (!own->seen) own->response.after_seq = event->seq - 1;
    own->seen = true;
    response_fold(&own->response, event, guest_turn_shows(&turn->base, event));
}

/* A background response is answered as soon as its run has begun, and goes on alone. */
static void answer_early(struct api_turn *turn) {
    struct responding *own = responding_of(turn);
    own->answered = true;
    http_turn_leave_run(&turn->base.http, CAUSE_LEFT);
    responding_reply(turn, NULL);
}

static void responses_project(const struct event *event, enum close_frame frame, void *ctx) {
    struct api_turn *turn = ctx;
    struct responding *own = responding_of(turn);
    if (own->answered) return;
    responding_note(turn, event);
    if (frame == FRAME_REPLY) {
        responding_reply(turn, event);
    } else if (own->response.background) {
        answer_early(turn);
    }
}

static void responses_ended(struct close_ending ending, enum close_cause cause,
                            const struct event *last, void *ctx) {
    struct api_turn *turn = ctx;
    if (ending.status == ERR_NONE || responding_of(turn)->answered) return;
    if (!api_turn_ends_filtered(turn, ending.status, cause, last)) return;
    responding_note(turn, last);
    responding_reply(turn, last);
}

static const struct stream_wire whole_wire = {
    .judge = stream_judge_question,
    .project = responses_project,
    .queued = http_turn_queued,
    .wake_at = http_turn_wake_at,
    .stalled_ms = http_turn_stalled_ms,
    .ended = responses_ended,
};

/* --- typed events ------------------------------------------------------------------------- */

/* Between the two what is folded is sent, unless the call was cut. Returns what the second takes. */
static size_t frames_begin(struct api_turn *turn) {
    struct response *response = &responding_of(turn)->response;
    response->out = route_sse_out(turn->base.http.call);
    return response->out ? response->out->len : 0;
}

static void frames_end(struct api_turn *turn, size_t begin) {
    struct response *response = &responding_of(turn)->response;
    if (response->out) route_sse_wrote(turn->base.http.call, begin);
    response->out = NULL;
}

static void events_project(const struct event *event, enum close_frame frame, void *ctx) {
    struct api_turn *turn = ctx;
    (void)frame;
    size_t begin = frames_begin(turn);
    responding_note(turn, event);
    frames_end(turn, begin);
}

static void events_project_texts(struct str texts, size_t count, void *ctx) {
    struct api_turn *turn = ctx;
    struct responding *own = responding_of(turn);
    struct str agent, text;
    (void)count;
    size_t begin = frames_begin(turn);
    while (event_next_text(&texts, &agent, &text)) response_fold_text(&own->response, text);
    frames_end(turn, begin);
}

static void events_fail(struct api_turn *turn, enum close_cause cause, enum err_code status) {
    struct str message;
    struct api_failure error = api_turn_failure(cause, status, NULL, &message);
    size_t begin = frames_begin(turn);
    response_fail(&responding_of(turn)->response, error.code, message);
    frames_end(turn, begin);
}

static void events_ended(struct close_ending ending, enum close_cause cause,
                         const struct event *last, void *ctx) {
    struct api_turn *turn = ctx;
    if (!http_turn_may_end(&turn->base.http, ending, cause)) return;
    if (!last) events_fail(turn, cause, ending.status);
    route_sse_end(turn->base.http.call);
}

const struct stream_wire responding_events_wire = {
    .judge = stream_judge_question,
    .project = events_project,
    .project_texts = events_project_texts,
    .gather = http_turn_gather,
    .leave_now = http_turn_leave_now,
    .queued = http_turn_queued,
    .wake_at = http_turn_wake_at,
    .stalled_ms = http_turn_stalled_ms,
    .heartbeat = http_turn_heartbeat,
    .ended = events_ended,
};

static void responses_ask_again(struct guest_turn *base, const struct event *question) {
    struct api_turn *turn = api_turn_of(base);
    struct responding *own = responding_of(turn);
    api_turn_note_origin(turn);
    own->response.after_seq = question->seq - 1;
    own->seen = true;
    if (base->http.mode != CLOSE_SINGLE) {
        route_sse_begin(base->http.call);
        events_project(question, FRAME_DONE, turn);
        route_sse_end(base->http.call);
    } else {
        responding_note(turn, question);
        responding_reply(turn, question);
    }
}

static const struct guest_form responses_form = {.contract = STR_INIT(OPENAI_CONTRACT),
                                                 .read = responses_read,
                                                 .prepare = responses_prepare,
                                                 .begin = responses_begin,
                                                 .whole = &whole_wire,
                                                 .stream = &responding_events_wire,
                                                 .refuse = api_turn_refuse,
                                                 .refuse_for = api_turn_refuse_for,
                                                 .ask_again = responses_ask_again,
                                                 .free = responding_free};

void openai_create_response(struct route_call *call, void *ctx) {
    struct contract_caller caller;
    if (!guest_enter(call, ctx, &caller)) return;
    guest_turn_serve(&responding_new()->base, call, ctx, &responses_form, &caller);
}
