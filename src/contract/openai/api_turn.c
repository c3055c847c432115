#include "contract/openai/api_turn.h"

#include "base/id.h"
#include "base/mem.h"
#include "session/decision.h"
#include "toolserver/sessions.h"
#include "wire/digest.h"

#include <stdlib.h>

#define NO_USER STR("anonymous")

static const struct http_turn_kind api_turn_kind;

static struct api_turn *api_turn_of(struct http_turn *http) {
    return CONTAINER_OF(http, struct api_turn, http);
}

static void api_turn_free(struct http_turn *http) {
    struct api_turn *turn = api_turn_of(http);
    http_turn_done(http);
    if (turn->form->free) turn->form->free(turn);
    completion_done(&turn->completion);
    text_done(&turn->head);
    free(turn);
}

/* --- refusals ----------------------------------------------------------------------------- */

static void api_turn_refuse(struct http_turn *http, const struct err *why) {
    if (why->code == ERR_NOT_FOUND) {
        api_error_of_model(http->call, why);
    } else {
        api_error_of_request(http->call, why, api_turn_of(http)->param);
    }
}

static void api_turn_refuse_with(struct api_turn *turn, enum err_code code,
                                 const char *message) {
    struct err e;
    err_set(&e, code, "%s", message);
    http_turn_give_up(&turn->http, &e);
}

void api_turn_refuse_as(struct api_turn *turn, int status, struct str code, struct str message,
                        struct str param) {
    const struct api_error error = {status, STR("invalid_request_error"), code, false};
    route_watch(turn->http.call, NULL, NULL);
    api_error_answer(turn->http.call, &error, message, param);
    http_turn_end(&turn->http);
}

static void api_turn_refuse_key(struct http_turn *http) {
    api_turn_refuse_as(
        api_turn_of(http), 409, STR("idempotency_key_reused"),
        STR("this idempotency key was used for another request; send a new key, or "
            "the same body as then"),
        STR_EMPTY);
}

/* --- starting ----------------------------------------------------------------------------- */

/* A conversation of its own, unless the caller names one. */
static bool api_turn_name_session(struct api_turn *turn, struct str *ret, struct err *e) {
    char id[TOOLSERVER_SESSION_BYTES];
    *ret = turn->request.session;
    if (ret->len) return true;
    return toolserver_random_id(id, e) &&
           (arena_str(turn->http.arena, str_from(id), ret) ||
            err_set(e, ERR_TOO_LARGE, "the request is larger than a turn may hold"));
}

static void api_turn_start(struct api_turn *turn, uint64_t mark) {
    const struct openai_request *request = &turn->request;
    struct str session;
    struct err e;
    if (!api_turn_name_session(turn, &session, &e)) {
        http_turn_give_up(&turn->http, &e);
        return;
    }
    struct run_request asked = {
        .name = {turn->http.workspace, turn->http.user, session},
        .agent = request->model,
        .text = request->text,
        .messages = request->messages,
        .message_count = request->message_count,
        .brought = request->session.len ? BROUGHT_MERGE : BROUGHT_WHOLE,
        .schema = request->schema,
        .tools = request->tools,
        .tool_count = request->tool_count,
        .tool_choice = request->tool_choice,
        .extras = request->extras,
        .contract = STR(OPENAI_CONTRACT),
    };
    text_done(&turn->completion.session);
    turn->completion.session = text_copy(session);
    route_field(turn->http.call, STR("x-session-id"), session);
    http_turn_start(&turn->http, &asked, mark);
}

/* --- decisions ---------------------------------------------------------------------------- */

static void api_turn_ask_again(struct api_turn *turn, const struct pending_view *view) {
    struct event event;
    if (!decision_ask_again(view, turn->http.arena, &event)) {
        api_turn_refuse_with(turn, ERR_TOO_LARGE, "the question is too long to be asked again");
        return;
    }
    turn->completion.run = view->run;
    http_turn_name_run(&turn->http, view->run);
    turn->form->ask_again(turn, &event);
    http_turn_end(&turn->http);
}

static void api_turn_refuse_unasked(struct api_turn *turn) {
    api_turn_refuse_with(turn, ERR_FAILED_PRECONDITION,
                         "no run of this session waits with this approval request: it was "
                         "answered, or the run is over");
}

/* The last message may be what a run of the session waits for. */
static void api_turn_settle(struct api_turn *turn, uint64_t mark) {
    const struct openai_request *request = &turn->request;
    struct err e = {.code = ERR_NONE};
    struct pending_answer answer = {
        .name = {turn->http.workspace, turn->http.user, request->session},
        .text = request->text,
        .rule = PENDING_ONLY_ONE,
        .run = request->approval_run,
        .seq = request->approval_seq,
        .asks_again = true};
    struct pending_answered answered;
    enum pending_found found;
    if (!turn->completion.model.len) /* the run began elsewhere, and does not say it again */
        turn->completion.model = text_copy(turn->http.site->host->engine->agents[0].slug);
    text_done(&turn->completion.session);
    turn->completion.session = text_copy(request->session);
    route_field(turn->http.call, STR("x-session-id"), request->session);
    if (http_turn_settle(&turn->http, &answer, mark, &found, &answered, &e)) return;
    if (found == PENDING_UNDECIDED) {
        api_turn_ask_again(turn, &answered.stays);
    } else if (found == PENDING_REFUSED) {
        err_add(&e, "the question stays open");
        http_turn_give_up(&turn->http, &e);
    } else if (found == PENDING_SEVERAL) {
        api_turn_refuse_with(
            turn, ERR_FAILED_PRECONDITION,
            "several runs of this session wait for a person's answer; give it at "
            "/weir/v1/approvals, where each has an id");
    } else if (request->approval_run) {
        api_turn_refuse_unasked(turn);
    } else {
        api_turn_start(turn, mark);
    }
}

void api_turn_go_on(struct api_turn *turn, uint64_t mark) {
    struct http_turn *http = &turn->http;
    const struct session_name name = {http->workspace, http->user, turn->request.session};
    uint64_t named = turn->request.approval_run;
    bool waits = name.session.len && session_has_pending(http_turn_sessions(http), &name);
    if (named && !(name.session.len && http_turn_may_answer(http, &name, named))) {
        api_turn_refuse_unasked(turn);
    } else if (named || waits) {
        api_turn_settle(turn, mark);
    } else {
        api_turn_start(turn, mark);
    }
}

static void api_turn_begin(struct http_turn *http, uint64_t mark) {
    struct api_turn *turn = api_turn_of(http);
    if (turn->form->begin) {
        turn->form->begin(turn, mark);
    } else {
        api_turn_go_on(turn, mark);
    }
}

static void api_turn_join(struct http_turn *http, uint64_t run, uint64_t seq) {
    http_turn_attach(http, run, seq);
}

static const struct http_turn_kind api_turn_kind = {.begin = api_turn_begin,
                                                    .join = api_turn_join,
                                                    .refuse_key = api_turn_refuse_key,
                                                    .refuse = api_turn_refuse,
                                                    .free = api_turn_free};

/* --- the request -------------------------------------------------------------------------- */

bool api_turn_take_caller(struct api_turn *turn, const struct contract_caller *caller,
                          struct err *e) {
    struct http_turn *http = &turn->http;
    struct str user = turn->request.user;
    turn->user_proved = caller->proved && caller->identity.user.len;
    if (turn->user_proved) user = caller->identity.user;
    if (!user.len) user = NO_USER;
    if (!id_check("user", user, e)) {
        turn->param = STR("user");
        return false;
    }
    return (arena_str(http->arena, user, &http->user) &&
            arena_str(http->arena, guest_workspace(&turn->instance->guest, caller),
                      &http->workspace)) ||
           err_set(e, ERR_TOO_LARGE, "the request is larger than a turn may hold");
}

static bool take_print(struct api_turn *turn, struct str body, struct err *e) {
    uint8_t digest[DIGEST_BYTES];
    const struct str parts[] = {body, turn->request.session};
    if (!turn->http.key.len) return true;
    digest_parts(parts, ARRAY_LEN(parts), digest);
    return arena_str(turn->http.arena, str_of(digest, sizeof(digest)), &turn->http.print) ||
           err_set(e, ERR_TOO_LARGE, "the request is larger than a turn may hold");
}

static bool api_turn_read(struct api_turn *turn, const struct contract_caller *caller,
                          struct err *e) {
    struct http_turn *http = &turn->http;
    struct str body, session;
    return http_turn_read_headers(http, e) &&
           http_turn_keep(http, route_body(http->call), &body, e) &&
           http_turn_keep(http, route_header(http->call, STR("x-session-id")), &session, e) &&
           turn->form->read(turn, body, session, e) && api_turn_take_caller(turn, caller, e) &&
           take_print(turn, body, e);
}

struct api_turn *api_turn_new(struct route_call *call, struct openai_instance *instance,
                              const struct api_turn_form *form) {
    struct api_turn *turn = MEM_NEW(struct api_turn);
    turn->instance = instance;
    turn->form = form;
    turn->param = STR_EMPTY;
    turn->request = OPENAI_REQUEST_NONE;
    http_turn_init(&turn->http, &api_turn_kind, &instance->guest.site, call, CLOSE_SINGLE,
                   form->whole);
    completion_init(&turn->completion);
    if (form->open) form->open(turn);
    return turn;
}

void api_turn_serve(struct route_call *call, struct openai_instance *instance,
                    const struct api_turn_form *form) {
    struct contract_caller caller;
    struct err e;
    if (!openai_enter(call, instance, &caller)) return;
    struct api_turn *turn = api_turn_new(call, instance, form);
    if (!api_turn_read(turn, &caller, &e)) {
        http_turn_give_up(&turn->http, &e);
        return;
    }
    const struct openai_request *request = &turn->request;
    turn->wants_usage = request->wants_usage;
    turn->completion.shaped = request->schema.len > 0;
    turn->completion.keeps_text = !request->streams;
    if (request->model.len) turn->completion.model = text_copy(request->model);
    if (request->streams) {
        turn->http.mode = CLOSE_DONE;
        turn->http.wire = form->stream;
    }
    http_turn_enter(&turn->http);
}

/* --- for the forms ------------------------------------------------------------------------ */

bool api_turn_shows(const struct api_turn *turn, const struct event *event) {
    const struct agent *agent = engine_agent(turn->http.site->host->engine, event->agent);
    return agent && agent->shows_thinking;
}

bool api_turn_note(struct api_turn *turn, const struct event *event) {
    turn->completion.run = turn->http.run_id;
    if (event->kind == EVENT_THINKING && !api_turn_shows(turn, event)) return false;
    return completion_note(&turn->completion, event);
}

struct api_error api_turn_failure(enum close_cause cause, enum err_code status,
                                  const struct event *last, struct str *ret_message) {
    if (last && last->kind == EVENT_FAILED) {
        *ret_message = last->failed.message;
        return api_error_of_failure(last->failed.code, last->failed.reason, last->failed.acted);
    }
    if (last && last->kind == EVENT_CANCELLED) {
        *ret_message = last->cancelled.message;
        return api_error_of_code(ERR_CANCELLED);
    }
    *ret_message = STR("the answer was cut short");
    if (cause != CAUSE_STOPPING) return api_error_of_code(status);
    *ret_message = STR("the answer was cut short: the server stops");
    return api_error_of_code(ERR_UNAVAILABLE);
}

void api_turn_write_id(const struct api_turn *turn, const char *prefix, struct buf *out) {
    buf_append(out, str_from(prefix));
    buf_append_u64(out, turn->completion.run);
}
