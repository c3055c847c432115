#include "contract/openai/api_turn.h"

#include "base/mem.h"

#include <stdlib.h>

struct api_turn *api_turn_new(void) {
    struct api_turn *turn = MEM_NEW(struct api_turn);
    completion_init(&turn->completion);
    return turn;
}

void api_turn_free(struct guest_turn *base) {
    struct api_turn *turn = api_turn_of(base);
    completion_done(&turn->completion);
    text_done(&turn->head);
    free(turn);
}

/* --- refusals ----------------------------------------------------------------------------- */

void api_turn_refuse(struct guest_turn *base, const struct err *why) {
    if (why->code == ERR_NOT_FOUND) {
        api_error_of_model(base->http.call, why);
    } else {
        api_error_of_request(base->http.call, why, base->param);
    }
}

void api_turn_refuse_for(struct guest_turn *base, enum guest_refusal why) {
    static const struct {
        struct str code, message;
    } refusals[] = {
        [GUEST_KEY_REUSED] = {STR_INIT("idempotency_key_reused"),
                              STR_INIT("this idempotency key was used for another request; "
                                       "send a new key, or the same body as then")},
        [GUEST_SEVERAL] = {STR_INIT("session_waiting"),
                           STR_INIT("several runs of this session wait for a person's answer; "
                                    "give it at /weir/v1/approvals, where each has an id")},
        [GUEST_NO_QUESTION] = {STR_INIT("session_waiting"),
                               STR_INIT("no run of this session waits with this approval "
                                        "request: it was answered, or the run is over")},
    };
    const struct api_failure error = {409, STR("invalid_request_error"), refusals[why].code,
                                      false};
    api_error_answer(base->http.call, &error, refusals[why].message, STR_EMPTY);
}

void api_turn_refuse_as(struct api_turn *turn, int status, struct str code, struct str message,
                        struct str param) {
    struct http_turn *http = &turn->base.http;
    const struct api_failure error = {status, STR("invalid_request_error"), code, false};
    route_watch(http->call, NULL, NULL);
    api_error_answer(http->call, &error, message, param);
    http_turn_end(http);
}

/* --- what the run comes to ---------------------------------------------------------------- */

void api_turn_expect(struct api_turn *turn, const struct guest_request *request) {
    turn->completion.shaped = request->schema.len > 0;
    turn->completion.keeps_text = !request->streams;
    if (request->agent.len) turn->completion.model = text_copy(request->agent);
}

void api_turn_note_origin(struct api_turn *turn) {
    struct completion *completion = &turn->completion;
    const struct engine *engine = turn->base.http.site->host->engine;
    completion->run = turn->base.http.run_id;
    if (!completion->session.len && turn->base.session.len)
        completion->session = text_copy(text_str(turn->base.session));
    if (!completion->model.len) completion->model = text_copy(engine->agents[0].slug);
}

bool api_turn_note(struct api_turn *turn, const struct event *event) {
    bool hidden = event->kind == EVENT_THINKING && !guest_turn_shows(&turn->base, event);
    if (event->kind != EVENT_STARTED) api_turn_note_origin(turn);
    turn->completion.run = turn->base.http.run_id;
    return !hidden && completion_note(&turn->completion, event);
}

struct api_failure api_turn_failure(enum close_cause cause, enum err_code status,
                                    const struct event *last, struct str *ret_message) {
    if (last && last->kind == EVENT_FAILED) {
        *ret_message = last->failed.message;
        return api_failure_of_run(last->failed.code, last->failed.reason, last->failed.acted);
    }
    if (last && last->kind == EVENT_CANCELLED) {
        *ret_message = last->cancelled.message;
        return api_failure_of_code(ERR_CANCELLED);
    }
    *ret_message = STR("the answer was cut short");
    if (cause != CAUSE_STOPPING) return api_failure_of_code(status);
    *ret_message = STR("the answer was cut short: the server stops");
    return api_failure_of_code(ERR_UNAVAILABLE);
}

bool api_turn_ends_filtered(struct api_turn *turn, enum err_code status, enum close_cause cause,
                            const struct event *last) {
    struct http_turn *http = &turn->base.http;
    struct str message;
    http_turn_leave_run(http, cause);
    if (http->gone) return false;
    if (completion_is_filtered(last)) return true;
    struct api_failure error = api_turn_failure(cause, status, last, &message);
    api_error_answer(http->call, &error, message, STR_EMPTY);
    return false;
}
