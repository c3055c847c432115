/* responses_stored: a response is read again, followed, or cancelled.
 *
 *     id ─▶ the run's first event says whose it is ─▶ live: what there is so far
 *                                                    over: read from the store
 */
#include "contract/openai/responses.h"

#include "journal/journal.h"
#include "session/directory.h"
#include "stream/stream.h"

static struct responding *stored_of(const struct api_turn *turn) {
    return turn->own;
}

static void refuse_unknown(struct api_turn *turn) {
    api_turn_refuse_as(
        turn, 404, STR("response_not_found"),
        STR("there is no such response; it was not stored, or belongs to another "
            "caller"),
        STR("response_id"));
}

/* --- from the store, or until its end ------------------------------------------------------- */

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
    if (ending.status == ERR_NONE || turn->http.gone) return;
    if (last) {
        responding_note(turn, last);
        responding_reply(turn, last);
        return;
    }
    struct api_error error = api_turn_failure(cause, ending.status, NULL, &message);
    api_error_answer(turn->http.call, &error, message, STR_EMPTY);
}

static const struct stream_wire stored_wire = {
    .judge = responding_judge,
    .project = stored_project,
    .queued = http_turn_queued,
    .wake_at = http_turn_wake_at,
    .stalled_ms = http_turn_stalled_ms,
    .ended = stored_ended,
};

static const struct api_turn_form stored_form = {
    .open = responding_open, .free = responding_free, .whole = &stored_wire};

/* --- a live run --------------------------------------------------------------------------- */

static bool reply_at_end(struct api_turn *turn, const struct event *event) {
    responding_note(turn, event);
    if (event->kind != EVENT_APPROVAL && !event_is_terminal(event->kind)) return false;
    responding_reply(turn, event);
    return true;
}

/* What there is so far. False: the run is not alive. A run that is longer than what its journal
 * has in memory is shown without its output until it ends. */
static bool read_live(struct api_turn *turn) {
    struct responding *own = stored_of(turn);
    struct directory *directory = session_table_directory(http_turn_sessions(&turn->http));
    struct live_view view;
    struct cursor *cursor;
    struct event event;
    struct err e;
    bool ended = false;
    if (!directory_find(directory, own->run, &view)) return false;
    turn->completion.run = turn->http.run_id = own->run;
    if (cursor_open(view.journal, own->response.after_seq, route_loop(turn->http.call), NULL,
                    NULL, &cursor, &e)) {
        while (!ended && cursor_next(cursor, &event)) ended = reply_at_end(turn, &event);
        cursor_close(cursor);
    }
    live_view_done(&view);
    if (!ended) responding_reply(turn, NULL);
    return true;
}

/* --- what is wished ----------------------------------------------------------------------- */

static void take_head(struct api_turn *turn, const struct event *started) {
    struct response *response = &stored_of(turn)->response;
    struct json extras = json_of(started->started.extras);
    struct json own = json_find(extras, STR(OPENAI_CONTRACT));
    struct str previous;
    response->background = json_find(own, STR("background")).kind == JSON_TRUE;
    turn->completion.shaped = json_find(own, STR("shaped")).kind == JSON_TRUE;
    turn->completion.model = text_copy(started->agent);
    turn->completion.session = text_copy(started->started.session);
    response->metadata = text_copy(json_find(extras, STR("metadata")).raw);
    if (json_str(json_find(own, STR("previous")), turn->http.arena, &previous))
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
    struct responding *own = stored_of(turn);
    struct http_turn *http = &turn->http;
    uint64_t after_seq = own->response.after_seq;
    own->seen = true;
    switch (own->wish) {
    case WISH_READ:
        if (read_live(turn)) {
            http_turn_end(http);
        } else {
            http_turn_attach(http, own->run, after_seq);
        }
        break;
    case WISH_STREAM:
        http->mode = CLOSE_DONE;
        http->wire = &responding_events_wire;
        http_turn_attach(http, own->run, after_seq);
        break;
    case WISH_CANCEL:
        directory_cancel(session_table_directory(http_turn_sessions(http)), own->run,
                         STR("the response was cancelled by its caller"));
        http_turn_attach(http, own->run, after_seq);
        break;
    case WISH_DELETE: refuse_delete(turn); break;
    }
}

static void on_head(const struct event *started, const struct err *failed, void *ctx) {
    struct api_turn *turn = ctx;
    stored_of(turn)->head = NULL;
    if (failed) {
        http_turn_give_up(&turn->http, failed);
    } else if (!started || !responding_owns(turn, started)) {
        refuse_unknown(turn);
    } else {
        take_head(turn, started);
        grant(turn);
    }
}

/* --- the request -------------------------------------------------------------------------- */

static bool take_id(struct api_turn *turn) {
    struct responding *own = stored_of(turn);
    struct buf id;
    buf_init(&id, KIB);
    bool reads = route_parameter_text(turn->http.call, STR("id"), &id) &&
                 response_read_id(buf_str(&id), &own->run, &own->response.after_seq);
    buf_done(&id);
    return reads;
}

/* ?stream=true&starting_after=7 */
static void take_query(struct api_turn *turn) {
    struct responding *own = stored_of(turn);
    struct buf text;
    uint64_t number;
    buf_init(&text, KIB);
    if (route_query(turn->http.call, STR("stream"), &text) &&
        str_equal(buf_str(&text), STR("true")))
        own->wish = WISH_STREAM;
    buf_clear(&text);
    if (route_query(turn->http.call, STR("starting_after"), &text) &&
        str_to_u64(buf_str(&text), &number) && number < UINT64_MAX)
        own->response.first_sequence = number + 1;
    buf_done(&text);
}

static void serve(struct route_call *call, struct openai_instance *instance,
                  enum responding_wish wish) {
    struct contract_caller caller;
    struct err e;
    if (!openai_enter(call, instance, &caller)) return;
    struct api_turn *turn = api_turn_new(call, instance, &stored_form);
    struct responding *own = stored_of(turn);
    own->wish = wish;
    if (!api_turn_take_caller(turn, &caller, &e)) {
        http_turn_give_up(&turn->http, &e);
    } else if (!take_id(turn)) {
        refuse_unknown(turn);
    } else {
        if (wish == WISH_READ) take_query(turn);
        http_turn_watch(&turn->http);
        own->head = run_head_look(http_turn_sessions(&turn->http), route_loop(call), own->run,
                                  on_head, turn);
    }
}

void openai_get_response(struct route_call *call, void *ctx) {
    serve(call, ctx, WISH_READ);
}

void openai_cancel_response(struct route_call *call, void *ctx) {
    serve(call, ctx, WISH_CANCEL);
}

void openai_delete_response(struct route_call *call, void *ctx) {
    serve(call, ctx, WISH_DELETE);
}
