#include "contract/guest_turn.h"

#include "base/id.h"
#include "session/decision.h"
#include "session/directory.h"
#include "toolserver/sessions.h"
#include "wire/digest.h"

#define NO_USER STR("anonymous")

static const struct http_turn_kind guest_kind;

static struct guest_turn *guest_turn_of(struct http_turn *http) {
    return CONTAINER_OF(http, struct guest_turn, http);
}

static void guest_turn_free(struct http_turn *http) {
    struct guest_turn *turn = guest_turn_of(http);
    http_turn_done(http);
    run_head_cancel(turn->head);
    text_done(&turn->session);
    turn->form->free(turn);
}

/* --- refusals ----------------------------------------------------------------------------- */

static void guest_turn_refuse(struct http_turn *http, const struct err *why) {
    struct guest_turn *turn = guest_turn_of(http);
    turn->form->refuse(turn, why);
}

static void refuse_for(struct guest_turn *turn, enum guest_refusal why) {
    turn->form->refuse_for(turn, why);
    http_turn_end(&turn->http);
}

static void guest_turn_refuse_key(struct http_turn *http) {
    refuse_for(guest_turn_of(http), GUEST_KEY_REUSED);
}

static bool guest_turn_too_large(struct err *e) {
    return err_set(e, ERR_TOO_LARGE, "the request is larger than a turn may hold");
}

/* --- starting ----------------------------------------------------------------------------- */

/* A conversation of its own, unless the caller names one. */
static bool name_session(struct guest_turn *turn, struct str *ret, struct err *e) {
    char id[TOOLSERVER_SESSION_BYTES];
    *ret = turn->request.session;
    if (ret->len) return true;
    return toolserver_random_id(id, e) &&
           (arena_str(turn->http.arena, str_from(id), ret) || guest_turn_too_large(e));
}

static void take_session(struct guest_turn *turn, struct str session) {
    text_done(&turn->session);
    turn->session = text_copy(session);
}

/* Once, also if the turn begins again; when it is certain which run it reads. */
static void show_session(struct guest_turn *turn) {
    if (turn->session_shown) return;
    turn->session_shown = true;
    route_field(turn->http.call, STR("x-session-id"), text_str(turn->session));
}

static void guest_turn_started(struct http_turn *http, uint64_t run) {
    (void)run;
    show_session(guest_turn_of(http));
}

static void start_run(struct guest_turn *turn, uint64_t mark) {
    const struct guest_request *request = &turn->request;
    struct str session;
    struct err e;
    if (!name_session(turn, &session, &e)) {
        http_turn_give_up(&turn->http, &e);
        return;
    }
    struct run_request asked = {
        .name = {turn->http.workspace, turn->http.user, session},
        .agent = request->agent,
        .text = request->text,
        .messages = request->messages,
        .message_count = request->message_count,
        .brought = request->brought,
        .schema = request->schema,
        .schema_loose = request->schema_loose,
        .system = request->system,
        .tools = request->tools,
        .tool_count = request->tool_count,
        .args_as_text = request->args_as_text,
        .tool_choice = request->tool_choice,
        .options = request->options,
        .extras = request->extras,
        .promised = request->promised,
        .newest_known = request->newest_known,
        .contract = turn->form->contract,
    };
    take_session(turn, session);
    turn->http.words_decide = request->session.len > 0;
    http_turn_start(&turn->http, &asked, mark);
}

/* --- decisions ---------------------------------------------------------------------------- */

static void guest_turn_ask_again(struct guest_turn *turn, const struct pending_view *view) {
    struct event event;
    struct err e;
    if (!decision_ask_again(view, turn->http.arena, &event)) {
        err_set(&e, ERR_TOO_LARGE, "the question is too long to be asked again");
        http_turn_give_up(&turn->http, &e);
        return;
    }
    http_turn_name_run(&turn->http, view->run);
    turn->form->ask_again(turn, &event);
    http_turn_end(&turn->http);
}

/* Words that decide nothing are kept for the model, and the question is asked again. */
static void settle(struct guest_turn *turn, const struct session_name *name, uint64_t mark) {
    const struct guest_request *request = &turn->request;
    struct err e = {.code = ERR_NONE};
    struct pending_answer answer = {.name = *name,
                                    .text = request->text,
                                    .rule = PENDING_ONLY_ONE,
                                    .run = request->approval_run,
                                    .seq = request->approval_seq,
                                    .asks_again = true};
    struct pending_answered answered;
    enum pending_found found;
    take_session(turn, name->session);
    show_session(turn);
    if (http_turn_settle(&turn->http, &answer, mark, &found, &answered, &e)) return;
    if (found == PENDING_UNDECIDED) {
        guest_turn_ask_again(turn, &answered.stays);
    } else if (found == PENDING_REFUSED) {
        err_add(&e, "the question stays open");
        http_turn_give_up(&turn->http, &e);
    } else if (found == PENDING_SEVERAL) {
        refuse_for(turn, GUEST_SEVERAL);
    } else if (request->decides) {
        refuse_for(turn, GUEST_NO_QUESTION);
    } else {
        start_run(turn, mark);
    }
}

void guest_turn_go_on(struct guest_turn *turn, uint64_t mark) {
    struct http_turn *http = &turn->http;
    const struct guest_request *request = &turn->request;
    const struct session_name name = {http->workspace, http->user, request->session};
    bool waits = request->decides ||
                 (name.session.len && session_has_pending(http_turn_sessions(http), &name));
    if (!waits) {
        start_run(turn, mark);
    } else if (name.session.len &&
               session_may_answer(http_turn_sessions(http), &name, request->approval_run)) {
        settle(turn, &name, mark);
    } else {
        refuse_for(turn, GUEST_NO_QUESTION);
    }
}

static void guest_turn_begin(struct http_turn *http, uint64_t mark) {
    struct guest_turn *turn = guest_turn_of(http);
    if (turn->form->begin) {
        turn->form->begin(turn, mark);
    } else {
        guest_turn_go_on(turn, mark);
    }
}

/* --- joining ------------------------------------------------------------------------------ */

static void read_joined(struct guest_turn *turn, struct str session) {
    take_session(turn, session);
    show_session(turn);
    http_turn_attach(&turn->http, turn->joined_run, turn->joined_seq);
}

static void on_joined_head(const struct event *started, const struct err *failed, void *ctx) {
    struct guest_turn *turn = ctx;
    turn->head = NULL;
    if (started) {
        read_joined(turn, started->started.session);
    } else {
        http_turn_miss(&turn->http, failed);
    }
}

/* At once, also if the run still waits for its session. */
static bool read_joined_live(struct guest_turn *turn) {
    struct session_table *sessions = http_turn_sessions(&turn->http);
    struct live_view view;
    if (!directory_find(session_table_directory(sessions), turn->joined_run, &view))
        return false;
    read_joined(turn, view.session);
    live_view_done(&view);
    return true;
}

/* The run that an earlier request with the key began, or what a run did after its decision. A session
 * that the request names is the run's: the print covers it. One that was made up is the earlier
 * request's. */
static void guest_turn_join(struct http_turn *http, uint64_t run, uint64_t seq) {
    struct guest_turn *turn = guest_turn_of(http);
    turn->joined_run = run;
    turn->joined_seq = seq;
    if (turn->request.session.len) {
        read_joined(turn, turn->request.session);
    } else if (!read_joined_live(turn)) {
        turn->head = run_head_look(http_turn_sessions(http), route_loop(http->call), run,
                                   on_joined_head, turn);
    }
}

static const struct http_turn_kind guest_kind = {.begin = guest_turn_begin,
                                                 .started = guest_turn_started,
                                                 .join = guest_turn_join,
                                                 .refuse_key = guest_turn_refuse_key,
                                                 .refuse = guest_turn_refuse,
                                                 .free = guest_turn_free};

/* --- the request -------------------------------------------------------------------------- */

bool guest_turn_take_caller(struct guest_turn *turn, const struct contract_caller *caller,
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
            arena_str(http->arena, guest_workspace(turn->guest, caller), &http->workspace)) ||
           guest_turn_too_large(e);
}

static bool take_print(struct guest_turn *turn, struct str body, struct err *e) {
    uint8_t digest[DIGEST_BYTES];
    const struct str parts[] = {turn->form->contract, turn->request.agent, body,
                                turn->request.session};
    if (!turn->http.key.len) return true;
    digest_parts(parts, ARRAY_LEN(parts), digest);
    return arena_str(turn->http.arena, str_of(digest, sizeof(digest)), &turn->http.print) ||
           guest_turn_too_large(e);
}

static bool read_turn(struct guest_turn *turn, const struct contract_caller *caller,
                      struct err *e) {
    struct http_turn *http = &turn->http;
    struct str body;
    return http_turn_read_headers(http, e) &&
           http_turn_keep(http, route_body(http->call), &body, e) &&
           turn->form->read(turn, body, &turn->request, e) &&
           guest_turn_take_caller(turn, caller, e) && take_print(turn, body, e);
}

void guest_turn_init(struct guest_turn *turn, struct route_call *call, struct guest *guest,
                     const struct guest_form *form) {
    turn->guest = guest;
    turn->form = form;
    http_turn_init(&turn->http, &guest_kind, &guest->site, call, CLOSE_SINGLE, form->whole);
}

void guest_turn_serve(struct guest_turn *turn, struct route_call *call, struct guest *guest,
                      const struct guest_form *form, const struct contract_caller *caller) {
    struct err e;
    guest_turn_init(turn, call, guest, form);
    if (!read_turn(turn, caller, &e)) {
        http_turn_give_up(&turn->http, &e);
        return;
    }
    if (turn->request.streams) {
        turn->http.mode = CLOSE_DONE;
        turn->http.wire = form->stream;
    }
    if (form->prepare) {
        form->prepare(turn);
    } else {
        http_turn_enter(&turn->http);
    }
}

/* --- for the forms ------------------------------------------------------------------------ */

bool guest_turn_shows(const struct guest_turn *turn, const struct event *event) {
    const struct agent *agent = engine_agent(turn->http.site->host->engine, event->agent);
    return agent && agent->shows_thinking;
}

enum err_code guest_turn_failure(enum close_cause cause, enum err_code status,
                                 const struct event *last, struct str *ret_reason,
                                 struct str *ret_message) {
    if (last && last->kind == EVENT_FAILED) {
        *ret_reason = last->failed.reason;
        *ret_message = last->failed.message;
        return last->failed.code;
    }
    if (last && last->kind == EVENT_CANCELLED) {
        *ret_reason = STR("CANCELLED");
        *ret_message = last->cancelled.message;
        return ERR_CANCELLED;
    }
    *ret_reason = cause == CAUSE_STOPPING ? STR("STOPPING") : err_name(status);
    *ret_message = cause == CAUSE_STOPPING ? STR("the server stops; try again")
                                           : STR("the turn was cut short");
    return cause == CAUSE_STOPPING ? ERR_UNAVAILABLE : status;
}
