/* turn: the calls of this contract that run an agent. */
#include "base/pool.h"
#include "contract/agentbreeder/inner.h"
#include "contract/agentbreeder/refusal.h"

/* --- creation and release ----------------------------------------------------------------- */

static const struct http_turn_kind turn_kind;
static _Thread_local struct pool turns = POOL(sizeof(struct turn), 256);

static struct turn *turn_new(struct route_call *call, struct runtime_instance *instance,
                             enum close_mode mode, const struct stream_wire *wire) {
    struct turn *turn = pool_zero(&turns);
    http_turn_init(&turn->http, &turn_kind, &instance->guest.site, call, mode, wire);
    turn->http.looked_elsewhere = true; /* decisions_elsewhere.c does */
    turn->http.workspace = runtime_settings(instance)->guest.workspace;
    turn->instance = instance;
    outcome_init(&turn->outcome);
    turn->outcome.tells_usage = runtime_settings(instance)->behind_sidecar;
    return turn;
}

static void turn_free(struct http_turn *http) {
    struct turn *turn = CONTAINER_OF(http, struct turn, http);
    http_turn_done(http);
    asked_cancel(turn->asked);
    elsewhere_cancel(turn->elsewhere);
    posted_answer_cancel(turn->posted);
    outcome_done(&turn->outcome);
    buf_done(&turn->repeat.words);
    buf_done(&turn->repeat.call_id);
    pool_give(&turns, turn);
}

/* --- answers before a run is read --------------------------------------------------------- */

/* What a new turn does not find is its agent; what a decision does not find is its thread. */
static void turn_refuse(struct http_turn *http, const struct err *why) {
    const struct turn *turn = CONTAINER_OF(http, struct turn, http);
    if (why->code == ERR_NOT_FOUND && !turn->resumes) {
        route_fail(http->call, &(struct route_failure){404, STR("AGENT_NOT_FOUND"),
                                                       err_text(why), STR_EMPTY});
        return;
    }
    refusal_of_request(http->call, why);
}

void turn_fail(struct turn *turn, int status, struct str code, struct str message,
               struct str details) {
    route_fail(turn->http.call, &(struct route_failure){status, code, message, details});
    http_turn_end(&turn->http);
}

void turn_reply(struct turn *turn, struct str body) {
    route_reply(turn->http.call, 200, STR("application/json"), body);
    http_turn_end(&turn->http);
}

void turn_report_run(struct turn *turn, uint64_t run) {
    http_turn_name_run(&turn->http, run);
    turn->outcome.run = run;
}

static void refuse_key(struct http_turn *http) {
    turn_fail(CONTAINER_OF(http, struct turn, http), 409, STR("IDEMPOTENCY_KEY_REUSED"),
              STR("this idempotency key was used for another request; send a new key, or the "
                  "same input, session and config as then"),
              STR_EMPTY);
}

/* --- starting ----------------------------------------------------------------------------- */

static void start_turn(struct turn *turn, uint64_t mark) {
    const struct runtime_request *request = &turn->request;
    struct run_request asked = {
        .name = {turn->http.workspace, request->user, request->session},
        .agent = request->agent,
        .text = request->text,
        .messages = request->messages,
        .message_count = request->message_count,
        .brought = runtime_settings(turn->instance)->brought,
        .schema = request->schema,
        .extras = request->extras,
        .contract = STR("agentbreeder"),
    };
    outcome_address(&turn->outcome, request->session, request->wants_text,
                    request->used_thread_id);
    http_turn_start(&turn->http, &asked, mark);
}

/* If a run of the session waits, the text of an /invoke or /stream is its answer. */
static void turn_begin(struct http_turn *http, uint64_t mark) {
    struct turn *turn = CONTAINER_OF(http, struct turn, http);
    if (turn->resumes) {
        decide_by_resume(turn, mark);
    } else if (!decide_by_turn(turn, mark) && !decide_elsewhere(turn, mark)) {
        start_turn(turn, mark);
    }
}

/* Attach to the run that an earlier request with this key began, or to its decision. */
static void turn_join(struct http_turn *http, uint64_t run, uint64_t seq) {
    struct turn *turn = CONTAINER_OF(http, struct turn, http);
    if (seq) {
        decide_again(turn, run, seq);
        return;
    }
    outcome_address(&turn->outcome, STR_EMPTY, turn->request.wants_text,
                    turn->request.used_thread_id);
    http_turn_attach(http, run, 0);
}

static const struct http_turn_kind turn_kind = {.begin = turn_begin,
                                                .join = turn_join,
                                                .refuse_key = refuse_key,
                                                .refuse = turn_refuse,
                                                .free = turn_free};

/* --- the calls ---------------------------------------------------------------------------- */

static bool read_request(struct turn *turn, struct err *e) {
    struct http_turn *http = &turn->http;
    struct str body, session;
    return http_turn_read_headers(http, e) &&
           http_turn_keep(http, route_body(http->call), &body, e) &&
           http_turn_keep(http, route_header(http->call, STR("x-session-id")), &session, e) &&
           runtime_request_parse(body, session, http->key.len > 0, http->arena, &turn->request,
                                 e);
}

static bool read_resume(struct turn *turn, struct err *e) {
    turn->resumes = true;
    return http_turn_read_headers(&turn->http, e) && decide_read(turn, e);
}

typedef bool read_fn(struct turn *turn, struct err *e);

static void begin_call(struct turn *turn, read_fn *read) {
    struct err e;
    if (!read(turn, &e)) {
        http_turn_give_up(&turn->http, &e);
        return;
    }
    turn->http.user = turn->request.user;
    turn->http.print = turn->request.print;
    http_turn_enter(&turn->http);
}

void turn_invoke(struct route_call *call, void *ctx) {
    begin_call(turn_new(call, ctx, CLOSE_SINGLE, &turn_invoke_wire), read_request);
}

void turn_stream(struct route_call *call, void *ctx) {
    begin_call(turn_new(call, ctx, CLOSE_DONE, &turn_stream_wire), read_request);
}

void turn_resume(struct route_call *call, void *ctx) {
    begin_call(turn_new(call, ctx, CLOSE_SINGLE, &turn_invoke_wire), read_resume);
}
