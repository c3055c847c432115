#include "contract/openai/turn.h"

#include "base/id.h"
#include "base/mem.h"
#include "session/decision.h"
#include "toolserver/sessions.h"
#include "wire/digest.h"

#include <stdlib.h>

#define NO_USER STR("anonymous")

static const struct http_turn_kind turn_kind;

static struct turn *turn_of(struct http_turn *http) {
    return CONTAINER_OF(http, struct turn, http);
}

static void turn_free(struct http_turn *http) {
    struct turn *turn = turn_of(http);
    http_turn_done(http);
    completion_done(&turn->completion);
    text_done(&turn->head);
    free(turn);
}

/* --- refusals ----------------------------------------------------------------------------- */

static void turn_refuse(struct http_turn *http, const struct err *why) {
    if (why->code == ERR_NOT_FOUND) {
        api_error_of_model(http->call, why);
    } else {
        api_error_of_request(http->call, why, turn_of(http)->param);
    }
}

static void turn_refuse_with(struct turn *turn, enum err_code code, const char *message) {
    struct err e;
    err_set(&e, code, "%s", message);
    http_turn_give_up(&turn->http, &e);
}

static void turn_refuse_key(struct http_turn *http) {
    static const struct api_error reused = {409, STR_INIT("invalid_request_error"),
                                          STR_INIT("idempotency_key_reused"), false};
    api_error_answer(http->call, &reused,
                   STR("this idempotency key was used for another request; send a new key, or "
                       "the same body as then"),
                   STR_EMPTY);
    http_turn_end(http);
}

/* --- starting ----------------------------------------------------------------------------- */

/* A conversation of its own, unless the caller names one. */
static bool turn_name_session(struct turn *turn, struct str *ret, struct err *e) {
    char id[TOOLSERVER_SESSION_BYTES];
    *ret = turn->request.session;
    if (ret->len) return true;
    return toolserver_random_id(id, e) &&
           (arena_str(turn->http.arena, str_from(id), ret) ||
            err_set(e, ERR_TOO_LARGE, "the request is larger than a turn may hold"));
}

static void turn_start(struct turn *turn, uint64_t mark) {
    const struct openai_request *request = &turn->request;
    struct str session;
    struct err e;
    if (!turn_name_session(turn, &session, &e)) {
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
    turn->completion.session = text_copy(session);
    route_field(turn->http.call, STR("x-session-id"), session);
    http_turn_start(&turn->http, &asked, mark);
}

/* --- decisions ---------------------------------------------------------------------------- */

static void turn_ask_again(struct turn *turn, const struct pending_view *view) {
    struct event event;
    if (!decision_ask_again(view, turn->http.arena, &event)) {
        turn_refuse_with(turn, ERR_TOO_LARGE, "the question is too long to be asked again");
        return;
    }
    turn->completion.run = view->run;
    http_turn_name_run(&turn->http, view->run);
    turn->form->ask_again(turn, &event);
    http_turn_end(&turn->http);
}

/* The last message may be what a run of the session waits for. */
static void turn_settle(struct turn *turn, uint64_t mark) {
    const struct openai_request *request = &turn->request;
    struct err e = {.code = ERR_NONE};
    struct pending_answer answer = {
        .name = {turn->http.workspace, turn->http.user, request->session},
        .text = request->text,
        .rule = PENDING_ONLY_ONE,
        .asks_again = true};
    struct pending_answered answered;
    enum pending_found found;
    turn->completion.session = text_copy(request->session);
    route_field(turn->http.call, STR("x-session-id"), request->session);
    if (http_turn_settle(&turn->http, &answer, mark, &found, &answered, &e)) return;
    if (found == PENDING_UNDECIDED) {
        turn_ask_again(turn, &answered.stays);
    } else if (found == PENDING_REFUSED) {
        err_add(&e, "the question stays open");
        http_turn_give_up(&turn->http, &e);
    } else if (found == PENDING_SEVERAL) {
        turn_refuse_with(turn, ERR_FAILED_PRECONDITION,
                         "several runs of this session wait for a person's answer; give it at "
                         "/weir/v1/approvals, where each has an id");
    } else {
        text_done(&turn->completion.session);
        turn_start(turn, mark);
    }
}

static void turn_begin(struct http_turn *http, uint64_t mark) {
    struct turn *turn = turn_of(http);
    const struct session_name name = {http->workspace, http->user, turn->request.session};
    if (name.session.len && session_has_pending(http_turn_sessions(http), &name)) {
        turn_settle(turn, mark);
    } else {
        turn_start(turn, mark);
    }
}

static void turn_join(struct http_turn *http, uint64_t run, uint64_t seq) {
    http_turn_attach(http, run, seq);
}

static const struct http_turn_kind turn_kind = {.begin = turn_begin,
                                                .join = turn_join,
                                                .refuse_key = turn_refuse_key,
                                                .refuse = turn_refuse,
                                                .free = turn_free};

/* --- the request -------------------------------------------------------------------------- */

static bool take_caller(struct turn *turn, const struct contract_caller *caller,
                        struct err *e) {
    struct http_turn *http = &turn->http;
    struct str user = turn->request.user;
    if (caller->proved && caller->identity.user.len) user = caller->identity.user;
    if (!user.len) user = NO_USER;
    if (!id_check("user", user, e)) {
        turn->param = STR("user");
        return false;
    }
    return (arena_str(http->arena, user, &http->user) &&
            arena_str(http->arena, openai_workspace(turn->instance, caller),
                      &http->workspace)) ||
           err_set(e, ERR_TOO_LARGE, "the request is larger than a turn may hold");
}

static bool take_print(struct turn *turn, struct str body, struct err *e) {
    uint8_t digest[DIGEST_BYTES];
    const struct str parts[] = {body, turn->request.session};
    if (!turn->http.key.len) return true;
    digest_parts(parts, ARRAY_LEN(parts), digest);
    return arena_str(turn->http.arena, str_of(digest, sizeof(digest)), &turn->http.print) ||
           err_set(e, ERR_TOO_LARGE, "the request is larger than a turn may hold");
}

static bool turn_read(struct turn *turn, const struct contract_caller *caller, struct err *e) {
    struct http_turn *http = &turn->http;
    struct str body, session;
    return http_turn_read_headers(http, e) &&
           http_turn_keep(http, route_body(http->call), &body, e) &&
           http_turn_keep(http, route_header(http->call, STR("x-session-id")), &session, e) &&
           turn->form->read(turn, body, session, e) && take_caller(turn, caller, e) &&
           take_print(turn, body, e);
}

void turn_serve(struct route_call *call, struct openai_instance *instance,
                const struct turn_form *form) {
    struct contract_caller caller;
    struct err e;
    if (!openai_enter(call, instance, &caller)) return;
    struct turn *turn = MEM_NEW(struct turn);
    turn->instance = instance;
    turn->form = form;
    turn->param = STR_EMPTY;
    http_turn_init(&turn->http, &turn_kind, &instance->site, call, CLOSE_SINGLE, form->whole);
    completion_init(&turn->completion);
    if (!turn_read(turn, &caller, &e)) {
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

bool turn_shows(const struct turn *turn, const struct event *event) {
    const struct agent *agent = engine_agent(turn->http.site->host->engine, event->agent);
    return agent && agent->shows_thinking;
}

bool turn_note(struct turn *turn, const struct event *event) {
    turn->completion.run = turn->http.run_id;
    if (event->kind == EVENT_THINKING && !turn_shows(turn, event)) return false;
    return completion_note(&turn->completion, event);
}

struct api_error turn_failure(enum close_cause cause, enum err_code status,
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

void turn_write_id(const struct turn *turn, const char *prefix, struct buf *out) {
    buf_append(out, str_from(prefix));
    buf_append_u64(out, turn->completion.run);
}
