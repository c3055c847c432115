/* responses_stored: a response is read again, followed, or cancelled.
 *
 *     id ─▶ the run's first event says whose it is ─▶ read: from its journal, or the store, and
 *                                                     answered with what there is so far
 *                                                  ─▶ followed: its events from the beginning
 *                                                  ─▶ cancelled: answered when the run has ended
 *
 * A response that asks a person ends with the question. If its run is cancelled while it waits, the
 * response is cancelled.
 */
#include "contract/openai/responses.h"

#include "journal/journal.h"
#include "session/directory.h"
#include "stream/stream.h"

static void refuse_unknown(struct api_turn *turn) {
    api_turn_refuse_as(
        turn, 404, STR("response_not_found"),
        STR("there is no such response; it was not stored, or belongs to another "
            "caller"),
        STR("response_id"));
}

/* --- what there is so far ----------------------------------------------------------------- */

/* Between a question and its answer a run only keeps what else was said (answers.c). One that is
 * cancelled instead answers its open calls with an error. */
static bool stored_waits(const struct event *event) {
    if (event->kind != EVENT_TOOL_RESULT) return event->kind == EVENT_ITEM;
    return event->tool_result.error &&
           !str_starts(event->tool_result.call_id, STR(EVENT_APPROVAL_ID));
}

static bool stored_goes_on(struct responding *own, const struct event *event) {
    bool asked = own->body.len > 0;
    if (own->over || (asked && stored_waits(event))) return !own->over;
    own->over = asked || event_is_terminal(event->kind);
    return !asked || event->kind == EVENT_CANCELLED;
}

static void stored_take(struct api_turn *turn, const struct event *event) {
    struct responding *own = responding_of(turn);
    if (own->wish == WISH_INPUT) {
        response_input_take(&own->input, event);
        return;
    }
    if (!stored_goes_on(own, event)) return;
    responding_note(turn, event);
    if (event->kind != EVENT_APPROVAL && !own->over) return;
    buf_clear(&own->body);
    responding_write(turn, event, &own->body);
}

static void input_reply(struct api_turn *turn) {
    struct responding *own = responding_of(turn);
    struct json_writer json = json_writer(&own->body);
    own->input.run = own->run;
    own->input.approval_seq = own->response.after_seq;
    response_input_write(&own->input, &own->page, &json);
}

/* A run that could not be cancelled and has not ended is in another process. */
static void refuse_elsewhere(struct api_turn *turn) {
    static const struct api_failure error = {409, STR_INIT("invalid_request_error"),
                                             STR_INIT("response_elsewhere"), false};
    api_error_answer(
        turn->base.http.call, &error,
        STR("another replica works on this response, and it was not cancelled; ask "
            "that replica, or cancel it there with /weir/v1/runs/{id}/cancel"),
        STR("response_id"));
}

static void stored_reply(struct api_turn *turn) {
    struct responding *own = responding_of(turn);
    if (own->wish == WISH_CANCEL && !own->over) {
        refuse_elsewhere(turn);
        return;
    }
    if (own->wish == WISH_INPUT) input_reply(turn);
    if (own->body.len) {
        route_reply(turn->base.http.call, 200, STR("application/json"), buf_str(&own->body));
    } else {
        responding_reply(turn, NULL);
    }
}

/* False: the run is not alive, or its journal does not go back that far. */
static bool read_live(struct api_turn *turn) {
    struct responding *own = responding_of(turn);
    struct directory *directory = session_table_directory(http_turn_sessions(&turn->base.http));
    struct live_view view;
    struct cursor *cursor;
    struct event event;
    struct err e;
    if (!directory_find(directory, own->run, &view)) return false;
    bool opened = cursor_open(view.journal, own->response.after_seq,
                              route_loop(turn->base.http.call), NULL, NULL, &cursor, &e);
    while (opened && cursor_next(cursor, &event)) stored_take(turn, &event);
    if (opened) cursor_close(cursor);
    live_view_done(&view);
    if (opened) stored_reply(turn);
    return opened;
}

static void on_scanned_event(const struct event *event, uint64_t seq, void *ctx) {
    struct api_turn *turn = ctx;
    struct event numbered = *event;
    numbered.seq = seq;
    if (seq > responding_of(turn)->response.after_seq) stored_take(turn, &numbered);
}

static void on_scanned(const struct err *failed, void *ctx) {
    struct api_turn *turn = ctx;
    responding_of(turn)->scan = NULL;
    if (failed) {
        http_turn_give_up(&turn->base.http, failed);
        return;
    }
    route_watch(turn->base.http.call, NULL, NULL);
    stored_reply(turn);
    http_turn_end(&turn->base.http);
}

/* A run that goes on elsewhere, or has left memory, is shown as the store has it. */
static void read_store(struct api_turn *turn) {
    struct responding *own = responding_of(turn);
    own->summary.run = own->run;
    own->summary.each = on_scanned_event;
    own->summary.each_ctx = turn;
    own->scan = run_scan_start(route_loop(turn->base.http.call),
                               session_table_store(http_turn_sessions(&turn->base.http)),
                               &own->summary, on_scanned, turn);
}

static void stored_read(struct api_turn *turn) {
    turn->completion.run = turn->base.http.run_id = responding_of(turn)->run;
    if (read_live(turn)) {
        http_turn_end(&turn->base.http);
    } else {
        read_store(turn);
    }
}

/* --- until its end ------------------------------------------------------------------------ */

static enum stream_verdict stored_judge(const struct event *event, void *ctx) {
    (void)ctx;
    return stream_judge(event); /* also past a question */
}

static void stored_project(const struct event *event, enum close_frame frame, void *ctx) {
    struct api_turn *turn = ctx;
    responding_note(turn, event);
    if (frame == FRAME_REPLY) responding_reply(turn, event);
}

/* A response that failed can be read as well as one that did not. */
static void stored_ended(struct close_ending ending, enum close_cause cause,
                         const struct event *last, void *ctx) {
    struct api_turn *turn = ctx;
    struct str message;
    if (ending.status == ERR_NONE || turn->base.http.gone) return;
    if (last) {
        responding_note(turn, last);
        responding_reply(turn, last);
        return;
    }
    struct api_failure error = api_turn_failure(cause, ending.status, NULL, &message);
    api_error_answer(turn->base.http.call, &error, message, STR_EMPTY);
}

static const struct stream_wire stored_wire = {
    .judge = stored_judge,
    .project = stored_project,
    .queued = http_turn_queued,
    .wake_at = http_turn_wake_at,
    .stalled_ms = http_turn_stalled_ms,
    .ended = stored_ended,
};

static const struct guest_form stored_form = {
    .refuse = api_turn_refuse, .free = responding_free, .whole = &stored_wire};

/* One that ended before is read as it ended. */
static void responses_stored_on_cancel(enum cancel_run_answer answer, const struct err *failed,
                                       void *ctx) {
    struct api_turn *turn = ctx;
    struct responding *own = responding_of(turn);
    turn->base.http.cancel = NULL;
    switch (answer) {
    case CANCEL_RUN_ASKED:
        http_turn_attach(&turn->base.http, own->run, own->response.after_seq);
        break;
    case CANCEL_RUN_OVER: stored_read(turn); break;
    case CANCEL_RUN_FAILED: http_turn_give_up(&turn->base.http, failed); break;
    }
}

static void stored_cancel(struct api_turn *turn) {
    struct http_turn *http = &turn->base.http;
    http->cancel = cancel_run_start(
        http_turn_sessions(http), route_loop(http->call), responding_of(turn)->run,
        STR("the response was cancelled by its caller"), responses_stored_on_cancel, turn);
}

/* --- what is wished ----------------------------------------------------------------------- */

static void take_head(struct api_turn *turn, const struct event *started) {
    struct response *response = &responding_of(turn)->response;
    struct json extras = json_of(started->started.extras);
    struct json own = json_find(extras, STR(OPENAI_CONTRACT));
    struct str previous;
    response->background = json_find(own, STR("background")).kind == JSON_TRUE;
    turn->completion.shaped = json_find(own, STR("shaped")).kind == JSON_TRUE;
    turn->completion.model = text_copy(started->agent);
    turn->completion.session = text_copy(started->started.session);
    response->metadata = text_copy(json_find(extras, STR("metadata")).raw);
    if (json_str(json_find(own, STR("previous")), turn->base.http.arena, &previous))
        response->previous = text_copy(previous);
}

static void refuse_delete(struct api_turn *turn) {
    api_turn_refuse_as(
        turn, 400, STR("unsupported"),
        STR("a response is part of its conversation, which is deleted as a whole: "
            "DELETE /weir/v1/sessions/{id}, with the session in its member weir"),
        STR_EMPTY);
}

static void grant(struct api_turn *turn) {
    struct responding *own = responding_of(turn);
    struct http_turn *http = &turn->base.http;
    own->seen = true;
    switch (own->wish) {
    case WISH_READ:
    case WISH_INPUT: stored_read(turn); break;
    case WISH_STREAM:
        http->mode = CLOSE_DONE;
        http->wire = &responding_events_wire;
        http_turn_attach(http, own->run, own->response.after_seq);
        break;
    case WISH_CANCEL: stored_cancel(turn); break;
    case WISH_DELETE: refuse_delete(turn); break;
    }
}

static void on_head(const struct event *started, const struct err *failed, void *ctx) {
    struct api_turn *turn = ctx;
    responding_of(turn)->head = NULL;
    if (failed) {
        http_turn_give_up(&turn->base.http, failed);
    } else if (!started || !responding_owns(turn, started)) {
        refuse_unknown(turn);
    } else {
        take_head(turn, started);
        grant(turn);
    }
}

/* --- the request -------------------------------------------------------------------------- */

static bool take_id(struct api_turn *turn) {
    struct responding *own = responding_of(turn);
    struct buf id;
    buf_init(&id, KIB);
    bool reads = route_parameter_text(turn->base.http.call, STR("id"), &id) &&
                 response_read_id(buf_str(&id), &own->run, &own->response.after_seq);
    buf_done(&id);
    return reads;
}

static bool query_refuse(struct api_turn *turn, const char *name, struct str must) {
    api_turn_refuse_as(turn, 400, STR("invalid_value"), must, str_from(name));
    return false;
}

/* ?stream=true&starting_after=7. False: it was refused. */
static bool take_query(struct api_turn *turn) {
    struct route_call *call = turn->base.http.call;
    struct responding *own = responding_of(turn);
    struct buf text;
    uint64_t number = 0;
    buf_init(&text, KIB);
    enum query_value asked = route_query(call, STR("stream"), &text);
    bool streams = asked == QUERY_READ && str_equal(buf_str(&text), STR("true"));
    bool good = asked == QUERY_ABSENT || streams || str_equal(buf_str(&text), STR("false"));
    buf_clear(&text);
    enum query_value placed = route_query(call, STR("starting_after"), &text);
    bool after = placed == QUERY_READ && str_to_u64(buf_str(&text), &number);
    buf_done(&text);
    if (!good) return query_refuse(turn, "stream", STR("stream: must be true or false"));
    if (placed != QUERY_ABSENT && !after)
        return query_refuse(turn, "starting_after",
                            STR("starting_after: must be the sequence_number of an event"));
    if (streams) own->wish = WISH_STREAM;
    if (after && number < UINT64_MAX) own->response.first_sequence = number + 1;
    return true;
}

/* ?limit=20&order=desc&after=in_7_3. False: it was refused. */
static bool take_page(struct api_turn *turn) {
    struct route_call *call = turn->base.http.call;
    struct responding *own = responding_of(turn);
    struct response_input_page *page = &own->page;
    struct buf text;
    uint64_t number = RESPONSE_INPUT_USUAL;
    buf_init(&text, KIB);
    bool limited =
        route_query(call, STR("limit"), &text) == QUERY_ABSENT ||
        (str_to_u64(buf_str(&text), &number) && number >= 1 && number <= RESPONSE_INPUT_MAX);
    buf_clear(&text);
    enum query_value order = route_query(call, STR("order"), &text);
    page->ascending = str_equal(buf_str(&text), STR("asc"));
    bool ordered = page->ascending || str_equal(buf_str(&text), STR("desc")) ||
                   (order != QUERY_BAD && !text.len);
    buf_clear(&text);
    page->has_after = route_query(call, STR("after"), &text) != QUERY_ABSENT;
    bool placed =
        !page->has_after || response_input_read_id(buf_str(&text), own->run, &page->after);
    buf_done(&text);
    page->limit = (size_t)number;
    if (!limited) return query_refuse(turn, "limit", STR("limit: must be 1 to 100"));
    if (!ordered) return query_refuse(turn, "order", STR("order: must be asc or desc"));
    return placed || query_refuse(turn, "after",
                                  STR("after: must be the id of an item of this response"));
}

static void serve(struct route_call *call, struct openai_instance *instance,
                  enum responding_wish wish) {
    struct contract_caller caller;
    struct err e;
    if (!guest_enter(call, &instance->guest, &caller)) return;
    struct api_turn *turn = responding_new();
    struct responding *own = responding_of(turn);
    guest_turn_init(&turn->base, call, &instance->guest, &stored_form);
    own->wish = wish;
    if (!guest_turn_take_caller(&turn->base, &caller, &e)) {
        http_turn_give_up(&turn->base.http, &e);
    } else if (!take_id(turn)) {
        refuse_unknown(turn);
    } else if ((wish != WISH_INPUT || take_page(turn)) &&
               (wish != WISH_READ || take_query(turn))) {
        http_turn_watch(&turn->base.http);
        own->head = run_head_look(http_turn_sessions(&turn->base.http), route_loop(call),
                                  own->run, on_head, turn);
    }
}

void openai_get_response(struct route_call *call, void *ctx) {
    serve(call, ctx, WISH_READ);
}

void openai_list_input(struct route_call *call, void *ctx) {
    serve(call, ctx, WISH_INPUT);
}

void openai_cancel_response(struct route_call *call, void *ctx) {
    serve(call, ctx, WISH_CANCEL);
}

void openai_delete_response(struct route_call *call, void *ctx) {
    serve(call, ctx, WISH_DELETE);
}
